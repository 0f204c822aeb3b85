//! The server itself: accepts connections, watches over them, and ends in order.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_rustls::TlsAcceptor;

use super::connection::{Connections, Place, Watched};
use super::door::Door;
use super::handler::{Handler, Shared, Stage};
use super::options::{BindError, HttpLimits, HttpServerOptions};
use super::reply::{self, Reply};
use super::site::Site;
use crate::limits::ACCEPT_RETRY;

/// Connections beyond the cap that are told so at a time; others wait.
const REFUSED_AT_A_TIME: usize = 64;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// The smallest buffer that the HTTP parser works with.
const MIN_BUFFER_BYTES: usize = 8192;

/// How often a server that ends looks which sessions have finished.
const DRAIN_INTERVAL: Duration = Duration::from_millis(25);

/// How long connections may take to send what is left when nothing more is waited for.
pub(super) const GOODBYE: Duration = Duration::from_secs(1);

/// How long the store of sessions may take for the last that it is told.
const KEPT_WITHIN: Duration = Duration::from_secs(5);

/// An HTTP server that listens.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    stage: watch::Sender<Stage>,
    connections: Arc<Connections>,
    permits: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    tls: Option<TlsAcceptor>,
    http: http1::Builder,
}

impl HttpServer {
    /// Begins to listen. Needs a runtime around it. Nothing is answered before
    /// [`HttpServer::serve`].
    pub fn bind(options: HttpServerOptions, site: Arc<dyn Site>) -> Result<Self, BindError> {
        let requested = options.listen;
        let cannot = |source| BindError::Listen {
            address: requested,
            source,
        };
        let (listener, address) = listen(requested).map_err(cannot)?;
        let limits = options.limits;
        let (stage, reached) = watch::channel(Stage::Serving);
        Ok(Self {
            listener,
            address,
            stage,
            connections: Arc::new(Connections::new(&limits)),
            permits: Arc::new(Semaphore::new(limits.max_connections)),
            refusals: Arc::new(Semaphore::new(REFUSED_AT_A_TIME)),
            tls: options.tls.clone().map(TlsAcceptor::from),
            http: reader(&limits),
            shared: Arc::new(Shared::new(options, address.ip(), site, reached)),
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// A hand on the server while it runs.
    pub fn door(&self) -> Door {
        Door::of(&self.shared)
    }

    /// Serves until `shutdown` is ready, and then ends in order: takes no more connections, lets
    /// requests finish within the limit, ends sessions and streams, and closes. Sessions that are in
    /// the store stay there: others go on with them.
    ///
    /// Dropping the future ends everything at once.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut tasks = JoinSet::new();
        let mut keeping = JoinSet::new();
        if let Some(keeper) = &self.shared.keeper {
            let shared = Arc::downgrade(&self.shared);
            keeping.spawn(Arc::clone(keeper).run(shared));
        }
        let limits = &self.shared.options.limits;
        let mut clock = ticker(self.connections.tick_interval());
        let sweep = limits.session_idle / 8;
        let mut sweep = ticker(sweep.clamp(Duration::from_millis(10), Duration::from_mins(1)));
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                (stream, permit) = self.accept() => self.begin(&mut tasks, stream, permit),
                Some(_ended) = tasks.join_next() => {}
                _ = clock.tick(), if !tasks.is_empty() => self.connections.tick(),
                _ = sweep.tick(), if !self.shared.sessions.is_empty() => {
                    self.shared.sessions.end_idle();
                }
            }
        }
        let keeper = self.shared.keeper.clone();
        self.drain(tasks).await;
        if let Some(keeper) = keeper {
            keeper.close();
            if timeout(KEPT_WITHIN, keeping.join_next()).await.is_err() {
                tracing::warn!("the store of sessions was not told everything before the end");
            }
        }
    }

    /// A connection, and a permit unless there are too many.
    async fn accept(&self) -> (TcpStream, Permit) {
        loop {
            let permit = match Arc::clone(&self.permits).try_acquire_owned() {
                Ok(permit) => Permit::Welcome(permit),
                Err(_none) => {
                    // Whoever is to be told and says nothing must not keep others from being told.
                    if self.refusals.available_permits() == 0 {
                        self.connections.evict_unused();
                    }
                    tokio::select! {
                        biased;
                        Ok(permit) = Arc::clone(&self.permits).acquire_owned() => {
                            Permit::Welcome(permit)
                        }
                        Ok(permit) = Arc::clone(&self.refusals).acquire_owned() => {
                            Permit::TooMany(permit)
                        }
                        // Nobody closes the semaphores.
                        else => std::future::pending().await,
                    }
                }
            };
            match self.listener.accept().await {
                Ok((stream, _)) => return (stream, self.latest(permit)),
                Err(error) if is_of_the_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    /// There may be room again by the time that somebody comes, or there is once an unused connection is gone.
    fn latest(&self, permit: Permit) -> Permit {
        match (permit, Arc::clone(&self.permits).try_acquire_owned()) {
            (Permit::TooMany(_), Ok(permit)) => Permit::Welcome(permit),
            (Permit::TooMany(refusal), Err(_none)) if self.connections.evict_unused() => {
                let mut freed = Arc::clone(&self.permits).acquire_owned().boxed();
                // Asked once here: whoever is accepted later is behind in the queue.
                match (&mut freed).now_or_never() {
                    Some(Ok(permit)) => Permit::Welcome(permit),
                    _ => Permit::Freed(refusal, freed),
                }
            }
            (permit, _) => permit,
        }
    }

    fn begin(&self, tasks: &mut JoinSet<()>, stream: TcpStream, permit: Permit) {
        // Answers are written whole, so there is nothing to be gained by waiting.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection broke before it was served");
            return;
        }
        let place = self.connections.enter();
        let number = place.number();
        let connection = Connection {
            shared: Arc::clone(&self.shared),
            http: self.http.clone(),
            place,
            permit,
        };
        let tls = self.tls.clone();
        let abort = tasks.spawn(async move {
            match tls {
                None => connection.run(stream).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => connection.run(stream).await,
                    Err(error) => tracing::debug!(%error, "no TLS connection"),
                },
            }
        });
        self.connections.set_abort(number, abort);
    }

    async fn drain(self, mut tasks: JoinSet<()>) {
        let Self {
            listener,
            shared,
            stage,
            ..
        } = self;
        drop(listener);
        stage.send_replace(Stage::Draining);
        let deadline = Instant::now() + shared.options.limits.drain;
        while !tasks.is_empty() || !shared.sessions.is_empty() || !shared.upgrades.is_empty() {
            shared.sessions.end_resting();
            let look_again = Instant::now() + DRAIN_INTERVAL;
            tokio::select! {
                Some(_ended) = tasks.join_next() => {}
                () = tokio::time::sleep_until(look_again.min(deadline)) => {}
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        stage.send_replace(Stage::Ended);
        shared.sessions.end_all();
        let mut upgrades = shared.upgrades.take();
        let flush = async {
            while tasks.join_next().await.is_some() {}
            while upgrades.join_next().await.is_some() {}
        };
        if timeout(GOODBYE, flush).await.is_err() {
            tracing::debug!("some connections did not end in time");
        }
        tasks.shutdown().await;
        upgrades.shutdown().await;
    }
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HttpServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// What reads requests within these limits.
pub(super) fn reader(limits: &HttpLimits) -> http1::Builder {
    let mut http = http1::Builder::new();
    // The connections are watched over as a whole, which is cheaper and tells a slow client from
    // one that has nothing to say.
    http.header_read_timeout(None)
        .max_header_size(limits.max_header_bytes)
        .max_buf_size(limits.max_header_bytes.max(MIN_BUFFER_BYTES));
    http
}

/// What allows a connection.
pub(super) enum Permit {
    Welcome(OwnedSemaphorePermit),
    /// Only to be told that there are too many.
    TooMany(OwnedSemaphorePermit),
    /// The permit of an unused connection, as soon as that has ended.
    Freed(
        OwnedSemaphorePermit,
        BoxFuture<'static, Result<OwnedSemaphorePermit, AcquireError>>,
    ),
}

/// A connection that was accepted.
pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) http: http1::Builder,
    pub(super) place: Place,
    pub(super) permit: Permit,
}

impl Connection {
    pub(super) async fn run(self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let Self {
            shared,
            mut http,
            place,
            permit,
        } = self;
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&place.pulse)));
        let permit = match permit {
            Permit::Freed(refusal, freed) => match timeout(GOODBYE, freed).await {
                Ok(Ok(permit)) => Permit::Welcome(permit),
                _ => Permit::TooMany(refusal),
            },
            other => other,
        };
        let permit = match permit {
            Permit::Welcome(permit) => permit,
            Permit::TooMany(permit) | Permit::Freed(permit, _) => {
                let refuse = service_fn(|_request| async { Ok::<_, Infallible>(too_many()) });
                let served = http.keep_alive(false).serve_connection(io, refuse).await;
                drop(permit);
                return note_end(served);
            }
        };
        let handler = Arc::new(Handler {
            shared: Arc::clone(&shared),
            pulse: Arc::clone(&place.pulse),
            permit: Arc::new(permit),
        });
        let service =
            service_fn(move |request: Request<Incoming>| Arc::clone(&handler).handle(request));
        let mut connection = pin!(http.serve_connection(io, service).with_upgrades());
        let served = tokio::select! {
            biased;
            served = connection.as_mut() => served,
            () = shared.draining() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    biased;
                    served = connection.as_mut() => served,
                    // The request under way is looked at once more, and sees that it is over.
                    () = shared.ended() => connection.await,
                }
            }
        };
        note_end(served);
    }
}

fn note_end(served: hyper::Result<()>) {
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended badly");
    }
}

fn too_many() -> Reply {
    let mut reply = reply::unavailable("There are too many connections");
    let close = http::HeaderValue::from_static("close");
    reply.headers_mut().insert(header::CONNECTION, close);
    reply
}

fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // A server that is started again must not wait for the connections of the last one to time out.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

pub(super) fn ticker(period: Duration) -> Interval {
    let mut ticker = interval_at(Instant::now() + period, period);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticker
}

/// Whether only that one connection failed.
fn is_of_the_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}
