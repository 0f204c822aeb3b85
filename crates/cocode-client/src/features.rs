//! What a server offers, typed: one file for each feature of the protocol.

mod completion;
mod content;
mod prompts;
mod resources;
mod tools;

pub use completion::{Completion, CompletionTarget};
pub use content::{Content, ResourceContents};
pub use prompts::{Prompt, PromptArgument, PromptMessage, PromptResult};
pub use resources::{ReadResult, Resource, ResourceTemplate};
pub use tools::{Annotations, CallResult, Tool};

use std::borrow::Cow;

use cocode_wire::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The name or URI that a request is about, for those methods whose header repeats it.
pub(crate) fn name_in(method: &str, params: Option<&RawJson>) -> Option<String> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow, default)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        uri: Option<Cow<'a, str>>,
        #[serde(borrow, default, rename = "taskId")]
        task: Option<Cow<'a, str>>,
    }
    let is_about_something = matches!(method, "tools/call" | "prompts/get" | "resources/read");
    if !is_about_something && !method.starts_with("tasks/") {
        return None;
    }
    let named: Named<'_> = params?.decode().ok()?;
    let name = named.name.or(named.uri).or(named.task);
    name.map(Cow::into_owned)
}

/// A string, or nothing where a server put something else.
fn lenient_string(value: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(value?.get()).ok()
}

/// Parameters that are a JSON object with something in it, and this `_meta` besides.
fn with_meta(mut params: String, meta: Option<&RawJson>) -> String {
    if let Some(meta) = meta
        && params.ends_with('}')
    {
        params.pop();
        params.push_str(",\"_meta\":");
        params.push_str(meta.as_str());
        params.push('}');
    }
    params
}
