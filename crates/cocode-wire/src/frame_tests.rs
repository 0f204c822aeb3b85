//! Envelopes, well-formed and otherwise.

use bytes::Bytes;
use proptest::prelude::*;

use super::{Frame, FrameError, FrameKind};
use crate::scan;

fn frame(text: &'static str) -> Frame {
    Frame::parse(text.into()).unwrap()
}

#[test]
fn parts_come_out_exactly_as_they_were_written() {
    let text = r#"{"jsonrpc":"2.0","id":4,"result":{"b":1e400, "a":123456789012345678901234567890,"x":1.10}}"#;
    let result = frame(text).result().unwrap();
    assert_eq!(
        result.as_str(),
        r#"{"b":1e400, "a":123456789012345678901234567890,"x":1.10}"#
    );
}

#[test]
fn roles_follow_from_the_members() {
    assert_eq!(frame(r#"{"method":"a","id":1}"#).kind(), FrameKind::Request);
    assert_eq!(frame(r#"{"method":"a"}"#).kind(), FrameKind::Notification);
    assert_eq!(
        frame(r#"{"id":1,"result":null}"#).kind(),
        FrameKind::Response
    );
    assert_eq!(
        frame(r#"{"id":null,"error":{}}"#).kind(),
        FrameKind::Response
    );
}

#[test]
fn a_null_error_is_no_error_and_a_null_result_is_a_result() {
    let both = frame(r#"{"id":1,"result":{"ok":true},"error":null}"#);
    assert!(!both.is_error());
    assert_eq!(both.result().unwrap().as_str(), r#"{"ok":true}"#);
    assert_eq!(
        frame(r#"{"id":1,"result":null}"#)
            .result()
            .unwrap()
            .as_str(),
        "null"
    );
    let failed = frame(r#"{"id":1,"result":null,"error":{"code":1,"message":"x"}}"#);
    assert!(failed.is_error() && failed.result().is_none());
}

#[test]
fn sloppy_errors_still_say_what_they_can() {
    let error = |text| frame(text).error().unwrap();
    let plain = error(r#"{"id":1,"error":{"code":-32601,"message":"no","data":{"x":1}}}"#);
    assert_eq!((plain.code, plain.message.as_str()), (-32601, "no"));
    assert_eq!(plain.data.unwrap().as_str(), r#"{"x":1}"#);
    assert_eq!(
        error(r#"{"id":1,"error":{"code":"-5","message":"m"}}"#).code,
        -5
    );
    assert_eq!(
        error(r#"{"id":1,"error":{"code":"EBAD","message":"m"}}"#).code,
        0
    );
    assert!(
        error(r#"{"id":1,"error":{"code":7}}"#)
            .message
            .contains("no message")
    );
    assert_eq!(error(r#"{"id":1,"error":"it broke"}"#).message, "it broke");
    assert_eq!(error(r#"{"id":1,"error":[1]}"#).message, "[1]");
}

#[test]
fn our_ids_are_recognized_in_each_spelling() {
    let id = |text| frame(text).numeric_id();
    assert_eq!(id(r#"{"id":7,"result":1}"#), Some(7));
    assert_eq!(id(r#"{"id":"7","result":1}"#), Some(7));
    assert_eq!(id(r#"{"id":7.0,"result":1}"#), Some(7));
    assert_eq!(id(r#"{"id":"seven","result":1}"#), None);
    assert_eq!(id(r#"{"id":-7,"result":1}"#), None);
    assert_eq!(id(r#"{"result":1}"#), None);
}

#[test]
fn an_escaped_method_is_unescaped() {
    assert_eq!(frame(r#"{"method":"tools\/list"}"#).method(), "tools/list");
}

#[test]
fn what_is_no_message_is_refused() {
    let parse = |text: &'static [u8]| Frame::parse(bytes::Bytes::from_static(text));
    assert!(matches!(
        parse(b"Server running"),
        Err(FrameError::NotJson(_))
    ));
    assert!(matches!(parse(b"[]"), Err(FrameError::NotAnObject)));
    assert!(matches!(parse(b"42"), Err(FrameError::NotJson(_))));
    assert!(matches!(
        parse(b"{\"id\":1,\"result\":\"\xff\"}"),
        Err(FrameError::NotJson(_))
    ));
    assert!(matches!(parse(b"{\"id\":1}"), Err(FrameError::NoRole)));
    assert!(matches!(
        parse(b"{\"id\":1,\"method\":5}"),
        Err(FrameError::NotJson(_))
    ));
}

#[test]
fn a_batch_gives_its_members_one_by_one() {
    let text = bytes::Bytes::from_static(br#"[{"id":1,"result":1}, {"id":2} ,{"method":"m"}]"#);
    let members = Frame::parse_batch(&text).unwrap();
    let kinds: Vec<_> = members
        .iter()
        .map(|m| m.as_ref().ok().map(Frame::kind))
        .collect();
    assert_eq!(
        kinds,
        [
            Some(FrameKind::Response),
            None,
            Some(FrameKind::Notification)
        ]
    );
}

#[test]
fn deep_nesting_costs_no_stack() {
    let text = format!(
        r#"{{"id":1,"result":{}{}}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert_eq!(
        Frame::parse(text.into())
            .unwrap()
            .result()
            .unwrap()
            .as_bytes()
            .len(),
        400_000
    );
}

/// Whatever is read fast is what the parser would have read.
#[track_caller]
fn check_scan(text: &[u8]) {
    let bytes = Bytes::copy_from_slice(text);
    if scan::parts(text).is_none() {
        return;
    }
    let shown = String::from_utf8_lossy(text);
    match (Frame::parse(bytes.clone()), Frame::parse_odd(bytes)) {
        (Ok(fast), Ok(slow)) => assert_eq!(format!("{fast:?}"), format!("{slow:?}"), "{shown}"),
        (Err(FrameError::NoRole), Err(FrameError::NoRole)) => {}
        (fast, slow) => panic!("{fast:?} and {slow:?} for {shown}"),
    }
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn messages_are_read_fast_and_damaged_ones_as_the_parser_reads_them(
        value in value(),
        key in prop::sample::select(vec!["params", "result", "error", "else"]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        is_pretty in any::<bool>(),
    ) {
        let is_null = value.is_null() && key != "else";
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": "x/y", key: value});
        let text = if is_pretty {
            serde_json::to_vec_pretty(&message)
        } else {
            serde_json::to_vec(&message)
        };
        let mut text = text.unwrap();
        prop_assert!(is_null || scan::parts(&text).is_some());
        check_scan(&text);
        for (at, byte) in damage {
            let at = at.index(text.len());
            text[at] = byte;
            check_scan(&text);
        }
    }

    #[test]
    fn what_is_put_together_at_random_is_read_as_the_parser_reads_it(
        tokens in prop::collection::vec(prop::sample::select(TOKENS.to_vec()), 0..14),
    ) {
        check_scan(format!("{{{}}}", tokens.concat()).as_bytes());
        check_scan(tokens.concat().as_bytes());
    }
}

const TOKENS: [&str; 34] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\t",
    "\n",
    "\"id\":",
    "\"method\":",
    "\"params\":",
    "\"result\":",
    "\"error\":",
    "\"a\":",
    "\"\\u0069d\":",
    "\"tools/call\"",
    "\"\\ud800\"",
    "\"\\u12g4\"",
    "\"\\x\"",
    "\"a\\\"b\"",
    "\"\u{e9}\"",
    "\"\u{7f}\"",
    "\"\u{1}\"",
    "0",
    "01",
    "-",
    "-0.5e+3",
    "1.",
    "1e",
    "null",
    "true",
    "falsy",
    "\"",
];

#[test]
fn deep_nesting_is_left_to_the_parser() {
    for depth in [63, 64, 65, 200] {
        let inside = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(r#"{{"id":1,"result":{inside}}}"#);
        assert_eq!(scan::parts(text.as_bytes()).is_some(), depth <= 64);
        let result = Frame::parse(text.into()).unwrap().result().unwrap();
        assert_eq!(result.as_str(), inside);
    }
}
