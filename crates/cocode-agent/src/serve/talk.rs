//! One client: what it presented itself as, what it has asked for, and what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_client::SANDBOX_STATE_METHOD;
use cocode_core::{Era, Revision, SandboxMode};
use cocode_wire::serve::{Answer, Asked, Conversation, Serving};
use cocode_wire::{Frame, RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::answers;
use super::client::Client;
use super::pending::Pending;
use super::request::Params;
use super::sandbox_state;
use super::server::Shared;

/// One client.
pub(super) struct Talk {
    pub(super) shared: Arc<Shared>,
    /// Ends the turns of this client.
    pub(super) connection: CancellationToken,
    /// What was sent to it and not answered.
    pub(super) pending: Arc<Pending>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who it is, once there is a session.
    client: Option<Client>,
    /// What its sandbox allows, if it said so.
    ceiling: Option<SandboxMode>,
    /// Requests on their way, by their ids.
    in_flight: HashMap<String, CancellationToken>,
}

impl Talk {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            connection: shared.ending.child_token(),
            shared,
            pending: Arc::default(),
            state: Mutex::default(),
        }
    }

    pub(super) fn ceiling(&self) -> Option<SandboxMode> {
        self.state().ceiling
    }

    async fn serve(self: Arc<Self>, asked: Asked) -> Answer {
        let id = asked.frame.id();
        let id = id.unwrap_or_else(|| RawJson::from(RawValue::NULL.to_owned()));
        let canceled = CancellationToken::new();
        let key = id.as_str().to_owned();
        self.state().in_flight.insert(key.clone(), canceled.clone());
        let _done = Done { from: &self, key };
        let result = match self.result(asked, &canceled).await {
            Ok(Some(result)) => RawJson::of(&result)
                .map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string())),
            Ok(None) => return Answer::none(),
            Err(error) => Err(error),
        };
        match result {
            Ok(result) => Answer::result(&id, &result),
            Err(error) => Answer::error(&id, &error),
        }
    }

    /// What a request comes to; nothing, if its client has taken it back.
    async fn result(
        &self,
        asked: Asked,
        canceled: &CancellationToken,
    ) -> Result<Option<Value>, RpcError> {
        let Asked { frame, stream, .. } = asked;
        let params = Params::of(&frame)?;
        let method = frame.method();
        let client = match params.client()? {
            Some(client) => client,
            None => match method {
                "initialize" => return self.initialize(&params).map(Some),
                "ping" => return Ok(Some(json!({}))),
                _ => self.opened(method)?,
            },
        };
        let era = client.revision.era();
        let result = if method == "tools/call" {
            Box::pin(self.call(params, client, stream, canceled)).await?
        } else {
            tokio::select! {
                biased;
                () = canceled.cancelled() => None,
                result = self.looked_up(&frame, params, era) => Some(result?),
            }
        };
        Ok(result.map(|result| answers::of_era(result, era)))
    }

    /// Everything that is answered at once.
    async fn looked_up(&self, frame: &Frame, params: Params, era: Era) -> Result<Value, RpcError> {
        match (era, frame.method()) {
            (Era::Modern, "server/discover") => Ok(answers::discovered()),
            (_, "tools/list") => {
                only_page(params.cursor.as_ref())?;
                Ok(answers::tools_listed(era))
            }
            (_, "resources/list") => self.resources(params.cursor.as_ref(), era).await,
            (_, "resources/templates/list") => {
                only_page(params.cursor.as_ref())?;
                Ok(super::resources::templates(era))
            }
            (_, "resources/read") => self.resource(params.uri, era).await,
            (_, "prompts/list") => {
                only_page(params.cursor.as_ref())?;
                self.prompts(era).await
            }
            (_, "prompts/get") => self.prompt(params.name, params.arguments).await,
            (_, SANDBOX_STATE_METHOD) => {
                self.sandbox_is_now(frame);
                Ok(json!({}))
            }
            (_, method) => {
                let shown: String = method.chars().take(100).collect();
                let what = format!("unknown method `{shown}`");
                Err(RpcError::new(code::METHOD_NOT_FOUND, what))
            }
        }
    }

    fn initialize(&self, params: &Params) -> Result<Value, RpcError> {
        let Some(requested) = &params.requested else {
            let what = "`initialize` lacks its `protocolVersion`";
            return Err(RpcError::new(code::INVALID_PARAMS, what));
        };
        let known: Option<Revision> = requested.parse().ok();
        let known = known.filter(|revision| revision.era() == Era::Legacy);
        let revision = known.unwrap_or(Revision::LATEST_LEGACY);
        self.state().client = Some(Client::new(revision, &params.capabilities));
        Ok(answers::initialized(revision))
    }

    /// The client of the session that there is.
    fn opened(&self, method: &str) -> Result<Client, RpcError> {
        self.state().client.ok_or_else(|| {
            let shown: String = method.chars().take(100).collect();
            let what = format!("`{shown}` came before `initialize`");
            RpcError::new(code::INVALID_REQUEST, what)
        })
    }

    fn sandbox_is_now(&self, frame: &Frame) {
        let params: Option<Value> = frame.params().and_then(|params| params.decode().ok());
        let ceiling = sandbox_state::ceiling(params.as_ref());
        self.state().ceiling = Some(ceiling);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Conversation for Talk {
    fn request(self: Arc<Self>, asked: Asked) -> Serving {
        Box::pin(self.serve(asked))
    }

    fn notification(&self, frame: Frame) {
        #[derive(Deserialize)]
        struct Canceled<'a> {
            #[serde(borrow, rename = "requestId")]
            request: &'a RawValue,
        }
        match frame.method() {
            "notifications/cancelled" => {
                let params = frame.params();
                let params = params.as_ref().and_then(|params| params.decode().ok());
                if let Some(Canceled { request }) = params
                    && let Some(canceled) = self.state().in_flight.get(request.get())
                {
                    canceled.cancel();
                }
            }
            SANDBOX_STATE_METHOD => self.sandbox_is_now(&frame),
            _ => {}
        }
    }

    fn response(&self, frame: Frame) {
        self.pending.answered(&frame);
    }

    fn ended(&self) {
        self.connection.cancel();
        self.pending.clear();
    }
}

/// A request on its way, until this is dropped.
struct Done<'a> {
    from: &'a Talk,
    key: String,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.from.state().in_flight.remove(&self.key);
    }
}

fn only_page(cursor: Option<&Value>) -> Result<(), RpcError> {
    match cursor {
        None | Some(Value::Null) => Ok(()),
        Some(_) => {
            let what = "there is one page only, and no `cursor` was given out";
            Err(RpcError::new(code::INVALID_PARAMS, what))
        }
    }
}
