//! Guests: who is let in, whose a session is, and who has to go.

use std::time::Duration;

use cocode_wire::serve::SessionTransport;
use serde_json::json;
use tokio::time::Instant;

use super::site::{BRIEFLY, Seen, Server};
use super::wire::{BOTH, EVENTS, JSON, Reply, Wire, modern, modern_headers, request};

const SESSION: &str = "Mcp-Session-Id";

/// The headers of a handshake; the key is any.
const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

fn as_guest<'a>(name: &'a str, headers: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let name = [("Authorization", name)];
    name.iter().chain(headers).copied().collect()
}

async fn ask(server: &Server, line: &str, headers: &[(&str, &str)], body: Option<&str>) -> Reply {
    let mut wire = Wire::to(server.port).await;
    wire.ask(line, headers, body).await
}

/// Opens a session and gives its id.
async fn open(server: &Server, guest: &str) -> String {
    let body = request("initialize", json!({ "protocolVersion": "2025-06-18" }));
    let headers = as_guest(guest, &[JSON, BOTH]);
    let reply = ask(server, "POST /mcp", &headers, Some(&body)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let id = reply.header("mcp-session-id");
    id.expect("a session").to_owned()
}

/// Opens a stream that is read on.
async fn stream(server: &Server, line: &str, headers: &[(&str, &str)]) -> Wire {
    let mut wire = Wire::to(server.port).await;
    wire.send(line, headers, None).await;
    let head = wire.head().await;
    assert!(matches!(head.status, 101 | 200), "{head:?}");
    wire
}

#[tokio::test]
async fn everything_passes_the_site_and_is_refused_in_its_words() {
    let mut server = Server::guarded().await;
    let body = request("initialize", json!({ "protocolVersion": "2025-06-18" }));
    let with_session = [EVENTS, (SESSION, "x")];
    for (line, headers, body) in [
        ("POST /mcp", &[JSON, BOTH][..], Some(&body)),
        ("POST /mcp", &modern_headers("echo"), Some(&body)),
        ("POST /mcp/nowhere", &[JSON, BOTH], Some(&body)),
        ("POST /mcp", &[], Some(&body)),
        ("GET /mcp", &[], None),
        ("GET /mcp", &[EVENTS], None),
        ("GET /mcp", &with_session, None),
        ("DELETE /mcp", &[(SESSION, "x")], None),
        ("PUT /mcp", &[], None),
        ("GET /sse", &[EVENTS], None),
        ("GET /sse", &[], None),
        ("POST /messages?sessionId=x", &[JSON], Some(&body)),
        ("GET /messages", &[], None),
        ("GET /ws", &UPGRADE, None),
        ("GET /mcp/a", &UPGRADE, None),
        ("GET /ws", &[], None),
        ("GET /", &[], None),
        ("POST /any/page", &[], Some(&body)),
        ("GET /endless", &[], None),
        ("OPTIONS /mcp", &[], None),
    ] {
        let reply = ask(&server, line, headers, body.map(String::as_str)).await;
        assert_eq!(reply.status, 401, "{line} {reply:?}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{line}");
        assert_eq!(reply.body, "who are you?", "{line}");
    }
    assert!(server.seen.try_recv().is_err(), "no endpoint hears of them");
    assert_eq!(server.door.sessions(), []);
}

#[tokio::test]
async fn hosts_and_origins_come_before_the_site_and_so_does_a_preflight() {
    let server = Server::guarded().await;
    let reply = ask(&server, "GET /", &[("Host", "evil.example")], None).await;
    assert_eq!(reply.status, 403);
    let page = ("Origin", "https://page.example");
    let preflight = [page, ("Access-Control-Request-Method", "POST")];
    let reply = ask(&server, "OPTIONS /mcp", &preflight, None).await;
    assert_eq!(reply.status, 204);
    // What the site answers can be read by pages that may read the rest.
    let reply = ask(&server, "GET /", &[page], None).await;
    assert_eq!(reply.status, 401);
    let readable = reply.header("access-control-allow-origin");
    assert_eq!(readable, Some("https://page.example"));
}

#[tokio::test]
async fn a_page_that_nobody_takes_is_given_up() {
    let mut server = Server::limited(|limits| limits.stall = Duration::from_millis(100)).await;
    let wire = stream(&server, "GET /flood", &[]).await;
    server.until(&Seen::Dropped("page".into())).await;
    drop(wire);
}

#[tokio::test]
async fn whoever_is_let_in_is_known_wherever_they_go() {
    let mut server = Server::guarded().await;
    for guest in ["ann", "late-ann"] {
        let reply = ask(&server, "GET /", &as_guest(guest, &[]), None).await;
        assert_eq!(reply.body, format!("page /{guest}"));
        let reply = ask(&server, "GET /mcp/nowhere", &as_guest(guest, &[]), None).await;
        assert_eq!(reply.status, 404);
        assert!(reply.body.contains(&format!("for {guest}")), "{reply:?}");

        let id = open(&server, guest).await;
        let headers = as_guest(guest, &[JSON, BOTH, (SESSION, &id)]);
        let body = request("echo", json!({ "a": 1 }));
        let reply = ask(&server, "POST /mcp", &headers, Some(&body)).await;
        assert_eq!(reply.json()["result"]["a"], 1);
        let headers = as_guest(guest, &modern_headers("echo"));
        let body = modern("echo", json!({ "b": 2 }));
        let reply = ask(&server, "POST /mcp", &headers, Some(&body)).await;
        assert_eq!(reply.json()["result"]["b"], 2);
        let headers = as_guest(guest, &[(SESSION, &id)]);
        assert_eq!(
            ask(&server, "DELETE /mcp", &headers, None).await.status,
            204
        );
        server.until(&Seen::Ended).await;
    }
}

#[tokio::test]
async fn nobody_finds_the_session_of_another_guest() {
    let mut server = Server::guarded().await;
    let id = open(&server, "ann").await;
    let mut sse = stream(&server, "GET /sse", &as_guest("ann", &[EVENTS])).await;
    let messages = sse.event().await.expect("the first event").data;
    let messages = format!("POST {messages}");
    let body = request("wait", json!({}));
    let session = (SESSION, id.as_str());
    for (line, headers, body) in [
        ("POST /mcp", &[JSON, BOTH, session][..], Some(&body)),
        ("GET /mcp", &[EVENTS, session], None),
        ("DELETE /mcp", &[session], None),
        (&messages, &[JSON], Some(&body)),
    ] {
        let headers = as_guest("bob", headers);
        let reply = ask(&server, line, &headers, body.map(String::as_str)).await;
        assert_eq!(reply.status, 404, "{line} {reply:?}");
        assert_eq!(reply.json()["error"]["message"], "Session not found");
    }
    // It has taken no harm.
    let headers = as_guest("ann", &[JSON, BOTH, session]);
    let body = request("echo", json!({ "a": 1 }));
    let reply = ask(&server, "POST /mcp", &headers, Some(&body)).await;
    assert_eq!(reply.json()["result"]["a"], 1);
    let headers = as_guest("ann", &[JSON]);
    assert_eq!(
        ask(&server, &messages, &headers, Some(&body)).await.status,
        202
    );
    assert_eq!(
        sse.event().await.expect("an answer").json()["result"]["a"],
        1
    );
    server.until(&Seen::Request("echo".into())).await;
    assert_eq!(server.next().await, Seen::Request("echo".into()));
}

#[tokio::test]
async fn an_evicted_guest_has_nothing_left_and_others_have_all() {
    let mut server = Server::guarded().await;
    let (ann, bob) = (open(&server, "ann").await, open(&server, "bob").await);
    let mut theirs = Vec::new();
    for (guest, id) in [("ann", &ann), ("bob", &bob)] {
        let headers = as_guest(guest, &[EVENTS, (SESSION, id)]);
        let mut wires = vec![stream(&server, "GET /mcp", &headers).await];
        let mut wire = stream(&server, "GET /endless", &as_guest(guest, &[])).await;
        assert_eq!(wire.event().await.expect("an event").data, "0");
        wires.push(wire);
        let mut wire = stream(&server, "GET /sse", &as_guest(guest, &[EVENTS])).await;
        assert_eq!(wire.event().await.expect("an event").name, "endpoint");
        wires.push(wire);
        let mut wire = Wire::to(server.port).await;
        let headers = as_guest(guest, &modern_headers("say"));
        let body = modern("say", json!({ "steps": 1 }));
        wire.send("POST /mcp", &headers, Some(&body)).await;
        wire.head().await;
        assert_eq!(wire.event().await.expect("an event").said(), "first");
        wires.push(wire);
        let socket = stream(&server, "GET /ws/a", &as_guest(guest, &UPGRADE)).await;
        server.until(&Seen::Converse("a".into())).await;
        theirs.push((wires, socket));
    }
    let count = |guest: &str| {
        let sessions = server.door.sessions().into_iter();
        let theirs = sessions.filter(|facts| facts.guest.as_deref() == Some(guest));
        theirs.count()
    };
    assert_eq!((count("ann"), count("bob")), (3, 3));
    server.door.evict("ann");
    assert_eq!((count("ann"), count("bob")), (0, 3));
    let (bobs, mut bobs_socket) = theirs.pop().expect("those of Bob");
    let (anns, mut anns_socket) = theirs.pop().expect("those of Ann");
    for mut wire in anns {
        assert_eq!(wire.event().await, None);
    }
    assert_eq!(anns_socket.rest().await, "");
    server.until(&Seen::Dropped("say".into())).await;
    let headers = as_guest("ann", &[JSON, BOTH, (SESSION, &ann)]);
    let body = request("echo", json!({}));
    let reply = ask(&server, "POST /mcp", &headers, Some(&body)).await;
    assert_eq!(reply.status, 404);
    // Bob goes on with everything.
    server.open_gate();
    let mut wires = bobs.into_iter();
    let mut listening = wires.next().expect("a stream");
    let mut page = wires.next().expect("a page");
    assert_eq!(page.event().await.expect("an event").data, "1");
    let _sse = wires.next().expect("a stream");
    let mut saying = wires.next().expect("a stream");
    assert_eq!(saying.event().await.expect("an event").said(), "step 0");
    let headers = as_guest("bob", &[(SESSION, &bob)]);
    assert_eq!(
        ask(&server, "DELETE /mcp", &headers, None).await.status,
        204
    );
    assert_eq!(listening.event().await, None);
    // Half a message, which is waited for: the socket is open.
    bobs_socket.write("\u{1}").await;
    let left = server.door.sessions().into_iter();
    let mut left: Vec<_> = left.map(|facts| facts.transport.name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["sse", "ws"]);
}

#[tokio::test]
async fn a_session_that_is_being_opened_ends_with_an_eviction() {
    let mut server = Server::guarded().await;
    let mut wire = Wire::to(server.port).await;
    let params = json!({ "protocolVersion": "2025-06-18", "wait": 1 });
    let body = request("initialize", params);
    let headers = as_guest("ann", &[JSON, ("Accept", "application/json")]);
    wire.send("POST /mcp", &headers, Some(&body)).await;
    server.until(&Seen::Request("initialize".into())).await;
    server.door.evict("ann");
    server.open_gate();
    let reply = wire.reply().await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.header("mcp-session-id"), None);
    server.until(&Seen::Ended).await;
    assert_eq!(server.door.sessions(), []);
}

#[tokio::test]
async fn streams_and_sockets_end_when_the_time_of_their_guest_is_over() {
    let mut server = Server::guarded().await;
    let guest = "brief-ann";
    let id = open(&server, guest).await;
    let headers = as_guest(guest, &[EVENTS, (SESSION, &id)]);
    let mut wires = vec![stream(&server, "GET /mcp", &headers).await];
    let mut page = stream(&server, "GET /endless", &as_guest(guest, &[])).await;
    assert_eq!(page.event().await.expect("an event").data, "0");
    let mut sse = stream(&server, "GET /sse", &as_guest(guest, &[EVENTS])).await;
    assert_eq!(sse.event().await.expect("an event").name, "endpoint");
    wires.extend([page, sse]);
    let mut socket = stream(&server, "GET /ws/a", &as_guest(guest, &UPGRADE)).await;
    server.until(&Seen::Converse("a".into())).await;
    let mut saying = Wire::to(server.port).await;
    let headers = as_guest(guest, &modern_headers("say"));
    let body = modern("say", json!({ "steps": 1 }));
    saying.send("POST /mcp", &headers, Some(&body)).await;
    saying.head().await;
    assert_eq!(saying.event().await.expect("an event").said(), "first");

    tokio::time::pause();
    let begun = Instant::now();
    for mut wire in wires {
        assert_eq!(wire.event().await, None);
    }
    assert_ne!(socket.rest().await, "", "it is told that it ends");
    assert!(begun.elapsed() > BRIEFLY / 2, "{:?}", begun.elapsed());
    tokio::time::resume();

    // What was asked for in time is answered, and with a new time the session goes on.
    server.open_gate();
    assert_eq!(saying.event().await.expect("an event").said(), "step 0");
    let headers = as_guest(guest, &[JSON, BOTH, (SESSION, &id)]);
    let body = request("echo", json!({ "a": 1 }));
    let reply = ask(&server, "POST /mcp", &headers, Some(&body)).await;
    assert_eq!(reply.json()["result"]["a"], 1);
}

#[tokio::test]
async fn a_page_in_pieces_ends_with_its_client_and_with_the_server() {
    let mut server = Server::start().await;
    let mut wire = stream(&server, "GET /endless", &[]).await;
    assert_eq!(wire.event().await.expect("an event").data, "0");
    server.open_gate();
    assert_eq!(wire.event().await.expect("an event").data, "1");
    drop(wire);
    // That the client is gone shows when something is sent.
    let dropped = Seen::Dropped("page".into());
    server.open_gate();
    server.until(&dropped).await;
    let mut head = Wire::to(server.port).await;
    head.send("HEAD /endless", &[], None).await;
    assert_eq!(head.head().await.status, 200);
    server.until(&dropped).await;
    assert_eq!(head.ask("GET /", &[], None).await.body, "page /");
    let mut wire = stream(&server, "GET /endless", &[]).await;
    wire.event().await.expect("an event");
    server.shut_down();
    assert_eq!(wire.event().await, None);
    server.until(&dropped).await;
    server.ended().await;
}

#[tokio::test]
async fn the_door_tells_of_sessions_and_never_their_ids() {
    let mut server = Server::guarded().await;
    let id = open(&server, "ann").await;
    let socket = stream(&server, "GET /ws/a", &as_guest("bob", &UPGRADE)).await;
    server.until(&Seen::Converse("a".into())).await;
    let mut sessions = server.door.sessions();
    sessions.sort_by_key(|facts| facts.guest.clone());
    let facts: Vec<_> = sessions
        .iter()
        .map(|facts| {
            (
                facts.guest.as_deref(),
                facts.endpoint.as_deref(),
                facts.transport,
                facts.revision.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        facts,
        [
            (
                Some("ann"),
                None,
                SessionTransport::Http,
                Some("2025-06-18")
            ),
            (Some("bob"), Some("a"), SessionTransport::WebSocket, None),
        ]
    );
    assert!(!format!("{sessions:?}").contains(&id));
    drop(socket);
    let door = server.door.clone();
    server.shut_down();
    server.ended().await;
    assert_eq!(door.sessions(), []);
    door.evict("ann");
}

#[tokio::test]
async fn everybody_can_be_sent_away_at_once_from_several_servers() {
    let (one, other) = (Server::guarded().await, Server::guarded().await);
    let ann = open(&one, "ann").await;
    let mut streams = Vec::new();
    for server in [&one, &other] {
        let mut wire = stream(server, "GET /endless", &as_guest("bob", &[])).await;
        assert_eq!(wire.event().await.expect("an event").data, "0");
        streams.push(wire);
    }
    let door = one.door.clone().and(other.door.clone());
    assert_eq!(door.sessions().len(), 1);
    door.evict_all();
    for mut wire in streams {
        assert_eq!(wire.event().await, None);
    }
    let headers = as_guest("ann", &[JSON, BOTH, (SESSION, &ann)]);
    let body = request("echo", json!({}));
    let reply = ask(&one, "POST /mcp", &headers, Some(&body)).await;
    assert_eq!(reply.status, 404);
    assert_eq!(door.sessions(), []);
}

/// Somebody who has two seats finds none, whatever they want.
async fn finds_no_seat(server: &Server, guest: &str) {
    let initialize = request("initialize", json!({ "protocolVersion": "2025-06-18" }));
    let listen = modern("subscriptions/listen", json!({}));
    let listening = modern_headers("subscriptions/listen");
    let headers = [&[JSON, BOTH][..], &listening, &[EVENTS], &UPGRADE];
    let bodies = [Some(initialize.as_str()), Some(listen.as_str()), None, None];
    let lines = ["POST /mcp", "POST /mcp", "GET /sse", "GET /ws"];
    for ((line, headers), body) in lines.into_iter().zip(headers).zip(bodies) {
        let reply = ask(server, line, &as_guest(guest, headers), body).await;
        assert_eq!(reply.status, 429, "{line} {reply:?}");
        assert!(reply.body.contains("You may have 2 sessions"), "{reply:?}");
        assert!(reply.header("retry-after").is_some());
    }
}

#[tokio::test]
async fn one_guest_does_not_take_all_seats() {
    let mut server = Server::guarded().await;
    let session = open(&server, "few-ann").await;
    let socket = stream(&server, "GET /ws", &as_guest("few-ann", &UPGRADE)).await;
    finds_no_seat(&server, "few-ann").await;
    // Others have seats, and what needs none is done.
    open(&server, "few-bob").await;
    let headers = as_guest("few-ann", &modern_headers("echo"));
    let reply = ask(
        &server,
        "POST /mcp",
        &headers,
        Some(&modern("echo", json!({}))),
    )
    .await;
    assert_eq!(reply.status, 200);
    // Whoever ends something may begin something else.
    let headers = as_guest("few-ann", &[(SESSION, &session)]);
    ask(&server, "DELETE /mcp", &headers, None).await;
    server.until(&Seen::Ended).await;
    let sse = stream(&server, "GET /sse", &as_guest("few-ann", &[EVENTS])).await;
    finds_no_seat(&server, "few-ann").await;
    drop((sse, socket));
    for _ in 0..2 {
        server.until(&Seen::Ended).await;
    }
}

#[tokio::test]
async fn what_clients_call_themselves_is_told() {
    let server = Server::guarded().await;
    let params = json!({
        "protocolVersion": "2025-06-18",
        "clientInfo": { "name": "ann's\u{1b}[2J client", "version": "1" },
    });
    let initialize = request("initialize", params);
    let headers = as_guest("ann", &[JSON, BOTH]);
    ask(&server, "POST /mcp", &headers, Some(&initialize)).await;
    let names = || -> Vec<_> {
        let all = server.door.sessions().into_iter();
        all.map(|session| session.client).collect()
    };
    let name = Some("ann's [2J client 1".to_owned());
    assert_eq!(names(), std::slice::from_ref(&name));
    let mut sse = stream(&server, "GET /sse", &as_guest("ann", &[EVENTS])).await;
    let messages = sse.event().await.expect("the first event").data;
    assert_eq!(names().len(), 2);
    let headers = as_guest("ann", &[JSON]);
    let line = format!("POST {messages}");
    ask(&server, &line, &headers, Some(&initialize)).await;
    assert_eq!(names(), [name.clone(), name]);
}
