//! What a client sets and answers at one server while another has the same session.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::encode;
use cocode_wire::serve::{MemorySessionStore, SessionKey, SessionStore, StoredSession};
use serde_json::{Value, json};

use super::frail::Frail;
use super::site::{Seen, Server};
use super::wire::{BOTH, JSON, Reply, Wire, open_session, request};

const SESSION: &str = "Mcp-Session-Id";
const REVISION: &str = "2025-11-25";

async fn send(server: &Server, session: &str, body: &str) -> Reply {
    let mut wire = Wire::to(server.port).await;
    let headers = [JSON, BOTH, (SESSION, session)];
    wire.ask("POST /mcp", &headers, Some(body)).await
}

async fn post(server: &Server, session: &str, method: &str, params: Value) {
    let reply = send(server, session, &request(method, params)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

async fn subscribe(server: &Server, session: &str, uri: &str) {
    post(
        server,
        session,
        "resources/subscribe",
        json!({ "uri": uri }),
    )
    .await;
}

fn subscribed() -> Seen {
    Seen::Request("resources/subscribe".into())
}

fn message(uri: &str) -> Bytes {
    let params = json!({ "uri": uri }).to_string();
    encode::request(1, "resources/subscribe", Some(params.as_bytes())).into()
}

/// A session that two servers have.
async fn both(store: &Arc<Frail>) -> (Server, Server, String) {
    let one = Server::keeping(Arc::clone(store) as _).await;
    let other = Server::keeping(Arc::clone(store) as _).await;
    let id = open_session(one.port, "/mcp", REVISION).await;
    post(&other, &id, "echo", json!({})).await;
    (one, other, id)
}

/// The resources that are followed in a session, as the store has it.
async fn followed(store: &dyn SessionStore, session: &str) -> Vec<String> {
    let found = store.find(&SessionKey::of(session), Duration::MAX).await;
    let found = found.expect("a store").expect("a session");
    let messages = found.told.iter().map(|message| {
        let message: Value = serde_json::from_slice(message).expect("JSON");
        message["params"]["uri"].as_str().map(str::to_owned)
    });
    messages.flatten().collect()
}

async fn until_followed(store: &dyn SessionStore, session: &str, uris: &[&str]) {
    while followed(store, session).await != uris {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What a server was asked to do until now, without what is of no interest.
async fn asked(server: &mut Server, session: &str) -> Vec<Seen> {
    post(server, session, "last", json!({})).await;
    let mut all = Vec::new();
    loop {
        match server.next().await {
            Seen::Request(method) if method == "last" => return all,
            seen @ Seen::Request(_) => all.push(seen),
            _ => {}
        }
    }
}

#[tokio::test]
async fn what_is_set_while_a_server_reads_what_others_have_set_stays() {
    let store = Arc::new(Frail::default());
    let (mut one, mut other, id) = both(&store).await;
    one.until(&Seen::Request("initialize".into())).await;
    let n_looks = store.n_looks();
    store.hold_what_is_found();
    subscribe(&other, &id, "there").await;
    until(|| store.n_looks() > n_looks).await;
    // One of them has read the store, and does not know it yet.
    subscribe(&one, &id, "here").await;
    store.let_go();
    until_followed(&*store, &id, &["here", "there"]).await;
    one.until(&subscribed()).await;
    one.until(&subscribed()).await;
    assert_eq!(asked(&mut one, &id).await, []);
    other.until(&subscribed()).await;
    other.until(&subscribed()).await;
    assert_eq!(asked(&mut other, &id).await, []);
    until_followed(&*store, &id, &["here", "there"]).await;
}

#[tokio::test]
async fn what_is_set_at_two_servers_at_the_same_time_is_set() {
    let store = Arc::new(Frail::default());
    let (mut one, mut other, id) = both(&store).await;
    for round in 0..3 {
        let [a, b] = ["a", "b"].map(|name| format!("{name}{round}"));
        tokio::join!(subscribe(&one, &id, &a), subscribe(&other, &id, &b));
        for server in [&mut one, &mut other] {
            server.until(&subscribed()).await;
            server.until(&subscribed()).await;
        }
    }
    // What is gone at one is gone, though the other has just learned of it.
    let gone = json!({ "uri": "a0" });
    tokio::join!(
        post(&other, &id, "resources/unsubscribe", gone),
        subscribe(&one, &id, "z"),
    );
    let expected = ["a1", "a2", "b0", "b1", "b2", "z"];
    until_followed(&*store, &id, &expected).await;
    one.until(&Seen::Request("resources/unsubscribe".into()))
        .await;
    other.until(&subscribed()).await;
    until_followed(&*store, &id, &expected).await;
}

#[tokio::test]
async fn a_server_does_not_hear_of_itself() {
    let store = Arc::new(Frail::default());
    let mut server = Server::keeping(Arc::clone(&store) as _).await;
    let id = open_session(server.port, "/mcp", REVISION).await;
    server.until(&Seen::Request("initialize".into())).await;
    let n_news = store.n_news();
    let mut n_set = 0;
    while store.n_news() < n_news + 3 {
        subscribe(&server, &id, &n_set.to_string()).await;
        n_set += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(store.n_looks(), 0, "it knows what it has said itself");
    let asked = asked(&mut server, &id).await;
    assert!(asked.iter().all(|seen| *seen == subscribed()), "{asked:?}");
    assert_eq!(asked.len(), n_set);
}

#[tokio::test]
async fn nothing_is_passed_over_when_much_happens_at_once() {
    let store = Arc::new(MemorySessionStore::new());
    let mut server = Server::keeping(Arc::clone(&store) as _).await;
    let mut ids = Vec::new();
    for _ in 0..505 {
        ids.push(open_session(server.port, "/mcp", REVISION).await);
    }
    // Others have sessions too.
    let hello = encode::request(1, "initialize", None);
    for number in 0..600 {
        let session = StoredSession {
            key: SessionKey::of(&number.to_string()),
            guest: None,
            credential: None,
            endpoint: None,
            revision: REVISION.into(),
            told: vec![hello.clone().into()],
            version: 0,
        };
        store.put(&session).await.expect("kept");
        let said = [message("a")];
        store.tell(&session.key, &said).await.expect("changed");
    }
    for id in &ids {
        let key = SessionKey::of(id);
        store.tell(&key, &[message("a")]).await.expect("changed");
    }
    for _ in &ids {
        server.until(&subscribed()).await;
    }
}

#[tokio::test]
async fn what_is_set_while_a_session_is_brought_over_comes_with_it() {
    let store = Arc::new(Frail::default());
    let one = Server::keeping(Arc::clone(&store) as _).await;
    let mut other = Server::keeping(Arc::clone(&store) as _).await;
    let slow = json!({ "protocolVersion": REVISION, "slow": 1 });
    let mut wire = Wire::to(one.port).await;
    let hello = request("initialize", slow);
    let reply = wire.ask("POST /mcp", &[JSON, BOTH], Some(&hello)).await;
    let id = reply.header("mcp-session-id").expect("a session");
    let mut wire = Wire::to(other.port).await;
    let echo = request("echo", json!({}));
    let headers = [JSON, BOTH, (SESSION, id)];
    wire.send("POST /mcp", &headers, Some(&echo)).await;
    other.until(&Seen::Request("initialize".into())).await;
    drop(one);
    let said = [message("a")];
    store
        .tell(&SessionKey::of(id), &said)
        .await
        .expect("changed");
    // It is heard of while the session is on its way.
    let n_news = store.n_news();
    until(|| store.n_news() > n_news + 3).await;
    other.open_gate();
    assert_eq!(wire.reply().await.status, 200);
    other.until(&subscribed()).await;
}

#[tokio::test]
async fn an_answer_at_a_server_that_has_not_asked_is_passed_over() {
    let store = Arc::new(Frail::default());
    let (mut one, mut other, id) = both(&store).await;
    assert!(one.outlet().send(encode::request(40, "ping", None).into()));
    let answer = json!({ "jsonrpc": "2.0", "id": 40, "result": {} }).to_string();
    // An error would end clients that take it for the end of everything.
    assert_eq!(send(&other, &id, &answer).await.status, 202);
    assert_eq!(send(&one, &id, &answer).await.status, 202);
    one.until(&Seen::Response(answer.clone())).await;
    // What it has asked itself is heard.
    assert!(
        other
            .outlet()
            .send(encode::request(40, "ping", None).into())
    );
    assert_eq!(send(&other, &id, &answer).await.status, 202);
    other.until(&Seen::Response(answer)).await;
    assert_eq!(
        send(&other, &id, &request("echo", json!({}))).await.status,
        200
    );
}
