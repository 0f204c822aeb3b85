//! What the program says when it fails: an exit code, a stable code that `cocode explain`
//! explains, the chain of causes, and hints.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::text::{plain, plain_lines};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok = 0,
    /// The tool reported an error, or the server refused to call it, or what was checked is not in order.
    Tool = 1,
    /// The command line, a file or a setting is wrong.
    Usage = 2,
    /// No connection, or a server that failed.
    Server = 3,
    /// The server wants credentials.
    Auth = 4,
    /// Something took too long.
    Timeout = 5,
    /// The organization, a rule or a missing approval does not let it happen.
    Blocked = 6,
    /// The terminal is gone: SIGHUP.
    HungUp = 129,
    /// Somebody pressed Ctrl-C.
    Interrupted = 130,
    /// The program was told to end: SIGTERM.
    Terminated = 143,
}

/// The stable names of errors that arise in this program. Those of the library are in
/// [`cocode_client::ERROR_CODES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    AddressInUse,
    AlreadyThere,
    AuditBroken,
    BlockedByPolicy,
    ConversationFailed,
    DaemonLost,
    DaemonUnavailable,
    FileError,
    GatewayRefused,
    GatewayUnavailable,
    Interrupted,
    InvalidArguments,
    InvalidConfig,
    InvalidFilter,
    InvalidTarget,
    InvalidUsage,
    ListenRefused,
    LoginFailed,
    ModelFailed,
    NoGateway,
    NoModel,
    NotCached,
    PendingTrust,
    PermissionDenied,
    SecretUnavailable,
    ServerDisabled,
    SetupFailed,
    StoreUnavailable,
    ToolError,
    TurnFailed,
    UnknownPrompt,
    UnknownResult,
    UnknownServer,
    UnknownToken,
    UnknownTool,
    UnusableTool,
}

impl Code {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 36] = [
        Self::AddressInUse,
        Self::AlreadyThere,
        Self::AuditBroken,
        Self::BlockedByPolicy,
        Self::ConversationFailed,
        Self::DaemonLost,
        Self::DaemonUnavailable,
        Self::FileError,
        Self::GatewayRefused,
        Self::GatewayUnavailable,
        Self::Interrupted,
        Self::InvalidArguments,
        Self::InvalidConfig,
        Self::InvalidFilter,
        Self::InvalidTarget,
        Self::InvalidUsage,
        Self::ListenRefused,
        Self::LoginFailed,
        Self::ModelFailed,
        Self::NoGateway,
        Self::NoModel,
        Self::NotCached,
        Self::PendingTrust,
        Self::PermissionDenied,
        Self::SecretUnavailable,
        Self::ServerDisabled,
        Self::SetupFailed,
        Self::StoreUnavailable,
        Self::ToolError,
        Self::TurnFailed,
        Self::UnknownPrompt,
        Self::UnknownResult,
        Self::UnknownServer,
        Self::UnknownToken,
        Self::UnknownTool,
        Self::UnusableTool,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::AddressInUse => "address-in-use",
            Self::AlreadyThere => "already-there",
            Self::AuditBroken => "audit-broken",
            Self::BlockedByPolicy => "blocked-by-policy",
            Self::ConversationFailed => "conversation-failed",
            Self::DaemonLost => "daemon-lost",
            Self::DaemonUnavailable => "daemon-unavailable",
            Self::FileError => "file-error",
            Self::GatewayRefused => "gateway-refused",
            Self::GatewayUnavailable => "gateway-unavailable",
            Self::Interrupted => "interrupted",
            Self::InvalidArguments => "invalid-arguments",
            Self::InvalidConfig => "invalid-config",
            Self::InvalidFilter => "invalid-filter",
            Self::InvalidTarget => "invalid-target",
            Self::InvalidUsage => "invalid-usage",
            Self::ListenRefused => "listen-refused",
            Self::LoginFailed => "login-failed",
            Self::ModelFailed => "model-failed",
            Self::NoGateway => "no-gateway",
            Self::NoModel => "no-model",
            Self::NotCached => "not-cached",
            Self::PendingTrust => "pending-trust",
            Self::PermissionDenied => "permission-denied",
            Self::SecretUnavailable => "secret-unavailable",
            Self::ServerDisabled => "server-disabled",
            Self::SetupFailed => "setup-failed",
            Self::StoreUnavailable => "store-unavailable",
            Self::ToolError => "tool-error",
            Self::TurnFailed => "turn-failed",
            Self::UnknownPrompt => "unknown-prompt",
            Self::UnknownResult => "unknown-result",
            Self::UnknownServer => "unknown-server",
            Self::UnknownToken => "unknown-token",
            Self::UnknownTool => "unknown-tool",
            Self::UnusableTool => "unusable-tool",
        }
    }

    fn exit(self) -> Exit {
        match self {
            Self::AuditBroken | Self::ToolError | Self::TurnFailed => Exit::Tool,
            Self::Interrupted => Exit::Interrupted,
            Self::BlockedByPolicy | Self::PendingTrust | Self::PermissionDenied => Exit::Blocked,
            Self::LoginFailed | Self::SecretUnavailable => Exit::Auth,
            Self::DaemonLost
            | Self::DaemonUnavailable
            | Self::GatewayRefused
            | Self::GatewayUnavailable
            | Self::ModelFailed
            | Self::NoGateway
            | Self::StoreUnavailable => Exit::Server,
            Self::AddressInUse
            | Self::AlreadyThere
            | Self::ConversationFailed
            | Self::FileError
            | Self::InvalidConfig
            | Self::ServerDisabled
            | Self::UnknownServer
            | Self::InvalidArguments
            | Self::InvalidFilter
            | Self::InvalidTarget
            | Self::InvalidUsage
            | Self::ListenRefused
            | Self::NoModel
            | Self::NotCached
            | Self::SetupFailed
            | Self::UnknownPrompt
            | Self::UnknownResult
            | Self::UnknownToken
            | Self::UnknownTool
            | Self::UnusableTool => Exit::Usage,
        }
    }
}

/// Causes of the HTTP client that say nothing where another cause follows.
const EMPTY_TALK: [&str; 3] = [
    "error sending request",
    "client error (Connect)",
    "tcp connect error",
];

/// Why the program could not do what it was asked.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// What led to it, nearest first.
    pub(crate) causes: Vec<String>,
    pub(crate) hints: Vec<String>,
    /// The last lines that the server wrote to its stderr.
    pub(crate) stderr: Vec<String>,
    /// The first lines that the server sent which were no messages.
    pub(crate) noise: Vec<String>,
    /// The error object that the server answered with, for scripts.
    pub(crate) rpc: Option<Box<RpcDetails>>,
}

/// A JSON-RPC error as the server sent it.
#[derive(Debug, Serialize)]
pub(crate) struct RpcDetails {
    pub(crate) code: i64,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Box<RawValue>>,
}

impl CliError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self::with(code.exit(), code.as_str(), message)
    }

    pub(crate) fn with(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            stderr: Vec::new(),
            noise: Vec::new(),
            rpc: None,
        }
    }

    /// A file that cannot be read or written, with the path.
    pub(crate) fn file(action: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let message = format!("cannot {action} `{}`", path.display());
        Self::new(Code::FileError, message).because(error)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds an error and everything that caused it.
    #[must_use]
    pub(crate) fn because(mut self, error: &dyn std::error::Error) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            let text = error.to_string();
            next = error.source();
            // Some errors only repeat what caused them, or say less than that.
            let last = self.causes.last();
            let repeats = last.is_some_and(|last| last.contains(&text));
            let is_empty_talk = || EMPTY_TALK.iter().any(|talk| text.starts_with(talk));
            if !repeats && (next.is_none() || !is_empty_talk()) {
                self.causes.push(text);
            }
        }
        self
    }

    /// One JSON object, for scripts.
    pub(crate) fn to_json(&self) -> String {
        let Self {
            exit,
            code,
            message,
            causes,
            hints,
            stderr,
            noise,
            rpc,
        } = self;
        let wire = ErrorObject {
            error: ErrorWire {
                code,
                message,
                causes,
                hints,
                exit: *exit as u8,
                rpc: rpc.as_deref(),
                stderr,
                noise,
            },
        };
        serde_json::to_string(&wire)
            .unwrap_or_else(|_| format!(r#"{{"error":{{"code":"{code}"}}}}"#))
    }

    /// Lines for people, without color. The first is the message.
    pub(crate) fn to_lines(&self) -> Vec<String> {
        let Self {
            exit: _,
            code,
            message,
            causes,
            hints,
            stderr,
            noise,
            rpc: _,
        } = self;
        let mut lines = vec![plain(message)];
        for cause in causes {
            lines.push(format!("  caused by: {}", plain(cause)));
        }
        for (title, quoted) in [
            ("the server sent lines that are no messages:", noise),
            ("the last lines that the server wrote to stderr:", stderr),
        ] {
            if !quoted.is_empty() {
                lines.push(format!("  {title}"));
                let shown = quoted.iter().flat_map(|line| plain_lines(line));
                lines.extend(shown.map(|line| format!("    | {line}")));
            }
        }
        for hint in hints {
            lines.push(format!("  hint: {}", plain(hint)));
        }
        lines.push(format!("  code: {code} (cocode explain {code})"));
        lines
    }
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    error: ErrorWire<'a>,
}

#[derive(Serialize)]
struct ErrorWire<'a> {
    code: &'a str,
    message: &'a str,
    causes: &'a [String],
    hints: &'a [String],
    exit: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    rpc: Option<&'a RpcDetails>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stderr: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    noise: &'a [String],
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
