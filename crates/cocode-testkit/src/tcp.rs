//! A port of the loopback interface that a server can lose and get back, plain or behind TLS.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};

use crate::background::{Background, accept_all};
use crate::breaker::{Breaker, Breakers};
use crate::presence::Presence;
use crate::recorder::Recorder;
use crate::script::Script;
use crate::tls::Identity;

/// How long somebody else may keep a listener that was ours.
const PORT_PATIENCE: Duration = Duration::from_secs(20);

/// The bytes of a connection, plain or behind TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// One accepted connection.
pub(crate) struct Connection {
    /// Counted from one since the server was started.
    pub(crate) number: u32,
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) breaker: Breaker,
}

/// Serves one connection.
pub(crate) type Serve = Arc<dyn Fn(Connection) -> BoxFuture<'static, ()> + Send + Sync>;

/// A port, and the server that is there.
#[derive(Debug)]
pub(crate) struct Port {
    address: SocketAddr,
    presence: Presence,
    /// Keeps the port from others while the server is down.
    reserved: Mutex<Option<TcpSocket>>,
    breakers: Breakers,
    accepted: Recorder<u32>,
    authority: Mutex<Option<String>>,
}

impl Port {
    /// Starts a server on a free port.
    pub(crate) fn start(script: &Script, serve: Serve) -> Self {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)));
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let (breakers, accepted) = (Breakers::default(), Recorder::default());
        let identity = script.tls.then(Identity::generate);
        let authority = authority_of(identity.as_ref());
        let server = background(
            listener,
            identity,
            serve,
            breakers.clone(),
            accepted.clone(),
        );
        Self {
            address,
            presence: Presence::new(server),
            reserved: Mutex::default(),
            breakers,
            accepted,
            authority: Mutex::new(authority),
        }
    }

    /// Ends the server and resets its connections. Until it is restarted, nobody listens.
    pub(crate) fn kill(&self) {
        assert!(self.presence.is_up(), "the server is down already");
        self.breakers.arm_all();
        self.presence.end();
        *lock(&self.reserved) = Some(self.reserve());
    }

    /// Keeps the port. A process that is just being started somewhere else in the test may have the
    /// listener for a moment longer than we.
    fn reserve(&self) -> TcpSocket {
        let give_up = Instant::now() + PORT_PATIENCE;
        loop {
            let socket = TcpSocket::new_v4().expect("sockets can be made");
            socket.set_reuseaddr(true).expect("addresses can be reused");
            match socket.bind(self.address) {
                Ok(()) => return socket,
                Err(error) => assert!(Instant::now() < give_up, "the port was just ours: {error}"),
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Starts another server on the same port, in the place of one that is killed by now.
    pub(crate) fn restart(&self, script: &Script, serve: Serve) {
        if self.presence.is_up() {
            self.kill();
        }
        let identity = script.tls.then(Identity::generate);
        *lock(&self.authority) = authority_of(identity.as_ref());
        drop(lock(&self.reserved).take());
        let (breakers, accepted) = (self.breakers.clone(), self.accepted.clone());
        let listener = listen(self.address);
        let server = background(listener, identity, serve, breakers, accepted);
        self.presence.begin(server);
    }

    pub(crate) fn presence(&self) -> &Presence {
        &self.presence
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connections that were accepted.
    pub(crate) fn accepted(&self) -> &Recorder<u32> {
        &self.accepted
    }

    /// The certificate of the authority behind the server's own.
    pub(crate) fn authority_pem(&self) -> String {
        let authority = lock(&self.authority).clone();
        authority.expect("this server speaks no TLS; see `Script::tls`")
    }

    /// The scheme of the server's URLs: this one, with an `s` where it speaks TLS.
    pub(crate) fn scheme(&self, plain: &str) -> String {
        let suffix = if lock(&self.authority).is_some() {
            "s"
        } else {
            ""
        };
        format!("{plain}{suffix}")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn authority_of(identity: Option<&Identity>) -> Option<String> {
    identity.map(|identity| identity.authority_pem.clone())
}

fn listen(address: SocketAddr) -> StdListener {
    let listener = StdListener::bind(address).expect("a port on the loopback interface");
    listener
        .set_nonblocking(true)
        .expect("sockets can be nonblocking");
    listener
}

fn background(
    listener: StdListener,
    identity: Option<Identity>,
    serve: Serve,
    breakers: Breakers,
    accepted: Recorder<u32>,
) -> Background {
    Background::start(|| async move {
        let listener = TcpListener::from_std(listener).expect("the socket is nonblocking");
        let accept = async || {
            let (socket, _) = listener
                .accept()
                .await
                .expect("connections can be accepted");
            socket
        };
        accept_all(accept, |number, socket| {
            accepted.push(number);
            let breaker = breakers.add(&socket);
            let (serve, identity) = (Arc::clone(&serve), identity.clone());
            async move {
                socket
                    .set_nodelay(true)
                    .expect("a TCP socket knows this option");
                let stream: Box<dyn Stream> = match identity {
                    None => Box::new(socket),
                    // A client that does not believe us hangs up, and nothing follows.
                    Some(identity) => match identity.acceptor.accept(socket).await {
                        Ok(secured) => Box::new(secured),
                        Err(_distrust) => return,
                    },
                };
                let connection = Connection {
                    number,
                    stream,
                    breaker,
                };
                serve(connection).await;
            }
        })
        .await;
    })
}
