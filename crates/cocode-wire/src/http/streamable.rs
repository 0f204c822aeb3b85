//! The streamable HTTP link of both eras: what it knows, and how messages leave it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

use super::client::{HttpClient, HttpSetupError, debug_target};
use super::exchange;
use super::posts::Posts;
use super::sender::Sender;
use crate::credentials::Credentials;
use crate::error::LinkError;
use crate::inbox::Inbox;
use crate::limits::GOODBYE_TIMEOUT;

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Where and how to reach a server over HTTP.
#[derive(Clone)]
pub struct HttpTarget {
    /// The MCP endpoint.
    pub url: Url,
    /// Headers for every request. Those that the transport sets itself are not overridden.
    pub headers: HeaderMap,
    /// What lets us in, beside the headers.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// The shared client.
    pub client: HttpClient,
    /// The cap for one message.
    pub max_frame: usize,
}

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        debug_target(formatter, "HttpTarget", &self.url, &self.headers)
    }
}

/// One server over streamable HTTP. Each request is a POST of its own, carried by a task that this
/// link owns; dropping the link ends them.
#[derive(Debug)]
pub(crate) struct StreamableLink {
    pub(super) shared: Arc<Shared>,
    tasks: Mutex<JoinSet<()>>,
    posts: Posts,
    listening: Mutex<Option<AbortHandle>>,
    runtime: Handle,
}

pub(super) struct Shared {
    pub(super) sender: Sender,
    pub(super) url: Url,
    headers: HeaderMap,
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) max_frame: usize,
    session: Mutex<SessionState>,
    /// The request that asks for a new session.
    opening: Mutex<Option<u64>>,
    exchanges: Mutex<HashMap<u64, AbortHandle>>,
}

#[derive(Clone, Default)]
pub(super) struct SessionState {
    pub(super) id: Option<HeaderValue>,
    pub(super) protocol: Option<HeaderValue>,
    /// Whether this server's streams can be resumed, which only those of the older era can.
    pub(super) resumable: bool,
}

impl StreamableLink {
    pub(crate) fn new(target: &HttpTarget, inbox: Arc<dyn Inbox>) -> Result<Self, HttpSetupError> {
        let shared = Shared {
            sender: Sender::new(&target.client, &target.url, target.credentials.clone())?,
            url: target.url.clone(),
            headers: target.headers.clone(),
            inbox,
            max_frame: target.max_frame,
            session: Mutex::default(),
            opening: Mutex::default(),
            exchanges: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            tasks: Mutex::default(),
            posts: Posts::new(),
            listening: Mutex::default(),
            runtime: Handle::current(),
        })
    }

    /// Starts the exchange of one request; its answer or failure goes to the inbox.
    pub(crate) fn send_request(&self, id: u64, headers: HeaderMap, body: Bytes) {
        let shared = Arc::clone(&self.shared);
        let mut exchanges = lock(&self.shared.exchanges);
        let task = self.spawn(async move {
            if let Err(error) = exchange::request(&shared, id, headers, body).await {
                shared.inbox.failed(id, error);
            }
            lock(&shared.exchanges).remove(&id);
        });
        // The lock is held since before the task began, so it cannot have ended unseen.
        exchanges.insert(id, task);
    }

    /// Posts a notification or an answer and waits until the server has taken it.
    pub(crate) async fn send_message(
        &self,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(), LinkError> {
        exchange::message(&self.shared, headers, body).await
    }

    /// Posts a message without anybody waiting for it, unless too many are under way. Needs no
    /// runtime around it.
    pub(crate) fn post(&self, headers: HeaderMap, body: Bytes) -> bool {
        let shared = Arc::clone(&self.shared);
        self.posts.start(async move {
            let sent = exchange::message(&shared, headers, body);
            match tokio::time::timeout(GOODBYE_TIMEOUT, sent).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "message not taken"),
                Err(_elapsed) => tracing::debug!("message not taken in time"),
            }
        })
    }

    /// Ends the exchange of a request whose answer nobody wants any more.
    pub(crate) fn abandon(&self, id: u64) {
        if let Some(task) = lock(&self.shared.exchanges).remove(&id) {
            task.abort();
        }
    }

    /// The revision that every further message names in its header.
    pub(crate) fn set_protocol(&self, version: &str, resumable: bool) {
        let mut session = lock(&self.shared.session);
        session.protocol = HeaderValue::from_str(version).ok();
        session.resumable = resumable;
    }

    /// Request `id` will ask for a new session. Until its answer, all others name the old one.
    pub(crate) fn opens_session(&self, id: u64) {
        *lock(&self.shared.opening) = Some(id);
    }

    /// Opens the stream of unsolicited messages, and keeps it open. One of an older session ends.
    pub(crate) fn listen(&self) {
        let shared = Arc::clone(&self.shared);
        let task = self.spawn(async move {
            super::listen::keep_listening(&shared).await;
        });
        if let Some(older) = lock(&self.listening).replace(task) {
            older.abort();
        }
    }

    /// Ends all exchanges and says goodbye to the server's session.
    pub(crate) async fn close(&self) {
        lock(&self.tasks).abort_all();
        lock(&self.shared.exchanges).clear();
        self.posts.finish().await;
        let session = lock(&self.shared.session).clone();
        if session.id.is_none() {
            return;
        }
        let headers = self.shared.request_headers(&session);
        let (sender, url) = (&self.shared.sender, &self.shared.url);
        let goodbye = sender.send(Method::DELETE, url, headers, None);
        // Many servers refuse to be told; the session then ends by itself.
        match tokio::time::timeout(GOODBYE_TIMEOUT, goodbye).await {
            Ok(Ok(answer)) => tracing::debug!(status = %answer.status(), "session deleted"),
            Ok(Err(error)) => tracing::debug!(%error, "session not deleted"),
            Err(_elapsed) => tracing::debug!("session not deleted in time"),
        }
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(work, &self.runtime)
    }
}

impl Shared {
    pub(super) fn session(&self) -> SessionState {
        lock(&self.session).clone()
    }

    /// Whether request `id` asks for a new session.
    pub(super) fn is_opening(&self, id: u64) -> bool {
        lock(&self.opening)
            .take_if(|opening| *opening == id)
            .is_some()
    }

    /// Remembers the session that a server assigned, or that it assigned none.
    pub(super) fn begin_session(&self, headers: &HeaderMap) {
        lock(&self.session).id = headers.get(SESSION_ID).cloned();
    }

    /// The user's headers, overridden by those of the session.
    pub(super) fn request_headers(&self, session: &SessionState) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(id) = &session.id {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(protocol) = &session.protocol {
            headers.insert(PROTOCOL_VERSION, protocol.clone());
        }
        headers
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        debug_target(formatter, "Shared", &self.url, &self.headers)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
