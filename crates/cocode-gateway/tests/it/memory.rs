//! Release of heap memory after sessions. Runs on paused time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cocode_gateway::{Gateway, ViewOptions};
use serde_json::json;
use tokio::time::sleep;

use crate::support::Visitors;

static RELEASES: AtomicUsize = AtomicUsize::new(0);

fn release() {
    RELEASES.fetch_add(1, Ordering::SeqCst);
}

#[tokio::test(start_paused = true)]
async fn free_heap_is_released_twice_after_sessions_ended() {
    let gateway = Gateway::releasing_heap_with(release);
    let view = gateway.view(ViewOptions::default());
    let visitors = Visitors::default();
    let releases_after = async |seconds: u64| {
        sleep(Duration::from_secs(seconds)).await;
        RELEASES.load(Ordering::SeqCst)
    };
    for before in [0, 2] {
        let mut client = visitors.raw(view.all());
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        client.send(&hello.to_string()).await;
        assert!(client.json().await["result"].is_object());
        assert_eq!(releases_after(301).await, before, "a session is open");
        drop(client);
        assert_eq!(releases_after(31).await, before + 1, "soon after its end");
        assert_eq!(
            releases_after(600).await,
            before + 2,
            "once more, and not for ever"
        );
    }
}
