//! Ports and addresses as tables, and browsers as real sockets.

use std::net::IpAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::*;
use crate::oauth::{AuthorizationParameters, AuthorizationServer, Pkce};

pub(in crate::oauth) fn request() -> AuthorizationRequest {
    let server: AuthorizationServer = serde_json::from_value(serde_json::json!({
        "issuer": "https://auth.example.com",
        "authorization_endpoint": "https://auth.example.com/authorize",
    }))
    .unwrap();
    let parameters = AuthorizationParameters {
        client_id: "me",
        redirect_uri: "http://127.0.0.1/callback",
        scopes: None,
        resource: None,
    };
    AuthorizationRequest::new(&server, &parameters, Pkce::generate().unwrap()).unwrap()
}

async fn bound() -> LoopbackCallback {
    LoopbackCallback::bind(&CallbackOptions::new("files"), None)
        .await
        .unwrap()
}

/// A callback that is waited at, as its browsers see it.
struct Waiting {
    address: SocketAddr,
    state: String,
    wait: JoinSet<Result<Secret, UserAgentError>>,
}

impl Waiting {
    async fn start() -> Self {
        Self::at(bound().await, Ipv4Addr::LOCALHOST.into())
    }

    fn at(callback: LoopbackCallback, address: IpAddr) -> Self {
        let request = request();
        let address = SocketAddr::from((address, callback.port()));
        let state = request.state.expose().to_owned();
        let mut wait = JoinSet::new();
        wait.spawn(async move { callback.wait(&request).await });
        Self {
            address,
            state,
            wait,
        }
    }

    /// A `GET` as a browser sends it. `STATE` stands for the right one.
    fn get(&self, target: &str) -> String {
        let target = target.replace("STATE", &self.state);
        format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address)
    }

    async fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// The whole answer to a request.
    async fn ask(&self, request: &str) -> String {
        let mut stream = self.send(request).await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn check(&self, request: &str, status: &str) {
        let answer = self.ask(request).await;
        let first = answer.lines().next().unwrap_or_default();
        let shown = request.chars().take(80).collect::<String>();
        assert_eq!(first, format!("HTTP/1.1 {status}"), "{shown}");
    }

    async fn end(mut self) -> Result<Secret, UserAgentError> {
        self.wait.join_next().await.unwrap().unwrap()
    }

    /// Brings the right answer: whatever happened before, it must still be taken.
    async fn sign_in(self) {
        let answer = self.ask(&self.get("/callback?code=1&state=STATE")).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("<h1>Signed in to files</h1>"), "{answer}");
        let expected = format!("code=1&state={}", self.state);
        assert_eq!(self.end().await.unwrap().expose(), expected);
    }
}

#[tokio::test]
async fn a_wrong_state_is_refused_and_the_right_one_still_counts() {
    let waiting = Waiting::start().await;
    for target in [
        "/callback?code=1&state=wrong",
        "/callback?code=1",
        "/callback",
        "/callback?",
        "/callback?code=1&state=STATE&state=STATE",
        "/callback?error=access_denied&state=wrong",
    ] {
        let answer = waiting.ask(&waiting.get(target)).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{target}: {answer}");
        assert!(answer.contains("still waits"), "{target}: {answer}");
        assert!(!answer.contains(&waiting.state), "{target}: {answer}");
    }
    waiting.sign_in().await;
}

#[tokio::test]
async fn after_the_answer_nobody_listens_any_more() {
    let waiting = Waiting::start().await;
    let address = waiting.address;
    waiting.sign_in().await;
    let error = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_denial_is_an_answer_and_the_page_explains_it() {
    let waiting = Waiting::start().await;
    let target = "/callback?error=access_denied&error_description=%3Cb%3Eno%3C/b%3E&state=STATE";
    let answer = waiting.ask(&waiting.get(target)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for part in ["Not signed in to files", "denied", "&lt;b&gt;no&lt;/b&gt;"] {
        assert!(answer.contains(part), "{answer} lacks {part}");
    }
    let query = waiting.end().await.unwrap();
    assert!(query.expose().starts_with("error=access_denied&"));
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_not_shown() {
    let waiting = Waiting::start().await;
    let target = "/callback?error=x&error_description=trick&state=STATE&iss=https://evil.example";
    let answer = waiting.ask(&waiting.get(target)).await;
    assert!(answer.contains("Not signed in to files"), "{answer}");
    assert!(!answer.contains("trick"), "{answer}");
    waiting.end().await.unwrap();
}

#[tokio::test]
async fn only_a_get_of_the_one_path_at_the_own_host_counts() {
    let waiting = Waiting::start().await;
    let (address, port) = (waiting.address, waiting.address.port());
    let target = format!("/callback?code=1&state={}", waiting.state);
    let long = "x".repeat(20 * 1024);
    let many = "A: b\r\n".repeat(101);
    let wide = format!("A: {long}\r\n").repeat(3);
    for (request, status) in [
        (waiting.get("/"), "404 Not Found"),
        (waiting.get("/favicon.ico"), "404 Not Found"),
        (
            waiting.get("/callback/?code=1&state=STATE"),
            "404 Not Found",
        ),
        (
            waiting.get("//callback?code=1&state=STATE"),
            "404 Not Found",
        ),
        (
            format!("POST {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 5\r\n\r\nhello"),
            "405 Method Not Allowed",
        ),
        (
            format!("OPTIONS {target} HTTP/1.1\r\nHost: {address}\r\n\r\n"),
            "405 Method Not Allowed",
        ),
        (
            format!("GET {target} HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
            "421 Misdirected Request",
        ),
        (
            format!("GET {target} HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"),
            "421 Misdirected Request",
        ),
        (
            format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"),
            "421 Misdirected Request",
        ),
        (
            format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nHost: {address}\r\n\r\n"),
            "421 Misdirected Request",
        ),
        (
            format!("GET {target} HTTP/1.1\r\n\r\n"),
            "421 Misdirected Request",
        ),
        (
            format!("GET http://{address}{target} HTTP/1.1\r\nHost: {address}\r\n\r\n"),
            "404 Not Found",
        ),
        (
            "\u{16}\u{3}\u{1} hello\r\n\r\n".to_owned(),
            "400 Bad Request",
        ),
        (
            waiting.get(&format!("/callback?{long}")),
            "414 URI Too Long",
        ),
        (
            format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n{many}\r\n"),
            "431 Request Header Fields Too Large",
        ),
        (
            format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n{wide}\r\n"),
            "431 Request Header Fields Too Large",
        ),
    ] {
        waiting.check(&request, status).await;
    }
    waiting.sign_in().await;
}

#[tokio::test]
async fn a_look_without_taking_does_not_count_and_gets_no_body() {
    let waiting = Waiting::start().await;
    let request = waiting.get("/callback?code=1&state=STATE");
    let answer = waiting.ask(&request.replacen("GET", "HEAD", 1)).await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    waiting.sign_in().await;
}

#[tokio::test]
async fn connections_that_say_nothing_do_not_hold_up_the_answer() {
    let waiting = Waiting::start().await;
    let silent = waiting.send("").await;
    let mut slow = waiting.send("GET /callback?code=1&sta").await;
    let gone = waiting.send("GET /call").await;
    drop(gone);
    waiting.sign_in().await;
    drop(silent);
    // Whatever it says now, it is over: the end, or a reset.
    let mut rest = Vec::new();
    let ended = slow.read_to_end(&mut rest).await;
    assert!(ended.is_err() || rest.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_ends_is_cut_off() {
    let waiting = Waiting::start().await;
    let mut slow = waiting.send("GET /callback HTTP/1.1\r\nHost: ").await;
    let mut rest = Vec::new();
    assert_eq!(slow.read_to_end(&mut rest).await.unwrap(), 0);
    drop(waiting);
}

#[tokio::test]
async fn the_oldest_connections_make_room_for_new_ones() {
    let waiting = Waiting::start().await;
    let mut idle = Vec::new();
    for _each in 0..40 {
        idle.push(waiting.send("GET ").await);
    }
    waiting.check(&waiting.get("/"), "404 Not Found").await;
    // There is room for 32, and one of them has been answered: so 9 had to go.
    for stream in &mut idle[..9] {
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest).await;
        assert!(ended.is_err() || rest.is_empty());
    }
    let rest = format!("/ HTTP/1.1\r\nHost: {}\r\n\r\n", waiting.address);
    for stream in &mut idle[9..] {
        stream.write_all(rest.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
    waiting.sign_in().await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_and_the_port_closes() {
    let waiting = Waiting::start().await;
    let address = waiting.address;
    let error = waiting.end().await.unwrap_err();
    assert_eq!(error.to_string(), "nobody signed in within 300 seconds");
    assert!(TcpStream::connect(address).await.is_err());
}

/// Some machines have no IPv6.
async fn has_v6() -> bool {
    TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok()
}

#[tokio::test]
async fn both_families_of_addresses_lead_to_localhost() {
    let mut addresses: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into()];
    if has_v6().await {
        addresses.push(Ipv6Addr::LOCALHOST.into());
    }
    for address in addresses {
        let kept = Some("http://localhost/callback");
        let callback = LoopbackCallback::bind(&CallbackOptions::new("files"), kept)
            .await
            .unwrap();
        let expected = format!("http://localhost:{}/callback", callback.port());
        assert_eq!(callback.redirect_uri(), expected);
        Waiting::at(callback, address).sign_in().await;
    }
}

#[tokio::test]
async fn an_address_of_the_newer_family_is_listened_at() {
    let kept = Some("http://[::1]/callback");
    let callback = LoopbackCallback::bind(&CallbackOptions::new("files"), kept).await;
    if !has_v6().await {
        assert!(matches!(callback, Err(ListenError::Listen(_))));
        return;
    }
    let callback = callback.unwrap();
    let expected = format!("http://[::1]:{}/callback", callback.port());
    assert_eq!(callback.redirect_uri(), expected);
    Waiting::at(callback, Ipv6Addr::LOCALHOST.into())
        .sign_in()
        .await;
}

#[tokio::test]
async fn a_port_that_somebody_else_has_in_one_family_is_busy_for_localhost() {
    if !has_v6().await {
        return;
    }
    let other = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.unwrap();
    let port = other.local_addr().unwrap().port();
    let mut options = CallbackOptions::new("files");
    options.url = Some(format!("http://localhost:{port}/callback"));
    let error = LoopbackCallback::bind(&options, None).await.unwrap_err();
    assert!(matches!(error, ListenError::Busy { port: busy, .. } if busy == port));
}

#[tokio::test]
async fn a_fixed_port_that_is_busy_is_an_error_that_names_it() {
    let other = bound().await;
    let mut options = CallbackOptions::new("files");
    options.port = Some(other.port());
    let error = LoopbackCallback::bind(&options, None).await.unwrap_err();
    assert!(matches!(error, ListenError::Busy { port, .. } if port == other.port()));
    let shown = error.to_string();
    assert!(
        shown.contains(&other.port().to_string()) && shown.contains("--callback-port"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_kept_port_is_used_again_if_it_is_free_and_left_if_it_is_busy() {
    let options = CallbackOptions::new("files");
    let first = bound().await;
    let kept = first.redirect_uri().to_owned();
    let second = LoopbackCallback::bind(&options, Some(&kept)).await.unwrap();
    assert_ne!(second.port(), first.port());
    assert_eq!(
        second.redirect_uri(),
        format!("http://127.0.0.1:{}/callback", second.port())
    );
    drop(first);
    let third = LoopbackCallback::bind(&options, Some(&kept)).await.unwrap();
    assert_eq!(third.redirect_uri(), kept);
}

#[tokio::test]
async fn an_address_of_a_tunnel_is_sent_while_the_port_is_listened_at() {
    let free = bound().await.port();
    let mut options = CallbackOptions::new("files");
    options.port = Some(free);
    options.url = Some("https://Tunnel.example/back".to_owned());
    let callback = LoopbackCallback::bind(&options, None).await.unwrap();
    assert_eq!(callback.redirect_uri(), "https://Tunnel.example/back");
    assert_eq!(callback.port(), free);
    let waiting = Waiting::at(callback, Ipv4Addr::LOCALHOST.into());
    let target = format!("/back?code=1&state={}", waiting.state);
    waiting
        .check(
            &format!("GET {target} HTTP/1.1\r\nHost: other.example\r\n\r\n"),
            "421 Misdirected Request",
        )
        .await;
    waiting
        .check(
            &format!("GET {target} HTTP/1.1\r\nHost: tunnel.example\r\n\r\n"),
            "200 OK",
        )
        .await;
    waiting.end().await.unwrap();
}

/// Names of this machine, ports to try, and the redirect address if port 9 is got.
fn chosen(options: &CallbackOptions, kept: Option<&str>) -> String {
    let place = Place::choose(options, kept).unwrap();
    let redirect = place.redirect_uri(9);
    format!("{:?} {:?} {redirect}", place.family, place.ports)
}

#[test]
fn a_kept_address_is_used_again_if_it_is_one_of_this_machine() {
    for (kept, expected) in [
        ("http://127.0.0.1:5/a", "V4 [5, 0] http://127.0.0.1:9/a"),
        ("http://127.0.0.1:9/a", "V4 [9, 0] http://127.0.0.1:9/a"),
        ("http://LOCALHOST:9", "Both [9, 0] http://LOCALHOST:9"),
        (
            "http://localhost/a?b=c",
            "Both [0] http://localhost:9/a?b=c",
        ),
        ("http://[::1]:5/a", "V6 [5, 0] http://[::1]:9/a"),
        ("https://a.example/b", "V4 [0] http://127.0.0.1:9/callback"),
        (
            "https://localhost:5/b",
            "V4 [0] http://127.0.0.1:9/callback",
        ),
        (
            "http://127.0.0.1:5/#b",
            "V4 [0] http://127.0.0.1:9/callback",
        ),
        ("nonsense", "V4 [0] http://127.0.0.1:9/callback"),
    ] {
        let options = CallbackOptions::new("files");
        assert_eq!(chosen(&options, Some(kept)), expected, "{kept}");
    }
}

#[test]
fn a_port_that_was_asked_for_is_the_only_one() {
    for (port, kept, expected) in [
        (7, None, "V4 [7] http://127.0.0.1:9/callback"),
        (
            7,
            Some("http://localhost:5/a"),
            "V4 [7] http://127.0.0.1:9/callback",
        ),
        (
            7,
            Some("http://localhost/a"),
            "Both [7] http://localhost:9/a",
        ),
        (
            9,
            Some("http://localhost:9/a"),
            "Both [9] http://localhost:9/a",
        ),
    ] {
        let mut options = CallbackOptions::new("files");
        options.port = Some(port);
        assert_eq!(chosen(&options, kept), expected, "{port} {kept:?}");
    }
}

#[test]
fn an_address_that_was_asked_for_is_sent_as_it_is_written() {
    for (url, port, expected) in [
        (
            "http://localhost:8/x",
            None,
            "Both [8] http://localhost:8/x",
        ),
        (
            "http://localhost:8/x",
            Some(7),
            "Both [7] http://localhost:8/x",
        ),
        ("http://127.0.0.1/x", None, "V4 [80] http://127.0.0.1/x"),
        ("https://a.example", Some(7), "Both [7] https://a.example"),
        ("https://a.example/b", None, "Both [0] https://a.example/b"),
    ] {
        let mut options = CallbackOptions::new("files");
        (options.url, options.port) = (Some(url.to_owned()), port);
        let kept = Some("http://[::1]:5/a");
        assert_eq!(chosen(&options, kept), expected, "{url} {port:?}");
    }
}

#[test]
fn callback_addresses_that_cannot_work_are_refused() {
    for (url, reason) in [
        ("example.com/callback", "not a URL"),
        ("http://example.com/callback", "only https"),
        ("myapp://callback", "must begin with"),
        ("https://a.example/b#c", "#"),
        ("https://user:pass@a.example/b", "user"),
    ] {
        let error = Place::asked_for(url, None).unwrap_err().to_string();
        assert!(error.contains(reason), "{url}: {error}");
        assert!(!error.contains("pass@"), "{error}");
    }
}

#[test]
fn hosts_are_the_names_of_this_machine_and_that_of_the_address() {
    for (redirect, port, mine, others) in [
        (
            "http://127.0.0.1:4000/callback",
            4000,
            &["127.0.0.1:4000", "localhost:4000", "[::1]:4000"][..],
            &[
                "127.0.0.1",
                "127.0.0.1:4001",
                "evil.example",
                "a.localhost:4000",
            ][..],
        ),
        (
            "http://localhost:80/callback",
            4000,
            &["localhost", "localhost:80", "127.0.0.1:4000"],
            &["evil.example:80"],
        ),
        (
            "https://a.example/b",
            4000,
            &["a.example", "a.example:443", "localhost:4000"],
            &["localhost", "localhost:443", "a.example:80", "b.a.example"],
        ),
    ] {
        let hosts = hosts(&Url::parse(redirect).unwrap(), port);
        for host in mine {
            assert!(hosts.iter().any(|known| known == host), "{redirect} {host}");
        }
        for host in others {
            assert!(
                !hosts.iter().any(|known| known == host),
                "{redirect} {host}"
            );
        }
    }
}
