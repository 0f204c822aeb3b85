//! Servers that run beside the test: started, awaited, and ended with it.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::install::environment;

/// A server process on a port of its own.
pub(crate) struct Running {
    child: Child,
    pub(crate) port: u16,
}

/// How long a server may take to come up on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

impl Running {
    /// A script of ours, which picks a port and says `READY PORT`.
    pub(crate) fn announced(program: &Path, args: &[&Path]) -> Self {
        let mut child = command(program)
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let ready = lines.find_map(|line| {
            let line = line.expect("readable output");
            line.strip_prefix("READY ")
                .map(|port| port.trim().parse().expect("a port"))
        });
        Self {
            child,
            port: ready.expect("the server says READY before it ends"),
        }
    }

    /// A server that is told its port by `configure`.
    pub(crate) fn on_port(program: &Path, configure: impl Fn(&mut Command, u16)) -> Self {
        let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = probe.local_addr().expect("an address").port();
        drop(probe);
        let mut command = command(program);
        configure(&mut command, port);
        let running = Self {
            child: command.stdout(Stdio::null()).spawn().expect("it starts"),
            port,
        };
        running.wait_until_it_listens()
    }

    fn wait_until_it_listens(mut self) -> Self {
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let ended = self.child.try_wait().expect("a child of ours");
            assert!(ended.is_none(), "the server ended early: {ended:?}");
            assert!(started.elapsed() < PATIENCE, "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    // A piped stdin, held open: some servers end when it closes.
    command
        .env_clear()
        .envs(environment())
        .stdin(Stdio::piped())
        .stderr(Stdio::null());
    command
}
