//! What the sandbox of a workspace is to its tools: the confinement of commands, and files that nobody edits
//! by the way.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use cocode_process::Confinement;
use serde_json::Value;

use crate::refusal::Refusal;

/// The most of a justification that is passed on. Nobody reads more before deciding.
const MAX_JUSTIFICATION_CHARS: usize = 1_000;

/// Whether the model is told how to ask for a command outside of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It may ask: `shell` takes `unconfined` and `justification`.
    Offered,
    /// Asking is of no use, and so not offered.
    NotOffered,
}

/// What a model says when it asks for a command outside of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaveRequest {
    /// Why, in the words of the model; not to be trusted.
    pub justification: Option<String>,
}

impl LeaveRequest {
    /// What the arguments of `shell` ask for.
    pub(crate) fn read(arguments: &Value) -> Option<Self> {
        let is_asked = arguments.get("unconfined").and_then(Value::as_bool);
        if is_asked != Some(true) {
            return None;
        }
        let given = arguments.get("justification").and_then(Value::as_str);
        let given = given.map(str::trim).filter(|given| !given.is_empty());
        Some(Self {
            justification: given.map(|given| given.chars().take(MAX_JUSTIFICATION_CHARS).collect()),
        })
    }
}

/// The sandbox that calls run in.
#[derive(Clone, Debug)]
pub(crate) enum Sandbox {
    None,
    Confined(Arc<Confinement>, Leaving),
}

impl Sandbox {
    pub(crate) fn confinement(&self) -> Option<&Confinement> {
        match self {
            Self::None => None,
            Self::Confined(confinement, _) => Some(confinement),
        }
    }

    pub(crate) fn protection(&self) -> Protection {
        match self {
            Self::None => Protection::Off,
            Self::Confined(..) => Protection::On,
        }
    }
}

/// Whether files are protected that decide what other programs do, outside of any sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    On,
    Off,
}

impl Protection {
    /// Refuses a path, relative to the root, of such a file.
    pub(crate) fn check(self, path: &Path) -> Result<(), Refusal> {
        let mut pairs = path.iter().zip(path.iter().skip(1));
        let is_task = pairs.any(|(directory, name)| {
            directory.eq_ignore_ascii_case(".vscode") && name.eq_ignore_ascii_case("tasks.json")
        });
        // A file of this name makes a git directory of the one that it is in, with the `config` there.
        let is_head = path.file_name() == Some("HEAD".as_ref());
        if self == Self::Off || !(is_task || is_head || path.iter().any(is_protected)) {
            return Ok(());
        }
        let shown = crate::text::shown(path);
        Err(Refusal::denied(format!(
            "`{shown}` is protected by the sandbox: other programs run what such files say"
        )))
    }
}

/// Whether a name is that of files whose content other programs run, wherever it is: git, husky, direnv, and cocode
/// itself, which starts servers. Some systems do not tell capitals from small letters.
fn is_protected(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let names = [".git", ".husky", ".envrc", ".mcp.toml", ".mcp.json"];
    names.contains(&name.as_str()) || name.starts_with(".cocode")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_that_others_obey_are_protected_wherever_they_are() {
        for path in [
            ".git",
            ".git/hooks/pre-commit",
            "vendored/.git/config",
            ".GIT/config",
            ".mcp.toml",
            "sub/.mcp.json",
            ".cocode/config.toml",
            ".cocode.local.toml",
            ".envrc",
            ".husky/pre-commit",
            "sub/.vscode/tasks.json",
            ".VSCode/TASKS.json",
            "HEAD",
            "sub/HEAD",
        ] {
            let path = Path::new(path);
            let refusal = Protection::On.check(path).expect_err("it is protected");
            assert!(refusal.is_denial(), "{refusal}");
            assert_eq!(Protection::Off.check(path), Ok(()));
        }
        for path in [
            "",
            "src/main.rs",
            ".gitignore",
            ".github/ci.yml",
            "git",
            ".vscode/settings.json",
            "mcp.toml",
        ] {
            assert_eq!(Protection::On.check(Path::new(path)), Ok(()), "{path}");
        }
    }

    #[test]
    fn only_who_asks_asks_to_leave() {
        let read = |arguments: Value| LeaveRequest::read(&arguments);
        for arguments in [
            json!({}),
            json!(null),
            json!({ "unconfined": false, "justification": "x" }),
            json!({ "unconfined": "true" }),
        ] {
            assert_eq!(read(arguments), None);
        }
        let why = |arguments| read(arguments).expect("it is asked").justification;
        assert_eq!(why(json!({ "unconfined": true })), None);
        let given = json!({ "unconfined": true, "justification": " to install " });
        assert_eq!(why(given).as_deref(), Some("to install"));
        let long = json!({ "unconfined": true, "justification": "ä".repeat(5_000) });
        let kept = why(long).map(|kept| kept.chars().count());
        assert_eq!(kept, Some(MAX_JUSTIFICATION_CHARS));
    }
}
