//! Which era a server speaks: found out, remembered rightly or wrongly, or insisted upon.

use std::time::Duration;

use cocode_client::{
    ConnectError, Era, Protocol, RequestError, Revision, Session, SessionOptions, Target, Timeouts,
};
use cocode_testkit::{Gate, Script, UnixServer};

use crate::support::{
    assert_works, call, call_with, connect, connect_with, count, http, raw, received, rpc_error,
    soon, speaking, stdio, text_of, within,
};

const UNSUPPORTED: &str = r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32022,"message":"unsupported","data":{"supported":["2099-01-01","2026-07-28"],"requested":"?"}}}"#;

const MISMATCH: &str =
    r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32020,"message":"no Mcp-Param-Word"}}"#;

fn unix(server: &UnixServer) -> Target {
    cocode_client::unix(server.path().to_owned())
}

fn remembering(era: Era) -> SessionOptions {
    SessionOptions {
        known_era: Some(era),
        ..SessionOptions::default()
    }
}

fn impatient() -> SessionOptions {
    SessionOptions {
        timeouts: Timeouts {
            probe: Duration::from_millis(200),
            ..Timeouts::default()
        },
        ..SessionOptions::default()
    }
}

#[tokio::test]
async fn a_stateless_server_is_recognized() {
    let server = Script::modern().stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(session.server().revision, Revision::V2026_07_28);
    assert_eq!(session.server().name.as_deref(), Some("scripted"));
    assert_works(&session).await;
    assert_eq!(count(&server, &session, "initialize").await, 0);
}

#[tokio::test]
async fn a_server_of_both_eras_is_used_as_stateless() {
    let server = Script::dual().http();
    let session = connect(http(&server)).await;
    assert_eq!(session.server().era(), Era::Modern);
    assert_works(&session).await;
}

#[tokio::test]
async fn a_server_that_does_not_know_the_question_is_older() {
    let server = Script::new().stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(session.server().revision, Revision::V2025_11_25);
    assert_works(&session).await;
    assert_eq!(count(&server, &session, "server/discover").await, 1);
    assert_eq!(server.runs().all(), [1]);
}

#[tokio::test]
async fn a_server_that_answers_the_question_oddly_is_older() {
    for odd in [
        r#"{"jsonrpc":"2.0","id":$id,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":["2025-11-25"]}}"#,
        r#"{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":7}}"#,
        r#"{"jsonrpc":"2.0","id":$id,"error":"?"}"#,
        r#"{"jsonrpc":"2.0","id":$id}"#,
    ] {
        let server = Script::new().on("server/discover").line(odd).stdio();
        let session = connect(stdio(&server)).await;
        assert_eq!(session.server().era(), Era::Legacy, "{odd}");
    }
}

#[tokio::test]
async fn a_server_that_is_silent_about_its_era_is_older_and_not_started_again() {
    let server = Script::new().on("server/discover").ignore().stdio();
    let session = connect_with(stdio(&server), impatient()).await;
    assert_eq!(session.server().era(), Era::Legacy);
    assert_eq!(count(&server, &session, "initialize").await, 1);
    assert_eq!(server.runs().all(), [1]);
}

#[tokio::test]
async fn a_server_that_exits_when_asked_is_started_again() {
    let server = Script::new().on("server/discover").exit(1).stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(session.server().era(), Era::Legacy);
    assert_eq!(count(&server, &session, "initialize").await, 1);
    assert_eq!(server.runs().all(), [1, 2]);
}

#[tokio::test]
async fn server_that_exits_before_it_is_asked_is_started_once() {
    let server = Script::new().on_start().exit(1).stdio();
    let refused = Session::connect(stdio(&server), SessionOptions::default()).await;
    assert_eq!(refused.unwrap_err().code(), "server-exited");
    assert_eq!(server.runs().all(), [1]);
}

#[tokio::test]
async fn a_server_that_hangs_up_when_asked_is_called_again() {
    let server = Script::new().on("server/discover").disconnect().unix();
    let session = connect(unix(&server)).await;
    assert_eq!(session.server().era(), Era::Legacy);
    assert_works(&session).await;
    let server = Script::new().on("server/discover").disconnect().http();
    let session = connect(http(&server)).await;
    assert_eq!(session.server().era(), Era::Legacy);
}

#[tokio::test]
async fn a_stateless_server_that_was_slow_to_start_is_asked_again() {
    let server = Script::modern()
        .on("server/discover")
        .nth(1)
        .ignore()
        .stdio();
    let session = connect_with(stdio(&server), impatient()).await;
    assert_eq!(session.server().era(), Era::Modern);
    assert_works(&session).await;
}

#[tokio::test]
async fn insisting_on_the_stateless_era_fails_with_an_older_server() {
    let server = Script::new().unix();
    for protocol in [Protocol::Modern, Protocol::Exact(Revision::V2026_07_28)] {
        let outcome = Session::connect(unix(&server), speaking(protocol)).await;
        assert!(
            matches!(outcome, Err(ConnectError::Version { .. })),
            "{outcome:?}"
        );
    }
    let asked = server.received().count(|message| message.is("initialize"));
    assert_eq!(asked, 0);
}

#[tokio::test]
async fn insisting_on_the_older_era_fails_with_a_stateless_server() {
    let server = Script::modern().unix();
    let outcome = Session::connect(unix(&server), speaking(Protocol::Legacy)).await;
    assert_eq!(outcome.unwrap_err().code(), "handshake-refused");
    let asked = server
        .received()
        .count(|message| message.is("server/discover"));
    assert_eq!(asked, 0);
}

#[tokio::test]
async fn a_revision_can_be_insisted_upon() {
    let server = Script::new().stdio();
    let older = Revision::V2025_03_26;
    let session = connect_with(stdio(&server), speaking(Protocol::Exact(older))).await;
    assert_eq!(session.server().revision, older);
    let hello = server.wait_for(|message| message.is("initialize")).await;
    assert_eq!(hello.params()["protocolVersion"], "2025-03-26");
    assert_eq!(count(&server, &session, "server/discover").await, 0);

    let stubborn = Script::new()
        .on("initialize")
        .result(r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x"}}"#)
        .stdio();
    let outcome = Session::connect(stdio(&stubborn), speaking(Protocol::Exact(older))).await;
    assert!(
        matches!(outcome, Err(ConnectError::Version { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_server_that_refuses_the_offered_version_is_offered_its_own() {
    let refusal = UNSUPPORTED.replace("2026-07-28", "2025-03-26");
    let server = Script::new().on("initialize").nth(1).line(refusal).stdio();
    let session = connect_with(stdio(&server), speaking(Protocol::Legacy)).await;
    assert_eq!(session.server().revision, Revision::V2025_03_26);
}

#[tokio::test]
async fn a_right_memory_saves_the_question() {
    let server = Script::new().stdio();
    let session = connect_with(stdio(&server), remembering(Era::Legacy)).await;
    assert_works(&session).await;
    assert_eq!(count(&server, &session, "server/discover").await, 0);
}

#[tokio::test]
async fn a_wrong_memory_of_the_stateless_era_is_corrected() {
    let server = Script::new().stdio();
    let session = connect_with(stdio(&server), remembering(Era::Modern)).await;
    assert_eq!(session.server().era(), Era::Legacy);
    assert_works(&session).await;
}

#[tokio::test]
async fn a_wrong_memory_of_the_older_era_is_corrected() {
    let server = Script::modern().stdio();
    let session = connect_with(stdio(&server), remembering(Era::Legacy)).await;
    assert_eq!(session.server().era(), Era::Modern);
    assert_works(&session).await;

    let crashing = Script::modern().on("initialize").exit(1).stdio();
    let session = connect_with(stdio(&crashing), remembering(Era::Legacy)).await;
    assert_eq!(session.server().era(), Era::Modern);
    assert_works(&session).await;
}

#[tokio::test]
async fn a_wrong_memory_of_the_older_era_is_corrected_over_http() {
    for script in [
        Script::modern(),
        Script::modern().on("initialize").respond(400, &[], "what?"),
        Script::modern()
            .on("initialize")
            .html(404, "<h1>Nothing here</h1>"),
    ] {
        let server = script.http();
        let session = connect_with(http(&server), remembering(Era::Legacy)).await;
        assert_eq!(session.server().era(), Era::Modern);
        assert_eq!(session.server().transport, "http");
        assert_works(&session).await;
    }
}

#[tokio::test]
async fn a_version_that_the_server_names_instead_is_tried() {
    let server = Script::modern()
        .on("server/discover")
        .nth(1)
        .line(UNSUPPORTED)
        .stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(session.server().era(), Era::Modern);
    assert_eq!(count(&server, &session, "server/discover").await, 2);
}

#[tokio::test]
async fn a_server_that_refuses_the_version_it_offers_is_given_up() {
    let server = Script::modern()
        .on("server/discover")
        .line(UNSUPPORTED)
        .unix();
    let outcome = Session::connect(unix(&server), SessionOptions::default()).await;
    assert!(
        matches!(outcome, Err(ConnectError::Handshake { .. })),
        "{outcome:?}"
    );
    let asked = server
        .received()
        .count(|message| message.is("server/discover"));
    assert_eq!(asked, 2);
}

#[tokio::test]
async fn a_request_refused_for_its_version_is_repeated_once() {
    let server = Script::modern()
        .on("tools/call")
        .nth(1)
        .line(UNSUPPORTED)
        .stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(
        text_of(&call(&session).await.unwrap()),
        r#"{"word":"hello"}"#
    );

    let stubborn = Script::modern().on("tools/call").line(UNSUPPORTED).stdio();
    let session = connect(stdio(&stubborn)).await;
    assert_eq!(rpc_error(call(&session).await).code, -32022);
    assert_eq!(count(&stubborn, &session, "tools/call").await, 2);
}

#[tokio::test]
async fn every_stateless_request_introduces_itself() {
    let server = Script::modern().stdio();
    let session = connect(stdio(&server)).await;
    call(&session).await.unwrap();
    for message in received(&server, &session).await {
        let meta = &message.params()["_meta"];
        let key = |name: &str| meta[format!("io.modelcontextprotocol/{name}")].clone();
        assert_eq!(key("protocolVersion"), "2026-07-28");
        assert_eq!(key("clientInfo")["name"], "cocode");
        assert!(key("clientCapabilities").is_object());
    }
}

#[tokio::test]
async fn stateless_requests_are_mirrored_in_headers_and_name_no_session() {
    let answer = r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","content":[]}}"#;
    let headers = [
        ("Content-Type", "application/json"),
        ("Mcp-Session-Id", "trap"),
    ];
    let server = Script::modern()
        .on("tools/call")
        .respond(200, &headers, answer)
        .http();
    let session = connect(http(&server)).await;
    call(&session).await.unwrap();
    session
        .call_tool("Grüße", None, within(20_000))
        .await
        .unwrap();
    session
        .read_resource("scripted://hello", within(20_000))
        .await
        .unwrap();
    session.close().await;
    let requests = server.requests().all();
    for request in &requests {
        assert_eq!(request.header("MCP-Protocol-Version"), Some("2026-07-28"));
        assert_eq!(request.header("Mcp-Method"), request.message().method());
        assert_eq!(request.header("Mcp-Session-Id"), None);
    }
    let names = requests
        .iter()
        .filter_map(|request| request.header("Mcp-Name"));
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["echo", "=?base64?R3LDvMOfZQ==?=", "scripted://hello"]
    );
}

#[tokio::test]
async fn an_unknown_type_of_result_is_an_error() {
    let server = Script::modern()
        .on("tools/call")
        .result(r#"{"resultType":"hologram","content":[]}"#)
        .stdio();
    let session = connect(stdio(&server)).await;
    match call(&session).await {
        Err(RequestError::Unexpected { reason, .. }) => assert!(reason.contains("hologram")),
        other => panic!("{other:?}"),
    }
    assert_works(&session).await;
}

#[tokio::test]
async fn a_connection_that_breaks_says_nothing_of_the_era() {
    let server = Script::modern().on("server/discover").nth(1).reset().http();
    let session = connect(http(&server)).await;
    assert_eq!(session.server().era(), Era::Modern);
    assert_works(&session).await;
}

#[tokio::test]
async fn arguments_that_the_server_wants_as_headers_are_learned_and_sent() {
    let tools = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"word":{"type":"string","x-mcp-header":"Word"}}}}]}"#;
    let server = Script::modern()
        .on("tools/list")
        .result(tools)
        .on("tools/call")
        .nth(1)
        .respond(400, &[("Content-Type", "application/json")], MISMATCH)
        .http();
    let session = connect(http(&server)).await;
    assert_eq!(
        text_of(&call(&session).await.unwrap()),
        r#"{"word":"hello"}"#
    );
    let requests = server.requests().all();
    let calls = requests.iter().filter(|request| request.is("tools/call"));
    let headers: Vec<_> = calls
        .map(|request| request.header("Mcp-Param-Word"))
        .collect();
    assert_eq!(headers, [None, Some("hello")]);
    assert_eq!(
        server.requests().count(|request| request.is("tools/list")),
        1
    );
}

#[tokio::test]
async fn learning_about_headers_costs_no_more_than_the_deadline() {
    let gate = Gate::new();
    let server = Script::modern()
        .on("tools/call")
        .respond(400, &[("Content-Type", "application/json")], MISMATCH)
        .on("tools/list")
        .hold(&gate)
        .as_usual()
        .http();
    let session = connect(http(&server)).await;
    let outcome = soon("the deadline", call_with(&session, within(1_000))).await;
    match outcome {
        Err(RequestError::Timeout { method, after }) => {
            assert_eq!(method, "tools/list");
            assert!(after < Duration::from_secs(1), "{after:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        server.requests().count(|request| request.is("tools/call")),
        1
    );
}

#[tokio::test]
async fn a_call_that_is_made_again_with_headers_has_what_is_left_of_its_time() {
    let gate = Gate::new();
    let spent = Duration::from_millis(300);
    let server = Script::modern()
        .on("tools/call")
        .nth(1)
        .delay(spent)
        .respond(400, &[("Content-Type", "application/json")], MISMATCH)
        .on("tools/call")
        .nth(2)
        .hold(&gate)
        .as_usual()
        .http();
    let session = connect(http(&server)).await;
    match call_with(&session, within(2_000)).await {
        Err(RequestError::Timeout { method, after }) => {
            assert_eq!(method, "tools/call");
            assert!(after + spent <= Duration::from_secs(2), "{after:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        server.requests().count(|request| request.is("tools/call")),
        2
    );
}

#[tokio::test]
async fn a_meta_of_the_caller_stays_beside_ours() {
    let server = Script::modern().on("anything").echo().stdio();
    let session = connect(stdio(&server)).await;
    let params = raw(r#"{"_meta":{"mine":1.10},"x":true}"#);
    let echoed = session
        .request("anything", Some(&params), within(20_000))
        .await
        .unwrap();
    assert!(echoed.as_str().contains(r#""mine":1.10"#), "{echoed}");
    assert!(echoed.as_str().contains(r#""x":true"#), "{echoed}");
    assert!(echoed.as_str().contains("protocolVersion"), "{echoed}");
}
