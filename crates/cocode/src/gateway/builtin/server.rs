//! Speaks MCP for the built-in tools, in both eras: sessions with a handshake, and requests that
//! stand alone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cocode_core::{Era, Revision};
use cocode_tools::{Progress, ToolError, Workspace};
use cocode_wire::serve::{Answer, Asked, Conversation, Endpoint, Serving, Sink};
use cocode_wire::{Frame, RawJson, RpcError, chain, code, encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::answers;

/// A server whose tools are those of a workspace.
#[derive(Debug)]
pub(crate) struct ToolServer {
    tools: Arc<Workspace>,
}

impl ToolServer {
    pub(crate) fn new(tools: Workspace) -> Self {
        let tools = Arc::new(tools);
        Self { tools }
    }

    fn conversation(&self) -> Arc<Talk> {
        Arc::new(Talk {
            tools: Arc::clone(&self.tools),
            is_open: AtomicBool::new(false),
            in_flight: Mutex::default(),
        })
    }
}

impl Endpoint for ToolServer {
    /// Nothing is ever told to a client outside of its requests.
    fn converse(&self, _outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        self.conversation()
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        self.conversation()
    }
}

/// One client.
struct Talk {
    tools: Arc<Workspace>,
    /// There is a session.
    is_open: AtomicBool,
    /// Requests on their way, by their ids; dropping the sender cancels one.
    in_flight: Mutex<HashMap<String, oneshot::Sender<()>>>,
}

/// The parameters of all requests that are understood.
#[derive(Default, Deserialize)]
struct Params {
    #[serde(default, rename = "protocolVersion")]
    requested: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    cursor: Option<Value>,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    revision: Option<String>,
    #[serde(default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Value>,
    #[serde(default, rename = "progressToken")]
    progress_token: Option<Value>,
}

impl Meta {
    /// The era that a request belongs to, by what it says.
    fn era(&self) -> Result<Era, RpcError> {
        let Some(requested) = &self.revision else {
            return Ok(Era::Legacy);
        };
        if requested != Revision::LATEST_MODERN.as_str() {
            let data = json!({ "supported": answers::revisions(), "requested": requested });
            return Err(RpcError {
                code: code::UNSUPPORTED_PROTOCOL_VERSION,
                message: format!("protocol version `{requested}` is not supported"),
                data: RawJson::of(&data).ok(),
            });
        }
        if self.capabilities.is_none() {
            let what = "`_meta` lacks `io.modelcontextprotocol/clientCapabilities`";
            return Err(RpcError::new(code::INVALID_PARAMS, what));
        }
        Ok(Era::Modern)
    }
}

impl Talk {
    async fn serve(self: Arc<Self>, asked: Asked) -> Answer {
        let id = asked.frame.id();
        let id = id.unwrap_or_else(|| RawJson::from(RawValue::NULL.to_owned()));
        let key = id.as_str().to_owned();
        let (cancel, canceled) = oneshot::channel();
        self.in_flight().insert(key.clone(), cancel);
        let _done = Done { from: &self, key };
        let result = tokio::select! {
            biased;
            result = self.result(asked) => result,
            _canceled = canceled => return Answer::none(),
        };
        let result = result.and_then(|result| {
            let internal =
                |error: serde_json::Error| RpcError::new(code::INTERNAL_ERROR, error.to_string());
            RawJson::of(&result).map_err(internal)
        });
        match result {
            Ok(result) => Answer::result(&id, &result),
            Err(error) => Answer::error(&id, &error),
        }
    }

    async fn result(&self, asked: Asked) -> Result<Value, RpcError> {
        let Asked { frame, stream, .. } = asked;
        let params = match frame.params() {
            Some(params) => params.decode().map_err(|error| {
                RpcError::new(
                    code::INVALID_PARAMS,
                    format!("the parameters do not fit: {error}"),
                )
            })?,
            None => Params::default(),
        };
        let method = frame.method();
        let era = params.meta.era()?;
        if era == Era::Legacy {
            match method {
                "initialize" => return self.initialize(&params),
                "ping" => return Ok(json!({})),
                _ if self.is_open.load(Ordering::Acquire) => {}
                _ => {
                    let what = format!("`{method}` came before `initialize`");
                    return Err(RpcError::new(code::INVALID_REQUEST, what));
                }
            }
        }
        let result = match (era, method) {
            (Era::Modern, "server/discover") => answers::discovered(&self.tools),
            (_, "tools/list") if params.cursor.is_none() => answers::listed(&self.tools, era),
            (_, "tools/list") => {
                let what = "there is one page only, and no `cursor` was given out";
                return Err(RpcError::new(code::INVALID_PARAMS, what));
            }
            (_, "tools/call") => self.call(params, stream).await?,
            _ => {
                let what = format!("unknown method `{method}`");
                return Err(RpcError::new(code::METHOD_NOT_FOUND, what));
            }
        };
        Ok(answers::of_era(result, era))
    }

    fn initialize(&self, params: &Params) -> Result<Value, RpcError> {
        let Some(requested) = &params.requested else {
            let what = "`initialize` lacks its `protocolVersion`";
            return Err(RpcError::new(code::INVALID_PARAMS, what));
        };
        self.is_open.store(true, Ordering::Release);
        Ok(answers::initialized(requested, &self.tools))
    }

    async fn call(&self, params: Params, stream: Arc<dyn Sink>) -> Result<Value, RpcError> {
        let Some(tool) = &params.name else {
            return Err(RpcError::new(code::INVALID_PARAMS, "no tool is named"));
        };
        let reporter = Reporter {
            token: params.meta.progress_token,
            stream,
        };
        match self.tools.call(tool, &params.arguments, &reporter).await {
            Ok(output) => Ok(answers::called(output)),
            Err(error @ ToolError::Arguments { .. }) => Ok(answers::refused(&error.to_string())),
            // A tool that was not allowed is not there.
            Err(ToolError::Unknown { .. } | ToolError::NotPermitted { .. }) => {
                let what = format!("Unknown tool: {tool}");
                Err(RpcError::new(code::INVALID_PARAMS, what))
            }
            Err(error) => Err(RpcError::new(code::INTERNAL_ERROR, chain(&error))),
        }
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<()>>> {
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
        if frame.method() != "notifications/cancelled" {
            return;
        }
        let params = frame.params();
        let params = params.as_ref().and_then(|params| params.decode().ok());
        if let Some(Canceled { request }) = params {
            drop(self.in_flight().remove(request.get()));
        }
    }

    /// Nothing is ever asked of a client.
    fn response(&self, _frame: Frame) {}

    fn ended(&self) {
        self.in_flight().clear();
    }
}

/// A request on its way, until this is dropped.
struct Done<'a> {
    from: &'a Talk,
    key: String,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.from.in_flight().remove(&self.key);
    }
}

/// Tells a client how far its call is, if it wants to know.
struct Reporter {
    token: Option<Value>,
    stream: Arc<dyn Sink>,
}

impl Progress for Reporter {
    fn report(&self, done: u64, total: Option<u64>, message: &str) {
        let Some(token) = &self.token else {
            return;
        };
        let mut params = json!({ "progressToken": token, "progress": done, "message": message });
        if let Some(total) = total {
            params["total"] = total.into();
        }
        let params = params.to_string();
        let told = encode::notification("notifications/progress", Some(params.as_bytes()));
        if !self.stream.send(Bytes::from(told)) {
            tracing::debug!("a report of progress was not taken");
        }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
