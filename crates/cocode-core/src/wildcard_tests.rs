//! Wildcards by example, against a recursive model, and with hostile patterns.

use proptest::prelude::*;

use super::*;

/// The definition, word for word, and exponential.
fn model(pattern: &[char], text: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), None) => model(rest, text),
        (Some(('*', rest)), Some((_, after))) => model(rest, text) || model(pattern, after),
        (None, Some(_)) | (Some(_), None) => false,
        (Some((expected, rest)), Some((found, after))) => expected == found && model(rest, after),
    }
}

fn model_of(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    model(&pattern, &text)
}

#[test]
fn stars_stand_for_any_run_of_characters() {
    let check = |pattern: &str, matching: &[&str], other: &[&str]| {
        let wildcard = Wildcard::new(pattern);
        for text in matching {
            assert!(wildcard.matches(text), "{pattern:?} should match {text:?}");
        }
        for text in other {
            assert!(
                !wildcard.matches(text),
                "{pattern:?} should not match {text:?}"
            );
        }
    };
    check("", &[""], &["a"]);
    check("*", &["", "a", "a\nb", "日本"], &[]);
    check("**", &["", "a"], &[]);
    check("read", &["read"], &["", "rea", "reads", "Read", "thread"]);
    check(
        "create_*",
        &["create_", "create_x"],
        &["create", "xcreate_"],
    );
    check("*_file", &["_file", "read_file"], &["read_files", "file"]);
    check("a*b*c", &["abc", "a-b-c", "abbcbc"], &["acb", "ab", "abcd"]);
    check("*delete*", &["delete", "a.delete.b"], &["delet", "DELETE"]);
    // One character cannot serve both ends.
    check("ab*ba", &["abba", "ab-ba"], &["aba", "ab"]);
    check("a*a", &["aa"], &["a"]);
    // Nothing but the star is special.
    check("a.?[b]\\", &["a.?[b]\\"], &["ax?[b]\\", "a.x[b]\\"]);
    check("日*本", &["日本", "日々本"], &["日", "本日"]);
}

#[test]
fn only_stars_match_everything() {
    for (pattern, expected) in [("", false), ("*", true), ("***", true), ("*a*", false)] {
        let wildcard = Wildcard::new(pattern);
        assert_eq!(wildcard.matches_everything(), expected, "{pattern:?}");
    }
}

#[test]
fn the_text_is_kept_as_written() {
    let wildcard: Wildcard = "a**b".parse().unwrap();
    assert_eq!(wildcard.as_str(), "a**b");
    assert_eq!(format!("{wildcard:<6}|"), "a**b  |");
    assert_eq!(wildcard, Wildcard::from("a**b"));
    assert_eq!(wildcard, Wildcard::from(String::from("a**b")));
    assert!(Wildcard::new("a") < Wildcard::new("b"));
}

/// With backtracking over the stars, this would not end within anyone's life.
#[test]
fn hostile_patterns_are_answered() {
    let text = "a".repeat(200_000);
    assert!(Wildcard::new("*a".repeat(10_000)).matches(&text));
    assert!(!Wildcard::new("*a".repeat(10_000) + "*b*a").matches(&text));
    assert!(!Wildcard::new("*a".repeat(100_000) + "*b").matches(&text));
    let literal = "a".repeat(50_000) + "b";
    assert!(!Wildcard::new(format!("*{literal}*")).matches(&text));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn matching_equals_the_definition(pattern in "[ab*]{0,7}", text in "[ab]{0,8}") {
        prop_assert_eq!(Wildcard::new(pattern.as_str()).matches(&text), model_of(&pattern, &text));
    }

    #[test]
    fn matching_equals_the_definition_for_any_characters(
        pattern in "(\\*|[a日é\n]){0,6}",
        text in "[a日é\n]{0,7}",
    ) {
        prop_assert_eq!(Wildcard::new(pattern.as_str()).matches(&text), model_of(&pattern, &text));
    }

    #[test]
    fn a_pattern_matches_what_fills_its_stars(parts in prop::collection::vec(".{0,4}", 1..6), fill in ".{0,4}") {
        let pattern = parts.join("*");
        prop_assert!(Wildcard::new(pattern).matches(&parts.join(&fill)));
    }

    #[test]
    fn text_without_stars_matches_only_itself(pattern in "[ab]{0,3}", text in "[ab]{0,3}") {
        prop_assert_eq!(Wildcard::new(pattern.as_str()).matches(&text), pattern == text);
    }
}
