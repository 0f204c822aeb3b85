//! Pings on a WebSocket, with a clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Message, WsError, handshake_error, keep_alive};
use crate::error::{Closed, LinkError};

/// Runs `keep_alive` for 575 seconds at most, against a peer that answers the first `answered`
/// pings. Gives the seconds at which pings came, and when and why it ended.
async fn pings(answered: usize) -> (Vec<u64>, Option<(u64, Closed)>) {
    let start = Instant::now();
    let (outgoing, mut queue) = mpsc::channel(8);
    let heard = Arc::new(AtomicBool::new(false));
    let pongs = Arc::clone(&heard);
    let mut peer = JoinSet::new();
    peer.spawn(async move {
        let mut times = Vec::new();
        while let Some(message) = queue.recv().await {
            assert!(matches!(message, Message::Ping(_)));
            times.push(start.elapsed().as_secs());
            pongs.store(times.len() <= answered, Ordering::Relaxed);
        }
        times
    });
    let ended = tokio::time::timeout(Duration::from_secs(575), keep_alive(outgoing, &heard)).await;
    let ended = ended.ok().map(|reason| (start.elapsed().as_secs(), reason));
    let times = peer.join_next().await.expect("a peer").expect("no panic");
    (times, ended)
}

#[tokio::test(start_paused = true)]
async fn a_live_peer_is_pinged_every_fifty_seconds_for_ever() {
    let (times, ended) = pings(usize::MAX).await;
    let expected: Vec<u64> = (1..12).map(|tick| tick * 50).collect();
    assert_eq!(times, expected);
    assert!(ended.is_none(), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_never_answers_is_dead_after_two_pings() {
    let (times, ended) = pings(0).await;
    assert_eq!(times, [50, 100]);
    assert!(matches!(ended, Some((150, Closed::Silent))), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_stops_answering_is_dead_after_two_more_pings() {
    let (times, ended) = pings(3).await;
    assert_eq!(times, [50, 100, 150, 200, 250]);
    assert!(matches!(ended, Some((300, Closed::Silent))), "{ended:?}");
}

#[test]
fn a_refused_handshake_keeps_the_wait_that_the_server_asks_for() {
    let refused = http::Response::builder()
        .status(503)
        .header("Retry-After", "17")
        .body(Some(b"soon".to_vec()));
    let error = WsError::Http(Box::new(refused.expect("a response")));
    let url = "ws://localhost/".parse().expect("a URL");
    match handshake_error(&url, error) {
        LinkError::Status {
            status,
            body,
            retry_after,
            ..
        } => assert_eq!(
            (status, body.as_str(), retry_after),
            (503, "soon", Some(17))
        ),
        other => panic!("{other:?}"),
    }
}
