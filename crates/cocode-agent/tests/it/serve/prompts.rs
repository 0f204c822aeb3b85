//! Saved prompts as prompts.

use serde_json::json;

use super::Stage;
use super::hand::Hand;

fn save(stage: &Stage, name: &str, text: &str) {
    let directory = stage.scene.directory.path().join("prompts");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(name), text).unwrap();
}

#[tokio::test]
async fn prompts_are_listed_and_filled_in_as_they_are_now() {
    for era in ["legacy", "modern"] {
        let stage = Stage::free();
        let mut hand = Hand::of(era, &stage.server, json!({})).await;
        let none = hand.ask("prompts/list", json!({})).await;
        assert_eq!(none["result"]["prompts"], json!([]));
        save(
            &stage,
            "review.md",
            "---\ndescription: Reviews a file\narguments:\n  - file: Which\n  - style?\n---\nReview \
             {{file}}.",
        );
        save(&stage, "broken.md", "---\nno end");
        let listed = hand.ask("prompts/list", json!({})).await;
        let listed = &listed["result"];
        assert_eq!(
            listed["prompts"],
            json!([{
                "name": "review",
                "description": "Reviews a file",
                "arguments": [
                    { "name": "file", "description": "Which", "required": true },
                    { "name": "style", "required": false },
                ],
            }])
        );
        assert_eq!(listed["cacheScope"] == "private", era == "modern");
        let params = json!({ "name": "review", "arguments": { "file": "a.rs" } });
        let got = hand.ask("prompts/get", params).await;
        let got = &got["result"];
        assert_eq!(got["description"], "Reviews a file");
        assert_eq!(
            got["messages"],
            json!([{ "role": "user", "content": { "type": "text", "text": "Review a.rs." } }])
        );
    }
}

#[tokio::test]
async fn prompts_that_cannot_be_had_are_errors_that_say_why() {
    let stage = Stage::free();
    save(&stage, "review.md", "Review {{file}}.");
    let mut hand = Hand::modern(&stage.server, json!({}));
    for (params, told) in [
        (json!({}), "no prompt is named"),
        (json!({ "name": "other" }), "there is no prompt `other`"),
        (json!({ "name": "../../etc/passwd" }), "there is no prompt"),
        (json!({ "name": "review" }), "needs its argument `file`"),
        (
            json!({ "name": "review", "arguments": { "file": "a", "b": "c" } }),
            "has no argument `b`",
        ),
        (
            json!({ "name": "review", "arguments": { "file": 1 } }),
            "are no texts",
        ),
    ] {
        let answer = hand.ask("prompts/get", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(told), "{message}");
    }
}
