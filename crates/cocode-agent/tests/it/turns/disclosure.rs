//! Calls of remote servers after a conversation may have read data outside of its workspace.

use std::sync::Arc;

use cocode_agent::{ApprovalAnswer, Rules, Ruling};
use cocode_client::{Manager, ManagerOptions, ServerSpec};
use cocode_core::{ApprovalPolicy as Policy, Hints, Ruled, SandboxMode as Mode, ToolRef, Verdict};
use cocode_testkit::{HttpServer, Script};
use serde_json::{Value, json};

use super::{say, words};
use crate::puppet::{Friend, Scene};

/// Allows everything, by a rule that names the tool or does not.
struct Allow {
    is_named: bool,
}

impl Rules for Allow {
    fn ruling(&self, _tool: ToolRef<'_>, _hints: Hints) -> Ruling {
        Ruling {
            ruled: Ruled::By(Verdict::Allow),
            is_named: self.is_named,
            why: String::new(),
        }
    }

    fn can_remember(&self, _tool: ToolRef<'_>) -> bool {
        false
    }

    fn remember(&self, _tool: ToolRef<'_>) -> Result<(), String> {
        Err("nowhere".to_owned())
    }
}

/// A server with one tool that says it only reads.
fn reader() -> Script {
    let tool = json!({
        "name": "look",
        "inputSchema": { "type": "object" },
        "annotations": { "readOnlyHint": true },
    });
    let called = json!({ "content": [{ "type": "text", "text": "seen" }] });
    Script::new()
        .on("tools/list")
        .result(json!({ "tools": [tool] }).to_string())
        .on("tools/call")
        .result(called.to_string())
}

struct Remote {
    _server: HttpServer,
    manager: Manager,
}

impl Remote {
    async fn new(change: impl FnOnce(&mut ServerSpec)) -> Self {
        let server = reader().http();
        let mut spec = ServerSpec::remote("web".parse().unwrap(), server.url());
        change(&mut spec);
        let manager = Manager::new(ManagerOptions::default());
        manager.apply([spec]).await;
        manager.wait_for_startup().await;
        Self {
            _server: server,
            manager,
        }
    }
}

fn look() -> (&'static str, Value) {
    ("mcp__web__look", json!({}))
}

fn shell() -> (&'static str, Value) {
    ("shell", json!({ "command": "true" }))
}

/// The result of the last of these calls, where nobody is asked.
async fn last_result(scene: &Scene, calls: &[(&str, Value)]) -> String {
    for (number, (tool, arguments)) in calls.iter().enumerate() {
        scene
            .puppet
            .calls(&[(&number.to_string(), tool, arguments.clone())]);
    }
    scene.puppet.says("Done.");
    let settings = scene.settings(Policy::Never, Mode::WorkspaceWrite);
    let begun = scene.agent.begin("ann", settings, &words("go")).await;
    say(&mut begun.unwrap(), "go").await;
    let seen = scene.puppet.seen();
    seen.last().unwrap().results()[0].clone()
}

#[tokio::test]
async fn a_remote_server_is_called_freely_until_a_command_has_run() {
    let remote = Remote::new(|_| {}).await;
    let scene = || Scene::with(Some(remote.manager.clone()), |_| {});
    let list = ("list", json!({}));
    let result = last_result(&scene(), &[list, look()]).await;
    assert_eq!(result, "seen");
    let result = last_result(&scene(), &[shell(), look()]).await;
    assert!(result.contains("outside of its workspace"), "{result}");
    assert!(result.contains("trust_annotations"), "{result}");
    remote.manager.shutdown().await;
}

#[tokio::test]
async fn a_trusted_server_is_called_freely_after_a_command() {
    let remote = Remote::new(|spec| spec.trust_annotations = true).await;
    let scene = Scene::with(Some(remote.manager.clone()), |_| {});
    assert_eq!(last_result(&scene, &[shell(), look()]).await, "seen");
    remote.manager.shutdown().await;
}

#[tokio::test]
async fn only_an_allow_rule_that_names_the_tool_permits_disclosure() {
    let remote = Remote::new(|_| {}).await;
    for is_named in [true, false] {
        let scene = Scene::with(Some(remote.manager.clone()), |options| {
            options.rules = Arc::new(Allow { is_named });
        });
        let result = last_result(&scene, &[shell(), look()]).await;
        assert_eq!(result == "seen", is_named, "{result}");
    }
    remote.manager.shutdown().await;
}

#[tokio::test]
async fn a_local_server_counts_as_a_reader_and_is_not_asked_about() {
    let local = reader().stdio();
    let program = local.program().display().to_string();
    let local_spec = ServerSpec::program("disk".parse().unwrap(), program, local.args().to_vec());
    let server = reader().http();
    let spec = ServerSpec::remote("web".parse().unwrap(), server.url());
    let manager = Manager::new(ManagerOptions::default());
    manager.apply([spec, local_spec]).await;
    manager.wait_for_startup().await;
    let disk = || ("mcp__disk__look", json!({}));
    let scene = Scene::with(Some(manager.clone()), |_| {});
    assert_eq!(last_result(&scene, &[shell(), disk()]).await, "seen");
    let scene = Scene::with(Some(manager.clone()), |_| {});
    let result = last_result(&scene, &[disk(), look()]).await;
    assert!(result.contains("outside of its workspace"), "{result}");
    manager.shutdown().await;
}

#[tokio::test]
async fn a_resumed_conversation_knows_what_it_has_read() {
    let remote = Remote::new(|_| {}).await;
    let scene = Scene::with(Some(remote.manager.clone()), |_| {});
    let (tool, arguments) = shell();
    scene.puppet.calls(&[("1", tool, arguments)]).says("Done.");
    let settings = scene.settings(Policy::OnRequest, Mode::DangerFullAccess);
    let begun = scene.agent.begin("ann", settings, &words("go")).await;
    let mut conversation = begun.unwrap();
    say(&mut conversation, "go").await;
    let id = conversation.id().clone();
    drop(conversation);
    let mut resumed = scene.agent.resume(&id, Some("ann")).await.unwrap();
    let look = || ("mcp__web__look", json!({ "query": "secret" }));
    for number in ["2", "3", "4"] {
        let (tool, arguments) = look();
        scene.puppet.calls(&[(number, tool, arguments)]);
    }
    scene.puppet.says("Done.");
    let friend = Friend::answering([ApprovalAnswer::Once, ApprovalAnswer::Always]);
    resumed
        .turn(words("go on"), &friend.company())
        .await
        .unwrap();
    let asked = friend.questions.lock().unwrap().clone();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[0].why.contains("outside of its workspace"));
    assert_eq!(asked[0].summary, "mcp__web__look");
    assert_eq!(asked[0].arguments, json!({ "query": "secret" }));
    remote.manager.shutdown().await;
}

#[tokio::test]
async fn always_from_before_a_command_does_not_cover_disclosure() {
    let server = Script::new().http();
    let spec = ServerSpec::remote("web".parse().unwrap(), server.url());
    let manager = Manager::new(ManagerOptions::default());
    manager.apply([spec]).await;
    manager.wait_for_startup().await;
    let scene = Scene::with(Some(manager.clone()), |_| {});
    let echo = || ("mcp__web__echo", json!({ "text": "hello" }));
    let calls = [echo(), echo(), shell(), echo()];
    for (number, (tool, arguments)) in calls.into_iter().enumerate() {
        scene
            .puppet
            .calls(&[(&number.to_string(), tool, arguments)]);
    }
    scene.puppet.says("Done.");
    let settings = scene.settings(Policy::OnRequest, Mode::WorkspaceWrite);
    let begun = scene.agent.begin("ann", settings, &words("go")).await;
    let friend = Friend::answering([ApprovalAnswer::Always, ApprovalAnswer::Refused(None)]);
    let mut conversation = begun.unwrap();
    conversation
        .turn(words("go"), &friend.company())
        .await
        .unwrap();
    let asked = friend.questions.lock().unwrap().len();
    assert_eq!(asked, 2);
    manager.shutdown().await;
}
