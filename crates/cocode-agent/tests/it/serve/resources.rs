//! Conversations as resources.

use cocode_agent::{Block, Store as _};
use serde_json::{Value, json};

use super::Stage;
use super::hand::{Hand, session_of};

#[tokio::test]
async fn conversations_are_listed_and_read() {
    for era in ["legacy", "modern"] {
        let stage = Stage::free();
        stage
            .puppet()
            .calls(&[("1", "shell", json!({ "command": "echo hello there" }))])
            .says("It says hello.");
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        let begun = hand
            .call("cocode", json!({ "prompt": "Look around" }))
            .await;
        let id = session_of(&begun);
        let uri = format!("cocode://conversations/{}", id.as_str().unwrap());
        let listed = hand.ask("resources/list", json!({})).await;
        let listed = &listed["result"];
        let resource = &listed["resources"][0];
        assert_eq!(resource["uri"], uri.as_str());
        assert_eq!(resource["name"], "Look around");
        assert_eq!(resource["mimeType"], "text/markdown");
        let told = resource["description"].as_str().unwrap();
        assert!(told.starts_with("1 turn, last used 20"), "{told}");
        assert!(listed.get("nextCursor").is_none());
        assert_eq!(listed["cacheScope"] == "private", era == "modern");
        let read = hand.ask("resources/read", json!({ "uri": uri })).await;
        let read = &read["result"];
        let content = &read["contents"][0];
        assert_eq!(content["uri"], uri.as_str());
        assert_eq!(content["mimeType"], "text/markdown");
        let text = content["text"].as_str().unwrap();
        for part in [
            "# Look around",
            "## Person\n\nLook around",
            "**Calls** `shell: echo hello there`",
            "hello there",
            "## Agent (wood)\n\nIt says hello.",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(read["ttlMs"].is_u64(), era == "modern");
    }
}

#[tokio::test]
async fn there_is_one_template_for_all_conversations() {
    let stage = Stage::free();
    let mut hand = Hand::modern(&stage.server, json!({}));
    let listed = hand.ask("resources/templates/list", json!({})).await;
    let templates = &listed["result"]["resourceTemplates"];
    assert_eq!(
        templates[0]["uriTemplate"],
        "cocode://conversations/{session_id}"
    );
    assert_eq!(listed["result"]["cacheScope"], "private");
}

#[tokio::test]
async fn what_is_not_there_or_not_yours_is_not_found() {
    let stage = Stage::free();
    stage.puppet().says("Mine.");
    let mut hand = Hand::legacy(&stage.server, json!({})).await;
    let begun = hand.call("cocode", json!({ "prompt": "hi" })).await;
    let id = session_of(&begun);
    let foreign = format!("cocode://conversations/{}", id.as_str().unwrap());
    let server = stage.server_of("bob");
    for (era, code) in [("legacy", -32002), ("modern", -32602)] {
        let mut bob = Hand::of(era, &server, json!({})).await;
        let listed = bob.ask("resources/list", json!({})).await;
        assert_eq!(listed["result"]["resources"], json!([]));
        for uri in [
            foreign.as_str(),
            "cocode://conversations/0f8fad5b-d9cb-469f-a165-70867728950e",
            "cocode://conversations/nonsense",
            "file:///etc/passwd",
        ] {
            let answer = bob.ask("resources/read", json!({ "uri": uri })).await;
            assert_eq!(answer["error"]["code"], code, "{answer}");
            assert_eq!(answer["error"]["data"]["uri"], uri);
        }
        let answer = bob.ask("resources/read", json!({})).await;
        assert_eq!(answer["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn many_conversations_come_in_pages() {
    let stage = Stage::free();
    let settings = stage.scene.free();
    for number in 0..120 {
        let new = cocode_agent::NewConversation {
            owner: "ann".into(),
            settings: settings.clone(),
            title: format!("number {number}"),
        };
        stage.scene.store.begin(new).await.unwrap();
    }
    let mut hand = Hand::modern(&stage.server, json!({}));
    let mut names = std::collections::BTreeSet::new();
    let mut params = json!({});
    for page in 0..3 {
        let listed = hand.ask("resources/list", params.clone()).await;
        let listed = &listed["result"];
        assert_eq!(listed["cacheScope"], "private");
        for resource in listed["resources"].as_array().unwrap() {
            names.insert(resource["name"].as_str().unwrap().to_owned());
        }
        let next = listed.get("nextCursor").cloned();
        assert_eq!(next.is_some(), page < 2);
        params["cursor"] = next.unwrap_or(Value::Null);
    }
    assert_eq!(names.len(), 120);
    for nonsense in [json!("x"), json!(3), json!("-1"), json!("99999999999")] {
        let params = json!({ "cursor": nonsense });
        let answer = hand.ask("resources/list", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[tokio::test]
async fn a_conversation_that_is_finished_says_so() {
    let stage = Stage::free();
    let settings = stage.scene.free();
    let about = [Block::text("bye")];
    let begun = stage.scene.agent.begin("ann", settings, &about).await;
    begun.unwrap().close().await.unwrap();
    let mut hand = Hand::modern(&stage.server, json!({}));
    let listed = hand.ask("resources/list", json!({})).await;
    let told = listed["result"]["resources"][0]["description"].clone();
    assert!(told.as_str().unwrap().contains("finished"), "{told}");
}
