//! Keeps the change notifications of a stateless server coming: `subscriptions/listen`, opened
//! again whenever it ends.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cocode_wire::{RawJson, code};
use tokio::sync::watch;

use crate::clock::Deadlines;
use crate::connection::{Cancel, Connection, Exchange};
use crate::error::{RequestError, Retry};
use crate::handshake::{modern_headers, modern_meta};
use crate::mux::Reports;
use crate::session::Session;
use cocode_core::{Era, Revision};

/// A subscription stays open as long as it can; the limit only keeps arithmetic finite.
const FOREVER: Duration = Duration::from_hours(24 * 365);
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What the server shall tell us about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<String>,
}

/// Which changes a session wants to hear of.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    wanted: watch::Sender<Wanted>,
    /// The server has said that it will not tell.
    refused: Arc<AtomicBool>,
}

impl Listener {
    /// The resources whose changes are wanted.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.wanted.borrow().uris.iter().cloned().collect()
    }
}

impl Session {
    /// Starts to listen for whatever the server says it can tell.
    pub(crate) fn begin_listening(&self) {
        let facts = self.server();
        if facts.era() == Era::Legacy {
            return;
        }
        let listener = &self.shared().listener;
        let capabilities = &facts.capabilities;
        let (tools, prompts) = (capabilities.tools_changes, capabilities.prompts_changes);
        let resources = capabilities.resources_changes;
        let wanted = Wanted {
            tools,
            prompts,
            resources,
            uris: BTreeSet::new(),
        };
        if self.shared().options.listen {
            listener.wanted.send_replace(wanted);
        }
        let post = Post {
            connection: Arc::clone(&self.shared().connection),
            meta: modern_meta(&self.shared().options, facts.revision),
            revision: facts.revision,
            refused: Arc::clone(&listener.refused),
        };
        self.own(listen(post, listener.wanted.subscribe()));
    }

    /// Asks to be told when the resource changes, with `notifications/resources/updated`.
    pub async fn subscribe(&self, uri: &str) -> Result<(), RequestError> {
        self.change_subscription("resources/subscribe", uri, |uris| {
            uris.insert(uri.to_owned())
        })
        .await
    }

    /// Asks not to be told any more.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), RequestError> {
        self.change_subscription("resources/unsubscribe", uri, |uris| uris.remove(uri))
            .await
    }

    async fn change_subscription(
        &self,
        method: &str,
        uri: &str,
        change: impl FnOnce(&mut BTreeSet<String>) -> bool,
    ) -> Result<(), RequestError> {
        let unexpected = |reason: String| RequestError::Unexpected {
            method: method.to_owned(),
            reason,
        };
        let listener = &self.shared().listener;
        if self.server().era() == Era::Legacy {
            let params = RawJson::of(&serde_json::json!({ "uri": uri }));
            let params = params.map_err(|error| unexpected(error.to_string()))?;
            let options = crate::RequestOptions::default();
            self.request(method, Some(&params), options).await?;
        } else if !self.server().capabilities.resources_subscribe {
            return Err(unexpected(
                "the server does not tell when resources change".into(),
            ));
        } else if listener.refused.load(Ordering::Relaxed) {
            return Err(unexpected(
                "the server has refused to tell of changes".into(),
            ));
        }
        // A legacy server hears of these again only when its session has to be renewed.
        listener
            .wanted
            .send_if_modified(|wanted| change(&mut wanted.uris));
        Ok(())
    }
}

/// Runs until the session ends.
async fn listen(post: Post, mut wanted: watch::Receiver<Wanted>) {
    let mut wait = FIRST_WAIT;
    let mut without_uris = false;
    loop {
        let mut filter = wanted.borrow_and_update().clone();
        if without_uris {
            filter.uris.clear();
        }
        if filter == Wanted::default() {
            if wanted.changed().await.is_err() {
                return;
            }
            without_uris = false;
            continue;
        }
        let began = tokio::time::Instant::now();
        let ended = tokio::select! {
            ended = post.one_stream(&filter) => ended,
            changed = wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                (wait, without_uris) = (FIRST_WAIT, false);
                continue;
            }
        };
        match ended {
            Ok(()) => tracing::debug!("the server ended the subscription"),
            Err(error @ RequestError::Closed { .. }) => {
                tracing::debug!(%error, "no more subscriptions");
                return;
            }
            Err(error) if refuses_params(&error) && !filter.uris.is_empty() => {
                tracing::warn!(%error, "the server does not tell about these resources");
                without_uris = true;
                continue;
            }
            Err(error) if hopeless(&error) => {
                tracing::debug!(%error, "no subscriptions on this server");
                post.refused.store(true, Ordering::Relaxed);
                return;
            }
            Err(error) => tracing::debug!(%error, "the subscription broke"),
        }
        if began.elapsed() > LONGEST_WAIT {
            wait = FIRST_WAIT;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// What the listening task needs of its session, without keeping it alive.
struct Post {
    connection: Arc<Connection>,
    meta: Vec<u8>,
    revision: Revision,
    refused: Arc<AtomicBool>,
}

impl Post {
    /// One subscription from its opening to its end.
    async fn one_stream(&self, wanted: &Wanted) -> Result<(), RequestError> {
        let params = params(wanted);
        let method = "subscriptions/listen";
        let connection = &self.connection;
        let stream = connection.link.has_request_streams();
        let exchange = Exchange {
            method,
            params: Some(params.as_bytes()),
            meta: Cow::Borrowed(&self.meta),
            headers: modern_headers(connection, self.revision, method, None),
            deadlines: Deadlines::fixed(FOREVER),
            reports: Reports::Subscription,
            cancel: if stream {
                Cancel::EndStream
            } else {
                Cancel::Notify
            },
        };
        match connection.exchange(exchange).await?.error() {
            Some(error) => Err(RequestError::Rpc {
                method: method.to_owned(),
                error,
            }),
            None => Ok(()),
        }
    }
}

fn params(wanted: &Wanted) -> String {
    let mut filter = serde_json::Map::new();
    for (name, on) in [
        ("toolsListChanged", wanted.tools),
        ("promptsListChanged", wanted.prompts),
        ("resourcesListChanged", wanted.resources),
    ] {
        if on {
            filter.insert(name.into(), true.into());
        }
    }
    if !wanted.uris.is_empty() {
        let uris: Vec<_> = wanted.uris.iter().map(String::as_str).collect();
        filter.insert("resourceSubscriptions".into(), uris.into());
    }
    serde_json::json!({ "notifications": filter }).to_string()
}

/// Whether the server does not like what it was asked, which may be a single resource.
fn refuses_params(error: &RequestError) -> bool {
    matches!(error, RequestError::Rpc { error, .. } if error.code == code::INVALID_PARAMS)
}

/// Whether asking again can only bring the same answer.
fn hopeless(error: &RequestError) -> bool {
    match error {
        RequestError::Rpc { error, .. } => {
            matches!(error.code, code::METHOD_NOT_FOUND | code::INVALID_PARAMS)
        }
        other => other.retry() == Retry::Pointless,
    }
}
