//! Our own client at the server, in both eras: what it does by itself fits.

use std::sync::{Arc, Mutex};

use cocode_agent::serve::AgentServer;
use cocode_client::{
    Answer, ClientCapabilities, DEFAULT_MAX_FRAME_BYTES, Elicitation, ElicitationAnswer, Handler,
    Protocol, RawJson, RequestOptions, Session, SessionOptions, Target, http, memory_pair,
};
use cocode_wire::serve::{Endpoint, HttpServer, HttpServerOptions, LineOptions, Site, serve_lines};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Stage;

/// A person who says yes.
#[derive(Default)]
struct Yes {
    asked: Mutex<Vec<String>>,
}

impl Handler for Yes {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            elicitation_form: true,
            ..ClientCapabilities::default()
        }
    }

    fn elicit(&self, request: Elicitation) -> Answer<'_, ElicitationAnswer> {
        self.asked.lock().unwrap().push(request.message);
        let yes = RawJson::parse(r#"{"decision":"once"}"#).unwrap();
        Box::pin(async { ElicitationAnswer::Accept(Some(yes)) })
    }
}

async fn call(session: &Session, tool: &str, arguments: Value) -> Value {
    let arguments = RawJson::of(&arguments).unwrap();
    let heard = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&heard);
    let options = RequestOptions {
        on_progress: Some(Arc::new(move |_: &cocode_client::Progress| {
            *counted.lock().unwrap() += 1;
        })),
        ..RequestOptions::default()
    };
    let called = session.call_tool(tool, Some(&arguments), options).await;
    let called = called.unwrap();
    assert!(!called.is_error, "{}", called.raw);
    assert!(*heard.lock().unwrap() > 0);
    called.structured().unwrap().decode().unwrap()
}

/// Our client at this server.
async fn connected(target: Target, protocol: Protocol, handler: Arc<dyn Handler>) -> Session {
    let options = SessionOptions {
        protocol,
        handler,
        ..SessionOptions::default()
    };
    Session::connect(target, options).await.unwrap()
}

async fn holds_a_conversation(stage: &Stage, target: Target, protocol: Protocol) {
    let write = |name: &str| json!({ "command": format!("touch {name}") });
    stage
        .puppet()
        .calls(&[("1", "shell", write("a"))])
        .calls(&[("2", "shell", write("b"))])
        .says("Two files.")
        .says("You are welcome.");
    let person = Arc::new(Yes::default());
    let session = connected(target, protocol, Arc::<Yes>::clone(&person)).await;
    let tools = session.tools().await.unwrap();
    assert!(tools.quarantined.is_empty(), "{:?}", tools.quarantined);
    assert_eq!(tools.items.len(), 2);
    let first = call(&session, "cocode", json!({ "prompt": "make two" })).await;
    assert_eq!(first["response"], "Two files.");
    assert_eq!(person.asked.lock().unwrap().len(), 2);
    let reply = json!({ "session_id": first["session_id"], "message": "thanks" });
    let second = call(&session, "cocode-reply", reply).await;
    assert_eq!(second["response"], "You are welcome.");
    let resources = session.resources().await.unwrap().items;
    assert_eq!(resources.len(), 1);
    assert!(session.prompts().await.unwrap().items.is_empty());
    session.close().await;
}

#[tokio::test]
async fn our_client_holds_a_conversation_and_asks_its_person() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let stage = Stage::asking();
        let (target, theirs) = memory_pair(DEFAULT_MAX_FRAME_BYTES);
        let mut tasks = JoinSet::new();
        let server = Arc::clone(&stage.server);
        tasks.spawn(async move {
            let (source, sink) = tokio::io::split(theirs);
            let options = LineOptions::default();
            serve_lines(source, sink, &*server, options, std::future::pending()).await;
        });
        holds_a_conversation(&stage, target, protocol).await;
    }
}

/// One place, and nothing else.
struct Place(Arc<AgentServer>);

impl Site for Place {
    fn endpoint(&self, _name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        Some(Arc::<AgentServer>::clone(&self.0))
    }
}

fn over_http(stage: &Stage) -> (Target, JoinSet<()>) {
    let site = Arc::new(Place(Arc::clone(&stage.server)));
    let options = HttpServerOptions::new(([127, 0, 0, 1], 0).into());
    let server = HttpServer::bind(options, site).unwrap();
    let port = server.local_addr().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        server.serve(std::future::pending()).await;
    });
    let url = format!("http://127.0.0.1:{port}/mcp").parse().unwrap();
    (http(url), tasks)
}

#[tokio::test]
async fn our_client_does_so_over_http_where_requests_stand_alone_or_have_a_session() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let stage = Stage::asking();
        let (target, _tasks) = over_http(&stage);
        holds_a_conversation(&stage, target, protocol).await;
    }
}

#[tokio::test]
async fn a_call_over_http_that_is_given_up_leaves_no_child() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let stage = Stage::free();
        let (target, _tasks) = over_http(&stage);
        super::canceling::endless(&stage);
        let session = connected(target, protocol, Arc::new(Yes::default())).await;
        let process = tokio::select! {
            ended = call(&session, "cocode", json!({ "prompt": "go" })) => panic!("{ended}"),
            process = super::canceling::process(&stage) => process,
        };
        super::canceling::gone(process).await;
        session.close().await;
    }
}
