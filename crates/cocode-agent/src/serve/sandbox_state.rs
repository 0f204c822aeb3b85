//! What a client says its own sandbox allows (`codex/sandbox-state/update`): a ceiling for every
//! conversation that it has here from then on.

use cocode_core::SandboxMode;
use serde_json::Value;

/// The mode in such a message. Who says something that is not understood gets the least.
pub(super) fn ceiling(params: Option<&Value>) -> SandboxMode {
    let policy =
        params.and_then(|params| params.get("sandboxPolicy").or_else(|| params.get("policy")));
    let word = match policy {
        Some(Value::String(word)) => Some(word.as_str()),
        Some(policy) => {
            let named = policy.get("type").or_else(|| policy.get("mode"));
            named.and_then(Value::as_str)
        }
        None => None,
    };
    let mode = word.and_then(|word| word.parse().ok());
    mode.unwrap_or_else(|| {
        tracing::warn!(
            ?word,
            "the sandbox of the client is not understood, and counts as read-only"
        );
        SandboxMode::ReadOnly
    })
}

#[cfg(test)]
mod tests {
    use cocode_core::SandboxMode;
    use serde_json::json;

    use super::ceiling;

    #[test]
    fn the_mode_is_found_however_the_policy_is_written() {
        let policy = |policy: serde_json::Value| ceiling(Some(&json!({ "sandboxPolicy": policy })));
        assert_eq!(
            policy(json!({ "type": "workspace-write", "writable_roots": [] })),
            SandboxMode::WorkspaceWrite
        );
        assert_eq!(
            policy(json!({ "mode": "danger-full-access" })),
            SandboxMode::DangerFullAccess
        );
        assert_eq!(policy(json!("read-only")), SandboxMode::ReadOnly);
    }

    #[test]
    fn what_is_not_understood_allows_the_least() {
        assert_eq!(
            ceiling(Some(&json!({ "sandboxPolicy": "wide-open" }))),
            SandboxMode::ReadOnly
        );
        assert_eq!(ceiling(Some(&json!({}))), SandboxMode::ReadOnly);
        assert_eq!(ceiling(None), SandboxMode::ReadOnly);
    }
}
