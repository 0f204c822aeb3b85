//! Many configured servers at once: connects to them side by side, shows how far that is, and
//! closes every session, whatever happens. Only servers that are ready ever get here.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::{ConnectError, LinkError, NoHandler, OpenError, RequestError, Session};
use cocode_core::{Protocol, Reach, ServerSpec};
use futures_util::StreamExt as _;
use futures_util::stream::{self, FuturesUnordered};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::args::TargetArgs;
use crate::error::{CliError, Exit};
use crate::hints;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::reach;
use crate::session::interrupted;
use crate::target::session_options;
use crate::workspace::Workspace;

/// How many servers are started or contacted at the same time.
const AT_ONCE: usize = 32;
/// How many of the servers that are still awaited are named.
const MAX_NAMES_SHOWN: usize = 4;
/// The longest text of a [`short`] reason.
const MAX_SHORT_CHARACTERS: usize = 240;

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

/// How servers are connected to.
#[derive(Debug)]
pub(crate) struct Manner<'a> {
    pub(crate) workspace: &'a Workspace,
    /// What the command line says about connecting.
    pub(crate) target: TargetArgs,
    /// The option of this command that allows more time.
    pub(crate) more_time: &'static str,
}

impl Manner<'_> {
    /// Makes a session with one server, within `limit`.
    pub(crate) async fn connect(
        &self,
        spec: &ServerSpec,
        limit: Duration,
    ) -> Result<Session, Failure> {
        let begun = tokio::time::Instant::now();
        let reached = tokio::time::timeout(limit, reach::reach(spec, self.workspace)).await;
        let at_secrets = |error| Failure {
            phase: Phase::Secrets,
            error,
        };
        let server = reached
            .unwrap_or_else(|_elapsed| Err(self.too_slow(spec, limit)))
            .map_err(at_secrets)?;
        let mut target = self.target.clone();
        target.connect_timeout = Some(limit.saturating_sub(begun.elapsed()));
        let options = session_options(&target, Some(spec), &server, 0, Arc::new(NoHandler));
        let connected = Box::pin(Session::connect(server.target, options)).await;
        connected.map_err(|error| {
            let told = hints::connect_error(&error, spec.name.as_str(), false);
            Failure {
                phase: phase(&error),
                error: self.for_configured(told, spec),
            }
        })
    }

    fn too_slow(&self, spec: &ServerSpec, limit: Duration) -> CliError {
        let message = format!("cannot connect to `{}`", spec.name);
        let mut error = CliError::with(Exit::Timeout, "connect-timeout", message);
        error.causes.push(format!(
            "its secrets were not looked up within {}",
            crate::text::duration(limit)
        ));
        error.hint(format!("`{} SECONDS` allows more time", self.more_time))
    }

    /// Hints that speak of options, for a server that has its options in a file.
    fn for_configured(&self, mut error: CliError, spec: &ServerSpec) -> CliError {
        let name = &spec.name;
        match error.code {
            "auth-required" => error.hints = vec![auth_hint(spec)],
            "connect-timeout" => {
                error.hints = vec![
                    format!(
                        "a first download by npx or uvx takes long; `{} SECONDS` allows more",
                        self.more_time
                    ),
                    format!(
                        "`connect_timeout_sec` in its file allows it always: `cocode mcp explain {name}`"
                    ),
                ];
            }
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

fn auth_hint(spec: &ServerSpec) -> String {
    let sends_credentials = match &spec.reach {
        Reach::Program(_) => false,
        Reach::Remote(remote) => {
            let mut headers = remote.headers.keys().chain(remote.env_headers.keys());
            remote.bearer_token_env_var.is_some()
                || remote.headers_helper.is_some()
                || headers.any(|header| header.eq_ignore_ascii_case("authorization"))
        }
    };
    if sends_credentials {
        "the configured credentials were not accepted: are they still valid?".to_owned()
    } else {
        "it wants credentials: name the variable that has its token in `bearer_token_env_var`, or \
         keep it with `cocode secret set` and write `headers.Authorization = \"Bearer \
         ${keyring:NAME}\"`"
            .to_owned()
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
            _ => Phase::Handshake,
        },
        ConnectError::Open(_) => Phase::Connect,
        ConnectError::Timeout { step, .. } if matches!(*step, "starting" | "connecting") => {
            Phase::Connect
        }
        _ => Phase::Handshake,
    }
}

/// What came of all visits, in the order they were asked for.
pub(crate) struct Visited<T> {
    pub(crate) outcomes: Vec<T>,
    closing: Closing,
}

type Closing = FuturesUnordered<Pin<Box<dyn Future<Output = ()>>>>;

/// Visits servers, up to [`AT_ONCE`] at the same time. A visit gives its outcome, and its session
/// to be closed. On a signal, nobody is waited for any more.
pub(crate) async fn visit<'a, T, V>(
    names: &[&'a str],
    printer: &Printer,
    interrupts: &mut Interrupts,
    visit: impl Fn(usize) -> V,
) -> Result<Visited<T>, CliError>
where
    V: Future<Output = (T, Option<Session>)>,
{
    let awaited: RefCell<BTreeSet<&'a str>> = RefCell::default();
    let mut closing = Closing::new();
    let mut outcomes: Vec<(usize, T)> = Vec::with_capacity(names.len());
    let stopped = {
        let work = names.iter().enumerate().map(|(index, name)| {
            let (awaited, visiting) = (&awaited, visit(index));
            async move {
                awaited.borrow_mut().insert(name);
                let (outcome, session) = visiting.await;
                awaited.borrow_mut().remove(name);
                (index, outcome, session)
            }
        });
        let mut work = std::pin::pin!(stream::iter(work).buffer_unordered(AT_ONCE));
        show(printer, 0, names.len(), &awaited.borrow());
        loop {
            tokio::select! {
                biased;
                exit = interrupts.next() => break Some(exit),
                Some(()) = closing.next() => {}
                next = work.next() => {
                    let Some((index, outcome, session)) = next else { break None };
                    outcomes.push((index, outcome));
                    closing.extend(session.map(|session| Box::pin(session.close()) as _));
                    show(printer, outcomes.len(), names.len(), &awaited.borrow());
                }
            }
        }
    };
    printer.end_bar();
    if let Some(exit) = stopped {
        let error = interrupted(printer, exit);
        close(closing, interrupts).await;
        return Err(error);
    }
    outcomes.sort_by_key(|(index, _)| *index);
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    Ok(Visited { outcomes, closing })
}

impl<T> Visited<T> {
    /// Waits until every session is closed.
    pub(crate) async fn close(self, interrupts: &mut Interrupts) {
        close(self.closing, interrupts).await;
    }
}

async fn close(closing: Closing, interrupts: &mut Interrupts) {
    tokio::select! {
        () = closing.collect() => {}
        // Nobody wants to wait. What is left of the servers ends without us.
        _exit = interrupts.next() => {}
    }
}

fn show(printer: &Printer, done: usize, all: usize, awaited: &BTreeSet<&str>) {
    if !printer.shows_bar() || all == 0 {
        return;
    }
    let mut line = format!("{done} of {all} servers");
    let names: Vec<String> = awaited
        .iter()
        .take(MAX_NAMES_SHOWN)
        .map(|name| crate::text::plain(name))
        .collect();
    if !names.is_empty() {
        let more = if awaited.len() > names.len() {
            ", …"
        } else {
            ""
        };
        line = format!("{line}, waiting for {}{more}", names.join(", "));
    }
    printer.bar(&line);
}

/// Why something failed, in one line.
pub(crate) fn short(error: &CliError) -> String {
    let causes: Vec<&str> = error
        .causes
        .iter()
        .map(String::as_str)
        .filter(|cause| *cause != "the handshake failed")
        .collect();
    let mut text = if causes.is_empty() {
        error.message.clone()
    } else {
        causes.join(": ")
    };
    if let Some(last) = error.stderr.iter().rfind(|line| !line.trim().is_empty()) {
        text = format!("{text}; its last words: {}", last.trim());
    }
    if text.chars().count() > MAX_SHORT_CHARACTERS {
        text = text.chars().take(MAX_SHORT_CHARACTERS - 1).collect();
        text.push('…');
    }
    text
}

/// An error as scripts see it, to be put into something larger.
pub(crate) fn error_object(error: &CliError) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Whole {
        error: Box<RawValue>,
    }
    let whole: Option<Whole> = serde_json::from_str(&error.to_json()).ok();
    whole.map(|whole| whole.error)
}
