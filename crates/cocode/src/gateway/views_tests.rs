//! How long the view of a principal is kept.

use std::sync::Arc;

use bytes::Bytes;
use cocode_access::PrincipalId;
use cocode_gateway::{Gateway, ViewOptions};
use cocode_wire::Frame;
use cocode_wire::serve::{Asked, Sink};
use serde_json::json;

use super::{KEPT_FOR, Views};

struct Nowhere;

impl Sink for Nowhere {
    fn send(&self, _message: Bytes) -> bool {
        false
    }
}

/// Listens to everything, without a session.
fn listen() -> Asked {
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        } },
    });
    Asked {
        frame: Frame::parse(message.to_string().into()).unwrap(),
        headers: http::HeaderMap::new(),
        stream: Arc::new(Nowhere),
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_is_kept_while_somebody_listens_and_for_a_while() {
    let gateway = Gateway::new();
    let (views, mut wished) = Views::new(gateway.view(ViewOptions::default()));
    let ana: PrincipalId = "ana".parse().unwrap();
    let view = gateway.view(ViewOptions::default());
    let making = async {
        let wish = wished.recv().await.unwrap();
        views.keep(wish, view.clone(), 7);
    };
    let (provided, ()) = tokio::join!(views.provide(&ana), making);
    provided.unwrap();
    assert_eq!(views.max_sessions("ana"), 7);
    assert_eq!(views.max_sessions("bob"), 0);
    views.bound("ana", 8);
    assert_eq!(views.max_sessions("ana"), 8);

    let listening = view.all().stateless().request(listen());
    tokio::time::advance(KEPT_FOR * 2).await;
    assert!(views.sweep().is_empty());
    drop(listening);
    assert!(views.known("ana").is_some());
    assert!(views.sweep().is_empty(), "they have just been here");
    tokio::time::advance(KEPT_FOR * 2).await;
    assert_eq!(views.sweep(), [ana]);
}
