//! "May this be done?" as a form, and what the filled-in form means.

use cocode_core::{Revision, make_visible};
use serde_json::{Value, json};

use crate::company::{ApprovalAnswer, ApprovalQuestion};
use crate::describe::details;

/// The method by which a client is asked to have a form filled in.
pub(super) const METHOD: &str = "elicitation/create";

/// So many characters of what a person gives as their reason reach the model.
const MAX_REASON_CHARS: usize = 2_000;

const ONCE: &str = "once";
const ALWAYS: &str = "always";
const REFUSE: &str = "refuse";
const STOP: &str = "stop";

/// The parameters of `elicitation/create`, as a revision has them.
pub(super) fn form(question: &ApprovalQuestion, revision: Revision) -> Value {
    let always = if question.can_remember {
        "Yes, and always from now on"
    } else {
        "Yes, and do not ask about this again in this conversation"
    };
    let mut choices = vec![
        (ONCE, "Yes, this time"),
        (ALWAYS, always),
        (REFUSE, "No, go on without it"),
        (STOP, "No, and stop"),
    ];
    // Consent to changes covers these changes alone.
    choices.retain(|(word, _)| *word != ALWAYS || question.changed_files.is_empty());
    let choices = choices.into_iter();
    let mut decision = json!({ "type": "string", "title": "Decision" });
    if revision >= Revision::V2025_11_25 {
        let titled = choices.map(|(word, title)| json!({ "const": word, "title": title }));
        decision["oneOf"] = titled.collect();
    } else {
        decision["enum"] = choices.clone().map(|(word, _)| word).collect();
        decision["enumNames"] = choices.map(|(_, title)| title).collect();
    }
    let mut params = json!({
        "message": message(question),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": decision,
                "reason": {
                    "type": "string",
                    "title": "Reason",
                    "description": "What the agent is told if you say no.",
                },
            },
            "required": ["decision"],
        },
    });
    if revision >= Revision::V2025_11_25 {
        params["mode"] = "form".into();
    }
    params
}

/// What is to be done, why that is asked, and what for. The summary of a call is one line, so what it
/// leaves out is shown, too: nobody is to agree to half a command.
fn message(question: &ApprovalQuestion) -> String {
    let ApprovalQuestion { summary, why, .. } = question;
    let mut lines = vec![if question.changed_files.is_empty() {
        format!("The agent wants to use {summary}")
    } else {
        format!("Keep what this command has changed? No undoes it. {summary}")
    }];
    lines.extend(details(question));
    lines.push(format!("You are asked because {why}."));
    if let Some(justification) = &question.justification {
        // The words of a model are to look like nothing else.
        let words: Vec<&str> = justification.split_whitespace().collect();
        let words: String = words.join(" ").chars().take(MAX_REASON_CHARS).collect();
        let words = make_visible(&words);
        lines.push(format!("The agent says: {words}"));
    }
    lines.join("\n")
}

/// What a client answers. Only a clear yes is one.
pub(super) fn answer(result: &Value) -> ApprovalAnswer {
    let content = result.get("content");
    let text = |key: &str| content.and_then(|content| content.get(key)?.as_str());
    let reason = || {
        let reason = text("reason").map(str::trim);
        let reason = reason.filter(|reason| !reason.is_empty())?;
        Some(reason.chars().take(MAX_REASON_CHARS).collect())
    };
    match result.get("action").and_then(Value::as_str) {
        Some("accept") => match text("decision") {
            Some(ONCE) => ApprovalAnswer::Once,
            Some(ALWAYS) => ApprovalAnswer::Always,
            Some(STOP) => ApprovalAnswer::Stopped,
            Some(REFUSE) => ApprovalAnswer::Refused(reason()),
            unclear => {
                tracing::warn!(
                    ?unclear,
                    "an approval holds no decision, and counts as a refusal"
                );
                ApprovalAnswer::Refused(reason())
            }
        },
        Some("cancel") => ApprovalAnswer::Stopped,
        _ => ApprovalAnswer::Refused(reason()),
    }
}

#[cfg(test)]
mod tests {
    use cocode_core::Revision;
    use serde_json::json;

    use super::{answer, form};
    use crate::company::{ApprovalAnswer, ApprovalQuestion};

    fn question() -> ApprovalQuestion {
        ApprovalQuestion {
            id: "1".into(),
            tool: "shell".into(),
            summary: "shell: ls".into(),
            arguments: json!({}),
            why: "it is to run outside of the sandbox".into(),
            justification: Some("to see".into()),
            can_remember: false,
            ..ApprovalQuestion::default()
        }
    }

    #[test]
    fn the_form_has_titles_as_the_revision_knows_them() {
        let old = form(&question(), Revision::V2025_06_18);
        let decision = &old["requestedSchema"]["properties"]["decision"];
        assert_eq!(
            decision["enum"],
            json!(["once", "always", "refuse", "stop"])
        );
        assert_eq!(decision["enumNames"].as_array().unwrap().len(), 4);
        assert!(old.get("mode").is_none());
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let new = form(&question(), revision);
            let decision = &new["requestedSchema"]["properties"]["decision"];
            assert_eq!(decision["oneOf"][0]["const"], "once");
            assert!(decision.get("enum").is_none());
            assert_eq!(new["mode"], "form");
        }
    }

    #[test]
    fn the_message_says_what_why_and_what_for() {
        let form = form(&question(), Revision::V2025_11_25);
        let message = form["message"].as_str().unwrap();
        for part in ["shell: ls", "outside of the sandbox", "to see"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn nobody_agrees_to_what_is_not_shown() {
        let message_of = |arguments: serde_json::Value, summary: &str| {
            let question = ApprovalQuestion {
                arguments,
                summary: summary.into(),
                ..question()
            };
            let form = form(&question, Revision::V2025_11_25);
            form["message"].as_str().unwrap().to_owned()
        };
        let plain = message_of(json!({ "command": "ls" }), "shell: ls");
        assert!(!plain.contains("arguments"), "{plain}");
        let lines = message_of(json!({ "command": "ls\nrm x" }), "shell: ls rm x");
        assert!(lines.contains(r#"command: "ls\nrm x""#), "{lines}");
        let long = "x".repeat(5_000);
        let long = message_of(json!({ "command": long }), "shell: xxx…");
        assert!(long.contains("1002 characters left out"), "{long}");
        let more = message_of(json!({ "path": "a", "content": "b" }), "write: a");
        assert!(more.contains(r#"content: "b""#), "{more}");
        let padded = json!({ "a": "\n".repeat(9_000), "to": "eve@example.com", "z": "\u{202e}x" });
        let padded = message_of(padded, "mcp__mail__send");
        for part in ["  to: \"eve@example.com\"", "  z: \"\\u{202e}x\""] {
            assert!(padded.lines().any(|line| line == part), "{padded}");
        }
        let many = (0..99).map(|n| (format!("name{n}"), json!(n)));
        let many = message_of(many.collect(), "mcp__mail__send");
        assert!(
            (0..99).all(|n| many.contains(&format!("name{n}"))),
            "{many}"
        );
    }

    #[test]
    fn a_question_about_changes_offers_no_answer_for_the_future() {
        let question = ApprovalQuestion {
            changed_files: vec![".git/config".into()],
            ..question()
        };
        let form = form(&question, Revision::V2025_06_18);
        let decision = &form["requestedSchema"]["properties"]["decision"];
        assert_eq!(decision["enum"], json!(["once", "refuse", "stop"]));
        let message = form["message"].as_str().unwrap();
        assert!(message.starts_with("Keep what this command"), "{message}");
    }

    #[test]
    fn the_words_of_a_model_stay_on_their_line() {
        let question = ApprovalQuestion {
            justification: Some("fine.\nYou are asked because of nothing.".into()),
            ..question()
        };
        let form = form(&question, Revision::V2025_11_25);
        let message = form["message"].as_str().unwrap();
        assert_eq!(message.lines().count(), 3, "{message}");
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let accepted = |content| answer(&json!({ "action": "accept", "content": content }));
        assert_eq!(
            accepted(json!({ "decision": "once" })),
            ApprovalAnswer::Once
        );
        assert_eq!(
            accepted(json!({ "decision": "always" })),
            ApprovalAnswer::Always
        );
        assert_eq!(
            accepted(json!({ "decision": "stop" })),
            ApprovalAnswer::Stopped
        );
        assert_eq!(
            accepted(json!({ "decision": "refuse", "reason": " not now " })),
            ApprovalAnswer::Refused(Some("not now".into()))
        );
        for unclear in [json!({}), json!(null), json!({ "decision": "maybe" })] {
            assert_eq!(accepted(unclear), ApprovalAnswer::Refused(None));
        }
        let other = |action: &str| answer(&json!({ "action": action }));
        assert_eq!(other("decline"), ApprovalAnswer::Refused(None));
        assert_eq!(other("cancel"), ApprovalAnswer::Stopped);
        assert_eq!(answer(&json!("yes")), ApprovalAnswer::Refused(None));
    }
}
