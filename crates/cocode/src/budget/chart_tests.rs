//! That budgets fit any terminal, and that their numbers read well.

use cocode_core::SearchPolicy;

use super::{grouped, length, share, text};
use crate::budget::weighed::{Counted, Weighed};
use crate::budget::window::Model;
use crate::printer::Paint;
use crate::toolbox::{ServerTools, ToolEntry, Toolbox};

fn weighed() -> Weighed {
    let tool = |name: &str, length: usize| ToolEntry {
        name: name.to_owned(),
        description: Some("x".repeat(length)),
        ..ToolEntry::default()
    };
    let server = |name: &str, tools: Vec<ToolEntry>| ServerTools {
        name: name.to_owned(),
        tools,
        ..ServerTools::default()
    };
    let long = "a_name_that_is_far_too_long_for_the_column_of_names";
    let toolbox = Toolbox {
        servers: vec![
            server("small", vec![tool("one", 10)]),
            server(long, vec![tool(long, 40_000), tool("two", 4_000)]),
            // Not the last line, whatever it is called.
            server("total", vec![tool("three", 20_000)]),
        ],
        unknown: Vec::new(),
    };
    let model = Model::of_window(None);
    Weighed::new(toolbox, &model, SearchPolicy::default(), Counted::Nowhere)
}

#[test]
fn lines_are_as_wide_as_the_terminal_at_most() {
    for width in [42, 50, 60, 80, 100, 200, usize::MAX / 4] {
        let shown = text(&weighed(), true, width, Paint { on: false });
        let widest = shown.lines().map(|line| line.chars().count()).max();
        // Without a terminal, lines are as wide as those of a large one.
        let most = if width > 200 { 100 } else { width };
        assert!(widest.unwrap() <= most, "{width}:\n{shown}");
        assert!(shown.contains("####"), "{width}:\n{shown}");
    }
}

#[test]
fn the_most_expensive_comes_first_and_has_the_longest_bar() {
    let shown = text(&weighed(), false, 80, Paint { on: false });
    let lines: Vec<&str> = shown.lines().collect();
    let bars = [1, 2, 3, 4].map(|line: usize| lines[line].matches('#').count());
    assert!(lines[1].starts_with("a_name_that"), "{shown}");
    assert!(lines[2].starts_with("total "), "{shown}");
    assert!(bars[0] > bars[1] && bars[1] > bars[2], "{shown}");
    assert_eq!((bars[2], bars[3]), (1, 0), "{shown}");
}

#[test]
fn numbers_are_grouped_by_thousands() {
    let numbers = [0, 12, 999, 1_000, 123_456, 1_234_567].map(grouped);
    assert_eq!(numbers, ["0", "12", "999", "1,000", "123,456", "1,234,567"]);
}

#[test]
fn small_shares_are_not_nothing() {
    let shares = [0.0, 0.001, 0.05, 12.34, 250.0].map(share);
    assert_eq!(shares, ["0.0%", "<0.1%", "0.1%", "12.3%", "250.0%"]);
}

#[test]
fn bars_show_whatever_is_there_and_never_grow_too_long() {
    assert_eq!(length(0, 10, 40), 0);
    assert_eq!(length(1, 1_000_000, 40), 1);
    assert_eq!(length(500, 1_000, 40), 20);
    assert_eq!(length(u64::MAX, u64::MAX, 40), 40);
    assert_eq!(length(5, 0, 40), 0);
}
