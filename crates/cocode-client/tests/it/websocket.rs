//! WebSocket servers: the handshake, the close codes, and connections that just end.

use cocode_client::{
    Closed, ConnectError, LinkError, OpenError, RequestError, Session, SessionOptions,
};
use cocode_testkit::Script;

use crate::support::{
    assert_timeout, assert_works, call, capped, connect, link_error, raw, soon, text_of, websocket,
    within,
};

fn reason_of(outcome: Result<cocode_client::CallResult, RequestError>) -> Closed {
    match outcome {
        Err(RequestError::Closed { reason, .. }) => reason,
        other => panic!("not closed: {other:?}"),
    }
}

#[tokio::test]
async fn a_session_works_in_both_eras() {
    for script in [Script::new(), Script::modern()] {
        let server = script.websocket();
        let session = connect(websocket(&server)).await;
        assert_eq!(
            text_of(&call(&session).await.unwrap()),
            r#"{"word":"hello"}"#
        );
        assert_eq!(session.server().transport, "ws");
        let offer = server.handshakes().all();
        assert_eq!(offer[0].header("Sec-WebSocket-Protocol"), Some("mcp"));
        soon("the end of the session", session.close()).await;
    }
}

#[tokio::test]
async fn a_server_that_knows_no_subprotocol_is_welcome() {
    let server = Script::new().no_subprotocol().websocket();
    let session = connect(websocket(&server)).await;
    assert_works(&session).await;
    let offers = server.handshakes().all();
    let offers: Vec<_> = offers
        .iter()
        .map(|handshake| handshake.header("Sec-WebSocket-Protocol"))
        .collect();
    assert_eq!(offers, [Some("mcp"), None]);
}

#[tokio::test]
async fn the_code_and_reason_of_a_close_are_reported() {
    let server = Script::new()
        .on("tools/call")
        .close(4001, "maintenance")
        .websocket();
    let session = connect(websocket(&server)).await;
    match reason_of(call(&session).await) {
        Closed::WebSocket { code, reason } => {
            assert_eq!((code, reason.as_str()), (4001, "maintenance"));
        }
        other => panic!("{other:?}"),
    }
    assert!(session.closed().await.to_string().contains("4001"));
    reason_of(call(&session).await);
}

#[tokio::test]
async fn a_connection_that_is_dropped_ends_the_session() {
    let server = Script::new().on("tools/call").disconnect().websocket();
    let session = connect(websocket(&server)).await;
    let reason = reason_of(call(&session).await);
    let dropped = matches!(reason, Closed::ByPeer | Closed::Io(_) | Closed::Protocol(_));
    assert!(dropped, "{reason:?}");
}

#[tokio::test]
async fn a_message_over_the_cap_fails_its_own_request_alone() {
    let long = "x".repeat(100_000);
    let server = Script::new()
        .on("tools/call")
        .text_result(&long)
        .websocket();
    let session = connect(capped(websocket(&server))).await;
    match call(&session).await {
        Err(RequestError::Malformed { reason, .. }) => assert!(reason.contains("4096"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert_works(&session).await;
}

#[tokio::test]
async fn a_message_far_over_the_cap_ends_the_session_with_a_reason() {
    let server = Script::new().on("tools/call").fill(2_000_000).websocket();
    let session = connect(capped(websocket(&server))).await;
    match reason_of(call(&session).await) {
        Closed::Protocol(reason) => assert!(
            reason.contains("too long") || reason.contains("large"),
            "{reason}"
        ),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_message_of_ours_over_the_cap_is_not_sent() {
    let server = Script::new().websocket();
    let session = connect(capped(websocket(&server))).await;
    let long = raw(&format!(r#"{{"x":"{}"}}"#, "x".repeat(10_000)));
    let outcome = session.call_tool("echo", Some(&long), within(20_000)).await;
    assert!(matches!(
        link_error(outcome),
        LinkError::TooLarge { limit: 4096, .. }
    ));
    assert_works(&session).await;
    assert_eq!(
        server.received().count(|message| message.is("tools/call")),
        0
    );
}

#[tokio::test]
async fn texts_that_are_no_messages_are_skipped() {
    let server = Script::new()
        .on("tools/call")
        .text("hello?")
        .raw(b"\xff\xfe")
        .text_result("still here")
        .websocket();
    let session = connect(websocket(&server)).await;
    assert_eq!(text_of(&call(&session).await.unwrap()), "still here");
}

#[tokio::test]
async fn a_refused_handshake_says_why() {
    let server = Script::new().refuse_handshake(401).websocket();
    match Session::connect(websocket(&server), SessionOptions::default()).await {
        Err(ConnectError::Open(OpenError::Link(LinkError::AuthRequired(challenge)))) => {
            assert_eq!(challenge.status, 401);
        }
        other => panic!("{other:?}"),
    }
    let server = Script::new().refuse_handshake(403).websocket();
    match Session::connect(websocket(&server), SessionOptions::default()).await {
        Err(ConnectError::Open(OpenError::Link(LinkError::Status { status: 403, .. }))) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_refusal_with_a_challenge_asks_for_credentials() {
    let challenge = [("WWW-Authenticate", "Bearer scope=\"tools\"")];
    for status in [401, 403] {
        let server = Script::new()
            .on_http("GET")
            .respond(status, &challenge, "")
            .http();
        let url = server.url().replace("http:", "ws:");
        let target = cocode_client::websocket(url.parse().unwrap());
        match Session::connect(target, SessionOptions::default()).await {
            Err(ConnectError::Open(OpenError::Link(LinkError::AuthRequired(seen)))) => {
                assert_eq!(seen.www_authenticate, [challenge[0].1]);
            }
            other => panic!("{status}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_speaks_only_http_is_refused() {
    let server = Script::new()
        .on_http("GET")
        .html(200, "<h1>Welcome</h1>")
        .http();
    let url = server.url().replace("http:", "ws:");
    let target = cocode_client::websocket(url.parse().unwrap());
    let outcome = Session::connect(target, SessionOptions::default()).await;
    assert_eq!(outcome.unwrap_err().code(), "http-status");
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let target = cocode_client::websocket(url.parse().unwrap());
    let outcome = Session::connect(target, SessionOptions::default()).await;
    assert_eq!(outcome.unwrap_err().code(), "unreachable");
}

#[tokio::test]
async fn a_server_that_stops_reading_does_not_keep_the_session_from_closing() {
    let server = Script::new().on("tools/call").stop_reading().websocket();
    let session = connect(websocket(&server)).await;
    // Together more than the buffers of a socket hold, so the writer is stuck in one of them.
    let long = raw(&format!(r#"{{"x":"{}"}}"#, "x".repeat(12_000_000)));
    for _ in 0..4 {
        let outcome = session.call_tool("echo", Some(&long), within(100)).await;
        assert_timeout(outcome);
    }
    soon("the end of the session", session.close()).await;
}
