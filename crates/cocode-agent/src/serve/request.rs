//! The parameters of requests, and which era a request belongs to by what it says.

use cocode_core::{Era, Revision};
use cocode_wire::{Frame, RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::Client;

/// The parameters of all requests that are understood.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Params {
    #[serde(default, rename = "protocolVersion")]
    pub(super) requested: Option<String>,
    #[serde(default)]
    pub(super) capabilities: Value,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) uri: Option<String>,
    #[serde(default)]
    pub(super) arguments: Option<Value>,
    #[serde(default)]
    pub(super) cursor: Option<Value>,
    #[serde(default, rename = "inputResponses")]
    pub(super) input_responses: Option<Value>,
    #[serde(default, rename = "requestState")]
    pub(super) request_state: Option<Value>,
    #[serde(default, rename = "_meta")]
    pub(super) meta: Option<Meta>,
}

/// What a request says about itself.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Meta {
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    revision: Option<String>,
    #[serde(default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Value>,
    #[serde(default, rename = "progressToken")]
    progress_token: Option<Value>,
}

impl Params {
    /// Those of a request.
    pub(super) fn of(frame: &Frame) -> Result<Self, RpcError> {
        let Some(params) = frame.params() else {
            return Ok(Self::default());
        };
        // A derived reader would take an array for the list of members.
        if !params.as_str().starts_with('{') {
            let what = "the parameters are no JSON object";
            return Err(RpcError::new(code::INVALID_PARAMS, what));
        }
        params.decode().map_err(|error| {
            let what = format!("the parameters do not fit: {error}");
            RpcError::new(code::INVALID_PARAMS, what)
        })
    }

    /// The client that presents itself with its request; none in the older era, where it did so
    /// before.
    pub(super) fn client(&self) -> Result<Option<Client>, RpcError> {
        let Some(meta) = &self.meta else {
            return Ok(None);
        };
        let Some(requested) = &meta.revision else {
            return Ok(None);
        };
        let known: Option<Revision> = requested.parse().ok();
        let Some(revision) = known.filter(|revision| revision.era() == Era::Modern) else {
            let data = json!({ "supported": revisions(), "requested": requested });
            return Err(RpcError {
                code: code::UNSUPPORTED_PROTOCOL_VERSION,
                message: format!("protocol version `{requested}` is not supported"),
                data: RawJson::of(&data).ok(),
            });
        };
        let capabilities = meta.capabilities.as_ref();
        let capabilities = capabilities.filter(|value| value.is_object());
        let capabilities = capabilities.ok_or_else(|| {
            let what = "`_meta` lacks `io.modelcontextprotocol/clientCapabilities`";
            RpcError::new(code::INVALID_PARAMS, what)
        })?;
        Ok(Some(Client::new(revision, capabilities)))
    }

    /// What reports of progress are to name, if they are wanted.
    pub(super) fn progress_token(&self) -> Option<Value> {
        let token = self.meta.as_ref()?.progress_token.as_ref()?;
        let fits = token.is_string() || token.is_i64() || token.is_u64();
        fits.then(|| token.clone())
    }
}

/// Every revision, the newest first.
pub(super) fn revisions() -> Vec<&'static str> {
    let all = Revision::ALL.into_iter().rev();
    all.map(Revision::as_str).collect()
}
