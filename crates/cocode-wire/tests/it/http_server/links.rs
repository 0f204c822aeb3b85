//! Our own client links against our own server, over everything that it speaks; and TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_wire::serve::{TlsError, tls_from_pem};
use cocode_wire::{
    Closed, Frame, HttpClient, HttpSettings, HttpTarget, Inbox, Link, LinkError, Malformed, Origin,
    Outgoing, Target, WebSocketTarget, encode,
};
use http::HeaderMap;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::site::{Seen, Server};
use super::wire::Wire;

struct Collector(mpsc::Sender<Frame>);

impl Inbox for Collector {
    fn frame(&self, frame: Frame, _origin: Origin) {
        self.0.try_send(frame).expect("the test listens");
    }

    fn malformed(&self, malformed: Malformed) {
        panic!("{malformed:?}");
    }

    fn failed(&self, id: u64, error: LinkError) {
        panic!("request {id} failed: {error:?}");
    }

    fn closed(&self, _reason: Closed) {}
}

pub(super) struct Client {
    link: Link,
    frames: mpsc::Receiver<Frame>,
    next: u64,
}

impl Client {
    pub(super) async fn open(target: &Target) -> Self {
        let (sender, frames) = mpsc::channel(100);
        let link = Link::open(target, Arc::new(Collector(sender))).await;
        Self {
            link: link.expect("a link"),
            frames,
            next: 0,
        }
    }

    pub(super) async fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        if method == "initialize" {
            self.link.opens_session(id);
        }
        let params = params.to_string();
        let sent = self.link.send(Outgoing {
            body: encode::request(id, method, Some(params.as_bytes())),
            headers: HeaderMap::new(),
            request: Some(id),
        });
        sent.await.expect("sent");
        id
    }

    pub(super) async fn frame(&mut self) -> Value {
        let frame = self.frames.recv().await.expect("a frame");
        serde_json::from_slice(frame.bytes()).expect("JSON")
    }
}

fn http(url: &str, settings: HttpSettings) -> HttpTarget {
    HttpTarget {
        url: url.parse().expect("a URL"),
        headers: HeaderMap::new(),
        credentials: None,
        client: HttpClient::new(settings),
        max_frame: 1024 * 1024,
    }
}

fn web_socket(url: &str, settings: HttpSettings) -> WebSocketTarget {
    WebSocketTarget {
        url: url.parse().expect("a URL"),
        headers: HeaderMap::new(),
        credentials: None,
        client: HttpClient::new(settings),
        max_frame: 1024 * 1024,
    }
}

/// A WebSocket at that path.
pub(super) fn socket(port: u16, path: &str) -> Target {
    let url = format!("ws://127.0.0.1:{port}{path}");
    Target::WebSocket(web_socket(&url, HttpSettings::default()))
}

fn targets(port: u16) -> Vec<(&'static str, Target)> {
    let at = |path: &str| {
        http(
            &format!("http://127.0.0.1:{port}{path}"),
            HttpSettings::default(),
        )
    };
    vec![
        ("all", Target::Http(at("/mcp"))),
        ("a", Target::Http(at("/mcp/a"))),
        ("all", Target::LegacySse(at("/sse"))),
        ("b", Target::LegacySse(at("/mcp/b"))),
        ("all", socket(port, "/ws")),
        ("a", socket(port, "/ws/a")),
        ("b", socket(port, "/mcp/b")),
    ]
}

#[tokio::test]
async fn every_link_talks_to_the_server() {
    let mut server = Server::start().await;
    for (name, target) in targets(server.port) {
        let mut client = Client::open(&target).await;
        let params = json!({ "protocolVersion": "2025-11-25", "clientInfo": { "name": "links" } });
        let id = client.send("initialize", &params).await;
        let answer = client.frame().await;
        assert_eq!(
            (answer["id"].as_u64(), answer["result"]["at"].as_str()),
            (Some(id), Some(name))
        );
        let sessions = server.door.sessions();
        let names: Vec<_> = sessions.iter().map(|one| one.client.as_deref()).collect();
        assert_eq!(names, [Some("links")], "over {target:?}");
        client.link.set_protocol("2025-11-25", true);
        client.link.listen();
        assert!(
            server
                .outlet()
                .send(r#"{"jsonrpc":"2.0","method":"aside"}"#.into())
        );
        assert_eq!(client.frame().await["method"], "aside", "over {target:?}");

        let id = client.send("say", &json!({ "steps": 1 })).await;
        assert_eq!(client.frame().await["params"]["text"], "first");
        server.open_gate();
        assert_eq!(client.frame().await["params"]["text"], "step 0");
        assert_eq!(client.frame().await["id"], id);

        let id = client.send("large", &json!({ "size": 500_000 })).await;
        let answer = client.frame().await;
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"].as_str().map(str::len), Some(500_000));

        client.link.close().await;
        server.until(&Seen::Ended).await;
    }
}

struct Pem {
    certificate: PathBuf,
    key: PathBuf,
}

fn certificate(name: &str) -> Pem {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = params.self_signed(&key).expect("a certificate");
    let pem = Pem {
        certificate: folder.join(format!("server-{name}.pem")),
        key: folder.join(format!("server-{name}-key.pem")),
    };
    std::fs::write(&pem.certificate, certificate.pem()).expect("writable");
    std::fs::write(&pem.key, key.serialize_pem()).expect("writable");
    pem
}

#[tokio::test]
async fn with_a_certificate_everything_goes_over_tls() {
    let pem = certificate("used");
    let tls = tls_from_pem(&pem.certificate, &pem.key).expect("a certificate");
    let server = Server::with(|options| options.tls = Some(tls)).await;
    let trusting = || HttpSettings {
        extra_ca_files: vec![pem.certificate.clone()],
        ..HttpSettings::default()
    };
    let port = server.port;
    let at = |path: &str| http(&format!("https://localhost:{port}{path}"), trusting());
    let socket = web_socket(&format!("wss://localhost:{port}/ws"), trusting());
    for target in [
        Target::Http(at("/mcp")),
        Target::LegacySse(at("/sse")),
        Target::WebSocket(socket),
    ] {
        let mut client = Client::open(&target).await;
        let id = client
            .send("initialize", &json!({ "protocolVersion": "2025-11-25" }))
            .await;
        assert_eq!(client.frame().await["id"], id);
        client.link.close().await;
    }
}

#[tokio::test]
async fn a_handshake_has_a_time_limit() {
    let pem = certificate("slow");
    let tls = tls_from_pem(&pem.certificate, &pem.key).expect("a certificate");
    let server = Server::with(|options| {
        options.tls = Some(tls);
        options.limits.header_timeout = std::time::Duration::from_millis(20);
    })
    .await;
    let mut silent = Wire::to(server.port).await;
    assert_eq!(silent.rest().await, "");
    let mut plain = Wire::to(server.port).await;
    plain
        .write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert!(
        !plain.rest().await.contains("HTTP/"),
        "nothing is served without TLS"
    );
}

#[test]
fn bad_certificates_are_told_apart() {
    let one = certificate("one");
    let other = certificate("other");
    let nowhere = Path::new("/nowhere.pem");
    assert!(tls_from_pem(&one.certificate, &one.key).is_ok());
    assert!(matches!(
        tls_from_pem(nowhere, &one.key),
        Err(TlsError::Certificate { .. })
    ));
    assert!(matches!(
        tls_from_pem(&one.certificate, nowhere),
        Err(TlsError::Key { .. })
    ));
    assert!(matches!(
        tls_from_pem(&one.key, &one.key),
        Err(TlsError::NoCertificate { .. })
    ));
    assert!(matches!(
        tls_from_pem(&one.certificate, &one.certificate),
        Err(TlsError::Key { .. })
    ));
    assert!(matches!(
        tls_from_pem(&one.certificate, &other.key),
        Err(TlsError::Mismatch { .. })
    ));
}
