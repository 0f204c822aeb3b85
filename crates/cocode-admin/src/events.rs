//! Everything that happens, told to one listener for as long as they may hear it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode};
use tokio::time::{Instant, sleep_until};

use crate::admin::Inner;
use crate::ask::Ask;
use crate::bulletin::{Listener, MAX_LISTENERS};
use crate::house::Credential;
use crate::model::Hello;
use crate::moment::Moment;
use crate::parameter::{Parameter, ParameterKind};
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{AnswerKind, EVENTS, Respond, event_response, text_schema};
use crate::sessions::Session;
use crate::sse::{COMMENT, event, json_text};
use cocode_wire::serve::PageBody;

/// How often a silent stream shows that it lives.
pub(crate) const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

/// Opens the inbox for as long as somebody listens who can answer, and is no browser.
pub(crate) const INBOX: Parameter = Parameter {
    name: "inbox",
    about: "Whether whoever listens answers questions of servers, and allows calls that a rule wants \
            allowed: only while somebody does are calls held for that. With the cookie of the \
            dashboard it is so in any case.",
    kind: ParameterKind::Flag,
};

/// A stream of events.
pub(crate) struct Events(PageBody);

impl Respond for Events {
    fn kinds() -> Vec<AnswerKind> {
        vec![AnswerKind {
            status: StatusCode::OK,
            about: "Events, for as long as the connection lasts.",
            content: vec![(EVENTS, text_schema)],
        }]
    }

    fn response(self) -> Response<PageBody> {
        event_response(self.0)
    }
}

/// What a stream needs while it lasts.
struct Telling {
    inner: Arc<Inner>,
    listener: Listener,
    /// The session by which it was opened, and with which it ends.
    session: Option<Session>,
    end: Instant,
    /// What is told before everything else.
    first: Option<Bytes>,
}

pub(crate) async fn events(ask: Ask) -> Result<Events, Refusal> {
    let last = ask.headers.get("last-event-id");
    // An id that is none of ours is one of long ago.
    let last = last.map(|id| id.to_str().ok().and_then(|id| id.parse().ok()).unwrap_or(0));
    let Some(listener) = ask.inner.desk.bulletin.listen(last) else {
        return Err(Refusal::new(
            RefusalStatus::Unavailable,
            "too-many-listeners",
            format!("{MAX_LISTENERS} listen to events already"),
        )
        .hint("close a dashboard that nobody looks at"));
    };
    let visitor = ask.visitor.as_ref();
    let is_browser = visitor.is_some_and(|one| one.caller.by == Credential::Cookie);
    let listener = if is_browser || ask.is_set(&INBOX) {
        listener.answering()
    } else {
        listener
    };
    let hello = Hello {
        version: ask.house().facts().version,
        at: Moment::now(),
    };
    let telling = Telling {
        first: Some(event("hello", Some(listener.begun()), &json_text(&hello))),
        end: Instant::now() + ask.inner.stream_lifetime,
        session: ask.visitor.and_then(|visitor| visitor.session),
        inner: ask.inner,
        listener,
    };
    let pieces = stream::unfold(telling, |mut telling| async move {
        let piece = telling.next().await?;
        Some((piece, telling))
    });
    Ok(Events(PageBody::events(pieces)))
}

impl Telling {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let comment_at = Instant::now() + COMMENT_INTERVAL;
        loop {
            if !self.may_hear() || Instant::now() >= self.end {
                return None;
            }
            if let Some(text) = self.listener.take() {
                return Some(text);
            }
            tokio::select! {
                () = self.listener.wait() => {}
                () = sleep_until(comment_at.min(self.end)) => {
                    if self.may_hear() && Instant::now() < self.end {
                        return Some(Bytes::from_static(COMMENT));
                    }
                }
            }
        }
    }

    /// Whether whoever listens is still signed in. Listening counts as use of the session.
    fn may_hear(&self) -> bool {
        let session = self.session.as_ref();
        session.is_none_or(|session| self.inner.sessions.is_live(session))
    }
}
