//! Filters that work, fail, and never end.

use std::time::Duration;

use super::{FilterError, Form, Limits, evaluate};

/// What a filter prints, and the error it ends with.
fn run(filter: &str, input: &str, form: Form) -> (String, Option<FilterError>) {
    bounded(filter, input, form, Limits::default())
}

fn bounded(filter: &str, input: &str, form: Form, limits: Limits) -> (String, Option<FilterError>) {
    let mut printed = String::new();
    for output in evaluate(filter, vec![input.to_owned()], form, limits) {
        match output {
            Ok(value) => printed.push_str(std::str::from_utf8(&value).unwrap()),
            Err(error) => return (printed, Some(error)),
        }
    }
    (printed, None)
}

const ONE_LINE: Form = Form {
    unquoted: false,
    one_line: true,
};

#[test]
fn values_are_picked_and_printed_as_they_were() {
    for (filter, input, expected) in [
        (".", r#"{"b":1,"a":[2.50]}"#, "{\"b\":1,\"a\":[2.50]}\n"),
        (
            ".n",
            r#"{"n":123456789012345678901234567890}"#,
            "123456789012345678901234567890\n",
        ),
        (
            ".items[] | .name",
            r#"{"items":[{"name":"a"},{"name":"b"}]}"#,
            "\"a\"\n\"b\"\n",
        ),
        ("map(select(. > 1)) | length", "[1,2,3]", "2\n"),
        ("[.[] | test(\"^a\")]", r#"["ab","ba"]"#, "[true,false]\n"),
        ("keys", r#"{"b":1,"a":2}"#, "[\"a\",\"b\"]\n"),
        ("first(1, halt, 2)", "null", "1\n"),
        ("1, halt, 2", "null", "1\n"),
        ("empty", "null", ""),
        ("\"\\u001b[31m\"", "null", "\"\\u001b[31m\"\n"),
    ] {
        let (printed, error) = run(filter, input, ONE_LINE);
        assert_eq!(printed, expected, "{filter}");
        assert!(error.is_none(), "{filter}: {error:?}");
    }
}

#[test]
fn texts_lose_their_quotes_and_objects_get_lines_where_that_is_wanted() {
    let unquoted = Form {
        unquoted: true,
        one_line: false,
    };
    let (printed, _) = run(".[]", r#"["a\"b",{"c":1}]"#, unquoted);
    assert_eq!(printed, "a\"b\n{\n  \"c\": 1\n}\n");
}

#[test]
fn every_input_is_filtered() {
    let inputs = vec!["[1]".to_owned(), "[2]".to_owned()];
    let outputs = evaluate(".[0]", inputs, ONE_LINE, Limits::default());
    let outputs: Result<Vec<_>, _> = outputs.collect();
    assert_eq!(outputs.unwrap(), [b"1\n", b"2\n"]);
}

#[test]
fn a_filter_that_is_not_understood_is_told_where() {
    for (filter, expected) in [
        (".a[", "closing bracket is expected at its end"),
        (".a |", "term is expected at its end"),
        ("1 ]", "token is expected at character 3, before `]`"),
        (". | nosuch", "there is no filter `nosuch`"),
        (
            "nosuch(1; 2)",
            "there is no filter `nosuch` with 2 arguments",
        ),
        ("$x", "there is no variable `$x`"),
        ("env", "there is no filter `env`"),
        ("$ENV.PATH", "there is no variable `$ENV`"),
        ("input", "there is no filter `input`"),
        ("import \"a\" as a; .", "modules cannot be imported: `a`"),
    ] {
        let (_, error) = run(filter, "null", ONE_LINE);
        let Some(FilterError::Written(reasons)) = error else {
            panic!("{filter}: {error:?}");
        };
        assert_eq!(reasons, [expected], "{filter}");
    }
}

#[test]
fn a_filter_that_does_not_fit_says_so_after_what_it_gave() {
    let (printed, error) = run("1, .a", "[1]", ONE_LINE);
    assert_eq!(printed, "1\n");
    let Some(FilterError::Failed(reason)) = error else {
        panic!("{error:?}");
    };
    assert!(reason.contains("cannot index"), "{reason}");
    let long = format!("[{}1]", "1,".repeat(10_000));
    let (_, error) = run(".a", &long, ONE_LINE);
    let Some(FilterError::Failed(reason)) = error else {
        panic!("{error:?}");
    };
    assert!(reason.chars().count() <= 200, "{reason}");
    assert!(reason.starts_with("cannot index [1,1,"), "{reason}");
    assert!(reason.ends_with("with \"a\""), "{reason}");
}

#[test]
fn a_filter_without_end_is_left_behind() {
    let limits = Limits {
        time: Duration::from_millis(50),
        ..Limits::default()
    };
    let (_, error) = bounded("1, (def f: f; f)", "null", ONE_LINE, limits);
    assert!(matches!(error, Some(FilterError::TooSlow(_))), "{error:?}");
}

#[test]
fn a_filter_that_gives_too_much_is_stopped() {
    let limits = Limits {
        output_bytes: 100,
        ..Limits::default()
    };
    let (printed, error) = bounded("repeat(1)", "1", ONE_LINE, limits);
    assert_eq!(printed, "1\n".repeat(50));
    assert!(
        matches!(error, Some(FilterError::TooMuch(100))),
        "{error:?}"
    );
}
