//! What a client wants: read as soon as it has arrived, so that what arrives next finds it known.

use std::sync::{Arc, OnceLock};

use cocode_core::Era;
use cocode_wire::serve::Asked;
use cocode_wire::{RawJson, RpcError, code};

use super::{Downstream, next_session, unknown_method};
use crate::caller::Caller;
use crate::hello::Hello;
use crate::progress::ClientProgress;
use crate::reply::Reply;
use crate::request::Request;
use crate::room::Replying;
use crate::said::Said;

/// A request that is being served.
pub(super) struct Pending {
    replying: Replying<'static>,
    progress: Option<Arc<ClientProgress>>,
}

impl Pending {
    /// Waits for the reply. Meanwhile a client that wants to hear of progress does. What is not there
    /// when `drained` is ready becomes an error.
    pub(super) async fn reply(self, drained: impl Future<Output = ()>) -> Reply {
        let Self { replying, progress } = self;
        let beating = async {
            match &progress {
                Some(progress) => progress.beat().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            reply = replying => reply,
            () = drained => {
                let what = "the gateway ended before the server answered, and it is not known whether \
                            this was carried out";
                RpcError::new(code::INTERNAL_ERROR, what).into()
            }
            never = beating => match never {},
        }
    }
}

/// What a client wants.
enum Reading {
    /// A session, which is open from now on.
    Opened(Opening),
    /// Anything else.
    Request(Box<Request>),
}

impl Downstream {
    /// Begins to reply to a request.
    pub(super) fn reply(self: &Arc<Self>, id: &RawJson, asked: Asked) -> Pending {
        let mut progress = None;
        let replying = match self.read(id, asked) {
            Ok(Reading::Request(request)) => {
                progress.clone_from(&request.progress);
                let room = Arc::clone(&self.room);
                if request.method == "server/discover" && request.caller.era() == Era::Modern {
                    Box::pin(async move { room.discover(&request).await })
                } else {
                    room.serve(request)
                }
            }
            Ok(Reading::Opened(opening)) => Box::pin(opening.welcome()),
            Err(reply) => Box::pin(std::future::ready(reply)),
        };
        Pending { replying, progress }
    }

    /// Reads what is asked; what can be answered at once is.
    fn read(self: &Arc<Self>, id: &RawJson, asked: Asked) -> Result<Reading, Reply> {
        let Asked {
            frame,
            headers,
            stream,
        } = asked;
        let (method, params) = (frame.method(), frame.params());
        let said = Said::read(method, params.as_ref());
        let alone = said.caller();
        if self.is_session() && !headers.is_empty() && alone.is_some() {
            // Over HTTP, a request of the stateless era has headers that say the same as it does, and
            // in a session nobody has compared the two.
            let what = "a request that stands alone does not belong to a session";
            return Err(RpcError::new(code::INVALID_REQUEST, what).into());
        }
        let (caller, session) = match alone {
            Some(Ok(caller)) => (Arc::new(caller), next_session()),
            Some(Err(error)) => return Err(error.into()),
            None if method == "initialize" => {
                return Ok(Reading::Opened(self.open(params.as_ref())?));
            }
            None if method == "ping" => return Err(Reply::empty()),
            None => match self.lock().caller.clone() {
                Some(caller) => (caller, self.number),
                None => return Err(not_open(method).into()),
            },
        };
        match (caller.era(), method) {
            // What the stateless era has no use for, and what came with it.
            (
                Era::Modern,
                "initialize"
                | "ping"
                | "logging/setLevel"
                | "resources/subscribe"
                | "resources/unsubscribe",
            )
            | (Era::Legacy, "server/discover" | "subscriptions/listen") => {
                return Err(unknown_method(method).into());
            }
            _ => {}
        }
        // A subscription has no progress.
        let token = said.progress_token.clone();
        let token = token.filter(|_| method != "subscriptions/listen");
        Ok(Reading::Request(Box::new(Request {
            progress: token.map(|token| ClientProgress::new(token, Arc::clone(&stream))),
            id: id.clone(),
            method: method.to_owned(),
            params,
            said,
            headers,
            stream,
            caller,
            session,
            from: Arc::clone(self),
            deed: OnceLock::new(),
        })))
    }

    /// Opens the session: what follows in the same breath belongs to it.
    fn open(self: &Arc<Self>, params: Option<&RawJson>) -> Result<Opening, RpcError> {
        let caller = Arc::new(Hello::read(params)?.caller());
        let mut state = self.lock();
        if state.caller.is_some() {
            let what = "this session was opened before";
            return Err(RpcError::new(code::INVALID_REQUEST, what));
        }
        // Servers may ask while they start.
        state.caller = Some(Arc::clone(&caller));
        drop(state);
        Ok(Opening {
            client: Arc::clone(self),
            caller,
            is_welcome: false,
        })
    }
}

/// A session that is being opened. If that does not come to its end, it was never open.
struct Opening {
    client: Arc<Downstream>,
    caller: Arc<Caller>,
    is_welcome: bool,
}

impl Opening {
    async fn welcome(mut self) -> Reply {
        let room = Arc::clone(&self.client.room);
        let reply = room.welcome(&self.client, &self.caller).await;
        self.is_welcome = !matches!(reply, Reply::Error(_));
        reply
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.is_welcome {
            let caller = self.client.lock().caller.take();
            drop(caller);
        }
    }
}

fn not_open(method: &str) -> RpcError {
    let what = format!(
        "`{method}` came before `initialize`, and without the `_meta` of a request that stands alone"
    );
    RpcError::new(code::INVALID_REQUEST, what)
}
