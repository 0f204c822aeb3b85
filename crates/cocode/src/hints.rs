//! Errors of the library as this program tells them: exit code, chain of causes, and what to try.

use cocode_client::{
    Closed, ConnectError, CredentialsError, LinkError, OpenError, RawJson, RequestError, RpcError,
    SpawnError, code as rpc_code,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{CliError, Exit, RpcDetails};

const ONLY_MESSAGES: &str = "a server must write nothing but messages to its stdout";

/// What became of a call that the server has had, and has not answered.
const LOST: &str = "the call was lost: it may or may not have been carried out";

/// What was being done when a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// A tool was being called: a refusal is the tool's own failure.
    Call,
    /// Anything else.
    Other,
}

/// Says why there is no session with `server`.
pub(crate) fn connect_error(error: &ConnectError, server: &str, protocol_chosen: bool) -> CliError {
    let code = error.code();
    let exit = exit_of(code, Doing::Other);
    if let Some(error) = without_credentials(error) {
        return no_credentials(error, code, exit);
    }
    let mut told =
        CliError::with(exit, code, format!("cannot connect to `{server}`")).because(error);
    told.stderr = error.stderr().to_vec();
    match error {
        ConnectError::Open(OpenError::Spawn(error)) => told.hints = spawn_hints(error),
        ConnectError::Open(OpenError::Link(error)) => told.hints = link_hints(error),
        ConnectError::Open(OpenError::Unix { .. }) => {
            told.hints
                .push("is the server running, and is this its socket?".into());
        }
        ConnectError::Open(OpenError::HttpSetup(_)) => told.hints.push(
            "proxies come from HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, certificates from \
             COCODE_CA_FILE and NODE_EXTRA_CA_CERTS"
                .into(),
        ),
        ConnectError::Handshake { error, .. } => {
            told.rpc = rpc_of(error);
            told.hints = request_hints(error, Moment::Handshake { protocol_chosen });
        }
        ConnectError::Timeout { .. } => told.hints.push(
            "a first download by npx or uvx takes long; `--connect-timeout SECONDS` allows more"
                .into(),
        ),
        ConnectError::Version { .. } if protocol_chosen => {
            told.hints
                .push("leave out `--protocol` to take what the server speaks".into());
        }
        ConnectError::Version { .. } => {
            told.hints
                .push("`--protocol REVISION` insists on one revision".into());
        }
        _ => {}
    }
    // What TLS makes of an answer in plain text.
    let garbled = ["InvalidContentType", "corrupt message"];
    let is_garbled = |cause: &String| garbled.iter().any(|part| cause.contains(part));
    if told.causes.iter().any(is_garbled) {
        told.hints = vec![
            "does the server speak plain http? Then its URL begins with http:// or ws://".into(),
        ];
    }
    told.noise = error.noise().to_vec();
    let hint = ONLY_MESSAGES.to_owned();
    if !told.noise.is_empty() && !told.hints.contains(&hint) {
        told.hints.insert(0, hint);
    }
    told
}

/// Says why a request has no result.
pub(crate) fn request_error(error: &RequestError, doing: Doing) -> CliError {
    let code = error.code();
    let exit = exit_of(code, doing);
    if let RequestError::Link {
        error: LinkError::Credentials(error),
        ..
    } = error
    {
        return no_credentials(error, code, exit);
    }
    let mut told = CliError::with(exit, code, error.to_string());
    if let Some(cause) = std::error::Error::source(error) {
        told = told.because(cause);
    }
    if let RequestError::Closed {
        reason: Closed::Exited { stderr, .. },
        ..
    } = error
    {
        told.stderr.clone_from(stderr);
    }
    told.rpc = rpc_of(error);
    told.hints = request_hints(error, Moment::Session);
    if doing == Doing::Call && is_lost(error) {
        let happened = std::mem::replace(&mut told.message, LOST.to_owned());
        told.causes.insert(0, happened);
    }
    told
}

/// Whether the server may have done what it was asked, and could not say so.
fn is_lost(error: &RequestError) -> bool {
    match error {
        RequestError::Closed { sent, .. } => *sent,
        RequestError::Link { error, .. } => matches!(
            error,
            LinkError::Broken { .. } | LinkError::NoAnswer { .. } | LinkError::Closed(_)
        ),
        _ => false,
    }
}

/// Why there was nothing to show to a server that wants credentials, if that is what is wrong.
pub(crate) fn without_credentials(error: &ConnectError) -> Option<&CredentialsError> {
    match error {
        ConnectError::Open(OpenError::Link(LinkError::Credentials(error)))
        | ConnectError::Handshake {
            error:
                RequestError::Link {
                    error: LinkError::Credentials(error),
                    ..
                },
            ..
        } => Some(error),
        _ => None,
    }
}

/// What those say who know about credentials, as they say it.
fn no_credentials(error: &CredentialsError, code: &'static str, exit: Exit) -> CliError {
    let CredentialsError {
        kind: _,
        message,
        causes,
        hints,
    } = error;
    let mut told = CliError::with(exit, code, message.clone());
    told.causes.clone_from(causes);
    told.hints.clone_from(hints);
    told
}

/// Whether the last words of the server may explain this error.
pub(crate) fn stderr_may_explain(error: &CliError) -> bool {
    matches!(error.exit, Exit::Server | Exit::Timeout) && error.rpc.is_none()
}

fn exit_of(code: &str, doing: Doing) -> Exit {
    match (code, doing) {
        ("server-error", Doing::Call) => Exit::Tool,
        ("auth-required" | "client-registration-required" | "credentials-unavailable", _) => {
            Exit::Auth
        }
        ("connect-timeout" | "request-timeout", _) => Exit::Timeout,
        ("invalid-target" | "http-setup" | "invalid-params" | "message-too-large", _) => {
            Exit::Usage
        }
        _ => Exit::Server,
    }
}

fn rpc_of(error: &RequestError) -> Option<Box<RpcDetails>> {
    let RequestError::Rpc { error, .. } = error else {
        return None;
    };
    let RpcError {
        code,
        message,
        data,
    } = error;
    let data = data
        .as_ref()
        .and_then(|data| RawValue::from_string(data.as_str().to_owned()).ok());
    let (code, message) = (*code, message.clone());
    Some(Box::new(RpcDetails {
        code,
        message,
        data,
    }))
}

fn spawn_hints(error: &SpawnError) -> Vec<String> {
    let hint = match error {
        SpawnError::NotFound { program, .. } if program.to_string_lossy().contains(' ') => {
            "the command is one word with blanks; leave out the quotes around it".into()
        }
        SpawnError::NotFound { program, .. } if program.to_string_lossy().contains('/') => {
            "a relative path begins at `--cwd`, or else at the current directory".into()
        }
        SpawnError::NotFound { .. } => "is it installed, and is its directory in PATH?".into(),
        SpawnError::NotExecutable { path, .. } if path.is_dir() => {
            "this is a directory; the program that is the server comes after `--`".into()
        }
        SpawnError::NotExecutable { path, .. } => {
            format!("`chmod +x {}` makes it executable", path.display())
        }
        SpawnError::InterpreterMissing { .. } => {
            "look at its first line: the interpreter named there is not installed".into()
        }
        SpawnError::WorkingDirectory { .. } => "check the directory in `--cwd`".into(),
        // What to do about it is among its causes.
        SpawnError::Confinement { .. }
        | SpawnError::Pipe { .. }
        | SpawnError::Process { .. }
        | SpawnError::NoRuntime(_) => {
            return Vec::new();
        }
    };
    vec![hint]
}

/// When a request failed.
#[derive(Clone, Copy)]
enum Moment {
    Handshake { protocol_chosen: bool },
    Session,
}

fn request_hints(error: &RequestError, moment: Moment) -> Vec<String> {
    let hint = match (error, moment) {
        (RequestError::Rpc { error, .. }, _) => return rpc_hints(error, moment),
        (RequestError::Timeout { .. }, Moment::Session) => "`--timeout SECONDS` allows more time",
        (RequestError::Timeout { .. }, Moment::Handshake { .. }) => {
            "`--connect-timeout SECONDS` allows more time"
        }
        (
            RequestError::Closed {
                reason: Closed::Exited { stderr, .. },
                ..
            },
            _,
        ) if stderr.is_empty() => {
            "the server wrote nothing to stderr; run its command by itself to see why it ends"
        }
        (RequestError::Link { error, .. }, _) => return link_hints(error),
        (RequestError::Malformed { .. }, _) => ONLY_MESSAGES,
        (RequestError::Unexpected { reason, .. }, _) if reason.contains("elicitation/create") => {
            "the server has a question: run this at a terminal, or answer with `--answer KEY=VALUE`"
        }
        (RequestError::Unexpected { reason, .. }, _) if reason.contains("roots/list") => {
            "the server wants to know where it may work: name a directory with `--root DIR`"
        }
        _ => return Vec::new(),
    };
    vec![hint.to_owned()]
}

fn rpc_hints(error: &RpcError, moment: Moment) -> Vec<String> {
    let hint = match (error.code, moment) {
        (rpc_code::METHOD_NOT_FOUND, Moment::Session) => {
            "the server does not offer this; `cocode mcp inspect` shows what it can do"
        }
        (rpc_code::MISSING_CLIENT_CAPABILITY, _) => {
            "the server needs more from its client: questions are answered at a terminal or with \
             `--answer KEY=VALUE`, directories are named with `--root DIR`"
        }
        (rpc_code::URL_ELICITATION_REQUIRED, _) => return urls_to_visit(error),
        (
            _,
            Moment::Handshake {
                protocol_chosen: true,
            },
        ) => "leave out `--protocol` to take what the server speaks",
        _ => return Vec::new(),
    };
    vec![hint.to_owned()]
}

/// The pages that a server wants to be visited before it is asked again.
fn urls_to_visit(error: &RpcError) -> Vec<String> {
    #[derive(Deserialize)]
    struct Data {
        elicitations: Vec<Page>,
    }
    #[derive(Deserialize)]
    struct Page {
        url: String,
    }
    let data = error.data.as_ref().map(RawJson::decode::<Data>);
    let Some(Ok(Data { elicitations })) = data else {
        return vec!["the server wants a page to be visited first".to_owned()];
    };
    let hint = |page: &Page| format!("visit {} if you trust it, then try again", page.url);
    elicitations.iter().map(hint).collect()
}

fn link_hints(error: &LinkError) -> Vec<String> {
    let hint = match error {
        LinkError::Credentials(error) => return error.hints.clone(),
        LinkError::AuthRequired(_) => {
            "authentication needed: pass --header 'Authorization: Bearer …'"
        }
        LinkError::Unreachable { .. } => "is the server running at this address?",
        LinkError::Status {
            status: 404 | 405, ..
        } => "check the path of the URL; it is often /mcp, or /sse for older servers",
        LinkError::Status {
            status: 429 | 503, ..
        } => "the server is busy; try again later",
        LinkError::Redirect { .. } => {
            "use the address that it redirects to, if you trust that server"
        }
        LinkError::ContentType { .. } | LinkError::Malformed { .. } => {
            "is this the address of an MCP endpoint?"
        }
        LinkError::TooLarge { .. } | LinkError::AnswerTooLarge { .. } => {
            "`--max-message-bytes BYTES` allows larger messages"
        }
        _ => return Vec::new(),
    };
    vec![hint.to_owned()]
}
