//! Clients on a WebSocket that is already open: one message is one text frame, pings tell a quiet
//! client from a dead one.

mod queue;

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error as WsError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use self::queue::{Meter, Queue};
use super::connection::{self, Incoming, Patience, Wire};
use super::service::{Endpoint, Sink};
use crate::error::Closed;
use crate::http::client::chain;
use crate::limits::{
    DEFAULT_MAX_FRAME_BYTES, GOODBYE_TIMEOUT, KEEP_ALIVE_INTERVAL, WEBSOCKET_SLACK_BYTES,
    WEBSOCKET_UNANSWERED_PINGS,
};
use crate::salvage::salvage_asked;

/// How a client on a WebSocket is served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WebSocketOptions {
    /// The cap for one message. A message somewhat over it costs its own request, one far over it
    /// the connection.
    pub(crate) max_frame: usize,
    /// What the client may ask for, and how long it is waited for.
    pub(crate) patience: Patience,
}

impl Default for WebSocketOptions {
    fn default() -> Self {
        Self {
            max_frame: DEFAULT_MAX_FRAME_BYTES,
            patience: Patience::default(),
        }
    }
}

/// Serves one client on `io`, over which the opening handshake is done, until it leaves (or is
/// gone), or until `shutdown` is ready and what it has asked for is answered. Gives the reason; the
/// conversation has ended by then, and also if the future is dropped.
pub(crate) async fn serve_websocket(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    endpoint: &dyn Endpoint,
    options: &WebSocketOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Closed {
    let max = options.max_frame.saturating_mul(4);
    let max = Some(max.saturating_add(WEBSOCKET_SLACK_BYTES));
    let config = WebSocketConfig::default()
        .max_message_size(max)
        .max_frame_size(max);
    let io = Meter::new(io);
    let queue = Arc::new(Queue::default());
    let mut ticks =
        tokio::time::interval_at(Instant::now() + KEEP_ALIVE_INTERVAL, KEEP_ALIVE_INTERVAL);
    // After a sleep of the machine, one ping is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut wire = WebSocketWire {
        socket: WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await,
        queue: Arc::clone(&queue),
        max_frame: options.max_frame,
        ticks,
        has_heard: false,
        n_unanswered: 0,
        owes_ping: false,
        farewell: None,
    };
    let sink: Arc<dyn Sink> = queue;
    let conversation = endpoint.converse(Arc::clone(&sink));
    let patience = options.patience;
    let reason = connection::serve(&mut wire, conversation, sink, patience, shutdown).await;
    wire.part(&reason).await;
    reason
}

struct WebSocketWire<S> {
    socket: WebSocketStream<Meter<S>>,
    queue: Arc<Queue>,
    max_frame: usize,
    ticks: Interval,
    /// There was a sign of life since the last ping.
    has_heard: bool,
    n_unanswered: u32,
    owes_ping: bool,
    /// What to tell a client that has broken the rules.
    farewell: Option<CloseCode>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocketWire<S> {
    /// Pings for ever, also while messages come: some clients count only what they are sent.
    fn poll_ticks(&mut self, context: &mut Context<'_>) -> Result<(), Closed> {
        while self.ticks.poll_tick(context).is_ready() {
            // A client that takes what it is sent lives, though it may not be listened to.
            if self.has_heard || self.socket.get_mut().take_has_moved() {
                self.n_unanswered = 0;
            } else if self.n_unanswered == WEBSOCKET_UNANSWERED_PINGS {
                return Err(Closed::Silent);
            }
            self.has_heard = false;
            self.n_unanswered += 1;
            self.owes_ping = true;
        }
        Ok(())
    }

    /// The next thing to send.
    fn next(&mut self) -> Option<Message> {
        if std::mem::take(&mut self.owes_ping) {
            return Some(Message::Ping(Bytes::new()));
        }
        let text = self.queue.pop()?;
        self.socket.get_mut().expect(text.len());
        let text = Utf8Bytes::try_from(text);
        Some(Message::Text(text.unwrap_or_else(|error| {
            tracing::warn!(%error, "a message to a client is not UTF-8");
            Utf8Bytes::from_static("")
        })))
    }

    fn refuse(&mut self, error: WsError) -> Closed {
        self.farewell = match &error {
            WsError::ConnectionClosed | WsError::AlreadyClosed => return Closed::ByPeer,
            WsError::Io(_) => None,
            WsError::Capacity(CapacityError::MessageTooLong { .. }) => Some(CloseCode::Size),
            WsError::Utf8(_) => Some(CloseCode::Invalid),
            _ => Some(CloseCode::Protocol),
        };
        match error {
            WsError::Io(error) => Closed::Io(Arc::new(error)),
            error => Closed::Protocol(chain(&error)),
        }
    }

    /// The closing handshake, as far as the client takes part in it.
    async fn part(&mut self, reason: &Closed) {
        self.queue.close();
        let code = match reason {
            Closed::ByUs => Some(CloseCode::Away),
            // The client has said so first, and the library has answered.
            Closed::ByPeer | Closed::WebSocket { .. } => None,
            Closed::Protocol(_) => Some(self.farewell.unwrap_or(CloseCode::Policy)),
            Closed::Io(_) | Closed::Silent | Closed::Exited { .. } => return,
        };
        let parting = async {
            if let Some(code) = code {
                let reason = Utf8Bytes::default();
                self.socket.close(Some(CloseFrame { code, reason })).await?;
            }
            while let Some(message) = self.socket.next().await {
                message?;
            }
            Ok::<_, WsError>(())
        };
        match tokio::time::timeout(GOODBYE_TIMEOUT, parting).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the WebSocket was not closed properly"),
            Err(_elapsed) => tracing::debug!("the WebSocket was not closed in time"),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire for WebSocketWire<S> {
    fn poll_incoming(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut(Incoming),
    ) -> Poll<Result<(), Closed>> {
        loop {
            let message = match self.socket.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(message))) => message,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(self.refuse(error))),
                Poll::Ready(None) => return Poll::Ready(Err(Closed::ByPeer)),
                Poll::Pending => return Poll::Pending,
            };
            self.has_heard = true;
            let text = match message {
                Message::Text(text) => Bytes::from(text),
                // Some clients send everything as bytes.
                Message::Binary(bytes) => bytes,
                // The library answers pings by itself.
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
                Message::Close(None) => return Poll::Ready(Err(Closed::ByPeer)),
                Message::Close(Some(frame)) => {
                    return Poll::Ready(Err(Closed::WebSocket {
                        code: frame.code.into(),
                        reason: frame.reason.as_str().to_owned(),
                    }));
                }
            };
            take(if text.len() > self.max_frame {
                let (asked, limit) = (salvage_asked(&text), self.max_frame);
                Incoming::TooLarge { asked, limit }
            } else {
                Incoming::Text(text)
            });
            return Poll::Ready(Ok(()));
        }
    }

    fn push(&mut self, answer: Bytes) {
        self.queue.push(answer);
    }

    fn poll_outgoing(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.poll_ticks(context)?;
        self.queue.register(context.waker());
        loop {
            match self.socket.poll_ready_unpin(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.refuse(error))),
                Poll::Pending => return Poll::Pending,
            }
            let Some(message) = self.next() else { break };
            if let Err(error) = self.socket.start_send_unpin(message) {
                return Poll::Ready(Err(self.refuse(error)));
            }
        }
        match self.socket.poll_flush_unpin(context) {
            Poll::Ready(Ok(())) => {
                self.socket.get_mut().expect_nothing();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.refuse(error))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn backlog(&self) -> usize {
        self.queue.n_bytes() + self.socket.get_ref().n_expected()
    }
}

impl<S> Drop for WebSocketWire<S> {
    fn drop(&mut self) {
        // The conversation may keep its outlet for longer than the connection lasts.
        self.queue.close();
    }
}

#[cfg(test)]
#[path = "websocket_tests.rs"]
mod tests;
