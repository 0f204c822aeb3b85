//! Tells servers what the sandbox allows: the capability `codex/sandbox-state`.
//!
//! A server that declares it is told at the start of its session and on every change, as a
//! notification and as a request: servers in use know one or the other. The state replaces the one
//! before, so that who understands both loses nothing by hearing it twice.

mod state;

use std::time::Duration;

use cocode_core::ServerName;
use cocode_wire::{RawJson, code};
use tokio::sync::watch;

use crate::error::RequestError;
use crate::options::RequestOptions;
use crate::session::Session;

pub use state::SandboxState;

/// The capability that a server declares, at the top or among the experimental ones.
pub const SANDBOX_STATE_CAPABILITY: &str = "codex/sandbox-state";
/// The method of both messages.
pub const SANDBOX_STATE_METHOD: &str = "codex/sandbox-state/update";

/// How long a server may take to hear of it before its first call.
const FIRST_WITHIN: Duration = Duration::from_secs(5);

fn is_wanted_by(session: &Session) -> bool {
    let capabilities = &session.server().capabilities;
    let named = |names: &[String]| names.iter().any(|name| name == SANDBOX_STATE_CAPABILITY);
    named(&capabilities.names) || named(&capabilities.experimental)
}

/// Tells a server that wants to know what the sandbox allows now, before it is used. Gives what
/// [`keep_telling`] needs.
pub(crate) async fn tell_first(
    server: &ServerName,
    session: &Session,
    state: &watch::Sender<Option<RawJson>>,
) -> Option<watch::Receiver<Option<RawJson>>> {
    if !is_wanted_by(session) {
        return None;
    }
    let mut state = state.subscribe();
    let now = state.borrow_and_update().clone();
    if let Some(now) = now {
        let telling = tell(server, session, &now);
        if tokio::time::timeout(FIRST_WITHIN, telling).await.is_err() {
            tracing::warn!(%server, "the server takes its time to hear of the sandbox");
        }
    }
    Some(state)
}

/// Tells the state whenever it changes.
pub(crate) async fn keep_telling(
    server: ServerName,
    session: Session,
    mut state: watch::Receiver<Option<RawJson>>,
) {
    while state.changed().await.is_ok() {
        let now = state.borrow_and_update().clone();
        if let Some(now) = now {
            tell(&server, &session, &now).await;
        }
    }
}

async fn tell(server: &ServerName, session: &Session, state: &RawJson) {
    if let Err(error) = session.notify(SANDBOX_STATE_METHOD, Some(state)).await {
        tracing::warn!(%server, %error, "the server was not notified of the sandbox");
    }
    let options = RequestOptions::default();
    match session
        .request(SANDBOX_STATE_METHOD, Some(state), options)
        .await
    {
        Ok(_taken) => {}
        Err(RequestError::Rpc { error, .. }) if error.code == code::METHOD_NOT_FOUND => {
            tracing::debug!(%server, "the server takes the sandbox only as a notification");
        }
        Err(error) => tracing::warn!(%server, %error, "the server did not take the sandbox"),
    }
}
