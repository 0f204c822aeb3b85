//! Turns that are interrupted, politely or not.

use std::time::Duration;

use cocode_agent::{AgentError, Block, Ending, Notice, Record, Store as _, StoreError};
use serde_json::json;

use super::{begin, say, words};
use crate::puppet::{Friend, Scene};

#[tokio::test]
async fn what_the_model_had_said_is_kept() {
    let scene = Scene::new();
    let mut conversation = begin(&scene).await;
    let friend = Friend::interrupting(|notice| matches!(notice, Notice::Text(_)));
    let end = conversation
        .turn(words("go"), &friend.company())
        .await
        .unwrap();
    assert_eq!(end.ending, Ending::Interrupted);
    scene.puppet.says("Again, then.");
    say(&mut conversation, "go on").await;
    let messages = scene.puppet.seen()[1].messages.clone();
    let said = cocode_agent::text_of(&messages[1].content);
    assert!(
        said.starts_with("I am think") && said.contains("interrupted"),
        "{said}"
    );
}

#[tokio::test]
async fn a_command_is_ended_with_all_that_it_started() {
    let scene = Scene::new();
    let pid = scene.work().join("pid");
    let command = "sleep 600 & echo $! > pid; wait";
    scene.puppet.calls(&[
        ("1", "shell", json!({ "command": command })),
        ("2", "shell", json!({ "command": "touch never" })),
    ]);
    let mut conversation = begin(&scene).await;
    let friend = Friend::answering([]);
    let company = friend.company();
    let turn = conversation.turn(words("go"), &company);
    let interrupting = async {
        while std::fs::read_to_string(&pid)
            .unwrap_or_default()
            .trim()
            .is_empty()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        friend.interrupt.cancel();
    };
    let (end, ()) = tokio::join!(turn, interrupting);
    assert_eq!(end.unwrap().ending, Ending::Interrupted);
    let pid = std::fs::read_to_string(&pid).unwrap();
    let process = format!("/proc/{}", pid.trim());
    while std::path::Path::new(&process).exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!scene.work().join("never").exists());
    scene.puppet.says("Fine.");
    say(&mut conversation, "and now?").await;
    let results = scene.puppet.seen()[1].results();
    assert!(
        results[0].contains("Interrupted by the user"),
        "{results:?}"
    );
    assert!(results[1].contains("Not begun"), "{results:?}");
}

#[tokio::test]
async fn a_turn_that_is_lost_leaves_a_conversation_that_can_go_on() {
    let scene = Scene::new();
    scene
        .puppet
        .calls(&[("1", "shell", json!({"command": "sleep 600"}))]);
    let mut conversation = begin(&scene).await;
    let id = conversation.id().clone();
    let friend = Friend::answering([]);
    let company = friend.company();
    {
        let turn = conversation.turn(words("go"), &company);
        let begun = async {
            loop {
                let notices = friend.notices.lock().unwrap().clone();
                if notices
                    .iter()
                    .any(|notice| matches!(notice, Notice::CallBegun(_)))
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = turn => panic!("the turn cannot end"),
            () = begun => {}
        }
    }
    drop(conversation);
    let mut resumed = scene.agent.resume(&id, None).await.unwrap();
    scene.puppet.says("I see.");
    let end = say(&mut resumed, "what happened?").await;
    assert_eq!(end.ending, Ending::Done);
    let seen = scene.puppet.seen()[1].clone();
    assert!(
        seen.results()[0].contains("may or may not"),
        "{:?}",
        seen.results()
    );
    let stored = scene.store.load(&id).await.unwrap();
    let ended = stored.records.iter().filter(|(_, record)| {
        matches!(
            record,
            Record::Ended {
                how: Ending::Interrupted
            }
        )
    });
    assert_eq!(ended.count(), 1);
}

#[tokio::test]
async fn nobody_goes_on_with_what_is_anothers_finished_or_held() {
    let scene = Scene::new();
    let conversation = begin(&scene).await;
    let id = conversation.id().clone();
    let foreign = scene.agent.resume(&id, Some("bob")).await.unwrap_err();
    assert!(
        matches!(foreign, AgentError::Store(StoreError::Unknown(_))),
        "{foreign}"
    );
    let held = scene.agent.resume(&id, Some("ann")).await.unwrap_err();
    assert!(held.to_string().contains("in use"), "{held}");
    conversation.close().await.unwrap();
    let closed = scene.agent.resume(&id, Some("ann")).await.unwrap_err();
    assert!(matches!(closed, AgentError::Closed(_)), "{closed}");
    let unknown = "0f8fad5b-d9cb-469f-a165-70867728950e".parse().unwrap();
    let unknown = scene.agent.resume(&unknown, None).await.unwrap_err();
    assert!(unknown.to_string().contains("no conversation"), "{unknown}");
}

#[tokio::test]
async fn a_draft_is_what_the_model_said_when_the_process_died() {
    let scene = Scene::new();
    let conversation = begin(&scene).await;
    let id = conversation.id().clone();
    drop(conversation);
    {
        let lease = scene.store.lease(&id).await.unwrap();
        let content = words("go");
        scene
            .store
            .append(&lease, &Record::Asked { content })
            .await
            .unwrap();
        scene
            .store
            .draft(&lease, &[Block::text("Half a")])
            .await
            .unwrap();
    }
    let mut resumed = scene.agent.resume(&id, None).await.unwrap();
    scene.puppet.says("Whole.");
    say(&mut resumed, "go on").await;
    let said = cocode_agent::text_of(&scene.puppet.seen()[0].messages[1].content);
    assert!(said.starts_with("Half a"), "{said}");
}
