//! HTTP on a connection that somebody else has accepted: within the same limits, and ended in the same
//! order, as on one of a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::connection::Connections;
use super::handler::{Shared, Stage};
use super::options::{HttpLimits, HttpServerOptions};
use super::server::{Connection, GOODBYE, Permit, reader, ticker};
use super::site::Site;

/// Serves one connection until it ends. When `shutdown` is ready, the request under way may finish
/// within the limit, and nothing else is taken, also nothing whose head has only begun.
///
/// Clients call whom they talk to `localhost`. Dropping the future ends the connection at once.
pub(crate) async fn serve_accepted(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    permit: OwnedSemaphorePermit,
    site: Arc<dyn Site>,
    limits: HttpLimits,
    shutdown: impl Future<Output = ()> + Send,
) {
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut options = HttpServerOptions::new(nowhere);
    options.limits = limits;
    let (stage, reached) = watch::channel(Stage::Serving);
    let connections = Arc::new(Connections::new(&limits));
    let place = connections.enter();
    let (number, pulse) = (place.number(), Arc::clone(&place.pulse));
    let connection = Connection {
        shared: Arc::new(Shared::new(options, nowhere.ip(), site, reached)),
        http: reader(&limits),
        place,
        permit: Permit::Welcome(permit),
    };
    // A task, so that one that says nothing for too long can be ended from here.
    let mut task = JoinSet::new();
    connections.set_abort(number, task.spawn(connection.run(stream)));
    let mut clock = ticker(connections.tick_interval());
    let mut watched = pin!(async {
        loop {
            tokio::select! {
                _ended = task.join_next() => return,
                _ = clock.tick() => connections.tick(),
            }
        }
    });
    tokio::select! {
        () = &mut watched => return,
        () = shutdown => {}
    }
    stage.send_replace(Stage::Draining);
    // Who has not come to the point is not waited for; what was answered last may be on its way yet.
    let is_busy = pulse.is_busy();
    let patience = if is_busy { limits.drain } else { GOODBYE };
    if timeout(patience, &mut watched).await.is_err() && is_busy {
        stage.send_replace(Stage::Ended);
        if timeout(GOODBYE, watched).await.is_err() {
            tracing::debug!("a connection did not end in time");
        }
    }
}
