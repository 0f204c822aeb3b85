//! Tells servers what the sandbox allows: the capability `codex/sandbox-state`.
//!
//! A server that declares it is told at the start of its session and on every change, as a
//! notification and as a request: servers in use know one or the other. The state replaces the one
//! before, so that who understands both loses nothing by hearing it twice.

use cocode_core::ServerName;
use cocode_wire::{RawJson, code};
use tokio::sync::watch;

use crate::error::RequestError;
use crate::session::{RequestOptions, Session};

/// The capability that a server declares, at the top or among the experimental ones.
pub const SANDBOX_STATE_CAPABILITY: &str = "codex/sandbox-state";
/// The method of both messages.
pub const SANDBOX_STATE_METHOD: &str = "codex/sandbox-state/update";

pub(crate) fn is_wanted_by(session: &Session) -> bool {
    let capabilities = &session.server().capabilities;
    let named = |names: &[String]| names.iter().any(|name| name == SANDBOX_STATE_CAPABILITY);
    named(&capabilities.names) || named(&capabilities.experimental)
}

/// Tells the state now, if there is one, and whenever it changes.
pub(crate) async fn keep_telling(
    server: ServerName,
    session: Session,
    mut state: watch::Receiver<Option<RawJson>>,
) {
    loop {
        let now = state.borrow_and_update().clone();
        if let Some(now) = now {
            tell(&server, &session, &now).await;
        }
        if state.changed().await.is_err() {
            return;
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
