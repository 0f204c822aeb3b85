//! The servers that are no programs, together in one process of their own: HTTP of both eras,
//! web sockets and unix sockets. It is told line by line which of them to kill and to start again.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use cocode_testkit::{Era, HttpServer, Script, UnixServer, WebSocketServer};

use crate::Failure;

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
    ModernHttp,
    WebSocket,
    Unix,
}

impl Transport {
    /// In turn, so that every count of servers has a mix of them.
    pub(crate) const MIX: [Self; 8] = [
        Self::Stdio,
        Self::Http,
        Self::Stdio,
        Self::WebSocket,
        Self::Stdio,
        Self::ModernHttp,
        Self::Stdio,
        Self::Unix,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::ModernHttp => "modern-http",
            Self::WebSocket => "websocket",
            Self::Unix => "unix",
        }
    }

    fn named(name: &str) -> Result<Self, Failure> {
        let found = Self::MIX.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("no transport `{name}`").into())
    }
}

/// A server that answers the calls of its echo tool after some time, so that calls are under way
/// when it is killed.
pub(crate) fn script(transport: Transport, number: usize) -> Script {
    let millis = [0, 20, 50, 100, 250];
    let time = Duration::from_millis(millis[number % millis.len()]);
    let script = match transport {
        Transport::ModernHttp => Script::new().era(Era::Modern),
        Transport::Http => Script::new().get_stream(),
        Transport::Stdio | Transport::WebSocket | Transport::Unix => Script::new(),
    };
    script.on("tools/call").delay(time).as_usual()
}

/// The farm as the soak sees it. It ends with its stdin.
#[derive(Debug)]
pub(crate) struct Farm {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Farm {
    /// Starts servers of these transports, and gives their addresses.
    pub(crate) fn start(
        mark: &str,
        transports: &[Transport],
    ) -> Result<(Self, Vec<String>), Failure> {
        #[expect(
            clippy::disallowed_methods,
            reason = "it plays the servers, and is none of the client's processes"
        )]
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["soak-farm", mark])
            .args(transports.iter().map(|transport| transport.name()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the farm has no pipes".into());
        };
        let mut farm = Self {
            child,
            orders,
            answers: BufReader::new(answers).lines(),
        };
        let mut addresses = Vec::new();
        for _ in transports {
            addresses.push(farm.answer()?);
        }
        Ok((farm, addresses))
    }

    pub(crate) fn kill(&mut self, number: usize) -> Result<(), Failure> {
        self.order("kill", number)
    }

    pub(crate) fn restart(&mut self, number: usize) -> Result<(), Failure> {
        self.order("restart", number)
    }

    /// Ends it and waits for that.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let Self {
            mut child,
            orders,
            answers: _,
        } = self;
        drop(orders);
        let status = child.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(format!("the farm ended with {status}").into())
    }

    fn order(&mut self, verb: &str, number: usize) -> Result<(), Failure> {
        let line = format!("{verb} {number}\n");
        self.orders.write_all(line.as_bytes())?;
        let answer = self.answer()?;
        if answer == "done" {
            return Ok(());
        }
        Err(format!("the farm says {answer}").into())
    }

    fn answer(&mut self) -> Result<String, Failure> {
        let line = self.answers.next();
        Ok(line.ok_or("the farm has ended")??)
    }
}

/// The process itself: `cocode-bench soak-farm MARK TRANSPORT…`.
pub(crate) fn serve(transports: &[String]) -> Result<(), Failure> {
    let mut plants = Vec::new();
    let mut output = std::io::stdout();
    for (number, transport) in transports.iter().enumerate() {
        let plant = Plant::start(Transport::named(transport)?, number)?;
        writeln!(output, "{}", plant.address())?;
        plants.push(plant);
    }
    for order in std::io::stdin().lock().lines() {
        let order = order?;
        let (verb, number) = order.split_once(' ').ok_or("an order without a number")?;
        let plant = plants.get(number.parse::<usize>()?);
        let plant = plant.ok_or("an order for no server")?;
        match verb {
            "kill" => plant.kill(),
            "restart" => plant.restart(),
            _ => return Err(format!("no order `{verb}`").into()),
        }
        writeln!(output, "done")?;
    }
    Ok(())
}

/// One server of the farm.
struct Plant {
    script: Script,
    server: Server,
}

enum Server {
    Http(HttpServer),
    WebSocket(WebSocketServer),
    Unix(UnixServer),
}

impl Plant {
    fn start(transport: Transport, number: usize) -> Result<Self, Failure> {
        let script = script(transport, number);
        let server = match transport {
            Transport::Http | Transport::ModernHttp => Server::Http(script.http()),
            Transport::WebSocket => Server::WebSocket(script.websocket()),
            Transport::Unix => Server::Unix(script.unix()),
            Transport::Stdio => return Err("a program does not grow on the farm".into()),
        };
        Ok(Self { script, server })
    }

    fn address(&self) -> String {
        match &self.server {
            Server::Http(server) => server.url(),
            Server::WebSocket(server) => server.url(),
            Server::Unix(server) => server.url(),
        }
    }

    fn kill(&self) {
        match &self.server {
            Server::Http(server) => server.kill(),
            Server::WebSocket(server) => server.kill(),
            Server::Unix(server) => server.kill(),
        }
    }

    /// Starts it again, and forgets what it has heard: nobody asks, and it is a lot.
    fn restart(&self) {
        match &self.server {
            Server::Http(server) => {
                server.requests().clear();
                server.abandoned().clear();
                server.connections().clear();
                server.restart(&self.script);
            }
            Server::WebSocket(server) => {
                server.received().clear();
                server.handshakes().clear();
                server.restart(&self.script);
            }
            Server::Unix(server) => {
                server.received().clear();
                server.connections().clear();
                server.restart(&self.script);
            }
        }
    }
}
