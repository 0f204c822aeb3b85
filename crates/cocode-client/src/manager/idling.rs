//! Servers that nobody uses: when they are to be stopped, and who may finish first.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::server::{Order, Server};
use super::shared::Shared;
use crate::clock::later;
use crate::session::Session;

/// How often a server that is being stopped is looked at, while somebody still uses it.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// When the server has idled for long enough, as things are now.
pub(crate) fn idle_at(shared: &Shared, server: &Server, session: &Session) -> Option<Instant> {
    let limit = server
        .spec()
        .idle_stop
        .or(shared.options.health.idle_stop)?;
    let is_busy = session.in_flight() > 0;
    let since = server.idle_since().filter(|_| !is_busy);
    // While somebody uses it, it is looked at again after the limit.
    Some(later(since.unwrap_or_else(Instant::now), limit))
}

/// Lets those finish who got hold of the session just before it was to be stopped. Ends with an
/// order that comes meanwhile: whoever gave it may be one of those who use the server, and wait
/// for it.
pub(crate) async fn let_finish(
    server: &Server,
    session: &Session,
    orders: &mut mpsc::Receiver<Order>,
) -> Option<Order> {
    let until = later(Instant::now(), server.spec().tool_timeout);
    while (server.is_in_use() || session.in_flight() > 0) && Instant::now() < until {
        tokio::select! {
            order = orders.recv() => return Some(order.unwrap_or(Order::End)),
            () = sleep(LOOK_AGAIN) => {}
        }
    }
    None
}
