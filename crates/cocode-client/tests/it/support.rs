//! What the tests share: targets, sessions, a handler that remembers, and waiting.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::{
    Answer, CallResult, ClientCapabilities, Deadlines, Elicitation, ElicitationAnswer,
    ElicitationMode, Handler, LinkError, Notification, Protocol, RawJson, RequestError,
    RequestOptions, Root, RpcError, Session, SessionOptions, Target, baseline_environment,
};
use cocode_testkit::{HttpServer, Message, StdioServer, WebSocketServer};
use tokio::sync::{Semaphore, watch};

/// How long a test waits for something that should come at once. Only a failing test reaches it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A cap for messages that a test can easily go over.
pub(crate) const SMALL_CAP: usize = 4096;

/// The environment in which servers find their tools.
pub(crate) fn environment() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    baseline_environment(std::env::vars_os())
}

pub(crate) fn stdio(server: &StdioServer) -> Target {
    cocode_client::stdio(server.program(), server.args(), environment())
}

pub(crate) fn http(server: &HttpServer) -> Target {
    cocode_client::http(server.url().parse().unwrap())
}

pub(crate) fn websocket(server: &WebSocketServer) -> Target {
    cocode_client::websocket(server.url().parse().unwrap())
}

/// The same target with [`SMALL_CAP`].
pub(crate) fn capped(mut target: Target) -> Target {
    match &mut target {
        Target::Stdio(stdio) => stdio.max_frame = SMALL_CAP,
        Target::Http(http) | Target::LegacySse(http) => http.max_frame = SMALL_CAP,
        Target::WebSocket(socket) => socket.max_frame = SMALL_CAP,
        Target::Unix(unix) => unix.max_frame = SMALL_CAP,
        other => panic!("no cap for {other:?}"),
    }
    target
}

pub(crate) fn speaking(protocol: Protocol) -> SessionOptions {
    SessionOptions {
        protocol,
        ..SessionOptions::default()
    }
}

pub(crate) fn handled_by(handler: &Arc<Witness>) -> SessionOptions {
    SessionOptions {
        handler: Arc::clone(handler) as Arc<dyn Handler>,
        ..SessionOptions::default()
    }
}

pub(crate) async fn connect(target: Target) -> Session {
    connect_with(target, SessionOptions::default()).await
}

pub(crate) async fn connect_with(target: Target, options: SessionOptions) -> Session {
    Session::connect(target, options).await.unwrap()
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

/// Options of a request that may take this long.
pub(crate) fn within(milliseconds: u64) -> RequestOptions {
    RequestOptions {
        deadlines: Some(Deadlines::fixed(Duration::from_millis(milliseconds))),
        ..RequestOptions::default()
    }
}

/// Calls the tool that scripted servers have.
pub(crate) async fn call(session: &Session) -> Result<CallResult, RequestError> {
    call_with(session, RequestOptions::default()).await
}

pub(crate) async fn call_with(
    session: &Session,
    options: RequestOptions,
) -> Result<CallResult, RequestError> {
    let arguments = raw(r#"{"word":"hello"}"#);
    session.call_tool("echo", Some(&arguments), options).await
}

/// The text of the first content block.
pub(crate) fn text_of(result: &CallResult) -> String {
    match result.content().first() {
        Some(cocode_client::Content::Text(text)) => text.clone(),
        other => panic!("no text but {other:?} in {}", result.raw),
    }
}

/// The session still serves a request that no rule is about.
pub(crate) async fn assert_works(session: &Session) {
    let resources = session.resources().await.unwrap();
    assert_eq!(resources.items.len(), 1);
}

/// Everything that the server has received so far. Its record comes by another way than its
/// answers, so a last message shows when it is complete.
pub(crate) async fn received(server: &StdioServer, session: &Session) -> Vec<Message> {
    let mark = "notifications/last";
    let marks = |all: &[Message]| all.iter().filter(|message| message.is(mark)).count();
    let before = marks(&server.received().all());
    session.notify(mark, None).await.unwrap();
    let received = server.received();
    received.wait_until(|all| marks(all) > before).await;
    let all = received.all();
    all.into_iter()
        .filter(|message| !message.is(mark))
        .collect()
}

/// How many messages of the method the server has received so far.
pub(crate) async fn count(server: &StdioServer, session: &Session, method: &str) -> usize {
    let received = received(server, session).await;
    received.iter().filter(|message| message.is(method)).count()
}

#[track_caller]
pub(crate) fn rpc_error<T: Debug>(outcome: Result<T, RequestError>) -> RpcError {
    match outcome {
        Err(RequestError::Rpc { error, .. }) => error,
        other => panic!("not an error of the server: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn link_error<T: Debug>(outcome: Result<T, RequestError>) -> LinkError {
    match outcome {
        Err(RequestError::Link { error, .. }) => error,
        other => panic!("not an error of the link: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_timeout<T: Debug>(outcome: Result<T, RequestError>) {
    match outcome {
        Err(RequestError::Timeout { .. }) => {}
        other => panic!("not timed out: {other:?}"),
    }
}

/// Waits for what should come soon, and says what did not.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, future).await;
    waited.unwrap_or_else(|_elapsed| panic!("waited in vain: {what}"))
}

/// A growing list that a test can wait on.
#[derive(Debug)]
pub(crate) struct Record<T>(watch::Sender<Vec<T>>);

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }
}

impl<T: Clone + Debug> Record<T> {
    pub(crate) fn push(&self, item: T) {
        self.0.send_modify(|items| items.push(item));
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.borrow().clone()
    }

    /// Waits until there are this many.
    pub(crate) async fn reaches(&self, count: usize) {
        let mut items = self.0.subscribe();
        let enough = items.wait_for(|items| items.len() >= count);
        let enough = tokio::time::timeout(PATIENCE, enough).await;
        assert!(enough.is_ok(), "only {:?}", self.all());
    }
}

/// A handler that remembers what it was told and asked, and answers as the test says.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) capabilities: ClientCapabilities,
    /// What elicitations are answered with.
    pub(crate) answer: ElicitationAnswer,
    /// Elicitations and samplings wait for a permit.
    pub(crate) permits: Semaphore,
    /// Notifications: method and params.
    pub(crate) heard: Record<(String, String)>,
    /// Questions: method and what they are about.
    pub(crate) asked: Record<(String, String)>,
    /// Questions whose answer was given up.
    pub(crate) aborted: Record<String>,
}

impl Witness {
    /// Offers everything, and accepts.
    pub(crate) fn willing() -> Self {
        Self {
            capabilities: ClientCapabilities {
                elicitation_form: true,
                elicitation_url: true,
                sampling: true,
                roots: true,
                others: Vec::new(),
            },
            answer: ElicitationAnswer::Accept(Some(raw(r#"{"name":"Ada"}"#))),
            permits: Semaphore::new(Semaphore::MAX_PERMITS),
            heard: Record::default(),
            asked: Record::default(),
            aborted: Record::default(),
        }
    }

    /// As [`Self::willing`], but every answer waits until the test adds a permit.
    pub(crate) fn hesitant() -> Self {
        Self {
            permits: Semaphore::new(0),
            ..Self::willing()
        }
    }

    /// Waits until a notification of the method has come, and gives its params.
    pub(crate) async fn hears(&self, method: &str) -> String {
        let mut heard = self.heard.0.subscribe();
        let found = heard.wait_for(|heard| heard.iter().any(|(own, _)| own == method));
        let found = tokio::time::timeout(PATIENCE, found).await;
        let Ok(Ok(heard)) = found else {
            panic!("no {method} but {:?}", self.heard.all());
        };
        let first = heard.iter().find(|(own, _)| own == method);
        first.unwrap().1.clone()
    }

    async fn think(&self, about: &str) {
        let mut giving_up = GivingUp {
            record: &self.aborted,
            about: Some(about.to_owned()),
        };
        self.permits.acquire().await.unwrap().forget();
        giving_up.about = None;
    }
}

/// Notes when a thought is not finished.
struct GivingUp<'a> {
    record: &'a Record<String>,
    about: Option<String>,
}

impl Drop for GivingUp<'_> {
    fn drop(&mut self) {
        if let Some(about) = self.about.take() {
            self.record.push(about);
        }
    }
}

impl Handler for Witness {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.clone()
    }

    fn notified(&self, notification: &Notification) {
        let params = notification.params.as_ref().map(RawJson::to_string);
        self.heard
            .push((notification.method.clone(), params.unwrap_or_default()));
    }

    fn elicit(&self, request: Elicitation) -> Answer<'_, ElicitationAnswer> {
        Box::pin(async move {
            let about = match &request.mode {
                ElicitationMode::Url(url) => format!("{}: {url}", request.message),
                ElicitationMode::Form(schema) => format!("{}: {schema}", request.message),
                other => panic!("a mode of which the tests know nothing: {other:?}"),
            };
            self.asked.push(("elicitation/create".to_owned(), about));
            self.think("elicitation/create").await;
            self.answer.clone()
        })
    }

    fn sample(&self, params: RawJson) -> Answer<'_, Result<RawJson, RpcError>> {
        Box::pin(async move {
            let method = "sampling/createMessage";
            self.asked.push((method.to_owned(), params.to_string()));
            self.think(method).await;
            Ok(raw(
                r#"{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}"#,
            ))
        })
    }

    fn roots(&self) -> Answer<'_, Result<Vec<Root>, RpcError>> {
        Box::pin(async move {
            self.asked.push(("roots/list".to_owned(), String::new()));
            Ok(vec![Root {
                uri: "file:///projects/ada".to_owned(),
                name: Some("home".to_owned()),
            }])
        })
    }
}

/// Resident memory of this process in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn resident_memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
