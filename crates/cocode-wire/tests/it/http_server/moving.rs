//! Sessions that go on at another server after the one that opened them is gone, and copies of them
//! at several servers at once.

use std::sync::Arc;
use std::time::Duration;

use cocode_wire::serve::{MemorySessionStore, SessionKey, SessionStore};
use serde_json::{Value, json};

use super::frail::Frail;
use super::site::{Seen, Server};
use super::wire::{BOTH, EVENTS, Event, JSON, Reply, Wire, modern, modern_headers, request};

const SESSION: &str = "Mcp-Session-Id";
const LAST: &str = "Last-Event-ID";
const LOST: &str = "gateway-lost";

async fn ask(server: &Server, line: &str, headers: &[(&str, &str)], body: Option<&str>) -> Reply {
    let mut wire = Wire::to(server.port).await;
    wire.ask(line, headers, body).await
}

async fn post(server: &Server, session: &str, method: &str, params: Value) -> Reply {
    let headers = [JSON, BOTH, (SESSION, session)];
    ask(
        server,
        "POST /mcp",
        &headers,
        Some(&request(method, params)),
    )
    .await
}

/// Two servers with one store.
async fn pair() -> (Server, Server, Arc<MemorySessionStore>) {
    let store = Arc::new(MemorySessionStore::new());
    let one = Server::keeping(Arc::clone(&store) as _).await;
    let other = Server::keeping(Arc::clone(&store) as _).await;
    (one, other, store)
}

async fn open(server: &Server, params: Value) -> String {
    open_as(server, "POST /mcp", &[], params).await
}

async fn open_as(
    server: &Server,
    line: &str,
    headers: &[(&str, &str)],
    mut params: Value,
) -> String {
    if params.get("protocolVersion").is_none() {
        params["protocolVersion"] = "2025-11-25".into();
    }
    let headers: Vec<_> = [JSON, BOTH].iter().chain(headers).copied().collect();
    let body = request("initialize", params);
    let reply = ask(server, line, &headers, Some(&body)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let id = reply.header("mcp-session-id");
    id.expect("a session").to_owned()
}

/// Opens a stream by GET.
async fn listen(server: &Server, session: &str, last: Option<&str>) -> Wire {
    let mut wire = Wire::to(server.port).await;
    let mut headers = vec![EVENTS, (SESSION, session)];
    headers.extend(last.map(|last| (LAST, last)));
    wire.send("GET /mcp", &headers, None).await;
    let head = wire.head().await;
    assert_eq!(head.status, 200, "{head:?}");
    wire
}

async fn next(wire: &mut Wire) -> Event {
    wire.event().await.expect("an event")
}

/// Waits until the store keeps so many messages of a session.
async fn kept(store: &dyn SessionStore, session: &str, n_messages: usize) {
    loop {
        let found = store.find(&SessionKey::of(session), Duration::MAX).await;
        let told = found.expect("a store").map_or(0, |found| found.told.len());
        if told == n_messages {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a session is not found.
async fn gone(server: &Server, session: &str) {
    while post(server, session, "echo", json!({})).await.status != 404 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_session_goes_on_elsewhere_with_what_was_set() {
    let (mut one, mut other, store) = pair().await;
    let id = open(&one, json!({ "clientInfo": { "name": "moved" } })).await;
    for (method, params) in [
        ("resources/subscribe", json!({ "uri": "file:///a" })),
        ("resources/subscribe", json!({ "uri": "file:///b" })),
        ("resources/unsubscribe", json!({ "uri": "file:///b" })),
        ("logging/setLevel", json!({ "level": "error" })),
        ("fail", json!({ "code": -32602 })),
        ("tools/call", json!({ "name": "x" })),
    ] {
        assert_eq!(post(&one, &id, method, params).await.status, 200);
    }
    kept(&*store, &id, 3).await;
    one.until(&Seen::Request("tools/call".into())).await;
    drop(one);

    let reply = post(&other, &id, "echo", json!({ "c": 3 })).await;
    assert_eq!(
        (reply.status, reply.json()["result"]["c"].as_i64()),
        (200, Some(3))
    );
    assert_eq!(reply.header("mcp-session-id"), None, "it is known already");
    assert_eq!(other.next().await, Seen::Converse("all".into()));
    assert_eq!(other.next().await, Seen::Request("initialize".into()));
    assert_eq!(
        other.next().await,
        Seen::Notification("notifications/initialized".into())
    );
    assert_eq!(other.next().await, Seen::Request("logging/setLevel".into()));
    assert_eq!(
        other.next().await,
        Seen::Request("resources/subscribe".into())
    );
    assert_eq!(other.next().await, Seen::Request("echo".into()));
    // Nobody begins it twice.
    assert_eq!(post(&other, &id, "echo", json!({})).await.status, 200);
    assert_eq!(other.next().await, Seen::Request("echo".into()));
    let facts = other.door.sessions();
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0].revision.as_deref(), Some("2025-11-25"));
}

#[tokio::test]
async fn the_messages_that_moved_are_those_of_the_client() {
    let (one, other, _store) = pair().await;
    let id = open(&one, json!({ "clientInfo": { "name": "moved" }, "x": 7 })).await;
    drop(one);
    let reply = post(&other, &id, "greeting", json!({})).await;
    let greeting = &reply.json()["result"];
    assert_eq!(greeting["clientInfo"]["name"], "moved");
    assert_eq!(greeting["x"], 7);
}

#[tokio::test]
async fn everything_else_that_a_client_sends_moves_as_well() {
    let (one, mut other, _store) = pair().await;
    let old = || json!({ "protocolVersion": "2025-03-26" });
    let ids = [
        open(&one, old()).await,
        open(&one, old()).await,
        open(&one, old()).await,
    ];
    drop(one);
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#;
    let batch = format!("[{}]", request("echo", json!({ "b": 1 })));
    let headers = |id| [JSON, BOTH, (SESSION, id)];
    let reply = ask(&other, "POST /mcp", &headers(&ids[0]), Some(notification)).await;
    assert_eq!(reply.status, 202);
    other
        .until(&Seen::Notification("notifications/cancelled".into()))
        .await;
    let reply = ask(&other, "POST /mcp", &headers(&ids[1]), Some(&batch)).await;
    assert_eq!(reply.json()[0]["result"]["b"], 1);
    let mut wire = listen(&other, &ids[2], None).await;
    let note = r#"{"jsonrpc":"2.0","method":"said","params":{"text":"here"}}"#;
    assert!(other.outlet().send(note.into()));
    assert_eq!(next(&mut wire).await.said(), "here");
}

#[tokio::test]
async fn lists_that_may_be_others_are_told_of() {
    let (one, other, _store) = pair().await;
    let promise = json!({ "tools": { "listChanged": true }, "prompts": {} });
    let id = open(&one, json!({ "capable": promise })).await;
    drop(one);
    let mut wire = listen(&other, &id, None).await;
    assert_eq!(next(&mut wire).await.data, "", "a place to resume from");
    let told = next(&mut wire).await.json();
    assert_eq!(told["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn nobody_finds_the_session_of_somebody_else_elsewhere() {
    let store = Arc::new(MemorySessionStore::new());
    let one = Server::guarded_keeping(Arc::clone(&store) as _).await;
    let mut other = Server::guarded_keeping(store).await;
    let ann = ("Authorization", "ann");
    let id = open_as(&one, "POST /mcp", &[ann], json!({})).await;
    drop(one);
    let echo = request("echo", json!({}));
    let as_guest = |name, id| [JSON, BOTH, ("Authorization", name), (SESSION, id)];
    let unknown = "A".repeat(32);
    let expected = ask(&other, "POST /mcp", &as_guest("bob", &unknown), Some(&echo)).await;
    assert_eq!(expected.status, 404);
    for line in ["POST /mcp", "POST /mcp/a", "GET /mcp", "DELETE /mcp"] {
        let body = line.starts_with("POST").then_some(echo.as_str());
        let reply = ask(&other, line, &as_guest("bob", &id), body).await;
        assert_eq!((reply.status, &reply.body), (404, &expected.body), "{line}");
        assert_eq!(reply.headers, expected.headers, "{line}");
    }
    // Neither is it anywhere but at its own endpoint.
    for line in ["POST /mcp/a", "GET /mcp/b", "DELETE /mcp/nowhere"] {
        let body = line.starts_with("POST").then_some(echo.as_str());
        let reply = ask(&other, line, &as_guest("ann", &id), body).await;
        assert_eq!((reply.status, &reply.body), (404, &expected.body), "{line}");
    }
    assert!(other.seen.try_recv().is_err(), "no endpoint hears of it");
    let reply = ask(&other, "POST /mcp", &as_guest("ann", &id), Some(&echo)).await;
    assert_eq!(reply.status, 200, "it is still there for its owner");
}

#[tokio::test]
async fn many_who_come_at_once_are_brought_over_once() {
    let (one, mut other, _store) = pair().await;
    let id = open(&one, json!({})).await;
    drop(one);
    let asked = (0..20).map(|number| {
        let (other, id) = (&other, &id);
        async move { post(other, id, "echo", json!({ "n": number })).await }
    });
    let replies = futures_util::future::join_all(asked).await;
    for (number, reply) in replies.iter().enumerate() {
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["result"]["n"], number);
    }
    let mut n_begun = 0;
    while let Ok(seen) = other.seen.try_recv() {
        n_begun += usize::from(seen == Seen::Request("initialize".into()));
    }
    assert_eq!(n_begun, 1);
}

#[tokio::test]
async fn who_leaves_meanwhile_takes_nothing_from_the_others() {
    let (one, mut other, _store) = pair().await;
    // It begins slowly elsewhere.
    let id = open(&one, json!({ "slow": 1 })).await;
    drop(one);
    let echo = request("echo", json!({ "c": 1 }));
    let headers = [JSON, BOTH, (SESSION, id.as_str())];
    let mut first = Wire::to(other.port).await;
    first.send("POST /mcp", &headers, Some(&echo)).await;
    other.until(&Seen::Request("initialize".into())).await;
    let mut second = Wire::to(other.port).await;
    second.send("POST /mcp", &headers, Some(&echo)).await;
    drop(first);
    other.open_gate();
    assert_eq!(second.reply().await.json()["result"]["c"], 1);
}

#[tokio::test]
async fn an_end_at_one_server_is_an_end_at_all() {
    let (mut one, mut other, store) = pair().await;
    let id = open(&one, json!({})).await;
    assert_eq!(post(&other, &id, "echo", json!({})).await.status, 200);
    let mut stream = listen(&other, &id, None).await;
    next(&mut stream).await;
    let reply = ask(&one, "DELETE /mcp", &[(SESSION, &id)], None).await;
    assert_eq!(reply.status, 204);
    assert_eq!(post(&one, &id, "echo", json!({})).await.status, 404);
    let found = store.find(&SessionKey::of(&id), Duration::MAX).await;
    assert_eq!(found.expect("a store"), None);
    one.until(&Seen::Ended).await;
    other.until(&Seen::Ended).await;
    assert_eq!(stream.event().await, None);
    gone(&other, &id).await;

    // One that is not here can be ended as well.
    let id = open(&one, json!({})).await;
    let delete = [(SESSION, id.as_str())];
    assert_eq!(ask(&other, "DELETE /mcp", &delete, None).await.status, 204);
    gone(&one, &id).await;
    assert_eq!(ask(&other, "DELETE /mcp", &delete, None).await.status, 404);
}

#[tokio::test]
async fn a_guest_who_is_sent_away_has_no_session_anywhere() {
    let store = Arc::new(MemorySessionStore::new());
    let one = Server::guarded_keeping(Arc::clone(&store) as _).await;
    let mut other = Server::guarded_keeping(Arc::clone(&store) as _).await;
    let ann = ("Authorization", "ann");
    let bob = ("Authorization", "bob");
    let of_ann = open_as(&one, "POST /mcp", &[ann], json!({})).await;
    let of_bob = open_as(&one, "POST /mcp", &[bob], json!({})).await;
    let echo = request("echo", json!({}));
    let headers = [JSON, BOTH, ann, (SESSION, of_ann.as_str())];
    let reply = ask(&other, "POST /mcp", &headers, Some(&echo)).await;
    assert_eq!(reply.status, 200);
    one.door.evict("ann");
    other.until(&Seen::Ended).await;
    let reply = ask(&other, "POST /mcp", &headers, Some(&echo)).await;
    assert_eq!(reply.status, 404);
    let headers = [JSON, BOTH, bob, (SESSION, of_bob.as_str())];
    let reply = ask(&other, "POST /mcp", &headers, Some(&echo)).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn what_is_set_at_one_server_is_so_at_the_others() {
    let (mut one, other, _store) = pair().await;
    let id = open(&one, json!({})).await;
    post(&one, &id, "resources/subscribe", json!({ "uri": "a" })).await;
    one.until(&Seen::Request("resources/subscribe".into()))
        .await;
    assert_eq!(post(&other, &id, "echo", json!({})).await.status, 200);
    post(&other, &id, "logging/setLevel", json!({ "level": "debug" })).await;
    post(&other, &id, "resources/unsubscribe", json!({ "uri": "a" })).await;
    let mut heard = [one.next().await, one.next().await];
    heard.sort_by_key(|seen| *seen == Seen::Request("resources/unsubscribe".into()));
    assert_eq!(
        heard,
        [
            Seen::Request("logging/setLevel".into()),
            Seen::Request("resources/unsubscribe".into())
        ]
    );
}

#[tokio::test]
async fn a_session_that_nobody_used_is_over_everywhere() {
    let store = Arc::new(MemorySessionStore::new());
    let brief = |options: &mut cocode_wire::serve::HttpServerOptions| {
        options.sessions = Some(Arc::clone(&store) as _);
        options.limits.session_idle = Duration::from_millis(80);
    };
    let mut one = Server::with(brief).await;
    let other = Server::with(brief).await;
    let id = open(&one, json!({})).await;
    one.until(&Seen::Ended).await;
    tokio::time::sleep(Duration::from_millis(160)).await;
    assert_eq!(post(&other, &id, "echo", json!({})).await.status, 404);
}

#[tokio::test]
async fn an_end_in_order_leaves_sessions_to_others() {
    let (mut one, other, _store) = pair().await;
    let id = open(&one, json!({})).await;
    post(&one, &id, "resources/subscribe", json!({ "uri": "a" })).await;
    one.shut_down();
    one.ended().await;
    let reply = post(&other, &id, "greeting", json!({})).await;
    assert_eq!(reply.status, 200);
    assert_eq!(other.door.sessions().len(), 1);
}

#[tokio::test]
async fn another_revision_is_no_session() {
    let (one, mut other, store) = pair().await;
    let id = open(&one, json!({})).await;
    let key = SessionKey::of(&id);
    let found = store.find(&key, Duration::MAX).await.expect("a store");
    let mut session = found.expect("a session");
    session.revision = "2025-06-18".into();
    store.put(&session).await.expect("a store");
    drop(one);
    assert_eq!(post(&other, &id, "echo", json!({})).await.status, 404);
    other.until(&Seen::Ended).await;

    // What is refused here is none either.
    let (one, other, _store) = pair().await;
    let id = open(&one, json!({ "once": 1 })).await;
    drop(one);
    assert_eq!(post(&other, &id, "echo", json!({})).await.status, 404);
}

/// Breaks the stream of a call, and gives the id of its last event.
async fn broken(one: Server, session: &str, body: &str) -> String {
    let mut wire = Wire::to(one.port).await;
    let headers = [JSON, BOTH, (SESSION, session)];
    wire.send("POST /mcp", &headers, Some(body)).await;
    let head = wire.head().await;
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let mut last = next(&mut wire).await;
    if last.data.is_empty() {
        last = next(&mut wire).await;
    }
    assert_eq!(last.said(), "first");
    drop(one);
    last.id
}

#[tokio::test]
async fn a_call_that_is_lost_is_answered_once_on_its_stream() {
    for id in [json!(7), json!("a b.c"), json!("x".repeat(90))] {
        let (one, other, _store) = pair().await;
        let session = open(&one, json!({})).await;
        let call = json!({
            "jsonrpc": "2.0", "id": id, "method": "say", "params": { "steps": 5 },
        });
        let last = broken(one, &session, &call.to_string()).await;
        assert!(last.len() < 200 && last.bytes().all(|byte| byte.is_ascii_graphic()));
        let mut wire = Wire::to(other.port).await;
        let headers = [EVENTS, (SESSION, session.as_str()), (LAST, &last)];
        let reply = wire.ask("GET /mcp", &headers, None).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        let messages = reply.messages();
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert_eq!(messages[0]["id"], id);
        assert_eq!(messages[0]["error"]["data"]["code"], LOST);
        // A client that comes back all the same is told that there is nothing more.
        let after = reply
            .body
            .lines()
            .find_map(|line| line.strip_prefix("id: "));
        let headers = [
            EVENTS,
            (SESSION, session.as_str()),
            (LAST, after.expect("an id")),
        ];
        assert_eq!(wire.ask("GET /mcp", &headers, None).await.status, 405);
        assert_eq!(post(&other, &session, "echo", json!({})).await.status, 200);
    }
}

#[tokio::test]
async fn all_calls_of_a_batch_are_answered() {
    let (one, other, _store) = pair().await;
    let session = open(&one, json!({ "protocolVersion": "2025-03-26" })).await;
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "say", "params": { "steps": 5 } },
        { "jsonrpc": "2.0", "id": "two", "method": "wait" },
        { "jsonrpc": "2.0", "method": "notifications/x" },
    ]);
    let last = broken(one, &session, &batch.to_string()).await;
    let headers = [EVENTS, (SESSION, session.as_str()), (LAST, &last)];
    let reply = ask(&other, "GET /mcp", &headers, None).await;
    let messages = reply.messages();
    let ids: Vec<&Value> = messages.iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!("two")]);
}

#[tokio::test]
async fn the_stream_of_the_session_just_goes_on_elsewhere() {
    let (one, other, _store) = pair().await;
    let session = open(&one, json!({})).await;
    let mut wire = listen(&one, &session, None).await;
    let primed = next(&mut wire).await;
    drop((one, wire));
    let mut wire = listen(&other, &session, Some(&primed.id)).await;
    let again = next(&mut wire).await;
    assert_eq!((again.data.as_str(), again.has_retry), ("", true));
    assert_ne!(again.id, primed.id);
    let note = r#"{"jsonrpc":"2.0","method":"said","params":{"text":"here"}}"#;
    assert!(other.outlet().send(note.into()));
    assert_eq!(next(&mut wire).await.said(), "here");
}

#[tokio::test]
async fn what_a_proxy_sends_again_is_not_carried_out_again() {
    let (one, mut other, _store) = pair().await;
    let session = open(&one, json!({})).await;
    drop(one);
    let again = ("Cocode-Unanswered", "1");
    let headers = [JSON, BOTH, again, (SESSION, session.as_str())];
    let call = request("tools/call", json!({ "name": "pay" }));
    let reply = ask(&other, "POST /mcp", &headers, Some(&call)).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["id"], 1);
    assert_eq!(reply.json()["error"]["data"]["code"], LOST);
    assert!(other.seen.try_recv().is_err(), "nobody was asked to pay");
    // What changes nothing is served.
    let list = request("tools/list", json!({ "c": 1 }));
    let reply = ask(&other, "POST /mcp", &headers, Some(&list)).await;
    assert_eq!(reply.json()["result"]["c"], 1);
    // So it is with requests of no session.
    let call = modern("tools/call", json!({ "name": "pay" }));
    let headers = [
        &modern_headers("tools/call")[..],
        &[again, ("Mcp-Name", "pay")],
    ]
    .concat();
    let reply = ask(&other, "POST /mcp", &headers, Some(&call)).await;
    assert_eq!(reply.json()["error"]["data"]["code"], LOST);
    other.until(&Seen::Request("tools/list".into())).await;
    assert!(other.seen.try_recv().is_err());
}

#[tokio::test]
async fn a_store_that_is_away_costs_only_what_it_was_for() {
    let store = Arc::new(Frail::default());
    let one = Server::keeping(Arc::clone(&store) as _).await;
    let other = Server::keeping(Arc::clone(&store) as _).await;
    for fails in [Frail::refuse, Frail::hang] {
        fails(&store);
        let id = open(&one, json!({})).await;
        assert_eq!(post(&one, &id, "echo", json!({})).await.status, 200);
        post(&one, &id, "resources/subscribe", json!({ "uri": "a" })).await;
        assert_eq!(post(&other, &id, "echo", json!({})).await.status, 503);
        store.come_back();
        // What began meanwhile is kept as soon as the store is back.
        kept(&*store, &id, 2).await;
        let answered = async {
            while post(&other, &id, "echo", json!({})).await.status != 200 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        answered.await;
    }
}

#[tokio::test]
async fn an_end_is_told_to_a_store_that_was_away() {
    let store = Arc::new(Frail::default());
    let one = Server::keeping(Arc::clone(&store) as _).await;
    let id = open(&one, json!({})).await;
    store.refuse();
    let reply = ask(&one, "DELETE /mcp", &[(SESSION, &id)], None).await;
    assert_eq!(reply.status, 204);
    assert_eq!(post(&one, &id, "echo", json!({})).await.status, 404);
    store.come_back();
    let key = SessionKey::of(&id);
    while store
        .find(&key, Duration::MAX)
        .await
        .expect("a store")
        .is_some()
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn guessed_ids_do_not_keep_the_store_busy() {
    let store = Arc::new(Frail::default());
    let server = Server::keeping(Arc::clone(&store) as _).await;
    let kept = open(&server, json!({})).await;
    // So often may it be looked anew, however long this takes.
    let begun = tokio::time::Instant::now();
    let n_spans = || usize::try_from(begun.elapsed().as_secs() / 10).expect("few") + 1;
    // What cannot be an id is not looked for, and neither is one twice.
    for _ in 0..10 {
        for id in ["x", "", &"A".repeat(33), &"%".repeat(32), &"A".repeat(32)] {
            assert_eq!(post(&server, id, "echo", json!({})).await.status, 404);
        }
    }
    assert!((1..=n_spans()).contains(&store.n_looks()));
    let mut wire = Wire::to(server.port).await;
    for number in 0..600 {
        let id = format!("{number:032}");
        let headers = [JSON, BOTH, (SESSION, id.as_str())];
        let echo = request("echo", json!({}));
        assert_eq!(
            wire.ask("POST /mcp", &headers, Some(&echo)).await.status,
            404
        );
    }
    assert!(store.n_looks() <= 201 * n_spans(), "{}", store.n_looks());
    assert_eq!(post(&server, &kept, "echo", json!({})).await.status, 200);
}

#[tokio::test]
async fn what_is_here_is_not_looked_for() {
    let store = Arc::new(Frail::default());
    let server = Server::keeping(Arc::clone(&store) as _).await;
    let id = open(&server, json!({})).await;
    let before = store.n_used();
    for _ in 0..50 {
        assert_eq!(post(&server, &id, "echo", json!({})).await.status, 200);
    }
    // The store is only asked for news meanwhile.
    assert!(store.n_used() - before <= store.n_news(), "{store:?}");
    assert_eq!(store.n_looks(), 0);
}
