//! Picks from the JSON of a result with a filter in the language of jq.

mod filter;

use cocode_client::{Content, ResourceContents, ResultStore, StoredResult};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::read;
use crate::args::results::JqArgs;
use crate::error::{CliError, Code, Exit};
use crate::workspace::Workspace;

use filter::{FilterError, Form, Limits, evaluate};

/// What the program may take up while a filter runs.
const MAX_MEMORY_BYTES: u64 = 4 * 1024 * 1024 * 1024;

pub(super) fn run(
    args: &JqArgs,
    store: &ResultStore,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let JqArgs {
        handle,
        filter,
        raw_output,
        compact_output,
        whole,
    } = args;
    let printer = &workspace.printer;
    let stored = read(handle, store)?;
    let inputs = if *whole {
        vec![stored.raw.as_str().to_owned()]
    } else {
        inputs(&stored)
    };
    let form = Form {
        unquoted: *raw_output && !printer.json(),
        one_line: *compact_output || printer.json(),
    };
    bound_memory();
    let mut outputs = evaluate(filter, inputs, form, Limits::default());
    outputs.try_for_each(|output| {
        let output = output.map_err(|error| failed(&error))?;
        // Texts that were joined from bytes need not be UTF-8.
        match String::from_utf8(output) {
            Ok(text) => printer.out(printer.for_stdout(text)),
            Err(bytes) if printer.stdout_is_terminal() => {
                let text = String::from_utf8_lossy(bytes.as_bytes());
                printer.out(printer.for_stdout(text.into_owned()))
            }
            Err(bytes) => printer.out(bytes.as_bytes()),
        }
    })?;
    Ok(Exit::Ok)
}

/// Keeps a filter that collects without end from taking the memory of everybody else. The program
/// does nothing but filter from here on.
fn bound_memory() {
    let Rlimit { current, maximum } = getrlimit(Resource::As);
    let allowed = current.map_or(MAX_MEMORY_BYTES, |current| current.min(MAX_MEMORY_BYTES));
    let bound = Rlimit {
        current: Some(allowed),
        maximum,
    };
    if let Err(error) = setrlimit(Resource::As, bound) {
        tracing::debug!(%error, "memory is not bounded");
    }
}

fn failed(error: &FilterError) -> CliError {
    let told = CliError::new(Code::InvalidFilter, error.to_string());
    match error {
        FilterError::Written(reasons) => {
            let mut told = told;
            told.causes.extend(reasons.iter().cloned());
            told
        }
        FilterError::Failed(reason) => {
            let mut told = told;
            told.causes.push(reason.clone());
            told.hint("`keys`, `type` and `.[0]` tell what the JSON looks like")
        }
        FilterError::TooMuch { .. } => told.hint("`limit(N; FILTER)` gives only the first values"),
        FilterError::TooSlow { .. } | FilterError::Crashed => told,
        FilterError::NoThread(source) => told.because(source),
    }
}

/// What is filtered: the structured content, or else texts that are JSON, or else all of it.
fn inputs(stored: &StoredResult) -> Vec<String> {
    let result = stored.result();
    let structured = result.structured().filter(|raw| raw.as_str() != "null");
    if let Some(structured) = structured {
        return vec![structured.as_str().to_owned()];
    }
    let texts = result
        .content()
        .into_iter()
        .filter_map(|block| match block {
            Content::Text(text)
            | Content::Embedded(ResourceContents {
                text: Some(text), ..
            }) => Some(text),
            _ => None,
        });
    let mut inputs: Vec<String> = texts.filter(|text| is_json(text)).collect();
    if inputs.is_empty() {
        inputs.push(stored.raw.as_str().to_owned());
    }
    inputs
}

/// Whether a text is an object or list. A number or a word alone is more likely meant as text.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use cocode_client::{RawJson, StoredResult};

    use super::inputs;

    #[test]
    fn the_input_is_the_json_that_the_result_is_about() {
        for (raw, expected) in [
            (
                r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"b": 2}}"#,
                &[r#"{"b": 2}"#][..],
            ),
            (
                r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":null}"#,
                &[r#"{"a":1}"#],
            ),
            (
                r#"{"content":[{"type":"text","text":"Two:"},{"type":"text","text":"[1]"},{"type":"resource","resource":{"uri":"u","text":"[2]"}}]}"#,
                &["[1]", "[2]"],
            ),
            (
                r#"{"content":[{"type":"text","text":"12"}]}"#,
                &[r#"{"content":[{"type":"text","text":"12"}]}"#],
            ),
            (
                r#"{"content":[{"type":"text","text":"{broken"}]}"#,
                &[r#"{"content":[{"type":"text","text":"{broken"}]}"#],
            ),
        ] {
            let stored = StoredResult {
                handle: "r0123456789".parse().unwrap(),
                server: String::new(),
                tool: String::new(),
                kept_at: SystemTime::UNIX_EPOCH,
                raw: RawJson::parse(raw).unwrap(),
            };
            assert_eq!(inputs(&stored), expected, "{raw}");
        }
    }
}
