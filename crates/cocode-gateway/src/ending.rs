//! How calls end that were answered with a task: told when somebody first hears of it.

use std::sync::Arc;

use cocode_core::ServerName;
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;

use crate::deeds::says_failed;
use crate::oversight::{Deed, Outcome, Overseer};

/// Who is to be told how a call ended, and what it was.
pub(crate) struct Ending {
    pub(crate) overseer: Arc<dyn Overseer>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) server: ServerName,
    pub(crate) client: Option<String>,
}

/// What became of a task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It has come to its end by itself.
    Ended(Outcome),
    /// Its client did not want it any more.
    Cancelled,
}

impl Ending {
    /// Tells what became of a task, which `method` has said. It is over, whatever the overseer thinks of
    /// it: gives this back if nothing could be written down, to be told the next time.
    pub(crate) fn tell(self, method: &str, task: &str, tool: &str, fate: Fate) -> Result<(), Self> {
        let arguments = RawJson::of(task).ok();
        let begun = self.overseer.begin(&Deed {
            principal: self.principal.as_deref(),
            method,
            server: Some(&self.server),
            is_served: true,
            goes_on: true,
            name: tool,
            arguments: arguments.as_ref(),
            client: self.client.as_deref(),
        });
        match (begun, fate) {
            (Ok(ongoing), Fate::Ended(outcome)) => ongoing.ended(outcome),
            (Ok(ongoing), Fate::Cancelled) => drop(ongoing),
            (Err(error), _) => {
                tracing::debug!(server = %self.server, %error, "the end of a task is not told");
                return Err(self);
            }
        }
        Ok(())
    }
}

impl Fate {
    /// What a task says of itself, if it says that it is over. In the newer era it has its result or its
    /// error with it; in the other, one that has failed is a tool that has.
    pub(crate) fn of(whole: &RawJson, task: &Members<'_>) -> Option<Self> {
        let status = task.get("status")?;
        let result = task.get("result").map(|result| whole.share(result));
        let bytes = result.as_ref().map_or(0, |result| result.as_bytes().len());
        Some(match status.get() {
            "\"completed\"" if result.as_ref().is_some_and(says_failed) => {
                Self::Ended(Outcome::ToolError { bytes })
            }
            "\"completed\"" => Self::Ended(Outcome::Ok { bytes }),
            "\"failed\"" => Self::Ended(match task.get("error") {
                Some(error) => failure(&whole.share(error)),
                None => Outcome::ToolError { bytes },
            }),
            "\"cancelled\"" => Self::Cancelled,
            _ => return None,
        })
    }
}

/// The error of a task, as far as it is one.
fn failure(error: &RawJson) -> Outcome {
    #[derive(Deserialize)]
    struct Said {
        code: i64,
        #[serde(default)]
        message: String,
    }
    let said: Result<Said, _> = error.decode();
    let odd = |_| RpcError::new(code::INTERNAL_ERROR, "the task failed");
    let error = said.map_or_else(odd, |said| RpcError::new(said.code, said.message));
    Outcome::Error {
        code: error.code,
        message: error.message,
    }
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;
    use cocode_wire::members::Members;

    use super::Fate;
    use crate::oversight::Outcome;

    fn fate(task: &str) -> Option<Fate> {
        let task = RawJson::parse(task.to_owned()).unwrap();
        let members = task.decode::<Members<'_>>().unwrap();
        Fate::of(&task, &members)
    }

    #[test]
    fn a_task_says_how_it_ended_in_either_era() {
        let ended = |outcome| Some(Fate::Ended(outcome));
        let error = |code, message: &str| {
            let message = message.to_owned();
            ended(Outcome::Error { code, message })
        };
        for (task, expected) in [
            ("{}", None),
            (r#"{"status":"working"}"#, None),
            (r#"{"status":"input_required"}"#, None),
            (r#"{"status":"completed"}"#, ended(Outcome::Ok { bytes: 0 })),
            (
                r#"{"status":"completed","result":{"a":1}}"#,
                ended(Outcome::Ok { bytes: 7 }),
            ),
            (
                r#"{"status":"completed","result":{"isError":true}}"#,
                ended(Outcome::ToolError { bytes: 16 }),
            ),
            (
                r#"{"status":"failed"}"#,
                ended(Outcome::ToolError { bytes: 0 }),
            ),
            (
                r#"{"status":"failed","error":{"code":-5,"message":"no"}}"#,
                error(-5, "no"),
            ),
            (
                r#"{"status":"failed","error":"no"}"#,
                error(-32603, "the task failed"),
            ),
            (r#"{"status":"cancelled"}"#, Some(Fate::Cancelled)),
        ] {
            assert_eq!(fate(task), expected, "{task}");
        }
    }
}
