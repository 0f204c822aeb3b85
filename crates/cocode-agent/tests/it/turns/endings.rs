//! How turns end that do not end well.

use cocode_agent::{Block, Ending, Notice, ProviderError, Record, Stop, Store as _};
use serde_json::json;

use super::{begin, say, words};
use crate::puppet::{Friend, Scene, said};

#[tokio::test]
async fn a_refusal_ends_the_turn_and_is_not_shown_again() {
    let scene = Scene::new();
    scene.puppet.then(|_, _| {
        let why = Some("policy".to_owned());
        Ok(said(vec![Block::text("No.")], Stop::Refused(why)))
    });
    scene.puppet.says("Yes.");
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "something bad").await;
    assert_eq!(end.ending, Ending::Refused(Some("policy".to_owned())));
    say(&mut conversation, "something good").await;
    assert_eq!(scene.puppet.seen()[1].messages.len(), 1);
}

#[tokio::test]
async fn a_reply_that_was_cut_is_continued() {
    let scene = Scene::new();
    scene
        .puppet
        .then(|_, _| Ok(said(vec![Block::text("Half")], Stop::MaxTokens)));
    scene.puppet.says("and half.");
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "go").await;
    assert_eq!((end.ending, end.steps), (Ending::Done, 2));
}

#[tokio::test]
async fn a_model_that_loops_is_warned_and_then_stopped() {
    let scene = Scene::new();
    for _ in 0..20 {
        scene.puppet.calls(&[("1", "list", json!({}))]);
    }
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "go").await;
    assert_eq!((end.ending, end.steps), (Ending::Looping, 6));
    let seen = scene.puppet.seen();
    let warned = cocode_agent::text_of(&seen[3].messages.last().unwrap().content);
    assert!(warned.contains("same calls"), "{warned}");
}

#[tokio::test]
async fn a_turn_has_only_so_many_steps() {
    let scene = Scene::with(None, |options| options.max_steps = 4);
    for n in 0..10 {
        let command = format!("echo {n}");
        scene
            .puppet
            .calls(&[("1", "shell", json!({ "command": command }))]);
    }
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "go").await;
    assert_eq!((end.ending, end.steps), (Ending::TooManySteps(4), 4));
    // And the conversation can go on.
    scene.puppet.acts_clear();
    scene.puppet.says("Fine.");
    assert_eq!(
        say(&mut conversation, "stop that").await.ending,
        Ending::Done
    );
}

#[tokio::test]
async fn what_breaks_off_is_asked_for_again_and_in_the_end_told() {
    let scene = Scene::new();
    let broken = || ProviderError::BrokeOff {
        provider: "puppet".to_owned(),
        why: "the line was cut".to_owned(),
        said: vec![Block::text("I was about")],
    };
    scene.puppet.then(move |_, _| Err(broken()));
    scene.puppet.says("Here I am.");
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "go").await;
    assert_eq!(end.text, "Here I am.");
    for _ in 0..3 {
        scene.puppet.then(move |_, _| Err(broken()));
    }
    let end = say(&mut conversation, "go").await;
    let Ending::Failed(why) = end.ending else {
        panic!("{:?}", end.ending);
    };
    assert!(why.contains("the line was cut"), "{why}");
    let stored = scene.store.load(conversation.id()).await.unwrap();
    let kept = stored.records.iter().any(|(_, record)| {
        matches!(record, Record::BrokeOff { content } if content == &[Block::text("I was about")])
    });
    assert!(kept);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_summed_up_and_goes_on() {
    let scene = Scene::new();
    scene.puppet.says("Noted.");
    scene.puppet.then(|_, _| {
        let message = "prompt is too long".to_owned();
        Err(ProviderError::TooLong { message })
    });
    scene.puppet.says("They want the word KIWI remembered.");
    scene.puppet.says("The word is KIWI.");
    let mut conversation = begin(&scene).await;
    say(&mut conversation, "Remember the word KIWI.").await;
    let friend = Friend::answering([]);
    let end = conversation
        .turn(words("What is the word?"), &friend.company())
        .await
        .unwrap();
    assert_eq!(end.text, "The word is KIWI.");
    let seen = scene.puppet.seen();
    let asked = cocode_agent::text_of(&seen[2].messages[0].content);
    assert!(asked.contains("Remember the word KIWI."), "{asked}");
    assert!(seen[2].tools.is_empty());
    let after = cocode_agent::text_of(&seen[3].messages[0].content);
    assert!(after.contains("They want the word KIWI") && after.contains("What is the word?"));
    assert_eq!(seen[3].messages.len(), 1);
    let notices = friend.notices.lock().unwrap();
    let compacted = notices
        .iter()
        .any(|notice| matches!(notice, Notice::Compacted { .. }));
    assert!(compacted);
}

#[tokio::test]
async fn a_conversation_is_summed_up_before_it_is_too_long() {
    let scene = Scene::new();
    scene.puppet.sees_at_once(2_000);
    scene.write("long.txt", &"words and words\n".repeat(500));
    scene
        .puppet
        .calls(&[("1", "read", json!({"path": "long.txt"}))]);
    scene.puppet.says("There are words in it.");
    scene.puppet.says("Words.");
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "What is in long.txt?").await;
    assert_eq!(end.text, "Words.");
    let last = cocode_agent::text_of(&scene.puppet.seen()[2].messages[0].content);
    assert!(last.contains("There are words in it."), "{last}");
    assert!(last.contains("What is in long.txt?"), "{last}");
}

#[tokio::test]
async fn what_was_asked_for_outlives_two_summaries_in_one_turn() {
    let scene = Scene::new();
    let too_long = || {
        let message = "prompt is too long".to_owned();
        Err(ProviderError::TooLong { message })
    };
    scene.puppet.calls(&[("1", "list", json!({}))]);
    scene.puppet.then(move |_, _| too_long());
    scene.puppet.says("FIRST SUMMARY");
    scene.puppet.calls(&[("2", "list", json!({}))]);
    scene.puppet.then(move |_, _| too_long());
    scene.puppet.says("SECOND SUMMARY");
    scene.puppet.says("Done.");
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "Look for the word PLUM.").await;
    assert_eq!((end.ending, end.text.as_str()), (Ending::Done, "Done."));
    let seen = scene.puppet.seen();
    let asked = cocode_agent::text_of(&seen[5].messages[0].content);
    assert!(asked.contains("FIRST SUMMARY"), "{asked}");
    let last = cocode_agent::text_of(&seen[6].messages[0].content);
    assert!(last.contains("SECOND SUMMARY"), "{last}");
    assert!(last.contains("Look for the word PLUM."), "{last}");
}

#[tokio::test]
async fn a_summary_that_fails_stops_nothing_as_long_as_there_is_room() {
    let scene = Scene::new();
    scene.puppet.sees_at_once(2_000);
    scene.write("long.txt", &"words and words\n".repeat(500));
    scene
        .puppet
        .calls(&[("1", "read", json!({"path": "long.txt"}))]);
    scene.puppet.then(|_, _| {
        Err(ProviderError::Rejected {
            provider: "puppet".to_owned(),
            status: 400,
            message: "no".to_owned(),
        })
    });
    scene.puppet.says("Words.");
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "What is in long.txt?").await;
    assert_eq!((end.ending, end.text.as_str()), (Ending::Done, "Words."));
}

#[tokio::test]
async fn calls_that_have_no_names_of_their_own_get_some() {
    let scene = Scene::new();
    scene.write("a", "this is a");
    for _ in 0..2 {
        let (read, list) = (json!({"path": "a"}), json!({}));
        scene
            .puppet
            .calls(&[("call_0", "read", read), ("call_0", "list", list)]);
    }
    scene.puppet.says("Done.");
    let mut conversation = begin(&scene).await;
    say(&mut conversation, "go").await;
    let last = scene.puppet.seen()[2].clone();
    let ids: Vec<String> = last
        .messages
        .iter()
        .flat_map(|message| message.tool_calls().map(|call| call.id.clone()))
        .collect();
    let different: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), different.len()), (4, 4), "{ids:?}");
    assert_eq!(last.results().len(), 2);
}
