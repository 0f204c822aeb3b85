//! A server of any transport that a test can kill, restart and leave hanging, with the
//! specification by which it is reached.

use cocode_client::{Target, http, legacy_sse, unix, websocket};
use cocode_core::{Reach, RemoteTransport, ServerName, ServerSpec};
use cocode_testkit::{
    Era, HttpRequest, HttpServer, Message, Script, StdioServer, UnixServer, WebSocketServer,
};

use crate::support;

/// Every way to reach a server, and both eras where they travel differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    /// Streamable HTTP with a session, and a stream for what nobody asked for.
    Http,
    /// Streamable HTTP of the modern era.
    ModernHttp,
    /// HTTP+SSE.
    Sse,
    WebSocket,
    Unix,
}

impl Transport {
    pub(crate) const ALL: [Self; 6] = [
        Self::Stdio,
        Self::Http,
        Self::ModernHttp,
        Self::Sse,
        Self::WebSocket,
        Self::Unix,
    ];

    /// Whether the end of the server is the end of a connection that is always open.
    pub(crate) fn is_connected(self) -> bool {
        match self {
            Self::Stdio | Self::Sse | Self::WebSocket | Self::Unix => true,
            Self::Http | Self::ModernHttp => false,
        }
    }

    /// The script as a server of this transport.
    fn dress(self, script: &Script) -> Script {
        let script = script.clone();
        match self {
            Self::Http => script.get_stream(),
            Self::ModernHttp => script.era(Era::Modern),
            Self::Sse => script.http_sse(),
            Self::Stdio | Self::WebSocket | Self::Unix => script,
        }
    }
}

/// A server at the test's mercy.
#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) transport: Transport,
    server: Server,
}

#[derive(Debug)]
enum Server {
    Stdio(StdioServer),
    Http(HttpServer),
    WebSocket(WebSocketServer),
    Unix(UnixServer),
}

impl Faulty {
    /// Starts the script; as a program, it only can be started from now on.
    pub(crate) fn start(transport: Transport, script: &Script) -> Self {
        let script = transport.dress(script);
        let server = match transport {
            Transport::Stdio => Server::Stdio(script.stdio()),
            Transport::Http | Transport::ModernHttp | Transport::Sse => Server::Http(script.http()),
            Transport::WebSocket => Server::WebSocket(script.websocket()),
            Transport::Unix => Server::Unix(script.unix()),
        };
        Self { transport, server }
    }

    /// How a manager reaches it.
    pub(crate) fn spec(&self, name: &str) -> ServerSpec {
        let name: ServerName = name.parse().unwrap();
        let url = match &self.server {
            Server::Stdio(server) => {
                let program = server.program().to_str().unwrap();
                return ServerSpec::program(name, program, server.args());
            }
            Server::Http(server) => server.url(),
            Server::WebSocket(server) => server.url(),
            Server::Unix(server) => server.url(),
        };
        let mut spec = ServerSpec::remote(name, url);
        if let Reach::Remote(remote) = &mut spec.reach {
            match self.transport {
                Transport::Http | Transport::ModernHttp => {
                    remote.transport = RemoteTransport::Http;
                }
                Transport::Sse => remote.transport = RemoteTransport::Sse,
                Transport::Stdio | Transport::WebSocket | Transport::Unix => {}
            }
        }
        spec
    }

    /// The authority behind its certificate, if it has one.
    pub(crate) fn authority_pem(&self) -> String {
        match &self.server {
            Server::Http(server) => server.authority_pem(),
            Server::WebSocket(server) => server.authority_pem(),
            Server::Stdio(_) | Server::Unix(_) => panic!("{self:?} knows no TLS"),
        }
    }

    /// How a single session reaches it.
    pub(crate) fn target(&self) -> Target {
        match &self.server {
            Server::Stdio(server) => support::stdio(server),
            Server::Http(server) if self.transport == Transport::Sse => {
                legacy_sse(server.url().parse().unwrap())
            }
            Server::Http(server) => http(server.url().parse().unwrap()),
            Server::WebSocket(server) => websocket(server.url().parse().unwrap()),
            Server::Unix(server) => unix(server.path().to_owned()),
        }
    }

    /// Ends it without warning. A program can be started again at once; the others are down until
    /// they are restarted.
    pub(crate) fn kill(&self) {
        match &self.server {
            Server::Stdio(server) => server.kill(),
            Server::Http(server) => server.kill(),
            Server::WebSocket(server) => server.kill(),
            Server::Unix(server) => server.kill(),
        }
    }

    /// As [`Self::kill`], but a program that is started again ends at once, until it is restarted.
    pub(crate) fn take_down(&self) {
        match &self.server {
            Server::Stdio(server) => server.restart(&Script::new().on_start().exit(3)),
            Server::Http(_) | Server::WebSocket(_) | Server::Unix(_) => self.kill(),
        }
    }

    /// Puts a server with this script in its place, ending the one that was there.
    pub(crate) fn restart(&self, script: &Script) {
        let script = self.transport.dress(script);
        match &self.server {
            Server::Stdio(server) => server.restart(&script),
            Server::Http(server) => server.restart(&script),
            Server::WebSocket(server) => server.restart(&script),
            Server::Unix(server) => server.restart(&script),
        }
    }

    /// Lets it stand still: it answers nothing any more, not even pings.
    pub(crate) fn hang(&self) {
        match &self.server {
            Server::Stdio(server) => server.hang(),
            Server::Http(server) => server.hang(),
            Server::WebSocket(server) => server.hang(),
            Server::Unix(server) => server.hang(),
        }
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        match &self.server {
            Server::Stdio(server) => server.resume(),
            Server::Http(server) => server.resume(),
            Server::WebSocket(server) => server.resume(),
            Server::Unix(server) => server.resume(),
        }
    }

    /// Waits until it has received this many messages of the method, over all its lives.
    pub(crate) async fn hears(&self, method: &str, times: usize) {
        self.hears_about(method, "", times).await;
    }

    /// How many messages of the method it has received so far, over all its lives.
    pub(crate) fn heard(&self, method: &str) -> usize {
        self.heard_about(method, "")
    }

    /// As [`Self::hears`], for messages with this text in them.
    pub(crate) async fn hears_about(&self, method: &str, text: &str, times: usize) {
        let fits = |message: &Message| message.is(method) && message.raw.contains(text);
        let enough = |all: &[Message]| all.iter().filter(|message| fits(message)).count() >= times;
        match &self.server {
            Server::Stdio(server) => server.received().wait_until(enough).await,
            Server::Http(server) => {
                let enough = |all: &[HttpRequest]| {
                    let all = all.iter().filter(|request| fits(&request.message()));
                    all.count() >= times
                };
                server.requests().wait_until(enough).await;
            }
            Server::WebSocket(server) => server.received().wait_until(enough).await,
            Server::Unix(server) => server.received().wait_until(enough).await,
        }
    }

    /// As [`Self::heard`], for messages with this text in them.
    pub(crate) fn heard_about(&self, method: &str, text: &str) -> usize {
        let fits = |message: &Message| message.is(method) && message.raw.contains(text);
        match &self.server {
            Server::Stdio(server) => server.received().count(fits),
            Server::Http(server) => server.requests().count(|request| fits(&request.message())),
            Server::WebSocket(server) => server.received().count(fits),
            Server::Unix(server) => server.received().count(fits),
        }
    }
}
