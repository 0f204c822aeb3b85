//! Servers on pipes that say wrong things: each fault costs its own request at most.

use std::time::Duration;

use cocode_client::{
    Closed, ConnectError, Content, ExitReport, Protocol, RequestError, Session, SessionOptions,
    Timeouts,
};
use cocode_testkit::{Script, StdioServer};

use crate::support::{
    assert_timeout, assert_works, call, call_with, capped, connect, connect_with, rpc_error,
    speaking, stdio, text_of, within,
};

/// A session whose server answers each tool call with this line.
async fn answering(line: &str) -> (StdioServer, Session) {
    let server = Script::new().on("tools/call").line(line).stdio();
    let session = connect(stdio(&server)).await;
    (server, session)
}

#[tokio::test]
async fn a_null_error_beside_a_result_is_no_error() {
    let line = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[]},"error":null}"#;
    let (_server, session) = answering(line).await;
    assert_eq!(
        call(&session).await.unwrap().raw.as_str(),
        r#"{"content":[]}"#
    );
}

#[tokio::test]
async fn a_missing_jsonrpc_member_is_forgiven() {
    let (_server, session) = answering(r#"{"id":$id,"result":{"content":[]}}"#).await;
    assert_eq!(
        call(&session).await.unwrap().raw.as_str(),
        r#"{"content":[]}"#
    );
}

#[tokio::test]
async fn an_id_that_came_back_as_text_is_recognized() {
    let line = r#"{"jsonrpc":"2.0","id":"2","result":{"content":[]}}"#;
    let server = Script::new().on("tools/call").line(line).stdio();
    // The handshake is the first request.
    let session = connect_with(stdio(&server), speaking(Protocol::Legacy)).await;
    assert_eq!(
        call(&session).await.unwrap().raw.as_str(),
        r#"{"content":[]}"#
    );
}

#[tokio::test]
async fn an_error_without_message_is_still_an_error() {
    let (_server, session) = answering(r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-5}}"#).await;
    let error = rpc_error(call(&session).await);
    assert_eq!(error.code, -5);
    assert!(error.message.contains("no message"), "{error}");
    assert_works(&session).await;
}

#[tokio::test]
async fn an_error_code_in_a_string_is_read() {
    let line = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":"-32602","message":"no"}}"#;
    let (_server, session) = answering(line).await;
    let error = rpc_error(call(&session).await);
    assert_eq!((error.code, error.message.as_str()), (-32602, "no"));
}

#[tokio::test]
async fn an_error_code_that_is_no_number_is_still_an_error() {
    let line = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":"EBAD","message":"no"}}"#;
    let (_server, session) = answering(line).await;
    let error = rpc_error(call(&session).await);
    assert_eq!((error.code, error.message.as_str()), (0, "no"));
}

#[tokio::test]
async fn an_error_for_nobody_belongs_to_the_only_request() {
    let line = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
    let (_server, session) = answering(line).await;
    assert_eq!(rpc_error(call(&session).await).code, -32700);
    assert_works(&session).await;
}

#[tokio::test]
async fn an_error_for_nobody_harms_none_of_two_requests() {
    let server = Script::new()
        .on("tools/call")
        .nth(1)
        .wait_for("ping")
        .text_result("in the end")
        .on("tools/call")
        .nth(2)
        .line(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#)
        .stdio();
    let session = connect(stdio(&server)).await;
    let second = async {
        server.wait_for(|message| message.is("tools/call")).await;
        let unanswered = call_with(&session, within(200)).await;
        session.ping(within(20_000)).await.unwrap();
        unanswered
    };
    let (first, second) = tokio::join!(call(&session), second);
    assert_eq!(text_of(&first.unwrap()), "in the end");
    assert_timeout(second);
}

#[tokio::test]
async fn an_answer_to_an_unknown_request_is_ignored() {
    let server = Script::new()
        .on("tools/call")
        .line(r#"{"jsonrpc":"2.0","id":99999,"result":{"content":[]}}"#)
        .line(r#"{"jsonrpc":"2.0","id":"what","result":{"content":[]}}"#)
        .text_result("mine")
        .stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(text_of(&call(&session).await.unwrap()), "mine");
}

#[tokio::test]
async fn a_second_answer_to_the_same_request_is_ignored() {
    let server = Script::new()
        .on("tools/call")
        .text_result("first")
        .text_result("second")
        .stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(text_of(&call(&session).await.unwrap()), "first");
    assert_works(&session).await;
    assert_eq!(text_of(&call(&session).await.unwrap()), "first");
}

#[tokio::test]
async fn a_line_over_the_cap_fails_its_request_alone() {
    let server = Script::new()
        .on("tools/call")
        .nth(1)
        .text(r#"{"jsonrpc":"2.0","id":$id,"result":{"x":""#)
        .fill(100_000)
        .line(r#""}}"#)
        .on("tools/call")
        .nth(2)
        .text(r#"{"result":{"id":77,"x":""#)
        .fill(100_000)
        .line(r#""},"jsonrpc":"2.0","id":$id}"#)
        .stdio();
    let session = connect(capped(stdio(&server))).await;
    for spelling in ["id first", "id last"] {
        match call(&session).await {
            Err(RequestError::Malformed { reason, .. }) => {
                assert!(reason.contains("4096"), "{spelling}: {reason}");
            }
            other => panic!("{spelling}: {other:?}"),
        }
        assert_works(&session).await;
    }
    assert_eq!(
        text_of(&call(&session).await.unwrap()),
        r#"{"word":"hello"}"#
    );
}

#[tokio::test]
async fn text_that_is_not_utf8_fails_its_request_alone() {
    let server = Script::new()
        .on("tools/call")
        .text(r#"{"jsonrpc":"2.0","id":$id,"result":{"x":""#)
        .raw([0xff, 0xfe])
        .line(r#""}}"#)
        .stdio();
    let session = connect(stdio(&server)).await;
    match call(&session).await {
        Err(RequestError::Malformed { reason, .. }) => {
            assert!(reason.contains("UTF-8"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_works(&session).await;
}

#[tokio::test]
async fn plain_text_on_stdout_is_skipped() {
    let server = Script::new()
        .on_start()
        .line("Server listening on stdio")
        .line("")
        .line("[1, 2")
        .on("tools/call")
        .line("DEBUG calling a tool")
        .line(r#"{"level":30,"id":$id,"msg":"a log line with an id of its own"}"#)
        .line(r#""just a string""#)
        .text_result("still here")
        .line("DEBUG called it")
        .stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(text_of(&call(&session).await.unwrap()), "still here");
    assert_works(&session).await;
}

#[tokio::test]
async fn half_a_line_before_the_exit_is_reported_as_cut_short() {
    let server = Script::new()
        .on("tools/call")
        .text(r#"{"jsonrpc":"2.0","id":$id,"result":{"conte"#)
        .exit(3)
        .stdio();
    let session = connect(stdio(&server)).await;
    match call(&session).await {
        Err(RequestError::Malformed { reason, .. }) => assert!(reason.contains("cut short")),
        other => panic!("{other:?}"),
    }
    assert_exit(&session.closed().await, ExitReport::Code(3));
}

#[tokio::test]
async fn an_answer_without_its_newline_counts_at_the_end() {
    let server = Script::new()
        .on("tools/call")
        .text(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[]}}"#)
        .exit(0)
        .stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(
        call(&session).await.unwrap().raw.as_str(),
        r#"{"content":[]}"#
    );
}

#[track_caller]
fn assert_exit(reason: &Closed, expected: ExitReport) {
    match reason {
        Closed::Exited { report, .. } => assert_eq!(*report, expected),
        other => panic!("not an exit: {other}"),
    }
}

#[tokio::test]
async fn an_exit_before_the_handshake_shows_code_and_stderr() {
    let server = Script::new().on_start().stderr(240).exit(7).stdio();
    for protocol in [Protocol::Auto, Protocol::Legacy, Protocol::Modern] {
        let outcome = Session::connect(stdio(&server), speaking(protocol)).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.code(), "server-exited", "{protocol:?}");
        assert_eq!(error.stderr(), vec!["e".repeat(79); 3], "{protocol:?}");
        match error {
            ConnectError::Handshake {
                error: RequestError::Closed { reason, .. },
                ..
            } => assert_exit(&reason, ExitReport::Code(7)),
            other => panic!("{protocol:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_signal_is_named_as_the_reason() {
    let server = Script::new().on("tools/call").kill_self(9).stdio();
    let session = connect(stdio(&server)).await;
    match call(&session).await {
        Err(RequestError::Closed { reason, .. }) => assert_exit(&reason, ExitReport::Signal(9)),
        other => panic!("{other:?}"),
    }
    let again = call(&session).await;
    assert!(
        matches!(again, Err(RequestError::Closed { .. })),
        "{again:?}"
    );
}

#[tokio::test]
async fn a_request_that_is_never_answered_times_out_and_is_cancelled() {
    let server = Script::new().on("tools/call").ignore().stdio();
    let session = connect(stdio(&server)).await;
    assert_timeout(call_with(&session, within(200)).await);
    let request = server.wait_for(|message| message.is("tools/call")).await;
    let cancelled = server.wait_for(|message| message.is("notifications/cancelled"));
    let cancelled = cancelled.await.params();
    assert_eq!(cancelled["requestId"].to_string(), request.id().unwrap());
    assert_eq!(cancelled["reason"], "timed out");
    assert_works(&session).await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let server = Script::new().on("*").ignore().stdio();
    for protocol in [Protocol::Auto, Protocol::Legacy, Protocol::Modern] {
        let options = SessionOptions {
            timeouts: Timeouts {
                connect: Duration::from_millis(300),
                ..Timeouts::default()
            },
            ..speaking(protocol)
        };
        let outcome = Session::connect(stdio(&server), options).await;
        assert!(
            matches!(outcome, Err(ConnectError::Timeout { .. })),
            "{protocol:?}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn an_unknown_version_in_the_handshake_is_refused() {
    let server = Script::new()
        .on("initialize")
        .result(r#"{"protocolVersion":"1999-12-31","capabilities":{},"serverInfo":{"name":"x","version":"1"}}"#)
        .stdio();
    match Session::connect(stdio(&server), SessionOptions::default()).await {
        Err(ConnectError::Version { offered, .. }) => assert_eq!(offered, "1999-12-31"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_without_a_version_of_its_own_is_welcome() {
    let server = Script::new()
        .on("initialize")
        .result(r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x"}}"#)
        .stdio();
    let session = connect(stdio(&server)).await;
    let facts = session.server();
    assert_eq!(
        (facts.name.as_deref(), facts.version.as_deref()),
        (Some("x"), None)
    );
    assert_works(&session).await;
}

#[tokio::test]
async fn a_server_that_pings_before_it_answers_the_handshake_is_answered() {
    let server = Script::new()
        .on("initialize")
        .ask("ping", "{}")
        .as_usual()
        .stdio();
    let session = connect_with(stdio(&server), speaking(Protocol::Legacy)).await;
    assert_works(&session).await;
}

#[tokio::test]
async fn unknown_content_blocks_harm_no_others() {
    let server = Script::new()
        .on("tools/call")
        .result(r#"{"content":[{"type":"hologram","depth":3},{"type":"text","text":"seen"},5,{"type":"image"}]}"#)
        .stdio();
    let session = connect(stdio(&server)).await;
    let content = call(&session).await.unwrap().content();
    let [
        Content::Unknown { kind, raw },
        Content::Text(text),
        Content::Unknown { .. },
        Content::Unknown { kind: image, .. },
    ] = content.as_slice()
    else {
        panic!("{content:?}");
    };
    assert_eq!(
        (kind.as_str(), raw.as_str()),
        ("hologram", r#"{"type":"hologram","depth":3}"#)
    );
    assert_eq!((text.as_str(), image.as_str()), ("seen", "image"));
}

#[tokio::test]
async fn what_a_server_prints_instead_of_messages_is_in_the_error() {
    let server = Script::new()
        .on_start()
        .line("Server listening on port 8080")
        .exit(0)
        .stdio();
    let error = Session::connect(stdio(&server), SessionOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.noise(),
        ["Server listening on port 8080"],
        "{error:?}"
    );
}
