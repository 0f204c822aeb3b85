//! Why a server cannot be used, or has not done what it was asked: from the errors of the manager to
//! errors with exit codes, causes and hints.

use std::time::Duration;

use cocode_auth::oauth::gateway_token_hints;
use cocode_client::{
    CallError, Cause, Closed, ConnectError, CredentialsErrorKind, LinkError, OpenError, ReachError,
    RequestError, ServerState, Trouble,
};
use cocode_core::{Protocol, Reach, Sandbox, ServerSpec};

use crate::admission::Way;
use crate::error::{CliError, Code, Exit};
use crate::hints::{self, Doing};
use crate::target::is_address;
use crate::text::{duration, plain};

/// How far an attempt to connect came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Secrets were being looked up.
    Secrets,
    /// The program was being started, or the address contacted.
    Connect,
    /// The two were getting to know each other.
    Handshake,
}

/// Why there is no session, and how far it came.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) phase: Phase,
    pub(crate) error: CliError,
}

/// What errors of one server have to tell of it.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// How the server is called.
    pub(crate) shown: String,
    /// The user chose what to speak on the command line.
    pub(crate) protocol_chosen: bool,
    /// The specification of a server that stands in a file.
    pub(crate) configured: Option<ServerSpec>,
    /// The option of this command that allows more time for connecting.
    pub(crate) more_time: &'static str,
    /// That time.
    pub(crate) limit: Duration,
}

impl About {
    /// A server that stands in a file.
    pub(crate) fn configured(spec: &ServerSpec, more_time: &'static str) -> Self {
        Self {
            shown: spec.name.to_string(),
            protocol_chosen: false,
            configured: Some(spec.clone()),
            more_time,
            limit: spec.connect_timeout,
        }
    }

    /// The server as it is written on a command line.
    pub(crate) fn in_words(&self) -> String {
        match &self.configured {
            Some(spec) => spec.name.to_string(),
            None if is_address(&self.shown) => format!("--url {}", self.shown),
            None => "-- COMMAND".to_owned(),
        }
    }

    /// Says why something was not done.
    pub(crate) fn told(&self, error: &CallError, doing: Doing) -> CliError {
        match error {
            CallError::Request { error, .. } | CallError::Asking { error, .. } => {
                let told = hints::request_error(error, doing);
                match error {
                    RequestError::Link {
                        error: LinkError::AuthRequired(_),
                        ..
                    } => self.for_configured(told),
                    _ => told,
                }
            }
            CallError::Unavailable { state, .. } => self.unavailable(error, state).error,
            CallError::Arguments { tool, mismatch, .. } => {
                let message = format!(
                    "the arguments do not fit the tool `{}`",
                    plain(tool.as_str())
                );
                let mut told = CliError::new(Code::InvalidArguments, message);
                let problems = mismatch.problems().iter().map(ToString::to_string);
                told.causes = problems.collect();
                if mismatch.has_more() {
                    told.causes.push("and more".into());
                }
                told.hint("`--no-check` sends them nevertheless")
            }
            CallError::UnknownTool { near, .. } => {
                let told = CliError::new(Code::UnknownTool, error.to_string());
                let near: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
                if near.is_empty() {
                    return told;
                }
                told.hint(format!("did you mean {}?", crate::text::either(&near)))
            }
            CallError::UnknownServer { .. } => {
                CliError::new(Code::UnknownServer, error.to_string())
            }
            other => CliError::with(Exit::Server, other.code(), other.to_string()),
        }
    }

    /// Says why there is no session, and how far it came.
    pub(crate) fn failure(&self, error: &CallError) -> Failure {
        match error {
            CallError::Unavailable { state, .. } => self.unavailable(error, state),
            other => Failure {
                phase: Phase::Connect,
                error: self.told(other, Doing::Other),
            },
        }
    }

    /// Says what is wrong with a server.
    pub(crate) fn trouble(&self, trouble: &Trouble) -> Failure {
        match &trouble.cause {
            Cause::Reach(error) => Failure {
                phase: Phase::Secrets,
                error: self.unreached(error),
            },
            Cause::Connect(error) => {
                let told = hints::connect_error(error, &self.shown, self.protocol_chosen);
                Failure {
                    phase: phase(error),
                    error: match hints::without_credentials(error) {
                        Some(_) => self.or_by_header(told),
                        None => self.for_configured(told),
                    },
                }
            }
            Cause::Lost(closed) => {
                let message = format!("the connection to `{}` was lost", self.shown);
                let code = match closed {
                    Closed::Exited { .. } => "server-exited",
                    _ => "connection-closed",
                };
                let mut error = CliError::with(Exit::Server, code, message);
                error.causes.push(closed.to_string());
                error.stderr = trouble.stderr().to_vec();
                let phase = Phase::Handshake;
                Failure { phase, error }
            }
            Cause::Request(error) => Failure {
                phase: Phase::Handshake,
                error: hints::request_error(error, Doing::Other),
            },
            _ => Failure {
                phase: Phase::Connect,
                error: CliError::with(Exit::Server, "transport-error", trouble.to_string()),
            },
        }
    }

    fn unavailable(&self, error: &CallError, state: &ServerState) -> Failure {
        if let Some(trouble) = state.trouble() {
            return self.trouble(trouble);
        }
        let told = CliError::with(Exit::Timeout, "connect-timeout", error.to_string());
        Failure {
            phase: Phase::Connect,
            error: told.hint(format!("`{} SECONDS` allows more time", self.more_time)),
        }
    }

    /// What the connector said, as it said it.
    fn unreached(&self, error: &ReachError) -> CliError {
        let ReachError {
            kind: _,
            code,
            message,
            causes,
            hints,
        } = error;
        if *code == "connect-timeout" {
            let message = format!("cannot connect to `{}`", self.shown);
            let mut error = CliError::with(Exit::Timeout, code, message);
            let limit = duration(self.limit);
            let cause = format!("its secrets were not looked up within {limit}");
            error.causes.push(cause);
            return error.hint(format!("`{} SECONDS` allows more time", self.more_time));
        }
        let ours = [
            Code::SecretUnavailable,
            Code::InvalidConfig,
            Code::InvalidTarget,
            Code::InvalidUsage,
        ];
        let ours = ours.into_iter().find(|ours| ours.as_str() == *code);
        let mut told = match ours {
            Some(ours) => CliError::new(ours, message.clone()),
            None => CliError::with(Exit::Server, code, message.clone()),
        };
        told.causes.clone_from(causes);
        told.hints.clone_from(hints);
        told
    }

    /// Who gives a server on the command line can give its token there as well.
    fn or_by_header(&self, told: CliError) -> CliError {
        let is_missing = matches!(told.code, "auth-required" | "client-registration-required");
        if self.configured.is_some() || !is_missing {
            return told;
        }
        told.hint("or pass a token: --header 'Authorization: Bearer …'")
    }

    /// Hints that speak of options, for a server that has its options in a file.
    fn for_configured(&self, mut error: CliError) -> CliError {
        let Some(spec) = &self.configured else {
            return error;
        };
        let name = &spec.name;
        if spec.sandbox != Sandbox::Off && error.stderr.iter().any(|line| is_denial(line)) {
            error.hints.push(
                "its sandbox may be in the way: in your home (`~/.npm`, `~/.cache`) it writes nothing; \
                 see docs/sandbox.md, or take the key `sandbox` out"
                    .to_owned(),
            );
        }
        match error.code {
            "auth-required" => {
                error.hints = vec![auth_hint(spec)];
                let is_of_gateway = |cause: &String| {
                    cause.contains("realm=\"cocode\"") && !cause.contains("resource_metadata=")
                };
                if error.causes.iter().any(is_of_gateway) {
                    error.hints.extend(gateway_token_hints(name.as_str()));
                }
            }
            "connect-timeout" => {
                // Commands that look at many servers wait no longer than for a start.
                let key = if spec.connect_timeout <= spec.startup_timeout {
                    "startup_timeout_sec"
                } else {
                    "connect_timeout_sec"
                };
                error.hints = vec![
                    format!(
                        "a first download by npx or uvx takes long; `{} SECONDS` allows more",
                        self.more_time
                    ),
                    format!("`{key}` in its file allows it always: `cocode mcp explain {name}`"),
                ];
            }
            "version-mismatch" if self.protocol_chosen => {}
            "version-mismatch" if spec.protocol != Protocol::Auto => {
                error.hints =
                    vec!["take the key `protocol` out of its file to speak what it speaks".into()];
            }
            "version-mismatch" => error.hints.clear(),
            _ => {}
        }
        for hint in &mut error.hints {
            *hint = hint.replace("`--cwd`", "`cwd`").replace(
                "leave out the quotes around it",
                "its arguments belong into `args`",
            );
        }
        error
    }
}

/// Whether a server says that the system did not let it write.
fn is_denial(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let words = [
        "eacces",
        "erofs",
        "permission denied",
        "read-only file system",
    ];
    words.iter().any(|word| line.contains(word))
}

fn auth_hint(spec: &ServerSpec) -> String {
    let way = match &spec.reach {
        Reach::Program(_) => Way::Nothing,
        Reach::Remote(remote) => Way::of(remote),
    };
    match way {
        Way::Fixed(_) | Way::Helper(_) => {
            "the configured credentials were not accepted: are they still valid?".to_owned()
        }
        Way::OAuth(_) => {
            let name = &spec.name;
            format!(
                "`cocode mcp auth status {name}` shows what you have, `cocode mcp login {name}` gets anew"
            )
        }
        Way::Nothing => "it wants credentials, and there is no way to show any".to_owned(),
    }
}

/// How far it came: HTTP connects only when it sends its first request.
fn phase(error: &ConnectError) -> Phase {
    match error {
        ConnectError::Open(OpenError::Link(error))
        | ConnectError::Handshake {
            error: RequestError::Link { error, .. },
            ..
        } => match error {
            LinkError::Unreachable { .. } => Phase::Connect,
            LinkError::Credentials(error) => match error.kind {
                CredentialsErrorKind::NeedsAuth | CredentialsErrorKind::NeedsClientRegistration => {
                    Phase::Handshake
                }
                // A helper, a key or a store failed, before the server could.
                _ => Phase::Secrets,
            },
            _ => Phase::Handshake,
        },
        ConnectError::Open(_) => Phase::Connect,
        ConnectError::Timeout { step, .. } if matches!(*step, "starting" | "connecting") => {
            Phase::Connect
        }
        _ => Phase::Handshake,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::About;

    #[test]
    fn a_server_is_named_as_its_user_did() {
        let check = |shown: &str, expected: &str| {
            let about = About {
                shown: shown.to_owned(),
                protocol_chosen: false,
                configured: None,
                more_time: "--connect-timeout",
                limit: Duration::ZERO,
            };
            assert_eq!(about.in_words(), expected);
        };
        check("https://example.com/mcp", "--url https://example.com/mcp");
        check("npx", "-- COMMAND");
    }
}
