//! Questions that the client of a call cannot answer, for whoever looks after the gateway.

use std::time::SystemTime;

use cocode_admin::model::{ConsentArgument, ConsentCall};
use cocode_admin::{Desk, Question, QuestionKind, Reply};
use cocode_config::visible;
use cocode_gateway::{Consent, QuestionMode};
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::text::cut;

/// The longest arguments that somebody is asked to allow: what is longer, nobody reads.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;
/// The most arguments that somebody is asked to allow.
const MAX_ARGUMENTS: usize = 256;
/// Characters of the name that a client gives itself.
const MAX_CLIENT_CHARACTERS: usize = 200;

/// The inbox of a desk. It is open while somebody looks at the desk who can answer: many only listen.
#[derive(Clone, Debug)]
pub(crate) struct DeskInbox(pub(crate) Desk);

impl cocode_gateway::Inbox for DeskInbox {
    fn is_open(&self) -> bool {
        self.0.bulletin.answerers() > 0
    }

    fn ask(
        &self,
        question: cocode_gateway::Question,
    ) -> BoxFuture<'static, Result<RawJson, RpcError>> {
        let wait = question.deadline.duration_since(SystemTime::now());
        let kind = match question.mode {
            QuestionMode::Form => QuestionKind::Form(question.requested_schema.unwrap_or_else(any)),
            QuestionMode::Url => QuestionKind::Url(question.url.unwrap_or_default()),
        };
        let consent = question.consent.map(call).transpose();
        let consent = match consent {
            Ok(consent) => consent,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let asked = self.0.inbox.ask(
            Question {
                server: question.server.to_string(),
                principal: question.principal.map(|name| name.to_string()),
                tool: question.tool.map(|tool| tool.to_string()),
                message: question.message,
                consent,
                kind,
            },
            wait.unwrap_or_default(),
        );
        Box::pin(async move {
            let asked =
                asked.map_err(|refusal| RpcError::new(code::INTERNAL_ERROR, refusal.message))?;
            let answer = match asked.reply().await {
                Reply::Accept(Some(content)) => {
                    let text = format!(r#"{{"action":"accept","content":{}}}"#, content.as_str());
                    return RawJson::parse(text).map_err(unwritable);
                }
                Reply::Accept(None) => json!({ "action": "accept" }),
                Reply::Decline => json!({ "action": "decline" }),
                Reply::Cancel => json!({ "action": "cancel" }),
                Reply::Expired => {
                    let what = "nobody answered in time at the dashboard of the gateway";
                    return Err(RpcError::new(code::INTERNAL_ERROR, what));
                }
            };
            RawJson::of(&answer).map_err(unwritable)
        })
    }
}

/// A call as it is put before whoever may allow it: all of it, or it is not put before anybody.
fn call(consent: Consent) -> Result<ConsentCall, RpcError> {
    let arguments = consent.arguments.as_ref().map(RawJson::as_str);
    let length = arguments.map_or(0, str::len);
    let arguments = match arguments {
        None | Some("null") => Members::default(),
        Some(text) => serde_json::from_str(text).map_err(|_no_object| {
            RpcError::new(code::INVALID_PARAMS, "the arguments are not an object")
        })?,
    };
    if length > MAX_ARGUMENT_BYTES || arguments.0.len() > MAX_ARGUMENTS {
        let what = format!(
            "somebody has to allow this call, and its arguments ({length} bytes) are too long to \
             be read at the dashboard of the gateway: make them shorter than {MAX_ARGUMENT_BYTES} \
             bytes and fewer than {MAX_ARGUMENTS}"
        );
        return Err(RpcError::new(code::INVALID_PARAMS, what));
    }
    let arguments = arguments
        .0
        .into_iter()
        .map(|(name, value)| ConsentArgument {
            name: visible(&name),
            value: seen(value.get()),
        });
    Ok(ConsentCall {
        client: consent
            .client
            .map(|name| visible(&cut(&name, MAX_CLIENT_CHARACTERS))),
        arguments: arguments.collect(),
        reason: consent.reason,
    })
}

/// The same JSON, in which characters that could not be seen are escaped. Below the letters of ASCII,
/// only space between tokens is not escaped already.
fn seen(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut buffer = [0; 4];
    for character in json.chars() {
        let one = &*character.encode_utf8(&mut buffer);
        if character.is_ascii() && character != '\u{7f}' || visible(one) == one {
            text.push(character);
        } else {
            let units = character.encode_utf16(&mut [0; 2]).to_vec();
            text.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// A form without fields: there is only yes or no to it.
fn any() -> RawJson {
    let empty = json!({ "type": "object", "properties": {} });
    RawJson::of(&empty)
        .unwrap_or_else(|_| RawJson::from(serde_json::value::RawValue::NULL.to_owned()))
}

fn unwritable(error: impl std::fmt::Display) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, error.to_string())
}

#[cfg(test)]
mod tests {
    use cocode_gateway::Consent;
    use cocode_wire::RawJson;

    use super::{MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, call};

    fn consent(arguments: &str) -> Consent {
        Consent {
            client: Some("nightly\u{202e}".to_owned()),
            arguments: Some(RawJson::parse(arguments.to_owned()).unwrap()),
            reason: None,
        }
    }

    #[test]
    fn arguments_are_told_as_they_would_be_sent_and_nothing_in_them_hides() {
        let told = call(consent(
            "{\"path\": \"/a\\n\u{202e}\u{e0001}é\", \"n\":12345678901234567890, \"path\":[\n1]}",
        ))
        .unwrap();
        let told_arguments: Vec<_> = told
            .arguments
            .iter()
            .map(|one| (one.name.as_str(), one.value.as_str()))
            .collect();
        assert_eq!(
            told_arguments,
            [
                ("path", r#""/a\n\u202e\udb40\udc01é""#),
                ("n", "12345678901234567890"),
                ("path", "[\n1]"),
            ]
        );
        assert_eq!(told.client.unwrap(), "nightly\\u{202e}");
    }

    #[test]
    fn what_nobody_could_read_is_not_asked_about() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_ARGUMENT_BYTES));
        let many: Vec<String> = (0..=MAX_ARGUMENTS)
            .map(|at| format!("\"{at}\":1"))
            .collect();
        for arguments in [long, format!("{{{}}}", many.join(",")), "[1]".to_owned()] {
            assert!(call(consent(&arguments)).is_err(), "{arguments}");
        }
        for nothing in ["{}", "null"] {
            assert!(call(consent(nothing)).unwrap().arguments.is_empty());
        }
    }
}
