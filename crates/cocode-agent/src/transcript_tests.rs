//! What a model is shown, from records.

use serde_json::json;

use super::{BROKEN_OFF, LOST_CALL, Transcript};
use crate::content::{Arguments, Block, Message, Role, ToolCall, ToolResult, text_of};
use crate::model::Usage;
use crate::provider::Stop;
use crate::record::{Ending, Record, Settings};

fn asked(text: &str) -> Record {
    let content = vec![Block::text(text)];
    Record::Asked { content }
}

fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: Arguments::Json(json!({})),
    })
}

fn replied(content: Vec<Block>) -> Record {
    Record::Replied {
        content,
        stop: Stop::Done,
        usage: Usage {
            input: 10,
            output: 1,
            ..Usage::default()
        },
        cost: Some(0.5),
        model: "m".to_owned(),
        provider: "p".to_owned(),
    }
}

fn ended(id: &str, text: &str) -> Record {
    Record::CallEnded {
        id: id.to_owned(),
        content: vec![Block::text(text)],
        is_error: false,
        milliseconds: 1,
    }
}

fn result(id: &str, text: &str, is_error: bool) -> Block {
    Block::ToolResult(ToolResult {
        id: id.to_owned(),
        content: vec![Block::text(text)],
        is_error,
    })
}

fn of(records: &[Record]) -> Transcript {
    let numbered = (1..).zip(records);
    Transcript::replay(Settings::default(), numbered)
}

fn roles(messages: &[Message]) -> Vec<Role> {
    messages.iter().map(|message| message.role).collect()
}

#[test]
fn results_stand_in_the_order_of_their_calls() {
    let transcript = of(&[
        asked("go"),
        replied(vec![call("a"), call("b"), call("c")]),
        ended("c", "3"),
        ended("a", "1"),
        ended("b", "2"),
    ]);
    let messages = transcript.messages();
    assert_eq!(roles(&messages), [Role::User, Role::Assistant, Role::User]);
    let expected = [
        result("a", "1", false),
        result("b", "2", false),
        result("c", "3", false),
    ];
    assert_eq!(messages[2].content, expected);
    assert!(transcript.open_calls().is_empty());
}

#[test]
fn calls_that_were_lost_have_a_result_that_says_so() {
    let transcript = of(&[
        asked("go"),
        replied(vec![call("a"), call("b")]),
        ended("b", "2"),
        Record::Ended {
            how: Ending::Interrupted,
        },
        asked("and now?"),
    ]);
    let open: Vec<_> = transcript
        .open_calls()
        .into_iter()
        .map(|call| call.id)
        .collect();
    assert_eq!(open, ["a"]);
    let messages = transcript.messages();
    assert_eq!(roles(&messages), [Role::User, Role::Assistant, Role::User]);
    let expected = [
        result("a", LOST_CALL, true),
        result("b", "2", false),
        Block::text("and now?"),
    ];
    assert_eq!(messages[2].content, expected);
}

#[test]
fn the_roles_take_turns_whatever_happened() {
    let transcript = of(&[
        asked("one"),
        Record::Ended {
            how: Ending::Failed("no way there".to_owned()),
        },
        asked("two"),
        Record::BrokeOff {
            content: vec![Block::text("I was")],
        },
        asked("three"),
        replied(vec![]),
        asked("four"),
    ]);
    let messages = transcript.messages();
    assert_eq!(roles(&messages), [Role::User, Role::Assistant, Role::User]);
    assert_eq!(text_of(&messages[0].content), "one\n\ntwo");
    assert_eq!(
        text_of(&messages[1].content),
        format!("I was\n\n{BROKEN_OFF}")
    );
    assert_eq!(text_of(&messages[2].content), "three\n\nfour");
}

#[test]
fn a_summary_stands_for_what_was_before_it() {
    let transcript = of(&[
        asked("old"),
        replied(vec![Block::text("older")]),
        asked("new"),
        Record::Compacted {
            summary: "they talked".to_owned(),
            kept_from: 3,
            usage: Usage::default(),
            cost: Some(1.0),
        },
    ]);
    let messages = transcript.messages();
    assert_eq!(messages.len(), 1);
    let text = text_of(&messages[0].content);
    assert!(
        text.contains("they talked") && text.ends_with("new"),
        "{text}"
    );
    assert!(!text.contains("older"), "{text}");
    assert!((transcript.cost - 1.5).abs() < 1e-9);
    assert_eq!(transcript.usage.total(), 11);
}

#[test]
fn what_was_refused_is_not_shown_again() {
    let transcript = of(&[
        asked("fine"),
        replied(vec![Block::text("yes")]),
        asked("bad"),
        replied(vec![Block::text("I will not")]),
        Record::Ended {
            how: Ending::Refused(None),
        },
        asked("fine again"),
    ]);
    let messages = transcript.messages();
    assert_eq!(roles(&messages), [Role::User, Role::Assistant, Role::User]);
    assert_eq!(text_of(&messages[2].content), "fine again");
}

#[test]
fn data_read_in_another_workspace_is_outside_of_this_one() {
    let mut settings = of(&[]).settings;
    settings.cwd = "/elsewhere".into();
    let changed = Record::Changed { settings };
    assert!(!of(std::slice::from_ref(&changed)).has_read_outside);
    assert!(of(&[asked("hi"), changed]).has_read_outside);
}
