//! The timers that the kernel keeps for our connections.

use cocode_wire::limits::KEEP_ALIVE_INTERVAL;
use cocode_wire::{HttpSettings, Outgoing, Target, encode};
use http::HeaderMap;
use tokio::net::TcpListener;

use crate::collector::{http_target, open, read_request};

/// Timers are shown in hundredths of a second.
const TICKS_PER_SECOND: u64 = 100;

/// The kind of the running timer of the connection between these two ports, and what is left of it
/// in ticks.
fn timer(local: u16, remote: u16) -> (u8, u64) {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table of connections");
    let port = |field: &str| {
        let (_, port) = field.split_once(':').expect("an address");
        u16::from_str_radix(port, 16).expect("a port")
    };
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if (port(fields[1]), port(fields[2])) == (local, remote) {
            let (kind, left) = fields[5].split_once(':').expect("a timer");
            return (
                kind.parse().expect("a kind"),
                u64::from_str_radix(left, 16).expect("ticks"),
            );
        }
    }
    panic!("no connection from {local} to {remote} in\n{table}");
}

#[tokio::test]
async fn a_silent_connection_is_probed_after_fifty_seconds() {
    const KEEP_ALIVE: u8 = 2;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let link = open(Target::Http(http_target(&url, HttpSettings::default()))).await;
    let request = Outgoing {
        body: encode::request(7, "ping", None),
        headers: HeaderMap::new(),
        request: Some(7),
    };
    link.send(request).await.expect("sent");
    let (mut socket, client) = listener.accept().await.expect("a connection");
    read_request(&mut socket).await;
    // The request was read, but its acknowledgment may still be on its way.
    let (mut kind, mut left) = timer(client.port(), port);
    while kind != KEEP_ALIVE {
        assert_ne!(kind, 0, "no timer at all");
        tokio::task::yield_now().await;
        (kind, left) = timer(client.port(), port);
    }
    let interval = KEEP_ALIVE_INTERVAL.as_secs() * TICKS_PER_SECOND;
    assert!((interval / 2..=interval).contains(&left), "{left}");
}
