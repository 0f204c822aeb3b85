//! Times, sources, and texts that steer nothing.

use std::time::{Duration, SystemTime};

use super::{LogRecord, Text, lines, lost, parse_time, source, tame, time};
use crate::server_log::{LogSource, MAX_LOG_RECORD_BYTES};

fn at(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

#[test]
fn times_are_written_in_utc_and_read_again() {
    let check = |millis: u64, text: &str| {
        assert_eq!(time(at(millis)), text);
        assert_eq!(parse_time(text), Some(at(millis)));
    };
    check(0, "1970-01-01T00:00:00.000Z");
    check(1_794_798_245_123, "2026-11-16T03:04:05.123Z");
    check(951_868_799_000, "2000-02-29T23:59:59.000Z");
    check(1_735_646_400_000, "2024-12-31T12:00:00.000Z");
    check(4_107_542_400_001, "2100-03-01T00:00:00.001Z");
}

#[test]
fn every_day_has_a_date_of_its_own_that_comes_after_the_one_before() {
    let mut before = String::new();
    for day in 0..60_000 {
        let begun = at(day * 86_400_000);
        let text = time(begun);
        assert_eq!(parse_time(&text), Some(begun), "{text}");
        assert!(text > before, "{text} after {before}");
        before = text;
    }
}

#[test]
fn what_is_no_time_is_not_read_as_one() {
    for text in [
        "",
        "2026-11-16T03:04:05Z",
        "2026-11-16 03:04:05.123Z",
        "2026-13-16T03:04:05.123Z",
        "2026-00-16T03:04:05.123Z",
        "2026-11-00T03:04:05.123Z",
        "2026-11-16T24:04:05.123Z",
        "2026-11-16T03:60:05.123Z",
        "+026-11-16T03:04:05.123Z",
        "0000-11-16T03:04:05.123Z",
        "2026-11-16T03:04:05.1é3",
    ] {
        assert_eq!(parse_time(text), None, "{text}");
    }
}

#[test]
fn escape_sequences_vanish_and_other_control_characters_are_marked() {
    let check = |text: &str, expected: &str| assert_eq!(tame(text), expected, "{text:?}");
    check("plain\ttext, ünïcode ✓", "plain\ttext, ünïcode ✓");
    check("\x1b[1;31merror\x1b[0m: no", "error: no");
    check("\x1b[2J\x1b[Hcleared", "cleared");
    check("\x1b[?25l\x1b[38;5;208mcolor", "color");
    check("\x1b]0;title\x07text", "text");
    check("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link");
    check("\x1bPq#0\x1b\\picture", "picture");
    check("\x1b(Bset \x1b7saved\x1bc", "set saved");
    check(
        "bell\x07 null\0 c1\u{9b}31m",
        "bell\u{fffd} null\u{fffd} c1\u{fffd}31m",
    );
    check("10%\r20%\r", "10% 20%");
    // What has no end hides nothing.
    check("\x1b]0;secret plan", "\u{fffd}]0;secret plan");
    check("\x1b[31", "\u{fffd}[31");
    check("\x1b[31é", "\u{fffd}[31é");
    check("\x1b", "\u{fffd}");
    check("\x1b\x1b[31mred", "\u{fffd}red");
}

#[test]
fn a_text_of_several_lines_makes_as_many_lines() {
    let text = Text::cut("first\r\n\n  third\x1b[0m\n");
    assert_eq!(
        lines(at(0), "stderr", &text),
        [
            "1970-01-01T00:00:00.000Z stderr first\n",
            "1970-01-01T00:00:00.000Z stderr \n",
            "1970-01-01T00:00:00.000Z stderr   third\n",
        ]
    );
    let empty = lines(at(0), "state", &Text::cut(""));
    assert_eq!(empty, ["1970-01-01T00:00:00.000Z state \n"]);
}

#[test]
fn what_is_too_long_is_cut_and_says_so() {
    let long = "é".repeat(MAX_LOG_RECORD_BYTES);
    let lines_of_long = lines(at(0), "stderr", &Text::cut(&long));
    assert_eq!(lines_of_long.len(), 1);
    let end = format!("é… ({MAX_LOG_RECORD_BYTES} bytes are left out)\n");
    assert!(lines_of_long[0].ends_with(&end));
    let many = "x\n".repeat(1000);
    let lines_of_many = lines(at(0), "stderr", &Text::cut(&many));
    assert_eq!(lines_of_many.len(), 200);
    assert!(lines_of_many[199].ends_with(" x… (800 bytes are left out)\n"));
    assert!(
        lines_of_many
            .iter()
            .all(|line| line.matches('\n').count() == 1)
    );
}

#[test]
fn the_level_of_a_message_is_one_word_whatever_the_server_says() {
    assert_eq!(source(LogSource::Message("warning")), "message:warning");
    assert_eq!(
        source(LogSource::Message("Err or\n\x1b[1m: x")),
        "message:error1mx"
    );
    assert_eq!(source(LogSource::Message("")), "message:");
    let long = source(LogSource::Message(&"a".repeat(100)));
    assert_eq!(long, format!("message:{}", "a".repeat(16)));
}

#[test]
fn a_line_can_be_taken_apart() {
    let line = &lines(
        at(0),
        &source(LogSource::Message("info")),
        &Text::cut("a b: c"),
    )[0];
    assert_eq!(
        LogRecord::parse(line.trim_end()),
        Some(LogRecord {
            time: "1970-01-01T00:00:00.000Z",
            source: "message",
            level: Some("info"),
            text: "a b: c",
        })
    );
    let own = lost(at(0), 1);
    let own = LogRecord::parse(own.trim_end()).unwrap();
    assert_eq!((own.source, own.text), ("log", "1 line was lost here"));
    let empty = LogRecord::parse("1970-01-01T00:00:00.000Z stderr").unwrap();
    assert_eq!(
        (empty.source, empty.level, empty.text),
        ("stderr", None, "")
    );
    assert_eq!(LogRecord::parse("Traceback (most recent call last):"), None);
}
