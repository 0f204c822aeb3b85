//! What a client has set: what is kept of it, and what another server is told.

use super::{SET_LEVEL, SUBSCRIBE, Setting, Told, UNSUBSCRIBE, promised, retold};
use crate::raw::RawJson;
use crate::serve::service::Answer;
use crate::serve::session_store::{MAX_TOLD, MAX_TOLD_BYTES};

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn hello() -> Told {
    let params = raw(r#"{"protocolVersion":"2025-06-18","clientInfo":{"name":"a"}}"#);
    Told::hello(Some(&params)).unwrap()
}

fn texts(told: &Told) -> Vec<String> {
    let messages = told.messages();
    let texts = messages
        .iter()
        .map(|text| String::from_utf8(text.to_vec()).unwrap());
    texts.collect()
}

#[test]
fn what_was_set_is_told_in_order() {
    let mut told = hello();
    for (method, params) in [
        (SUBSCRIBE, r#"{"uri":"b"}"#),
        (SUBSCRIBE, r#"{"uri":"a"}"#),
        (SET_LEVEL, r#"{"level":"debug"}"#),
        (SET_LEVEL, r#"{"level":"error"}"#),
        (UNSUBSCRIBE, r#"{"uri":"b","x":1}"#),
        (SET_LEVEL, r#"{"level":"error"}"#),
        (SUBSCRIBE, r#"{"uri":"a"}"#),
        (UNSUBSCRIBE, r#"{"uri":"b"}"#),
    ] {
        let noted = told.note(method, Some(&raw(params)));
        assert_eq!(noted.unwrap().1.params, params, "{method}");
    }
    for (method, params) in [
        (SUBSCRIBE, r#"{"uri":7}"#),
        ("tools/call", r#"{"uri":"b"}"#),
    ] {
        let noted = told.note(method, Some(&raw(params)));
        assert!(noted.is_none(), "{method} {params}");
    }
    let expected = [
        r#"{"jsonrpc":"2.0","method":"initialize","id":1,"params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"a"}}}"#,
        r#"{"jsonrpc":"2.0","method":"logging/setLevel","id":2,"params":{"level":"error"}}"#,
        r#"{"jsonrpc":"2.0","method":"resources/subscribe","id":3,"params":{"uri":"a"}}"#,
    ];
    assert_eq!(texts(&told), expected);
    let again = Told::read(&told.messages()).unwrap();
    assert_eq!(texts(&again), expected);
}

#[test]
fn what_is_no_session_is_not_read() {
    let messages = hello().messages();
    assert!(Told::read(&messages).is_some());
    assert!(Told::read(&[]).is_none());
    assert!(Told::read(&["x".into()]).is_none());
    assert!(Told::read(&[r#"{"id":1,"method":"ping"}"#.into()]).is_none());
}

#[test]
fn what_is_said_besides_is_put_to_what_is_kept() {
    let kept = hello().messages();
    let subscribe = r#"{"id":9,"method":"resources/subscribe","params":{"uri":"a"}}"#;
    let once = retold(&kept, &[subscribe.into(), "x".into()]).unwrap();
    assert_eq!(once.len(), 2);
    assert_eq!(retold(&once, &[subscribe.into()]), None, "it is so");
    let none = subscribe.replace("subscribe", "unsubscribe");
    assert_eq!(retold(&once, &[none.into()]), Some(kept));
    assert_eq!(retold(&[], &[subscribe.into()]), None, "no session");
}

#[test]
fn only_so_much_is_kept() {
    let mut told = hello();
    for number in 0..2 * MAX_TOLD {
        told.note(SUBSCRIBE, Some(&raw(&format!(r#"{{"uri":"{number}"}}"#))));
    }
    assert_eq!(told.messages().len(), MAX_TOLD);
    let long = "x".repeat(MAX_TOLD_BYTES / 2 - 1000);
    let mut told = hello();
    for (first, has_room) in [("", true), ("y", true), ("z", false), ("y", true)] {
        let params = raw(&format!(r#"{{"uri":"{first}{long}"}}"#));
        let noted = told.note(SUBSCRIBE, Some(&params));
        assert_eq!(noted.is_some(), has_room, "{first}");
    }
    let size: usize = told.messages().iter().map(bytes::Bytes::len).sum();
    assert!(size <= MAX_TOLD_BYTES, "{size}");
    let much = raw(&format!(r#"{{"x":"{long}{long}{long}"}}"#));
    assert!(Told::hello(Some(&much)).is_none());
}

#[test]
fn what_is_different_elsewhere_is_caught_up_with() {
    let mut here = hello();
    here.note(SUBSCRIBE, Some(&raw(r#"{"uri":"a"}"#)));
    here.note(SUBSCRIBE, Some(&raw(r#"{"uri":"b"}"#)));
    let mut there = here.clone();
    assert_eq!(there.since(&here), []);
    there.note(UNSUBSCRIBE, Some(&raw(r#"{"uri":"a"}"#)));
    there.note(SET_LEVEL, Some(&raw(r#"{"level":"error"}"#)));
    let setting = |method, params: &str| Setting {
        method,
        params: params.into(),
    };
    assert_eq!(
        there.since(&here),
        [
            setting(SET_LEVEL, r#"{"level":"error"}"#),
            setting(UNSUBSCRIBE, r#"{"uri":"a"}"#)
        ]
    );
}

#[test]
fn promised_lists_are_known_from_the_answer() {
    let answer = |text: &str| Answer {
        body: text.to_owned().into(),
        error: None,
    };
    let all = r#"{"id":1,"result":{"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{"listChanged":true}}}}"#;
    assert_eq!(
        promised(&answer(all)),
        [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed"
        ]
    );
    for none in ["", "{}", r#"{"id":1,"result":{"capabilities":{}}}"#] {
        assert_eq!(promised(&answer(none)), [""; 0]);
    }
}
