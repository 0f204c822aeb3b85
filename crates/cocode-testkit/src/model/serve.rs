//! Answers requests as a script says: a stream of events, an error, or less than either.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader};

use super::script::{Ending, ModelScript, ModelTurn, Refusal};
use super::{ModelFormat, anthropic, chat, responses};
use crate::gate;
use crate::http::HttpRequest;
use crate::http::response::Response;
use crate::recorder::Recorder;
use crate::tcp::{Connection, Serve};

/// What all connections have in common.
#[derive(Debug)]
pub(super) struct Shared {
    format: ModelFormat,
    script: ModelScript,
    n_requests: AtomicUsize,
    /// Gets every request, and what is wrong with it, before it is answered.
    log: Option<Mutex<File>>,
    pub(super) requests: Recorder<HttpRequest>,
    pub(super) abandoned: Recorder<HttpRequest>,
    pub(super) violations: Recorder<String>,
}

/// A step of an answer in events.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// An event; no name means that only data is sent.
    Event { name: String, data: String },
    /// Waits at a gate.
    Hold(std::net::SocketAddr),
}

/// What a provider says of itself in its events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Naming<'a> {
    /// The number of the request, from one.
    pub(super) number: usize,
    /// The model that was asked for.
    pub(super) model: &'a str,
}

impl Step {
    /// An event whose name is also the type in its data.
    pub(super) fn typed(mut data: Value, name: &str) -> Self {
        data["type"] = json!(name);
        Self::Event {
            name: name.to_owned(),
            data: data.to_string(),
        }
    }

    /// An event without a name.
    pub(super) fn data(data: &Value) -> Self {
        Self::Event {
            name: String::new(),
            data: data.to_string(),
        }
    }

    fn render(&self) -> String {
        match self {
            Self::Event { name, data } if name.is_empty() => format!("data: {data}\n\n"),
            Self::Event { name, data } => format!("event: {name}\ndata: {data}\n\n"),
            Self::Hold(_) => String::new(),
        }
    }
}

impl Shared {
    pub(super) fn new(format: ModelFormat, script: ModelScript, log: Option<File>) -> Self {
        Self {
            format,
            script,
            n_requests: AtomicUsize::new(0),
            log: log.map(Mutex::new),
            requests: Recorder::default(),
            abandoned: Recorder::default(),
            violations: Recorder::default(),
        }
    }

    fn log(&self, line: &Value) {
        if let Some(log) = &self.log {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            writeln!(log, "{line}").expect("the log can be written");
        }
    }

    fn violated(&self, number: usize, what: &str) {
        let what = format!("request {number}: {what}");
        self.log(&json!({ "violation": what }));
        self.violations.push(what);
    }

    /// What a request is answered with, and its number.
    fn answer(&self, request: &HttpRequest) -> (ModelTurn, usize) {
        let number = self.n_requests.fetch_add(1, Ordering::SeqCst) + 1;
        self.log(&json!({
            "path": request.path,
            "headers": request.headers,
            "body": request.json(),
        }));
        let path = request.path.split('?').next().unwrap_or_default();
        if path != self.format.path() {
            self.violated(number, &format!("there is no {path}"));
            return (
                ModelTurn::status(404, "not_found_error", "Not found"),
                number,
            );
        }
        let found = self.format.violations(request);
        if !found.is_empty() {
            for what in &found {
                self.violated(number, what);
            }
            let refusal = ModelTurn::status(400, "invalid_request_error", &found.join("; "));
            return (refusal, number);
        }
        let turn = self.script.next(request).unwrap_or_else(|| {
            self.violated(number, "the script is over");
            ModelTurn::status(500, "api_error", "the script is over")
        });
        (turn, number)
    }

    async fn respond(
        &self,
        request: &HttpRequest,
        response: &mut Response<'_>,
    ) -> io::Result<After> {
        let (turn, number) = self.answer(request);
        if let Some(refusal) = &turn.refusal {
            let (headers, body) = self.refusal(refusal, number);
            response
                .send(refusal.status, &headers, body.as_bytes())
                .await?;
            return Ok(After::Reuse);
        }
        if turn.piece > 0 {
            response.piece = turn.piece;
        }
        response.open_stream(&[]).await?;
        let body = request.json();
        let model = body
            .get("model")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let naming = Naming { number, model };
        let mut steps = match self.format {
            ModelFormat::Anthropic => anthropic::steps(&turn, naming),
            ModelFormat::Responses => responses::steps(&turn, naming),
            ModelFormat::Chat => chat::steps(&turn, naming),
        };
        let last = if turn.ending == Ending::CutOff {
            steps.pop()
        } else {
            None
        };
        for step in &steps {
            match step {
                Step::Event { .. } => response.bytes(step.render().as_bytes()).await?,
                Step::Hold(address) => gate::pass(*address).await,
            }
        }
        match turn.ending {
            Ending::Proper | Ending::Error { .. } | Ending::Early => {
                response.finish().await?;
                Ok(After::Reuse)
            }
            Ending::CutOff => {
                let rendered = last.map(|step| step.render()).unwrap_or_default();
                let half = rendered.as_bytes().get(..rendered.len() / 2);
                response.bytes(half.unwrap_or_default()).await?;
                Ok(After::Close)
            }
            Ending::Stall => std::future::pending().await,
        }
    }

    /// An error as the provider writes it.
    fn refusal(&self, refusal: &Refusal, number: usize) -> (Vec<(String, String)>, String) {
        let Refusal {
            kind,
            message,
            body,
            ..
        } = refusal;
        let usual = match self.format {
            ModelFormat::Anthropic => json!({
                "type": "error",
                "error": { "type": kind, "message": message },
                "request_id": format!("req_{number}"),
            }),
            ModelFormat::Responses | ModelFormat::Chat => json!({
                "error": {
                    "message": message,
                    "type": "invalid_request_error",
                    "param": null,
                    "code": kind,
                }
            }),
        };
        let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        headers.extend(refusal.headers.iter().cloned());
        (headers, body.clone().unwrap_or_else(|| usual.to_string()))
    }
}

/// What becomes of a connection.
enum After {
    Reuse,
    Close,
}

pub(super) fn serving(shared: &Arc<Shared>) -> Serve {
    let shared = Arc::clone(shared);
    Arc::new(move |connection| Box::pin(serve(connection, Arc::clone(&shared))))
}

async fn serve(connection: Connection, shared: Arc<Shared>) {
    let Connection {
        number,
        stream,
        breaker: _breaker,
    } = connection;
    let (input, mut output) = tokio::io::split(stream);
    let mut input = BufReader::new(input);
    while let Ok(Some(request)) = HttpRequest::read(number, &mut input).await {
        shared.requests.push(request.clone());
        let mut response = Response::new(&mut output);
        let after = tokio::select! {
            biased;
            after = shared.respond(&request, &mut response) => after,
            () = closed(&mut input) => Err(io::ErrorKind::ConnectionAborted.into()),
        };
        match after {
            Ok(After::Reuse) => {}
            Ok(After::Close) => return,
            Err(_gone) => return shared.abandoned.push(request),
        }
    }
}

/// Comes back when the client has closed the connection.
async fn closed(input: &mut (impl AsyncBufRead + Unpin)) {
    match input.fill_buf().await {
        Ok([]) | Err(_) => {}
        // The next request is already here, so that the end cannot be seen any more.
        Ok(_) => std::future::pending().await,
    }
}
