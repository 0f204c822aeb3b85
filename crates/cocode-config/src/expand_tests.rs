//! Expansion by examples and by properties.

use cocode_core::{Template, TemplatePart};
use proptest::prelude::*;

use super::*;

fn variables(name: &str) -> Option<String> {
    let value = match name {
        "A" => "one",
        "B" => "two",
        "EMPTY" => "",
        "TRICK" => "${A} keyring:x",
        "REFERENCE" => "keyring:x",
        _ => return None,
    };
    Some(value.to_owned())
}

fn plain(text: &str) -> Result<String, ExpandError> {
    expand_plain(text, &variables)
}

fn secret(text: &str) -> Result<Vec<TemplatePart>, ExpandError> {
    expand_secret(text, &variables).map(|template| template.parts)
}

fn literal(text: &str) -> TemplatePart {
    TemplatePart::Literal(text.to_owned())
}

#[test]
fn variables_defaults_and_escapes_expand() {
    for (text, expected) in [
        ("", ""),
        ("plain $A {B} $", "plain $A {B} $"),
        ("${A}", "one"),
        ("x${A}${B}y", "xonetwoy"),
        ("${EMPTY}", ""),
        ("[${EMPTY:-default}]", "[default]"),
        ("[${EMPTY:-}]", "[]"),
        ("${NONE:-a b}", "a b"),
        ("${NONE:-${A}}", "one"),
        ("${NONE:-${NEITHER:-${B}}}!", "two!"),
        ("${A:-${NONE}}", "one"),
        ("${NONE:-:-}", ":-"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("${NONE:-$${x}}", "${x}"),
        ("$$", "$$"),
        ("${TRICK}", "${A} keyring:x"),
        ("a }", "a }"),
        ("ü${A}ü", "üoneü"),
        // The value of a variable is text, whatever it looks like.
        ("${REFERENCE}", "keyring:x"),
        ("x keyring:y", "x keyring:y"),
    ] {
        assert_eq!(plain(text).as_deref(), Ok(expected), "{text}");
        let template = expand_secret(text, &variables).unwrap();
        assert_eq!(template.as_literal().as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn what_cannot_be_expanded_says_why() {
    let bad = |name: &str| ExpandError::BadName(name.to_owned());
    for (text, expected) in [
        ("${NONE}", ExpandError::Unset("NONE".to_owned())),
        (
            "${NONE:-${NEITHER}}",
            ExpandError::Unset("NEITHER".to_owned()),
        ),
        ("${A", ExpandError::Unclosed),
        ("${NONE:-${A}", ExpandError::Unclosed),
        ("${}", bad("")),
        ("${1A}", bad("1A")),
        ("${A B}", bad("A B")),
        ("${A-x}", bad("A-x")),
        ("${${A}}", bad("${A}")),
    ] {
        assert_eq!(plain(text), Err(expected.clone()), "{text}");
        assert_eq!(secret(text), Err(expected), "{text}");
    }
    let deep = format!("{}x{}", "${NONE:-".repeat(12), "}".repeat(12));
    assert_eq!(plain(&deep), Err(ExpandError::TooDeep));
    let long = "x".repeat(MAX_EXPANDED_BYTES + 1);
    assert_eq!(plain(&long), Err(ExpandError::TooLong));
    let much = |_: &str| Some("x".repeat(MAX_EXPANDED_BYTES / 2));
    assert_eq!(
        expand_plain("${A}${A}", &much).map(|text| text.len()),
        Ok(MAX_EXPANDED_BYTES)
    );
    assert_eq!(expand_plain("${A}${A}.", &much), Err(ExpandError::TooLong));
}

#[test]
fn an_error_does_not_show_what_may_be_part_of_a_password() {
    let error = plain("pa${ss!w0rd}").unwrap_err();
    assert!(!format!("{error} {}", error.hint()).contains("w0rd"));
}

#[test]
fn references_to_secrets_are_left_to_whoever_connects() {
    let keyring = |name: &str| TemplatePart::Keyring(name.to_owned());
    let command = |line: &str| TemplatePart::Command(line.to_owned());
    for (text, expected) in [
        ("keyring:gh", vec![keyring("gh")]),
        ("keyring: gh ", vec![keyring("gh")]),
        ("cmd:pass show ${A}", vec![command("pass show ${A}")]),
        (
            "Bearer ${keyring:gh}",
            vec![literal("Bearer "), keyring("gh")],
        ),
        ("${cmd:a b}-${A}", vec![command("a b"), literal("-one")]),
        ("${NONE:-keyring:gh}", vec![keyring("gh")]),
        ("${NONE:-${keyring:gh}}", vec![keyring("gh")]),
        ("${A:-keyring:gh}", vec![literal("one")]),
        ("", vec![]),
    ] {
        assert_eq!(secret(text), Ok(expected), "{text}");
    }
}

#[test]
fn secrets_are_refused_where_they_would_be_seen() {
    for text in [
        "keyring:gh",
        "cmd:pass",
        "--token=${keyring:gh}",
        "${cmd:pass}",
        "${NONE:-keyring:gh}",
        "${NONE:-${cmd:pass}}",
    ] {
        assert_eq!(plain(text), Err(ExpandError::SecretNotHere), "{text}");
    }
}

#[test]
fn the_variables_of_a_value_are_found() {
    let found = |text: &str| {
        let names = variables_of(text).into_iter();
        names
            .map(|(name, has_default)| format!("{name}{}", if has_default { "?" } else { "" }))
            .collect::<Vec<_>>()
    };
    assert_eq!(found("${A}x${B:-y}"), ["A", "B?"]);
    assert_eq!(found("${A:-${B:-}${C}}"), ["A?", "B?", "C"]);
    assert_eq!(found("$${A} ${keyring:B} ${C"), Vec::<String>::new());
    assert_eq!(found("cmd:echo ${A}"), Vec::<String>::new());
}

#[test]
fn only_references_without_a_default_may_be_shown() {
    for text in ["${A}", "keyring:a", "cmd:a", "${keyring:a}"] {
        assert!(is_reference(text), "{text}");
    }
    for text in [
        "",
        "a",
        "a${A}",
        "${A:-hunter2}",
        "${A}${B}",
        "$${A}",
        "keyring:",
        "${A}hunter2}",
    ] {
        assert!(!is_reference(text), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_expansion_panic(text in "([$][{]|[$]|[{}]|:-|keyring:|cmd:|A|NONE|.){0,24}") {
        let plain = plain(&text);
        let secret = expand_secret(&text, &variables);
        if let Ok(plain) = &plain {
            // What needs no secrets is the same either way.
            prop_assert_eq!(secret.ok().and_then(|template| template.as_literal()), Some(plain.clone()));
        } else if plain != Err(ExpandError::SecretNotHere) {
            prop_assert_eq!(secret.err(), plain.err());
        }
        let _names = variables_of(&text);
        let _shown = is_reference(&text);
        let whole: String = pieces(&text)
            .map(|piece| match piece {
                Piece::Literal(text) | Piece::Unclosed(text) => text.to_owned(),
                Piece::Escape => ESCAPE.to_owned(),
                Piece::Reference(inner) => format!("${{{inner}}}"),
            })
            .collect();
        prop_assert_eq!(whole, text);
    }

    #[test]
    fn text_without_references_stays_as_it_is(text in "[^$]{0,40}") {
        prop_assume!(whole_reference(&text).is_none());
        prop_assert_eq!(plain(&text), Ok(text.clone()));
        let expected = if text.is_empty() { Template { parts: vec![] } } else { Template::literal(text.clone()) };
        prop_assert_eq!(expand_secret(&text, &variables), Ok(expected));
    }

    #[test]
    fn any_text_can_be_escaped(text in "([$][{]|[{}]|[a-z]){0,24}") {
        prop_assert_eq!(plain(&text.replace("${", "$${")), Ok(text));
    }
}
