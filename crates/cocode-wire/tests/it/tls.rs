//! Certificates: trusted only when somebody says so.

use std::path::PathBuf;
use std::sync::Arc;

use cocode_wire::{HttpSettings, LinkError, OpenError, Target, WebSocketTarget};
use http::Response;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::collector::{
    Delivered, PONG, answer_with_pong, http_target, ping, read_request, try_open,
};

/// A server for `localhost` whose certificate comes from an authority of its own.
struct TlsServer {
    port: u16,
    authority: PathBuf,
    _tasks: JoinSet<()>,
}

enum Speaks {
    Http,
    WebSocket,
    /// HTTP/2 alone. Tells how many requests each connection has brought.
    Http2(mpsc::Sender<usize>),
    /// Hangs up when it knows which protocol was agreed on.
    Nothing(mpsc::Sender<Option<Vec<u8>>>),
}

async fn start(name: &str, speaks: Speaks) -> TlsServer {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().expect("a key");
    let authority = params.self_signed(&authority_key).expect("an authority");
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = leaf.signed_by(&key, &issuer).expect("a certificate");

    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pem"));
    std::fs::write(&path, authority.pem()).expect("writable");

    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        )
        .expect("a configuration");
    config.alpn_protocols = match &speaks {
        Speaks::Http | Speaks::WebSocket => Vec::new(),
        Speaks::Http2(_) => vec![b"h2".to_vec()],
        Speaks::Nothing(_) => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            // A client that distrusts us breaks the handshake off.
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            match &speaks {
                Speaks::Nothing(agreed) => {
                    let protocol = stream.get_ref().1.alpn_protocol();
                    // The client may try again after the test has seen enough.
                    drop(agreed.try_send(protocol.map(<[u8]>::to_vec)));
                }
                Speaks::Http2(requests) => {
                    let accepted = h2::server::handshake(stream).await;
                    let mut connection = accepted.expect("HTTP/2");
                    let mut count = 0;
                    while let Some(Ok((_request, mut answer))) = connection.accept().await {
                        let json = Response::builder().header("Content-Type", "application/json");
                        let head = json.body(()).expect("a head");
                        let mut body = answer.send_response(head, false).expect("sent");
                        body.send_data(PONG.into(), true).expect("sent");
                        count += 1;
                        requests.try_send(count).expect("the test listens");
                    }
                }
                Speaks::Http => {
                    read_request(&mut stream).await;
                    answer_with_pong(&mut stream).await;
                }
                Speaks::WebSocket => {
                    use futures_util::{SinkExt as _, StreamExt as _};
                    let accepted = tokio_tungstenite::accept_async(stream).await;
                    let mut socket = accepted.expect("a WebSocket");
                    // This server knows no subprotocol, so the client comes a second time.
                    let Some(Ok(_message)) = socket.next().await else {
                        continue;
                    };
                    socket.send(PONG.into()).await.expect("sent");
                }
            }
        }
    });
    TlsServer {
        port,
        authority: path,
        _tasks: tasks,
    }
}

impl TlsServer {
    fn trusting(&self) -> HttpSettings {
        HttpSettings {
            extra_ca_files: vec![self.authority.clone()],
            ..HttpSettings::default()
        }
    }
}

#[tokio::test]
async fn an_authority_of_the_callers_choice_is_trusted() {
    let server = start("https-trusted", Speaks::Http).await;
    let url = format!("https://localhost:{}/mcp", server.port);
    let answer = ping(Target::Http(http_target(&url, server.trusting()))).await;
    assert!(matches!(answer, Delivered::Frame(frame) if frame.numeric_id() == Some(7)));
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let server = start("https-unknown", Speaks::Http).await;
    let url = format!("https://localhost:{}/mcp", server.port);
    let answer = ping(Target::Http(http_target(&url, HttpSettings::default()))).await;
    assert!(matches!(
        answer,
        Delivered::Failed(LinkError::Unreachable { .. })
    ));
}

#[tokio::test]
async fn a_secure_websocket_uses_the_same_authorities() {
    let server = start("wss", Speaks::WebSocket).await;
    let plain = http_target(
        &format!("wss://localhost:{}/", server.port),
        server.trusting(),
    );
    let target = WebSocketTarget {
        url: plain.url,
        headers: plain.headers,
        credentials: None,
        client: plain.client,
        max_frame: plain.max_frame,
    };
    let answer = ping(Target::WebSocket(target)).await;
    assert!(matches!(answer, Delivered::Frame(frame) if frame.numeric_id() == Some(7)));
}

/// The protocol that a link to `scheme://localhost` agrees on with a server that knows them all.
async fn agreed_protocol(scheme: &str) -> Option<Vec<u8>> {
    let (agreed, mut protocols) = mpsc::channel(1);
    let server = start(&format!("alpn-{scheme}"), Speaks::Nothing(agreed)).await;
    let url = format!("{scheme}://localhost:{}/", server.port);
    let target = http_target(&url, server.trusting());
    if scheme == "https" {
        let answer = ping(Target::Http(target)).await;
        assert!(matches!(answer, Delivered::Failed(_)));
    } else {
        let target = WebSocketTarget {
            url: target.url,
            headers: target.headers,
            credentials: None,
            client: target.client,
            max_frame: target.max_frame,
        };
        assert!(try_open(Target::WebSocket(target)).await.is_err());
    }
    protocols.recv().await.expect("a connection")
}

#[tokio::test]
async fn http2_is_spoken_where_the_server_can() {
    assert_eq!(agreed_protocol("https").await.as_deref(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn requests_share_one_connection_over_http2() {
    let (requests, mut counts) = mpsc::channel(8);
    let server = start("http2", Speaks::Http2(requests)).await;
    let url = format!("https://localhost:{}/mcp", server.port);
    let target = http_target(&url, server.trusting());
    for count in 1..=2 {
        let answer = ping(Target::Http(target.clone())).await;
        assert!(matches!(answer, Delivered::Frame(frame) if frame.numeric_id() == Some(7)));
        assert_eq!(counts.recv().await, Some(count));
    }
}

#[tokio::test]
async fn a_secure_websocket_does_not_offer_to_speak_http2() {
    assert_eq!(agreed_protocol("wss").await, None);
}

#[tokio::test]
async fn a_bad_authority_file_is_named() {
    let settings = HttpSettings {
        extra_ca_files: vec![PathBuf::from("/nowhere/roots.pem")],
        ..HttpSettings::default()
    };
    let target = Target::Http(http_target("https://localhost:1/", settings));
    let inbox = Arc::new(NoInbox);
    let error = cocode_wire::Link::open(&target, inbox)
        .await
        .expect_err("no such file");
    assert!(matches!(&error, OpenError::HttpSetup(_)));
    assert!(error.to_string().contains("/nowhere/roots.pem"), "{error}");
}

#[tokio::test]
async fn an_authority_file_that_comes_late_is_used_by_the_next_link() {
    let server = start("https-late", Speaks::Http).await;
    let url = format!("https://localhost:{}/mcp", server.port);
    let target = http_target(&url, server.trusting());
    let text = std::fs::read(&server.authority).expect("readable");
    std::fs::remove_file(&server.authority).expect("removable");
    let error = try_open(Target::Http(target.clone()))
        .await
        .expect_err("no such file");
    assert!(matches!(&error, OpenError::HttpSetup(_)), "{error}");
    std::fs::write(&server.authority, text).expect("writable");
    let answer = ping(Target::Http(target)).await;
    assert!(matches!(answer, Delivered::Frame(frame) if frame.numeric_id() == Some(7)));
}

struct NoInbox;

impl cocode_wire::Inbox for NoInbox {
    fn frame(&self, _frame: cocode_wire::Frame, _origin: cocode_wire::Origin) {}
    fn malformed(&self, _malformed: cocode_wire::Malformed) {}
    fn failed(&self, _id: u64, _error: LinkError) {}
    fn closed(&self, _reason: cocode_wire::Closed) {}
}
