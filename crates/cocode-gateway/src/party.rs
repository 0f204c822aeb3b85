//! Whom a view is for, and who answers for its clients what they cannot put to anybody.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cocode_core::ServerName;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::caller::Abilities;
use crate::inbox::{Inbox, Question, QuestionMode};
use crate::witness::Asking;

/// How long somebody may take to look into the inbox and answer.
const ANSWERS_WITHIN: Duration = Duration::from_mins(10);

/// Questions of one view that may wait in the inbox at once.
const MAX_WAITING: usize = 64;

/// Whom the clients of a view belong to.
pub(crate) struct Party {
    principal: Option<Arc<str>>,
    inbox: Option<Arc<dyn Inbox>>,
    places: Arc<Semaphore>,
}

/// What a question is about.
#[derive(Clone)]
pub(crate) struct Matter {
    pub(crate) server: ServerName,
    pub(crate) tool: Option<Arc<str>>,
    pub(crate) is_consent: bool,
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
        }
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
            is_consent: matter.is_consent,
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
