//! Requests that nobody means well: each is refused, and has no effect.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use super::resume::free_connection;
use super::site::{Seen, Server};
use super::wire::{EVENTS, JSON, Reply, Wire, modern, modern_headers, open_session, request};

/// Short for a limit, but long for whatever a busy machine does in between.
const SHORT: Duration = Duration::from_millis(250);

type Headers = Vec<(&'static str, &'static str)>;

/// A request for everything that the server has.
fn everything() -> Vec<(&'static str, Headers, Option<String>)> {
    let socket = vec![
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let initialize = request("initialize", json!({ "protocolVersion": "2025-11-25" }));
    vec![
        (
            "POST /mcp",
            modern_headers("echo").to_vec(),
            Some(modern("echo", json!({}))),
        ),
        ("POST /mcp/a", vec![JSON], Some(initialize)),
        ("GET /mcp", vec![EVENTS], None),
        ("DELETE /mcp", vec![], None),
        ("GET /sse", vec![EVENTS], None),
        (
            "POST /messages?sessionId=x",
            vec![JSON],
            Some(request("echo", json!({}))),
        ),
        ("GET /ws", socket.clone(), None),
        ("GET /mcp/b", socket, None),
        ("GET /", vec![], None),
        (
            "OPTIONS /mcp",
            vec![("Access-Control-Request-Method", "POST")],
            None,
        ),
    ]
}

#[tokio::test]
async fn foreign_hosts_and_origins_reach_nothing() {
    let mut server = Server::start().await;
    let foreign: [&[(&str, &str)]; 7] = [
        &[("Host", "evil.example")],
        &[("Host", "evil.example"), ("Origin", "http://evil.example")],
        &[("Host", "localhost.evil.example")],
        &[("Host", "localhost"), ("Origin", "http://evil.example")],
        &[("Host", "localhost"), ("Origin", "null")],
        &[
            ("Host", "localhost"),
            ("Origin", "https://localhost.evil.example"),
        ],
        &[
            ("Host", "localhost"),
            ("Origin", "http://localhost"),
            ("Origin", "http://evil.example"),
        ],
    ];
    for extra in foreign {
        for (line, headers, body) in everything() {
            let headers: Vec<_> = headers.iter().chain(extra).copied().collect();
            let mut wire = Wire::to(server.port).await;
            let reply = wire.ask(line, &headers, body.as_deref()).await;
            assert_eq!(reply.status, 403, "for {line} with {extra:?}");
            assert!(
                reply
                    .headers
                    .iter()
                    .all(|(name, _)| !name.starts_with("access-control"))
            );
        }
    }
    assert!(server.seen.try_recv().is_err(), "nothing came through");
    for extra in [
        &[("Host", "")][..],
        &[("Host", "localhost"), ("Host", "localhost")],
    ] {
        let mut wire = Wire::to(server.port).await;
        let reply = wire.ask("GET /", extra, None).await;
        assert!(matches!(reply.status, 400 | 403), "for {extra:?}");
    }
    let mut wire = Wire::to(server.port).await;
    wire.write("GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(wire.reply().await.status, 400);
    let mut wire = Wire::to(server.port).await;
    let reply = wire
        .ask("GET http://evil.example/", &[("Host", "localhost")], None)
        .await;
    assert_eq!(reply.status, 403, "the first line counts, too");
}

#[tokio::test]
async fn own_names_are_let_in() {
    let server = Server::with(|options| options.allowed_hosts = vec!["gate.example".into()]).await;
    for (host, origin) in [
        ("localhost", "http://localhost:3000"),
        ("127.0.0.1:1234", "http://127.0.0.1"),
        ("[::1]:80", "https://[::1]:5"),
        ("gate.example:8080", "https://gate.example"),
    ] {
        let mut wire = Wire::to(server.port).await;
        let headers = [("Host", host), ("Origin", origin)];
        let reply = wire.ask("GET /about", &headers, None).await;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (200, "page /about"),
            "for {host}"
        );
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn only_allowed_pages_may_read_answers() {
    let server =
        Server::with(|options| options.allowed_origins = vec!["https://page.example".into()]).await;
    let origin = ("Origin", "https://page.example");
    let mut wire = Wire::to(server.port).await;
    let asks = [
        origin,
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type,mcp-param-x"),
    ];
    let reply = wire.ask("OPTIONS /mcp", &asks, None).await;
    assert_eq!(reply.status, 204);
    assert_eq!(
        reply.header("access-control-allow-origin"),
        Some("https://page.example")
    );
    assert_eq!(
        reply.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    assert_eq!(
        reply.header("access-control-allow-headers"),
        Some("content-type,mcp-param-x")
    );
    assert_eq!(reply.header("vary"), Some("Origin"));

    let headers: Vec<_> = modern_headers("echo").into_iter().chain([origin]).collect();
    let reply = wire
        .ask("POST /mcp", &headers, Some(&modern("echo", json!({}))))
        .await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.header("access-control-allow-origin"),
        Some("https://page.example")
    );
    let exposed = reply
        .header("access-control-expose-headers")
        .expect("exposed headers");
    assert!(exposed.contains("Mcp-Session-Id"));

    let asks = [
        ("Origin", "http://localhost:1"),
        ("Access-Control-Request-Method", "POST"),
    ];
    let reply = wire.ask("OPTIONS /mcp", &asks, None).await;
    assert_eq!(reply.status, 405);
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

/// Two ways to say where a body ends must not hide a second request in it.
///
/// Where both `Content-Length` and `Transfer-Encoding` are given, hyper drops the first before
/// anybody can see it, takes the chunks, and closes the connection after the answer, as RFC 9112
/// (6.1) wants it. That there were both cannot be a reason for a 400 here; that the chunks hold no
/// JSON is one.
#[tokio::test]
async fn no_request_hides_in_another() {
    let mut server = Server::start().await;
    let hidden = "POST /mcp/b HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let chunked = format!("0\r\n\r\n{hidden}");
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    for (what, fields, body) in [
        (
            "length and chunks",
            format!(
                "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n",
                chunked.len()
            ),
            chunked.as_str(),
        ),
        (
            "chunks and length",
            format!(
                "Transfer-Encoding: chunked\r\nContent-Length: {}\r\n",
                chunked.len()
            ),
            &chunked,
        ),
        (
            "two lengths",
            "Content-Length: 2\r\nContent-Length: 60\r\n".into(),
            hidden,
        ),
        (
            "two lengths in one",
            "Content-Length: 2, 60\r\n".into(),
            hidden,
        ),
        ("a negative length", "Content-Length: -1\r\n".into(), hidden),
        ("a signed length", "Content-Length: +2\r\n".into(), hidden),
        (
            "chunks that are not last",
            "Transfer-Encoding: chunked, identity\r\n".into(),
            hidden,
        ),
        (
            "unknown chunks",
            "Transfer-Encoding: xchunked\r\n".into(),
            &chunked,
        ),
        (
            "a bad chunk size",
            "Transfer-Encoding: chunked\r\n".into(),
            "zz\r\n{}\r\n0\r\n\r\n",
        ),
        (
            "a folded line",
            " folded: x\r\nContent-Length: 2\r\n".into(),
            hidden,
        ),
        (
            "a blank before the colon",
            "Content-Length : 2\r\n".into(),
            hidden,
        ),
        ("a NUL", "X: \0\r\nContent-Length: 2\r\n".into(), hidden),
    ] {
        let mut wire = Wire::to(server.port).await;
        wire.write(&format!("{head}{fields}\r\n{body}")).await;
        let answers = wire.rest().await;
        assert!(
            answers.starts_with("HTTP/1.1 400 "),
            "for {what}: {answers}"
        );
        assert_eq!(
            answers.matches("HTTP/1.1").count(),
            1,
            "for {what}: {answers}"
        );
    }
    let mut wire = Wire::to(server.port).await;
    wire.write("POST /mcp HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    assert!(wire.rest().await.contains(" 400 "));
    assert!(server.seen.try_recv().is_err(), "nothing came through");
}

#[tokio::test]
async fn bodies_have_a_largest_size() {
    let server = Server::limited(|limits| limits.max_body = 1000).await;
    let fits = modern("echo", json!({ "x": "y".repeat(700) }));
    let mut wire = Wire::to(server.port).await;
    let reply = wire
        .ask("POST /mcp", &modern_headers("echo"), Some(&fits))
        .await;
    assert_eq!(reply.status, 200);

    let over = modern("echo", json!({ "x": "y".repeat(1000) }));
    let reply = wire
        .ask("POST /mcp", &modern_headers("echo"), Some(&over))
        .await;
    assert_eq!(reply.status, 413);

    // One that does not say how long it is, and has no end.
    let mut wire = Wire::to(server.port).await;
    let endless = [JSON, ("Transfer-Encoding", "chunked")];
    wire.send("POST /mcp", &endless, None).await;
    for _ in 0..20 {
        wire.write(&format!("64\r\n{}\r\n", "x".repeat(100))).await;
    }
    assert_eq!(wire.reply().await.status, 413);

    // In pieces, but of a fair size.
    let mut wire = Wire::to(server.port).await;
    let [json_type, accept, version, method] = modern_headers("echo");
    let headers = [
        json_type,
        accept,
        version,
        method,
        ("Transfer-Encoding", "chunked"),
    ];
    wire.send("POST /mcp", &headers, None).await;
    for piece in fits.as_bytes().chunks(100) {
        let piece = std::str::from_utf8(piece).expect("text");
        wire.write(&format!("{:x}\r\n{piece}\r\n", piece.len()))
            .await;
    }
    wire.write("0\r\n\r\n").await;
    assert_eq!(wire.reply().await.status, 200);
}

#[tokio::test]
async fn heads_have_a_largest_size() {
    let server = Server::limited(|limits| limits.max_header_bytes = 16 * 1024).await;
    let mut wire = Wire::to(server.port).await;
    let long = "x".repeat(10_000);
    assert_eq!(wire.ask("GET /", &[("X", &long)], None).await.status, 200);
    let reply = wire.ask("GET /", &[("X", &long), ("Y", &long)], None).await;
    assert_eq!(reply.status, 431);

    let mut wire = Wire::to(server.port).await;
    let many = vec![("X", "y"); 200];
    assert_eq!(wire.ask("GET /", &many, None).await.status, 431);

    // One that never ends.
    let mut wire = Wire::to(server.port).await;
    let mut text = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ".to_owned();
    text.push_str(&"x".repeat(100_000));
    wire.write(&text).await;
    assert!(wire.rest().await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn slow_heads_are_cut_off_and_slow_thinkers_are_not() {
    let mut server = Server::limited(|limits| {
        limits.header_timeout = SHORT;
        limits.keep_alive = SHORT * 2;
    })
    .await;
    // A request under way has all the time it wants.
    let mut busy = Wire::to(server.port).await;
    let body = modern("wait", json!({}));
    busy.send("POST /mcp", &modern_headers("wait"), Some(&body))
        .await;
    server.until(&Seen::Request("wait".into())).await;

    for begun in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\nX: "] {
        let mut slow = Wire::to(server.port).await;
        slow.write(begun).await;
        assert_eq!(slow.rest().await, "", "for {begun:?}");
    }
    // Also in the second request of a connection.
    let mut slow = Wire::to(server.port).await;
    assert_eq!(slow.ask("GET /", &[], None).await.status, 200);
    slow.write("GET / HTTP/1.1\r\nHo").await;
    assert_eq!(slow.rest().await, "");

    let mut idle = Wire::to(server.port).await;
    assert_eq!(idle.ask("GET /", &[], None).await.status, 200);
    assert_eq!(idle.rest().await, "", "an unused connection is closed");

    server.open_gate();
    assert_eq!(busy.reply().await.status, 200);
}

#[tokio::test]
async fn slow_bodies_are_cut_off() {
    for limit in [
        |limits: &mut cocode_wire::serve::HttpLimits| limits.body_timeout = SHORT,
        |limits: &mut cocode_wire::serve::HttpLimits| limits.body_deadline = SHORT,
    ] {
        let mut server = Server::limited(limit).await;
        let mut slow = Wire::to(server.port).await;
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
        slow.write(&format!("{head}Content-Length: 100\r\n\r\n{{"))
            .await;
        let answer = slow.rest().await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(server.seen.try_recv().is_err());
    }
}

#[tokio::test]
async fn who_takes_nothing_is_cut_off() {
    let server = Server::limited(|limits| {
        limits.stall = SHORT;
        limits.max_connections = 1;
    })
    .await;
    let mut deaf = Wire::to(server.port).await;
    // More than the system keeps for a connection.
    let body = modern("large", json!({ "size": 30_000_000 }));
    deaf.send("POST /mcp", &modern_headers("large"), Some(&body))
        .await;
    free_connection(&server).await;
}

#[tokio::test]
async fn an_endpoint_that_panics_takes_nobody_with_it() {
    let mut server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let mut other = Wire::to(server.port).await;
    other
        .send(
            "POST /mcp",
            &modern_headers("wait"),
            Some(&modern("wait", json!({}))),
        )
        .await;
    server.until(&Seen::Request("wait".into())).await;
    let mut wire = Wire::to(server.port).await;
    wire.send(
        "POST /mcp",
        &modern_headers("panic"),
        Some(&modern("panic", json!({}))),
    )
    .await;
    assert_eq!(wire.rest().await, "");
    let session = ("Mcp-Session-Id", id.as_str());
    for (method, status) in [("panic", None), ("echo", Some(" 200 "))] {
        let mut wire = Wire::to(server.port).await;
        let headers = [JSON, session, ("Connection", "close")];
        wire.send("POST /mcp", &headers, Some(&request(method, json!({}))))
            .await;
        let answer = wire.rest().await;
        assert_eq!(
            answer.is_empty(),
            status.is_none(),
            "for {method}: {answer}"
        );
        assert!(answer.contains(status.unwrap_or_default()));
    }
    server.open_gate();
    assert_eq!(other.reply().await.status, 200);
}

#[tokio::test]
async fn browsers_do_not_open_streams() {
    let mut server = Server::start().await;
    for accept in ["*/*", "text/html,application/xhtml+xml,*/*;q=0.8", "text/*"] {
        let mut wire = Wire::to(server.port).await;
        let reply = wire.ask("GET /mcp", &[("Accept", accept)], None).await;
        assert_eq!(reply.status, 405, "for {accept}");
        let reply = wire.ask("GET /sse", &[("Accept", accept)], None).await;
        assert_eq!(reply.status, 406, "for {accept}");
    }
    let mut wire = Wire::to(server.port).await;
    assert_eq!(wire.ask("GET /sse", &[], None).await.status, 406);
    assert!(server.seen.try_recv().is_err());
}

#[tokio::test]
async fn there_are_only_so_many_connections() {
    let mut server = Server::limited(|limits| limits.max_connections = 2).await;
    let mut first = Wire::to(server.port).await;
    let body = modern("wait", json!({}));
    first
        .send("POST /mcp", &modern_headers("wait"), Some(&body))
        .await;
    let mut second = Wire::to(server.port).await;
    second
        .send("POST /mcp", &modern_headers("wait"), Some(&body))
        .await;
    server.until(&Seen::Request("wait".into())).await;
    server.until(&Seen::Request("wait".into())).await;
    let mut third = Wire::to(server.port).await;
    third.send("GET /", &[], None).await;
    let answer = third.rest().await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.to_lowercase().contains("retry-after"));
    server.open_gate();
    assert_eq!(second.reply().await.status, 200);
}

#[tokio::test]
async fn silent_connections_make_room_for_a_real_client() {
    let mut server = Server::limited(|limits| limits.max_connections = 3).await;
    let mut busy = Wire::to(server.port).await;
    let body = modern("wait", json!({}));
    busy.send("POST /mcp", &modern_headers("wait"), Some(&body))
        .await;
    server.until(&Seen::Request("wait".into())).await;
    let mut silent = Vec::new();
    for beginning in ["", "GET / HTTP/1.1\r\nHost: localhost\r\n", "", "", ""] {
        let mut wire = Wire::to(server.port).await;
        wire.write(beginning).await;
        silent.push(wire);
    }
    for _ in 0..3 {
        let mut wire = Wire::to(server.port).await;
        let reply = wire.ask("GET /", &[("Connection", "close")], None).await;
        assert_eq!(reply.status, 200);
    }
    // Connections that are kept open without a request give way, too.
    for _ in 0..5 {
        let mut wire = Wire::to(server.port).await;
        assert_eq!(wire.ask("GET /", &[], None).await.status, 200);
        silent.push(wire);
    }
    // Whoever has sent a whole request stays.
    server.open_gate();
    assert_eq!(busy.reply().await.status, 200);
}

#[tokio::test]
async fn refused_requests_that_do_not_end_make_room_for_a_client_with_a_token() {
    let server = Server::guarded_with(|limits| limits.max_connections = 2).await;
    let mut slow = Vec::new();
    for _ in 0..5 {
        let mut wire = Wire::to(server.port).await;
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Content-Length: 1000\r\n\r\n{";
        wire.write(head).await;
        slow.push(wire);
    }
    for _ in 0..3 {
        let mut wire = Wire::to(server.port).await;
        let headers = [("Authorization", "ana"), ("Connection", "close")];
        assert_eq!(wire.ask("GET /", &headers, None).await.status, 200);
    }
}

#[tokio::test]
async fn a_socket_needs_a_whole_handshake() {
    let mut server = Server::start().await;
    let upgrade = ("Upgrade", "websocket");
    let connection = ("Connection", "keep-alive, Upgrade");
    let version = ("Sec-WebSocket-Version", "13");
    let key = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    for (what, headers, status) in [
        ("no upgrade", vec![connection, version, key], 426),
        ("no connection", vec![upgrade, version, key], 400),
        ("no key", vec![upgrade, connection, version], 400),
        (
            "another version",
            vec![upgrade, connection, key, ("Sec-WebSocket-Version", "8")],
            426,
        ),
    ] {
        let mut wire = Wire::to(server.port).await;
        assert_eq!(
            wire.ask("GET /ws", &headers, None).await.status,
            status,
            "for {what}"
        );
    }
    assert!(server.seen.try_recv().is_err());
    let mut wire = Wire::to(server.port).await;
    let headers = [
        upgrade,
        connection,
        version,
        key,
        ("Sec-WebSocket-Protocol", "x, mcp"),
    ];
    // A page of another server on this machine could read everything.
    let [upgrade, connection, version, key, protocol] = headers;
    let foreign = ("Origin", "http://localhost:3000");
    let reply = Wire::to(server.port)
        .await
        .ask(
            "GET /ws",
            &[upgrade, connection, version, key, foreign],
            None,
        )
        .await;
    assert_eq!(reply.status, 403);
    assert!(server.seen.try_recv().is_err());
    let own = ("Origin", "http://localhost");
    let headers = [upgrade, connection, version, key, protocol, own];
    wire.send("GET /ws", &headers, None).await;
    let head = wire.head().await;
    assert_eq!(head.status, 101);
    assert_eq!(
        head.header("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
    assert_eq!(head.header("sec-websocket-protocol"), Some("mcp"));
    assert_eq!(server.next().await, Seen::Converse("all".into()));
    drop(wire);
    assert_eq!(server.next().await, Seen::Ended);
}

#[tokio::test]
async fn clients_before_http_1_1_are_served() {
    let server = Server::start().await;
    let id = open_session(server.port, "/mcp", "2025-11-25").await;
    let body = request("say", json!({}));
    let mut text =
        "POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n".to_owned();
    write!(
        text,
        "Mcp-Session-Id: {id}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("text");
    let mut wire = Wire::to(server.port).await;
    wire.write(&text).await;
    let answer = wire.rest().await;
    assert!(
        answer.starts_with("HTTP/1.0 200 ") || answer.starts_with("HTTP/1.1 200 "),
        "{answer}"
    );
    assert!(!answer.to_lowercase().contains("transfer-encoding"));
    assert!(answer.contains("\"text\":\"first\"") && answer.contains("\"id\":1"));
}

/// Announces a body of ten million bytes, which never comes.
async fn announce(server: &Server, line: &str) -> Reply {
    let mut wire = Wire::to(server.port).await;
    wire.send(line, &[JSON, ("Content-Length", "10000000")], None)
        .await;
    wire.reply().await
}

#[tokio::test]
async fn a_body_that_nobody_wants_is_not_waited_for() {
    let server = Server::start().await;
    let reply = announce(&server, "POST /unwanted").await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "0 bytes"));
    let reply = announce(&server, "POST /small").await;
    assert_eq!(reply.status, 413);
    assert_eq!(reply.body, "the body is larger than 1000 bytes\n");
    // Nor is one that comes in endless pieces.
    let mut wire = Wire::to(server.port).await;
    wire.send("POST /unwanted", &[("Transfer-Encoding", "chunked")], None)
        .await;
    let piece = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    for _ in 0..17 {
        wire.write(&piece).await;
    }
    assert_eq!(wire.reply().await.body, "0 bytes");

    let guarded = Server::guarded().await;
    for line in [
        "POST /mcp",
        "POST /messages?sessionId=x",
        "POST /unwanted",
        "POST /any",
    ] {
        assert_eq!(announce(&guarded, line).await.status, 401, "{line}");
    }
}

#[tokio::test]
async fn a_small_body_that_nobody_wants_passes_by_and_the_connection_goes_on() {
    let server = Server::guarded().await;
    for (line, headers, expected) in [
        ("POST /mcp", &[JSON][..], "who are you?"),
        (
            "POST /unwanted",
            &[JSON, ("Authorization", "ann")],
            "0 bytes",
        ),
        ("POST /small", &[JSON, ("Authorization", "ann")], "5 bytes"),
    ] {
        let mut wire = Wire::to(server.port).await;
        for _ in 0..2 {
            let headers: Vec<_> = [("Content-Length", "5")]
                .iter()
                .chain(headers)
                .copied()
                .collect();
            wire.send(line, &headers, None).await;
            wire.write("ab").await;
            wire.write("cde").await;
            assert_eq!(wire.reply().await.body, expected, "{line}");
        }
    }
}
