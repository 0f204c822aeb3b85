//! Temporary files of conversations.

use cocode_core::{ApprovalPolicy as Policy, SandboxMode as Mode};
use serde_json::json;

use super::words;
use crate::puppet::{Friend, Scene};

#[tokio::test]
async fn temporary_files_last_as_long_as_the_conversation() {
    let scene = Scene::new();
    let company = Friend::answering([]).company();
    let all = scene.work().join("../state/tmp/conversations");
    let settings = scene.settings(Policy::Never, Mode::ReadOnly);
    let begun = scene.agent.begin("ann", settings, &words("go")).await;
    let mut conversation = begun.unwrap();
    // It is empty at the change of settings, and not afterwards.
    for (command, mode) in [
        ("echo a >$TMPDIR/a && rm $TMPDIR/a", Mode::WorkspaceWrite),
        ("echo a >$TMPDIR/a", Mode::ReadOnly),
        ("cat $TMPDIR/a && ! touch ../state/x", Mode::WorkspaceWrite),
    ] {
        let call = json!({ "command": command });
        scene.puppet.calls(&[("1", "shell", call)]).says("Done.");
        conversation.turn(words("go"), &company).await.unwrap();
        let result = scene
            .puppet
            .seen()
            .last()
            .unwrap()
            .results()
            .last()
            .unwrap()
            .clone();
        assert!(result.contains("[exit code 0]"), "{command}: {result}");
        let settings = scene.settings(Policy::Never, mode);
        conversation.change(settings).await.unwrap();
    }
    assert_eq!(std::fs::read_dir(&all).unwrap().count(), 1);
    conversation.close().await.unwrap();
    assert_eq!(std::fs::read_dir(&all).unwrap().count(), 0);
}
