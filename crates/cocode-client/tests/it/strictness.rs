//! What the specification forbids a client to do or to accept, and what a lenient one must not hide.

use std::sync::Arc;

use cocode_client::{Content, Protocol, RequestError, RequestOptions, SessionOptions};
use cocode_testkit::Script;

use crate::peer::Peer;
use crate::support::{
    Witness, assert_works, call, connect, connect_with, handled_by, http, soon, speaking, stdio,
};

/// What a call that is answered with `result` comes to.
async fn called(result: &str) -> cocode_client::CallResult {
    let server = Script::new().on("tools/call").result(result).stdio();
    call(&connect(stdio(&server)).await).await.unwrap()
}

#[tokio::test]
async fn an_odd_member_of_a_result_hides_no_other() {
    let text = called(r#"{"isError":true,"content":"boom"}"#).await;
    assert!(text.is_error);
    assert!(
        matches!(&text.content()[..], [Content::Unknown { raw, .. }] if raw.as_str() == "\"boom\"")
    );
    let flag = called(r#"{"isError":"true","content":[{"type":"text","text":"a"}]}"#).await;
    assert!(flag.is_error && matches!(&flag.content()[..], [Content::Text(text)] if text == "a"));
    let block = called(r#"{"content":{"type":"text","text":"a"},"isError":null}"#).await;
    assert!(!block.is_error && matches!(&block.content()[..], [Content::Text(_)]));
    assert!(!called(r#"{"content":[],"isError":false}"#).await.is_error);
    assert!(
        !called(r#"{"content":[{"type":"text","text":"isError"}]}"#)
            .await
            .is_error
    );
    assert!(
        called(r#"{"content":[],"is\u0045rror":true}"#)
            .await
            .is_error
    );
}

#[tokio::test]
async fn an_odd_message_of_a_prompt_hides_no_other() {
    let messages =
        r#"{"messages":[{"role":"user"},{"role":"user","content":{"type":"text","text":"b"}}]}"#;
    let server = Script::new().on("prompts/get").result(messages).stdio();
    let session = connect(stdio(&server)).await;
    let arguments = std::collections::BTreeMap::new();
    let prompt = session
        .get_prompt("p", &arguments, RequestOptions::default())
        .await
        .unwrap();
    let messages: Vec<_> = prompt
        .messages()
        .into_iter()
        .map(|message| message.content)
        .collect();
    assert!(
        matches!(&messages[..], [Content::Unknown { .. }, Content::Text(_)]),
        "{messages:?}"
    );
}

#[tokio::test]
async fn an_unknown_kind_of_result_is_refused_for_every_method() {
    let server = Script::modern()
        .on("tools/list")
        .result(r#"{"resultType":"banana","tools":[]}"#)
        .on("prompts/list")
        .result(r#"{"resultType":"input_required","requestState":"x"}"#)
        .stdio();
    let session = connect_with(stdio(&server), speaking(Protocol::Modern)).await;
    let unknown = session.tools().await;
    assert!(
        matches!(unknown, Err(RequestError::Unexpected { .. })),
        "{unknown:?}"
    );
    let misplaced = session.prompts().await;
    assert!(
        matches!(misplaced, Err(RequestError::Unexpected { .. })),
        "{misplaced:?}"
    );
    assert_works(&session).await;
}

/// The specification forbids the request. Without an answer, the server would wait, and we for it.
#[tokio::test]
async fn stateless_server_that_asks_gets_an_answer() {
    let witness = Arc::new(Witness::willing());
    let (_session, mut peer) = Peer::modern(handled_by(&witness)).await;
    for (method, expected) in [("ping", r#""result":{}"#), ("x/y", "-32601")] {
        peer.write(&format!(
            r#"{{"jsonrpc":"2.0","id":"s","method":"{method}"}}"#
        ))
        .await;
        let answer = soon("an answer", peer.read()).await.to_string();
        assert!(answer.contains(r#""id":"s""#), "{answer}");
        assert!(answer.contains(expected), "{answer}");
    }
}

#[tokio::test]
async fn a_subscription_that_the_server_takes_back_is_opened_again() {
    let (session, mut peer) = Peer::modern(SessionOptions::default()).await;
    session.subscribe("file:///a").await.unwrap();
    let first = peer.expect("subscriptions/listen").await;
    let id = &first["id"];
    peer.write(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ))
    .await;
    let again = peer.expect("subscriptions/listen").await;
    assert_ne!(&again["id"], id);
}

#[tokio::test]
async fn one_refused_resource_does_not_end_the_other_subscriptions() {
    let server = Script::modern()
        .on("subscriptions/listen")
        .nth(2)
        .error(-32602, "no such resource")
        .stdio();
    let session = connect_with(stdio(&server), speaking(Protocol::Modern)).await;
    server
        .wait_for(|message| message.is("subscriptions/listen"))
        .await;
    session.subscribe("scripted://nowhere").await.unwrap();
    let listens = |all: &[cocode_testkit::Message]| {
        let listens = all
            .iter()
            .filter(|message| message.is("subscriptions/listen"));
        listens
            .map(|message| message.params()["notifications"].clone())
            .collect::<Vec<_>>()
    };
    server
        .received()
        .wait_until(|all| listens(all).len() == 3)
        .await;
    let sent = listens(&server.received().all());
    assert_eq!(
        sent[0], sent[2],
        "the third asks for what was agreed before"
    );
}

#[tokio::test]
async fn a_null_id_error_reaches_the_request_beside_a_subscription() {
    let (session, mut peer) = Peer::modern(SessionOptions::default()).await;
    session.subscribe("file:///a").await.unwrap();
    peer.expect("subscriptions/listen").await;
    let answering = async {
        peer.expect("server/discover").await;
        peer.write(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#)
            .await;
    };
    let pinging = session.ping(RequestOptions::default());
    let (outcome, ()) = soon("an answer", async { tokio::join!(pinging, answering) }).await;
    assert!(
        matches!(outcome, Err(RequestError::Rpc { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_refusal_in_json_leads_to_the_older_transport_too() {
    let refusal =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Method not allowed."}}"#;
    let server = Script::new()
        .http_sse()
        .on_http("POST")
        .nth(1)
        .respond(405, &[("Content-Type", "application/json")], refusal)
        .on_http("POST")
        .nth(2)
        .respond(405, &[("Content-Type", "application/json")], refusal)
        .http();
    let session = connect(http(&server)).await;
    assert_eq!(session.server().transport, "sse");
    assert_works(&session).await;
}

#[tokio::test]
async fn a_session_that_ends_between_requests_is_renewed_for_its_notifications() {
    let server = Script::new().get_stream().http();
    let witness = Arc::new(Witness::willing());
    let session = connect_with(http(&server), handled_by(&witness)).await;
    server.wait_for_streams(1).await;
    session.subscribe("scripted://hello").await.unwrap();
    server.expire_sessions();
    server.drop_streams();
    server.wait_for_streams(2).await;
    server
        .requests()
        .wait_until(|all| all.iter().filter(|r| r.is("resources/subscribe")).count() == 2)
        .await;
    server.push(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    witness.hears("notifications/tools/list_changed").await;
    session.close().await;
}

/// Panics when it is asked.
struct Clumsy;

impl cocode_client::Handler for Clumsy {
    fn capabilities(&self) -> cocode_client::ClientCapabilities {
        cocode_client::ClientCapabilities {
            roots: true,
            ..cocode_client::ClientCapabilities::default()
        }
    }

    fn roots(
        &self,
    ) -> cocode_client::Answer<'_, Result<Vec<cocode_client::Root>, cocode_client::RpcError>> {
        Box::pin(async { panic!("dropped a question") })
    }
}

#[tokio::test]
async fn a_handler_that_panics_on_a_question_still_answers_it() {
    let server = Script::new()
        .on("tools/call")
        .ask("roots/list", "{}")
        .text_result("$answer")
        .stdio();
    let options = SessionOptions {
        handler: Arc::new(Clumsy),
        ..SessionOptions::default()
    };
    let session = connect_with(stdio(&server), options).await;
    let result = soon("an answer", call(&session)).await;
    assert!(result.is_ok(), "{result:?}");
    let answer = server
        .wait_for(|m| m.json()["error"]["code"] == -32603)
        .await;
    assert!(answer.raw.contains("the client failed"), "{}", answer.raw);
}
