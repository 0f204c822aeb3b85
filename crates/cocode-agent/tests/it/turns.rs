//! Turns of conversations, with a model that follows a script and tools that are real.

mod approvals;
mod disclosure;
mod endings;
#[cfg(target_os = "linux")]
mod hook_files;
mod interrupts;
mod servers;
#[cfg(target_os = "linux")]
mod temporary;
mod tools;

use cocode_agent::{Block, Conversation, Ending, TurnEnd};

use crate::puppet::{Friend, Scene};

fn words(text: &str) -> Vec<Block> {
    vec![Block::text(text)]
}

async fn begin(scene: &Scene) -> Conversation {
    let settings = scene.free();
    let begun = scene.agent.begin("ann", settings, &words("hello")).await;
    begun.unwrap()
}

async fn say(conversation: &mut Conversation, text: &str) -> TurnEnd {
    let friend = Friend::answering([]);
    let turn = conversation.turn(words(text), &friend.company()).await;
    turn.unwrap()
}

#[tokio::test]
async fn a_model_that_only_speaks_is_done_at_once() {
    let scene = Scene::new();
    scene.puppet.says("Good day.");
    let mut conversation = begin(&scene).await;
    let end = say(&mut conversation, "Hello?").await;
    assert_eq!(end.ending, Ending::Done);
    assert_eq!((end.text.as_str(), end.steps), ("Good day.", 1));
    assert_eq!(end.usage.total(), 110);
    let cost = end.cost.unwrap();
    assert!((cost - 0.0002).abs() < 1e-12, "{cost}");
}

#[tokio::test]
async fn a_conversation_goes_on_where_it_was_after_a_restart() {
    let scene = Scene::new();
    scene.puppet.says("First.").says("Second.");
    let mut conversation = begin(&scene).await;
    say(&mut conversation, "one").await;
    let id = conversation.id().clone();
    drop(conversation);
    let mut resumed = scene.agent.resume(&id, Some("ann")).await.unwrap();
    let end = say(&mut resumed, "two").await;
    assert_eq!(end.text, "Second.");
    assert_eq!(resumed.usage().total(), 220);
    let seen = scene.puppet.seen();
    let texts: Vec<String> = seen[1]
        .messages
        .iter()
        .map(|message| cocode_agent::text_of(&message.content))
        .collect();
    assert_eq!(texts, ["one", "First.", "two"]);
}
