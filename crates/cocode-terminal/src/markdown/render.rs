//! Turns whole blocks of Markdown into styled lines.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};

use super::table::Table;
use super::{CODE, FAINT, options};
use crate::style::{Color, Line, Span, Style};
use crate::text::harmless;
use crate::wrap::wrap_words;

/// The lines of a text. Prose is broken at so many columns; code is not, so that it can be copied.
pub(crate) fn render(markdown: &str, columns: usize) -> Vec<Line> {
    let mut renderer = Renderer::new(columns);
    // Before it is taken apart, while sequences for the terminal are whole.
    let markdown = harmless(markdown);
    for event in Parser::new_ext(&markdown, options()) {
        renderer.take(event);
    }
    renderer.flush();
    renderer.lines
}

/// What blocks stand in.
enum Container {
    Quote,
    /// The number of the next item, if they have numbers.
    List(Option<u64>),
    Item {
        /// What stands before its first line, until that is written.
        mark: Option<Line>,
        indent: usize,
    },
}

struct Renderer {
    columns: usize,
    lines: Vec<Line>,
    containers: Vec<Container>,
    styles: Vec<Style>,
    /// The text of the block so far: one line for each that the text itself breaks.
    inline: Vec<Line>,
    /// What is written next stands apart from what was written.
    needs_gap: bool,
    in_code: bool,
    links: Vec<String>,
    table: Option<Table>,
}

impl Renderer {
    fn new(columns: usize) -> Self {
        Self {
            columns,
            lines: Vec::new(),
            containers: Vec::new(),
            styles: vec![Style::PLAIN],
            inline: Vec::new(),
            needs_gap: false,
            in_code: false,
            links: Vec::new(),
            table: None,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => self.write_code(&text),
            Event::Text(text) => self.say(&text, self.style()),
            Event::Code(code) => self.say(&code, CODE),
            Event::Html(html) => {
                for line in html.lines() {
                    self.say(line, FAINT);
                    self.inline.push(Line::default());
                }
            }
            Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.say(&text, self.style());
            }
            Event::FootnoteReference(name) => self.say(&format!("[{name}]"), FAINT),
            Event::SoftBreak => self.say(" ", self.style()),
            Event::HardBreak => self.inline.push(Line::default()),
            Event::Rule => {
                self.flush();
                self.say("────────", FAINT);
                self.flush();
                self.needs_gap = true;
            }
            Event::TaskListMarker(is_done) => {
                self.say(if is_done { "[x] " } else { "[ ] " }, self.style());
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let style = self.style();
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                let style = match level {
                    HeadingLevel::H1 => Style::PLAIN.bold().underlined(),
                    HeadingLevel::H2 => Style::PLAIN.bold(),
                    _ => Style::PLAIN.bold().italic(),
                };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.write_gap();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.write_gap();
                self.in_code = true;
                let language = match &kind {
                    CodeBlockKind::Fenced(language) => language,
                    CodeBlockKind::Indented => "",
                };
                self.write_unbroken(Line::new(&format!("```{language}"), FAINT));
            }
            Tag::List(first) => {
                self.flush();
                self.needs_gap &= !self.is_in_item();
                self.containers.push(Container::List(first));
            }
            Tag::Item => self.start_item(),
            Tag::Emphasis => self.styles.push(style.italic()),
            Tag::Strong => self.styles.push(style.bold()),
            Tag::Strikethrough => self.styles.push(style.struck()),
            Tag::Link { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.styles.push(style.underlined().color(Color::Blue));
            }
            Tag::Image { dest_url, .. } => {
                self.say("image: ", FAINT);
                self.links.push(dest_url.into_string());
                self.styles.push(style.italic());
            }
            Tag::Table(_) => {
                self.flush();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.needs_gap = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.needs_gap = true;
            }
            TagEnd::CodeBlock => {
                self.write_unbroken(Line::new("```", FAINT));
                self.in_code = false;
                self.needs_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.containers.pop();
                self.needs_gap = true;
            }
            TagEnd::List(_) => {
                self.containers.pop();
                self.needs_gap = true;
            }
            TagEnd::Item => {
                self.flush();
                // An item without text still has its mark.
                if let Some(Container::Item { mark: Some(_), .. }) = self.containers.last() {
                    self.write_unbroken(Line::default());
                }
                self.containers.pop();
                self.needs_gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = self.inline.drain(..).reduce(|mut all, line| {
                    all.append(Line::plain(" "));
                    all.append(line);
                    all
                });
                if let Some(table) = &mut self.table {
                    table.add_cell(cell.unwrap_or_default());
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                self.write_gap();
                let room = self.columns.saturating_sub(self.prefix_width());
                for line in table.lines(room) {
                    self.write_unbroken(line);
                }
                self.needs_gap = true;
            }
            _ => {}
        }
    }

    fn start_item(&mut self) {
        self.flush();
        let mark = match self.containers.last_mut() {
            Some(Container::List(Some(number))) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".to_owned(),
        };
        let mark = Line::new(&mark, FAINT);
        self.containers.push(Container::Item {
            indent: mark.width(),
            mark: Some(mark),
        });
    }

    /// Where the text of a link is not its address, the address follows: a terminal shows no other
    /// way to see where it leads.
    fn end_link(&mut self) {
        let text = self.inline.last().map(Line::text).unwrap_or_default();
        self.styles.pop();
        if let Some(address) = self.links.pop() {
            let is_shown = text.ends_with(&address);
            let is_mail = text.ends_with(address.trim_start_matches("mailto:"));
            if !address.is_empty() && !is_shown && !is_mail {
                self.say(&format!(" ({address})"), FAINT);
            }
        }
    }

    fn is_in_item(&self) -> bool {
        matches!(self.containers.last(), Some(Container::Item { .. }))
    }

    /// Adds to the text of the block.
    fn say(&mut self, text: &str, style: Style) {
        if self.inline.is_empty() {
            self.inline.push(Line::default());
        }
        if let Some(line) = self.inline.last_mut() {
            line.push(Span::new(text, style));
        }
    }

    /// Writes the text of the block.
    fn flush(&mut self) {
        while self.inline.last().is_some_and(Line::is_empty) {
            self.inline.pop();
        }
        if self.inline.is_empty() {
            return;
        }
        self.write_gap();
        for line in std::mem::take(&mut self.inline) {
            let first = self.prefix();
            let next = self.prefix();
            let mut whole = first.clone();
            whole.append(line);
            self.lines.extend(wrap_words(&whole, self.columns, &next));
        }
    }

    fn write_code(&mut self, code: &str) {
        for line in Line::lines(code, CODE) {
            self.write_unbroken(line);
        }
    }

    fn write_unbroken(&mut self, line: Line) {
        let mut whole = self.prefix();
        whole.append(line);
        self.lines.push(whole);
    }

    fn write_gap(&mut self) {
        if std::mem::take(&mut self.needs_gap) && !self.lines.is_empty() {
            let prefix = self.quiet_prefix();
            self.lines.push(prefix);
        }
    }

    /// What stands before a line. The marks of items are used up by it.
    fn prefix(&mut self) -> Line {
        let mut prefix = Line::default();
        for container in &mut self.containers {
            match container {
                Container::Quote => prefix.push(Span::new("│ ", FAINT)),
                Container::List(_) => {}
                Container::Item { mark, indent } => match mark.take() {
                    Some(mark) => prefix.append(mark),
                    None => prefix.push(Span::new(&" ".repeat(*indent), Style::PLAIN)),
                },
            }
        }
        prefix
    }

    /// What stands before a line that separates: it uses up nothing and has no spaces at its end.
    fn quiet_prefix(&self) -> Line {
        let n_quotes = self
            .containers
            .iter()
            .filter(|container| matches!(container, Container::Quote))
            .count();
        match n_quotes {
            0 => Line::default(),
            n => Line::new("│ ".repeat(n).trim_end(), FAINT),
        }
    }

    fn prefix_width(&self) -> usize {
        self.containers
            .iter()
            .map(|container| match container {
                Container::Quote => 2,
                Container::List(_) => 0,
                Container::Item { indent, .. } => *indent,
            })
            .sum()
    }
}
