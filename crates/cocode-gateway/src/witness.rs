//! Stands beside a request on its way to a server: passes on what belongs to it, to the client that
//! asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cocode_client::{Notification, RequestError, Witness};
use cocode_wire::encode;
use cocode_wire::serve::Sink;
use cocode_wire::{RawJson, RpcError, code};
use tokio::sync::Notify;

use crate::caller::{Abilities, Caller};
use crate::deeds::Slot;
use crate::downstream::Downstream;
use crate::level::Level;
use crate::oversight::Counted;
use crate::party::Matter;
use crate::progress::ClientProgress;
use crate::questions::Questions;
use crate::request::Request;
use cocode_core::{Era, ServerName};

/// The future of an answer.
pub(crate) type Asking<'a> =
    std::pin::Pin<Box<dyn Future<Output = Result<RawJson, RpcError>> + Send + 'a>>;

/// The client's side of one request.
pub(crate) struct CallWitness {
    caller: Arc<Caller>,
    /// The conversation that the request is a part of.
    from: Arc<Downstream>,
    /// The server that the request is for.
    server: ServerName,
    /// The tool that it calls, where somebody may be told of that.
    tool: Option<Arc<str>>,
    /// Where a client of the stateless era finds questions.
    questions: Arc<Questions>,
    /// What the client was needed for, but did not offer.
    lacking: Mutex<Abilities>,
    way: Mutex<Way>,
    /// Whether a server works on the request.
    is_under_way: AtomicBool,
    over: Notify,
    /// A server may still be at work on an attempt that was repeated.
    has_timed_out: AtomicBool,
    /// What counts the request among what goes on while it is parked, until no server works on it.
    counted: Mutex<Option<Counted>>,
    is_counted: AtomicBool,
    /// Whether a question suspends the request until its client comes back with the answer.
    may_suspend: AtomicBool,
}

/// How the client is reached at this moment: a request that was asked again comes by another way.
struct Way {
    stream: Arc<dyn Sink>,
    progress: Option<Arc<ClientProgress>>,
    /// What somebody watches it as.
    deed: Option<Arc<Slot>>,
}

impl Way {
    fn of(request: &Request) -> Self {
        Self {
            stream: Arc::clone(&request.stream),
            progress: request.progress.clone(),
            deed: request.deed.get().cloned(),
        }
    }
}

impl CallWitness {
    pub(crate) fn new(
        request: &Request,
        caller: &Arc<Caller>,
        server: &ServerName,
        tool: Option<&str>,
    ) -> Arc<Self> {
        let is_told = request.from.party().has_inbox();
        Arc::new(Self {
            caller: Arc::clone(caller),
            from: Arc::clone(&request.from),
            server: server.clone(),
            tool: tool.filter(|_| is_told).map(Arc::from),
            questions: Arc::default(),
            lacking: Mutex::default(),
            way: Mutex::new(Way::of(request)),
            is_under_way: AtomicBool::new(false),
            over: Notify::new(),
            has_timed_out: AtomicBool::new(false),
            counted: Mutex::default(),
            is_counted: AtomicBool::new(false),
            may_suspend: AtomicBool::new(false),
        })
    }

    /// From now on a question suspends the request until its client comes back with the answer.
    pub(crate) fn allow_suspension(&self) {
        self.may_suspend.store(true, Ordering::Relaxed);
    }

    /// What can be asked: its client, or whoever answers for it.
    pub(crate) fn can(&self) -> Abilities {
        self.caller.can.or(self.from.party().can())
    }

    /// What only whoever answers for its client can be asked.
    pub(crate) fn can_by_inbox(&self) -> Abilities {
        self.from.party().can().without(self.caller.can)
    }

    /// Notes that its client was needed for something that it did not offer.
    pub(crate) fn lacks(&self, needed: Abilities) {
        let mut lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        *lacking = lacking.or(needed);
    }

    /// What its client was needed for, but did not offer.
    pub(crate) fn lacking(&self) -> Abilities {
        *self.lacking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Questions that wait for the client to come back.
    pub(crate) fn questions(&self) -> &Arc<Questions> {
        &self.questions
    }

    /// From now on the client is reached as this request came.
    pub(crate) fn redirect(&self, request: &Request) {
        *self.way() = Way::of(request);
    }

    /// The request is made once more.
    pub(crate) fn begins_again(&self) {
        let progress = self.way().progress.clone();
        if let Some(progress) = progress {
            progress.begins_again();
        }
    }

    /// Whether an attempt timed out that was then repeated.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.has_timed_out.load(Ordering::Relaxed)
    }

    /// Its client is told of these questions, and may hear when they are done with.
    pub(crate) fn tells_of<'a>(&self, questions: impl IntoIterator<Item = &'a RawJson>) {
        for question in questions {
            self.from.party().tells_of(question);
        }
    }

    /// For whom it is.
    pub(crate) fn principal(&self) -> Option<&str> {
        self.from.party().principal()
    }

    /// Puts a question to the client, or to whoever answers for it.
    pub(crate) fn ask<'a>(&'a self, method: &str, params: Option<RawJson>) -> Asking<'a> {
        self.tells_of(params.as_ref());
        if let Err(refusal) = self.caller.can.check(method, params.as_ref()) {
            let matter = Matter {
                server: self.server.clone(),
                tool: self.tool.clone(),
                consent: None,
            };
            let asked = self.from.party().ask(matter, method, params.as_ref());
            if let Some(answer) = asked {
                return answer;
            }
            self.lacks(Abilities::needed_for(method, params.as_ref()));
            return Box::pin(std::future::ready(Err(refusal)));
        }
        let method = method.to_owned();
        match self.caller.era() {
            Era::Modern if !self.may_suspend.load(Ordering::Relaxed) => {
                let what = format!("`{method}` belongs into a result of type `input_required`");
                Box::pin(std::future::ready(Err(RpcError::new(
                    code::METHOD_NOT_FOUND,
                    what,
                ))))
            }
            Era::Modern => Box::pin(async move { self.questions.ask(&method, params).await }),
            Era::Legacy => {
                let stream = Arc::clone(&self.way().stream);
                Box::pin(async move { self.from.ask(&*stream, &method, params.as_ref()).await })
            }
        }
    }

    /// The request counts among what goes on for as long as a server works on it.
    pub(crate) fn keep(&self, counted: Counted) {
        let older = self.counted().replace(counted);
        drop(older);
        self.is_counted.store(true, Ordering::SeqCst);
        // The server may have been done this very moment, and nobody have looked since.
        if !self.is_under_way.load(Ordering::SeqCst) {
            self.let_go();
        }
    }

    /// Whether the request counts although nobody looks at it.
    pub(crate) fn is_counted(&self) -> bool {
        self.is_counted.load(Ordering::SeqCst)
    }

    fn let_go(&self) {
        self.is_counted.store(false, Ordering::SeqCst);
        let counted = self.counted().take();
        drop(counted);
    }

    fn counted(&self) -> MutexGuard<'_, Option<Counted>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server begins to work on the request, until what this gives is dropped.
    pub(crate) fn begin(&self) -> UnderWay<'_> {
        self.is_under_way.store(true, Ordering::Release);
        UnderWay(self)
    }

    /// Ready when no server works on the request any more.
    async fn over(&self) {
        loop {
            let over = self.over.notified();
            if !self.is_under_way.load(Ordering::Acquire) {
                return;
            }
            over.await;
        }
    }

    /// Whether the client wants a log message.
    fn wants(&self, params: Option<&RawJson>) -> bool {
        let wanted = match self.caller.era() {
            Era::Modern => self
                .caller
                .behalf
                .log_level
                .as_deref()
                .and_then(Level::named),
            Era::Legacy => Some(self.from.log_level()),
        };
        wanted.is_some_and(|wanted| Level::of_message(params) >= wanted)
    }

    fn send(&self, message: Vec<u8>) {
        let stream = Arc::clone(&self.way().stream);
        if !stream.send(Bytes::from(message)) {
            tracing::debug!("a client did not take a notification");
        }
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness for CallWitness {
    fn progress(&self, params: &RawJson) {
        let (progress, deed) = {
            let way = self.way();
            (way.progress.clone(), way.deed.clone())
        };
        if let Some(deed) = deed {
            deed.progress(params);
        }
        if let Some(progress) = progress {
            progress.report(params);
        }
    }

    fn notified(&self, notification: &Notification) {
        let Notification { method, params, .. } = notification;
        match method.as_str() {
            // These are told to everybody whom they concern, and by other ways.
            "notifications/progress"
            | "notifications/cancelled"
            | "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated" => return,
            "notifications/message" if !self.wants(params.as_ref()) => return,
            _ => {}
        }
        let retold = self.from.retold(&self.server, notification);
        let params = retold.as_ref().or(params.as_ref()).map(RawJson::as_bytes);
        self.send(encode::notification(method, params));
    }

    fn repeats(&self, error: &RequestError) {
        if matches!(error, RequestError::Timeout { .. }) {
            self.has_timed_out.store(true, Ordering::Relaxed);
        }
        self.begins_again();
    }

    /// A server may forget what it has asked when its work is over. Clients take care of that; those
    /// who read an inbox are not to be kept busy with it.
    fn asked(&self, method: &str, params: Option<RawJson>) -> Asking<'_> {
        let needed = Abilities::needed_for(method, params.as_ref());
        let answer = self.ask(method, params);
        if !self.can_by_inbox().and(needed).any() {
            return answer;
        }
        Box::pin(async move {
            tokio::select! {
                answer = answer => answer,
                () = self.over() => {
                    let what = "the request that this is about is over";
                    Err(RpcError::new(code::INTERNAL_ERROR, what))
                }
            }
        })
    }
}

/// A request that a server works on.
pub(crate) struct UnderWay<'a>(&'a CallWitness);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.is_under_way.store(false, Ordering::SeqCst);
        self.0.over.notify_waiters();
        if self.0.is_counted.load(Ordering::SeqCst) {
            self.0.let_go();
        }
    }
}
