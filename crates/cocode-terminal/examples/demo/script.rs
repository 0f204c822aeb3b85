//! The turns of the demonstration.

use std::time::Duration;

use cocode_agent::{
    ApprovalAnswer, ApprovalQuestion, Arguments, Block, Company, Ending, Notice, ToolCall, Usage,
};
use cocode_terminal::TurnOutcome;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;

/// What a model would say, with things in it that no terminal should obey.
const HELLO: &str = "# Hello\n\nThis is **streamed** text with `code`, 漢字 and \u{1b}[2J\u{1b}]0;owned\u{7}no harm.\n\n1. first\n2. second\n\n```rust\nfn main() {}\n```\n\nThat is all.";

/// Between two pieces of text.
const PACE: Duration = Duration::from_millis(10);

/// Runs a turn.
pub(crate) async fn turn(said: &str, company: &Company, go: &Notify) -> TurnOutcome {
    let teller = Teller { company };
    let telling = async {
        match said {
            "hello" => teller.say(HELLO).await,
            "work" => teller.work(go).await,
            "edit" => return teller.edit().await,
            "wait" => {
                teller.say("Waiting until somebody interrupts.").await;
                std::future::pending::<()>().await;
            }
            "many" => {
                let lines: Vec<String> = (1..=60).map(|n| format!("{n}. line {n}")).collect();
                teller.say(&lines.join("\n")).await;
            }
            other => {
                let n_lines = other.lines().count();
                let text = format!("Lines: {n_lines}, characters: {}.", other.chars().count());
                teller.say(&text).await;
            }
        }
        Ending::Done
    };
    tokio::select! {
        ending = telling => TurnOutcome::Ended(ending),
        () = company.interrupt.cancelled() => TurnOutcome::Ended(Ending::Interrupted),
    }
}

struct Teller<'a> {
    company: &'a Company,
}

impl Teller<'_> {
    fn tell(&self, notice: &Notice) {
        self.company.listener.hear(notice);
    }

    async fn say(&self, text: &str) {
        self.tell(&Notice::Asking {
            step: 1,
            model: "demo-1".to_owned(),
        });
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(8) {
            self.tell(&Notice::Text(piece.iter().collect()));
            sleep(PACE).await;
        }
        self.tell(&Notice::Replied {
            content: vec![Block::text(text)],
            usage: Usage::default(),
            cost: None,
            context: (1000, 100_000),
        });
    }

    fn begin(&self, id: &str, tool: &str, arguments: Value) {
        self.tell(&Notice::CallBegun(ToolCall {
            id: id.to_owned(),
            name: tool.to_owned(),
            arguments: Arguments::Json(arguments),
        }));
    }

    fn progress(&self, id: &str, done: f64, message: &str) {
        self.tell(&Notice::CallProgressed {
            id: id.to_owned(),
            done,
            total: Some(10.0),
            message: Some(message.to_owned()),
        });
    }

    fn end(&self, id: &str, tool: &str, text: &str, is_error: bool) {
        self.tell(&Notice::CallEnded {
            id: id.to_owned(),
            tool: tool.to_owned(),
            content: vec![Block::text(text)],
            is_error,
            took: Duration::from_millis(10),
        });
    }

    /// Two calls, which wait in their middle for `/go`.
    async fn work(&self, go: &Notify) {
        self.say("Two calls.").await;
        self.begin("1", "shell", json!({ "command": "cargo test" }));
        self.begin("2", "mcp__files__search", json!({ "query": "needle" }));
        for done in 1..=5_u8 {
            self.progress("1", f64::from(done), "compiling");
            sleep(PACE).await;
        }
        self.progress("2", 7.0, "looking");
        go.notified().await;
        self.end("2", "mcp__files__search", "a.rs:1\nb.rs:2", false);
        let lines: Vec<String> = (1..=9).map(|n| format!("test {n} ... ok")).collect();
        self.end("1", "shell", &lines.join("\n"), false);
        self.say("Both are done.").await;
    }

    async fn edit(&self) -> Ending {
        self.say("An edit.").await;
        let arguments =
            json!({ "path": "a.rs", "old_string": "let x = 1;", "new_string": "let x = 2;" });
        let question = ApprovalQuestion {
            id: "1".to_owned(),
            tool: "edit".to_owned(),
            summary: "edit a.rs".to_owned(),
            arguments: arguments.clone(),
            why: "edits are asked about".to_owned(),
            justification: Some("The number is wrong.".to_owned()),
            can_remember: true,
            ..ApprovalQuestion::default()
        };
        match self.company.approver.ask(question).await {
            ApprovalAnswer::Once | ApprovalAnswer::Always => {
                self.begin("1", "edit", arguments);
                self.end("1", "edit", "1 replacement", false);
                self.say("Edited.").await;
            }
            ApprovalAnswer::Refused(reason) => {
                let reason = reason.unwrap_or_else(|| "nothing".to_owned());
                self.say(&format!("Refused, because of {reason}.")).await;
            }
            ApprovalAnswer::Stopped | ApprovalAnswer::Unasked => return Ending::Interrupted,
        }
        Ending::Done
    }
}
