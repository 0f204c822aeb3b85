//! Progress of one request, as its client is told of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::RawJson;
use cocode_wire::encode::{self, push_member};
use cocode_wire::members::Members;
use cocode_wire::serve::Sink;

/// Interval of progress heartbeats while the server reports no progress.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);
/// Heartbeats until their progress is 1: servers report more than that, or fractions of it.
const HEARTBEATS_PER_UNIT: u32 = 10_000;

/// The progress of a request whose client wants to hear of it.
pub(crate) struct ClientProgress {
    token: RawJson,
    stream: Arc<dyn Sink>,
    state: Mutex<ProgressState>,
}

struct ProgressState {
    /// The most that was reported.
    most: f64,
    /// Highest progress of earlier attempts and heartbeats.
    before: f64,
    n_heartbeats: u32,
    is_reported_by_server: bool,
}

impl ClientProgress {
    pub(crate) fn new(token: RawJson, stream: Arc<dyn Sink>) -> Arc<Self> {
        Arc::new(Self {
            token,
            stream,
            state: Mutex::new(ProgressState {
                most: f64::NEG_INFINITY,
                before: f64::NEG_INFINITY,
                n_heartbeats: 0,
                is_reported_by_server: false,
            }),
        })
    }

    /// The request is made once more. Its progress begins anew at the server, while to the client it is
    /// one request, whose progress only grows.
    pub(crate) fn begins_again(&self) {
        let mut state = self.lock();
        state.before = state.most;
        state.is_reported_by_server = false;
    }

    /// Passes on what a server reports, unless that is no more than what the client was told before.
    /// Within one attempt, what the server says is passed on.
    pub(crate) fn report(&self, params: &RawJson) {
        let Ok(members) = params.decode::<Members<'_>>() else {
            return;
        };
        let mut text = Vec::with_capacity(params.as_bytes().len() + self.token.as_bytes().len());
        text.push(b'{');
        for (index, (key, value)) in members.0.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            let is_token = key == "progressToken";
            let value = if is_token {
                self.token.as_str()
            } else {
                value.get()
            };
            push_member(&mut text, key, value);
        }
        text.push(b'}');
        let progress = members.get("progress");
        let progress = progress.and_then(|progress| progress.get().parse::<f64>().ok());
        let mut state = self.lock();
        if let Some(progress) = progress {
            state.most = state.most.max(progress);
            if progress <= state.before {
                return;
            }
        }
        state.is_reported_by_server = true;
        self.send(&text);
    }

    /// Tells the client at intervals that the request is under way, as long as no server reports its
    /// progress. Never ends.
    pub(crate) async fn beat(&self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(HEARTBEAT_INTERVAL).await;
            self.heartbeat();
        }
    }

    fn heartbeat(&self) {
        let mut state = self.lock();
        if state.is_reported_by_server {
            return;
        }
        let number = state.n_heartbeats + 1;
        let value = f64::from(number) / f64::from(HEARTBEATS_PER_UNIT);
        // A server has reported more in an earlier attempt.
        if value <= state.most {
            return;
        }
        state.n_heartbeats = number;
        (state.before, state.most) = (value, value);
        let token = self.token.as_str();
        let (whole, part) = (number / HEARTBEATS_PER_UNIT, number % HEARTBEATS_PER_UNIT);
        let text = format!(r#"{{"progressToken":{token},"progress":{whole}.{part:04}}}"#);
        self.send(text.as_bytes());
    }

    /// Called with the state locked, so that reports keep their order.
    fn send(&self, params: &[u8]) {
        let message = encode::notification("notifications/progress", Some(params));
        if !self.stream.send(Bytes::from(message)) {
            tracing::debug!("a client did not take a report of progress");
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
