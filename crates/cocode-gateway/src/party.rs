//! Whom a view is for, and who answers for its clients what they cannot put to anybody.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use cocode_core::ServerName;
use cocode_wire::members::never_mentions;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::caller::Abilities;
use crate::inbox::{Consent, Inbox, Question, QuestionMode};
use crate::oversight::Overseer;
use crate::witness::Asking;

/// How long somebody may take to look into the inbox and answer.
const ANSWERS_WITHIN: Duration = Duration::from_mins(10);

/// Questions of one view that may wait in the inbox at once.
const MAX_WAITING: usize = 64;

/// Addresses to visit that are remembered.
const MAX_VISITS: usize = 256;

/// Whom the clients of a view belong to.
pub(crate) struct Party {
    principal: Option<Arc<str>>,
    inbox: Option<Arc<dyn Inbox>>,
    places: Arc<Semaphore>,
    /// Requests under way of clients that have no session.
    under_way: Arc<AtomicUsize>,
    /// Who watches over these clients, if it is not who watches over everybody in their view.
    overseer: Option<Arc<dyn Overseer>>,
    /// Addresses that its clients were asked to visit, by the ids that servers gave them; the newest
    /// last.
    visits: Arc<Mutex<VecDeque<String>>>,
}

/// A request under way, until this is dropped.
pub(crate) struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a question is about.
#[derive(Clone)]
pub(crate) struct Matter {
    pub(crate) server: ServerName,
    pub(crate) tool: Option<Arc<str>>,
    /// The call that somebody is to allow, if it is about that.
    pub(crate) consent: Option<Consent>,
}

#[derive(Deserialize)]
struct Elicitation<'a> {
    #[serde(default)]
    message: String,
    #[serde(default)]
    mode: Option<String>,
    #[serde(borrow, default, rename = "requestedSchema")]
    schema: Option<&'a RawValue>,
    #[serde(default)]
    url: Option<String>,
}

impl Party {
    pub(crate) fn new(principal: Option<Arc<str>>, inbox: Option<Arc<dyn Inbox>>) -> Self {
        Self {
            principal,
            inbox,
            places: Arc::new(Semaphore::new(MAX_WAITING)),
            under_way: Arc::default(),
            overseer: None,
            visits: Arc::default(),
        }
    }

    /// A request begins whose client has no session.
    pub(crate) fn begin(&self) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(Arc::clone(&self.under_way))
    }

    /// Whether such requests are under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }

    /// The same, but that somebody else watches over its clients.
    pub(crate) fn watched_by(&self, overseer: Arc<dyn Overseer>) -> Self {
        Self {
            principal: self.principal.clone(),
            inbox: self.inbox.clone(),
            places: Arc::clone(&self.places),
            under_way: Arc::clone(&self.under_way),
            overseer: Some(overseer),
            visits: Arc::clone(&self.visits),
        }
    }

    /// Notes that its clients are told of this question, if it is one of those that servers say of when
    /// they are done with.
    pub(crate) fn tells_of(&self, question: &RawJson) {
        if never_mentions(question, "elicitationId") {
            return;
        }
        if let Some(id) = visit_in(Some(question)) {
            let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
            if visits.len() >= MAX_VISITS {
                visits.pop_front();
            }
            visits.push_back(id);
        }
    }

    /// Whether its clients know of the question that a notification is about.
    pub(crate) fn knows_of(&self, params: Option<&RawJson>) -> bool {
        let visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        visit_in(params).is_some_and(|id| visits.contains(&id))
    }

    /// Who watches over these clients alone, if anybody does.
    pub(crate) fn overseer(&self) -> Option<&Arc<dyn Overseer>> {
        self.overseer.as_ref()
    }

    pub(crate) fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// The same, to be kept.
    pub(crate) fn shared_principal(&self) -> Option<Arc<str>> {
        self.principal.clone()
    }

    /// Whether there is an inbox, be it open or not.
    pub(crate) fn has_inbox(&self) -> bool {
        self.inbox.is_some()
    }

    /// What can be asked by way of the inbox at this moment.
    pub(crate) fn can(&self) -> Abilities {
        let is_open = self.inbox.as_ref().is_some_and(|inbox| inbox.is_open());
        Abilities {
            form: is_open,
            url: is_open,
            ..Abilities::default()
        }
    }

    /// Puts a question into the inbox. Nothing if that is no place for it, or nobody reads it.
    pub(crate) fn ask(
        &self,
        matter: Matter,
        method: &str,
        params: Option<&RawJson>,
    ) -> Option<Asking<'static>> {
        let inbox = self.inbox.as_ref().filter(|inbox| inbox.is_open())?;
        if method != "elicitation/create" {
            return None;
        }
        let question = match self.question(matter, params) {
            Ok(question) => question,
            Err(error) => return Some(Box::pin(std::future::ready(Err(error)))),
        };
        let (inbox, places) = (Arc::clone(inbox), Arc::clone(&self.places));
        Some(Box::pin(async move {
            let Ok(_place) = places.try_acquire_owned() else {
                return Err(internal("too many questions wait in the inbox"));
            };
            let answer = inbox.ask(question);
            match tokio::time::timeout(ANSWERS_WITHIN, answer).await {
                Ok(answer) => answer,
                Err(_elapsed) => Err(internal("nobody answered in the inbox in time")),
            }
        }))
    }

    fn question(&self, matter: Matter, params: Option<&RawJson>) -> Result<Question, RpcError> {
        let odd = |what: &str| {
            let what = format!("the server asks in an odd way: {what}");
            RpcError::new(code::INVALID_PARAMS, what)
        };
        let params = params.ok_or_else(|| odd("it says nothing"))?;
        let asked: Elicitation<'_> = params.decode().map_err(|error| odd(&error.to_string()))?;
        let mode = match asked.mode.as_deref() {
            None | Some("form") => QuestionMode::Form,
            Some("url") if asked.url.is_some() => QuestionMode::Url,
            Some("url") => return Err(odd("it names no `url`")),
            Some(_) => return Err(odd("its `mode` is neither `form` nor `url`")),
        };
        let is_form = mode == QuestionMode::Form;
        Ok(Question {
            principal: self.principal.clone(),
            server: matter.server,
            tool: matter.tool,
            consent: matter.consent,
            mode,
            message: asked.message,
            requested_schema: asked
                .schema
                .filter(|_| is_form)
                .map(|schema| params.share(schema).detached()),
            url: asked.url.filter(|_| !is_form),
            deadline: SystemTime::now() + ANSWERS_WITHIN,
        })
    }
}

/// The question that this is about, by the id that its server gave it.
fn visit_in(params: Option<&RawJson>) -> Option<String> {
    #[derive(Deserialize)]
    struct Visit {
        #[serde(rename = "elicitationId")]
        id: String,
    }
    params?.decode().ok().map(|Visit { id }| id)
}

fn internal(what: &str) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, what)
}

impl std::fmt::Debug for Party {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Party")
            .field("principal", &self.principal)
            .field("has_inbox", &self.inbox.is_some())
            .finish_non_exhaustive()
    }
}
