//! Legacy clients at servers of the modern era, and at servers of both.

use std::sync::Arc;

use cocode_client::{Protocol, RawJson, RequestOptions, Session};
use cocode_testkit::{HttpRequest, HttpServer, Script};
use serde_json::{Value, json};

use crate::merged::house::House;
use crate::support::{Person, Server, call};

const URI: &str = "scripted://hello";
const UPDATED: &str = "notifications/resources/updated";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A gateway with one server over HTTP.
async fn house(script: Script) -> House {
    House::over_http(&[("up".to_owned(), script)]).await
}

fn server(house: &House) -> &HttpServer {
    match &house.servers[0] {
        Server::Http(server) => server,
        Server::Stdio(_) => panic!("over HTTP"),
    }
}

/// A client of all servers as one, or of the one server by itself.
async fn client(house: &House, is_single: bool, person: &Arc<Person>) -> Session {
    let endpoint = if is_single {
        house.view.server("up").unwrap()
    } else {
        house.view.all()
    };
    house.client_at(endpoint, Protocol::Legacy, person).await
}

async fn request(session: &Session, method: &str, params: Value) {
    let params = RawJson::of(&params).unwrap();
    let options = RequestOptions::default();
    let asked = session.request(method, Some(&params), options).await;
    asked.unwrap();
}

async fn call_echo(session: &Session, is_single: bool) {
    if is_single {
        call(session).await.unwrap();
    } else {
        let options = RequestOptions::default();
        let called = session.call_tool("mcp__up__echo", None, options);
        called.await.unwrap();
    }
}

fn is_call(request: &HttpRequest) -> bool {
    request.is("tools/call")
}

#[tokio::test]
async fn legacy_clients_share_a_legacy_connection_to_a_dual_era_server() {
    let house = house(Script::dual()).await;
    let server = server(&house);
    let mut sessions = Vec::new();
    for is_single in [true, false] {
        let person = Person::willing("Ada");
        for _client in 0..2 {
            server.requests().clear();
            let session = client(&house, is_single, &person).await;
            request(&session, "logging/setLevel", json!({ "level": "error" })).await;
            request(&session, "resources/subscribe", json!({ "uri": URI })).await;
            call_echo(&session, is_single).await;
            server.wait_for(|got| got.is("logging/setLevel")).await;
            server.wait_for(|got| got.is("resources/subscribe")).await;
            let called = server.wait_for(is_call).await;
            assert!(called.header("Mcp-Session-Id").is_some(), "{called:?}");
            request(&session, "resources/unsubscribe", json!({ "uri": URI })).await;
            server.wait_for(|got| got.is("resources/unsubscribe")).await;
            let first = usize::from(sessions.is_empty());
            let opened = server.requests().count(|got| got.is("initialize"));
            assert_eq!(opened, first, "one connection for all");
            sessions.push(session);
        }
    }
    let modern = house.view.server("up").unwrap();
    let person = Person::willing("Ben");
    let modern = house.client_at(modern, Protocol::Modern, &person).await;
    server.requests().clear();
    call(&modern).await.unwrap();
    let called = server.wait_for(is_call).await;
    assert!(called.header("Mcp-Session-Id").is_none(), "{called:?}");
    let running = house.view.running();
    assert_eq!(running.len(), 2, "{running:?}");
}

#[tokio::test]
async fn tool_of_the_modern_era_alone_is_called_there() {
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let listed = json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "tools": [tool("echo"), tool("extra")],
    });
    // The first list is that of the modern connection.
    let script = Script::dual()
        .on("tools/list")
        .nth(1)
        .result(listed)
        .on("tools/call")
        .text_result("done");
    let house = house(script).await;
    let session = client(&house, false, &Person::willing("Ada")).await;
    for (tool, is_legacy) in [("mcp__up__echo", true), ("mcp__up__extra", false)] {
        server(&house).requests().clear();
        let options = RequestOptions::default();
        session.call_tool(tool, None, options).await.unwrap();
        let called = server(&house).wait_for(is_call).await;
        let has_session = called.header("Mcp-Session-Id").is_some();
        assert_eq!(has_session, is_legacy, "{tool}");
    }
}

#[tokio::test]
async fn subscriptions_and_log_levels_are_bridged_to_a_modern_server() {
    let log = |level: &str| json!({ "level": level, "data": "news" });
    let script = Script::modern()
        .on("tools/call")
        .notify("notifications/message", log("warning"))
        .notify("notifications/message", log("info"))
        .text_result("done");
    let house = house(script).await;
    let server = server(&house);
    for is_single in [true, false] {
        let (ada, ben) = (Person::willing("Ada"), Person::willing("Ben"));
        let first = client(&house, is_single, &ada).await;
        let second = client(&house, is_single, &ben).await;
        server.requests().clear();
        request(&first, "logging/setLevel", json!({ "level": "warning" })).await;
        request(&second, "logging/setLevel", json!({ "level": "error" })).await;
        request(&first, "resources/subscribe", json!({ "uri": URI })).await;
        server
            .wait_for(|got| {
                got.json()["params"]["notifications"]["resourceSubscriptions"][0] == URI
            })
            .await;
        server.wait_for_streams(1).await;
        let updated = json!({ "jsonrpc": "2.0", "method": UPDATED, "params": { "uri": URI } });
        server.push(updated.to_string());
        ada.hears(UPDATED).await;
        for (session, level) in [(&first, "warning"), (&second, "error")] {
            call_echo(session, is_single).await;
            let called = server.requests().all();
            let called = called.iter().rfind(|got| is_call(got)).unwrap();
            assert_eq!(called.json()["params"]["_meta"][LOG_LEVEL], level);
        }
        request(&first, "resources/unsubscribe", json!({ "uri": URI })).await;
        let heard = |person: &Person, what: &str| {
            let heard = person.heard.lock().unwrap();
            heard.iter().filter(|heard| heard.contains(what)).count()
        };
        assert_eq!(heard(&ada, "warning"), 1);
        assert_eq!(heard(&ada, r#""info""#), 0);
        assert_eq!(heard(&ben, "notifications/message"), 0);
        assert_eq!(heard(&ben, UPDATED), 0);
    }
    // It refused `initialize` to the first client, and was not asked again.
    assert_eq!(server.requests().count(|got| got.is("initialize")), 0);
}
