//! What clients may say of their models, and what becomes of it.

use cocode_core::{SearchPolicy, ToolLoad, ToolSearchMode};
use cocode_wire::RawJson;

use super::{Announced, Choice, SearchOptions};

const MANY: ToolLoad = ToolLoad {
    characters: 1_000_000,
    deferrable: 1_000,
};
const FEW: ToolLoad = ToolLoad {
    characters: 1_000,
    deferrable: 2,
};

fn announced(window: Option<u64>, mode: Option<ToolSearchMode>) -> Announced {
    Announced {
        context_window: window,
        mode,
    }
}

fn options(mode: ToolSearchMode) -> SearchOptions {
    SearchOptions {
        policy: SearchPolicy {
            mode,
            ..SearchPolicy::default()
        },
        ..SearchOptions::default()
    }
}

#[test]
fn clients_choose_within_what_is_allowed() {
    use ToolSearchMode::{Auto, Off, On};
    for (own, said, window, expected) in [
        (Auto, None, None, false),
        (Auto, None, Some(200_000), true),
        (Auto, Some(On), None, true),
        (Auto, Some(Off), Some(200_000), false),
        (On, None, None, true),
        (On, Some(Off), None, false),
        (Off, Some(On), Some(200_000), false),
    ] {
        let decision = options(own).decide(announced(window, said), || MANY);
        assert_eq!(decision.is_search(), expected, "{own} {said:?} {window:?}");
    }
}

#[test]
fn a_window_that_is_given_holds_for_those_who_say_none() {
    let options = SearchOptions {
        context_window: Some(100_000),
        ..options(ToolSearchMode::Auto)
    };
    assert!(options.decide(Announced::default(), || MANY).is_search());
    let small = announced(Some(1_000), None);
    assert!(!options.decide(small, || MANY).is_search());
}

#[test]
fn tools_are_not_counted_where_it_does_not_depend_on_them() {
    let nobody = || -> ToolLoad { panic!("counted") };
    let auto = options(ToolSearchMode::Auto);
    assert!(!auto.decide(Announced::default(), nobody).is_search());
}

#[test]
fn a_session_stays_as_it_was_if_that_is_wanted() {
    let client = announced(Some(200_000), None);
    for (on_list_changed, expected) in [(true, true), (false, false)] {
        let options = SearchOptions {
            on_list_changed,
            ..options(ToolSearchMode::Auto)
        };
        let mut choice = Choice::open(client);
        assert!(!choice.reconsider(&options, || MANY), "nobody asked yet");
        assert!(!choice.decide(&options, || FEW));
        assert_eq!(choice.reconsider(&options, || MANY), expected);
        assert_eq!(choice.is_search(), expected);
    }
}

#[test]
fn what_clients_say_is_read_or_refused_with_what_is_allowed() {
    let said = |json: &str| {
        let json = format!(r#"{{"experimental":{{"cocode/toolSearch":{json}}}}}"#);
        let json = RawJson::parse(json).unwrap();
        Announced::in_capabilities(Some(&json)).map_err(|error| error.message)
    };
    let (on, ten) = (ToolSearchMode::On, ToolSearchMode::AutoFrom(10));
    assert_eq!(said("{}"), Ok(announced(None, None)));
    assert_eq!(
        said(r#"{"contextWindow":200000,"mode":"auto:10"}"#),
        Ok(announced(Some(200_000), Some(ten)))
    );
    assert_eq!(said(r#"{"mode":true}"#), Ok(announced(None, Some(on))));
    for (bad, expected) in [
        (
            r#"{"contextWindow":"200000"}"#,
            "a number of tokens above zero",
        ),
        (r#"{"contextWindow":-1}"#, "a number of tokens above zero"),
        (r#"{"contextWindow":0}"#, "a number of tokens above zero"),
        (r#"{"contextWindow":1.5}"#, "a number of tokens above zero"),
        (r#"{"mode":"yes"}"#, "`yes` is not one of auto"),
        (r#"{"mode":null}"#, "`null` is not one of auto"),
        (r#"{"context_window":1}"#, "`context_window` is unknown"),
        ("7", "no object"),
    ] {
        let error = said(bad).unwrap_err();
        assert!(error.contains(expected), "{bad}: {error}");
    }
    for none in [r#"{"experimental":7}"#, "{}", r#"{"experimental":{}}"#] {
        let none = RawJson::parse(none).unwrap();
        assert_eq!(
            Announced::in_capabilities(Some(&none)).unwrap(),
            Announced::default()
        );
    }
}

#[test]
fn texts_say_the_same() {
    let parsed = Announced::parse(Some("128000"), Some("false")).unwrap();
    assert_eq!(parsed, announced(Some(128_000), Some(ToolSearchMode::Off)));
    for window in ["", "+5", "1e5", "0", "99999999999999999999", "many"] {
        assert!(Announced::parse(Some(window), None).is_err(), "{window}");
    }
    let closer = announced(None, Some(ToolSearchMode::On));
    assert_eq!(
        closer.or(parsed),
        announced(Some(128_000), Some(ToolSearchMode::On))
    );
}
