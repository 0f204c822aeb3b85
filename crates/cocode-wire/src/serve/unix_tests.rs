//! Sockets that are stale, taken, badly placed, and clients that are not let in.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{Barrier, Semaphore};
use tokio::task::JoinSet;

use super::{UnixServer, UnixServerError};
use crate::HttpClient;
use crate::error::Closed;
use crate::serve::http::{HttpLimits, Page, PageBody, Site};
use crate::serve::line::{FirstLineError, LineOptions};
use crate::serve::scripted::scripted;

fn private_directory() -> TempDir {
    let directory = TempDir::new().expect("a directory");
    set_permissions(directory.path(), Permissions::from_mode(0o700)).expect("ours");
    directory
}

#[tokio::test]
async fn the_socket_and_the_directories_made_for_it_are_private_and_the_socket_goes_away() {
    let directory = private_directory();
    let path = directory.path().join("a/b/server.sock");
    let server = UnixServer::bind(&path).await.expect("a server");
    let mode = |path: &std::path::Path| path.metadata().expect("it exists").mode() & 0o7777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().expect("one")), 0o700);
    assert_eq!(mode(&directory.path().join("a")), 0o700);
    drop(server);
    assert!(!path.exists());
    UnixServer::bind(&path).await.expect("another server");
}

#[tokio::test]
async fn the_socket_of_a_dead_server_is_replaced() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    drop(StdListener::bind(&path).expect("a socket"));
    assert!(path.exists(), "it is left behind");
    let server = UnixServer::bind(&path).await.expect("a server");
    let (client, _accepted) = tokio::join!(UnixStream::connect(&path), server.accept());
    client.expect("connected");
}

#[tokio::test]
async fn a_live_server_is_left_alone() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let server = UnixServer::bind(&path).await.expect("a server");
    let second = UnixServer::bind(&path).await;
    assert!(
        matches!(second, Err(UnixServerError::AlreadyRunning { .. })),
        "{second:?}"
    );
    let (client, _accepted) = tokio::join!(UnixStream::connect(&path), server.accept());
    client.expect("connected");
}

#[tokio::test]
async fn a_live_server_that_holds_no_lock_is_left_alone() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let _listener = StdListener::bind(&path).expect("a socket");
    let second = UnixServer::bind(&path).await;
    assert!(
        matches!(second, Err(UnixServerError::AlreadyRunning { .. })),
        "{second:?}"
    );
    assert!(path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_start_at_once_one_serves() {
    let directory = private_directory();
    for round in 0..20 {
        let path = directory.path().join(format!("{round}/server.sock"));
        let barrier = Arc::new(Barrier::new(8));
        let mut starters = JoinSet::new();
        for _starter in 0..8 {
            let (path, barrier) = (path.clone(), Arc::clone(&barrier));
            starters.spawn(async move {
                barrier.wait().await;
                let server = UnixServer::bind(path).await;
                // Nobody leaves before all have tried.
                barrier.wait().await;
                server.map(drop)
            });
        }
        let outcomes = starters.join_all().await;
        let n_serving = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(n_serving, 1, "{outcomes:?}");
        let is_told = |outcome: &Result<(), UnixServerError>| {
            matches!(
                outcome,
                Ok(()) | Err(UnixServerError::AlreadyRunning { .. })
            )
        };
        assert!(outcomes.iter().all(is_told), "{outcomes:?}");
    }
}

#[tokio::test]
async fn a_directory_that_others_can_change_is_refused() {
    let directory = private_directory();
    for mode in [0o777, 0o770, 0o1777] {
        set_permissions(directory.path(), Permissions::from_mode(mode)).expect("ours");
        let server = UnixServer::bind(directory.path().join("server.sock")).await;
        assert!(
            matches!(server, Err(UnixServerError::NotPrivate { .. })),
            "{mode:o}: {server:?}"
        );
    }
    set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("ours");
    let server = UnixServer::bind(directory.path().join("server.sock")).await;
    server.expect("others may look");
}

#[test]
fn a_directory_of_somebody_else_is_refused() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let owner = directory.path().metadata().expect("it exists").uid();
    super::prepare_directory(&path, owner).expect("ours");
    let refused = super::prepare_directory(&path, owner + 1);
    let text = refused.expect_err("not ours").to_string();
    assert!(text.ends_with("belongs to another user"), "{text}");
}

#[tokio::test]
async fn directory_that_is_a_symbolic_link_is_refused() {
    let directory = private_directory();
    let real = directory.path().join("real");
    std::fs::create_dir(&real).expect("a directory");
    set_permissions(&real, Permissions::from_mode(0o700)).expect("ours");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    let server = UnixServer::bind(link.join("server.sock")).await;
    let Err(UnixServerError::NotPrivate { path, why }) = server else {
        panic!("{server:?}");
    };
    assert_eq!((path, why), (link, "is a symbolic link"));
}

#[tokio::test]
async fn what_is_no_socket_is_not_removed() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    std::fs::write(&path, "precious").expect("written");
    let server = UnixServer::bind(&path).await;
    assert!(
        matches!(server, Err(UnixServerError::NotASocket { .. })),
        "{server:?}"
    );
    assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
}

#[tokio::test]
async fn a_path_that_is_too_long_is_refused_before_anything_is_made() {
    let directory = private_directory();
    let path = directory.path().join("x".repeat(120)).join("server.sock");
    let server = UnixServer::bind(&path).await;
    assert!(
        matches!(server, Err(UnixServerError::Path { .. })),
        "{server:?}"
    );
    assert!(!path.parent().expect("one").exists());
}

/// What a client reads that sends a line and waits for the end.
async fn turned_away(server: &UnixServer) -> Vec<u8> {
    let client = async {
        let mut stream = UnixStream::connect(server.path()).await.expect("connected");
        let mut said = Vec::new();
        // The server may have closed before either.
        let _sent = stream.write_all(b"hello\n").await;
        let _end = stream.read_to_end(&mut said).await;
        said
    };
    tokio::select! {
        said = client => said,
        client = server.accept() => panic!("let in: {client:?}"),
    }
}

#[tokio::test]
async fn clients_of_other_users_are_turned_away_unheard() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let mut server = UnixServer::bind(&path).await.expect("a server");
    server.owner += 1;
    assert!(turned_away(&server).await.is_empty());
}

#[tokio::test]
async fn clients_beyond_the_limit_are_told_so_and_let_in_when_others_have_left() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let mut server = UnixServer::bind(&path).await.expect("a server");
    server.slots = Arc::new(Semaphore::new(1));
    let (first, mut accepted) = tokio::join!(UnixStream::connect(&path), server.accept());
    let mut first = first.expect("connected");
    first.write_all(b"hello\n").await.expect("written");
    let line = accepted.first_line(100, Duration::from_secs(30)).await;
    line.expect("a line");
    let said = turned_away(&server).await;
    let said = String::from_utf8(said).expect("text");
    assert!(said.contains("too many connections"), "{said}");
    drop(accepted);
    let (_second, _accepted) = tokio::join!(UnixStream::connect(&path), server.accept());
}

#[tokio::test]
async fn silent_clients_make_room_for_a_real_one() {
    const SLOTS: usize = 4;
    let patience = Duration::from_secs(30);
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let mut server = UnixServer::bind(&path).await.expect("a server");
    server.slots = Arc::new(Semaphore::new(SLOTS));
    let mut silent = JoinSet::new();
    let mut streams = Vec::new();
    for beginning in [&b""[..], b"GET / HTTP/1.1\r\n", b"{", b""] {
        let (stream, mut client) = tokio::join!(UnixStream::connect(&path), server.accept());
        let mut stream = stream.expect("connected");
        stream.write_all(beginning).await.expect("written");
        streams.push(stream);
        let is_http = beginning.starts_with(b"G");
        silent.spawn(async move {
            let waited = match client.first_byte(patience).await {
                Ok(_) if is_http => client.http_head(1000, patience).await,
                Ok(_) => client.first_line(1000, patience).await.map(drop),
                Err(error) => Err(error),
            };
            (waited, client)
        });
    }
    let mut served = Vec::new();
    for _ in 0..SLOTS {
        let (stream, mut client) = tokio::join!(UnixStream::connect(&path), server.accept());
        let mut stream = stream.expect("connected");
        stream.write_all(b"hello\n").await.expect("written");
        client.first_line(100, patience).await.expect("a line");
        // The oldest that has not said what it wants was closed for it.
        let (waited, _client) = silent.join_next().await.expect("one").expect("no panic");
        assert!(matches!(waited, Err(FirstLineError::Evicted)), "{waited:?}");
        served.push((stream, client));
    }
    // Those who have said what they want stay.
    let said = String::from_utf8(turned_away(&server).await).expect("text");
    assert!(said.contains("too many connections"), "{said}");
}

#[tokio::test]
async fn a_client_is_served_after_its_first_line() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let server = UnixServer::bind(&path).await.expect("a server");
    let (endpoint, _script) = scripted();
    let serving = async {
        let mut client = server.accept().await;
        let pid = client.pid().map(i32::cast_unsigned);
        assert_eq!(pid, Some(std::process::id()));
        let line = client.first_line(100, Duration::from_mins(1)).await;
        assert_eq!(line.expect("a line"), "hello");
        let welcome = client.stream().write_all(b"welcome\n").await;
        welcome.expect("a client");
        let options = LineOptions::default();
        client
            .serve(&endpoint, options, std::future::pending())
            .await
    };
    let talking = async {
        let mut stream = UnixStream::connect(&path).await.expect("connected");
        let request = br#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}"#;
        let text = [b"hello\r\n", &request[..], b"\n"].concat();
        stream.write_all(&text).await.expect("a server");
        let expected = b"welcome\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[1]}\n";
        let mut said = vec![0; expected.len()];
        stream.read_exact(&mut said).await.expect("a server");
        assert_eq!(said, expected);
    };
    let (reason, ()) = tokio::join!(serving, talking);
    assert!(matches!(reason, Closed::ByPeer), "{reason:?}");
}

#[tokio::test(start_paused = true)]
async fn a_first_line_must_come_whole_and_in_time() {
    use crate::serve::line::read_first_line;
    let patience = Duration::from_secs(5);
    let (mut ours, mut theirs) = tokio::io::duplex(64);
    ours.write_all(b"hel").await.expect("open");
    let late = read_first_line(&mut theirs, 10, patience).await;
    assert!(matches!(late, Err(FirstLineError::TimedOut { .. })));

    ours.write_all(b"hello hello").await.expect("open");
    let long = read_first_line(&mut theirs, 10, patience).await;
    assert!(matches!(long, Err(FirstLineError::TooLong { limit: 10 })));

    ours.write_all(b"ten bytes.\nrest").await.expect("open");
    let first = read_first_line(&mut theirs, 10, patience).await;
    let first = first.expect("a line");
    assert_eq!(
        (&first.line[..], &first.rest[..]),
        (&b"ten bytes."[..], &b"rest"[..])
    );

    ours.write_all(b"hel").await.expect("open");
    drop(ours);
    let cut = read_first_line(&mut theirs, 10, patience).await;
    assert!(matches!(cut, Err(FirstLineError::Ended)));
}

/// Answers every page with its path, once it may.
struct Echo {
    asked: Semaphore,
    answers: Semaphore,
}

impl Echo {
    fn new(n_answers: usize) -> Arc<Self> {
        Arc::new(Self {
            asked: Semaphore::new(0),
            answers: Semaphore::new(n_answers),
        })
    }
}

impl Site for Echo {
    fn endpoint(&self, _name: Option<&str>) -> Option<Arc<dyn crate::serve::Endpoint>> {
        None
    }

    fn page(&self, request: Request<Bytes>) -> Page<'_> {
        Box::pin(async move {
            self.asked.add_permits(1);
            self.answers.acquire().await.expect("open").forget();
            Response::new(PageBody::from(request.uri().path().to_owned()))
        })
    }
}

/// Serves HTTP to the next client, who begins as wanted.
async fn serve_next(
    server: &UnixServer,
    site: &Arc<Echo>,
    limits: HttpLimits,
    shutdown: impl Future<Output = ()> + Send,
) {
    let mut client = server.accept().await;
    let first = client.first_byte(Duration::from_secs(30)).await;
    assert_eq!(first.expect("it says something"), b'G');
    let site: Arc<Echo> = Arc::clone(site);
    client.serve_http(site, limits, shutdown).await;
}

#[tokio::test]
async fn http_is_spoken_at_a_socket() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let server = UnixServer::bind(&path).await.expect("a server");
    let client = HttpClient::at_socket(&path);
    let (site, limits) = (Echo::new(2), HttpLimits::default());
    let asking = async {
        for path in ["/one", "/two"] {
            let request = Request::get(format!("http://localhost{path}"));
            let request = request.body(Bytes::new()).expect("a request");
            let answer = client.fetch(request, 100).await.expect("an answer");
            assert_eq!(answer.body(), path);
        }
    };
    let serving = serve_next(&server, &site, limits, std::future::pending());
    tokio::select! {
        // Both over one connection.
        () = serving => panic!("it ended"),
        () = asking => {}
    }
}

#[tokio::test]
async fn a_client_that_speaks_too_slowly_is_not_waited_for() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let server = UnixServer::bind(&path).await.expect("a server");
    let limits = HttpLimits {
        header_timeout: Duration::from_millis(50),
        ..HttpLimits::default()
    };
    let mut client = UnixStream::connect(&path).await.expect("connected");
    client.write_all(b"GET / HT").await.expect("written");
    let site = Echo::new(0);
    serve_next(&server, &site, limits, std::future::pending()).await;
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.expect("it ends");
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn a_request_under_way_is_answered_although_the_end_has_begun() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let server = UnixServer::bind(&path).await.expect("a server");
    let mut client = UnixStream::connect(&path).await.expect("connected");
    let request = b"GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.write_all(request).await.expect("written");
    let site = Echo::new(0);
    let shutdown = async {
        site.asked.acquire().await.expect("open").forget();
        site.answers.add_permits(1);
    };
    serve_next(&server, &site, HttpLimits::default(), shutdown).await;
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("it ends");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("/late"), "{answer}");
    // One that never is answered is given up.
    let mut client = UnixStream::connect(&path).await.expect("connected");
    client.write_all(request).await.expect("written");
    let limits = HttpLimits {
        drain: Duration::from_millis(20),
        ..HttpLimits::default()
    };
    let shutdown = async { site.asked.acquire().await.expect("open").forget() };
    serve_next(&server, &site, limits, shutdown).await;
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("it ends");
    assert!(!answer.contains("/late"), "{answer}");
}

#[tokio::test]
async fn the_first_byte_stays_to_be_read() {
    let directory = private_directory();
    let path = directory.path().join("server.sock");
    let server = UnixServer::bind(&path).await.expect("a server");
    let mut stream = UnixStream::connect(&path).await.expect("connected");
    stream.write_all(b"{\"a\":1}\nrest").await.expect("written");
    let mut client = server.accept().await;
    let patience = Duration::from_secs(30);
    assert_eq!(client.first_byte(patience).await.expect("one"), b'{');
    let line = client.first_line(100, patience).await.expect("a line");
    assert_eq!(&line[..], b"{\"a\":1}");
    drop(stream);
    let silent = UnixStream::connect(&path).await.expect("connected");
    let mut client = server.accept().await;
    drop(silent);
    let ended = client.first_byte(patience).await;
    assert!(matches!(ended, Err(FirstLineError::Ended)), "{ended:?}");
}
