//! A scripted endpoint: answers on demand, and tells what it sees.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use cocode_wire::serve::{
    Admission, Admitting, Answer, Asked, Conversation, Door, Endpoint, Guest, HttpLimits,
    HttpServer, HttpServerOptions, Page, PageBody, Serving, SessionStore, Sink, Site, Visit,
};
use cocode_wire::{Frame, RawJson, RpcError, encode};
use futures_util::stream;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

/// What the endpoint has seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A conversation began, at the endpoint of this name.
    Converse(String),
    /// A request of this method came.
    Request(String),
    /// Such a request that had to wait was answered.
    Waited(String),
    /// The work on such a request was dropped.
    Dropped(String),
    Notification(String),
    Response(String),
    Ended,
}

/// A running server and the test's hands on it.
pub(super) struct Server {
    pub(super) port: u16,
    pub(super) seen: mpsc::Receiver<Seen>,
    pub(super) door: Door,
    gate: watch::Sender<u64>,
    outlets: Outlets,
    shutdown: Option<oneshot::Sender<()>>,
    tasks: JoinSet<()>,
}

type Outlets = Arc<Mutex<Vec<Arc<dyn Sink>>>>;

struct Pages {
    seen: mpsc::Sender<Seen>,
    gate: watch::Receiver<u64>,
    outlets: Outlets,
    /// Whether everybody has to say who they are.
    is_guarded: bool,
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(super) async fn limited(change: impl FnOnce(&mut HttpLimits)) -> Self {
        Self::with(|options| change(&mut options.limits)).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut HttpServerOptions)) -> Self {
        Self::begin(change, false).await
    }

    /// One that keeps its sessions there.
    pub(super) async fn keeping(store: Arc<dyn SessionStore>) -> Self {
        Self::with(|options| options.sessions = Some(store)).await
    }

    /// The same, where everybody has to say who they are as in [`Self::guarded`].
    pub(super) async fn guarded_keeping(store: Arc<dyn SessionStore>) -> Self {
        Self::begin(|options| options.sessions = Some(store), true).await
    }

    /// One that lets in who says `Authorization: NAME`, who are then guests of that name: at once,
    /// or later if that begins with `late-`, and for [`BRIEFLY`] if with `brief-`. Who says
    /// `NAME/CREDENTIAL` comes with that.
    pub(super) async fn guarded() -> Self {
        Self::guarded_with(|_| {}).await
    }

    /// The same with other limits.
    pub(super) async fn guarded_with(limit: impl FnOnce(&mut HttpLimits)) -> Self {
        let page = "https://page.example".to_owned();
        let change = |options: &mut HttpServerOptions| {
            options.allowed_origins = vec![page];
            limit(&mut options.limits);
        };
        Self::begin(change, true).await
    }

    #[expect(clippy::unused_async, reason = "a listener wants a runtime around it")]
    async fn begin(change: impl FnOnce(&mut HttpServerOptions), is_guarded: bool) -> Self {
        let (sender, seen) = mpsc::channel(10_000);
        let (gate, waiting) = watch::channel(0);
        let outlets = Outlets::default();
        let site = Arc::new(Pages {
            seen: sender,
            gate: waiting,
            outlets: Arc::clone(&outlets),
            is_guarded,
        });
        let mut options = HttpServerOptions::new(([127, 0, 0, 1], 0).into());
        change(&mut options);
        let server = HttpServer::bind(options, site).expect("a free port");
        let port = server.local_addr().port();
        let door = server.door();
        let (shutdown, ended) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let ended = async {
                // A test that is over ends the server by dropping it.
                if ended.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            server.serve(ended).await;
        });
        Self {
            port,
            seen,
            door,
            gate,
            outlets,
            shutdown: Some(shutdown),
            tasks,
        }
    }

    pub(super) async fn next(&mut self) -> Seen {
        self.seen.recv().await.expect("the endpoint lives")
    }

    /// Waits until the endpoint sees that, and passes over everything before.
    pub(super) async fn until(&mut self, wanted: &Seen) {
        while self.next().await != *wanted {}
    }

    /// Lets requests that wait go on one step.
    pub(super) fn open_gate(&self) {
        self.gate.send_modify(|steps| *steps += 1);
    }

    /// The way to the client that came last, outside of its requests.
    pub(super) fn outlet(&self) -> Arc<dyn Sink> {
        let outlets = self.outlets.lock().expect("no panic");
        Arc::clone(outlets.last().expect("a client"))
    }

    pub(super) fn shut_down(&mut self) {
        let shutdown = self.shutdown.take().expect("once");
        shutdown.send(()).expect("a server");
    }

    /// Waits for the end of the server.
    pub(super) async fn ended(mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("no panic");
        }
    }
}

/// How long guests whose name begins with `brief-` may stay: less than the time between comments
/// and between pings.
pub(super) const BRIEFLY: Duration = Duration::from_secs(40);

/// Tells of every step of the gate.
fn steps_of(gate: watch::Receiver<u64>, told: Unanswered) -> impl stream::Stream<Item = Bytes> {
    stream::unfold(
        (gate, told, true),
        |(mut gate, told, is_first)| async move {
            if !is_first {
                gate.changed().await.ok()?;
            }
            let event = format!("data: {}\n\n", *gate.borrow_and_update());
            Some((Bytes::from(event), (gate, told, false)))
        },
    )
}

impl Site for Pages {
    fn admit<'a>(&'a self, visit: Visit<'a>) -> Admitting<'a> {
        if !self.is_guarded {
            return Admitting::Now(Admission::Welcome(None));
        }
        let said = visit.headers.get("authorization");
        let Some(name) = said.and_then(|name| name.to_str().ok()) else {
            let mut response = Response::new(Bytes::from_static(b"who are you?"));
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            let headers = response.headers_mut();
            headers.insert("www-authenticate", "Bearer".parse().expect("a header"));
            return Admitting::Now(Admission::Refused(Box::new(response)));
        };
        let (name, credential) = match name.split_once('/') {
            Some((name, credential)) => (name, Some(credential)),
            None => (name, None),
        };
        let mut guest = Guest::new(name);
        if let Some(credential) = credential {
            guest = guest.by(credential);
        }
        if name.starts_with("brief-") {
            guest = guest.until(SystemTime::now() + BRIEFLY);
        }
        let admission = Admission::Welcome(Some(guest));
        if name.starts_with("late-") {
            return Admitting::Later(Box::pin(async move {
                tokio::task::yield_now().await;
                admission
            }));
        }
        Admitting::Now(admission)
    }

    fn endpoint_for(
        &self,
        name: Option<&str>,
        visit: &Visit<'_>,
    ) -> Result<Option<Arc<dyn Endpoint>>, String> {
        assert_eq!(visit.guest.is_some(), self.is_guarded);
        Ok(self.endpoint(name))
    }

    fn names_for(&self, visit: &Visit<'_>) -> Vec<String> {
        visit
            .guest
            .map(|guest| guest.id().to_owned())
            .into_iter()
            .collect()
    }

    fn endpoint(&self, name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        let name = name.unwrap_or("all");
        if !matches!(name, "all" | "a" | "b") {
            return None;
        }
        Some(Arc::new(Place {
            name: name.to_owned(),
            seen: self.seen.clone(),
            gate: self.gate.clone(),
            outlets: Arc::clone(&self.outlets),
        }))
    }

    /// Guests whose name begins with `few-` have only two seats.
    fn seats(&self, guest: &Guest) -> usize {
        if guest.id().starts_with("few-") {
            2
        } else {
            usize::MAX
        }
    }

    /// Nothing at `/unwanted`, and little at `/small`.
    fn page_body(&self, visit: &Visit<'_>) -> usize {
        match visit.path {
            "/unwanted" => 0,
            "/small" => 1_000,
            _ => usize::MAX,
        }
    }

    fn page(&self, request: Request<Bytes>) -> Page<'_> {
        Box::pin(async move {
            let path = request.uri().path();
            if path == "/endless" {
                let gate = self.gate.clone();
                let told = Unanswered(Some((self.seen.clone(), "page".to_owned())));
                return Response::new(PageBody::events(steps_of(gate, told)));
            }
            if path == "/flood" {
                let told = Unanswered(Some((self.seen.clone(), "page".to_owned())));
                let pieces = stream::repeat_with(move || {
                    let _told = &told;
                    Bytes::from_static(&[b' '; 4096])
                });
                return Response::new(PageBody::events(pieces));
            }
            if matches!(path, "/unwanted" | "/small") {
                let length = request.body().len();
                return Response::new(PageBody::from(format!("{length} bytes")));
            }
            let guest = request.extensions().get::<Guest>();
            let name = guest.map_or("", |guest| guest.id());
            Response::new(PageBody::from(format!("page {path}{name}")))
        })
    }
}

struct Place {
    name: String,
    seen: mpsc::Sender<Seen>,
    gate: watch::Receiver<u64>,
    outlets: Outlets,
}

impl Endpoint for Place {
    fn converse(&self, outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        self.outlets.lock().expect("no panic").push(outlet);
        tell(&self.seen, Seen::Converse(self.name.clone()));
        self.stateless()
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        Arc::new(Talk {
            name: self.name.clone(),
            greeting: Mutex::default(),
            seen: self.seen.clone(),
            gate: self.gate.clone(),
        })
    }
}

/// A test that has ended hears nothing.
fn tell(seen: &mpsc::Sender<Seen>, what: Seen) {
    drop(seen.try_send(what));
}

struct Talk {
    name: String,
    /// The parameters of `initialize`.
    greeting: Mutex<Value>,
    seen: mpsc::Sender<Seen>,
    gate: watch::Receiver<u64>,
}

/// Tells if the work on a request is dropped.
struct Unanswered(Option<(mpsc::Sender<Seen>, String)>);

impl Unanswered {
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some((seen, method)) = self.0.take() {
            tell(&seen, Seen::Dropped(method));
        }
    }
}

impl Conversation for Talk {
    fn request(self: Arc<Self>, asked: Asked) -> Serving {
        let method = asked.frame.method().to_owned();
        let mut steps = Steps {
            gate: self.gate.clone(),
            taken: *self.gate.borrow(),
        };
        tell(&self.seen, Seen::Request(method.clone()));
        let unanswered = Unanswered(Some((self.seen.clone(), method)));
        Box::pin(async move {
            let answer = self.answer(&asked, &mut steps).await;
            unanswered.answered();
            answer
        })
    }

    fn notification(&self, frame: Frame) {
        tell(&self.seen, Seen::Notification(frame.method().to_owned()));
    }

    fn response(&self, frame: Frame) {
        let text = String::from_utf8(frame.bytes().to_vec()).expect("UTF-8");
        tell(&self.seen, Seen::Response(text));
    }

    fn ended(&self) {
        tell(&self.seen, Seen::Ended);
    }
}

impl Talk {
    async fn answer(&self, asked: &Asked, steps: &mut Steps) -> Answer {
        let id = asked.frame.id().expect("a request has an id");
        let params = asked.frame.params();
        let params = params.unwrap_or_else(|| RawJson::parse("{}").expect("JSON"));
        let value: Value = params.decode().expect("JSON");
        let result = |value: Value| Answer::result(&id, &RawJson::of(&value).expect("JSON"));
        let say = |text: &str| {
            let params = json!({ "text": text }).to_string();
            let message = encode::notification("said", Some(params.as_bytes()));
            asked.stream.send(message.into())
        };
        match asked.frame.method() {
            "initialize" => {
                if value.get("refuse").is_some() {
                    return Answer::error(&id, &RpcError::new(-32602, "refused"));
                }
                if value.get("say").is_some() {
                    assert!(say("before"));
                }
                if value.get("wait").is_some() {
                    steps.next().await;
                }
                // A session that moves has an id already.
                let is_moved = asked.headers.contains_key("mcp-session-id");
                if is_moved && value.get("slow").is_some() {
                    steps.next().await;
                }
                if is_moved && value.get("once").is_some() {
                    return Answer::error(&id, &RpcError::new(-32602, "refused"));
                }
                self.greeting.lock().expect("no panic").clone_from(&value);
                result(json!({
                    "protocolVersion": value["protocolVersion"],
                    "at": self.name,
                    "capabilities": value["capable"],
                }))
            }
            "greeting" => result(self.greeting.lock().expect("no panic").clone()),
            // How it says it and what it does then.
            "say" => {
                let n_steps = value["steps"].as_u64().unwrap_or(0);
                assert!(say("first"));
                for step in 0..n_steps {
                    steps.next().await;
                    say(&format!("step {step}"));
                }
                result(value)
            }
            "wait" => {
                steps.next().await;
                tell(&self.seen, Seen::Waited("wait".into()));
                result(value)
            }
            "flood" => {
                let text = "x".repeat(1000);
                let mut n_taken = 0;
                while say(&text) {
                    n_taken += 1;
                }
                result(json!({ "taken": n_taken }))
            }
            "large" => {
                let size = value["size"].as_u64().expect("a size");
                result(Value::String(
                    "x".repeat(usize::try_from(size).expect("small")),
                ))
            }
            "headers" => {
                let header = asked.headers.get("mcp-param-x");
                result(json!({ "x": header.map(|value| value.to_str().expect("text")) }))
            }
            "none" => Answer::none(),
            "panic" => panic!("as asked"),
            "fail" => {
                let code = value["code"].as_i64().expect("a code");
                Answer::error(&id, &RpcError::new(code, "as asked"))
            }
            _echo => result(value),
        }
    }
}

/// How often a request has seen the gate open since it came.
struct Steps {
    gate: watch::Receiver<u64>,
    taken: u64,
}

impl Steps {
    async fn next(&mut self) {
        let taken = self.taken;
        let opened = self.gate.wait_for(|steps| *steps > taken).await;
        drop(opened.expect("a gate"));
        self.taken += 1;
    }
}
