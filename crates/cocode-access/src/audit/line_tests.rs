//! Lines of the log: what is written, what is recognised, and that nobody can write lines of their own.

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{AuditLine, MAX_ARGUMENTS_BYTES, MAX_AUDIT_LINE_BYTES, Read};
use crate::audit::{AuditEntry, AuditEvent, AuditHash, AuditHead, AuditOutcome};

fn entry() -> AuditEntry {
    AuditEntry {
        at: UNIX_EPOCH + Duration::from_millis(1_000_500),
        principal: Some("alice".to_owned()),
        client: Some("inspector 1.0".to_owned()),
        server: Some("files".to_owned()),
        name: Some("read".to_owned()),
        took: Duration::from_millis(12),
        bytes: 345,
        ..AuditEntry::now("tools/call", AuditOutcome::Ok)
    }
}

fn value(line: &AuditLine) -> Value {
    serde_json::from_str(line.text()).unwrap()
}

#[test]
fn a_line_has_its_members_in_one_order_and_the_hash_of_the_line_before() {
    let first = AuditLine::after(AuditHead::START, &entry());
    let zeros = "0".repeat(64);
    let body = format!(
        r#"{{"seq":1,"at":"1970-01-01T00:16:40.500Z","principal":"alice","client":"inspector 1.0","method":"tools/call","server":"files","name":"read","outcome":"ok","code":null,"milliseconds":12,"bytes":345,"previous":"{zeros}""#
    );
    let hash = crate::digest::hex(&crate::digest::sha256(format!("{body}}}").as_bytes()));
    assert_eq!(first.text(), format!(r#"{body},"hash":"{hash}"}}"#));
    let failed = AuditEntry {
        outcome: AuditOutcome::Error,
        code: Some(-32603),
        arguments: Some(r#"{"path": "a"}"#.to_owned()),
        ..entry()
    };
    let second = AuditLine::after(first.head(), &failed);
    assert_eq!(second.previous(), first.head().hash);
    let value = value(&second);
    assert_eq!(value["seq"], 2);
    assert_eq!(value["previous"], hash);
    assert_eq!(
        (&value["outcome"], &value["code"], &value["arguments"]),
        (&json!("error"), &json!(-32603), &json!({ "path": "a" }))
    );
}

#[test]
fn what_was_written_is_recognised_and_what_was_changed_is_not() {
    let line = AuditLine::after(AuditHead::START, &entry());
    assert_eq!(AuditLine::parse(line.text()), Some(line.clone()));
    let hash = line.head().hash;
    for changed in [
        line.text().replace("alice", "mallory"),
        line.text().replace("\"seq\":1", "\"seq\":2"),
        line.text().replace("\"bytes\":345", "\"bytes\": 345"),
        line.text().replace(",\"hash\"", ", \"hash\""),
    ] {
        assert!(matches!(Read::of(&changed), Read::Changed { hash: stated, .. } if stated == hash));
        assert_eq!(AuditLine::parse(&changed), None, "{changed}");
    }
    let half = line.text().split_at(40).0;
    let doubled = line.text().replace("\"seq\":1", "\"seq\":1,\"seq\":1");
    for other in ["", "{}", "null", half, doubled.as_str()] {
        assert!(matches!(Read::of(other), Read::Nothing), "{other}");
    }
}

#[test]
fn how_many_a_line_stands_for_is_a_part_of_it_and_lines_without_that_are_what_they_were() {
    let several = AuditEntry {
        times: Some(12),
        ..entry()
    };
    let line = AuditLine::after(AuditHead::START, &several);
    assert!(line.text().contains(r#""bytes":345,"times":12,"previous""#));
    assert_eq!(AuditLine::parse(line.text()), Some(line.clone()));
    let fewer = line.text().replace("\"times\":12", "\"times\":1");
    assert_eq!(AuditLine::parse(&fewer), None);
    // This one was written before there was such a member.
    let old = concat!(
        r#"{"seq":1,"at":"1970-01-01T00:16:40.500Z","principal":"alice","client":null,"#,
        r#""method":"tools/call","server":"files","name":"read","outcome":"limited","code":null,"#,
        r#""milliseconds":0,"bytes":0,"#,
        r#""previous":"0000000000000000000000000000000000000000000000000000000000000000","#,
        r#""hash":"cfc9a3e01886985f67b8e42a109cec6c45a9cd1a128b6e53c2cb99726637339b"}"#
    );
    assert!(AuditLine::parse(old).is_some());
}

#[test]
fn no_text_can_begin_a_line_or_command_a_terminal() {
    let forged = "x\n{\"seq\":2}\r\n\u{2028}\u{2029}\u{85}\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\"}";
    let entry = AuditEntry {
        principal: Some(forged.to_owned()),
        client: Some(forged.to_owned()),
        method: forged.to_owned(),
        server: Some(forged.to_owned()),
        name: Some(forged.to_owned()),
        arguments: Some(format!("{{\n\"a\":\r\n\t{}}}", json!("\u{2028}\u{9b}x"))),
        ..AuditEntry::now("", AuditOutcome::Denied)
    };
    let line = AuditLine::after(AuditHead::START, &entry);
    let printable = |character: char| character == ' ' || character.is_ascii_graphic();
    assert!(line.text().chars().all(printable), "{}", line.text());
    let value = value(&line);
    for member in ["principal", "client", "method", "server", "name"] {
        assert_eq!(value[member], forged, "{member}");
    }
    assert_eq!(value["arguments"], json!({ "a": "\u{2028}\u{9b}x" }));
}

#[test]
fn long_texts_are_cut_and_arguments_that_are_too_long_or_no_json_say_so() {
    let long = AuditEntry {
        name: Some("ä".repeat(2000)),
        arguments: Some(format!("\"{}\"", "a".repeat(MAX_ARGUMENTS_BYTES))),
        ..entry()
    };
    let shown = value(&AuditLine::after(AuditHead::START, &long));
    assert_eq!(shown["name"], format!("{}…", "ä".repeat(512)));
    assert_eq!(shown["arguments"], Value::Null);
    assert_eq!(
        shown["arguments_cut"]["bytes"],
        json!(MAX_ARGUMENTS_BYTES + 2)
    );
    let broken = AuditEntry {
        arguments: Some("{\"a\":1}\n{".to_owned()),
        ..entry()
    };
    let shown = value(&AuditLine::after(AuditHead::START, &broken));
    assert_eq!(shown["arguments_cut"]["beginning"], "{\"a\":1}\n{");
}

#[test]
fn the_longest_line_is_one_that_is_read_again() {
    let worst = "\u{1}".repeat(5000);
    let entry = AuditEntry {
        principal: Some(worst.clone()),
        client: Some(worst.clone()),
        method: worst.clone(),
        server: Some(worst.clone()),
        name: Some(worst),
        arguments: Some(format!(
            "[{}1]",
            "\"\u{80}\",".repeat(MAX_ARGUMENTS_BYTES / 5 - 1)
        )),
        event: Some(AuditEvent::Lost { entries: u64::MAX }),
        ..entry()
    };
    assert!(entry.arguments.as_ref().unwrap().len() <= MAX_ARGUMENTS_BYTES);
    let line = AuditLine::after(AuditHead::START, &entry);
    assert!(line.text().contains("\"arguments\":[\"\\u0080\","));
    assert!(line.text().len() <= MAX_AUDIT_LINE_BYTES);
    assert_eq!(AuditLine::parse(line.text()), Some(line));
}

#[test]
fn events_of_the_log_are_read_back_and_those_of_newer_versions_do_no_harm() {
    let through = AuditHead {
        seq: 7,
        hash: AuditHash::from_bytes([7; 32]),
    };
    for event in [
        AuditEvent::Retention {
            file: "audit-1.jsonl".to_owned(),
            through,
        },
        AuditEvent::Healed {
            bytes: 3,
            sha256: through.hash,
            torn: true,
        },
        AuditEvent::TailLost { expected: through },
        AuditEvent::Lost { entries: 9 },
        AuditEvent::Started {
            version: "1.2.3".to_owned(),
        },
    ] {
        let line = AuditLine::after(through, &AuditEntry::of_log(event.clone()));
        assert_eq!(AuditLine::parse(line.text()).unwrap().event(), Some(&event));
    }
    let zeros = "0".repeat(64);
    let body = format!(r#"{{"seq":1,"event":{{"kind":"later"}},"more":[],"previous":"{zeros}""#);
    let hash = crate::digest::hex(&crate::digest::sha256(format!("{body}}}").as_bytes()));
    let newer = AuditLine::parse(&format!(r#"{body},"hash":"{hash}"}}"#)).unwrap();
    assert_eq!(newer.event(), None);
}

proptest! {
    #[test]
    fn whatever_is_written_is_one_line_that_reads_as_itself(
        texts in proptest::array::uniform5(any::<String>()),
        arguments in any::<Option<String>>(),
        seq in 0..u64::MAX - 1,
    ) {
        let [principal, client, method, server, name] = texts;
        let entry = AuditEntry {
            principal: Some(principal), client: Some(client), method, server: Some(server),
            name: Some(name), arguments, ..entry()
        };
        let last = AuditHead { seq, hash: AuditHash::from_bytes([1; 32]) };
        let line = AuditLine::after(last, &entry);
        prop_assert!(!line.text().chars().any(char::is_control));
        prop_assert_eq!(AuditLine::parse(line.text()), Some(line));
    }
}
