//! Completion of prompt and resource template arguments, and the check that a server is alive.

use std::collections::BTreeMap;
use std::time::Duration;

use cocode_wire::RawJson;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::error::RequestError;
use crate::options::RequestOptions;
use crate::session::Session;
use cocode_core::Era;

/// Whose argument is to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionTarget {
    /// A prompt, by name.
    Prompt(String),
    /// A resource template, by its URI template.
    Resource(String),
}

/// What an argument could become.
#[derive(Clone, Debug)]
pub struct Completion {
    /// Candidates, best first.
    pub values: Vec<String>,
    /// How many there are in all, if the server says.
    pub total: Option<u64>,
    /// Whether there are more.
    pub has_more: bool,
    /// The result as it came.
    pub raw: RawJson,
}

#[derive(Deserialize)]
struct Wire {
    completion: Candidates,
}

#[derive(Deserialize)]
struct Candidates {
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    total: Option<u64>,
    #[serde(default, rename = "hasMore")]
    has_more: Option<bool>,
}

impl Session {
    /// Candidates for the argument `name`, of which `value` is typed so far; `others` are the
    /// arguments that are known already.
    pub async fn complete(
        &self,
        target: &CompletionTarget,
        name: &str,
        value: &str,
        others: &BTreeMap<String, String>,
    ) -> Result<Completion, RequestError> {
        let method = "completion/complete";
        let unexpected = |error: serde_json::Error| RequestError::Unexpected {
            method: method.to_owned(),
            reason: error.to_string(),
        };
        let reference = match target {
            CompletionTarget::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
            CompletionTarget::Resource(uri) => json!({ "type": "ref/resource", "uri": uri }),
        };
        let mut params = json!({ "ref": reference, "argument": { "name": name, "value": value } });
        if !others.is_empty() {
            params["context"] = json!({ "arguments": others });
        }
        let params = RawJson::of(&params).map_err(unexpected)?;
        let raw = self
            .request(method, Some(&params), RequestOptions::default())
            .await?;
        let Wire {
            completion:
                Candidates {
                    values,
                    total,
                    has_more,
                },
        } = raw.decode().map_err(unexpected)?;
        Ok(Completion {
            values,
            total,
            has_more: has_more.unwrap_or(false),
            raw,
        })
    }

    /// Asks the server for a sign of life, and says how long it took: `ping`, or `server/discover`
    /// where there is no ping any more.
    pub async fn ping(&self, options: RequestOptions) -> Result<Duration, RequestError> {
        let method = match self.server().era() {
            Era::Legacy => "ping",
            Era::Modern => "server/discover",
        };
        let begun = Instant::now();
        self.request(method, None, options).await?;
        Ok(begun.elapsed())
    }
}
