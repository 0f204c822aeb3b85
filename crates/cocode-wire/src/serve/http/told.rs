//! What a client has set in its session, which another server has to be told to go on with it: how it
//! introduced itself, which log messages it wants, and which resources it follows.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;

use crate::encode;
use crate::frame::Frame;
use crate::raw::RawJson;
use crate::serve::service::Answer;
use crate::serve::session_store::{MAX_TOLD, MAX_TOLD_BYTES};

const INITIALIZE: &str = "initialize";
const SET_LEVEL: &str = "logging/setLevel";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// What is in a message besides its parameters, and a little more.
const ENVELOPE_BYTES: usize = 100;

/// What a client has set.
#[derive(Clone, Default)]
pub(super) struct Told {
    /// The parameters of `initialize`.
    hello: Option<RawJson>,
    level: Option<RawJson>,
    /// By their URIs.
    subscriptions: BTreeMap<String, RawJson>,
}

/// A request that sets something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) method: &'static str,
    pub(super) params: String,
}

/// Whether a request of that method sets something.
pub(super) fn sets(method: &str) -> bool {
    method == SET_LEVEL || method == SUBSCRIBE || method == UNSUBSCRIBE
}

impl Told {
    /// What a client says first. `None` if that is too much to be kept.
    pub(super) fn hello(params: Option<&RawJson>) -> Option<Self> {
        let told = Self {
            hello: params.map(RawJson::detached),
            ..Self::default()
        };
        told.has_room(0).then_some(told)
    }

    /// Reads what [`Told::messages`] wrote. `None` if it is something else.
    pub(super) fn read(messages: &[Bytes]) -> Option<Self> {
        let (first, rest) = messages.split_first()?;
        let first = Frame::parse(first.clone()).ok()?;
        if first.method() != INITIALIZE {
            return None;
        }
        let mut told = Self::hello(first.params().as_ref())?;
        for message in rest {
            let frame = Frame::parse(message.clone()).ok()?;
            told.note(frame.method(), frame.params().as_ref());
        }
        Some(told)
    }

    /// Notes a request that was answered without an error. Gives whether it has set anything, and that
    /// is kept.
    pub(super) fn note(&mut self, method: &str, params: Option<&RawJson>) -> bool {
        let Some(params) = params else {
            return false;
        };
        match method {
            SET_LEVEL => {
                let is_new = self.level.as_ref() != Some(params);
                let has_room = self.has_room(params.as_bytes().len());
                if is_new && has_room {
                    self.level = Some(params.detached());
                }
                is_new && has_room
            }
            SUBSCRIBE => match uri_of(params) {
                Some(uri) if self.has_room(params.as_bytes().len()) => {
                    let older = self.subscriptions.insert(uri, params.detached());
                    older.as_ref() != Some(params)
                }
                _ => false,
            },
            UNSUBSCRIBE => {
                let uri = uri_of(params);
                uri.is_some_and(|uri| self.subscriptions.remove(&uri).is_some())
            }
            _ => false,
        }
    }

    /// Everything as messages, the introduction first.
    pub(super) fn messages(&self) -> Vec<Bytes> {
        let hello = self.hello.as_ref().map(RawJson::as_bytes);
        let hello = encode::request(1, INITIALIZE, hello);
        let rest = (2..).zip(self.settings());
        let rest = rest.map(|(id, setting)| setting.message(id));
        std::iter::once(hello.into()).chain(rest).collect()
    }

    /// Everything behind the introduction.
    pub(super) fn settings(&self) -> impl Iterator<Item = Setting> {
        let level = self.level.iter().map(|level| (SET_LEVEL, level));
        let subscriptions = self.subscriptions.values();
        let all = level.chain(subscriptions.map(|params| (SUBSCRIBE, params)));
        all.map(|(method, params)| Setting {
            method,
            params: params.as_str().to_owned(),
        })
    }

    /// What has to be said so that what was `before` becomes this.
    pub(super) fn since(&self, before: &Self) -> Vec<Setting> {
        let known: Vec<Setting> = before.settings().collect();
        let mut news: Vec<Setting> = self.settings().collect();
        news.retain(|setting| !known.contains(setting));
        let gone = before.subscriptions.iter();
        let gone = gone.filter(|(uri, _)| !self.subscriptions.contains_key(*uri));
        news.extend(gone.map(|(_, params)| Setting {
            method: UNSUBSCRIBE,
            params: params.as_str().to_owned(),
        }));
        news
    }

    fn has_room(&self, bytes: usize) -> bool {
        let parts = self.hello.iter().chain(&self.level);
        let parts = parts.chain(self.subscriptions.values());
        let sizes = parts.map(|part| part.as_bytes().len() + ENVELOPE_BYTES);
        let (n_parts, n_bytes) = sizes.fold((0, 0), |(count, sum), size| (count + 1, sum + size));
        n_parts < MAX_TOLD && n_bytes + bytes + ENVELOPE_BYTES <= MAX_TOLD_BYTES
    }
}

impl std::fmt::Debug for Told {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What a client said is its own business.
        formatter
            .debug_struct("Told")
            .field("subscriptions", &self.subscriptions.len())
            .finish_non_exhaustive()
    }
}

impl Setting {
    /// It as a message.
    pub(super) fn message(&self, id: u64) -> Bytes {
        encode::request(id, self.method, Some(self.params.as_bytes())).into()
    }
}

fn uri_of(params: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    Some(params.decode::<Params>().ok()?.uri)
}

/// The lists of which the answer to `initialize` says that the client is told when they change, as the
/// notifications that do so.
pub(super) fn promised(answer: &Answer) -> Vec<&'static str> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Whole {
        result: Introduced,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Introduced {
        capabilities: Capabilities,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Capabilities {
        tools: Capability,
        prompts: Capability,
        resources: Capability,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Capability {
        list_changed: bool,
    }
    let whole: Whole = serde_json::from_slice(&answer.body).unwrap_or_default();
    let Capabilities {
        tools,
        prompts,
        resources,
    } = whole.result.capabilities;
    let all = [
        (tools, "notifications/tools/list_changed"),
        (prompts, "notifications/prompts/list_changed"),
        (resources, "notifications/resources/list_changed"),
    ];
    let all = all.into_iter().filter(|(list, _)| list.list_changed);
    all.map(|(_, method)| method).collect()
}

#[cfg(test)]
mod tests {
    use super::{SET_LEVEL, SUBSCRIBE, Setting, Told, UNSUBSCRIBE, promised};
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
        assert!(told.note(SUBSCRIBE, Some(&raw(r#"{"uri":"b"}"#))));
        assert!(told.note(SUBSCRIBE, Some(&raw(r#"{"uri":"a"}"#))));
        assert!(told.note(SET_LEVEL, Some(&raw(r#"{"level":"debug"}"#))));
        assert!(told.note(SET_LEVEL, Some(&raw(r#"{"level":"error"}"#))));
        assert!(told.note(UNSUBSCRIBE, Some(&raw(r#"{"uri":"b","x":1}"#))));
        for (method, params) in [
            (SET_LEVEL, r#"{"level":"error"}"#),
            (SUBSCRIBE, r#"{"uri":"a"}"#),
            (SUBSCRIBE, r#"{"uri":7}"#),
            (UNSUBSCRIBE, r#"{"uri":"b"}"#),
            ("tools/call", r#"{"uri":"b"}"#),
        ] {
            assert!(!told.note(method, Some(&raw(params))), "{method} {params}");
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
    fn only_so_much_is_kept() {
        let mut told = hello();
        for number in 0..2 * MAX_TOLD {
            told.note(SUBSCRIBE, Some(&raw(&format!(r#"{{"uri":"{number}"}}"#))));
        }
        assert_eq!(told.messages().len(), MAX_TOLD);
        let long = "x".repeat(MAX_TOLD_BYTES / 2 - 1000);
        let mut told = hello();
        assert!(told.note(SUBSCRIBE, Some(&raw(&format!(r#"{{"uri":"{long}"}}"#)))));
        assert!(told.note(SUBSCRIBE, Some(&raw(&format!(r#"{{"uri":"y{long}"}}"#)))));
        assert!(!told.note(SUBSCRIBE, Some(&raw(&format!(r#"{{"uri":"z{long}"}}"#)))));
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
}
