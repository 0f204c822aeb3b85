//! One client session with one server: requests out, answers in, and what keeps it going.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cocode_wire::{Closed, Frame, Inbox as _, LinkError, RawJson, Target, code};
use http::HeaderMap;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::clock::Deadlines;
use crate::connect::{Established, establish};
use crate::connection::{Begun, Cancel, Connection, Exchange};
use crate::error::{ConnectError, RequestError};
use crate::handshake::{initialize, modern_headers, modern_meta, supported_in};
use crate::input::{AnyResult, ResultKind, asks_for_input};
use crate::listen::Listener;
use crate::mux::Reports;
use crate::options::{RequestOptions, SessionOptions};
use crate::server::ServerFacts;
use crate::tool_headers::ToolHeaders;
use cocode_core::{Era, Revision};

/// Requests that may wait for their answers at once; more have to wait for a place.
pub const MAX_IN_FLIGHT: usize = 1024;

/// A session. Cheap to clone; the last clone that is dropped ends the connection, without waiting.
/// [`Session::close`] ends it politely.
#[derive(Clone, Debug)]
pub struct Session {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) connection: Arc<Connection>,
    pub(crate) options: SessionOptions,
    facts: ServerFacts,
    /// What goes into the `_meta` of every request.
    meta: Vec<u8>,
    places: Semaphore,
    /// Counts the sessions the server has given us, where it gives any.
    generation: AtomicU64,
    /// Lets one renewal through at a time.
    renewing: Semaphore,
    pub(crate) tool_headers: ToolHeaders,
    pub(crate) listener: Listener,
    tasks: Mutex<JoinSet<()>>,
}

/// A request as the features of the protocol put it together.
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a [u8]>,
    /// The tool, prompt or resource it is about.
    pub(crate) name: Option<&'a str>,
    /// Headers beyond those that every request has.
    pub(crate) headers: HeaderMap,
    pub(crate) deadlines: Deadlines,
    pub(crate) reports: Reports,
    /// What goes into its `_meta`, instead of what we say about ourselves.
    pub(crate) meta: Option<&'a [u8]>,
}

impl Session {
    /// Connects to a server and gets to know it, in whatever era it speaks.
    pub async fn connect(target: Target, options: SessionOptions) -> Result<Self, ConnectError> {
        let Established {
            connection,
            serving,
            facts,
        } = establish(&target, &options).await?;
        let meta = match facts.era() {
            Era::Modern => modern_meta(&options, facts.revision),
            Era::Legacy => Vec::new(),
        };
        let shared = Shared {
            connection,
            facts,
            meta,
            places: Semaphore::new(MAX_IN_FLIGHT),
            generation: AtomicU64::new(0),
            renewing: Semaphore::new(1),
            tool_headers: ToolHeaders::default(),
            listener: Listener::default(),
            tasks: Mutex::new(serving),
            options,
        };
        let session = Self {
            shared: Arc::new(shared),
        };
        match session.server().era() {
            Era::Modern => {
                let connection = &session.shared.connection;
                connection.mux.set_stateless();
                // For messages that bring no header of their own: answers.
                let revision = session.server().revision;
                connection.link.set_protocol(revision.as_str(), false);
                session.begin_listening();
            }
            Era::Legacy => {
                session.own(keep_session(Arc::downgrade(&session.shared)));
                session.request_log_messages().await;
            }
        }
        Ok(session)
    }

    /// What the server said about itself.
    pub fn server(&self) -> &ServerFacts {
        &self.shared.facts
    }

    /// The process id of the server, if this session started it.
    pub fn pid(&self) -> Option<u32> {
        self.shared.connection.link.pid()
    }

    /// The last lines that the server wrote to its stderr.
    pub fn stderr_lines(&self) -> Vec<String> {
        self.shared.connection.link.stderr_lines()
    }

    /// Resolves when the connection has ended, with the reason. Streamable HTTP has no connection
    /// that could end by itself: there, only [`Session::close`] does it.
    pub async fn closed(&self) -> Closed {
        let mut closed = self.shared.connection.mux.watch_closed();
        let reason = closed.wait_for(Option::is_some).await;
        reason
            .ok()
            .and_then(|reason| reason.clone())
            .unwrap_or(Closed::ByUs)
    }

    /// Any request, raw in and raw out. Everything the server put into the result is there.
    pub async fn request(
        &self,
        method: &str,
        params: Option<&RawJson>,
        options: RequestOptions,
    ) -> Result<RawJson, RequestError> {
        let fixed = Deadlines::fixed(self.shared.options.timeouts.request);
        let name = crate::features::name_in(method, params);
        let call = Call {
            method,
            params: params.map(RawJson::as_bytes),
            name: name.as_deref(),
            headers: HeaderMap::new(),
            deadlines: options.deadlines.unwrap_or(fixed),
            reports: options
                .on_progress
                .map_or(Reports::No, |report| Reports::Yes(Some(report))),
            meta: None,
        };
        self.call(&call).await
    }

    /// Tells the server something.
    pub async fn notify(&self, method: &str, params: Option<&RawJson>) -> Result<(), RequestError> {
        let after = self.shared.options.timeouts.request;
        match tokio::time::timeout(after, self.notify_without_limit(method, params)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(RequestError::Timeout {
                method: method.to_owned(),
                after,
            }),
        }
    }

    async fn notify_without_limit(
        &self,
        method: &str,
        params: Option<&RawJson>,
    ) -> Result<(), RequestError> {
        let generation = self.shared.generation.load(Ordering::Acquire);
        let params = params.map(RawJson::as_bytes);
        let connection = &self.shared.connection;
        let first = connection
            .notify(method, params, self.mirror(method, None))
            .await;
        let gone = matches!(&first, Err(RequestError::Link { error, .. })
            if matches!(error, LinkError::SessionGone));
        if !gone {
            return first;
        }
        Box::pin(self.renew(generation, method)).await?;
        connection
            .notify(method, params, self.mirror(method, None))
            .await
    }

    /// How many requests wait for their answers, or for their turn to be sent.
    pub fn in_flight(&self) -> usize {
        MAX_IN_FLIGHT - self.shared.places.available_permits()
    }

    /// How many answers have come so far. If it grows, the server is alive.
    pub fn answered(&self) -> u64 {
        self.shared.connection.mux.answered()
    }

    /// How often the server has ended its session, and given us another. What it would have told
    /// in between is lost.
    pub fn renewals(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Ends the connection at once, as something that failed: whoever waits for an answer gets
    /// this reason. [`Session::close`] still has to wait for what belongs to it.
    pub fn abort(&self, reason: Closed) {
        self.shared.connection.mux.closed(reason);
    }

    /// Ends the connection and what belongs to it, and waits for that within fixed bounds.
    pub async fn close(self) {
        let tasks = std::mem::take(
            &mut *self
                .shared
                .tasks
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        drop(tasks);
        // Whoever still waits for an answer learns at once that none will come.
        self.shared.connection.mux.closed(Closed::ByUs);
        self.shared.connection.link.close().await;
    }

    /// Sends one request, renews the server's session if that is gone, and gives its result.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<RawJson, RequestError> {
        let outcome = self.call_for_any_result(call).await?;
        match outcome.kind {
            ResultKind::Complete => Ok(outcome.result),
            // Whoever asks in the raw gets the question in the raw.
            ResultKind::InputRequired if asks_for_input(call.method) => Ok(outcome.result),
            ResultKind::InputRequired => Err(RequestError::Unexpected {
                method: call.method.to_owned(),
                reason: "it asks for input, which this method must not".into(),
            }),
        }
    }

    /// The same, with what kind of result it is.
    pub(crate) async fn call_for_any_result(
        &self,
        call: &Call<'_>,
    ) -> Result<AnyResult, RequestError> {
        let begun = Instant::now();
        let generation = self.shared.generation.load(Ordering::Acquire);
        let first = self.attempt(call, call.deadlines).await;
        let outcome = match first {
            Err(RequestError::Link {
                error: LinkError::SessionGone,
                ..
            }) => {
                // Rare, and kept out of the size of every other call.
                Box::pin(self.renew_for(generation, call.method, call.deadlines)).await?;
                self.attempt(call, call.deadlines.after(begun.elapsed()))
                    .await
            }
            Err(RequestError::Rpc { method, error })
                if error.code == code::UNSUPPORTED_PROTOCOL_VERSION =>
            {
                let supported = supported_in(&error).unwrap_or_default();
                let ours = self.shared.facts.revision;
                if Revision::newest_among(&supported, Era::Modern) != Some(ours) {
                    return Err(RequestError::Rpc { method, error });
                }
                self.attempt(call, call.deadlines.after(begun.elapsed()))
                    .await
            }
            other => other,
        };
        AnyResult::of(outcome?, self.shared.facts.era(), call.method)
    }

    async fn attempt(
        &self,
        call: &Call<'_>,
        deadlines: Deadlines,
    ) -> Result<RawJson, RequestError> {
        let method = call.method;
        let frame = self.carry(call, deadlines).await?;
        if let Some(error) = frame.error() {
            return Err(RequestError::Rpc {
                method: method.to_owned(),
                error,
            });
        }
        frame.result().ok_or_else(|| RequestError::Unexpected {
            method: method.to_owned(),
            reason: "the answer has neither result nor error".into(),
        })
    }

    /// Sends one request and gives whatever the server answers.
    pub(crate) async fn carry(
        &self,
        call: &Call<'_>,
        deadlines: Deadlines,
    ) -> Result<Frame, RequestError> {
        let (_place, deadlines) = self.place(call.method, deadlines).await?;
        self.begin(call, deadlines)?.answer(call.method).await
    }

    /// Sends one request, which has its place among those in flight.
    pub(crate) fn begin(
        &self,
        call: &Call<'_>,
        deadlines: Deadlines,
    ) -> Result<Begun<'_>, RequestError> {
        let shared = &self.shared;
        let mut headers = self.mirror(call.method, call.name);
        if !call.headers.is_empty() {
            headers.extend(call.headers.clone());
        }
        let modern = shared.facts.era() == Era::Modern;
        let cancel = if modern && shared.connection.link.has_request_streams() {
            Cancel::EndStream
        } else {
            Cancel::Notify
        };
        shared.connection.begin(Exchange {
            method: call.method,
            params: call.params,
            meta: Cow::Borrowed(call.meta.unwrap_or(&shared.meta)),
            headers,
            deadlines,
            reports: call.reports.clone(),
            cancel,
        })
    }

    /// A place among the requests in flight, and what is left of the deadlines by then: waiting for
    /// a place counts like waiting for an answer.
    pub(crate) async fn place(
        &self,
        method: &str,
        deadlines: Deadlines,
    ) -> Result<(SemaphorePermit<'_>, Deadlines), RequestError> {
        if let Ok(place) = self.shared.places.try_acquire() {
            return Ok((place, deadlines));
        }
        let begun = Instant::now();
        let after = deadlines.idle.min(deadlines.total);
        let method = || method.to_owned();
        // Rare, and kept out of the size of every other request.
        let waiting = Box::pin(tokio::time::timeout(after, self.shared.places.acquire()));
        match waiting.await {
            Ok(Ok(place)) => Ok((place, deadlines.after(begun.elapsed()))),
            Ok(Err(_never_closed)) => Err(RequestError::Closed {
                method: method(),
                reason: Closed::ByUs,
                sent: false,
            }),
            Err(_elapsed) => Err(RequestError::Timeout {
                method: method(),
                after,
            }),
        }
    }

    fn mirror(&self, method: &str, name: Option<&str>) -> HeaderMap {
        match self.shared.facts.era() {
            Era::Modern => {
                let revision = self.shared.facts.revision;
                modern_headers(&self.shared.connection, revision, method, name)
            }
            Era::Legacy => HeaderMap::new(),
        }
    }

    /// Renews the session on behalf of a call, which waits no longer for it than for its answer.
    pub(crate) async fn renew_for(
        &self,
        seen: u64,
        method: &str,
        deadlines: Deadlines,
    ) -> Result<(), RequestError> {
        let after = deadlines.idle.min(deadlines.total);
        let renewed = tokio::time::timeout(after, self.renew(seen, method)).await;
        renewed.unwrap_or_else(|_elapsed| {
            let method = method.to_owned();
            Err(RequestError::Timeout { method, after })
        })
    }

    /// Opens a new session on the server, unless another request has done so meanwhile.
    async fn renew(&self, seen: u64, method: &str) -> Result<(), RequestError> {
        let shared = &self.shared;
        // A semaphore that is never closed always gives its permit.
        let _one_at_a_time = shared.renewing.acquire().await.ok();
        if shared.generation.load(Ordering::Acquire) != seen {
            return Ok(());
        }
        tracing::info!("the server has ended the session; opening a new one");
        let revision = shared.facts.revision;
        let only = [revision];
        let renewed = initialize(&shared.connection, &shared.options, revision, &only);
        let renewed = tokio::time::timeout(shared.options.timeouts.connect, renewed).await;
        let method = method.to_owned();
        match renewed {
            Ok(Ok(_facts)) => {
                shared.generation.fetch_add(1, Ordering::AcqRel);
                self.remind().await;
                Ok(())
            }
            Ok(Err(ConnectError::Handshake { error, .. })) => Err(error),
            Ok(Err(other)) => Err(RequestError::Unexpected {
                method,
                reason: other.to_string(),
            }),
            Err(_elapsed) => Err(RequestError::Timeout {
                method,
                after: shared.options.timeouts.connect,
            }),
        }
    }

    /// Tells a new session on the server what the old one had been told.
    async fn remind(&self) {
        self.request_log_messages().await;
        for uri in self.shared.listener.uris() {
            let params = serde_json::json!({ "uri": uri }).to_string();
            let method = "resources/subscribe";
            if let Err(error) = self.tell(method, &params).await {
                tracing::warn!(%error, "a subscription was lost with the old session");
            }
        }
    }

    /// A request whose result says nothing, in a session that is just being made.
    async fn tell(&self, method: &str, params: &str) -> Result<(), RequestError> {
        // A server that does not care for this must not hold up the session.
        let deadlines = Deadlines::fixed(self.shared.options.timeouts.probe);
        let call = Call {
            method,
            params: Some(params.as_bytes()),
            name: None,
            headers: HeaderMap::new(),
            deadlines,
            reports: Reports::No,
            meta: None,
        };
        self.attempt(&call, deadlines).await.map(drop)
    }

    /// A legacy server is told once which log messages we want; a stateless one with each request.
    async fn request_log_messages(&self) {
        let Some(level) = &self.shared.options.log_level else {
            return;
        };
        let facts = self.server();
        if facts.era() == Era::Modern || !facts.capabilities.logging {
            return;
        }
        let params = serde_json::json!({ "level": level }).to_string();
        if let Err(error) = self.tell("logging/setLevel", &params).await {
            tracing::warn!(%error, "the server did not take the log level");
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn own(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.shared
            .tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .spawn(task);
    }
}

/// Renews the session when the server ends it between requests, so that its notifications keep
/// coming. Does not keep the session alive.
async fn keep_session(session: Weak<Shared>) {
    loop {
        let Some(shared) = session.upgrade() else {
            return;
        };
        let connection = Arc::clone(&shared.connection);
        let seen = shared.generation.load(Ordering::Acquire);
        drop(shared);
        connection.mux.session_ended().await;
        drop(connection);
        let Some(shared) = session.upgrade() else {
            return;
        };
        if let Err(error) = (Session { shared }).renew(seen, "initialize").await {
            tracing::warn!(%error, "the session was not renewed; the next request will try");
        }
    }
}
