//! Requests in flight: their order, their number, and how they are given up.

use std::sync::{Arc, Mutex};

use cocode_client::{
    Closed, Protocol, RequestError, RequestOptions, Session, SessionOptions, Target, memory_pair,
};
use cocode_testkit::{Gate, HttpRequest, Message, Script};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::task::JoinSet;

use crate::peer::Peer;
use crate::support::{
    Witness, assert_works, call, call_with, capped, connect, connect_with, count, handled_by, http,
    link_error, raw, soon, speaking, stdio, text_of, websocket, within,
};

/// A server that reports and tells so many times before it answers.
fn talkative(times: u32) -> Script {
    let script = Script::new().on("tools/call");
    let script = (1..=times).fold(script, |script, number| {
        script.progress(number, times).notify(
            "notifications/message",
            format!(r#"{{"level":"info","data":{number}}}"#),
        )
    });
    script.text_result("done")
}

/// When the answer is there, so is everything that came before it, in order.
async fn check_order(target: Target, times: u32) {
    let witness = Arc::new(Witness::willing());
    let session = connect_with(target, handled_by(&witness)).await;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&reports);
    let options = RequestOptions {
        on_progress: Some(Arc::new(move |report| {
            assert_eq!(report.total, Some(f64::from(times)));
            seen.lock().unwrap().push(report.progress);
        })),
        ..RequestOptions::default()
    };
    assert_eq!(
        text_of(&call_with(&session, options).await.unwrap()),
        "done"
    );
    let reports = reports.lock().unwrap().clone();
    assert_eq!(reports, (1..=times).map(f64::from).collect::<Vec<_>>());
    let heard = witness.heard.all();
    let told: Vec<_> = heard
        .iter()
        .filter(|(method, _)| method == "notifications/message")
        .collect();
    assert_eq!(told.len(), usize::try_from(times).unwrap());
    for (number, (_, params)) in (1..=times).zip(told) {
        assert_eq!(*params, format!(r#"{{"level":"info","data":{number}}}"#));
    }
}

#[tokio::test]
async fn what_comes_before_an_answer_is_heard_before_it() {
    let server = talkative(1000).unix();
    check_order(cocode_client::unix(server.path().to_owned()), 1000).await;
    let server = talkative(1000).websocket();
    check_order(websocket(&server), 1000).await;
}

#[tokio::test]
async fn what_comes_before_an_answer_is_heard_before_it_over_http() {
    let server = talkative(1000).http();
    check_order(http(&server), 1000).await;
    let server = talkative(400).http_sse().http();
    check_order(http(&server), 400).await;
}

/// Drops a call as soon as the server has it.
async fn drop_call<T>(session: &Session, received: impl Future<Output = T>) {
    tokio::select! {
        outcome = call(session) => panic!("{outcome:?}"),
        _ = received => {}
    }
}

fn assert_cancels(cancelled: &Message, id: Option<&str>) {
    assert_eq!(cancelled.params()["requestId"].to_string(), id.unwrap());
    assert_eq!(cancelled.id(), None);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_over_stdio() {
    for script in [Script::new(), Script::modern()] {
        let server = script.on("tools/call").ignore().stdio();
        let session = connect(stdio(&server)).await;
        drop_call(
            &session,
            server.wait_for(|message| message.is("tools/call")),
        )
        .await;
        let request = server.wait_for(|message| message.is("tools/call")).await;
        let cancelled = server
            .wait_for(|message| message.is("notifications/cancelled"))
            .await;
        assert_cancels(&cancelled, request.id());
        assert_works(&session).await;
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_over_websocket() {
    let server = Script::new().on("tools/call").ignore().websocket();
    let session = connect(websocket(&server)).await;
    drop_call(
        &session,
        server.wait_for(|message| message.is("tools/call")),
    )
    .await;
    let cancelled = server
        .wait_for(|message| message.is("notifications/cancelled"))
        .await;
    let request = server.wait_for(|message| message.is("tools/call")).await;
    assert_cancels(&cancelled, request.id());
    assert_works(&session).await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_over_http_with_sessions() {
    for script in [Script::new(), Script::new().http_sse()] {
        let gate = Gate::new();
        let server = script
            .on("tools/call")
            .hold(&gate)
            .text_result("late")
            .http();
        let session = connect(http(&server)).await;
        drop_call(
            &session,
            server.wait_for(|request| request.is("tools/call")),
        )
        .await;
        let request = server
            .wait_for(|request| request.is("tools/call"))
            .await
            .message();
        let cancelled = server
            .wait_for(|request| request.is("notifications/cancelled"))
            .await;
        assert_cancels(&cancelled.message(), request.id());
        assert_works(&session).await;
    }
}

#[tokio::test]
async fn a_dropped_call_ends_its_stream_over_stateless_http() {
    let server = Script::modern()
        .on("tools/call")
        .nth(1)
        .stall()
        .on("tools/call")
        .nth(2)
        .stream()
        .progress(1, 2)
        .stall()
        .http();
    let witness = Arc::new(Witness::willing());
    let session = connect_with(http(&server), handled_by(&witness)).await;
    let is_call = |request: &HttpRequest| request.is("tools/call");
    drop_call(&session, server.wait_for(is_call)).await;
    drop_call(&session, witness.hears("notifications/progress")).await;
    let abandoned = server.abandoned();
    abandoned
        .wait_until(|all| all.iter().filter(|request| is_call(request)).count() == 2)
        .await;
    assert_works(&session).await;
    let told = server
        .requests()
        .count(|request| request.is("notifications/cancelled"));
    assert_eq!(told, 0);
}

#[tokio::test]
async fn the_handshake_is_never_cancelled() {
    let (target, stream) = memory_pair(1024 * 1024);
    let mut lines = BufReader::new(stream).lines();
    let hello = tokio::select! {
        outcome = Session::connect(target, speaking(Protocol::Legacy)) => panic!("{outcome:?}"),
        line = lines.next_line() => line.unwrap().unwrap(),
    };
    assert!(hello.contains("initialize"), "{hello}");
    assert_eq!(lines.next_line().await.unwrap(), None);
}

#[tokio::test]
async fn an_answer_to_a_dropped_call_goes_to_nobody() {
    let server = Script::new()
        .on("tools/call")
        .nth(1)
        .wait_for("notifications/cancelled")
        .text_result("too late")
        .stdio();
    let session = connect(stdio(&server)).await;
    drop_call(
        &session,
        server.wait_for(|message| message.is("tools/call")),
    )
    .await;
    assert_eq!(
        text_of(&call(&session).await.unwrap()),
        r#"{"word":"hello"}"#
    );
}

#[tokio::test]
async fn five_hundred_calls_answered_backwards_each_get_their_own() {
    let (session, mut peer) = Peer::legacy(SessionOptions::default()).await;
    let mut calls = JoinSet::new();
    for number in 0..500 {
        let session = session.clone();
        calls.spawn(async move {
            let arguments = raw(&number.to_string());
            let params = raw(&format!(r#"{{"number":{arguments}}}"#));
            let result = session
                .request("double", Some(&params), within(60_000))
                .await;
            (number, result.unwrap().to_string())
        });
    }
    let mut requests = Vec::new();
    for _ in 0..500 {
        requests.push(peer.expect("double").await);
    }
    for request in requests.iter().rev() {
        let number = request["params"]["number"].as_u64().unwrap();
        peer.result(request, &(2 * number).to_string()).await;
    }
    while let Some(outcome) = calls.join_next().await {
        let (number, result) = outcome.unwrap();
        assert_eq!(result, (2 * number).to_string());
    }
}

#[tokio::test]
async fn five_hundred_calls_to_a_real_server_each_get_their_own() {
    let servers = (Script::dual().stdio(), Script::dual().http());
    for target in [stdio(&servers.0), http(&servers.1)] {
        let session = connect(target).await;
        let mut calls = JoinSet::new();
        for number in 0..500 {
            let session = session.clone();
            calls.spawn(async move {
                let arguments = raw(&format!(r#"{{"number":{number}}}"#));
                let result = session
                    .call_tool("echo", Some(&arguments), within(60_000))
                    .await;
                assert_eq!(result.unwrap().structured().unwrap(), arguments);
            });
        }
        while let Some(outcome) = calls.join_next().await {
            outcome.unwrap();
        }
    }
}

/// Requests that wait when a session is closed end at once, with the reason.
async fn check_close<T>(session: Session, received: impl Future<Output = T>) {
    let closing = async {
        received.await;
        session.clone().close().await;
    };
    let calling = Box::pin(call_with(&session, within(600_000)));
    let ended = async { tokio::join!(calling, closing) };
    let (outcome, ()) = soon("the end of the session", ended).await;
    match outcome {
        Err(RequestError::Closed {
            reason: Closed::ByUs,
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
    let after = soon("an answer", Box::pin(call(&session))).await;
    assert!(
        matches!(after, Err(RequestError::Closed { .. })),
        "{after:?}"
    );
    assert!(matches!(session.closed().await, Closed::ByUs));
}

#[tokio::test]
async fn closing_ends_requests_in_flight_over_stdio() {
    let server = Script::new().on("tools/call").ignore().stdio();
    let session = connect(stdio(&server)).await;
    check_close(session, server.wait_for(|message| message.is("tools/call"))).await;
}

#[tokio::test]
async fn closing_ends_requests_in_flight_over_http() {
    for script in [Script::new(), Script::modern(), Script::new().http_sse()] {
        let server = script.on("tools/call").stall().http();
        let session = connect(http(&server)).await;
        check_close(session, server.wait_for(|request| request.is("tools/call"))).await;
    }
}

#[tokio::test]
async fn closing_ends_requests_in_flight_over_websocket() {
    let server = Script::new().on("tools/call").ignore().websocket();
    let session = connect(websocket(&server)).await;
    check_close(session, server.wait_for(|message| message.is("tools/call"))).await;
}

#[tokio::test]
async fn a_message_of_ours_over_the_cap_is_not_sent() {
    let server = Script::new().stdio();
    let session = connect(capped(stdio(&server))).await;
    let long = raw(&format!(r#"{{"x":"{}"}}"#, "x".repeat(10_000)));
    let outcome = session.call_tool("echo", Some(&long), within(20_000)).await;
    assert!(link_error(outcome).to_string().contains("4096"));
    assert_works(&session).await;
    assert_eq!(count(&server, &session, "tools/call").await, 0);
}

#[tokio::test]
async fn parameters_must_be_an_object_where_something_is_added_to_them() {
    let server = Script::modern().stdio();
    let session = connect(stdio(&server)).await;
    let outcome = session
        .request("x", Some(&raw("[1]")), within(20_000))
        .await;
    assert!(
        matches!(outcome, Err(RequestError::Params { .. })),
        "{outcome:?}"
    );
    assert_works(&session).await;
}

#[tokio::test]
async fn a_notification_reaches_the_server() {
    let server = Script::new().stdio();
    let session = connect_with(stdio(&server), speaking(Protocol::Legacy)).await;
    let params = raw(r#"{"x":1.10}"#);
    session
        .notify("notifications/roots/list_changed", Some(&params))
        .await
        .unwrap();
    let told = server
        .wait_for(|message| message.is("notifications/roots/list_changed"))
        .await;
    assert_eq!(told.raw_params(), Some(r#"{"x":1.10}"#));
}

/// Panics on whatever it is told.
struct Clumsy;

impl cocode_client::Handler for Clumsy {
    fn notified(&self, notification: &cocode_client::Notification) {
        panic!("dropped {}", notification.method);
    }
}

#[tokio::test]
async fn a_panicking_handler_harms_no_request() {
    let server = talkative(3).unix();
    let options = SessionOptions {
        handler: Arc::new(Clumsy),
        ..SessionOptions::default()
    };
    let session = connect_with(cocode_client::unix(server.path().to_owned()), options).await;
    let options = RequestOptions {
        on_progress: Some(Arc::new(|_report| panic!("dropped a report"))),
        ..RequestOptions::default()
    };
    assert_eq!(
        text_of(&call_with(&session, options).await.unwrap()),
        "done"
    );
}
