//! The sessions and event streams of streamable HTTP in the older era: begun, renewed, resumed,
//! ended.

use std::sync::Arc;

use cocode_client::{LinkError, Protocol, Retry, Session, SessionOptions, Target};
use cocode_testkit::{Gate, HttpRequest, HttpServer, Script, SseEvent};

use crate::support::{
    Witness, assert_timeout, assert_works, call, call_with, connect, connect_with, handled_by,
    http, link_error, soon, speaking, text_of, within,
};

const NOTICE: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

fn count(server: &HttpServer, fits: impl Fn(&HttpRequest) -> bool) -> usize {
    server.requests().count(fits)
}

fn is_get(request: &HttpRequest) -> bool {
    request.method == "GET"
}

/// Pinned to the older era, so that the first request of a test has the id 2.
async fn legacy_session(server: &HttpServer) -> Session {
    connect_with(http(server), speaking(Protocol::Legacy)).await
}

#[tokio::test]
async fn every_request_after_the_handshake_names_session_and_revision() {
    let server = Script::new().http();
    let session = legacy_session(&server).await;
    call(&session).await.unwrap();
    session.close().await;
    let requests = server.requests().all();
    let (first, later) = requests.split_first().unwrap();
    assert_eq!(first.header("Mcp-Session-Id"), None);
    assert_eq!(first.header("MCP-Protocol-Version"), None);
    for request in later {
        assert_eq!(request.header("Mcp-Session-Id"), Some("session-1"));
        assert_eq!(request.header("MCP-Protocol-Version"), Some("2025-11-25"));
        assert_eq!(request.header("Mcp-Method"), None);
    }
    let verbs: Vec<_> = later
        .iter()
        .map(|request| request.method.as_str())
        .collect();
    assert_eq!(verbs.last(), Some(&"DELETE"));
    assert!(verbs.contains(&"GET"));
}

#[tokio::test]
async fn headers_of_the_user_go_with_every_request() {
    let server = Script::new().http();
    let mut target = http(&server);
    let Target::Http(http) = &mut target else {
        unreachable!()
    };
    http.headers.insert("x-api-key", "secret".parse().unwrap());
    let session = connect(target).await;
    server.wait_for(is_get).await;
    session.close().await;
    let all = server.requests().all();
    assert!(
        all.iter()
            .all(|request| request.header("X-Api-Key") == Some("secret"))
    );
    assert!(all.iter().any(|request| request.method == "DELETE"));
}

#[tokio::test]
async fn an_expired_session_is_renewed_and_the_request_repeated_once() {
    let server = Script::new().http();
    let session = legacy_session(&server).await;
    server.expire_sessions();
    assert_eq!(
        text_of(&call(&session).await.unwrap()),
        r#"{"word":"hello"}"#
    );
    assert_eq!(count(&server, |request| request.is("initialize")), 2);
    let calls = server.requests().all();
    let calls = calls.iter().filter(|request| request.is("tools/call"));
    let sessions: Vec<_> = calls
        .map(|request| request.header("Mcp-Session-Id"))
        .collect();
    assert_eq!(sessions, [Some("session-1"), Some("session-2")]);
    let hello = server.requests().all();
    let hello = hello
        .iter()
        .rfind(|request| request.is("initialize"))
        .unwrap();
    assert_eq!(hello.header("Mcp-Session-Id"), None);
}

#[tokio::test]
async fn many_requests_renew_an_expired_session_once() {
    let server = Script::new().http();
    let session = legacy_session(&server).await;
    server.expire_sessions();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let session = session.clone();
        calls.spawn(async move { call(&session).await.map(|result| text_of(&result)) });
    }
    while let Some(outcome) = calls.join_next().await {
        assert_eq!(outcome.unwrap().unwrap(), r#"{"word":"hello"}"#);
    }
    assert_eq!(count(&server, |request| request.is("initialize")), 2);
}

#[tokio::test]
async fn a_request_that_begins_during_the_renewal_waits_for_it() {
    let gate = Gate::new();
    let server = Script::new()
        .on("initialize")
        .nth(2)
        .hold(&gate)
        .as_usual()
        .http();
    let session = legacy_session(&server).await;
    server.expire_sessions();
    let during = async {
        gate.reached().await;
        let (outcome, ()) = tokio::join!(session.tools(), async {
            server.wait_for(|request| request.is("tools/list")).await;
            gate.open();
        });
        outcome
    };
    let (before, during) = tokio::join!(call(&session), during);
    before.unwrap();
    assert_eq!(during.unwrap().items.len(), 1);
    assert_eq!(count(&server, |request| request.is("initialize")), 2);
}

#[tokio::test]
async fn a_renewal_that_hangs_costs_no_more_than_the_deadline() {
    let server = Script::new().on("initialize").nth(2).stall().http();
    let session = legacy_session(&server).await;
    server.expire_sessions();
    let next = async {
        let hellos = |all: &[HttpRequest]| all.iter().filter(|r| r.is("initialize")).count();
        server.requests().wait_until(|all| hellos(all) == 2).await;
        session.tools().await
    };
    let both = async { tokio::join!(call_with(&session, within(300)), next) };
    let (hurried, patient) = soon("the end of both requests", Box::pin(both)).await;
    assert_timeout(hurried);
    // The next in line renews the session itself.
    assert_eq!(patient.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_late_answer_from_the_old_session_does_not_spoil_the_new_one() {
    let (old, renewal) = (Gate::new(), Gate::new());
    let answer = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[]}}"#;
    let headers = [
        ("Content-Type", "application/json"),
        ("Mcp-Session-Id", "session-1"),
    ];
    let server = Script::new()
        .on("tools/call")
        .hold(&old)
        .respond(200, &headers, answer)
        .on("initialize")
        .nth(2)
        .hold(&renewal)
        .as_usual()
        .http();
    let session = legacy_session(&server).await;
    let slow = async {
        let outcome = call(&session).await;
        renewal.open();
        outcome
    };
    let renewing = async {
        old.reached().await;
        server.expire_sessions();
        let (outcome, ()) = tokio::join!(session.tools(), async {
            renewal.reached().await;
            old.open();
        });
        outcome
    };
    let (slow, renewed) = tokio::join!(slow, renewing);
    slow.unwrap();
    renewed.unwrap();
    assert_works(&session).await;
    let last = server.requests().all();
    let last = last
        .iter()
        .rfind(|request| request.is("resources/list"))
        .unwrap();
    assert_eq!(last.header("Mcp-Session-Id"), Some("session-2"));
    assert_eq!(count(&server, |request| request.is("initialize")), 2);
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_asked_twice_and_no_more() {
    let server = Script::new().on("tools/call").status(404).http();
    let session = legacy_session(&server).await;
    let error = link_error(call(&session).await);
    assert!(matches!(error, LinkError::SessionGone), "{error:?}");
    assert_eq!(count(&server, |request| request.is("tools/call")), 2);
    assert_eq!(count(&server, |request| request.is("initialize")), 2);
}

#[tokio::test]
async fn a_server_without_sessions_may_say_not_found() {
    let server = Script::new()
        .sessionless()
        .on("tools/call")
        .status(404)
        .http();
    let session = legacy_session(&server).await;
    let error = link_error(call(&session).await);
    assert!(
        matches!(error, LinkError::Status { status: 404, .. }),
        "{error:?}"
    );
    session.close().await;
    assert_eq!(count(&server, |request| request.method == "DELETE"), 0);
}

#[tokio::test]
async fn a_goodbye_that_is_refused_is_no_trouble() {
    for script in [
        Script::new().on_http("DELETE").status(405),
        Script::new().on_http("DELETE").respond(500, &[], "never"),
        Script::new().on_http("DELETE").disconnect(),
    ] {
        let server = script.http();
        let session = connect(http(&server)).await;
        session.close().await;
        let goodbye = server.wait_for(|request| request.method == "DELETE").await;
        assert_eq!(goodbye.header("Mcp-Session-Id"), Some("session-1"));
    }
}

#[tokio::test]
async fn a_cancellation_reaches_the_server_even_if_the_session_closes_at_once() {
    let gate = Gate::new();
    let server = Script::new().on("tools/call").hold(&gate).as_usual().http();
    let session = connect(http(&server)).await;
    assert_timeout(call_with(&session, within(200)).await);
    session.close().await;
    let verbs = server.requests().all();
    let cancelled = verbs
        .iter()
        .position(|request| request.is("notifications/cancelled"));
    let goodbye = verbs.iter().position(|request| request.method == "DELETE");
    assert!(cancelled.is_some() && cancelled < goodbye, "{verbs:#?}");
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_asked_for_it_once() {
    let server = Script::new().http();
    let session = connect(http(&server)).await;
    server.wait_for(is_get).await;
    for _ in 0..5 {
        assert_works(&session).await;
    }
    session.close().await;
    assert_eq!(count(&server, is_get), 1);
}

#[tokio::test]
async fn a_stream_that_breaks_is_opened_again_where_it_stood() {
    let server = Script::new().get_stream().http();
    let witness = Arc::new(Witness::willing());
    let _session = connect_with(http(&server), handled_by(&witness)).await;
    server.wait_for_streams(1).await;
    server.push_event(&SseEvent::data(NOTICE).id("seven").retry(10));
    witness.heard.reaches(1).await;
    server.drop_streams();
    server.wait_for_streams(2).await;
    server.push(NOTICE);
    witness.heard.reaches(2).await;
    server.end_streams();
    server.wait_for_streams(3).await;
    server.push(NOTICE);
    witness.heard.reaches(3).await;
    // An empty id takes the position back.
    server.push_event(&SseEvent::data(NOTICE).id(""));
    witness.heard.reaches(4).await;
    server.drop_streams();
    server.wait_for_streams(4).await;
    let requests = server.requests().all();
    let gets = requests.iter().filter(|request| is_get(request));
    let positions: Vec<_> = gets.map(|get| get.header("Last-Event-ID")).collect();
    assert_eq!(positions, [None, Some("seven"), Some("seven"), None]);
}

#[tokio::test]
async fn a_stream_that_fails_for_a_while_is_tried_again() {
    let server = Script::new()
        .get_stream()
        .on_http("GET")
        .nth(1)
        .status(503)
        .http();
    let _session = connect(http(&server)).await;
    server.wait_for_streams(1).await;
    assert_eq!(count(&server, is_get), 2);
}

#[tokio::test]
async fn a_new_session_has_one_stream_of_its_own() {
    let server = Script::new().get_stream().http();
    let witness = Arc::new(Witness::willing());
    let session = connect_with(http(&server), handled_by(&witness)).await;
    server.wait_for_streams(1).await;
    server.expire_sessions();
    call(&session).await.unwrap();
    server.wait_for_streams(2).await;
    let left = server.abandoned().wait_for(is_get).await;
    assert_eq!(left.header("Mcp-Session-Id"), Some("session-1"));
    server.push(NOTICE);
    witness.heard.reaches(1).await;
    assert_works(&session).await;
    assert_eq!(witness.heard.all().len(), 1);
}

/// A server whose answer to the first call breaks off after an event that can be resumed.
fn breaking_off() -> Script {
    Script::new()
        .on("tools/call")
        .stream()
        .event(SseEvent::data(NOTICE).id("event-1").retry(10))
        .on_http("GET")
        .nth(1)
        .status(405)
}

/// The first `GET` is for the stream of the session.
async fn connect_past_the_first_get(server: &HttpServer) -> Session {
    let session = legacy_session(server).await;
    server.wait_for(is_get).await;
    session
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_resumed() {
    let server = breaking_off()
        .on_http("GET")
        .nth(2)
        .stream()
        .event(SseEvent::data(NOTICE).id("event-2"))
        .disconnect()
        .on_http("GET")
        .nth(3)
        .disconnect()
        .on_http("GET")
        .nth(4)
        .stream()
        .event(SseEvent::data(
            r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#,
        ))
        .http();
    let session = connect_past_the_first_get(&server).await;
    assert_eq!(
        call(&session).await.unwrap().raw.as_str(),
        r#"{"content":[]}"#
    );
    let requests = server.requests().all();
    let gets = requests.iter().filter(|request| is_get(request));
    let positions: Vec<_> = gets.map(|get| get.header("Last-Event-ID")).collect();
    assert_eq!(
        positions,
        [None, Some("event-1"), Some("event-2"), Some("event-2")]
    );
    assert_eq!(count(&server, |request| request.is("tools/call")), 1);
}

#[tokio::test]
async fn an_answer_whose_position_was_taken_back_is_not_resumed() {
    let server = breaking_off()
        .on_http("GET")
        .nth(2)
        .stream()
        .event(SseEvent::data(NOTICE).id(""))
        .disconnect()
        .http();
    let session = connect_past_the_first_get(&server).await;
    let error = link_error(call(&session).await);
    assert!(matches!(error, LinkError::NoAnswer { .. }), "{error:?}");
    assert_eq!(count(&server, is_get), 2);
}

#[tokio::test]
async fn an_answer_that_cannot_be_resumed_is_an_error() {
    for status in [405, 429, 503] {
        let server = breaking_off().on_http("GET").status(status).http();
        let session = connect_past_the_first_get(&server).await;
        let error = call(&session).await.unwrap_err();
        // Only the `GET` was refused; the tool may be done by now.
        assert_eq!(error.retry(), Retry::MayHaveRun, "{error:?}");
        let error = link_error::<()>(Err(error));
        assert!(
            matches!(&error, LinkError::NoAnswer { detail } if detail.contains(&status.to_string())),
            "{error:?}"
        );
        assert_works(&session).await;
    }
}

#[tokio::test]
async fn a_request_whose_server_dies_after_an_event_may_have_run() {
    let gate = Gate::new();
    let server = Script::new()
        .on("tools/call")
        .stream()
        .event(SseEvent::data(NOTICE).id("event-1").retry(10))
        .hold(&gate)
        .http();
    let witness = Arc::new(Witness::willing());
    let options = SessionOptions {
        protocol: Protocol::Legacy,
        ..handled_by(&witness)
    };
    let session = connect_with(http(&server), options).await;
    let (outcome, ()) = tokio::join!(call(&session), async {
        witness.heard.reaches(1).await;
        server.kill();
    });
    let error = outcome.unwrap_err();
    assert_eq!(error.retry(), Retry::MayHaveRun, "{error:?}");
    let error = link_error::<()>(Err(error));
    assert!(matches!(error, LinkError::Broken { .. }), "{error:?}");
}

#[tokio::test]
async fn credentials_that_resuming_needs_are_asked_for() {
    let server = breaking_off().on_http("GET").unauthorized(&[]).http();
    let session = connect_past_the_first_get(&server).await;
    let error = call(&session).await.unwrap_err();
    assert_ne!(error.retry(), Retry::Safe, "{error:?}");
    let error = link_error::<()>(Err(error));
    assert!(matches!(error, LinkError::AuthRequired(_)), "{error:?}");
    assert_eq!(count(&server, |request| request.is("tools/call")), 1);
}

#[tokio::test]
async fn a_request_that_may_have_run_is_not_repeated_when_its_session_is_gone() {
    let server = breaking_off().on_http("GET").status(404).http();
    let session = connect_past_the_first_get(&server).await;
    let error = link_error(call(&session).await);
    assert!(matches!(error, LinkError::NoAnswer { .. }), "{error:?}");
    assert_eq!(count(&server, |request| request.is("tools/call")), 1);
}

#[tokio::test]
async fn resuming_ends_with_the_deadline() {
    let server = breaking_off().on_http("GET").stream().http();
    let session = connect_past_the_first_get(&server).await;
    assert_timeout(call_with(&session, within(400)).await);
    assert_works(&session).await;
}

#[tokio::test]
async fn a_stream_that_stays_open_after_the_answer_is_left() {
    let server = Script::new()
        .on("tools/call")
        .stream()
        .text_result("done")
        .stall()
        .http();
    let session = connect(http(&server)).await;
    assert_eq!(text_of(&call(&session).await.unwrap()), "done");
    server
        .abandoned()
        .wait_for(|request| request.is("tools/call"))
        .await;
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = Script::new().event_answers().http();
    let session = connect_with(http(&server), SessionOptions::default()).await;
    for _ in 0..20 {
        call(&session).await.unwrap();
    }
    // One for requests, and one that asked for the stream beside them.
    let connections = server.connections().all().len();
    assert!(connections <= 3, "{connections} connections");
}
