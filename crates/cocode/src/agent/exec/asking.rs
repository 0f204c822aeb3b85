//! Asks the person at the terminal whether something may be done, where somebody sits there and the
//! approval policy wants it.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;

use cocode_agent::{ApprovalAnswer, ApprovalQuestion, Approver, NoApprover, Work, details};
use tokio::sync::Mutex;

use crate::elicit::{Permission, Person};
use crate::lines::Lines;
use crate::printer::{ErrWriter, Printer};
use crate::text::plain_lines;

/// Whom to ask: the person at the terminal, or nobody.
pub(super) fn approver(printer: &Arc<Printer>) -> Arc<dyn Approver> {
    if io::stdin().is_terminal() && printer.stderr_is_terminal() {
        Arc::new(AtTerminal {
            printer: Arc::clone(printer),
            terminal: Mutex::default(),
        })
    } else {
        Arc::new(NoApprover)
    }
}

struct AtTerminal {
    printer: Arc<Printer>,
    /// The reader of the terminal, from the first question on. Who holds it may ask.
    terminal: Mutex<Option<Lines>>,
}

impl AtTerminal {
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "to hold the terminal while a person answers is the point; others wait their turn"
    )]
    async fn put(&self, question: &ApprovalQuestion) -> io::Result<Permission> {
        let mut terminal = self.terminal.lock().await;
        let input = match &mut *terminal {
            Some(lines) => lines,
            none => none.insert(Lines::of(|| io::stdin().lock())?),
        };
        input.forget();
        let mut output = ErrWriter(Arc::clone(&self.printer));
        for line in left_out(question) {
            writeln!(output, "  {line}")?;
        }
        Person { input, output }.permits(&words(question)).await
    }
}

impl Approver for AtTerminal {
    fn can_ask(&self) -> bool {
        true
    }

    fn ask(&self, question: ApprovalQuestion) -> Work<'_, ApprovalAnswer> {
        Box::pin(async move {
            match self.put(&question).await {
                Ok(Permission::Once) => ApprovalAnswer::Once,
                Ok(Permission::Always) => ApprovalAnswer::Always,
                Ok(Permission::Refused | Permission::Never) => ApprovalAnswer::Refused(None),
                Err(error) => {
                    tracing::warn!(%error, "nobody could be asked");
                    ApprovalAnswer::Unasked
                }
            }
        })
    }
}

/// All arguments, where the question in one line does not have them.
fn left_out(question: &ApprovalQuestion) -> Vec<String> {
    let Some(details) = details(question) else {
        return Vec::new();
    };
    let title = format!("The agent wants to use {} ", question.tool);
    plain_lines(&(title + &details))
}

/// The question in one line.
fn words(question: &ApprovalQuestion) -> String {
    let ApprovalQuestion {
        summary,
        why,
        justification,
        ..
    } = question;
    let because = justification
        .as_deref()
        .map(|why| format!(" The model says: {why}"));
    let asked = if question.changed_files.is_empty() {
        "May this be done?"
    } else {
        "Keep what this command has changed? No undoes it."
    };
    format!(
        "{asked} {summary}: you are asked because {why}.{}",
        because.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use cocode_agent::ApprovalQuestion;
    use serde_json::json;

    use super::{left_out, words};

    fn question() -> ApprovalQuestion {
        ApprovalQuestion {
            id: "1".to_owned(),
            tool: "write".to_owned(),
            summary: "write a.txt".to_owned(),
            arguments: json!({}),
            why: "it writes".to_owned(),
            justification: Some("you wanted it".to_owned()),
            can_remember: false,
            ..ApprovalQuestion::default()
        }
    }

    #[test]
    fn what_the_line_leaves_out_is_shown() {
        assert!(left_out(&question()).is_empty());
        let command = format!("echo {}; rm -r /", "x".repeat(400));
        let question = ApprovalQuestion {
            tool: "shell".to_owned(),
            summary: "shell: echo xxx…".to_owned(),
            arguments: json!({ "command": command }),
            ..question()
        };
        let lines = left_out(&question);
        assert!(
            lines.iter().any(|line| line.contains("; rm -r /")),
            "{lines:?}"
        );
    }

    #[test]
    fn a_question_says_what_and_why() {
        let question = question();
        assert_eq!(
            words(&question),
            "May this be done? write a.txt: you are asked because it writes. The model says: you wanted it"
        );
    }
}
