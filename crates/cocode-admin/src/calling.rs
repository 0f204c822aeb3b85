//! Calls of tools by way of the API: answered when they are over, or told as they go on.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::RawJson;
use futures_util::stream;
use http::{Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::ask::Ask;
use crate::call_book::milliseconds;
use crate::events::COMMENT_INTERVAL;
use crate::house::{CallListener, CallNews};
use crate::model::{CallAnswer, CallWish};
use crate::refusal::{Refusal, RefusalStatus};
use crate::reply::{AnswerKind, EVENTS, JSON, Respond, event_response, json_response, text_schema};
use crate::schema::Described as _;
use crate::sse::{COMMENT, event, json_text};
use cocode_wire::serve::PageBody;

/// How long a call may take, whatever the house says: a bit longer than anybody can ask for.
pub(crate) const PATIENCE: Duration = Duration::from_mins(65);
/// What may wait for a client that reads slowly; the rest of the progress is dropped.
const MAX_WAITING_NEWS: usize = 256;

type Calling = Pin<Box<dyn Future<Output = Result<RawJson, Refusal>> + Send>>;

/// What a call gave, or is going to give.
pub(crate) enum Called {
    Over(CallAnswer),
    Telling(PageBody),
}

impl Respond for Called {
    fn kinds() -> Vec<AnswerKind> {
        vec![AnswerKind {
            status: StatusCode::OK,
            about: "What the call gave; or events, if they were asked for.",
            content: vec![(JSON, CallAnswer::schema), (EVENTS, text_schema)],
        }]
    }

    fn response(self) -> Response<PageBody> {
        match self {
            Self::Over(answer) => json_response(StatusCode::OK, &answer),
            Self::Telling(body) => event_response(body),
        }
    }
}

pub(crate) async fn call(ask: Ask, wish: CallWish) -> Result<Called, Refusal> {
    let begun = Instant::now();
    if !ask.wants_events() {
        let caller = ask.caller()?;
        let calling = ask
            .house()
            .call(caller, ask.name(), wish, CallListener::deaf());
        let result = calling.await?;
        return Ok(Called::Over(answer(result, begun)));
    }
    // Whether there is such a server can be said by the status.
    ask.house().server(ask.name()).await?;
    let caller = ask.caller()?.clone();
    let (teller, news) = mpsc::channel(MAX_WAITING_NEWS);
    let listener = CallListener::new(move |news| {
        // Whoever reads too slowly misses steps, and hears of later ones.
        let _is_told = teller.try_send(news);
    });
    let calling = Box::pin(async move {
        let calling = ask.house().call(&caller, ask.name(), wish, listener);
        calling.await
    });
    let telling = Telling {
        calling: Some(calling),
        news,
        begun,
        end: begun + PATIENCE,
    };
    let pieces = stream::unfold(telling, |mut telling| async move {
        let piece = telling.next().await?;
        Some((piece, telling))
    });
    Ok(Called::Telling(PageBody::events(pieces)))
}

/// A call that is told as it goes on. The call ends with it.
struct Telling {
    /// Nothing, once the end was told.
    calling: Option<Calling>,
    news: mpsc::Receiver<CallNews>,
    begun: Instant,
    end: Instant,
}

impl Telling {
    async fn next(&mut self) -> Option<Bytes> {
        let calling = self.calling.as_mut()?;
        let comment_at = Instant::now() + COMMENT_INTERVAL;
        let outcome = tokio::select! {
            // What came before the end is told before it.
            biased;
            Some(news) = self.news.recv() => return Some(written(&news)),
            outcome = calling => outcome,
            () = sleep_until(self.end) => Err(Refusal::new(
                RefusalStatus::ServerFailed,
                "timeout",
                format!("the call did not end within {} s", PATIENCE.as_secs()),
            )),
            () = sleep_until(comment_at) => return Some(Bytes::from_static(COMMENT)),
        };
        self.calling = None;
        let mut text = Vec::new();
        // The call may have told something in its last step.
        while let Ok(news) = self.news.try_recv() {
            text.extend_from_slice(&written(&news));
        }
        let last = match outcome {
            Ok(result) => event("result", None, &json_text(&answer(result, self.begun))),
            Err(refusal) => event("error", None, &json_text(&refusal.problem())),
        };
        text.extend_from_slice(&last);
        Some(text.into())
    }
}

fn written(news: &CallNews) -> Bytes {
    match news {
        CallNews::Progress(progress) => event("progress", None, &json_text(progress)),
        CallNews::Log(line) => event("log", None, &json_text(line)),
    }
}

fn answer(result: RawJson, begun: Instant) -> CallAnswer {
    CallAnswer {
        result,
        milliseconds: milliseconds(begun.elapsed()),
    }
}
