//! Rules for Rust files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::none;
use crate::tree::{files, root};

/// Lines of a file, and of a file that holds only tests.
const MAX_LINES: usize = 500;
const MAX_TEST_LINES: usize = 800;

/// Attributes that skip a test. Cut in two, so that this file does not contain them.
const IGNORED: &[&str] = &[concat!("#[ign", "ore"), concat!(", ign", "ore)]")];

/// What follows the keyword where it is code and not a word in a sentence.
const UNSAFE_FOLLOWERS: &[&str] = &["{", "fn ", "impl ", "trait ", "extern "];

fn rust_files() -> Vec<(PathBuf, String)> {
    files()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .map(|file| {
            let text = fs::read_to_string(root().join(&file)).expect("Rust files are UTF-8");
            (file, text)
        })
        .collect()
}

/// Collects what `complaint` says about each Rust file.
fn offenders(complaint: impl Fn(&Path, &str) -> Vec<String>) -> Vec<String> {
    rust_files()
        .iter()
        .flat_map(|(file, text)| {
            complaint(file, text)
                .into_iter()
                .map(|complaint| format!("{}{complaint}", file.display()))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn holds_only_tests(file: &Path) -> bool {
    let in_tests = file
        .components()
        .any(|component| component.as_os_str() == "tests");
    let name = file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    in_tests || name.ends_with("_tests.rs")
}

/// Lines that satisfy the predicate, as `:NUMBER`, comments left out.
fn code_lines(text: &str, predicate: impl Fn(&str) -> bool) -> Vec<String> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//") && predicate(line))
        .map(|(index, line)| format!(":{}: {}", index + 1, line.trim()))
        .collect()
}

/// The text of an attribute that starts at the beginning of `text`, up to its closing bracket.
fn attribute(text: &str) -> &str {
    let mut depth = 0_usize;
    for (index, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' if depth == 1 => return text.get(..=index).unwrap_or(text),
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text
}

#[test]
fn every_file_says_first_what_it_owns() {
    let found = offenders(|_, text| {
        let good = text
            .lines()
            .next()
            .is_some_and(|line| line.starts_with("//! "));
        if good { vec![] } else { vec![String::new()] }
    });
    none("files whose first line is not `//! ...`", &found);
}

#[test]
fn files_are_short() {
    let found = offenders(|file, text| {
        let limit = if holds_only_tests(file) {
            MAX_TEST_LINES
        } else {
            MAX_LINES
        };
        let n_lines = text.lines().count();
        if n_lines > limit {
            vec![format!(": {n_lines} lines of {limit}")]
        } else {
            vec![]
        }
    });
    none("files that are too long", &found);
}

#[test]
fn modules_are_named_by_their_file() {
    let found = offenders(|file, _| {
        if file.ends_with("mod.rs") {
            vec![String::new()]
        } else {
            vec![]
        }
    });
    none("files named mod.rs", &found);
}

#[test]
fn no_test_is_skipped() {
    let found = offenders(|_, text| {
        code_lines(text, |line| {
            IGNORED.iter().any(|ignored| line.contains(ignored))
        })
    });
    none("ignored tests", &found);
}

#[test]
fn every_expected_lint_has_a_reason() {
    let found = offenders(|_, text| {
        ["#[expect(", "#![expect("]
            .iter()
            .flat_map(|opening| text.match_indices(opening))
            .filter_map(|(start, _)| complain_about_expect(text, start))
            .collect()
    });
    none("expected lints without a reason", &found);
}

fn complain_about_expect(text: &str, start: usize) -> Option<String> {
    let before = text.get(..start).unwrap_or_default();
    // In a comment or a string it is text about attributes.
    let line = before.rsplit('\n').next().unwrap_or_default();
    let in_code = line.trim().is_empty();
    let has_reason = attribute(text.get(start..).unwrap_or_default()).contains("reason = \"");
    (in_code && !has_reason).then(|| format!(":{}", before.lines().count() + 1))
}

#[test]
fn unsafe_code_is_in_the_process_crate_only() {
    let found = offenders(|file, text| {
        if file.starts_with("crates/cocode-process") {
            return vec![];
        }
        code_lines(text, |line| {
            line.split("unsafe ").skip(1).any(|rest| {
                UNSAFE_FOLLOWERS
                    .iter()
                    .any(|follower| rest.trim_start().starts_with(follower))
            }) || line.contains(concat!("(unsafe", "_code"))
        })
    });
    none("unsafe code outside cocode-process", &found);
}

#[test]
fn attributes_end_at_their_own_bracket() {
    for (text, expected) in [
        ("#[a]b]", "#[a]"),
        (
            "#![a(b[0], reason = \"c\")]\nd",
            "#![a(b[0], reason = \"c\")]",
        ),
        ("#[open", "#[open"),
    ] {
        assert_eq!(attribute(text), expected);
    }
}
