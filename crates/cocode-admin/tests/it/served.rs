//! The API behind a real HTTP server on loopback.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use cocode_admin::{Admin, Who};
use cocode_wire::serve::{Endpoint, HttpServer, HttpServerOptions, Page, Site};
use http::{Request, header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::client::{Place, events_in};

/// The token of an administrator, for those who come over the network.
pub(crate) const ADMIN_TOKEN: &str = "cct_admin";

struct OnlyAdmin(Admin);

impl Site for OnlyAdmin {
    fn endpoint(&self, _name: Option<&str>) -> Option<Arc<dyn Endpoint>> {
        None
    }

    fn page(&self, request: Request<Bytes>) -> Page<'_> {
        let brought = request.headers().get(header::AUTHORIZATION);
        let is_admin = brought.is_some_and(|value| value == &format!("Bearer {ADMIN_TOKEN}"));
        let who = if is_admin {
            Who::Bearer {
                name: "root".into(),
                is_admin,
            }
        } else {
            Who::Anonymous
        };
        self.0.answer(request, who)
    }
}

/// A server for as long as this lives.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    _task: JoinSet<()>,
}

impl Served {
    pub(crate) fn start(admin: Admin) -> Self {
        let options = HttpServerOptions::new("127.0.0.1:0".parse().unwrap());
        let server = HttpServer::bind(options, Arc::new(OnlyAdmin(admin))).unwrap();
        let address = server.local_addr();
        let mut task = JoinSet::new();
        task.spawn(server.serve(std::future::pending()));
        Self {
            address,
            _task: task,
        }
    }
}

#[tokio::test]
async fn a_call_in_events_comes_over_the_network_as_it_happens() {
    let place = Place::new();
    let served = Served::start(place.admin.clone());
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let body = r#"{"tool":"never"}"#;
    let request = format!(
        "POST /api/v1/servers/files/call HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\
         Accept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        served.address,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    // The call never ends, and its first steps are here.
    while !text.contains("event: log") || !text.ends_with("\n\n\r\n") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0, "{text}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    let head = text.split_once("\r\n\r\n").unwrap().0.to_ascii_lowercase();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let is_length = |line: &str| line.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lines = text
        .lines()
        .filter(|line| line.is_empty() || !is_length(line));
    let unchunked = lines.collect::<Vec<_>>().join("\n");
    assert!(
        events_in(&unchunked)
            .iter()
            .any(|(name, _)| name == "progress"),
        "{text}"
    );
}
