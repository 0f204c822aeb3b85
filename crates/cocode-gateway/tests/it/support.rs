//! A gateway with one server, clients that talk to it, and people who answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cocode_client::{
    Answer, CallResult, ClientCapabilities, Content, Elicitation, ElicitationAnswer, Handler,
    ManagerOptions, Notification, Protocol, RawJson, RequestError, RequestOptions, Root, RpcError,
    ServerSpec, Session, SessionOptions, Target, memory_pair,
};
use cocode_gateway::{Gateway, View, ViewOptions};
use cocode_testkit::{HttpServer, Script, StdioServer};
use cocode_wire::Frame;
use cocode_wire::serve::{Asked, Conversation, Endpoint, LineOptions, Sink, serve_lines};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The cap for messages in these tests.
const MAX_FRAME: usize = 64 * 1024 * 1024;

/// A scripted server, however it is reached.
pub(crate) enum Server {
    Stdio(StdioServer),
    Http(HttpServer),
}

impl Server {
    /// The same script, as a program and over HTTP.
    pub(crate) fn both(script: &Script) -> [Self; 2] {
        [
            Self::Stdio(script.clone().stdio()),
            Self::Http(script.clone().http()),
        ]
    }

    pub(crate) fn spec(&self) -> ServerSpec {
        self.spec_as("upstream")
    }

    pub(crate) fn spec_as(&self, name: &str) -> ServerSpec {
        let name = name.parse().unwrap();
        match self {
            Self::Stdio(server) => {
                ServerSpec::program(name, server.program().to_str().unwrap(), server.args())
            }
            Self::Http(server) => ServerSpec::remote(name, server.url()),
        }
    }
}

/// A gateway with one server.
pub(crate) struct Rig {
    server: Server,
    pub(crate) gateway: Gateway,
    pub(crate) view: View,
    visitors: Visitors,
}

impl Rig {
    pub(crate) async fn new(server: Server) -> Self {
        let spec = server.spec();
        Self::with(server, spec, ViewOptions::default()).await
    }

    pub(crate) async fn with(server: Server, spec: ServerSpec, options: ViewOptions) -> Self {
        let gateway = Gateway::new();
        let view = gateway.view(ViewOptions {
            manager: ManagerOptions::with_environment(std::env::vars_os()),
            ..options
        });
        view.apply([spec]).await;
        Self {
            server,
            gateway,
            view,
            visitors: Visitors::default(),
        }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn endpoint(&self) -> Arc<dyn Endpoint> {
        self.view.server("upstream").unwrap()
    }

    /// A client that speaks this, with this person.
    pub(crate) async fn client(&self, protocol: Protocol, person: &Arc<Person>) -> Session {
        self.visitors
            .client(self.endpoint(), protocol, person)
            .await
    }

    /// A client whose every byte the test writes itself.
    pub(crate) fn raw(&self) -> RawClient {
        self.raw_at(self.endpoint())
    }

    /// The same, at another endpoint.
    pub(crate) fn raw_at(&self, endpoint: Arc<dyn Endpoint>) -> RawClient {
        self.visitors.raw(endpoint)
    }
}

/// Those who talk to an endpoint, for as long as this is there.
#[derive(Default)]
pub(crate) struct Visitors(Mutex<JoinSet<()>>);

impl Visitors {
    /// A client that speaks this, with this person.
    pub(crate) async fn client(
        &self,
        endpoint: Arc<dyn Endpoint>,
        protocol: Protocol,
        person: &Arc<Person>,
    ) -> Session {
        let handler: Arc<Person> = Arc::clone(person);
        let options = SessionOptions {
            protocol,
            handler,
            ..SessionOptions::default()
        };
        let target = self.serve(endpoint);
        Session::connect(target, options).await.unwrap()
    }

    fn serve(&self, endpoint: Arc<dyn Endpoint>) -> Target {
        let (target, stream) = memory_pair(MAX_FRAME);
        let (source, sink) = tokio::io::split(stream);
        let options = LineOptions {
            max_frame: MAX_FRAME,
            ..LineOptions::default()
        };
        self.0.lock().unwrap().spawn(async move {
            serve_lines(source, sink, &*endpoint, options, std::future::pending()).await;
        });
        target
    }

    /// A client whose every byte the test writes itself.
    pub(crate) fn raw(&self, endpoint: Arc<dyn Endpoint>) -> RawClient {
        let (near, far) = tokio::io::duplex(1024 * 1024);
        let (source, sink) = tokio::io::split(far);
        self.0.lock().unwrap().spawn(async move {
            let options = LineOptions::default();
            serve_lines(source, sink, &*endpoint, options, std::future::pending()).await;
        });
        let (read, write) = tokio::io::split(near);
        RawClient {
            lines: BufReader::new(read).lines(),
            write,
        }
    }
}

/// A client that sends and reads lines.
pub(crate) struct RawClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl RawClient {
    pub(crate) async fn send(&mut self, line: &str) {
        self.write.write_all(line.as_bytes()).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn line(&mut self) -> String {
        self.lines.next_line().await.unwrap().expect("a line")
    }

    pub(crate) async fn json(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.line().await).unwrap()
    }

    /// A request of the stateless era, and its answer.
    pub(crate) async fn modern(
        &mut self,
        id: u64,
        method: &str,
        params: serde_json::Value,
    ) -> serde_json::Value {
        self.modern_with(id, method, params, serde_json::json!({}))
            .await
    }

    /// The same, with more in its `_meta`.
    pub(crate) async fn modern_with(
        &mut self,
        id: u64,
        method: &str,
        params: serde_json::Value,
        meta: serde_json::Value,
    ) -> serde_json::Value {
        self.send(&modern(id, method, params, &meta)).await;
        self.json().await
    }
}

/// A request of the stateless era.
fn modern(
    id: u64,
    method: &str,
    mut params: serde_json::Value,
    meta: &serde_json::Value,
) -> String {
    params["_meta"] = serde_json::json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": { "form": {}, "url": {} },
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        },
    });
    for (key, value) in meta.as_object().unwrap() {
        params["_meta"][key] = value.clone();
    }
    let request = serde_json::json!({
        "jsonrpc": "2.0", "id": id, "method": method, "params": params,
    });
    request.to_string()
}

/// The answer to a request that comes by no connection that stays, as it is over HTTP.
pub(crate) async fn alone(
    endpoint: &dyn Endpoint,
    method: &str,
    params: serde_json::Value,
) -> serde_json::Value {
    answer(endpoint.stateless(), method, params).await
}

/// The same, where it names a session.
pub(crate) async fn alone_in_session(
    endpoint: &dyn Endpoint,
    method: &str,
    params: serde_json::Value,
) -> serde_json::Value {
    answer(endpoint.converse(Arc::new(Nowhere)), method, params).await
}

async fn answer(
    conversation: Arc<dyn Conversation>,
    method: &str,
    params: serde_json::Value,
) -> serde_json::Value {
    let mut headers = http::HeaderMap::new();
    headers.insert("mcp-method", method.parse().unwrap());
    let asked = Asked {
        frame: Frame::parse(modern(1, method, params, &serde_json::json!({})).into()).unwrap(),
        headers,
        stream: Arc::new(Nowhere),
    };
    let answer = conversation.request(asked).await;
    serde_json::from_slice(&answer.body).unwrap()
}

struct Nowhere;

impl Sink for Nowhere {
    fn send(&self, _message: bytes::Bytes) -> bool {
        false
    }
}

/// Somebody who answers, and hears.
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) asked: Mutex<Vec<String>>,
    was_asked: tokio::sync::Notify,
    pub(crate) heard: Mutex<Vec<String>>,
    more: Notify,
}

impl Person {
    pub(crate) fn willing(name: &str) -> Arc<Self> {
        Self::able(
            name,
            ClientCapabilities {
                elicitation_form: true,
                elicitation_url: true,
                sampling: true,
                roots: true,
                others: Vec::new(),
            },
        )
    }

    pub(crate) fn able(name: &str, capabilities: ClientCapabilities) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            capabilities,
            asked: Mutex::default(),
            was_asked: tokio::sync::Notify::new(),
            heard: Mutex::default(),
            more: Notify::new(),
        })
    }

    /// Waits until something was heard in which there is this.
    pub(crate) async fn hears(&self, what: &str) {
        loop {
            let more = self.more.notified();
            if self
                .heard
                .lock()
                .unwrap()
                .iter()
                .any(|heard| heard.contains(what))
            {
                return;
            }
            more.await;
        }
    }

    /// Waits for the next question, if none was asked yet that nobody waited for.
    pub(crate) async fn wait_until_asked(&self) {
        self.was_asked.notified().await;
    }

    fn note(&self, what: impl Into<String>) {
        self.asked.lock().unwrap().push(what.into());
        self.was_asked.notify_one();
    }
}

impl Handler for Person {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.clone()
    }

    fn notified(&self, notification: &Notification) {
        let params = notification.params.as_ref().map(RawJson::as_str);
        let heard = format!("{} {}", notification.method, params.unwrap_or_default());
        self.heard.lock().unwrap().push(heard);
        self.more.notify_waiters();
    }

    fn elicit(&self, request: Elicitation) -> Answer<'_, ElicitationAnswer> {
        self.note(request.message);
        let content = RawJson::of(&BTreeMap::from([("name", &self.name)])).unwrap();
        Box::pin(async move { ElicitationAnswer::Accept(Some(content)) })
    }

    fn sample(&self, params: RawJson) -> Answer<'_, Result<RawJson, RpcError>> {
        self.note(params.as_str());
        let text = serde_json::json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": self.name },
        });
        Box::pin(async move { Ok(RawJson::of(&text).unwrap()) })
    }

    fn roots(&self) -> Answer<'_, Result<Vec<Root>, RpcError>> {
        self.note("roots");
        let root = Root {
            uri: format!("file:///{}", self.name),
            name: None,
        };
        Box::pin(async move { Ok(vec![root]) })
    }
}

/// Calls the tool of scripted servers.
pub(crate) async fn call(session: &Session) -> Result<CallResult, RequestError> {
    let arguments = RawJson::parse(r#"{"word":"hello"}"#).unwrap();
    let options = RequestOptions::default();
    session.call_tool("echo", Some(&arguments), options).await
}

pub(crate) fn text_of(result: &CallResult) -> String {
    match &result.content()[..] {
        [Content::Text(text)] => text.clone(),
        other => panic!("one text, not {other:?}"),
    }
}
