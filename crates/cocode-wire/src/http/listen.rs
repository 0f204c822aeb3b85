//! Keeps the stream of unsolicited messages open (the GET stream of the older era).

use super::resume::reopen;
use super::stream::{Awaits, Position, pump};
use super::streamable::Shared;
use crate::error::LinkError;
use crate::limits::{DEFAULT_STREAM_RETRY, MAX_STREAM_RETRY};

/// Listens until the server says that it offers no such stream, or the link is dropped. A stream
/// that breaks is opened again where it stood, patiently. One that stays silent is never cut, not
/// even where no comment keeps it alive: a server may have nothing to say, and a dead one shows at
/// the connection (see [`KEEP_ALIVE_INTERVAL`](crate::limits::KEEP_ALIVE_INTERVAL)).
pub(super) async fn keep_listening(shared: &Shared) {
    let mut position = Position::default();
    let mut backoff = DEFAULT_STREAM_RETRY;
    let mut was_open = false;
    loop {
        match reopen(shared, &position).await {
            Ok(response) => {
                backoff = DEFAULT_STREAM_RETRY;
                was_open = true;
                let (inbox, max) = (&*shared.inbox, shared.max_frame);
                let end = pump(response, inbox, Awaits::Nothing, &mut position, max).await;
                tracing::debug!(?end, "event stream ended");
                tokio::time::sleep(position.wait()).await;
            }
            Err(error) if passes(&error) => {
                tracing::debug!(%error, wait = ?backoff, "event stream not open");
                tokio::time::sleep(backoff.max(position.wait())).await;
                backoff = (backoff * 2).min(MAX_STREAM_RETRY);
            }
            // Without a stream before, it only means that the server has none to offer.
            Err(LinkError::SessionGone) if was_open => return shared.inbox.session_gone(),
            Err(error) => {
                // 405 is how most servers say that they have no such stream; requests still work.
                tracing::debug!(%error, "no event stream");
                return;
            }
        }
    }
}

/// Whether trying again can help.
fn passes(error: &LinkError) -> bool {
    match error {
        LinkError::Unreachable { .. } | LinkError::Broken { .. } => true,
        LinkError::Status { status, .. } => matches!(status, 429 | 500 | 502..=504),
        _ => false,
    }
}
