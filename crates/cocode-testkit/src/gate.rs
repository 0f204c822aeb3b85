//! A gate that holds scripted servers, in this process or another, until a test opens it.
//!
//! It is a listening socket: a server that reaches the gate connects and waits for the end of the
//! stream. So neither side polls or sleeps, and a gate whose test has died lets everyone through.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt as _;

use crate::acceptor::Acceptor;
use crate::recorder::Recorder;

/// Holds the rules that [`Script::hold`](crate::Script::hold) at it, until it is opened or dropped.
#[derive(Debug)]
pub struct Gate {
    acceptor: Acceptor,
    state: Arc<Mutex<State>>,
    arrivals: Recorder<()>,
}

#[derive(Debug)]
enum State {
    Closed { held: Vec<TcpStream> },
    Open,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        let state = Arc::new(Mutex::new(State::Closed { held: Vec::new() }));
        let arrivals = Recorder::default();
        let (held_in, arrived) = (Arc::clone(&state), arrivals.clone());
        let acceptor = Acceptor::start(move |stream| {
            if let State::Closed { held } =
                &mut *held_in.lock().unwrap_or_else(PoisonError::into_inner)
            {
                held.push(stream);
            }
            arrived.push(());
        });
        Self {
            acceptor,
            state,
            arrivals,
        }
    }

    /// Lets everyone through, now and from now on.
    pub fn open(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Open;
    }

    /// Waits until a rule has come to the gate.
    pub async fn reached(&self) {
        self.reached_by(1).await;
    }

    /// Waits until this many rules have come to the gate.
    pub async fn reached_by(&self, arrivals: usize) {
        self.arrivals.wait_until(|all| all.len() >= arrivals).await;
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.acceptor.address()
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

/// The server's side: comes back when the gate is open.
pub(crate) async fn pass(gate: SocketAddr) {
    // A gate that cannot be reached was dropped, and a dropped gate is open.
    if let Ok(mut stream) = tokio::net::TcpStream::connect(gate).await {
        let mut nothing = Vec::new();
        let end = stream.read_to_end(&mut nothing).await;
        drop(end);
    }
}
