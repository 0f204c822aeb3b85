//! What servers are told of the sandbox, as codex tells it: they know its names for modes and members.

use std::path::PathBuf;

use cocode_core::SandboxMode;
use cocode_wire::RawJson;
use serde_json::{Value, json};

/// What the tools of an agent may touch, for [`Manager::set_sandbox_state`](crate::Manager::set_sandbox_state).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxState {
    /// The mode.
    pub mode: SandboxMode,
    /// Whether commands in the sandbox may use the network.
    pub network: bool,
    /// What may be written besides the directory and the places for temporary files. Counts in
    /// [`SandboxMode::WorkspaceWrite`] alone.
    pub writable_roots: Vec<PathBuf>,
    /// The directory of the agent.
    pub directory: PathBuf,
}

impl SandboxState {
    /// The parameters of `codex/sandbox-state/update`. A path that is no Unicode is told as nearly as it can
    /// be.
    pub fn to_json(&self) -> Result<RawJson, serde_json::Error> {
        RawJson::of(&json!({
            "sandboxPolicy": self.policy(),
            // The helper of codex, which servers would run commands with. We have none.
            "codexLinuxSandboxExe": null,
            "sandboxCwd": self.directory.to_string_lossy(),
            "useLegacyLandlock": false,
        }))
    }

    fn policy(&self) -> Value {
        let kind = self.mode.as_str();
        match self.mode {
            SandboxMode::ReadOnly if self.network => {
                json!({ "type": kind, "network_access": true })
            }
            SandboxMode::ReadOnly | SandboxMode::DangerFullAccess => json!({ "type": kind }),
            SandboxMode::WorkspaceWrite => {
                let roots = self.writable_roots.iter();
                let roots: Vec<_> = roots.map(|root| root.to_string_lossy()).collect();
                json!({
                    "type": kind,
                    "writable_roots": roots,
                    "network_access": self.network,
                    "exclude_tmpdir_env_var": false,
                    "exclude_slash_tmp": false,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(mode: SandboxMode, network: bool) -> Value {
        let state = SandboxState {
            mode,
            network,
            writable_roots: vec!["/extra".into()],
            directory: "/work".into(),
        };
        state.to_json().unwrap().decode().unwrap()
    }

    #[test]
    fn a_workspace_that_is_written_is_told_with_its_roots() {
        assert_eq!(
            told(SandboxMode::WorkspaceWrite, false),
            json!({
                "sandboxPolicy": {
                    "type": "workspace-write",
                    "writable_roots": ["/extra"],
                    "network_access": false,
                    "exclude_tmpdir_env_var": false,
                    "exclude_slash_tmp": false,
                },
                "codexLinuxSandboxExe": null,
                "sandboxCwd": "/work",
                "useLegacyLandlock": false,
            })
        );
    }

    #[test]
    fn the_other_modes_have_no_roots() {
        let policy = |mode, network| told(mode, network)["sandboxPolicy"].clone();
        let read_only = policy(SandboxMode::ReadOnly, false);
        assert_eq!(read_only, json!({ "type": "read-only" }));
        let online = policy(SandboxMode::ReadOnly, true);
        assert_eq!(
            online,
            json!({ "type": "read-only", "network_access": true })
        );
        let free = policy(SandboxMode::DangerFullAccess, true);
        assert_eq!(free, json!({ "type": "danger-full-access" }));
    }
}
