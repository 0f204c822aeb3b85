//! Questions of servers, put to the person field by field.

use cocode_client::{
    Answer, ClientCapabilities, Elicitation, ElicitationAnswer, ElicitationMode, Field, FieldKind,
    Form, Handler, ServerName,
};
use cocode_terminal::{HostNotice, PickEntry, Question, QuestionKind};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use url::Url;

use super::notices;
use crate::arguments::quoted;
use crate::elicit::{accept, answer_of, shown};

/// What is picked to leave a field out.
const LEFT_OUT: &str = "";

/// Asks the person what one server wants to know.
#[derive(Debug)]
pub(super) struct Questions {
    server: String,
    say: mpsc::Sender<HostNotice>,
}

impl Questions {
    pub(super) fn new(server: &ServerName, say: mpsc::Sender<HostNotice>) -> Self {
        let server = server.to_string();
        Self { server, say }
    }

    async fn answer(&self, request: Elicitation) -> ElicitationAnswer {
        let message = request.message;
        let answer = match request.mode {
            ElicitationMode::Form(schema) => match Form::parse(&schema) {
                Ok(form) => self.fill_in(&message, &form).await,
                Err(error) => {
                    let line = format!(
                        "declined a question of {}: its form cannot be read: {error}",
                        self.server
                    );
                    notices::show(&self.say, notices::warning(&line));
                    Some(ElicitationAnswer::Decline)
                }
            },
            ElicitationMode::Url(url) => self.visit(&message, &url).await,
            _ => Some(ElicitationAnswer::Decline),
        };
        answer.unwrap_or(ElicitationAnswer::Cancel)
    }

    /// Shows a form and asks for its fields. Nothing if the person does not answer.
    async fn fill_in(&self, message: &str, form: &Form) -> Option<ElicitationAnswer> {
        let accepts = match form.fields.len() {
            0 => "accept",
            _ => "answer",
        };
        if !self.accepts(message, accepts).await? {
            return Some(ElicitationAnswer::Decline);
        }
        let mut members = Vec::new();
        for (place, field) in form.fields.iter().enumerate() {
            let place = format!("{} of {}", place + 1, form.fields.len());
            if let Some(json) = self.field(field, &place).await? {
                members.push(format!("{}:{json}", quoted(&field.name)));
            }
        }
        accept(&members).ok()
    }

    /// Shows a URL. It is never opened from here.
    async fn visit(&self, message: &str, url: &str) -> Option<ElicitationAnswer> {
        let host = Url::parse(url).ok();
        let host = host.and_then(|url| url.host_str().map(str::to_owned));
        let leads = host.map(|host| format!("\nIt leads to {host}."));
        let detail = format!(
            "{message}\nOpen this address in a browser, if you trust it:\n{url}{}",
            leads.unwrap_or_default()
        );
        Some(if self.accepts(&detail, "done").await? {
            ElicitationAnswer::Accept(None)
        } else {
            ElicitationAnswer::Decline
        })
    }

    async fn accepts(&self, detail: &str, word: &str) -> Option<bool> {
        let entry = |value: &str, detail: &str| PickEntry {
            label: value.to_owned(),
            detail: detail.to_owned(),
            value: value.to_owned(),
        };
        let entries = vec![
            entry(word, ""),
            entry("decline", "the server is told that you do not want to"),
        ];
        let chosen = self
            .ask(detail, QuestionKind::OneOf(entries), false)
            .await?;
        Some(chosen == word)
    }

    /// The JSON of a field, or nothing if it is left out. No answer at all if the person gives none.
    async fn field(&self, field: &Field, place: &str) -> Option<Option<String>> {
        let about = field.description.as_deref().unwrap_or_default();
        let question = named(field);
        let mut detail = format!("{question} — {place}\n{about}");
        let mut kind = kind_of(field);
        loop {
            let typed = self.ask(detail.trim_end(), kind.clone(), true).await?;
            let typed = typed.trim();
            if typed.is_empty() && !field.required {
                return Some(None);
            }
            let wrong = match answer_of(field, typed) {
                Ok(_) if typed.is_empty() && is_typed(field) => "this one is required".to_owned(),
                Ok(json) => return Some(Some(json)),
                Err(why) => why,
            };
            detail = format!("{wrong}\n{question} — {place}\n{about}");
            if let QuestionKind::Text { initial, .. } = &mut kind {
                typed.clone_into(initial);
            }
        }
    }

    /// Asks, and waits until the person answers. If this is dropped, the question is taken back.
    async fn ask(&self, detail: &str, kind: QuestionKind, follows: bool) -> Option<String> {
        let (reply, answer) = oneshot::channel();
        let question = Question {
            title: format!("{} asks you", self.server),
            detail: detail.to_owned(),
            kind,
            follows,
            reply,
        };
        self.say.send(HostNotice::Ask(question)).await.ok()?;
        answer.await.ok()?
    }
}

impl Handler for Questions {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            elicitation_form: true,
            elicitation_url: true,
            ..ClientCapabilities::default()
        }
    }

    fn elicit(&self, request: Elicitation) -> Answer<'_, ElicitationAnswer> {
        Box::pin(self.answer(request))
    }
}

/// Whether the answer is text that the person types.
fn is_typed(field: &Field) -> bool {
    !matches!(field.kind, FieldKind::Boolean | FieldKind::Choice(_))
}

/// What is asked for, and what an answer looks like.
fn named(field: &Field) -> String {
    let name = field.title.as_deref().unwrap_or(&field.name);
    let kind = match &field.kind {
        FieldKind::Text(Some(format)) => format.clone(),
        FieldKind::Number => "number".to_owned(),
        FieldKind::Integer => "whole number".to_owned(),
        FieldKind::Choices(choices) => {
            let values: Vec<&str> = choices.iter().map(|(value, _)| value.as_str()).collect();
            format!("any of {}, with commas", values.join(", "))
        }
        FieldKind::Other => "JSON".to_owned(),
        _ => String::new(),
    };
    let needed = if field.required {
        "required"
    } else {
        "optional"
    };
    let notes = [kind.as_str(), needed];
    let notes: Vec<&str> = notes.into_iter().filter(|note| !note.is_empty()).collect();
    format!("{name} ({})", notes.join(", "))
}

fn kind_of(field: &Field) -> QuestionKind {
    let default = field.default.as_ref().map(shown).unwrap_or_default();
    let entries = match &field.kind {
        FieldKind::Boolean => vec![
            ("true".to_owned(), "yes".to_owned()),
            ("false".to_owned(), "no".to_owned()),
        ],
        FieldKind::Choice(choices) => choices.clone(),
        _ => {
            return QuestionKind::Text {
                initial: default,
                is_secret: false,
            };
        }
    };
    let is_default = |value: &str| match &field.default {
        Some(Value::Bool(default)) => value == default.to_string(),
        Some(Value::String(default)) => value == default,
        _ => false,
    };
    let mut entries: Vec<PickEntry> = entries
        .into_iter()
        .map(|(value, label)| PickEntry {
            detail: if is_default(&value) { "default" } else { "" }.to_owned(),
            label,
            value,
        })
        .collect();
    // What is usual is taken by Enter.
    entries.sort_by_key(|entry| entry.detail.is_empty());
    if !field.required {
        entries.push(PickEntry {
            label: "(left out)".to_owned(),
            detail: String::new(),
            value: LEFT_OUT.to_owned(),
        });
    }
    QuestionKind::OneOf(entries)
}
