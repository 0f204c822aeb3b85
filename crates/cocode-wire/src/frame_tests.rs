//! Envelopes, well-formed and otherwise.

use super::{Frame, FrameError, FrameKind};

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
