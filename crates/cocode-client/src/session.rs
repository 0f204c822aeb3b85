//! One client session with one server: requests out, answers in, and what keeps it going.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cocode_wire::{Closed, Inbox as _, LinkError, RawJson, Target, code};
use http::HeaderMap;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;

use crate::clock::Deadlines;
use crate::connect::{Established, establish};
use crate::connection::{Cancel, Connection, Exchange, Reports};
use crate::error::{ConnectError, RequestError};
use crate::handshake::{initialize, modern_headers, modern_meta, supported_in};
use crate::listen::Listener;
use crate::options::SessionOptions;
use crate::progress::OnProgress;
use crate::protocol::{Era, Revision};
use crate::server::ServerFacts;
use crate::tool_headers::ToolHeaders;

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

/// How one request differs from the usual.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// How long it may take, instead of the session's own limits.
    pub deadlines: Option<Deadlines>,
    /// Is told about reports of progress.
    pub on_progress: Option<OnProgress>,
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
    pub(crate) progress: Reports,
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
        session.begin_listening();
        session.request_log_messages().await;
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

    /// Resolves when the connection has ended, with the reason.
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
            progress: options
                .on_progress
                .map_or(Reports::No, |report| Reports::Yes(Some(report))),
        };
        self.call(&call).await
    }

    /// Tells the server something.
    pub async fn notify(&self, method: &str, params: Option<&RawJson>) -> Result<(), RequestError> {
        let headers = self.mirror(method, None);
        let params = params.map(RawJson::as_bytes);
        let sending = self.shared.connection.notify(method, params, headers);
        let after = self.shared.options.timeouts.request;
        match tokio::time::timeout(after, sending).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(RequestError::Timeout {
                method: method.to_owned(),
                after,
            }),
        }
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
        let generation = self.shared.generation.load(Ordering::Acquire);
        match self.attempt(call).await {
            Err(RequestError::Link {
                error: LinkError::SessionGone,
                ..
            }) => {
                // Rare, and kept out of the size of every other call.
                Box::pin(self.renew_for(generation, call)).await?;
                self.attempt(call).await
            }
            Err(RequestError::Rpc { method, error })
                if error.code == code::UNSUPPORTED_PROTOCOL_VERSION =>
            {
                let supported = supported_in(&error).unwrap_or_default();
                let ours = self.shared.facts.revision;
                if Revision::newest_among(&supported, Era::Modern) == Some(ours) {
                    return self.attempt(call).await;
                }
                Err(RequestError::Rpc { method, error })
            }
            other => other,
        }
    }

    async fn attempt(&self, call: &Call<'_>) -> Result<RawJson, RequestError> {
        let shared = &self.shared;
        let method = call.method;
        let _place = match shared.places.try_acquire() {
            Ok(place) => place,
            Err(_none_left) => self.place(call).await?,
        };
        let mut headers = self.mirror(method, call.name);
        if !call.headers.is_empty() {
            headers.extend(call.headers.clone());
        }
        let modern = shared.facts.era() == Era::Modern;
        let cancel = if modern && shared.connection.link.has_request_streams() {
            Cancel::EndStream
        } else {
            Cancel::Notify
        };
        let exchange = Exchange {
            method,
            params: call.params,
            meta: Cow::Borrowed(&shared.meta),
            headers,
            deadlines: call.deadlines,
            progress: call.progress.clone(),
            cancel,
        };
        let frame = shared.connection.exchange(exchange).await?;
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

    /// A place among the requests in flight. Waiting for one counts like waiting for an answer.
    async fn place(&self, call: &Call<'_>) -> Result<SemaphorePermit<'_>, RequestError> {
        let method = call.method.to_owned();
        let after = call.deadlines.idle.min(call.deadlines.total);
        match tokio::time::timeout(after, self.shared.places.acquire()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_never_closed)) => Err(RequestError::Closed {
                method,
                reason: Closed::ByUs,
            }),
            Err(_elapsed) => Err(RequestError::Timeout { method, after }),
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
    async fn renew_for(&self, seen: u64, call: &Call<'_>) -> Result<(), RequestError> {
        let after = call.deadlines.idle.min(call.deadlines.total);
        let renewed = tokio::time::timeout(after, self.renew(seen, call.method)).await;
        renewed.unwrap_or_else(|_elapsed| {
            let method = call.method.to_owned();
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

    /// A legacy server is told once which log messages we want; a stateless one with each request.
    async fn request_log_messages(&self) {
        let Some(level) = &self.shared.options.log_level else {
            return;
        };
        let facts = self.server();
        if facts.era() == Era::Modern || !facts.capabilities.logging {
            return;
        }
        let params = RawJson::of(&serde_json::json!({ "level": level }));
        let Ok(params) = params else { return };
        // A server that does not care for this must not hold up the session.
        let deadlines = Some(Deadlines::fixed(self.shared.options.timeouts.probe));
        let options = RequestOptions {
            deadlines,
            on_progress: None,
        };
        let set = self.request("logging/setLevel", Some(&params), options);
        if let Err(error) = set.await {
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

impl std::fmt::Debug for RequestOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            deadlines,
            on_progress,
        } = self;
        formatter
            .debug_struct("RequestOptions")
            .field("deadlines", deadlines)
            .field("on_progress", &on_progress.is_some())
            .finish()
    }
}
