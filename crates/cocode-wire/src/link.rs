//! One connection to one server, whatever carries it.

use std::path::PathBuf;
use std::sync::Arc;

use cocode_process::{ProcessSpec, SpawnError};
use http::HeaderMap;
use tokio::io::DuplexStream;
use tokio::net::UnixStream;

use crate::error::{Closed, LinkError};
use crate::http::client::HttpSetupError;
use crate::http::legacy_sse::LegacySseLink;
use crate::http::streamable::{HttpTarget, StreamableLink};
use crate::inbox::Inbox;
use crate::line::link::LineLink;
use crate::sending::Sending;
use crate::websocket::{WebSocketLink, WebSocketTarget};

/// Where a server is and how to talk to it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Target {
    /// A child process that speaks on its standard streams.
    Stdio(StdioTarget),
    /// Streamable HTTP.
    Http(HttpTarget),
    /// HTTP+SSE, the transport of revision 2024-11-05.
    LegacySse(HttpTarget),
    /// A WebSocket.
    WebSocket(WebSocketTarget),
    /// A unix socket with one message a line.
    Unix(UnixTarget),
    /// The other end of a stream in this process.
    Memory(MemoryTarget),
}

/// A child process and the cap for its messages.
#[derive(Clone, Debug)]
pub struct StdioTarget {
    /// What to run.
    pub process: ProcessSpec,
    /// The cap for one message.
    pub max_frame: usize,
}

/// A unix socket and the cap for its messages.
#[derive(Clone, Debug)]
pub struct UnixTarget {
    /// The socket.
    pub path: PathBuf,
    /// The cap for one message.
    pub max_frame: usize,
}

/// One end of a pair of streams. It can be connected once.
#[derive(Debug)]
pub struct MemoryTarget {
    /// Taken by the first connection.
    pub stream: std::sync::Mutex<Option<DuplexStream>>,
    /// The cap for one message.
    pub max_frame: usize,
}

/// Why a link could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The process did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The socket cannot be reached.
    #[error("cannot connect to {}", path.display())]
    Unix {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The HTTP client could not be made.
    #[error(transparent)]
    HttpSetup(HttpSetupError),
    /// The first exchange failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The target makes no sense.
    #[error("{0}")]
    Target(String),
}

/// A message on its way out.
#[derive(Debug)]
pub struct Outgoing {
    /// The message.
    pub body: Vec<u8>,
    /// Headers that mirror parts of it, for links that carry headers.
    pub headers: HeaderMap,
    /// Our id, if it is a request.
    pub request: Option<u64>,
}

/// One connection. What it reads goes to the inbox it was opened with. Dropping it ends it without
/// waiting; [`Link::close`] ends it politely.
#[derive(Debug)]
pub struct Link {
    kind: Kind,
    max_frame: usize,
}

#[derive(Debug)]
enum Kind {
    Line(LineLink),
    Streamable(StreamableLink),
    LegacySse(Box<LegacySseLink>),
    WebSocket(WebSocketLink),
}

impl Link {
    /// Connects. Everything that arrives from then on goes to `inbox`.
    pub async fn open(target: &Target, inbox: Arc<dyn Inbox>) -> Result<Self, OpenError> {
        let (kind, max_frame) = match target {
            Target::Stdio(stdio) => {
                let child = cocode_process::spawn(&stdio.process)?;
                let line = LineLink::to_process(child, inbox, stdio.max_frame);
                let line = line.map_err(LinkError::Closed)?;
                (Kind::Line(line), stdio.max_frame)
            }
            Target::Unix(unix) => {
                let cannot = |source| OpenError::Unix {
                    path: unix.path.clone(),
                    source,
                };
                let stream = UnixStream::connect(&unix.path).await.map_err(cannot)?;
                let (source, sink) = stream.into_split();
                let (source, sink) = (Box::pin(source), Box::pin(sink));
                let line = LineLink::over(source, sink, inbox, unix.max_frame);
                (Kind::Line(line), unix.max_frame)
            }
            Target::Memory(memory) => {
                let mut slot = memory
                    .stream
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                let spent = || OpenError::Target("this memory link was connected before".into());
                let (source, sink) = tokio::io::split(slot.take().ok_or_else(spent)?);
                let (source, sink) = (Box::pin(source), Box::pin(sink));
                let line = LineLink::over(source, sink, inbox, memory.max_frame);
                (Kind::Line(line), memory.max_frame)
            }
            Target::Http(http) => {
                let link = StreamableLink::new(http, inbox).map_err(OpenError::HttpSetup)?;
                (Kind::Streamable(link), http.max_frame)
            }
            Target::LegacySse(http) => {
                let link = LegacySseLink::open(http.clone(), inbox).await?;
                (Kind::LegacySse(Box::new(link)), http.max_frame)
            }
            Target::WebSocket(socket) => (
                Kind::WebSocket(WebSocketLink::open(socket, inbox).await?),
                socket.max_frame,
            ),
        };
        Ok(Self { kind, max_frame })
    }

    /// Sends a message, or begins to: the exchange of a request over streamable HTTP goes on by
    /// itself, and its failure reaches the inbox. What is given waits while a slow peer has too much
    /// before it.
    ///
    /// Cancel safe: a message is sent whole or not at all. Which of the two is not always known; see
    /// [`Link::sends_uncertainly`].
    pub fn send(&self, message: Outgoing) -> Sending<'_> {
        let Outgoing {
            body,
            headers,
            request,
        } = message;
        if body.len() > self.max_frame {
            return Sending::done(Err(LinkError::TooLarge {
                size: body.len(),
                limit: self.max_frame,
            }));
        }
        match &self.kind {
            Kind::Line(link) => link.send(body),
            Kind::WebSocket(link) => Sending::waits(link.send(body)),
            Kind::LegacySse(link) => Sending::waits(link.send(body.into())),
            Kind::Streamable(link) => match request {
                Some(id) => {
                    link.send_request(id, headers, body.into());
                    Sending::done(Ok(()))
                }
                None => Sending::waits(link.send_message(headers, body.into())),
            },
        }
    }

    /// Sends a message that nobody waits for, if that is possible at once. Synchronous, and fit for
    /// `Drop`: it needs no runtime around it.
    pub fn post(&self, message: Outgoing) {
        let Outgoing {
            body,
            headers,
            request: _,
        } = message;
        let posted = match &self.kind {
            Kind::Line(link) => link.post(body).unwrap_or(false),
            Kind::WebSocket(link) => link.post(body),
            Kind::LegacySse(link) => link.post(body.into()),
            Kind::Streamable(link) => link.post(headers, body.into()),
        };
        if !posted {
            tracing::debug!("a message was not sent: the peer takes nothing");
        }
    }

    /// Whether messages need headers that mirror them.
    pub fn carries_headers(&self) -> bool {
        matches!(self.kind, Kind::Streamable(_))
    }

    /// Whether a request is cancelled by closing its own stream, given a stateless server.
    pub fn has_request_streams(&self) -> bool {
        matches!(self.kind, Kind::Streamable(_))
    }

    /// Whether a message may reach the peer although its sending was given up.
    pub fn sends_uncertainly(&self) -> bool {
        matches!(self.kind, Kind::LegacySse(_))
    }

    /// Tells the link that nobody waits for the answer to `id` any more.
    pub fn abandon(&self, id: u64) {
        if let Kind::Streamable(link) = &self.kind {
            link.abandon(id);
        }
    }

    /// The revision both sides agreed on. `stateful` servers keep sessions and resumable streams.
    pub fn set_protocol(&self, version: &str, stateful: bool) {
        if let Kind::Streamable(link) = &self.kind {
            link.set_protocol(version, stateful);
        }
    }

    /// Tells the link that request `id` asks for a new session, where the transport has such: it
    /// names none itself, and what its answer assigns replaces the old one.
    pub fn opens_session(&self, id: u64) {
        if let Kind::Streamable(link) = &self.kind {
            link.opens_session(id);
        }
    }

    /// Opens the stream of unsolicited messages, where the transport has a separate one.
    pub fn listen(&self) {
        if let Kind::Streamable(link) = &self.kind {
            link.listen();
        }
    }

    /// The process id of the server, if this link started it.
    pub fn pid(&self) -> Option<u32> {
        match &self.kind {
            Kind::Line(link) => link.pid(),
            Kind::Streamable(_) | Kind::LegacySse(_) | Kind::WebSocket(_) => None,
        }
    }

    /// The last lines that the server wrote to its stderr.
    pub fn stderr_lines(&self) -> Vec<String> {
        match &self.kind {
            Kind::Line(link) => link.stderr_lines(),
            Kind::Streamable(_) | Kind::LegacySse(_) | Kind::WebSocket(_) => Vec::new(),
        }
    }

    /// Ends the connection and what it owns, and waits for that within fixed bounds.
    pub async fn close(&self) {
        match &self.kind {
            Kind::Line(link) => link.close().await,
            Kind::Streamable(link) => link.close().await,
            Kind::LegacySse(link) => link.close().await,
            Kind::WebSocket(link) => link.close().await,
        }
    }
}

/// Two ends of one stream: the target for the client side, and the server side's stream.
pub fn memory_pair(max_frame: usize) -> (Target, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let stream = std::sync::Mutex::new(Some(ours));
    (Target::Memory(MemoryTarget { stream, max_frame }), theirs)
}

impl From<Closed> for LinkError {
    fn from(reason: Closed) -> Self {
        Self::Closed(reason)
    }
}
