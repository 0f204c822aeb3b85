//! One request and its response, step by step.

use std::collections::VecDeque;
use std::io;

use tokio::sync::{broadcast, mpsc};

use crate::engine;
use crate::gate;
use crate::http::Shared;
use crate::http::request::HttpRequest;
use crate::http::response::{Progress, Response};
use crate::http::streams::Push;
use crate::http::usual::Usual;
use crate::script::{HttpStep, SseEvent, Step};
use crate::template::{Scope, Template};

/// What becomes of the connection after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Reuse,
    Close,
    Reset,
}

/// A request while it is answered.
pub(crate) struct Exchange<'a> {
    shared: &'a Shared,
    request: &'a HttpRequest,
    response: Response<'a>,
    scope: Scope,
    session: String,
    heard: broadcast::Receiver<String>,
    pushes: Option<mpsc::Receiver<Push>>,
}

/// The script wants the connection closed, or the socket already is.
enum Stop {
    HangUp,
    Reset,
    Failed,
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        // A client that goes away is a matter for the test, which sees it in the record.
        Self::Failed
    }
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        request: &'a HttpRequest,
        response: Response<'a>,
        scope: Scope,
    ) -> Self {
        let session = Usual::session_of(request);
        let heard = shared.heard.subscribe();
        Self {
            shared,
            request,
            response,
            scope,
            session,
            heard,
            pushes: None,
        }
    }

    /// Takes all steps. Without any, the request is never answered.
    pub(crate) async fn run(mut self, steps: Vec<Step>) -> After {
        let mut left = VecDeque::from(steps);
        if left.is_empty() {
            left.push_back(Step::Http(HttpStep::Stall));
        }
        match self.take(left).await {
            Ok(()) if self.response.progress == Progress::Complete => After::Reuse,
            Ok(()) | Err(Stop::HangUp | Stop::Failed) => After::Close,
            Err(Stop::Reset) => After::Reset,
        }
    }

    async fn take(&mut self, mut left: VecDeque<Step>) -> Result<(), Stop> {
        while let Some(step) = left.pop_front() {
            if step == Step::AsUsual {
                let usual = self.shared.usual.steps(self.request, &self.scope.message);
                for step in usual.into_iter().rev() {
                    left.push_front(step);
                }
                continue;
            }
            let more_to_say = left.iter().any(is_message);
            let pushes_follow = left.contains(&Step::Http(HttpStep::Pushes));
            self.step(step, more_to_say, pushes_follow).await?;
        }
        if self.response.progress == Progress::Nothing {
            if self.scope.message.id().is_some() {
                return std::future::pending().await;
            }
            self.response.send(202, &[], b"").await?;
        }
        Ok(self.response.finish().await?)
    }

    async fn step(
        &mut self,
        step: Step,
        more_to_say: bool,
        pushes_follow: bool,
    ) -> Result<(), Stop> {
        match step {
            Step::Line(template) => {
                let text = self.scope.fill(&template);
                self.say(&text, more_to_say).await?;
            }
            Step::Lines(count, template) => {
                let text = self.scope.fill(&template);
                for _ in 0..count {
                    self.say(&text, true).await?;
                }
            }
            Step::Text(template) => {
                let text = self.scope.fill(&template);
                self.response.bytes(text.as_bytes()).await?;
            }
            Step::Raw(bytes) => self.response.bytes(&bytes).await?,
            Step::Fill(bytes) => self.response.bytes(&vec![b'x'; bytes]).await?,
            Step::Ask { method, params } => {
                let params = self.scope.fill(&params);
                let run = self.request.connection;
                let (request, answer) = self.shared.asks.ask(run, &method, &params);
                self.say(&request, true).await?;
                self.scope.answer = answer.await.map_err(|_closed| Stop::Failed)?;
            }
            Step::Hold(address) => gate::pass(address).await,
            Step::WaitFor(method) => {
                let heard = engine::wait_for(&method, &mut self.heard).await;
                heard.map_err(|engine::Gone| Stop::Failed)?;
            }
            Step::Delay(time) => tokio::time::sleep(time).await,
            Step::StopReading => std::future::pending().await,
            Step::Disconnect => return Err(Stop::HangUp),
            Step::Reset => return Err(Stop::Reset),
            Step::Http(step) => self.http_step(step, pushes_follow).await?,
            Step::AsUsual | Step::Process(_) | Step::Close { .. } => {
                panic!("not a step of an HTTP server: {step:?}")
            }
        }
        Ok(())
    }

    async fn http_step(&mut self, step: HttpStep, pushes_follow: bool) -> Result<(), Stop> {
        match step {
            HttpStep::Respond {
                status,
                headers,
                body,
            } => {
                let body = self.scope.fill(&body);
                self.response
                    .send(status, &headers, body.as_bytes())
                    .await?;
            }
            HttpStep::Stream { headers } => {
                if pushes_follow {
                    // Before the client can know of the stream, so that nothing comes too early.
                    self.open_for_pushes();
                }
                self.open_stream(headers).await?;
            }
            HttpStep::Event(event) => {
                self.open_stream(Vec::new()).await?;
                let text = event.render(|template| self.scope.fill(template));
                self.response.bytes(text.as_bytes()).await?;
            }
            HttpStep::Pieces(bytes) => self.response.piece = bytes,
            HttpStep::Stall => std::future::pending().await,
            HttpStep::Pushes => {
                self.open_for_pushes();
                self.open_stream(Vec::new()).await?;
                self.forward_pushes().await?;
            }
        }
        Ok(())
    }

    /// Sends one message: as JSON if it is the only one, as an event otherwise.
    async fn say(&mut self, text: &str, more_to_say: bool) -> Result<(), Stop> {
        let event = || SseEvent::data(Template::literal(text)).event("message");
        let rendered = event().render(|template| self.scope.fill(template));
        let untouched = self.response.progress == Progress::Nothing;
        if self.shared.usual.answers_elsewhere() && self.request.method == "POST" {
            if untouched {
                self.response.send(202, &[], b"").await?;
            }
            let reached = self
                .shared
                .streams
                .push(Some(&self.session), &Push::Text(rendered));
            // Without a stream there is nobody to hear it, as in a real server.
            return if reached > 0 {
                Ok(())
            } else {
                Err(Stop::HangUp)
            };
        }
        if untouched && !more_to_say && !self.shared.usual.answers_with_events() {
            let mut headers = self.shared.usual.answer_headers(&self.scope.message);
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            return Ok(self.response.send(200, &headers, text.as_bytes()).await?);
        }
        self.open_stream(Vec::new()).await?;
        Ok(self.response.bytes(rendered.as_bytes()).await?)
    }

    async fn open_stream(&mut self, mut headers: Vec<(String, String)>) -> Result<(), Stop> {
        if self.response.progress == Progress::Nothing {
            headers.extend(self.shared.usual.answer_headers(&self.scope.message));
        }
        Ok(self.response.open_stream(&headers).await?)
    }

    fn open_for_pushes(&mut self) {
        if self.pushes.is_none() {
            if self.shared.usual.answers_elsewhere() {
                self.session = self.shared.usual.newest_session();
            }
            self.pushes = Some(self.shared.streams.open(&self.session));
        }
    }

    async fn forward_pushes(&mut self) -> Result<(), Stop> {
        while let Some(pushes) = &mut self.pushes {
            match pushes.recv().await {
                Some(Push::Text(text)) => self.response.bytes(text.as_bytes()).await?,
                Some(Push::Drop) => return Err(Stop::HangUp),
                Some(Push::End) | None => self.pushes = None,
            }
        }
        Ok(())
    }
}

fn is_message(step: &Step) -> bool {
    matches!(
        step,
        Step::Line(_) | Step::Lines(..) | Step::Ask { .. } | Step::Http(HttpStep::Event(_))
    )
}
