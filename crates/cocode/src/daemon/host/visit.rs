//! Commands that come to the socket: they speak HTTP, and are the user, whose socket it is.

use std::sync::Arc;

use bytes::Bytes;
use cocode_admin::{Admin, Who};
use cocode_wire::serve::{Endpoint, HttpLimits, Page, Site, UnixClient};
use http::Request;
use tokio::sync::watch;

use super::{Host, Order};

/// The management API for the user.
struct LocalSite(Admin);

impl Site for LocalSite {
    fn endpoint(&self, _name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        None
    }

    fn page(&self, request: Request<Bytes>) -> Page<'_> {
        self.0.answer(request, Who::Local)
    }
}

/// Counts among the visits until it is dropped.
struct Visit<'a>(&'a watch::Sender<usize>);

impl<'a> Visit<'a> {
    fn new(visits: &'a watch::Sender<usize>) -> Self {
        visits.send_modify(|visits| *visits += 1);
        Self(visits)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0
            .send_modify(|visits| *visits = visits.saturating_sub(1));
    }
}

/// Whether a connection that begins like this is for HTTP, where every request begins with the name of
/// a method. Fronts begin with an object of JSON.
pub(super) fn is_http(first: u8) -> bool {
    first.is_ascii_uppercase()
}

impl Host {
    /// Answers requests until the client leaves, or this process ends.
    pub(super) async fn answer(&self, client: UnixClient, mut orders: watch::Receiver<Order>) {
        // Nobody is answered any more once the place was given up.
        let Some(admin) = self.admin().clone() else {
            return;
        };
        let _visit = Visit::new(&self.visits);
        let shutdown = async {
            drop(orders.wait_for(|order| *order >= Order::Leave).await);
        };
        let site = Arc::new(LocalSite(admin));
        client
            .serve_http(site, HttpLimits::default(), shutdown)
            .await;
    }

    /// Ends when nobody is answered any more.
    pub(super) async fn unvisited(&self) {
        // The sender is held by us.
        drop(
            self.visits
                .subscribe()
                .wait_for(|visits| *visits == 0)
                .await,
        );
    }
}
