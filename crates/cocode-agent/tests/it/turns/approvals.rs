//! Who is asked before what.

use cocode_agent::{ApprovalAnswer, Company, Ending, NoApprover, NoListener};
use cocode_core::{ApprovalPolicy as Policy, SandboxMode as Mode};
use serde_json::json;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use super::words;
use crate::puppet::{Friend, Scene};

/// One call under these settings, with these answers. Gives what was asked, and what came of it.
async fn once(
    policy: Policy,
    mode: Mode,
    tool: (&str, serde_json::Value),
    answers: &[ApprovalAnswer],
) -> (Vec<String>, String, Ending) {
    let scene = Scene::new();
    let (name, arguments) = tool;
    scene.puppet.calls(&[("1", name, arguments)]).says("Done.");
    let settings = scene.settings(policy, mode);
    let begun = scene.agent.begin("ann", settings, &words("go")).await;
    let friend = Friend::answering(answers.iter().cloned());
    let mut conversation = begun.unwrap();
    let turn = conversation.turn(words("go"), &friend.company()).await;
    let asked = friend.questions.lock().unwrap();
    let asked = asked.iter().map(|question| question.summary.clone());
    let result = scene
        .puppet
        .seen()
        .get(1)
        .map(|seen| seen.results()[0].clone());
    (
        asked.collect(),
        result.unwrap_or_default(),
        turn.unwrap().ending,
    )
}

fn write() -> (&'static str, serde_json::Value) {
    ("write", json!({"path": "new.txt", "content": "x"}))
}

#[tokio::test]
async fn nobody_is_asked_about_reading() {
    let list = ("list", json!({}));
    let (asked, _, ending) = once(Policy::Untrusted, Mode::ReadOnly, list, &[]).await;
    assert_eq!((asked, ending), (vec![], Ending::Done));
}

#[tokio::test]
async fn who_says_yes_lets_it_happen() {
    let yes = [ApprovalAnswer::Once];
    let (asked, result, _) = once(Policy::Untrusted, Mode::WorkspaceWrite, write(), &yes).await;
    assert_eq!(asked, ["write: new.txt"]);
    assert!(!result.contains("Not called"), "{result}");
}

#[tokio::test]
async fn who_says_no_is_quoted_to_the_model() {
    let no = [ApprovalAnswer::Refused(Some(
        "not in this directory".to_owned(),
    ))];
    let (_, result, ending) = once(Policy::OnRequest, Mode::ReadOnly, write(), &no).await;
    assert!(result.contains("not in this directory"), "{result}");
    assert_eq!(ending, Ending::Done);
}

#[tokio::test]
async fn who_stops_ends_the_turn() {
    let stop = [ApprovalAnswer::Stopped];
    let (_, _, ending) = once(Policy::OnRequest, Mode::ReadOnly, write(), &stop).await;
    assert_eq!(ending, Ending::Interrupted);
}

#[tokio::test]
async fn where_nobody_is_asked_what_is_not_allowed_is_refused() {
    let (asked, result, _) = once(Policy::Never, Mode::ReadOnly, write(), &[]).await;
    assert!(asked.is_empty() && result.contains("read-only"), "{result}");
}

#[tokio::test]
async fn who_says_always_is_not_asked_again_in_this_conversation() {
    let scene = Scene::new();
    let command = json!({"command": "echo hi"});
    scene
        .puppet
        .calls(&[("1", "shell", command.clone())])
        .calls(&[("2", "shell", command)])
        .calls(&[("3", "shell", json!({"command": "echo other"}))])
        .says("Done.");
    let settings = scene.settings(Policy::Untrusted, Mode::DangerFullAccess);
    let begun = scene.agent.begin("ann", settings, &words("go")).await;
    let friend = Friend::answering([ApprovalAnswer::Always, ApprovalAnswer::Once]);
    let mut conversation = begun.unwrap();
    conversation
        .turn(words("go"), &friend.company())
        .await
        .unwrap();
    let asked = friend.questions.lock().unwrap();
    let asked: Vec<&str> = asked
        .iter()
        .map(|question| question.summary.as_str())
        .collect();
    assert_eq!(asked, ["shell: echo hi", "shell: echo other"]);
}

#[tokio::test]
async fn where_nobody_is_there_the_model_is_told() {
    let scene = Scene::new();
    let (name, arguments) = write();
    scene.puppet.calls(&[("1", name, arguments)]).says("Done.");
    let settings = scene.settings(Policy::OnRequest, Mode::ReadOnly);
    let mut conversation = scene
        .agent
        .begin("ann", settings, &words("go"))
        .await
        .unwrap();
    let alone = Company {
        listener: Arc::new(NoListener),
        approver: Arc::new(NoApprover),
        sampler: None,
        interrupt: CancellationToken::new(),
    };
    conversation.turn(words("go"), &alone).await.unwrap();
    let result = scene.puppet.seen()[1].results()[0].clone();
    assert!(result.contains("nobody can be asked"), "{result}");
    assert!(!scene.work().join("new.txt").exists());
}

#[tokio::test]
async fn the_sandbox_confines_commands_until_somebody_lets_them_out() {
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().join("made");
    let command = format!("touch {}", file.display());
    let confined = ("shell", json!({ "command": command }));
    let (asked, result, _) = once(Policy::OnRequest, Mode::WorkspaceWrite, confined, &[]).await;
    assert!(asked.is_empty() && !file.exists(), "{asked:?} {result}");
    assert!(result.contains("sandbox may have denied"), "{result}");

    let asks = json!({"command": command, "unconfined": true, "justification": "to make it"});
    let refused = [ApprovalAnswer::Refused(None)];
    let leaves = ("shell", asks);
    let (asked, _, _) = once(
        Policy::OnRequest,
        Mode::WorkspaceWrite,
        leaves.clone(),
        &refused,
    )
    .await;
    assert!(asked.len() == 1 && !file.exists(), "{asked:?}");
    let yes = [ApprovalAnswer::Once];
    once(
        Policy::OnRequest,
        Mode::WorkspaceWrite,
        leaves.clone(),
        &yes,
    )
    .await;
    assert!(file.exists());
    std::fs::remove_file(&file).unwrap();
    // Where nobody is asked, nobody gets out.
    once(Policy::Never, Mode::WorkspaceWrite, leaves, &[]).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn what_failed_in_the_sandbox_is_asked_about_if_the_policy_says_so() {
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().join("made");
    let command = (
        "shell",
        json!({"command": format!("touch {}", file.display())}),
    );
    let yes = [ApprovalAnswer::Once];
    let (asked, _, _) = once(Policy::OnFailure, Mode::WorkspaceWrite, command, &yes).await;
    assert!(asked.len() == 1 && file.exists(), "{asked:?}");
}
