//! What became of a turn, and how the caller is told.

use cocode_wire::{RawJson, RpcError, code};
use serde_json::{Value, json};

use super::answers::refused;
use super::tools::{BEGIN, REPLY};
use crate::conversation::TurnEnd;
use crate::store::ConversationId;

/// Where the result of a call says what it took.
const USAGE: &str = "cocode/usage";

/// What became of a turn.
#[derive(Debug)]
pub(super) enum Finished {
    /// It was not even begun, and this is for the model, who can mend that.
    Refused(String),
    /// Something is broken that no caller can mend.
    Broken {
        id: Option<ConversationId>,
        why: String,
    },
    /// It has ended.
    Ended {
        id: ConversationId,
        end: Box<TurnEnd>,
    },
}

impl Finished {
    /// As the result of the tool that was called.
    pub(super) fn into_result(self, tool: &str) -> Result<Value, RpcError> {
        match self {
            Self::Refused(text) => Ok(refused(&text)),
            Self::Broken { id, why } => {
                let data = id.map(|id| json!({ "session_id": id.as_str() }));
                Err(RpcError {
                    code: code::INTERNAL_ERROR,
                    message: why,
                    data: data.and_then(|data| RawJson::of(&data).ok()),
                })
            }
            Self::Ended { id, end } => Ok(ended(&id, &end, tool)),
        }
    }
}

fn ended(id: &ConversationId, end: &TurnEnd, tool: &str) -> Value {
    let problem = end.ending.problem();
    let response = match &problem {
        None => end.text.clone(),
        Some(problem) => {
            let note = format!(
                "[The turn is not done: {problem}. The conversation goes on with `{REPLY}` and the \
                 session_id {id}.]"
            );
            let said = end.text.trim_end();
            let gap = if said.is_empty() { "" } else { "\n\n" };
            format!("{said}{gap}{note}")
        }
    };
    let mut structured = json!({ "response": response });
    if tool == BEGIN {
        structured["session_id"] = id.as_str().into();
    }
    json!({
        "content": [{ "type": "text", "text": response }],
        "structuredContent": structured,
        "isError": problem.is_some(),
        "_meta": {
            USAGE: {
                "session_id": id.as_str(),
                "ending": end.ending.word(),
                "steps": end.steps,
                "input_tokens": end.usage.input,
                "output_tokens": end.usage.output,
                "cache_read_tokens": end.usage.cache_read,
                "cache_write_tokens": end.usage.cache_write,
                "cost_usd": end.cost,
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::Finished;
    use crate::conversation::TurnEnd;
    use crate::model::Usage;
    use crate::record::Ending;

    fn ended(ending: Ending, tool: &str) -> serde_json::Value {
        let finished = Finished::Ended {
            id: "0f8fad5b-d9cb-469f-a165-70867728950e".parse().unwrap(),
            end: Box::new(TurnEnd {
                ending,
                text: "so far".into(),
                steps: 3,
                usage: Usage::default(),
                cost: Some(0.5),
            }),
        };
        finished.into_result(tool).unwrap()
    }

    #[test]
    fn every_ending_but_done_is_an_error_that_names_the_conversation() {
        for (ending, word, told) in [
            (Ending::Refused(Some("no".into())), "refused", "no."),
            (Ending::Interrupted, "interrupted", "interrupted"),
            (Ending::TooManySteps(9), "too_many_steps", "9 steps"),
            (Ending::Looping, "looping", "again and again"),
            (
                Ending::Failed("it broke.".into()),
                "failed",
                "it broke. The",
            ),
        ] {
            for tool in ["cocode", "cocode-reply"] {
                let result = ended(ending.clone(), tool);
                assert_eq!(result["isError"], true);
                let text = result["content"][0]["text"].as_str().unwrap();
                assert!(
                    text.starts_with("so far\n\n[The turn is not done"),
                    "{text}"
                );
                assert!(text.contains(told), "{text}");
                assert!(text.contains("0f8fad5b-d9cb"), "{text}");
                assert_eq!(result["_meta"]["cocode/usage"]["ending"], word);
                assert_eq!(result["structuredContent"]["response"], text);
            }
        }
    }

    #[test]
    fn only_the_first_tool_names_the_conversation_in_its_output() {
        let begun = ended(Ending::Done, "cocode");
        assert_eq!(begun["isError"], false);
        assert_eq!(begun["content"][0]["text"], "so far");
        assert_eq!(
            begun["structuredContent"]["session_id"],
            "0f8fad5b-d9cb-469f-a165-70867728950e"
        );
        assert_eq!(begun["_meta"]["cocode/usage"]["cost_usd"], 0.5);
        let gone_on = ended(Ending::Done, "cocode-reply");
        assert!(gone_on["structuredContent"].get("session_id").is_none());
    }
}
