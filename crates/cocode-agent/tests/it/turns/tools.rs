//! What models do with tools of the workspace.

use cocode_agent::{Arguments, Ending, Notice, Stop};
use serde_json::json;

use super::{begin, say, words};
use crate::puppet::{Friend, Scene, call, said};

#[tokio::test]
async fn a_model_reads_edits_and_runs_in_several_steps() {
    let scene = Scene::new();
    scene.write("greeting.txt", "hello world\n");
    scene
        .puppet
        .calls(&[("1", "read", json!({"path": "greeting.txt"}))])
        .calls(&[(
            "2",
            "edit",
            json!({"path": "greeting.txt", "old_string": "world", "new_string": "moon"}),
        )])
        .calls(&[(
            "3",
            "shell",
            json!({"command": "cat greeting.txt; echo to stderr >&2"}),
        )])
        .says("Done.");
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "Change it.").await;
    assert_eq!((end.ending, end.steps), (Ending::Done, 4));
    let seen = scene.puppet.seen();
    assert!(
        seen[1].results()[0].contains("hello world"),
        "{:?}",
        seen[1].results()
    );
    let shown = &seen[3].results()[0];
    assert!(
        shown.contains("hello moon") && shown.contains("to stderr"),
        "{shown}"
    );
    for tool in ["read", "list", "find", "grep", "edit", "write", "shell"] {
        assert!(seen[0].tools.iter().any(|name| name == tool), "{tool}");
    }
}

#[tokio::test]
async fn what_only_reads_is_done_side_by_side_and_told_in_order() {
    let scene = Scene::new();
    for name in ["a", "b", "c"] {
        scene.write(name, &format!("this is {name}"));
    }
    let read = |id: &'static str, path| (id, "read", json!({"path": path}));
    scene
        .puppet
        .calls(&[read("1", "a"), read("2", "b"), read("3", "c")])
        .says("Done.");
    let mut conversation = begin(&scene).await;
    let friend = Friend::answering([]);
    conversation
        .turn(words("go"), &friend.company())
        .await
        .unwrap();
    let results = scene.puppet.seen()[1].results();
    for (result, name) in results.iter().zip(["a", "b", "c"]) {
        assert!(result.contains(&format!("this is {name}")), "{results:?}");
    }
    // All have begun before the first has ended.
    let notices = friend.notices.lock().unwrap();
    let is_begun = |notice: &Notice| matches!(notice, Notice::CallBegun(_));
    let first_end = notices
        .iter()
        .position(|notice| matches!(notice, Notice::CallEnded { .. }))
        .unwrap();
    let begun = notices[..first_end]
        .iter()
        .filter(|notice| is_begun(notice));
    assert_eq!(begun.count(), 3);
}

#[tokio::test]
async fn mistakes_of_the_model_are_told_to_it_and_harm_nothing() {
    let scene = Scene::new();
    scene.puppet.then(|_, _| {
        let content = vec![
            call(
                "1",
                "read",
                Arguments::Malformed("{\"path\": \"a".to_owned()),
            ),
            call("2", "reed", Arguments::Json(json!({}))),
            call("3", "read", Arguments::Json(json!({"file": "a"}))),
            call("4", "read", Arguments::Json(json!("a"))),
            call(
                "5",
                "read",
                Arguments::Json(json!({"path": "../../etc/passwd"})),
            ),
        ];
        Ok(said(content, Stop::ToolCalls))
    });
    scene.puppet.says("Sorry.");
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "go").await;
    assert_eq!(end.ending, Ending::Done);
    let results = scene.puppet.seen()[1].results();
    let expected = ["no JSON", "no tool `reed`", "file", "object", ".."];
    assert_eq!(results.len(), expected.len());
    for (result, part) in results.iter().zip(expected) {
        assert!(result.contains(part), "{part}: {result}");
    }
}

#[tokio::test]
async fn notes_of_the_project_are_read_once_a_turn() {
    let scene = Scene::new();
    scene.write("AGENTS.md", "old notes");
    let change = json!({"path": "AGENTS.md", "content": "new notes"});
    scene
        .puppet
        .calls(&[("1", "write", change)])
        .says("Changed.")
        .says("Seen.");
    let mut conversation = begin(&scene).await;
    say(&mut conversation, "Change the notes.").await;
    let written = std::fs::read_to_string(scene.work().join("AGENTS.md")).unwrap();
    assert_eq!(written, "new notes");
    say(&mut conversation, "What do they say?").await;
    let [first, second, next] = &scene.puppet.seen()[..] else {
        panic!("asked {} times", scene.puppet.seen().len());
    };
    assert!(first.system.contains("old notes"), "{}", first.system);
    assert_eq!(first.system, second.system);
    assert!(next.system.contains("new notes"), "{}", next.system);
}
