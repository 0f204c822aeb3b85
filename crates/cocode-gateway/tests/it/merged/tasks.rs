//! Tasks of many servers.

use cocode_testkit::Script;
use serde_json::json;

use super::house::House;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A server whose tool makes a task, and that tells what it is asked about tasks.
fn working(id: &str) -> Script {
    let task =
        format!(r#"{{"resultType":"task","taskId":"{id}","status":"working","ttlMs":1.10}}"#);
    let known = format!(
        r#"{{"resultType":"complete","taskId":"{id}","status":"completed","result":{{"content":[]}},"came":$params}}"#
    );
    Script::modern()
        .on("server/discover")
        .result(json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {}, "extensions": { TASKS: {} } },
        }))
        .on("tools/call")
        .result(task)
        .on("tasks/get")
        .result(known)
        .on("tasks/cancel")
        .result(r#"{"resultType":"complete","came":$params}"#)
}

#[tokio::test]
async fn tasks_are_offered_if_a_server_has_them_and_found_again_at_their_server() {
    let house = House::of(&[("a: b", working("7:8")), ("c", working("7:8"))]).await;
    let mut client = house.stateless();
    client.modern(1, "tools/list", json!({})).await;
    let told = client.modern(1, "server/discover", json!({})).await;
    let extensions = &told["result"]["capabilities"]["extensions"];
    assert_eq!(*extensions, json!({ TASKS: {} }));
    let listed = client.modern(1, "tools/list", json!({})).await;
    let tools = super::house::keys(&listed["result"]["tools"], "name");
    for (tool, id) in tools.iter().zip(["a%3A%20b:7:8", "c:7:8"]) {
        let made = client
            .modern(2, "tools/call", json!({ "name": tool }))
            .await;
        assert_eq!(made["result"]["taskId"], id);
        assert_eq!(made["result"]["resultType"], "task");
        let known = client.modern(3, "tasks/get", json!({ "taskId": id })).await;
        assert_eq!(known["result"]["taskId"], id);
        assert_eq!(known["result"]["came"]["taskId"], "7:8");
        let ended = client
            .modern(4, "tasks/cancel", json!({ "taskId": id }))
            .await;
        assert_eq!(ended["result"]["came"]["taskId"], "7:8");
    }
}

#[tokio::test]
async fn client_that_declares_no_tasks_is_told_so() {
    let house = House::of(&[("a", working("7"))]).await;
    let mut client = house.stateless();
    let none = json!({ "io.modelcontextprotocol/clientCapabilities": { "extensions": {} } });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": "a:7" });
        let refused = client.modern_with(1, method, params, none.clone()).await;
        assert_eq!(refused["error"]["code"], -32021, "{method}");
        let required = &refused["error"]["data"]["requiredCapabilities"];
        assert_eq!(
            *required,
            json!({ "extensions": { TASKS: {} } }),
            "{method}"
        );
    }
}

#[tokio::test]
async fn a_task_of_nobody_is_unknown_and_old_methods_are_gone() {
    let house = House::of(&[("a", working("7"))]).await;
    let mut client = house.stateless();
    for id in ["7", "b:7", ""] {
        let known = client.modern(1, "tasks/get", json!({ "taskId": id })).await;
        assert_eq!(known["error"]["code"], -32602, "{id}");
    }
    for method in ["tasks/result", "tasks/list"] {
        let answer = client.modern(1, method, json!({ "taskId": "a:7" })).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
}
