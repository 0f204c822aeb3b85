//! Commands that change files which other programs execute.

use std::sync::Arc;

use cocode_agent::{ApprovalAnswer, Company, Ending, NoApprover, NoListener};
use cocode_core::{ApprovalPolicy as Policy, SandboxMode as Mode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::words;
use crate::puppet::{Friend, Scene};

/// A conversation in a repository, whose model runs a command that plants a hook.
async fn planting(policy: Policy, company: &Company) -> (Scene, String, Ending) {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.work().join(".git/hooks")).unwrap();
    scene.write(".git/config", "[core]\n");
    let command = json!({ "command": "echo evil | tee -a .git/config >.git/hooks/pre-commit" });
    scene.puppet.calls(&[("1", "shell", command)]).says("Done.");
    let settings = scene.settings(policy, Mode::WorkspaceWrite);
    let begun = scene.agent.begin("ann", settings, &words("go")).await;
    let ended = begun.unwrap().turn(words("go"), company).await.unwrap();
    let seen = scene.puppet.seen();
    let result = seen.get(1).map(|seen| seen.results()[0].clone());
    (scene, result.unwrap_or_default(), ended.ending)
}

fn is_planted(scene: &Scene) -> bool {
    let hook = scene.work().join(".git/hooks/pre-commit").exists();
    let config = std::fs::read_to_string(scene.work().join(".git/config")).unwrap();
    assert_eq!(hook, config.contains("evil"), "{config}");
    hook
}

#[tokio::test]
async fn a_person_decides_whether_changed_hooks_are_kept() {
    for (answer, is_kept) in [
        (ApprovalAnswer::Once, true),
        (ApprovalAnswer::Refused(None), false),
        (ApprovalAnswer::Stopped, false),
    ] {
        let friend = Friend::answering([answer.clone()]);
        let (scene, result, ending) = planting(Policy::OnRequest, &friend.company()).await;
        assert_eq!(is_planted(&scene), is_kept, "{answer:?}");
        let asked = friend.questions.lock().unwrap().clone();
        let paths = [".git/config", ".git/hooks/pre-commit"];
        assert_eq!(asked[0].changed_files, paths);
        assert!(asked[0].why.contains(".git/hooks/pre-commit"), "{asked:?}");
        assert!(!asked[0].can_remember && asked.len() == 1, "{asked:?}");
        if answer == ApprovalAnswer::Stopped {
            assert_eq!(ending, Ending::Interrupted);
        } else {
            assert_eq!(result.contains("undone"), !is_kept, "{result}");
        }
    }
}

#[tokio::test]
async fn changed_hooks_are_undone_where_nobody_is_asked() {
    let friend = Friend::answering([]);
    let alone = Company {
        listener: Arc::new(NoListener),
        approver: Arc::new(NoApprover),
        sampler: None,
        interrupt: CancellationToken::new(),
    };
    for (policy, company) in [
        (Policy::Never, friend.company()),
        (Policy::OnRequest, alone),
    ] {
        let (scene, result, _) = planting(policy, &company).await;
        assert!(!is_planted(&scene), "{policy}");
        for part in ["undone", ".git/config", ".git/hooks/pre-commit"] {
            assert!(result.contains(part), "{result}");
        }
    }
}

#[tokio::test]
async fn a_question_about_write_has_the_text_that_it_replaces() {
    let scene = Scene::new();
    scene.write("notes", "old\n");
    let write = |path: &str| json!({ "path": path, "content": "new\n" });
    scene
        .puppet
        .calls(&[("1", "write", write("notes"))])
        .calls(&[("2", "write", write("fresh"))])
        .says("Done.");
    let settings = scene.settings(Policy::Untrusted, Mode::WorkspaceWrite);
    let begun = scene.agent.begin("ann", settings, &words("go")).await;
    let friend = Friend::answering([ApprovalAnswer::Once, ApprovalAnswer::Once]);
    let mut conversation = begun.unwrap();
    conversation
        .turn(words("go"), &friend.company())
        .await
        .unwrap();
    let asked = friend.questions.lock().unwrap().clone();
    assert_eq!(asked[0].replaced_text.as_deref(), Some("old\n"));
    assert_eq!(asked[1].replaced_text, None);
}
