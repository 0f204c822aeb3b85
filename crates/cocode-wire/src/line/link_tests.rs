//! Links whose two streams do not end together.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use tokio::sync::Notify;

use super::LineLink;
use crate::error::{Closed, LinkError};
use crate::frame::Frame;
use crate::inbox::{Inbox, Malformed, Origin};
use crate::line::cork::Cork;

#[derive(Default)]
struct Ends {
    reasons: Mutex<Vec<Closed>>,
    has_ended: Notify,
}

impl Inbox for Ends {
    fn frame(&self, _frame: Frame, _origin: Origin) {}

    fn malformed(&self, _malformed: Malformed) {}

    fn failed(&self, _id: u64, _error: LinkError) {}

    fn closed(&self, reason: Closed) {
        self.reasons.lock().unwrap().push(reason);
        self.has_ended.notify_one();
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_is_gone_though_it_does_not_end_its_side() {
    let (source, _theirs) = tokio::io::duplex(64);
    let (sink, deaf) = tokio::io::duplex(64);
    let ends = Arc::new(Ends::default());
    let inbox: Arc<dyn Inbox> = ends.clone();
    let link = LineLink::over(Box::pin(source), Box::pin(sink), inbox, 1024);
    drop(deaf);
    let cork = Cork::put();
    let sent = link.send(b"one".to_vec()).now_or_never();
    sent.expect("held back").expect("taken");
    drop(cork);
    ends.has_ended.notified().await;
    let reasons = ends.reasons.lock().unwrap();
    assert!(matches!(reasons[..], [Closed::ByPeer]), "{reasons:?}");
}
