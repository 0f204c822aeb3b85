//! One attempt to connect: from a specification to a session whose tools are known.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cocode_core::ServerSpec;
use cocode_wire::{RawJson, StdioTarget, Target};
use tokio::sync::watch;
use tokio::time::Instant;

use super::connector::{ReachError, ReachErrorKind, Reached};
use super::ears::Ears;
use super::listing;
use super::lists::Lists;
use super::options::ListReading;
use super::sandbox;
use super::server::Server;
use super::shared::Shared;
use super::state::{Cause, ConnectionFacts, Trouble};
use crate::clock::Deadlines;
use crate::error::ConnectError;
use crate::list_cache::ListKind;
use crate::options::{SessionOptions, Timeouts};
use crate::server_log::LogSource;
use crate::session::Session;

/// What a successful attempt gives.
pub(crate) struct Connected {
    pub(crate) session: Session,
    /// What the sandbox allows, where the server wants to know. It knows what is there now.
    pub(crate) sandbox: Option<watch::Receiver<Option<RawJson>>>,
}

pub(crate) async fn connect(
    shared: &Shared,
    server: &Arc<Server>,
    spec: &ServerSpec,
) -> Result<Connected, Trouble> {
    let begun = Instant::now();
    let limit = spec.connect_timeout;
    let reaching = shared.options.connector.reach(spec);
    let reached = tokio::time::timeout(limit, reaching).await;
    let reached = reached.unwrap_or_else(|_elapsed| Err(too_slow(spec)));
    let Reached {
        mut target,
        sse_fallback,
    } = reached.map_err(|error| Trouble::from(Cause::Reach(Arc::new(error))))?;
    write_down(&mut target, server);
    let options = &shared.options;
    let session_options = SessionOptions {
        client: options.client.clone(),
        protocol: spec.protocol,
        known_era: server.era(),
        handler: Arc::new(Ears {
            server: Arc::downgrade(server),
            name: server.name.clone(),
            listens: AtomicBool::new(false),
            relists: options.health.invalidate_on_list_changed,
            bus: shared.bus.clone(),
            inner: options.handlers.handler(&server.name),
        }),
        timeouts: Timeouts {
            connect: limit.saturating_sub(begun.elapsed()),
            call: Deadlines {
                idle: spec.tool_timeout,
                total: options.timeouts.call.total,
            },
            ..options.timeouts
        },
        sse_fallback,
        max_input_rounds: options.max_input_rounds,
        log_level: options.log_level.clone(),
        listen: options.lists == ListReading::Kept,
    };
    let failed = |mut error: ConnectError| {
        if let ConnectError::Timeout { after, .. } = &mut error {
            // What it took to reach the server counts, too.
            *after = limit;
        }
        Trouble::from(Cause::Connect(Arc::new(error)))
    };
    let session = Session::connect(target, session_options)
        .await
        .map_err(failed)?;
    server.count_connection(session.server().era());
    server.change_lists(|lists| lists.introduce(session.server()));
    if options.lists == ListReading::OnDemand {
        recall(server, &session);
    } else {
        let rest = limit.saturating_sub(begun.elapsed());
        let listing = listing::first_tools(shared, server, &session);
        let (stderr, noise) = (session.stderr_lines(), Vec::new());
        match tokio::time::timeout(rest, listing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                return Err(failed(ConnectError::Handshake {
                    error,
                    stderr,
                    noise,
                }));
            }
            Err(_elapsed) => {
                return Err(failed(ConnectError::Timeout {
                    after: limit,
                    step: "listing its tools",
                    stderr,
                    noise,
                }));
            }
        }
    }
    let sandbox = sandbox::tell_first(&server.name, &session, &shared.sandbox).await;
    Ok(Connected { session, sandbox })
}

pub(crate) fn facts(session: &Session, time_to_ready: Duration) -> ConnectionFacts {
    let server = session.server();
    ConnectionFacts {
        revision: server.revision,
        transport: server.transport,
        server_name: server.name.clone(),
        server_version: server.version.clone(),
        server_title: server.title.clone(),
        instructions: server.instructions.clone(),
        pid: session.pid(),
        time_to_ready,
        ready_at: Instant::now(),
    }
}

/// Asks a new session for what the old one was asked to tell.
pub(crate) async fn subscribe_again(server: Arc<Server>, session: Session) {
    let uris = server.subscriptions();
    let (server, session) = (&server, &session);
    let each = uris.iter().map(|uri| async move {
        if let Err(error) = session.subscribe(uri).await {
            tracing::warn!(server = %server.name, uri, %error, "a subscription was lost");
        }
    });
    futures_util::future::join_all(each).await;
}

/// Lets a session know the tools that another one listed, where calls depend on it.
fn recall(server: &Server, session: &Session) {
    if !session.mirrors_arguments() {
        return;
    }
    let mut remembered = server.lists(Lists::to_remember);
    let Some(tools) = remembered.remove(&ListKind::Tools) else {
        return;
    };
    if let Err(error) = session.recall_tools(tools.pages) {
        tracing::debug!(server = %server.name, %error, "remembered tools cannot be read");
    }
}

/// What a program writes to stderr goes to its log, and to whoever wanted it before.
fn write_down(target: &mut Target, server: &Arc<Server>) {
    let Target::Stdio(StdioTarget { process, .. }) = target else {
        return;
    };
    let (log, before) = (server.log.clone(), process.stderr_tap.take());
    process.stderr_tap = Some(Arc::new(move |line: &str| {
        log.line(LogSource::Stderr, line);
        if let Some(before) = &before {
            before(line);
        }
    }));
}

fn too_slow(spec: &ServerSpec) -> ReachError {
    ReachError {
        kind: ReachErrorKind::Temporary,
        code: "connect-timeout",
        message: format!(
            "server `{}`: what is needed to reach it (secrets, headers) was not there within {} s",
            spec.name,
            spec.connect_timeout.as_secs()
        ),
        causes: Vec::new(),
        hints: Vec::new(),
    }
}
