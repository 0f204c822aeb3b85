//! What a client wants: read as soon as it has arrived, so that what arrives next finds it known.

use std::sync::{Arc, OnceLock};

use cocode_core::Era;
use cocode_wire::serve::Asked;
use cocode_wire::{RawJson, RpcError, code};

use super::{Downstream, next_session, unknown_method};
use crate::caller::Caller;
use crate::hello::Hello;
use crate::reply::Reply;
use crate::request::Request;
use crate::room::Replying;
use crate::said::Said;

/// What a client wants.
enum Reading {
    /// A session, which is open from now on.
    Opened(Opening),
    /// Anything else.
    Request(Box<Request>),
}

impl Downstream {
    /// Begins to reply to a request.
    pub(super) fn reply(self: &Arc<Self>, id: &RawJson, asked: Asked) -> Replying<'static> {
        match self.read(id, asked) {
            Ok(Reading::Request(request)) => {
                let room = Arc::clone(&self.room);
                if request.method == "server/discover" && request.caller.era() == Era::Modern {
                    return Box::pin(async move { room.discover(&request).await });
                }
                room.serve(request)
            }
            Ok(Reading::Opened(opening)) => Box::pin(opening.welcome()),
            Err(reply) => Box::pin(std::future::ready(reply)),
        }
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
        Ok(Reading::Request(Box::new(Request {
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
