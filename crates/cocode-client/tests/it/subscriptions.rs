//! News of changes: heard from servers of both eras, and asked for again when they stop.

use std::sync::Arc;
use std::time::Duration;

use cocode_client::SessionOptions;
use cocode_testkit::Script;
use serde_json::json;

use crate::peer::Peer;
use crate::support::{Witness, assert_works, connect, connect_with, handled_by, http, stdio};

const CHANGED: &str = "notifications/tools/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

fn notice() -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{CHANGED}"}}"#)
}

#[tokio::test]
async fn changes_are_heard_from_a_server_of_the_older_era() {
    let server = Script::new()
        .on("resources/list")
        .notify(CHANGED, "{}")
        .as_usual()
        .stdio();
    let witness = Arc::new(Witness::willing());
    let session = connect_with(stdio(&server), handled_by(&witness)).await;
    assert_works(&session).await;
    assert_eq!(witness.heard.all(), [(CHANGED.to_owned(), "{}".to_owned())]);
}

#[tokio::test]
async fn a_stateless_server_is_asked_for_what_it_declares() {
    let server = Script::modern().stdio();
    let _session = connect(stdio(&server)).await;
    let listen = server
        .wait_for(|message| message.is("subscriptions/listen"))
        .await;
    assert_eq!(
        listen.params()["notifications"],
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true})
    );
}

#[tokio::test]
async fn a_stateless_server_that_declares_nothing_is_asked_for_nothing() {
    let (session, mut peer) = Peer::modern(SessionOptions::default()).await;
    session.notify("notifications/x", None).await.unwrap();
    peer.expect("notifications/x").await;
}

#[tokio::test]
async fn listening_can_be_switched_off() {
    let server = Script::modern().http();
    let options = SessionOptions {
        listen: false,
        ..SessionOptions::default()
    };
    let session = connect_with(http(&server), options).await;
    assert_works(&session).await;
    session.close().await;
    assert_eq!(
        server
            .requests()
            .count(|request| request.is("subscriptions/listen")),
        0
    );
}

#[tokio::test]
async fn a_subscription_that_ends_is_opened_again() {
    let server = Script::modern().http();
    let witness = Arc::new(Witness::willing());
    let session = connect_with(http(&server), handled_by(&witness)).await;
    server.wait_for_streams(1).await;
    server.push(notice());
    witness.hears(CHANGED).await;
    server.end_streams();
    server.wait_for_streams(2).await;
    server.drop_streams();
    server.wait_for_streams(3).await;
    let before = witness.heard.all().len();
    server.push(notice());
    witness.heard.reaches(before + 1).await;
    session.close().await;
}

#[tokio::test]
async fn a_subscription_that_is_answered_is_opened_again() {
    let server = Script::modern()
        .on("subscriptions/listen")
        .nth(1)
        .result("{}")
        .stdio();
    let session = connect(stdio(&server)).await;
    let received = server.received();
    received
        .wait_until(|all| all.iter().filter(|m| m.is("subscriptions/listen")).count() == 2)
        .await;
    assert_works(&session).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_no_subscriptions_is_asked_once() {
    let (session, mut peer) = Peer::modern(SessionOptions::default()).await;
    session.subscribe("file:///a").await.unwrap();
    let listen = peer.expect("subscriptions/listen").await;
    let id = &listen["id"];
    peer.write(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"?"}}}}"#
    ))
    .await;
    let again = tokio::time::timeout(Duration::from_hours(1), peer.read()).await;
    assert!(again.is_err(), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_subscriptions_at_once_is_asked_less_and_less() {
    let (session, mut peer) = Peer::modern(SessionOptions::default()).await;
    session.subscribe("file:///a").await.unwrap();
    let answering = async {
        let mut asked: u32 = 0;
        loop {
            let listen = peer.expect("subscriptions/listen").await;
            peer.result(&listen, "{}").await;
            asked += 1;
            if asked == 20 {
                return;
            }
        }
    };
    let begun = tokio::time::Instant::now();
    answering.await;
    // On a clock that the test controls: waits of 1, 2, 4, 8, 16 and then 30 seconds.
    assert!(
        begun.elapsed() > Duration::from_mins(5),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_resource_is_watched_in_the_older_era() {
    let server = Script::new().stdio();
    let session = connect(stdio(&server)).await;
    session.subscribe("scripted://hello").await.unwrap();
    session.unsubscribe("scripted://hello").await.unwrap();
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let request = server.wait_for(|message| message.is(method)).await;
        assert_eq!(request.params(), json!({"uri": "scripted://hello"}));
    }
}

#[tokio::test]
async fn a_resource_is_watched_through_the_subscription_of_a_stateless_server() {
    let server = Script::modern().http();
    let witness = Arc::new(Witness::willing());
    let session = connect_with(http(&server), handled_by(&witness)).await;
    witness.hears(ACKNOWLEDGED).await;
    session.subscribe("scripted://hello").await.unwrap();
    let watches = |request: &cocode_testkit::HttpRequest| {
        request.json()["params"]["notifications"]["resourceSubscriptions"]
            == json!(["scripted://hello"])
    };
    let listen = server.wait_for(watches).await;
    assert_eq!(
        listen.json()["params"]["notifications"]["toolsListChanged"],
        true
    );
    // The old subscription ends when the new one begins.
    server
        .abandoned()
        .wait_for(|request| request.is("subscriptions/listen"))
        .await;
    session.unsubscribe("scripted://hello").await.unwrap();
    let received = server.requests();
    received
        .wait_until(|all| all.iter().filter(|r| r.is("subscriptions/listen")).count() == 3)
        .await;
}

#[tokio::test]
async fn a_subscription_ends_with_its_session() {
    let server = Script::modern().http();
    let witness = Arc::new(Witness::willing());
    let session = connect_with(http(&server), handled_by(&witness)).await;
    witness.hears(ACKNOWLEDGED).await;
    drop(session);
    server
        .abandoned()
        .wait_for(|request| request.is("subscriptions/listen"))
        .await;
}
