//! Requests that a manager passes on for somebody else.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cocode_core::{ServerName, ToolName};
use cocode_wire::Frame;
use tokio::time::Instant;

use super::call_error::CallError;
use super::call_events::Telling;
use super::events::CallId;
use super::find::unavailable;
use super::shared::Shared;
use super::{Manager, Server};
use crate::clock::later;
use crate::error::Retry;
use crate::relay::Relayed;
use crate::session::Session;

/// How often a request is tried that no server has seen.
const MAX_ATTEMPTS: u32 = 3;

impl Manager {
    /// Passes a request on to a server, which is started or waited for if it has to be. What was
    /// answered is given as it came; a request that may have reached the server is not repeated.
    /// `tool` is the tool that it calls, if it calls one: then it is told of as any other call is.
    pub async fn relay(
        &self,
        server: &ServerName,
        tool: Option<&str>,
        relayed: &Relayed<'_>,
    ) -> Result<Frame, CallError> {
        let shared = self.shared();
        let begun = Instant::now();
        let server = self.server(server)?;
        let _in_use = server.in_use();
        // Memory for two futures of moderate size is had faster than for a large one.
        let attempts = Box::pin(attempts(shared, &server, relayed, begun));
        let Some(tool) = tool else {
            return attempts.await;
        };
        let tool = ToolName::new(tool);
        let call = CallId(shared.calls.fetch_add(1, Ordering::Relaxed));
        let mut telling = Telling::begin(shared, &server, &tool, (call, begun), None);
        let outcome = attempts.await;
        telling.finish_relayed(&outcome);
        outcome
    }
}

async fn attempts(
    shared: &Shared,
    server: &Arc<Server>,
    relayed: &Relayed<'_>,
    begun: Instant,
) -> Result<Frame, CallError> {
    let until = later(begun, relayed.deadlines.idle.min(relayed.deadlines.total));
    let mut attempt = 1;
    loop {
        let session = match server.current() {
            Some(session) => session,
            None => Box::pin(wait(server, until)).await?,
        };
        let error = match session.relay(relayed).await {
            Ok(frame) => return Ok(frame),
            Err(error) => error,
        };
        server.suspect(&error);
        let backoff = shared.options.health.reconnect;
        let asked = error.retry_after().unwrap_or_default();
        let again_at = Instant::now() + backoff.wait(attempt, None, fastrand::f64()).max(asked);
        if error.retry() != Retry::Safe || attempt >= MAX_ATTEMPTS || again_at >= until {
            return Err(CallError::Asking {
                server: server.name.clone(),
                what: relayed.method.to_owned(),
                error,
            });
        }
        Box::pin(tokio::time::sleep_until(again_at)).await;
        attempt += 1;
    }
}

async fn wait(server: &Server, until: Instant) -> Result<Session, CallError> {
    let session = server.session(until).await;
    session.map_err(|error| unavailable(server, error))
}
