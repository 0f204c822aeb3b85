//! What a call of the built-in tools `edit` and `write` changes, as a small colored diff.

use serde_json::Value;

use crate::style::{Color, Line, Style};

/// Lines around a change that are shown, and lines in all.
const CONTEXT_LINES: usize = 2;
const MAX_LINES: usize = 24;

/// Pairs of lines that are compared; texts with more are shown as replaced altogether.
const MAX_COMPARED: usize = 1_000_000;

const REMOVED: Style = Style::PLAIN.color(Color::Red);
const ADDED: Style = Style::PLAIN.color(Color::Green);
const KEPT: Style = Style::PLAIN.dim();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kept,
    Removed,
    Added,
}

/// What a call changes, if it is one of the built-in `edit` or `write`: arguments of a server's tool may look the
/// same and mean anything. `replaced` is the current content of the file that `write` replaces.
pub(crate) fn of_call(tool: &str, arguments: &Value, replaced: Option<&str>) -> Option<Vec<Line>> {
    whole_of_call(tool, arguments, replaced).map(bounded)
}

/// The same, however long it is.
pub(crate) fn whole_of_call(
    tool: &str,
    arguments: &Value,
    replaced: Option<&str>,
) -> Option<Vec<Line>> {
    let text = |name: &str| arguments.get(name)?.as_str();
    match tool {
        "edit" => Some(changed(text("old_string")?, text("new_string")?)),
        "write" => Some(changed(replaced.unwrap_or_default(), text("content")?)),
        _ => None,
    }
}

/// The lines that were removed and added, with a few around them.
fn changed(old: &str, new: &str) -> Vec<Line> {
    let steps = compare(&lines_of(old), &lines_of(new));
    let is_near = |place: usize| {
        let first = place.saturating_sub(CONTEXT_LINES);
        steps
            .iter()
            .skip(first)
            .take(place - first + CONTEXT_LINES + 1)
            .any(|(kind, _)| *kind != Kind::Kept)
    };
    let mut lines = Vec::new();
    let mut has_gap = false;
    for (place, (kind, text)) in steps.iter().enumerate() {
        if !is_near(place) {
            has_gap = true;
            continue;
        }
        if std::mem::take(&mut has_gap) && !lines.is_empty() {
            lines.push(Line::new("  ⋮", KEPT));
        }
        let (mark, style) = match kind {
            Kind::Kept => ("  ", KEPT),
            Kind::Removed => ("- ", REMOVED),
            Kind::Added => ("+ ", ADDED),
        };
        lines.push(Line::new(mark, style).with(text, style));
    }
    lines
}

fn lines_of(text: &str) -> Vec<&str> {
    text.lines().collect()
}

fn bounded(mut lines: Vec<Line>) -> Vec<Line> {
    if lines.len() > MAX_LINES {
        let n_more = lines.len() - (MAX_LINES - 1);
        lines.truncate(MAX_LINES - 1);
        lines.push(Line::new(&format!("  … {n_more} more lines"), KEPT));
    }
    lines
}

/// The steps from one text to the other, by the longest lines that they have in common.
fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Kind, &'a str)> {
    let n_same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let n_before = n_same(&mut old.iter().zip(new));
    let (before, old) = old.split_at(n_before);
    let (_, new) = new.split_at(n_before);
    let n_after = n_same(&mut old.iter().rev().zip(new.iter().rev()));
    let (old, after) = old.split_at(old.len() - n_after);
    let (new, _) = new.split_at(new.len() - n_after);

    let kept = |lines: &[&'a str]| -> Vec<(Kind, &'a str)> {
        lines.iter().map(|line| (Kind::Kept, *line)).collect()
    };
    let mut steps = kept(before);
    steps.extend(middle(old, new));
    steps.extend(kept(after));
    steps
}

fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(Kind, &'a str)> {
    let removed = |lines: &[&'a str]| lines.iter().map(|line| (Kind::Removed, *line)).collect();
    let added = |lines: &[&'a str]| lines.iter().map(|line| (Kind::Added, *line)).collect();
    let mut steps: Vec<(Kind, &'a str)> = Vec::new();
    if old.len().saturating_mul(new.len()) > MAX_COMPARED {
        let all: Vec<_> = removed(old);
        steps.extend(all);
        let all: Vec<_> = added(new);
        steps.extend(all);
        return steps;
    }
    let common = common_lengths(old, new);
    let length = |i: usize, j: usize| {
        let row = common.get(i);
        row.and_then(|row| row.get(j)).copied().unwrap_or_default()
    };
    let (mut i, mut j) = (0, 0);
    loop {
        match (old.get(i), new.get(j)) {
            (Some(a), Some(b)) if a == b => {
                steps.push((Kind::Kept, *a));
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), next) if next.is_none() || length(i + 1, j) >= length(i, j + 1) => {
                steps.push((Kind::Removed, *a));
                i += 1;
            }
            (_, Some(b)) => {
                steps.push((Kind::Added, *b));
                j += 1;
            }
            (_, None) => return steps,
        }
    }
}

/// How many lines the rests of both texts have in common, from every pair of places on.
fn common_lengths(old: &[&str], new: &[&str]) -> Vec<Vec<u32>> {
    let mut rows = vec![vec![0; new.len() + 1]];
    for a in old.iter().rev() {
        let below = rows.last().cloned().unwrap_or_default();
        let mut row = vec![0; new.len() + 1];
        let mut right = 0;
        for (j, b) in new.iter().enumerate().rev() {
            let at = |place: usize| below.get(place).copied().unwrap_or_default();
            right = if a == b {
                at(j + 1) + 1
            } else {
                at(j).max(right)
            };
            if let Some(cell) = row.get_mut(j) {
                *cell = right;
            }
        }
        rows.push(row);
    }
    rows.reverse();
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(tool: &str, arguments: &Value, replaced: Option<&str>) -> Vec<String> {
        let lines = of_call(tool, arguments, replaced).unwrap_or_default();
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn an_edit_shows_what_goes_and_what_comes() {
        let arguments = json!({
            "path": "a.rs",
            "old_string": "1\n2\n3\nold\n4\n5\n6",
            "new_string": "1\n2\n3\nnew\nmore\n4\n5\n6",
        });
        let expected = ["  2", "  3", "- old", "+ new", "+ more", "  4", "  5"];
        assert_eq!(shown("edit", &arguments, None), expected);
    }

    #[test]
    fn changes_far_apart_have_a_gap_between_them() {
        let arguments = json!({
            "path": "a.rs",
            "old_string": "a\n1\n2\n3\n4\n5\nb",
            "new_string": "A\n1\n2\n3\n4\n5\nB",
        });
        let expected = [
            "- a", "+ A", "  1", "  2", "  ⋮", "  4", "  5", "- b", "+ B",
        ];
        assert_eq!(shown("edit", &arguments, None), expected);
    }

    #[test]
    fn write_shows_the_lines_that_it_removes_from_a_file() {
        let arguments = json!({ "path": "x", "content": "a\nnew\n" });
        let expected = ["  a", "- old", "- more", "+ new"];
        assert_eq!(shown("write", &arguments, Some("a\nold\nmore\n")), expected);
        let text = "line\n".repeat(100);
        let written = shown("write", &json!({ "path": "x", "content": text }), None);
        assert_eq!(written.len(), MAX_LINES);
        assert_eq!(written.last().unwrap(), "  … 77 more lines");
    }

    #[test]
    fn calls_of_other_tools_have_no_diff() {
        let edit = json!({ "path": "x", "old_string": "a", "new_string": "b", "content": "c" });
        for tool in ["mcp__files__edit", "mcp__files__write", "shell"] {
            assert_eq!(of_call(tool, &edit, None), None, "{tool}");
        }
        for arguments in [json!({ "path": "x", "old_string": "a" }), json!(null)] {
            assert_eq!(of_call("edit", &arguments, None), None, "{arguments}");
        }
    }

    #[test]
    fn what_is_kept_is_the_most_that_can_be() {
        let old = ["a", "b", "c", "d"];
        let new = ["b", "x", "d", "c"];
        let kept = compare(&old, &new)
            .iter()
            .filter(|(kind, _)| *kind == Kind::Kept)
            .count();
        assert_eq!(kept, 2);
    }
}
