//! Conversations as documents.

use std::time::{Duration, SystemTime};

use serde_json::json;

use super::render_markdown;
use crate::content::{Arguments, Block, ToolCall};
use crate::model::Usage;
use crate::provider::Stop;
use crate::record::{Ending, Record, Settings, StoredAnswer};
use crate::store::{Stored, Summary};

fn stored(records: Vec<Record>) -> Stored {
    let numbers = 1..;
    Stored {
        summary: Summary {
            id: "0f8fad5b-d9cb-469f-a165-70867728950e".parse().unwrap(),
            owner: "me".into(),
            title: "Look around".into(),
            cwd: "/work".into(),
            began: SystemTime::UNIX_EPOCH,
            used: SystemTime::UNIX_EPOCH + Duration::from_mins(1),
            turns: 1,
            usage: Usage {
                input: 10,
                output: 3,
                ..Usage::default()
            },
            cost: 0.25,
            is_held: false,
            is_closed: false,
        },
        settings: Settings::default(),
        records: numbers.zip(records).collect(),
        unread: Vec::new(),
        draft: None,
    }
}

fn asked(text: &str) -> Record {
    Record::Asked {
        content: vec![Block::text(text)],
    }
}

fn call() -> ToolCall {
    ToolCall {
        id: "c".into(),
        name: "shell".into(),
        arguments: Arguments::Json(json!({ "command": "ls" })),
    }
}

#[test]
fn a_conversation_reads_from_its_head_to_its_end() {
    let records = vec![
        asked("what is here?"),
        Record::Replied {
            content: vec![Block::text("I look."), Block::ToolCall(call())],
            stop: Stop::ToolCalls,
            usage: Usage::default(),
            cost: None,
            model: "m-1".into(),
            provider: "p".into(),
        },
        Record::CallBegun {
            call: call(),
            reads_outside: false,
        },
        Record::ApprovalAsked {
            id: "c".into(),
            why: "it is a command".into(),
        },
        Record::ApprovalAnswered {
            id: "c".into(),
            answer: StoredAnswer::Once,
        },
        Record::CallEnded {
            id: "c".into(),
            content: vec![Block::text("a.txt")],
            is_error: false,
            milliseconds: 210,
        },
        Record::Ended {
            how: Ending::Interrupted,
        },
    ];
    assert_eq!(
        render_markdown(&stored(records)),
        "# Look around\n\n\
         - Conversation: 0f8fad5b-d9cb-469f-a165-70867728950e\n\
         - Began: 1970-01-01T00:00:00Z\n\
         - Last used: 1970-01-01T00:01:00Z\n\
         - Directory: `/work`\n\
         - Turns: 1\n\
         - Tokens: 10 read, 3 written\n\
         - Cost: $0.2500\n\n\
         ## Person\n\nwhat is here?\n\n\
         ## Agent (m-1)\n\nI look.\n\n\
         **Calls** `shell: ls`\n\n\
         *A person was asked, because it is a command.*\n\n\
         *They said yes.*\n\n\
         `shell` done after 0.2 s:\n\n```\na.txt\n```\n\n\
         *The turn is not done: it was interrupted.*\n"
    );
}

#[test]
fn fences_are_longer_than_the_ticks_in_what_they_hold() {
    let ended = Record::CallEnded {
        id: "c".into(),
        content: vec![Block::text("````\nx")],
        is_error: true,
        milliseconds: 0,
    };
    let text = render_markdown(&stored(vec![ended]));
    assert!(text.contains("\n`````\n````\nx\n`````"), "{text}");
}

#[test]
fn long_results_are_cut_and_long_conversations_lose_their_beginning() {
    let long = Record::CallEnded {
        id: "c".into(),
        content: vec![Block::text("é".repeat(10_000))],
        is_error: false,
        milliseconds: 0,
    };
    let text = render_markdown(&stored(vec![long]));
    assert!(text.contains("[…]") && text.len() < 10_000);
    let many = (0..6).map(|number| asked(&format!("{number}{}", "x".repeat(1024 * 1024))));
    let text = render_markdown(&stored(many.collect()));
    assert!(text.len() < 4 * 1024 * 1024 + 100);
    assert!(text.contains("what was before is left out"));
    assert!(text.contains("\n5xxx") && !text.contains("\n0xxx"));
}

#[test]
fn a_reply_that_is_being_written_is_in_it() {
    let mut stored = stored(vec![asked("go")]);
    stored.draft = Some(vec![Block::text("so far")]);
    let text = render_markdown(&stored);
    assert!(
        text.ends_with("## Agent\n\nso far\n\n*(has not ended)*\n"),
        "{text}"
    );
}
