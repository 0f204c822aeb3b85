//! Hears what a server says on behalf of the manager, and passes everything on to the consumer's
//! own handler.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use cocode_core::ServerName;
use cocode_wire::{RawJson, RpcError};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::events::{Bus, Event};
use super::server::Server;
use crate::handler::{
    Answer, ClientCapabilities, Elicitation, ElicitationAnswer, Handler, Notification, Root,
};
use crate::list_cache::ListKind;
use crate::server_log::LogSource;

/// Questions are counted over all servers and managers.
static QUESTIONS: AtomicU64 = AtomicU64::new(1);

/// The longest text of a server that an event holds; a listener may be thousands of events behind.
const MAX_EVENT_TEXT_BYTES: usize = 16 * 1024;
/// The longest level that is believed to be one.
const MAX_LEVEL_BYTES: usize = 32;

pub(crate) struct Ears {
    /// Weak, because a server has the session that has its ears.
    pub(crate) server: Weak<Server>,
    pub(crate) name: ServerName,
    /// A stream of changes was opened before.
    pub(crate) listens: AtomicBool,
    /// Whether changed lists are read again.
    pub(crate) relists: bool,
    pub(crate) bus: Bus,
    pub(crate) inner: Arc<dyn Handler>,
}

#[derive(Deserialize)]
struct LogMessage<'a> {
    #[serde(default)]
    level: String,
    #[serde(default)]
    logger: Option<String>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Updated {
    uri: String,
}

impl Ears {
    fn changed(&self, kinds: &[ListKind]) {
        if self.relists
            && let Some(server) = self.server.upgrade()
        {
            server.changes.told(kinds);
        }
    }

    fn message(&self, params: &RawJson) {
        let Ok(message) = params.decode::<LogMessage<'_>>() else {
            tracing::debug!(server = %self.name, "a log message that is none");
            return;
        };
        let LogMessage {
            mut level,
            logger,
            data,
        } = message;
        if level.len() > MAX_LEVEL_BYTES {
            level = "unknown".into();
        }
        let text = data.map_or("", RawValue::get);
        let plain: Option<String> = serde_json::from_str(text).ok();
        let shown = plain.as_deref().unwrap_or(text);
        let shown = match &logger {
            Some(logger) => format!("{logger}: {shown}"),
            None => shown.to_owned(),
        };
        if let Some(server) = self.server.upgrade() {
            server.log.line(LogSource::Message(&level), &shown);
        }
        self.bus.tell(|| Event::LogReceived {
            server: self.name.clone(),
            level,
            logger,
            data: data.map_or_else(
                || RawJson::from(RawValue::NULL.to_owned()),
                |data| bounded(params.share(data)),
            ),
        });
    }
}

impl Handler for Ears {
    fn capabilities(&self) -> ClientCapabilities {
        self.inner.capabilities()
    }

    fn notified(&self, notification: &Notification) {
        match (notification.method.as_str(), &notification.params) {
            ("notifications/tools/list_changed", _) => {
                self.changed(&[ListKind::Tools]);
            }
            ("notifications/prompts/list_changed", _) => {
                self.changed(&[ListKind::Prompts]);
            }
            ("notifications/resources/list_changed", _) => {
                self.changed(&[ListKind::Resources, ListKind::ResourceTemplates]);
            }
            // From the second time on: what changed between two streams, nobody told.
            ("notifications/subscriptions/acknowledged", _)
                if self.listens.swap(true, Ordering::Relaxed) =>
            {
                self.changed(&ListKind::ALL);
            }
            ("notifications/message", Some(params)) => self.message(params),
            ("notifications/resources/updated", Some(params)) => {
                if let Ok(Updated { uri }) = params.decode()
                    && uri.len() <= MAX_EVENT_TEXT_BYTES
                {
                    let server = &self.name;
                    self.bus.tell(|| Event::ResourceUpdated {
                        server: server.clone(),
                        uri,
                    });
                }
            }
            _ => {}
        }
        self.inner.notified(notification);
    }

    fn asked(
        &self,
        method: &str,
        params: Option<&RawJson>,
    ) -> Option<Answer<'_, Result<RawJson, RpcError>>> {
        self.inner.asked(method, params)
    }

    fn elicit(&self, request: Elicitation) -> Answer<'_, ElicitationAnswer> {
        let question = QUESTIONS.fetch_add(1, Ordering::Relaxed);
        let message = cut(&request.message);
        self.bus.tell(|| Event::ElicitationRequested {
            server: self.name.clone(),
            question,
            message,
        });
        let mut told = Told {
            ears: self,
            question,
            action: "cancel",
        };
        Box::pin(async move {
            let answer = self.inner.elicit(request).await;
            told.action = match &answer {
                ElicitationAnswer::Accept(_) => "accept",
                ElicitationAnswer::Decline => "decline",
                ElicitationAnswer::Cancel => "cancel",
            };
            drop(told);
            answer
        })
    }

    fn sample(&self, params: RawJson) -> Answer<'_, Result<RawJson, RpcError>> {
        self.inner.sample(params)
    }

    fn roots(&self) -> Answer<'_, Result<Vec<Root>, RpcError>> {
        self.inner.roots()
    }

    fn request(
        &self,
        method: &str,
        params: Option<RawJson>,
    ) -> Answer<'_, Result<RawJson, RpcError>> {
        self.inner.request(method, params)
    }
}

/// What an event keeps of a piece of JSON: all of it, or the beginning of it as a text.
fn bounded(data: RawJson) -> RawJson {
    if data.as_bytes().len() <= MAX_EVENT_TEXT_BYTES {
        return data.detached();
    }
    RawJson::of(&cut(data.as_str())).unwrap_or(data)
}

/// The beginning of a text.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_EVENT_TEXT_BYTES);
    text.get(..end).unwrap_or(text).to_owned()
}

/// Tells that a question is over, also when nobody waits for its answer any more.
struct Told<'a> {
    ears: &'a Ears,
    question: u64,
    action: &'static str,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.ears.bus.tell(|| Event::ElicitationAnswered {
            server: self.ears.name.clone(),
            question: self.question,
            action: self.action,
        });
    }
}
