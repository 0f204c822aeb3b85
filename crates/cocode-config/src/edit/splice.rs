//! Changes the text of a TOML file by cutting and inserting, so that no other byte is touched.
//! What is where is known from the parser; what a change means is for others to say.

use toml_edit::{Decor, Document, DocumentMut, InlineTable, Item, Key, RawString, Table, Value};

use super::lines::{Lines, Piece};

/// Why a text cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) key: String,
    pub(super) message: &'static str,
}

/// A text and what is in it.
pub(super) struct TomlText<'a> {
    lines: Lines<'a>,
    document: Document<&'a str>,
}

/// What a list may change to.
pub(super) type Change<'c> = &'c mut dyn FnMut(&mut toml_edit::Array) -> bool;

impl<'a> TomlText<'a> {
    /// Nothing, if it is not TOML.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let document = Document::parse(text).ok()?;
        let lines = Lines::of(text);
        Some(Self { lines, document })
    }

    pub(super) fn root(&self) -> &Table {
        self.document.as_table()
    }

    /// Gives a key a value, in whatever form the tables around it are written.
    pub(super) fn set(&self, path: &[&str], value: &Value) -> Result<String, Refusal> {
        let mut table = self.root();
        for (depth, key) in path.iter().enumerate() {
            let (above, below) = path.split_at_checked(depth + 1).unwrap_or((path, &[]));
            match table.get(key) {
                None | Some(Item::None) => return Ok(self.insert(table, path, depth, value)),
                Some(Item::Value(old)) if below.is_empty() => {
                    return self.exchange(above, old, value);
                }
                Some(Item::Value(old @ Value::InlineTable(_))) => {
                    let mut new = self.owned(above)?;
                    if let Value::InlineTable(new) = &mut new {
                        set_inline(new, below, value).ok_or_else(|| no_table(path))?;
                    }
                    return self.exchange(above, old, &new);
                }
                Some(Item::Table(next)) if !below.is_empty() => table = next,
                Some(Item::Table(_) | Item::ArrayOfTables(_)) if below.is_empty() => {
                    return Err(refusal(above, "it is a table here, which has no value"));
                }
                Some(_) => return Err(no_table(above)),
            }
        }
        Err(no_table(path))
    }

    /// Takes a key and all that is under it away. Nothing, if there is no such key.
    pub(super) fn remove(&self, path: &[&str]) -> Result<Option<String>, Refusal> {
        let mut table = self.root();
        for (depth, key) in path.iter().enumerate() {
            let (above, below) = path.split_at_checked(depth + 1).unwrap_or((path, &[]));
            match table.get_key_value(key) {
                None | Some((_, Item::None)) => return Ok(None),
                Some((key, item)) if below.is_empty() => {
                    let mut pieces = Vec::new();
                    self.pieces(key, item, &mut pieces);
                    return Ok(Some(self.lines.cut(pieces)));
                }
                Some((_, Item::Value(old @ Value::InlineTable(_)))) => {
                    let mut new = self.owned(above)?;
                    let Value::InlineTable(inline) = &mut new else {
                        return Err(no_table(above));
                    };
                    if !remove_inline(inline, below) {
                        return Ok(None);
                    }
                    return self.exchange(above, old, &new).map(Some);
                }
                Some((_, Item::Table(next))) => table = next,
                Some(_) => return Err(no_table(above)),
            }
        }
        Ok(None)
    }

    /// Puts a block of lines in the place of the table of this path, if it is written with a
    /// header of its own. Comments above the header stay.
    pub(super) fn replace_block(&self, path: &[&str], block: &str) -> Option<String> {
        let item = path
            .iter()
            .try_fold(self.document.as_item(), |item, key| item.get(key))?;
        let Item::Table(table) = item else {
            return None;
        };
        if table.is_dotted() || table.is_implicit() {
            return None;
        }
        let header = self.lines.line_start(table.span()?.start);
        let mut pieces = Vec::new();
        self.header_pieces(table, &mut pieces);
        let (own, rest): (Vec<_>, Vec<_>) = pieces
            .into_iter()
            .partition(|piece: &Piece| piece.range.contains(&header));
        let end = own.iter().map(|piece| piece.range.end).max()?;
        let mut edits: Vec<_> = rest
            .into_iter()
            .map(|piece| (self.lines.with_blank(piece), String::new()))
            .collect();
        edits.push((header..end, self.lines.ended(block)));
        Some(self.lines.apply(edits))
    }

    /// Adds a block of lines at the end, after an empty line.
    pub(super) fn append_block(&self, block: &str) -> String {
        let mut text = self.lines.text.to_owned();
        if !text.is_empty() {
            if !text.ends_with('\n') {
                text.push_str(self.lines.newline);
            }
            if !text
                .lines()
                .next_back()
                .unwrap_or_default()
                .trim()
                .is_empty()
            {
                text.push_str(self.lines.newline);
            }
        }
        text.push_str(&self.lines.ended(block));
        text
    }

    /// Changes a list. Nothing, if the list is not there or does not change.
    pub(super) fn change_list(
        &self,
        path: &[&str],
        change: Change<'_>,
    ) -> Result<Option<String>, Refusal> {
        let found = path
            .iter()
            .try_fold(self.document.as_item(), |item, key| item.get(key));
        let Some(item) = found else {
            return Ok(None);
        };
        if !item.is_array() {
            return Err(refusal(path, "it is not written as a list of values"));
        }
        let Value::Array(mut list) = self.owned(path)? else {
            return Err(refusal(path, "it is not written as a list of values"));
        };
        if !change(&mut list) {
            return Ok(None);
        }
        self.set(path, &Value::Array(list)).map(Some)
    }

    /// Takes whole tables with headers of their own away.
    pub(super) fn remove_tables(&self, tables: &[&Table]) -> String {
        let mut pieces = Vec::new();
        for table in tables {
            self.header_pieces(table, &mut pieces);
        }
        self.lines.cut(pieces)
    }

    /// Gives a key of tables with headers of their own a value.
    pub(super) fn set_in_tables(&self, tables: &[&Table], key: &str, value: &Value) -> String {
        let mut edits = Vec::new();
        for table in tables {
            let old = table
                .get(key)
                .and_then(Item::as_value)
                .and_then(Value::span);
            if let Some(span) = old {
                edits.push((span, self.lines.ended(&rendered(value))));
            } else {
                let at = self.body_end(table);
                edits.push((at..at, self.whole_line(at, "", key, value)));
            }
        }
        self.lines.apply(edits)
    }

    fn insert(&self, table: &Table, path: &[&str], depth: usize, value: &Value) -> String {
        let (above, below) = path.split_at_checked(depth).unwrap_or((path, &[]));
        match (above, below) {
            ([], [key]) => self.insert_at_root(key, value),
            (_, [key]) if table.is_dotted() => {
                let at = self.body_end(table);
                let prefix = self.dotted_prefix(table);
                let line = self.whole_line(at, prefix, key, value);
                self.lines.apply(vec![(at..at, line)])
            }
            (_, [key]) if !table.is_implicit() => {
                let at = self.body_end(table);
                let line = self.whole_line(at, "", key, value);
                self.lines.apply(vec![(at..at, line)])
            }
            _ => {
                let (last, parents) = path.split_last().unwrap_or((&"", &[]));
                let header: Vec<_> = parents.iter().map(|key| quoted(key)).collect();
                let header = header.join(".");
                let block = format!("[{header}]\n{} = {}\n", quoted(last), rendered(value));
                self.append_block(&block)
            }
        }
    }

    /// Before the first header, because what comes after belongs to it.
    fn insert_at_root(&self, key: &str, value: &Value) -> String {
        let line = |at| self.whole_line(at, "", key, value);
        if let Some(end) = Self::last_value_end(self.root()) {
            let at = self.lines.line_end(end);
            return self.lines.apply(vec![(at..at, line(at))]);
        }
        let Some(first) = Self::first_header(self.root()) else {
            return self.append_block(&line(0));
        };
        let at = self.lines.comments_start(self.lines.line_start(first), 0);
        self.lines
            .apply(vec![(at..at, line(at) + self.lines.newline)])
    }

    fn exchange(&self, path: &[&str], old: &Value, new: &Value) -> Result<String, Refusal> {
        let span = old.span();
        let span = span.ok_or_else(|| refusal(path, "its place in the file is not known"))?;
        Ok(self
            .lines
            .apply(vec![(span, self.lines.ended(&rendered(new)))]))
    }

    /// A value that can be changed, with its spaces and comments.
    fn owned(&self, path: &[&str]) -> Result<Value, Refusal> {
        let lost = || refusal(path, "it cannot be read again");
        let document: DocumentMut = self.lines.text.parse().map_err(|_not_toml| lost())?;
        let item = path
            .iter()
            .try_fold(document.as_item(), |item, key| item.get(key));
        item.and_then(Item::as_value).cloned().ok_or_else(lost)
    }

    /// All pieces of the text that say something about a key.
    fn pieces(&self, key: &Key, item: &Item, pieces: &mut Vec<Piece>) {
        match item {
            Item::None => {}
            Item::Value(value) => {
                if let (Some(key), Some(value)) = (key.span(), value.span()) {
                    let range = self.lines.line_start(key.start)..self.lines.line_end(value.end);
                    let is_block = false;
                    pieces.push(Piece { range, is_block });
                }
            }
            Item::Table(table) if table.is_dotted() => {
                for (key, _) in table {
                    if let Some((key, item)) = table.get_key_value(key) {
                        self.pieces(key, item, pieces);
                    }
                }
            }
            Item::Table(table) => self.header_pieces(table, pieces),
            Item::ArrayOfTables(tables) => {
                for table in tables {
                    self.header_pieces(table, pieces);
                }
            }
        }
    }

    /// The block of a table, and those of the tables under it.
    fn header_pieces(&self, table: &Table, pieces: &mut Vec<Piece>) {
        if !table.is_implicit()
            && !table.is_dotted()
            && let Some(span) = table.span()
        {
            // What looks like a comment further up may be the end of a text.
            let before = table.decor().prefix().and_then(RawString::span);
            let floor = before.map_or(span.start, |before| before.start);
            let header = self.lines.line_start(span.start);
            let start = self.lines.comments_start(header, floor);
            let end = self.lines.comments_end(self.body_end(table));
            pieces.push(Piece {
                range: start..end,
                is_block: true,
            });
        }
        for (_, item) in table {
            match item {
                Item::Table(table) => self.header_pieces(table, pieces),
                Item::ArrayOfTables(tables) => {
                    for table in tables {
                        self.header_pieces(table, pieces);
                    }
                }
                Item::None | Item::Value(_) => {}
            }
        }
    }

    fn first_header(table: &Table) -> Option<usize> {
        let first_of = |table: &Table| {
            let is_written = !table.is_implicit() && !table.is_dotted();
            let own = is_written.then(|| table.span()).flatten();
            let own = own.map(|span| span.start);
            own.into_iter().chain(Self::first_header(table)).min()
        };
        let firsts = table.iter().filter_map(|(_, item)| match item {
            Item::Table(table) => first_of(table),
            Item::ArrayOfTables(tables) => tables.iter().filter_map(first_of).min(),
            Item::None | Item::Value(_) => None,
        });
        firsts.min()
    }

    /// Where the lines of a table end that stand under its own header, or with its own prefix.
    fn body_end(&self, table: &Table) -> usize {
        let end = Self::last_value_end(table);
        let end = end.or_else(|| table.span().map(|span| span.end));
        self.lines.line_end(end.unwrap_or(self.lines.text.len()))
    }

    fn last_value_end(table: &Table) -> Option<usize> {
        let ends = table.iter().filter_map(|(_, item)| match item {
            Item::Value(value) => value.span().map(|span| span.end),
            Item::Table(table) if table.is_dotted() => Self::last_value_end(table),
            _ => None,
        });
        ends.max()
    }

    /// What stands before the keys of a table that has no header: `a.b.`.
    fn dotted_prefix(&self, table: &Table) -> &str {
        let keys = table.iter().filter(|(_, item)| match item {
            Item::Value(_) => true,
            Item::Table(table) => table.is_dotted(),
            _ => false,
        });
        let spans = keys.filter_map(|(key, _)| table.key(key).and_then(Key::span));
        let Some(start) = spans.map(|span| span.start).max() else {
            return "";
        };
        let line = self.lines.line_start(start);
        self.lines.text.get(line..start).unwrap_or_default()
    }

    fn whole_line(&self, at: usize, prefix: &str, key: &str, value: &Value) -> String {
        let before = self.lines.text.get(..at).unwrap_or_default();
        let is_open = !before.is_empty() && !before.ends_with('\n');
        let start = if is_open { self.lines.newline } else { "" };
        let value = self.lines.ended(&rendered(value));
        format!(
            "{start}{prefix}{} = {value}{}",
            quoted(key),
            self.lines.newline
        )
    }
}

/// A key as it is written: with quotes where it needs them.
pub(super) fn quoted(key: &str) -> String {
    Key::new(key).display_repr().into_owned()
}

fn rendered(value: &Value) -> String {
    let mut value = value.clone();
    value.decor_mut().clear();
    value.to_string()
}

/// Gives a key of a table on one line a value, within the spaces the table has.
pub(super) fn put_inline(table: &mut InlineTable, key: &str, value: &Value) {
    let mut value = value.clone();
    if let Some(old) = table.get_mut(key) {
        *value.decor_mut() = old.decor().clone();
        *old = value;
    } else {
        *value.decor_mut() = Decor::new(" ", take_end(table));
        table.insert(key, value);
    }
}

fn set_inline(table: &mut InlineTable, path: &[&str], value: &Value) -> Option<()> {
    let (key, rest) = path.split_first()?;
    if rest.is_empty() {
        put_inline(table, key, value);
        return Some(());
    }
    let next = table.get_or_insert(*key, InlineTable::new());
    set_inline(next.as_inline_table_mut()?, rest, value)
}

fn remove_inline(table: &mut InlineTable, path: &[&str]) -> bool {
    let Some((key, rest)) = path.split_first() else {
        return false;
    };
    if rest.is_empty() {
        let end = take_end(table);
        let is_removed = table.remove(key).is_some();
        if !end.is_empty()
            && let Some((_, last)) = table.iter_mut().last()
        {
            last.decor_mut().set_suffix(end);
        }
        return is_removed;
    }
    match table.get_mut(key) {
        Some(Value::InlineTable(next)) => remove_inline(next, rest),
        _ => false,
    }
}

/// The blanks before the closing brace, which stay there whatever value is the last.
fn take_end(table: &mut InlineTable) -> String {
    if table.is_empty() {
        table.set_trailing("");
        return " ".to_owned();
    }
    if table.trailing_comma() {
        return String::new();
    }
    let Some((_, last)) = table.iter_mut().last() else {
        return String::new();
    };
    let end = last.decor().suffix().and_then(RawString::as_str);
    match end.map(str::to_owned) {
        // A comment stays with its value.
        Some(end) if !end.contains('#') => {
            last.decor_mut().set_suffix("");
            end
        }
        _ => String::new(),
    }
}

fn refusal(path: &[&str], message: &'static str) -> Refusal {
    let key: Vec<_> = path.iter().map(|key| quoted(key)).collect();
    let key = key.join(".");
    Refusal { key, message }
}

fn no_table(path: &[&str]) -> Refusal {
    refusal(path, "it is not a table here")
}
