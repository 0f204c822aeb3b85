//! The least that answers HTTP: `cocode-bench bare-http echo|forward N`. As an echo it knows the
//! answers itself, which is the ceiling of whatever has a server behind it; as a forwarder it passes
//! each body on to a server on pipes, and its line back, one at a time.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use memchr::memchr;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::child::Pipes;
use crate::Failure;
use crate::server::{echo, number_after};

/// The size of the text in every answer of an echo.
const ECHO_BYTES: usize = 1024;
/// Room for one read.
const READ_BYTES: usize = 256 * 1024;

enum Behind {
    /// The end of every answer.
    Nothing(Vec<u8>),
    Server(Box<Mutex<Server>>),
}

struct Server {
    stdin: ChildStdin,
    stdout: ChildStdout,
    buffer: BytesMut,
    _child: Child,
}

pub(crate) fn serve(arguments: &[String]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let task = runtime.spawn(run(arguments.to_vec()));
    let outcome = runtime.block_on(task)?;
    runtime.shutdown_background();
    outcome
}

async fn run(arguments: Vec<String>) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let behind = match words.as_slice() {
        ["echo"] => Behind::Nothing(echo(ECHO_BYTES, false)),
        ["forward", n_tools] => {
            let Pipes {
                child,
                stdin,
                stdout,
            } = Pipes::start(n_tools.parse()?)?;
            Behind::Server(Box::new(Mutex::new(Server {
                stdin,
                stdout,
                buffer: BytesMut::new(),
                _child: child,
            })))
        }
        _ => return Err("bare HTTP is an echo or a forwarder".into()),
    };
    let behind = Arc::new(behind);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let mut output = tokio::io::stdout();
    let address = format!("{}\n", listener.local_addr()?);
    output.write_all(address.as_bytes()).await?;
    output.flush().await?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted?.0,
            order = orders.next_line() => match order? {
                Some(_) => continue,
                None => return Ok(()),
            },
        };
        stream.set_nodelay(true)?;
        let behind = Arc::clone(&behind);
        connections.spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&behind), request));
            let io = TokioIo::new(stream);
            // Whoever leaves in the middle of something leaves.
            drop(http1::Builder::new().serve_connection(io, service).await);
        });
    }
}

async fn answer(
    behind: Arc<Behind>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let answered = match request.into_body().collect().await {
        Ok(body) => behind.answer(body.to_bytes()).await,
        Err(error) => Err(error.into()),
    };
    let mut response = match answered {
        Ok(text) => Response::new(Full::new(text)),
        Err(_failure) => {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    };
    let json = hyper::header::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, json);
    Ok(response)
}

impl Behind {
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "whoever asks the server keeps the others out until it has answered"
    )]
    async fn answer(&self, body: Bytes) -> Result<Bytes, Failure> {
        match self {
            Self::Nothing(rest) => {
                let id = number_after(&body, b"\"id\":").ok_or("no id")?;
                let parts: [&[u8]; 3] = [br#"{"jsonrpc":"2.0","id":"#, id, rest];
                Ok(parts.concat().into())
            }
            Self::Server(server) => server.lock().await.forward(&body).await,
        }
    }
}

impl Server {
    async fn forward(&mut self, body: &[u8]) -> Result<Bytes, Failure> {
        self.stdin.write_all(&[body, b"\n"].concat()).await?;
        if number_after(body, b"\"id\":").is_none() {
            return Ok(Bytes::new());
        }
        let mut searched = 0;
        loop {
            if let Some(offset) = memchr(b'\n', &self.buffer[searched..]) {
                let line = self.buffer.split_to(searched + offset + 1).freeze();
                return Ok(line);
            }
            searched = self.buffer.len();
            self.buffer.reserve(READ_BYTES);
            if self.stdout.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server has ended".into());
            }
        }
    }
}
