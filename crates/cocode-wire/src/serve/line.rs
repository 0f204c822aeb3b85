//! Clients that send one message a line: on the standard streams of this process, on unix sockets,
//! on any pair of byte streams.

mod first;
mod stdio;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::futures::Notified;

pub use self::first::{FirstLine, FirstLineError, read_first_line};
pub use self::stdio::{Restored, StandardStreams, standard_streams, stdio};
use super::connection::{self, Incoming, Patience, Wire};
use super::service::{Endpoint, Sink};
use crate::error::Closed;
use crate::limits::DEFAULT_MAX_FRAME_BYTES;
use crate::line::reader::{Intake, Source};
use crate::line::splitter::Line;
use crate::line::writer::LineWriter;

/// Lines taken before their requests are served: one read may hold thousands, which would all count
/// as in flight though each may be answered at once.
const LINES_AT_ONCE: usize = 128;

/// How a client on a pair of byte streams is served.
#[derive(Clone, Debug)]
pub struct LineOptions {
    /// The cap for one message.
    pub max_frame: usize,
    /// What the client may ask for, and how long it is waited for.
    pub patience: Patience,
    /// What was already read from the source.
    pub unread: Bytes,
}

impl Default for LineOptions {
    fn default() -> Self {
        Self {
            max_frame: DEFAULT_MAX_FRAME_BYTES,
            patience: Patience::default(),
            unread: Bytes::new(),
        }
    }
}

/// Serves one client until it ends its side (or is gone), or until `shutdown` is ready and what it
/// has asked for is answered. Gives the reason; the conversation has ended by then, and also if the
/// future is dropped.
///
/// Everything runs within this future: requests are served at once, and answered in the order in
/// which their answers are ready. Give it a task of its own. What blocks on a runtime of many
/// threads is none: there, each message would have to change threads.
pub async fn serve_lines(
    source: impl AsyncRead + Send + 'static,
    sink: impl AsyncWrite + Send + 'static,
    endpoint: &dyn Endpoint,
    options: LineOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Closed {
    let LineOptions {
        max_frame,
        patience,
        unread,
    } = options;
    let outlet = Arc::new(LineOutlet(LineWriter::new(Box::pin(sink))));
    let mut wire = LineWire {
        source: Box::pin(source),
        intake: Intake::new(BytesMut::from(unread), max_frame),
        max_frame,
        work: Box::pin(outlet.0.work()),
        writer: &outlet.0,
    };
    let sink: Arc<dyn Sink> = outlet.clone();
    let conversation = endpoint.converse(Arc::clone(&sink));
    connection::serve(&mut wire, conversation, sink, patience, shutdown).await
}

/// What the conversation holds of the connection.
struct LineOutlet(LineWriter);

impl Sink for LineOutlet {
    fn send(&self, message: Bytes) -> bool {
        self.0.post(message.into()).unwrap_or(false)
    }
}

struct LineWire<'a> {
    source: Source,
    intake: Intake,
    max_frame: usize,
    writer: &'a LineWriter,
    work: Pin<Box<Notified<'a>>>,
}

impl Wire for LineWire<'_> {
    fn poll_incoming(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut(Incoming),
    ) -> Poll<Result<(), Closed>> {
        let limit = self.max_frame;
        let mut take = |line| {
            take(match line {
                Line::Whole(text) => Incoming::Text(text),
                Line::TooLarge { asked, .. } => Incoming::TooLarge { asked, limit },
            });
        };
        loop {
            let mut n_lines = 0;
            while n_lines < LINES_AT_ONCE
                && let Some(line) = self.intake.next()
            {
                n_lines += 1;
                take(line);
            }
            if n_lines > 0 {
                return Poll::Ready(Ok(()));
            }
            match self.intake.poll_fill(&mut self.source, context) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => {
                    self.intake.finish().into_iter().for_each(take);
                    return Poll::Ready(Err(Closed::ByPeer));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Closed::Io(Arc::new(error)))),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn push(&mut self, answer: Bytes) {
        self.writer.push(&answer);
    }

    fn poll_outgoing(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        // Registers for what others will send, before what they have sent is looked at.
        while self.work.as_mut().poll(context).is_ready() {
            self.work.set(self.writer.work());
        }
        self.writer.poll_drain(context).map(|is_open| {
            let reason = || self.writer.closed().unwrap_or(Closed::ByPeer);
            if is_open { Ok(()) } else { Err(reason()) }
        })
    }

    fn backlog(&self) -> usize {
        self.writer.backlog()
    }
}

impl Drop for LineWire<'_> {
    fn drop(&mut self) {
        // The conversation may keep its outlet for longer than the connection lasts.
        self.writer.close(Closed::ByUs);
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
