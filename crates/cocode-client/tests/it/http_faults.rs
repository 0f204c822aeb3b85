//! HTTP servers that answer wrongly, elsewhere, too much or never: a clear error for that request.

use std::sync::Arc;

use cocode_client::{
    Challenge, ConnectError, LinkError, OpenError, Protocol, RequestError, Session, SessionOptions,
    Target,
};
use cocode_testkit::{HttpServer, Script, SseEvent};

use crate::support::{
    SMALL_CAP, Witness, assert_timeout, assert_works, call, call_with, capped, connect,
    connect_with, handled_by, http, link_error, rpc_error, speaking, text_of, within,
};

/// How a session fails its tool call when the rule for `tools/call` does this; the session works
/// before and after.
async fn failed_call(script: Script) -> LinkError {
    let server = script.http();
    let session = connect(http(&server)).await;
    let error = link_error(call(&session).await);
    assert_works(&session).await;
    error
}

fn on_call() -> Script {
    Script::new().on("tools/call")
}

#[tokio::test]
async fn an_internal_error_shows_its_body() {
    let error = failed_call(on_call().respond(500, &[], "the disk is full")).await;
    match error {
        LinkError::Status { status, body, .. } => {
            assert_eq!((status, body.as_str()), (500, "the disk is full"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_wait_that_the_server_asks_for_is_kept() {
    let error = failed_call(on_call().respond(503, &[("Retry-After", "17")], "")).await;
    assert!(matches!(
        error,
        LinkError::Status {
            status: 503,
            retry_after: Some(17),
            ..
        }
    ));
}

#[tokio::test]
async fn a_json_rpc_error_with_an_http_status_is_the_servers_answer() {
    let body = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32602,"message":"no such tool"}}"#;
    let server = on_call()
        .respond(400, &[("Content-Type", "application/json")], body)
        .http();
    let session = connect(http(&server)).await;
    let error = rpc_error(call(&session).await);
    assert_eq!(
        (error.code, error.message.as_str()),
        (-32602, "no such tool")
    );
}

#[tokio::test]
async fn a_json_rpc_error_for_nobody_is_the_answer_to_its_post() {
    let server = on_call()
        .json(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}"#)
        .http();
    let session = connect(http(&server)).await;
    assert_eq!(rpc_error(call(&session).await).code, -32600);
}

async fn challenge_when_connecting(status: u16, headers: &[(&str, &str)]) -> Challenge {
    let server = Script::new().on("*").respond(status, headers, "").http();
    match Session::connect(http(&server), SessionOptions::default()).await {
        Err(error @ ConnectError::Handshake { .. }) => {
            assert_eq!(error.code(), "auth-required");
            let ConnectError::Handshake { error, .. } = error else {
                unreachable!()
            };
            match link_error::<()>(Err(error)) {
                LinkError::AuthRequired(challenge) => challenge,
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_bare_401_asks_for_authentication() {
    let expected = Challenge {
        status: 401,
        www_authenticate: Vec::new(),
        auth_server: None,
    };
    assert_eq!(challenge_when_connecting(401, &[]).await, expected);
}

#[tokio::test]
async fn the_challenge_of_a_401_is_kept_whole() {
    let bearer = r#"Bearer realm="x", resource_metadata="https://a.example/meta""#;
    let headers = [
        ("WWW-Authenticate", bearer),
        ("WWW-Authenticate", "Basic"),
        ("Mcp-Auth-Server", "https://auth.example"),
    ];
    let expected = Challenge {
        status: 401,
        www_authenticate: vec![bearer.to_owned(), "Basic".to_owned()],
        auth_server: Some("https://auth.example".to_owned()),
    };
    assert_eq!(challenge_when_connecting(401, &headers).await, expected);
}

#[tokio::test]
async fn a_401_may_name_the_authorization_server_alone() {
    let headers = [("Mcp-Auth-Server", "https://auth.example")];
    let challenge = challenge_when_connecting(401, &headers).await;
    assert_eq!(
        challenge.auth_server.as_deref(),
        Some("https://auth.example")
    );
    assert!(challenge.to_string().contains("https://auth.example"));
}

#[tokio::test]
async fn a_403_with_a_challenge_asks_for_other_credentials() {
    let headers = [("WWW-Authenticate", r#"Bearer error="insufficient_scope""#)];
    match failed_call(on_call().respond(403, &headers, "")).await {
        LinkError::AuthRequired(challenge) => {
            assert_eq!(challenge.status, 403);
            assert_eq!(challenge.www_authenticate, [headers[0].1]);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_403_without_a_challenge_is_just_refused() {
    let error = failed_call(on_call().respond(403, &[], "go away")).await;
    assert!(
        matches!(error, LinkError::Status { status: 403, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_401_in_the_middle_of_a_session_asks_too() {
    let error = failed_call(on_call().unauthorized(&[("WWW-Authenticate", "Bearer")])).await;
    assert!(matches!(error, LinkError::AuthRequired(_)), "{error:?}");
}

#[tokio::test]
async fn a_web_page_instead_of_json_is_shown() {
    match failed_call(on_call().html(200, "<h1>Welcome</h1>")).await {
        LinkError::ContentType {
            content_type,
            excerpt,
        } => {
            assert_eq!(
                (content_type.as_str(), excerpt.as_str()),
                ("text/html", "<h1>Welcome</h1>")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_of_web_pages_is_no_mcp_server() {
    let server = Script::new()
        .on_http("POST")
        .html(200, "<h1>Welcome</h1>")
        .http();
    let outcome = Session::connect(http(&server), SessionOptions::default()).await;
    assert_eq!(outcome.unwrap_err().code(), "wrong-content-type");
}

#[tokio::test]
async fn another_content_type_is_named() {
    let json = r#"{"jsonrpc":"2.0","id":$id,"result":{}}"#;
    let error = failed_call(on_call().respond(200, &[("Content-Type", "text/plain")], json)).await;
    assert!(matches!(error, LinkError::ContentType { .. }), "{error:?}");
    let error = failed_call(on_call().respond(200, &[], json)).await;
    assert!(error.to_string().contains("no content type"), "{error}");
}

#[tokio::test]
async fn json_that_is_no_message_is_malformed() {
    for body in ["{broken", "[]", "17", ""] {
        let error = failed_call(on_call().json(body)).await;
        let clear = matches!(
            error,
            LinkError::Malformed { .. } | LinkError::NoAnswer { .. }
        );
        assert!(clear, "{body}: {error:?}");
    }
}

#[tokio::test]
async fn an_accepted_request_without_an_answer_has_none() {
    let error = failed_call(on_call().status(202)).await;
    assert!(matches!(error, LinkError::NoAnswer { .. }), "{error:?}");
}

#[tokio::test]
async fn a_stream_that_ends_without_the_answer_has_none() {
    let other = r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#;
    let error = failed_call(
        on_call()
            .stream()
            .notify("notifications/x", "{}")
            .line(other),
    )
    .await;
    assert!(matches!(error, LinkError::NoAnswer { .. }), "{error:?}");
}

#[tokio::test]
async fn a_malformed_event_before_the_answer_is_skipped() {
    let server = on_call()
        .stream()
        .event(SseEvent::data("{broken"))
        .event(SseEvent::data("\u{0}"))
        .comment("still there")
        .event(SseEvent::data("{}").event("something-else"))
        .text_result("here")
        .http();
    let session = connect(http(&server)).await;
    assert_eq!(text_of(&call(&session).await.unwrap()), "here");
}

#[tokio::test]
async fn a_malformed_event_instead_of_the_answer_is_shown() {
    let error = failed_call(on_call().stream().event(SseEvent::data("{broken"))).await;
    let LinkError::NoAnswer { detail } = &error else {
        panic!("{error:?}");
    };
    assert!(detail.contains("{broken"), "{detail}");
}

#[tokio::test]
async fn events_in_small_pieces_are_put_together() {
    let server = on_call()
        .stream()
        .in_pieces(1)
        .progress(1, 2)
        .text_result("slow")
        .http();
    let session = connect(http(&server)).await;
    assert_eq!(text_of(&call(&session).await.unwrap()), "slow");
}

async fn too_large(script: Script) {
    let server = script.http();
    let session = connect(capped(http(&server))).await;
    match link_error(call(&session).await) {
        LinkError::AnswerTooLarge { limit } => assert_eq!(limit, SMALL_CAP),
        other => panic!("{other:?}"),
    }
    assert_works(&session).await;
}

#[tokio::test]
async fn an_event_over_the_cap_fails_its_request_alone() {
    too_large(on_call().stream().text("data: ").fill(100_000).text("\n\n")).await;
    // One that never ends is noticed before its end.
    too_large(on_call().stream().text("data: ").fill(100_000).stall()).await;
}

#[tokio::test]
async fn a_body_over_the_cap_fails_its_request_alone() {
    let long = format!(r#"{{"x":"{}"}}"#, "x".repeat(100_000));
    too_large(on_call().json(long)).await;
    // One without a length is noticed before its end.
    let json = [("Content-Type", "application/json")];
    too_large(on_call().stream_with(&json).fill(100_000).stall()).await;
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_refused() {
    let elsewhere = Script::new().http();
    for status in [301, 302, 303, 307, 308] {
        match failed_call(on_call().redirect(status, &elsewhere.url())).await {
            LinkError::Redirect {
                status: seen,
                location,
            } => {
                assert_eq!((seen, location), (status, elsewhere.url()));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(elsewhere.requests().all(), []);
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_refused_at_the_door() {
    let elsewhere = Script::new().http();
    let server = Script::new().on("*").redirect(307, &elsewhere.url()).http();
    let outcome = Session::connect(http(&server), SessionOptions::default()).await;
    assert_eq!(outcome.unwrap_err().code(), "redirect-refused");
    assert_eq!(elsewhere.requests().all(), []);
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed() {
    for status in [307, 308] {
        let server = on_call().nth(1).redirect(status, "/mcp?moved").http();
        let session = connect(http(&server)).await;
        assert_eq!(
            text_of(&call(&session).await.unwrap()),
            r#"{"word":"hello"}"#
        );
        let moved = server
            .wait_for(|request| request.path == "/mcp?moved")
            .await;
        assert!(moved.is("tools/call") && moved.header("Mcp-Session-Id").is_some());
    }
}

#[tokio::test]
async fn endless_redirects_end() {
    let error = failed_call(on_call().redirect(307, "/mcp")).await;
    assert!(
        matches!(error, LinkError::Redirect { status: 307, .. }),
        "{error:?}"
    );
}

async fn stalls(script: Script) {
    let server = script.http();
    let session = connect(http(&server)).await;
    assert_timeout(call_with(&session, within(200)).await);
    assert_works(&session).await;
}

#[tokio::test]
async fn an_answer_that_stalls_ends_at_the_deadline() {
    stalls(on_call().stall()).await;
    stalls(on_call().stream().stall()).await;
    stalls(on_call().stream().text("data: {\"jsonrpc").stall()).await;
    stalls(
        on_call()
            .stream_with(&[("Content-Type", "application/json")])
            .text("{")
            .stall(),
    )
    .await;
    let half = "HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nhalf";
    stalls(on_call().raw(half).stall()).await;
}

#[tokio::test]
async fn a_connection_that_is_dropped_breaks_its_request_alone() {
    let error = failed_call(on_call().disconnect()).await;
    assert!(matches!(error, LinkError::Broken { .. }), "{error:?}");
    let error = failed_call(on_call().stream().disconnect()).await;
    assert!(matches!(error, LinkError::NoAnswer { .. }), "{error:?}");
    let error = failed_call(on_call().raw("HTTP/1.1 200 OK\r\nContent-").disconnect()).await;
    assert!(matches!(error, LinkError::Broken { .. }), "{error:?}");
    let error = failed_call(on_call().raw("SSH-2.0-OpenSSH_9.2\r\n").disconnect()).await;
    assert!(matches!(error, LinkError::Broken { .. }), "{error:?}");
}

#[tokio::test]
async fn a_batch_is_taken_apart() {
    let server = on_call()
        .json(
            r#" [{"jsonrpc":"2.0","method":"notifications/x"},
            {"jsonrpc":"2.0","id":$id,"result":{"content":[]}}]"#,
        )
        .http();
    let session = connect(http(&server)).await;
    assert_eq!(
        call(&session).await.unwrap().raw.as_str(),
        r#"{"content":[]}"#
    );
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    for target in [
        cocode_client::http(url.parse().unwrap()),
        cocode_client::legacy_sse(url.parse().unwrap()),
    ] {
        let outcome = Session::connect(target, SessionOptions::default()).await;
        assert_eq!(outcome.unwrap_err().code(), "unreachable");
    }
}

// HTTP+SSE, the transport of 2024-11-05.

fn legacy_sse(server: &HttpServer) -> Target {
    cocode_client::legacy_sse(server.url().parse().unwrap())
}

#[tokio::test]
async fn an_older_server_is_found_by_falling_back() {
    let server = Script::new().http_sse().http();
    let session = connect(http(&server)).await;
    assert_eq!(session.server().transport, "sse");
    assert_eq!(
        text_of(&call(&session).await.unwrap()),
        r#"{"word":"hello"}"#
    );
    session.close().await;
}

#[tokio::test]
async fn an_older_server_that_says_not_found_is_found_too() {
    let server = Script::new()
        .http_sse()
        .on_http("POST")
        .nth(1)
        .status(404)
        .on_http("POST")
        .nth(2)
        .status(404)
        .http();
    let session = connect(http(&server)).await;
    assert_eq!(session.server().transport, "sse");
    assert_works(&session).await;
}

#[tokio::test]
async fn the_fallback_can_be_switched_off() {
    let server = Script::new().http_sse().http();
    let options = SessionOptions {
        sse_fallback: false,
        ..SessionOptions::default()
    };
    let outcome = Session::connect(http(&server), options).await;
    assert_eq!(outcome.unwrap_err().code(), "http-status");
    assert_eq!(
        server.requests().count(|request| request.method == "GET"),
        0
    );
}

#[tokio::test]
async fn a_server_that_is_neither_says_what_it_answered_first() {
    let server = Script::new()
        .on_http("POST")
        .status(404)
        .on_http("GET")
        .status(404)
        .http();
    match Session::connect(http(&server), SessionOptions::default()).await {
        Err(ConnectError::Handshake { error, .. }) => {
            let error = link_error::<()>(Err(error));
            assert!(
                matches!(error, LinkError::Status { status: 404, .. }),
                "{error:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_older_server_that_wants_credentials_says_so_through_the_fallback() {
    let server = Script::new()
        .on_http("POST")
        .status(405)
        .on_http("GET")
        .unauthorized(&[("WWW-Authenticate", "Bearer")])
        .http();
    let outcome = Session::connect(http(&server), SessionOptions::default()).await;
    assert_eq!(outcome.unwrap_err().code(), "auth-required");
}

#[tokio::test]
async fn an_older_server_can_be_named_as_such() {
    let server = Script::new().http_sse().http();
    let session = connect(legacy_sse(&server)).await;
    assert_eq!(
        text_of(&call(&session).await.unwrap()),
        r#"{"word":"hello"}"#
    );
    let verbs: Vec<_> = server
        .requests()
        .all()
        .into_iter()
        .map(|r| r.method)
        .collect();
    assert_eq!(verbs, ["GET", "POST", "POST", "POST"]);
    session.close().await;
}

#[tokio::test]
async fn an_endpoint_of_another_origin_is_refused() {
    let elsewhere = Script::new().http();
    let endpoint = SseEvent::data(elsewhere.url()).event("endpoint");
    let server = Script::new()
        .on_http("GET")
        .stream()
        .event(endpoint)
        .stall()
        .http();
    match Session::connect(legacy_sse(&server), SessionOptions::default()).await {
        Err(ConnectError::Open(OpenError::Link(LinkError::Redirect { location, .. }))) => {
            assert_eq!(location, elsewhere.url());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(elsewhere.requests().all(), []);
}

#[tokio::test]
async fn an_older_server_that_ends_its_stream_ends_the_session() {
    let server = Script::new().http_sse().on("tools/call").ignore().http();
    let session = connect(legacy_sse(&server)).await;
    let ending = async {
        server.wait_for(|request| request.is("tools/call")).await;
        server.end_streams();
    };
    let (outcome, ()) = tokio::join!(call(&session), ending);
    assert!(
        matches!(outcome, Err(RequestError::Closed { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_older_server_may_answer_before_it_has_taken_the_post() {
    let server = Script::new().http_sse().on("tools/call").stall().http();
    let options = speaking(Protocol::Legacy);
    let session = Session::connect(legacy_sse(&server), options)
        .await
        .unwrap();
    let answering = async {
        server.wait_for(|request| request.is("tools/call")).await;
        server.push(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#);
    };
    let (outcome, ()) = tokio::join!(call_with(&session, within(5_000)), answering);
    assert_eq!(outcome.unwrap().raw.as_str(), r#"{"content":[]}"#);
}

#[tokio::test]
async fn an_event_over_the_cap_on_the_shared_stream_fails_its_request_alone() {
    let server = Script::new()
        .http_sse()
        .on("tools/call")
        .nth(1)
        .ignore()
        .http();
    let session = connect(capped(legacy_sse(&server))).await;
    let answering = async {
        let request = server.wait_for(|request| request.is("tools/call")).await;
        let id = request.json()["id"].clone();
        let filler = "x".repeat(100_000);
        server.push(format!(
            r#"{{"jsonrpc":"2.0","result":"{filler}","id":{id}}}"#
        ));
    };
    let (outcome, ()) = tokio::join!(call(&session), answering);
    match outcome {
        Err(RequestError::Malformed { reason, .. }) => assert!(reason.contains("cap"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert_works(&session).await;
}

#[tokio::test]
async fn messages_one_a_line_in_a_json_body_are_read_as_they_come() {
    let json = [("Content-Type", "application/json")];
    let notice = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n";
    let answer = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"a"}]}}"#;
    for pieces in [7, 4096] {
        let server = on_call()
            .stream_with(&json)
            .in_pieces(pieces)
            .raw(notice)
            .text(answer)
            .http();
        let witness = Arc::new(Witness::willing());
        let session = connect_with(http(&server), handled_by(&witness)).await;
        assert_eq!(text_of(&call(&session).await.unwrap()), "a");
        assert_eq!(witness.heard.all().len(), 1);
    }
}

#[tokio::test]
async fn refused_answer_to_a_modern_server_fails_the_call() {
    let server = Script::modern()
        .on("tools/call")
        .ask("roots/list", "{}")
        .text_result("done")
        .on_http("POST")
        .nth(3)
        .status(400)
        .http();
    let witness = Arc::new(Witness::willing());
    let options = SessionOptions {
        listen: false,
        ..handled_by(&witness)
    };
    let session = connect_with(http(&server), options).await;
    let error = link_error(call(&session).await);
    assert!(matches!(error, LinkError::NoAnswer { .. }), "{error:?}");
}
