//! Who has to go, and what stays: a credential of somebody, and those who are nobody in particular.

use std::sync::Arc;

use cocode_wire::serve::{MemorySessionStore, SessionKey, SessionStore as _};
use serde_json::json;
use tokio::time::Duration;

use super::site::{Seen, Server};
use super::wire::{BOTH, EVENTS, JSON, Reply, Wire, modern, modern_headers, request};

const SESSION: &str = "Mcp-Session-Id";
const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// Headers with who somebody is, if they say so.
fn from<'a>(who: Option<&'a str>, headers: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let who = who.map(|who| ("Authorization", who));
    who.into_iter().chain(headers.iter().copied()).collect()
}

async fn open(server: &Server, who: Option<&str>) -> String {
    let body = request("initialize", json!({ "protocolVersion": "2025-06-18" }));
    let mut wire = Wire::to(server.port).await;
    let headers = from(who, &[JSON, BOTH]);
    let reply = wire.ask("POST /mcp", &headers, Some(&body)).await;
    let id = reply.header("mcp-session-id");
    id.expect("a session").to_owned()
}

async fn echo(server: &Server, who: Option<&str>, session: &str) -> Reply {
    let mut wire = Wire::to(server.port).await;
    let headers = from(who, &[JSON, BOTH, (SESSION, session)]);
    let body = request("echo", json!({}));
    wire.ask("POST /mcp", &headers, Some(&body)).await
}

async fn stream(server: &Server, line: &str, headers: &[(&str, &str)]) -> Wire {
    let mut wire = Wire::to(server.port).await;
    wire.send(line, headers, None).await;
    let head = wire.head().await;
    assert!(matches!(head.status, 101 | 200), "{head:?}");
    wire
}

/// Everything that stays open: a stream of a session, a page, HTTP+SSE, and a WebSocket.
async fn all_of(server: &mut Server, who: Option<&str>, session: &str) -> (Vec<Wire>, Wire) {
    let headers = from(who, &[EVENTS, (SESSION, session)]);
    let mut wires = vec![stream(server, "GET /mcp", &headers).await];
    let mut page = stream(server, "GET /endless", &from(who, &[])).await;
    page.event().await.expect("an event");
    let mut sse = stream(server, "GET /sse", &from(who, &[EVENTS])).await;
    sse.event().await.expect("an event");
    wires.extend([page, sse]);
    let socket = stream(server, "GET /ws/a", &from(who, &UPGRADE)).await;
    server.until(&Seen::Converse("a".into())).await;
    (wires, socket)
}

async fn ended((wires, mut socket): (Vec<Wire>, Wire)) {
    for mut wire in wires {
        assert_eq!(wire.event().await, None);
    }
    assert_eq!(socket.rest().await, "");
}

#[tokio::test]
async fn a_credential_that_is_withdrawn_takes_only_what_was_begun_with_it() {
    let store = Arc::new(MemorySessionStore::new());
    let mut one = Server::guarded_keeping(Arc::clone(&store) as _).await;
    let other = Server::guarded_keeping(Arc::clone(&store) as _).await;
    let (old, new) = (Some("ann/old"), Some("ann/new"));
    let with_old = open(&one, old).await;
    let with_new = open(&one, new).await;
    // It is one guest: who comes with another credential goes on with the same sessions, anywhere.
    assert_eq!(echo(&one, new, &with_old).await.status, 200);
    assert_eq!(echo(&other, new, &with_old).await.status, 200);
    assert_eq!(echo(&other, old, &with_new).await.status, 200);
    let opened_with_old = all_of(&mut one, old, &with_old).await;
    let (mut opened_with_new, mut socket) = all_of(&mut one, new, &with_new).await;
    let mut saying = Wire::to(one.port).await;
    let headers = from(old, &modern_headers("say"));
    let say = modern("say", json!({ "steps": 1 }));
    saying.send("POST /mcp", &headers, Some(&say)).await;
    saying.head().await;
    assert_eq!(saying.event().await.expect("an event").said(), "first");

    one.door.evict_by("ann", "old");
    one.door.evict_by("bob", "new");
    ended(opened_with_old).await;
    assert_eq!(saying.event().await, None);
    assert_eq!(echo(&one, new, &with_old).await.status, 404);
    // Elsewhere it was brought over by somebody with the new one.
    while echo(&other, new, &with_old).await.status != 404 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let found = store.find(&SessionKey::of(&with_old), Duration::MAX).await;
    assert_eq!(found.expect("a store"), None);
    // Who hears of it late does no harm.
    other.door.evict_by("ann", "old");
    tokio::time::sleep(Duration::from_millis(1200)).await;
    for server in [&one, &other] {
        assert_eq!(echo(server, new, &with_new).await.status, 200);
    }
    one.open_gate();
    let page = opened_with_new.get_mut(1).expect("a page");
    page.event().await.expect("an event");
    // Half a message, which is waited for: the socket is open.
    socket.write("\u{1}").await;
    let left = one.door.sessions().into_iter();
    let mut left: Vec<_> = left.map(|facts| facts.transport.name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["http", "sse", "ws"]);

    one.door.evict("ann");
    assert_eq!(echo(&one, new, &with_new).await.status, 404);
    assert_eq!(one.door.sessions(), []);
}

#[tokio::test]
async fn a_session_that_is_on_its_way_ends_with_the_credential_that_began_it() {
    let store = Arc::new(MemorySessionStore::new());
    let one = Server::guarded_keeping(Arc::clone(&store) as _).await;
    let mut other = Server::guarded_keeping(Arc::clone(&store) as _).await;
    let hello = json!({ "protocolVersion": "2025-06-18", "slow": 1 });
    let mut wire = Wire::to(one.port).await;
    let headers = from(Some("ann/old"), &[JSON, BOTH]);
    let hello = request("initialize", hello);
    let reply = wire.ask("POST /mcp", &headers, Some(&hello)).await;
    let id = reply.header("mcp-session-id").expect("a session");
    let mut wire = Wire::to(other.port).await;
    let headers = from(Some("ann/new"), &[JSON, BOTH, (SESSION, id)]);
    let body = request("echo", json!({}));
    wire.send("POST /mcp", &headers, Some(&body)).await;
    other.until(&Seen::Request("initialize".into())).await;
    other.door.evict_by("ann", "old");
    other.open_gate();
    assert_eq!(wire.reply().await.status, 404);
    assert_eq!(other.door.sessions(), []);
}

#[tokio::test]
async fn those_who_are_no_guests_are_sent_away_with_all_that_is_theirs() {
    let store = Arc::new(MemorySessionStore::new());
    let mut one = Server::keeping(Arc::clone(&store) as _).await;
    let other = Server::keeping(Arc::clone(&store) as _).await;
    let guarded = Server::guarded_keeping(Arc::clone(&store) as _).await;
    let id = open(&one, None).await;
    let anns = open(&guarded, Some("ann")).await;
    assert_eq!(echo(&other, None, &id).await.status, 200);
    let all = all_of(&mut one, None, &id).await;
    // Guests go, and nobody in particular stays.
    one.door.evict_all();
    one.door.evict("bob");
    assert_eq!(echo(&one, None, &id).await.status, 200);

    one.door.evict_strangers();
    guarded.door.evict_strangers();
    ended(all).await;
    assert_eq!(echo(&one, None, &id).await.status, 404);
    assert_eq!(one.door.sessions(), []);
    while echo(&other, None, &id).await.status != 404 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(echo(&guarded, Some("ann"), &anns).await.status, 200);
}
