//! Whether a model is shown all tools: every case of the decision.

use super::definition_characters;
use super::{
    SearchDecision, SearchPolicy, Searcher, Share, ToolLoad, ToolSearchMode, WhySearch, WhyShowAll,
};

const MODEL: Searcher = Searcher {
    context_window: Some(200_000),
    calls_tools: true,
};
const MANY: ToolLoad = ToolLoad {
    characters: 50_000,
    deferrable: 40,
};

fn share(characters: u64, threshold: u64, percent: f64, window: u64) -> Share {
    Share {
        characters,
        threshold,
        percent,
        window,
    }
}

#[track_caller]
fn check(
    mode: &str,
    change: impl FnOnce(&mut SearchPolicy, &mut Searcher, &mut ToolLoad),
    expected: SearchDecision,
) {
    let (mut policy, mut model, mut tools) = (SearchPolicy::default(), MODEL, MANY);
    policy.mode = mode.parse().unwrap();
    change(&mut policy, &mut model, &mut tools);
    assert_eq!(policy.decide(model, tools), expected);
}

fn search(share: Share) -> SearchDecision {
    SearchDecision::Search(WhySearch::OverThreshold(share))
}

fn under(share: Share) -> SearchDecision {
    SearchDecision::ShowAll(WhyShowAll::UnderThreshold(share))
}

#[test]
fn ten_percent_of_the_window_are_the_threshold() {
    check(
        "auto",
        |_, _, _| {},
        search(share(50_000, 50_000, 10.0, 200_000)),
    );
    check(
        "auto",
        |_, _, tools| tools.characters = 49_999,
        under(share(49_999, 50_000, 10.0, 200_000)),
    );
    check(
        "auto",
        |_, model, _| model.context_window = Some(1_000_000),
        under(share(50_000, 250_000, 10.0, 1_000_000)),
    );
}

#[test]
fn the_threshold_can_be_set_in_two_ways() {
    check(
        "auto:20",
        |_, _, _| {},
        under(share(50_000, 100_000, 20.0, 200_000)),
    );
    check(
        "auto",
        |policy, _, _| policy.threshold_percent = 2.5,
        search(share(50_000, 12_500, 2.5, 200_000)),
    );
    // What is said closest to the user counts.
    check(
        "auto:100",
        |policy, _, _| policy.threshold_percent = 2.5,
        under(share(50_000, 500_000, 100.0, 200_000)),
    );
}

#[test]
fn small_windows_do_not_search_by_themselves() {
    let small = WhyShowAll::SmallWindow {
        window: 31_999,
        least: 32_000,
    };
    check(
        "auto",
        |_, model, _| model.context_window = Some(31_999),
        SearchDecision::ShowAll(small),
    );
    check(
        "auto",
        |_, model, _| model.context_window = Some(32_000),
        search(share(50_000, 8_000, 10.0, 32_000)),
    );
    check(
        "auto",
        |_, model, _| model.context_window = None,
        SearchDecision::ShowAll(WhyShowAll::UnknownWindow),
    );
}

#[test]
fn whoever_switches_it_on_or_off_is_obeyed() {
    let on = SearchDecision::Search(WhySearch::SwitchedOn);
    check("true", |_, _, _| {}, on);
    check("true", |_, model, _| model.context_window = Some(1_000), on);
    check("true", |_, model, _| model.context_window = None, on);
    check("true", |_, _, tools| tools.characters = 1, on);
    check(
        "false",
        |_, _, tools| tools.characters = u64::MAX,
        SearchDecision::ShowAll(WhyShowAll::SwitchedOff),
    );
}

#[test]
fn what_cannot_search_is_shown_everything() {
    for mode in ["auto", "auto:1", "true"] {
        check(
            mode,
            |_, model, _| model.calls_tools = false,
            SearchDecision::ShowAll(WhyShowAll::NoToolCalls),
        );
        check(
            mode,
            |_, _, tools| tools.deferrable = 0,
            SearchDecision::ShowAll(WhyShowAll::NothingToDefer),
        );
    }
}

#[test]
fn decisions_say_why() {
    let decision = SearchPolicy::default().decide(MODEL, MANY);
    assert_eq!(
        decision.to_string(),
        "models search: definitions have 50000 characters, and search begins at 50000 (10% of \
         200000 tokens)"
    );
    assert!(decision.is_search());
    let off = SearchPolicy {
        mode: ToolSearchMode::Off,
        ..SearchPolicy::default()
    };
    let decision = off.decide(MODEL, MANY);
    assert_eq!(
        decision.to_string(),
        "all tools are shown: tool search is switched off"
    );
    assert!(!decision.is_search());
}

#[test]
fn blanks_of_schemas_do_not_count_but_those_of_texts_do() {
    let schema = "{ \"a b\" : \"c \\\" d\",\n\t\"e\": [ 1 ] }";
    let compact = r#"{"a b":"c \" d","e":[1]}"#;
    let characters = |schema| definition_characters("né", Some("a b"), Some(schema));
    assert_eq!(characters(schema), characters(compact));
    assert_eq!(characters(compact), 2 + 3 + 24);
    assert_eq!(definition_characters("x", None, None), 1);
}
