//! Results come out byte for byte as the server wrote them, over every transport.

use cocode_client::{Session, Target};
use cocode_testkit::Script;

use crate::support::{call, connect, http, raw, stdio, websocket, within};

/// Unknown fields, an order of its own, numbers that no machine word holds, floats with a zero at
/// the end, and escapes of every kind.
const RESULT: &str = r#"{"zeta":1e400,"content":[{"type":"text","text":"\u00e9\/\ud83d\ude00 é 😀","x-new":{"b":1,"a":2}}],"alpha": 1.10,"big":123456789012345678901234567890,"-0":-0.0,"e":1E+2,"structuredContent":{"n":0.1000,"n2":[ 1 , 2 ]},"resultType":"complete","":null}"#;

async fn check(target: Target) {
    let session = connect(target).await;
    let result = call(&session).await.unwrap();
    assert_eq!(result.raw.as_str(), RESULT);
    assert_eq!(
        result.structured().unwrap().as_str(),
        r#"{"n":0.1000,"n2":[ 1 , 2 ]}"#
    );
    let params = raw(r#"{"name":"echo"}"#);
    let answer = session
        .request("tools/call", Some(&params), within(20_000))
        .await;
    assert_eq!(answer.unwrap().as_str(), RESULT);
    session.close().await;
}

fn script() -> Script {
    Script::dual().on("tools/call").result(RESULT)
}

#[tokio::test]
async fn results_are_untouched_over_stdio() {
    check(stdio(&script().stdio())).await;
}

#[tokio::test]
async fn results_are_untouched_over_http() {
    check(http(&script().http())).await;
    check(http(&script().event_answers().http())).await;
}

#[tokio::test]
async fn results_are_untouched_over_http_sse() {
    let server = Script::new()
        .http_sse()
        .on("tools/call")
        .result(RESULT)
        .http();
    check(cocode_client::legacy_sse(server.url().parse().unwrap())).await;
}

#[tokio::test]
async fn results_are_untouched_over_websocket() {
    check(websocket(&script().websocket())).await;
}

#[tokio::test]
async fn results_are_untouched_over_a_unix_socket() {
    let server = script().unix();
    check(cocode_client::unix(server.path().to_owned())).await;
}

/// What a server received as the arguments of a call.
async fn arguments_sent(session: &Session, arguments: &str) -> String {
    let arguments = raw(arguments);
    let result = session
        .call_tool("echo", Some(&arguments), within(20_000))
        .await;
    result.unwrap().structured().unwrap().to_string()
}

#[tokio::test]
async fn arguments_arrive_untouched() {
    let server = Script::new()
        .on("tools/call")
        .result(r#"{"structuredContent":$arguments}"#)
        .stdio();
    let session = connect(stdio(&server)).await;
    let arguments = r#"{"z":1e400,"a": 1.10,"big":123456789012345678901234567890,"s":"\u00e9\/"}"#;
    assert_eq!(arguments_sent(&session, arguments).await, arguments);
    // A line break between tokens would end the message, so it becomes a blank.
    assert_eq!(
        arguments_sent(&session, "{\n\"a\":\r\n1}").await,
        "{ \"a\":  1}"
    );
}

#[tokio::test]
async fn the_pages_of_a_list_are_untouched() {
    let page =
        r#"{"tools":[{"name":"a","inputSchema":{"b":1,"a":1.10},"x":1e400}],"zeta":0,"alpha":1}"#;
    let server = Script::new().on("tools/list").result(page).stdio();
    let session = connect(stdio(&server)).await;
    assert_eq!(
        session.page("tools/list", None).await.unwrap().as_str(),
        page
    );
    let listing = session.tools().await.unwrap();
    assert_eq!(listing.pages[0].as_str(), page);
    assert_eq!(
        listing.items[0].input_schema.as_str(),
        r#"{"b":1,"a":1.10}"#
    );
}
