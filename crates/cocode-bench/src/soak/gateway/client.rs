//! One client of the gateway, of one of several kinds: it calls, and checks that what comes back is
//! the answer to its own call and to no other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::answer::{Answer, only};
use super::websocket::WebSocket;
use crate::Failure;
use crate::http::{HttpAnswer, HttpConnection};

/// How long an answer to a cancelled call may still be on its way.
const AFTER_CANCEL: Duration = Duration::from_millis(200);

const STATELESS: &str = "2026-07-28";
const STATEFUL: &str = "2025-11-25";

/// How a client talks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Session,
    SessionWithEvents,
    Stateless,
    StatelessWithEvents,
    WebSocket,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Session,
        Self::SessionWithEvents,
        Self::Stateless,
        Self::StatelessWithEvents,
        Self::WebSocket,
    ];

    fn is_stateless(self) -> bool {
        matches!(self, Self::Stateless | Self::StatelessWithEvents)
    }

    fn accepts(self) -> &'static str {
        match self {
            Self::SessionWithEvents | Self::StatelessWithEvents => {
                "text/event-stream, application/json"
            }
            Self::Session | Self::Stateless | Self::WebSocket => {
                "application/json, text/event-stream"
            }
        }
    }
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) server: String,
    /// No other call has it; zero is not counted.
    pub(crate) number: u64,
}

/// What its client does while a call is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    Waits,
    CancelsAfter(Duration),
    LeavesAfter(Duration),
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With its own answer.
    Answered,
    /// With an error that names the server.
    Refused(String),
    /// Not, as it was cancelled.
    Cancelled,
    /// Nobody waited for it.
    Left,
}

/// One client.
pub(crate) struct Client {
    kind: Kind,
    number: usize,
    address: SocketAddr,
    /// The server that it sees, if it does not see all of them as one.
    place: Option<String>,
    link: Link,
    next_id: u64,
    /// Calls that were cancelled on this connection, and may still be answered once.
    cancelled: BTreeMap<u64, Call>,
}

enum Link {
    None,
    Http(HttpConnection, Option<String>),
    WebSocket(WebSocket),
}

impl Client {
    pub(crate) fn new(
        kind: Kind,
        number: usize,
        address: SocketAddr,
        place: Option<String>,
    ) -> Self {
        Self {
            kind,
            number,
            address,
            place,
            link: Link::None,
            next_id: 1,
            cancelled: BTreeMap::new(),
        }
    }

    /// The server whose tools it sees, if not those of all.
    pub(crate) fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.link, Link::None)
    }

    /// Connects, and opens a session where there is such a thing. An outcome that is no answer says
    /// why that was refused.
    pub(crate) async fn open(&mut self) -> Result<Outcome, Failure> {
        let opened = Box::pin(self.connect()).await;
        if !matches!(opened, Ok(Outcome::Answered)) {
            self.link = Link::None;
        }
        opened
    }

    async fn connect(&mut self) -> Result<Outcome, Failure> {
        (self.next_id, self.link) = (1, Link::None);
        self.cancelled.clear();
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{STATEFUL}","capabilities":{{}},"clientInfo":{{"name":"soak-{}","version":"1"}}}}}}"#,
            self.number
        );
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        if self.kind == Kind::WebSocket {
            let mut socket = WebSocket::open(self.address, &self.path("/ws")).await?;
            socket.send(hello.as_bytes()).await?;
            // A server that starts may have told something before.
            let outcome = loop {
                let message = socket.receive().await?;
                if let Some(answer) = Answer::read(&message)?.of(0)? {
                    break answer.opened(self.place())?;
                }
            };
            socket.send(initialized).await?;
            self.link = Link::WebSocket(socket);
            return Ok(outcome);
        }
        let mut connection = HttpConnection::open(self.address).await?;
        if self.kind.is_stateless() {
            self.link = Link::Http(connection, None);
            return Ok(Outcome::Answered);
        }
        connection
            .send(&self.head("POST", None, None), hello.as_bytes())
            .await?;
        let answer = connection.answer().await?;
        let session = answer.session.clone();
        let outcome = match only(&answer, 0)? {
            Some(answer) => answer.opened(self.place())?,
            None => return Err("a session was not opened, and not refused".into()),
        };
        if outcome == Outcome::Answered {
            let head = self.head("POST", session.as_deref(), None);
            connection.send(&head, initialized).await?;
            expect(&connection.answer().await?, 202)?;
            self.link = Link::Http(connection, Some(session.ok_or("no id of the session")?));
        }
        Ok(outcome)
    }

    /// Ends the session and the connection.
    pub(crate) async fn close(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.link, Link::None) {
            Link::None | Link::Http(_, None) => Ok(()),
            Link::WebSocket(socket) => socket.close().await,
            Link::Http(mut connection, Some(session)) => {
                let head = self.head("DELETE", Some(&session), None);
                connection.send(&head, b"").await?;
                let answer = connection.answer().await?;
                if !(200..300).contains(&answer.status) {
                    return Err(format!("a session did not end: {}", answer.status).into());
                }
                Ok(())
            }
        }
    }

    /// Makes a call. An error is a violation: everything else that may become of a call is an
    /// outcome.
    pub(crate) async fn call(
        &mut self,
        call: &Call,
        patience: Patience,
    ) -> Result<Outcome, Failure> {
        let id = self.next_id;
        self.next_id += 1;
        let tool = match self.place {
            Some(_) => "count".to_owned(),
            None => format!("mcp__{}__count", call.server),
        };
        let body = self.body(id, &tool, call);
        match std::mem::replace(&mut self.link, Link::None) {
            Link::None => Err("a client that is not connected".into()),
            Link::WebSocket(socket) => self.call_on_socket(socket, id, &body, call, patience).await,
            Link::Http(connection, session) => {
                let request = (self.head("POST", session.as_deref(), Some(&tool)), body);
                Box::pin(self.call_by_post((connection, session), id, request, call, patience))
                    .await
            }
        }
    }

    async fn call_by_post(
        &mut self,
        (mut connection, session): (HttpConnection, Option<String>),
        id: u64,
        (head, body): (String, String),
        call: &Call,
        patience: Patience,
    ) -> Result<Outcome, Failure> {
        connection.send(&head, body.as_bytes()).await?;
        let left_after = match patience {
            Patience::Waits => None,
            // Without a session, leaving is how a call is cancelled.
            Patience::CancelsAfter(time) if session.is_some() => {
                let answering = async { connection.answer().await };
                let cancelling = self.cancel_after(time, session.as_deref(), id);
                let (answer, cancelled) = tokio::join!(answering, cancelling);
                cancelled?;
                self.link = Link::Http(connection, session);
                return match only(&answer?, id)? {
                    Some(answer) => answer.outcome(&self.text(call), &call.server),
                    None => Ok(Outcome::Cancelled),
                };
            }
            Patience::CancelsAfter(time) | Patience::LeavesAfter(time) => Some(time),
        };
        let answer = match left_after {
            None => connection.answer().await?,
            Some(time) => match timeout(time, connection.answer()).await {
                Ok(answer) => answer?,
                Err(_elapsed) => {
                    drop(connection);
                    let connection = HttpConnection::open(self.address).await?;
                    self.link = Link::Http(connection, session);
                    return Ok(Outcome::Left);
                }
            },
        };
        self.link = Link::Http(connection, session);
        match only(&answer, id)? {
            Some(answer) => answer.outcome(&self.text(call), &call.server),
            None => Err(format!("call {} was not answered: {}", call.number, answer.status).into()),
        }
    }

    /// Cancels a call of a session, from another connection.
    async fn cancel_after(
        &self,
        time: Duration,
        session: Option<&str>,
        id: u64,
    ) -> Result<(), Failure> {
        sleep(time).await;
        let mut connection = HttpConnection::open(self.address).await?;
        let head = self.head("POST", session, None);
        connection.send(&head, cancelling(id).as_bytes()).await?;
        expect(&connection.answer().await?, 202)
    }

    async fn call_on_socket(
        &mut self,
        mut socket: WebSocket,
        id: u64,
        body: &str,
        call: &Call,
        patience: Patience,
    ) -> Result<Outcome, Failure> {
        socket.send(body.as_bytes()).await?;
        let answer = match patience {
            Patience::Waits => Some(self.answer_on_socket(&mut socket, id).await?),
            Patience::CancelsAfter(time) => {
                match timeout(time, self.answer_on_socket(&mut socket, id)).await {
                    Ok(answer) => Some(answer?),
                    Err(_elapsed) => {
                        socket.send(cancelling(id).as_bytes()).await?;
                        let late = self.answer_on_socket(&mut socket, id);
                        timeout(AFTER_CANCEL, late).await.ok().transpose()?
                    }
                }
            }
            Patience::LeavesAfter(time) => {
                match timeout(time, self.answer_on_socket(&mut socket, id)).await {
                    Ok(answer) => Some(answer?),
                    // The session of a WebSocket ends with it; a new one is opened by whoever needs it.
                    Err(_elapsed) => return Ok(Outcome::Left),
                }
            }
        };
        self.link = Link::WebSocket(socket);
        if let Some(answer) = answer {
            return answer.outcome(&self.text(call), &call.server);
        }
        self.cancelled.insert(id, call.clone());
        Ok(Outcome::Cancelled)
    }

    /// Waits for an answer to `id`. Answers to calls that were cancelled may come once each.
    async fn answer_on_socket(
        &mut self,
        socket: &mut WebSocket,
        id: u64,
    ) -> Result<Answer, Failure> {
        loop {
            let message = socket.receive().await?;
            let answer = Answer::read(&message)?;
            let late = answer.id.and_then(|other| self.cancelled.remove(&other));
            if let Some(late) = late {
                answer.outcome(&self.text(&late), &late.server)?;
            } else if let Some(answer) = answer.of(id)? {
                return Ok(answer);
            }
        }
    }

    fn path(&self, base: &str) -> String {
        match &self.place {
            Some(server) => format!("{base}/{server}"),
            None => base.to_owned(),
        }
    }

    fn head(&self, method: &str, session: Option<&str>, tool: Option<&str>) -> String {
        let line = |(name, value): (&str, &str)| format!("{name}: {value}\r\n");
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: {}\r\n",
            self.path("/mcp"),
            self.address,
            self.kind.accepts()
        );
        if let Some(session) = session {
            head += &[
                ("mcp-session-id", session),
                ("mcp-protocol-version", STATEFUL),
            ]
            .map(line)
            .concat();
        } else if let Some(tool) = tool {
            let lines = [
                ("mcp-protocol-version", STATELESS),
                ("mcp-method", "tools/call"),
                ("mcp-name", tool),
            ];
            head += &lines.map(line).concat();
        }
        head
    }

    fn body(&self, id: u64, tool: &str, call: &Call) -> String {
        let meta = if self.kind.is_stateless() {
            format!(
                r#","_meta":{{"io.modelcontextprotocol/protocolVersion":"{STATELESS}","io.modelcontextprotocol/clientInfo":{{"name":"soak","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
            )
        } else {
            String::new()
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"number":{},"text":"{}"}}{meta}}}}}"#,
            call.number,
            self.text(call)
        )
    }

    /// What only the answer to this call of this client says.
    fn text(&self, call: &Call) -> String {
        format!(
            "client {} call {} of {}",
            self.number, call.number, call.server
        )
    }
}

fn cancelling(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    )
}

fn expect(answer: &HttpAnswer, status: u16) -> Result<(), Failure> {
    if answer.status == status {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&answer.body);
    Err(format!("status {} instead of {status}: {text}", answer.status).into())
}
