//! What a request says about itself: read once, without touching the rest.

use std::borrow::Cow;

use cocode_wire::members::{Members, never_mentions};
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::caller::Caller;
use crate::level::Level;
use crate::searching;
use cocode_core::{Era, Revision};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The parts of a request's parameters that a gateway has to know.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// The tool or prompt it is about.
    pub(crate) name: Option<String>,
    /// The resource it is about.
    pub(crate) uri: Option<String>,
    /// By what its progress is to be reported.
    pub(crate) progress_token: Option<RawJson>,
    /// The state of an earlier attempt.
    pub(crate) request_state: Option<RawJson>,
    /// Answers to the questions of an earlier attempt.
    pub(crate) input_responses: Option<RawJson>,
    /// Whether it wants to be a task, in the way of the older era.
    pub(crate) wants_task: bool,
    /// What it says of the model that it is made for.
    pub(crate) tool_search: Option<RawJson>,
    /// The stateless revision that it names.
    version: Option<String>,
    client: Option<RawJson>,
    capabilities: Option<RawJson>,
    log_level: Option<RawJson>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestState")]
    request_state: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inputResponses")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task: Option<&'a RawValue>,
}

impl Said {
    /// Reads the parameters of a request. What cannot be read counts as not said: the server that
    /// it is for will complain.
    pub(crate) fn read(method: &str, params: Option<&RawJson>) -> Self {
        let Some(params) = params else {
            return Self::default();
        };
        let is_about_something = matches!(method, "tools/call" | "prompts/get" | "resources/read")
            || method.starts_with("resources/")
            || method.starts_with("tasks/");
        if !is_about_something && never_mentions(params, "_meta") {
            return Self::default();
        }
        let Ok(parts) = params.decode::<Params<'_>>() else {
            return Self::default();
        };
        let mut said = Self {
            name: parts.name.map(Cow::into_owned),
            uri: parts.uri.map(Cow::into_owned),
            request_state: parts.request_state.map(|state| params.share(state)),
            input_responses: parts.input_responses.map(|given| params.share(given)),
            wants_task: parts.task.is_some(),
            ..Self::default()
        };
        let meta = parts.meta.and_then(Members::of).unwrap_or_default();
        for (key, value) in meta.0 {
            match &*key {
                "progressToken" => said.progress_token = Some(params.share(value)),
                VERSION => said.version = serde_json::from_str(value.get()).ok(),
                CLIENT => said.client = Some(params.share(value)),
                CAPABILITIES => said.capabilities = Some(params.share(value)),
                searching::KEY => said.tool_search = Some(params.share(value)),
                LOG_LEVEL => said.log_level = Some(params.share(value)),
                _ => {}
            }
        }
        said
    }

    /// Who asks, if the request brings everything with it.
    pub(crate) fn caller(&self) -> Option<Result<Caller, RpcError>> {
        let version = self.version.as_deref()?;
        Some(self.stateless_caller(version))
    }

    fn stateless_caller(&self, version: &str) -> Result<Caller, RpcError> {
        let known = version.parse::<Revision>().ok();
        let Some(revision) = known.filter(|revision| revision.era() == Era::Modern) else {
            return Err(unsupported(version));
        };
        let invalid = |what: String| RpcError::new(code::INVALID_PARAMS, what);
        let Some(capabilities) = &self.capabilities else {
            return Err(invalid(format!("`_meta` lacks `{CAPABILITIES}`")));
        };
        let mut caller = Caller::new(
            revision,
            self.client.as_ref().map(RawJson::detached),
            Some(capabilities.detached()),
        );
        if let Some(level) = &self.log_level {
            let level: Option<Level> = level.decode().ok();
            let level = level.ok_or_else(|| invalid(format!("`{LOG_LEVEL}` is no log level")))?;
            caller.behalf.log_level = Some(level.as_str().to_owned());
        }
        Ok(caller)
    }
}

/// The refusal of a revision that is not served without a session.
fn unsupported(requested: &str) -> RpcError {
    let served = Revision::ALL.into_iter().rev().map(Revision::as_str);
    let served: Vec<_> = served.collect();
    let data = serde_json::json!({ "supported": served, "requested": requested });
    RpcError {
        code: code::UNSUPPORTED_PROTOCOL_VERSION,
        message: format!("protocol version `{requested}` is not supported"),
        data: RawJson::of(&data).ok(),
    }
}
