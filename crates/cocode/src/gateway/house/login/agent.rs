//! A user agent that opens nothing: it says where the person has to go, and waits for them to come back
//! by themselves, or for somebody to bring what they came back with.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use cocode_admin::model::Login;
use cocode_auth::Secret;
use cocode_auth::oauth::{
    AuthorizationRequest, CallbackOptions, LoopbackCallback, PasteError, RedirectWish, UserAgent,
    UserAgentError, Visit, Work, pasted_answer,
};
use tokio::sync::{mpsc, oneshot, watch};

/// What somebody has brought, and where they wait to hear whether it is an answer.
#[derive(Debug)]
pub(super) struct Paste {
    pub(super) answer: Secret,
    pub(super) looked: oneshot::Sender<Result<(), PasteError>>,
}

/// Hands out the address to visit.
pub(super) struct HandingAgent {
    callback: CallbackOptions,
    state: Arc<watch::Sender<Login>>,
    /// For the one visit of a login.
    pasted: Mutex<Option<mpsc::Receiver<Paste>>>,
}

impl HandingAgent {
    pub(super) fn new(
        callback: CallbackOptions,
        state: Arc<watch::Sender<Login>>,
        pasted: mpsc::Receiver<Paste>,
    ) -> Self {
        Self {
            callback,
            state,
            pasted: Mutex::new(Some(pasted)),
        }
    }
}

impl UserAgent for HandingAgent {
    fn prepare<'a>(&'a self, wish: RedirectWish<'a>) -> Work<'a, Box<dyn Visit>> {
        Box::pin(async move {
            let callback = LoopbackCallback::bind(&self.callback, wish.kept).await?;
            let pasted = self
                .pasted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let pasted = pasted.ok_or(UserAgentError::GivenUp)?;
            let visit = HandedVisit {
                callback,
                state: Arc::clone(&self.state),
                pasted,
            };
            Ok(Box::new(visit) as Box<dyn Visit>)
        })
    }
}

impl fmt::Debug for HandingAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HandingAgent")
            .field("callback", &self.callback)
            .finish_non_exhaustive()
    }
}

struct HandedVisit {
    callback: LoopbackCallback,
    state: Arc<watch::Sender<Login>>,
    pasted: mpsc::Receiver<Paste>,
}

impl Visit for HandedVisit {
    fn redirect_uri(&self) -> &str {
        self.callback.redirect_uri()
    }

    fn go(self: Box<Self>, request: &AuthorizationRequest) -> Work<'_, Secret> {
        Box::pin(async move {
            let Self {
                callback,
                state,
                mut pasted,
            } = *self;
            // From here on an answer can be taken.
            state.send_modify(|login| login.authorization_url = Some(request.url.to_string()));
            let mut arrival = pin!(callback.wait(request));
            loop {
                let paste = tokio::select! {
                    arrived = &mut arrival => return arrived,
                    Some(paste) = pasted.recv() => paste,
                };
                let found = pasted_answer(paste.answer.expose(), request);
                let (verdict, answer) = match found {
                    Ok(answer) => (Ok(()), Some(answer)),
                    Err(error) => (Err(error), None),
                };
                // Whoever brought it may have left.
                drop(paste.looked.send(verdict));
                if let Some(answer) = answer {
                    return Ok(answer);
                }
            }
        })
    }
}
