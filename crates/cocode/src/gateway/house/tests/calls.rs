//! Calls, resources, prompts and logs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cocode_admin::model::{CallProgress, CallWish, LogStream, PromptWish};
use cocode_admin::{CallListener, CallNews, Caller, House as _, RefusalStatus};
use cocode_client::RawJson;
use cocode_testkit::Script;
use serde_json::{Value, json};

use super::stage::{Files, ana, entry, play};

fn wish(tool: &str, arguments: Option<Value>) -> CallWish {
    CallWish {
        tool: tool.to_owned(),
        arguments: arguments.map(|arguments| RawJson::of(&arguments).unwrap()),
        timeout_seconds: None,
    }
}

fn value(raw: &RawJson) -> Value {
    raw.decode().unwrap()
}

#[tokio::test]
async fn a_call_gives_the_result_and_tells_what_happens_meanwhile() {
    let log = json!({ "level": "info", "logger": "disk", "data": "half full" });
    let script = Script::dual()
        .on("tools/call")
        .nth(1)
        .notify("notifications/message", log)
        .progress(1, 2)
        .text_result("done");
    let files = Files::with(&entry("good", &script, ""));
    play(files, async |stage| {
        let heard: Arc<Mutex<Vec<CallNews>>> = Arc::default();
        let hears = Arc::clone(&heard);
        let listener = CallListener::new(move |news| hears.lock().unwrap().push(news));
        let wished = wish("echo", Some(json!({})));
        let result = stage
            .house
            .call(ana(), "good", wished, listener)
            .await
            .unwrap();
        assert_eq!(value(&result)["content"][0]["text"], "done");
        let heard = std::mem::take(&mut *heard.lock().unwrap());
        let progress = CallProgress {
            progress: 1.0,
            total: Some(2.0),
            message: None,
        };
        assert!(heard.contains(&CallNews::Progress(progress)), "{heard:?}");
        let is_logged = heard.iter().any(|news| match news {
            CallNews::Log(line) => {
                line.text == "disk: half full" && line.level.as_deref() == Some("info")
            }
            CallNews::Progress(_) => false,
        });
        assert!(is_logged, "{heard:?}");
        // Arguments arrive as they were given, and none are an empty object.
        for (given, expected) in [
            (Some(json!({ "a": 1.50 })), json!({ "a": 1.5 })),
            (None, json!({})),
        ] {
            let wished = wish("echo", given);
            let result = stage
                .house
                .call(ana(), "good", wished, CallListener::deaf())
                .await;
            assert_eq!(value(&result.unwrap())["structuredContent"], expected);
        }
    })
    .await;
}

#[tokio::test]
async fn calls_that_cannot_be_made_say_why() {
    let failing = Script::new()
        .on("tools/call")
        .nth(1)
        .result(json!({ "content": [], "isError": true }))
        .on("tools/call")
        .nth(2)
        .error(-32603, "the disk is on fire")
        .on("tools/call")
        .ignore();
    let files = Files::with(
        &[
            entry("good", &failing, ""),
            "[mcp_servers.missing]\ncommand = '/nonexistent/server'\n".to_owned(),
            entry("strict", &Script::new(), ""),
        ]
        .concat(),
    );
    files.user(
        "config.toml",
        "[permissions]\ndeny = ['mcp__strict__echo']\n",
    );
    play(files, async |stage| {
        let call = async |server: &str, wished: CallWish| {
            stage
                .house
                .call(ana(), server, wished, CallListener::deaf())
                .await
        };
        stage.connected("good").await;
        stage.connected("strict").await;
        let failed = call("good", wish("echo", None)).await.unwrap();
        assert_eq!(value(&failed)["isError"], true);
        let refused = call("good", wish("echo", None)).await.unwrap_err();
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (RefusalStatus::ServerFailed, "server-error")
        );
        assert!(
            refused.message.contains("the disk is on fire"),
            "{refused:?}"
        );
        let hurried = CallWish {
            timeout_seconds: Some(1.into()),
            ..wish("echo", None)
        };
        let refused = call("good", hurried).await.unwrap_err();
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (RefusalStatus::ServerFailed, "request-timeout")
        );
        let refused = call("good", wish("ecko", None)).await.unwrap_err();
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (RefusalStatus::Unknown, "unknown-tool")
        );
        assert_eq!(refused.hints, ["did you mean `echo`?"]);
        let refused = call("strict", wish("echo", None)).await.unwrap_err();
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (RefusalStatus::Forbidden, "permission-denied")
        );
        let refused = call("missing", wish("echo", None)).await.unwrap_err();
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (RefusalStatus::ServerFailed, "spawn-failed")
        );
        let refused = call("none", wish("echo", None)).await.unwrap_err();
        assert_eq!(refused.status, RefusalStatus::Unknown);
    })
    .await;
}

#[tokio::test]
async fn those_who_look_after_a_gateway_are_held_to_its_limits() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    files.user("config.toml", "[gateway.limits]\ncalls_per_minute = 1\n");
    play(files, async |stage| {
        stage.connected("good").await;
        let call = async || {
            let wished = wish("echo", None);
            let call = stage
                .house
                .call(ana(), "good", wished, CallListener::deaf());
            call.await
        };
        call().await.unwrap();
        let refused = call().await.unwrap_err();
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (RefusalStatus::TooMany, "limit-reached")
        );
        let wait = refused.retry_after.unwrap();
        assert!(wait.as_secs() > 0 && wait.as_secs() <= 60, "{wait:?}");
        // A tool that is none counts as much.
        let wished = wish("ecko", None);
        let call = stage
            .house
            .call(ana(), "good", wished, CallListener::deaf());
        assert_eq!(call.await.unwrap_err().status, RefusalStatus::TooMany);
        let told = stage.get("/api/v1/calls").await;
        let told: Vec<_> = told["calls"].as_array().unwrap().iter().collect();
        let states: Vec<_> = told.iter().map(|call| call["state"].clone()).collect();
        assert_eq!(states, ["denied", "denied", "ok"]);
        let why = told[0]["error"].as_str().unwrap();
        assert!(why.contains("1 call per minute"), "{why}");
        assert!(
            told.iter().all(|call| call["principal"] == "ana"),
            "{told:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn calls_are_written_down_as_those_of_who_makes_them() {
    let files = Files::with(&entry("good", &Script::new(), ""));
    files.user(
        "config.toml",
        "[gateway.audit]\nenabled = true\n\
         [permissions]\ndeny = ['mcp__good__secret']\n\
         [gateway.principals.bob]\ncalls_per_minute = 1\n",
    );
    play(files, async |stage| {
        stage.connected("good").await;
        let bob = Caller {
            name: "bob".into(),
            ..ana().clone()
        };
        let call = async |by: &Caller, tool: &str| {
            let wished = wish(tool, None);
            let call = stage.house.call(by, "good", wished, CallListener::deaf());
            call.await.map_err(|refusal| refusal.status)
        };
        call(ana(), "echo").await.unwrap();
        assert_eq!(
            call(ana(), "ecko").await.unwrap_err(),
            RefusalStatus::Unknown
        );
        call(&bob, "echo").await.unwrap();
        assert_eq!(
            call(&bob, "echo").await.unwrap_err(),
            RefusalStatus::TooMany
        );
        // The limits of one are not those of another.
        call(ana(), "echo").await.unwrap();
        let entries = stage.house.audit(5).await.unwrap();
        let told: Vec<_> = entries
            .iter()
            .map(|entry| {
                let entry = value(entry);
                ["principal", "name", "outcome"].map(|key| entry[key].as_str().unwrap().to_owned())
            })
            .collect();
        assert_eq!(
            told,
            [
                ["ana", "echo", "ok"],
                ["bob", "echo", "limited"],
                ["bob", "echo", "ok"],
                ["ana", "ecko", "error"],
                ["ana", "echo", "ok"],
            ]
        );
    })
    .await;
}

#[tokio::test]
async fn resources_are_read_and_prompts_are_got() {
    let prompt = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "$params" } }] });
    let script = Script::new().on("prompts/get").nth(1).result(prompt);
    let files = Files::with(&entry("good", &script, ""));
    play(files, async |stage| {
        let read = stage
            .house
            .read(ana(), "good", "scripted://hello".to_owned())
            .await;
        assert_eq!(value(&read.unwrap())["contents"][0]["text"], "hello");
        let refused = stage
            .house
            .read(ana(), "good", "scripted://none".to_owned())
            .await;
        assert_eq!(refused.unwrap_err().status, RefusalStatus::ServerFailed);
        let arguments = BTreeMap::from([("who".to_owned(), "Ada".to_owned())]);
        let wished = |name: &str| PromptWish {
            name: name.to_owned(),
            arguments: Some(arguments.clone()),
        };
        let got = stage
            .house
            .prompt(ana(), "good", wished("greet"))
            .await
            .unwrap();
        let params = &value(&got)["messages"][0]["content"]["text"];
        assert_eq!(params["name"], "greet");
        assert_eq!(params["arguments"]["who"], "Ada");
        let refused = stage.house.prompt(ana(), "good", wished("none")).await;
        assert_eq!(refused.unwrap_err().status, RefusalStatus::ServerFailed);
        for refused in [
            stage.house.read(ana(), "none", String::new()).await,
            stage.house.prompt(ana(), "none", wished("greet")).await,
        ] {
            assert_eq!(refused.unwrap_err().status, RefusalStatus::Unknown);
        }
    })
    .await;
}

#[tokio::test]
async fn logs_tell_what_servers_wrote_and_what_became_of_them() {
    let files = Files::with(
        "[mcp_servers.exits]\ncommand = 'sh'\nargs = ['-c', 'echo oh dear >&2; exit 3']\n\
         [mcp_servers.off]\ncommand = 'true'\nenabled = false\n",
    );
    play(files, async |stage| {
        stage
            .server_in("exits", cocode_admin::model::ServerState::Failed)
            .await;
        let lines = loop {
            let lines = stage.house.logs("exits", 100).await.unwrap();
            // They are written by a thread, a moment later.
            if lines.iter().any(|line| line.stream == LogStream::State) {
                break lines;
            }
            tokio::task::yield_now().await;
        };
        let wrote = lines.iter().find(|line| line.stream == LogStream::Stderr);
        assert_eq!(wrote.unwrap().text, "oh dear");
        let one = stage.house.logs("exits", 1).await.unwrap();
        assert_eq!(one.len(), 1);
        assert_eq!(stage.house.logs("off", 10).await.unwrap(), []);
        let unknown = stage.house.logs("none", 10).await.unwrap_err();
        assert_eq!(unknown.status, RefusalStatus::Unknown);
    })
    .await;
}
