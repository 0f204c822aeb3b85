//! Lists in TOML as people write them: on one line or one value by line, with comments beside the
//! values. A value that comes or goes leaves the others and their comments in place.

use toml_edit::{Array, RawString, Value};

const INDENT: &str = "    ";

/// Adds a value at the end.
pub(super) fn push(list: &mut Array, mut value: Value) {
    let Some(index) = list.len().checked_sub(1) else {
        list.push(value);
        return;
    };
    let has_comma = list.trailing_comma();
    let (prefix, suffix) = spaces(list, index);
    let tail = if has_comma {
        raw(list.trailing())
    } else {
        suffix
    };
    let is_by_line = prefix.contains('\n') || tail.contains('\n');
    // A comment at the end of the line is about the value before.
    let comment = tail.trim_end();
    let rest = tail.strip_prefix(comment).unwrap_or_default();
    let gap = match prefix.rsplit_once('\n') {
        _ if !is_by_line => " ".to_owned(),
        Some((_, indent)) => format!("\n{indent}"),
        None => format!("\n{INDENT}"),
    };
    value.decor_mut().set_prefix(format!("{comment}{gap}"));
    if has_comma {
        list.set_trailing(rest);
    } else {
        value.decor_mut().set_suffix(rest);
        if let Some(last) = list.get_mut(index) {
            last.decor_mut().set_suffix("");
        }
    }
    list.push_formatted(value);
}

/// Takes the value at this place away.
pub(super) fn remove(list: &mut Array, index: usize) {
    if index >= list.len() {
        return;
    }
    let (prefix, suffix) = spaces(list, index);
    // What stands before the first line break is about the value before.
    let kept = match prefix.split_once('\n') {
        Some((comment, _)) => comment.trim_end().to_owned(),
        None => String::new(),
    };
    list.remove(index);
    let after_break = |text: &str| match text.split_once('\n') {
        Some((_, rest)) => format!("{kept}\n{rest}"),
        None => text.to_owned(),
    };
    if index < list.len() {
        let next = after_break(&spaces(list, index).0);
        let next = if index == 0 && !next.contains('\n') {
            next.trim_start().to_owned()
        } else {
            next
        };
        if let Some(value) = list.get_mut(index) {
            value.decor_mut().set_prefix(next);
        }
    } else if list.trailing_comma() {
        let trailing = after_break(&raw(list.trailing()));
        list.set_trailing(trailing);
        if list.is_empty() {
            list.set_trailing_comma(false);
        }
    } else if let Some(last) = index.checked_sub(1).and_then(|last| list.get_mut(last)) {
        last.decor_mut().set_suffix(after_break(&suffix));
    }
}

/// What stands before and after a value.
fn spaces(list: &Array, index: usize) -> (String, String) {
    let decor = list.get(index).map(Value::decor);
    let prefix = decor.and_then(toml_edit::Decor::prefix).map(raw);
    let suffix = decor.and_then(toml_edit::Decor::suffix).map(raw);
    (prefix.unwrap_or_default(), suffix.unwrap_or_default())
}

fn raw(text: &RawString) -> String {
    text.as_str().unwrap_or_default().replace("\r\n", "\n")
}
