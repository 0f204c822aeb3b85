//! What the server says about itself, and results as the two eras have them.

use cocode_client::SANDBOX_STATE_CAPABILITY;
use cocode_core::{Era, Revision};
use serde_json::{Map, Value, json};

use super::request::revisions;
use super::tools;

/// How long clients may rely on what never changes while this process lives.
pub(super) const FIXED_TTL_MS: u64 = 5 * 60 * 1000;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

const INSTRUCTIONS: &str = "An agent that works in a directory with tools of its own. `cocode` gives it \
    a task and returns its answer and a session_id; `cocode-reply` goes on with that conversation. The \
    resources are the conversations.";

/// The result of `initialize`.
pub(super) fn initialized(revision: Revision) -> Value {
    json!({
        "protocolVersion": revision.as_str(),
        "capabilities": capabilities(),
        "serverInfo": info(),
        "instructions": INSTRUCTIONS,
    })
}

/// The result of `server/discover`.
pub(super) fn discovered() -> Value {
    let result = json!({
        "supportedVersions": revisions(),
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
    });
    cacheable(result, Era::Modern, FIXED_TTL_MS)
}

/// The result of `tools/list`.
pub(super) fn tools_listed(era: Era) -> Value {
    cacheable(json!({ "tools": tools::definitions() }), era, FIXED_TTL_MS)
}

/// A result that clients may keep, for themselves.
pub(super) fn cacheable(mut result: Value, era: Era, ttl_ms: u64) -> Value {
    if era == Era::Modern
        && let Some(members) = result.as_object_mut()
    {
        members.insert("ttlMs".to_owned(), ttl_ms.into());
        members.insert("cacheScope".to_owned(), "private".into());
    }
    result
}

/// The result of a call that was not even begun: for the model, who can mend that.
pub(super) fn refused(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true })
}

/// A result that asks for these before the request is done, and is to be brought back with that.
pub(super) fn input_required(asked: &Map<String, Value>, handle: &str) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": asked,
        "requestState": handle,
    })
}

/// A result as an era has it.
pub(super) fn of_era(result: Value, era: Era) -> Value {
    match (result, era) {
        (Value::Object(mut members), Era::Modern) => {
            let kind = members.entry("resultType");
            kind.or_insert_with(|| "complete".into());
            let meta = members.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert(SERVER_INFO.to_owned(), info());
            }
            Value::Object(members)
        }
        (result, _) => result,
    }
}

/// What the server offers. Lists that change are not announced: their results say how long they are
/// good for.
fn capabilities() -> Value {
    json!({
        "tools": {},
        "resources": {},
        "prompts": {},
        "experimental": { SANDBOX_STATE_CAPABILITY: {} },
    })
}

fn info() -> Value {
    json!({
        "name": "cocode",
        "title": "The cocode agent",
        "version": env!("CARGO_PKG_VERSION"),
    })
}
