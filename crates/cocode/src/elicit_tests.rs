//! A person who answers questions, played by a script.

use cocode_client::{ElicitationAnswer, Form, RawJson};

use super::{Person, fill_from};
use crate::lines::Lines;

const SCHEMA: &str = r#"{"type":"object","required":["name","mail"],"properties":{
    "name":{"type":"string","title":"Your name"},
    "mail":{"type":"string","format":"email"},
    "age":{"type":"integer","default":30},
    "weight":{"type":"number"},
    "ok":{"type":"boolean","description":"Is it?"},
    "color":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]},
    "many":{"type":"array","items":{"type":"string","enum":["x","y","z"]}},
    "extra":{"type":"object"}}}"#;

fn form(schema: &str) -> Form {
    Form::parse(&RawJson::parse(schema.to_owned()).unwrap()).unwrap()
}

fn lines(typed: &str) -> Lines {
    let typed = std::io::Cursor::new(typed.to_owned());
    Lines::of(|| typed).unwrap()
}

fn run<T>(asking: impl Future<Output = std::io::Result<T>>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(asking).unwrap()
}

/// What the person sees, and what the server is told.
fn play(schema: &str, typed: &str) -> (String, String) {
    let mut output = Vec::new();
    let mut person = Person {
        input: &mut lines(typed),
        output: &mut output,
    };
    let answer = run(person.fill_in("demo", "Who\u{1b} are you?", &form(schema)));
    (String::from_utf8(output).unwrap(), told(&answer))
}

fn told(answer: &ElicitationAnswer) -> String {
    match answer {
        ElicitationAnswer::Accept(Some(content)) => content.as_str().to_owned(),
        ElicitationAnswer::Accept(None) => "accept".to_owned(),
        ElicitationAnswer::Decline => "decline".to_owned(),
        ElicitationAnswer::Cancel => "cancel".to_owned(),
    }
}

#[test]
fn every_kind_of_field_is_asked_and_read() {
    let typed = "\nAda \"L\"\na@b.c\n\n1.10\ny\nred\n1, z\n{\"k\":1e400}\n";
    let (seen, told) = play(SCHEMA, typed);
    assert_eq!(
        told,
        r#"{"name":"Ada \"L\"","mail":"a@b.c","age":30,"weight":1.10,"ok":true,"color":"r","many":["x","z"],"extra":{"k":1e400}}"#
    );
    for part in [
        "The server `demo` asks:",
        "  Who\u{fffd} are you?",
        "Your name (required): ",
        "mail (email, required): ",
        "age (whole number, default 30): ",
        "  Is it?\nok (y/n, optional): ",
        "  1. Red (r)\n  2. Green (g)\ncolor (one of the above, optional): ",
        "  3. z\nmany (any of the above, with commas, optional): ",
    ] {
        assert!(seen.contains(part), "{part:?} is not in:\n{seen}");
    }
}

#[test]
fn wrong_answers_are_asked_again() {
    let typed =
        "what\ny\n\nAda\nnobody\na@b\nold\n31\nheavy\n\nperhaps\nn\nblue\n2\nx,q\n\nnot json\n\n";
    let (seen, told) = play(SCHEMA, typed);
    assert_eq!(
        told,
        r#"{"name":"Ada","mail":"a@b","age":31,"ok":false,"color":"g"}"#
    );
    for part in [
        "y or d, please",
        "this one is required",
        "this must be an email address",
        "this must be a whole number",
        "this must be a number",
        "this must be yes or no",
        "this must be r or g",
        "this must be x, y or z",
        "this must be JSON",
    ] {
        assert!(seen.contains(part), "{part:?} is not in:\n{seen}");
    }
}

#[test]
fn a_person_can_decline_or_go_away() {
    assert_eq!(play(SCHEMA, "d\n").1, "decline");
    assert_eq!(play(SCHEMA, "").1, "cancel");
    assert_eq!(play(SCHEMA, "y\nAda\n").1, "cancel");
    assert_eq!(play(r#"{"type":"object","properties":{}}"#, "\n").1, "{}");
}

#[test]
fn defaults_are_shown_as_they_would_be_typed() {
    let schema = r#"{"properties":{
        "ok":{"type":"boolean","default":true},
        "many":{"type":"array","items":{"enum":["x","y","z"]},"default":["x","z"]}}}"#;
    let (seen, told) = play(schema, "\n\n\n");
    assert_eq!(told, r#"{"ok":true,"many":["x","z"]}"#);
    assert!(seen.contains("(y/n, default y): "), "{seen}");
    assert!(seen.contains("with commas, default x, z): "), "{seen}");
}

#[test]
fn what_breaks_a_limit_is_asked_again_and_declined_beforehand() {
    let schema = r#"{"properties":{"n":{"type":"integer","minimum":1,"maximum":10},
        "t":{"type":"string","minLength":2}}}"#;
    let (seen, told) = play(schema, "\n0\n11\n10\nx\nxy\n");
    assert_eq!(told, r#"{"n":10,"t":"xy"}"#);
    for part in ["at least 1\n", "at most 10\n", "at least 2 characters\n"] {
        assert!(seen.contains(part), "{part:?} is not in {seen}");
    }
    let answers = [("n".to_owned(), "0".to_owned())];
    let wrong = fill_from(&form(schema), &answers.into()).unwrap_err();
    assert_eq!(wrong, "`--answer n`: it must be at least 1");
}

#[test]
fn a_url_is_shown_with_its_host_and_not_opened() {
    let visit = |typed: &str| {
        let mut output = Vec::new();
        let mut person = Person {
            input: &mut lines(typed),
            output: &mut output,
        };
        let answer = run(person.visit("demo", "Sign in", "https://login.example/x?y=1"));
        (String::from_utf8(output).unwrap(), told(&answer))
    };
    let (seen, told) = visit("\n");
    assert_eq!(told, "accept");
    assert!(seen.contains("  https://login.example/x?y=1\n"), "{seen}");
    assert!(seen.contains("It leads to login.example."), "{seen}");
    assert_eq!(visit("d\n").1, "decline");
    assert_eq!(visit("").1, "cancel");
}

#[test]
fn answers_given_beforehand_fill_the_form() {
    let form = form(SCHEMA);
    let fill = |pairs: &[(&str, &str)]| {
        let answers = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        fill_from(&form, &answers.collect()).map(|answer| told(&answer))
    };
    assert_eq!(
        fill(&[
            ("name", "5"),
            ("mail", "a@b"),
            ("many", "y"),
            ("elsewhere", "x")
        ])
        .unwrap(),
        r#"{"name":"5","mail":"a@b","age":30,"many":["y"]}"#
    );
    let missing = fill(&[("name", "Ada")]).unwrap_err();
    assert!(missing.contains("`mail`"), "{missing}");
    let wrong = fill(&[("name", "Ada"), ("mail", "a@b"), ("age", "old")]).unwrap_err();
    assert_eq!(wrong, "`--answer age`: this must be a whole number");
}

#[test]
fn formats_are_checked_as_far_as_typing_errors_go() {
    for (format, good, bad) in [
        ("date", "2026-02-28", "2026-13-01"),
        ("date", "1999-12-31", "yesterday"),
        ("date-time", "2026-02-28T10:00:00Z", "2026-02-28"),
        ("uri", "https://a.example", "a.example"),
        ("email", "a@b.example", "a@"),
        ("unheard-of", "anything", ""),
    ] {
        let schema = format!(
            r#"{{"required":["a"],"properties":{{"a":{{"type":"string","format":"{format}"}}}}}}"#
        );
        let typed = format!("\n{bad}\n{good}\n");
        assert_eq!(
            play(&schema, &typed).1,
            format!(r#"{{"a":"{good}"}}"#),
            "{format}"
        );
    }
}
