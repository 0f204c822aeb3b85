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
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) method: &'static str,
    pub(super) params: String,
}

/// What a request sets: another request that sets the same takes its place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Level,
    Resource(String),
}

/// What is kept of a session after its client has said some messages more than those that are kept of
/// it. `None` if that is the same.
///
/// A store that is told something asks this while nobody else can change what it keeps.
pub fn retold(kept: &[Bytes], said: &[Bytes]) -> Option<Vec<Bytes>> {
    let mut told = Told::read(kept)?;
    for message in said {
        if let Ok(frame) = Frame::parse(message.clone()) {
            told.note(frame.method(), frame.params().as_ref());
        }
    }
    let messages = told.messages();
    (messages != kept).then_some(messages)
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

    /// Notes a request that was answered without an error. Gives what it sets, whether or not that was so
    /// before; `None` if that is nothing, or more than can be kept.
    pub(super) fn note(
        &mut self,
        method: &str,
        params: Option<&RawJson>,
    ) -> Option<(Subject, Setting)> {
        let params = params?;
        let has_room = self.has_room(params.as_bytes().len());
        let (method, subject) = match method {
            SET_LEVEL => {
                if self.level.as_ref() != Some(params) {
                    self.level = Some(has_room.then(|| params.detached())?);
                }
                (SET_LEVEL, Subject::Level)
            }
            SUBSCRIBE => {
                let uri = uri_of(params)?;
                if self.subscriptions.get(&uri) != Some(params) {
                    let params = has_room.then(|| params.detached())?;
                    self.subscriptions.insert(uri.clone(), params);
                }
                (SUBSCRIBE, Subject::Resource(uri))
            }
            UNSUBSCRIBE => {
                let uri = uri_of(params)?;
                self.subscriptions.remove(&uri);
                (UNSUBSCRIBE, Subject::Resource(uri))
            }
            _ => return None,
        };
        let params = params.as_str().to_owned();
        Some((subject, Setting { method, params }))
    }

    /// Makes it so as a request has set it.
    pub(super) fn set(&mut self, setting: &Setting) {
        let params = Bytes::copy_from_slice(setting.params.as_bytes());
        // It was taken from a message.
        self.note(setting.method, Some(&RawJson::from_verified(params)));
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

impl std::fmt::Debug for Setting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Setting");
        shown.field("method", &self.method).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Level => "Level",
            Self::Resource(_) => "Resource(…)",
        })
    }
}

impl Setting {
    /// How much it is to keep, in bytes.
    pub(super) fn size(&self) -> usize {
        self.params.len() + ENVELOPE_BYTES
    }

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
#[path = "told_tests.rs"]
mod tests;
