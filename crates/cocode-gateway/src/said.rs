//! What a request says about itself: read once, without touching the rest.

use cocode_wire::members::never_mentions;
use cocode_wire::{RawJson, RpcError, code};
use serde_json::value::RawValue;

use crate::caller::Caller;
use crate::level::Level;
use crate::lookalikes::{self, Unclear};
use crate::searching;
use cocode_core::{Era, Revision};

const PROGRESS: &str = "progressToken";

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What is read of every request.
const ONLY_META: [&str; 1] = ["_meta"];
/// What says how a request is made, and for whom.
const IN_META: [&str; 6] = [
    PROGRESS,
    VERSION,
    CLIENT,
    CAPABILITIES,
    LOG_LEVEL,
    searching::KEY,
];
/// What says what a completion is for.
const IN_REFERENCE: [&str; 3] = ["type", "name", "uri"];

/// The parts of a request's parameters that a gateway has to know.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// The tool or prompt it is about.
    pub(crate) name: Option<String>,
    /// The resource it is about.
    pub(crate) uri: Option<String>,
    /// The task it is about.
    pub(crate) task: Option<String>,
    /// Why it is passed on to nobody.
    pub(crate) refusal: Option<RpcError>,
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

impl Said {
    /// Reads the parameters of a request. What is not as it should be counts as not said: the server that
    /// it is for will complain. What can be read in two ways is refused.
    pub(crate) fn read(method: &str, params: Option<&RawJson>) -> Self {
        let Some(params) = params.filter(|params| params.as_str() != "null") else {
            return Self::default();
        };
        let members = members_of(method);
        let is_about_something = members.len() > ONLY_META.len();
        if !is_about_something && never_mentions(params, "_") {
            return Self::default();
        }
        let mut said = Self::default();
        let (mut meta, mut reference) = (None, None);
        let read = lookalikes::read(params.as_str(), members, |member, value| {
            if value.get() == "null" {
                return;
            }
            match member {
                "name" => said.name = text(value),
                "uri" => said.uri = text(value),
                "taskId" => said.task = text(value),
                "_meta" => meta = Some(value),
                "ref" => reference = Some(value),
                "requestState" => said.request_state = Some(params.share(value)),
                "inputResponses" => said.input_responses = Some(params.share(value)),
                "task" => said.wants_task = true,
                _ => {}
            }
        });
        let is_object = params.as_str().trim_start().starts_with('{');
        let read = match read {
            // Some have parameters by position, which say nothing that we read.
            Err(Unclear::Unreadable) if !is_about_something && !is_object => Ok(()),
            read => read.map_err(|unclear| unclear.refusal("the object of parameters")),
        };
        // Who asks is read in any case: they are told what is wrong.
        let made = said.read_meta(params, meta);
        let read = read.and(made).and(read_reference(reference));
        said.refusal = read.err();
        said
    }

    fn read_meta(&mut self, params: &RawJson, meta: Option<&RawValue>) -> Result<(), RpcError> {
        let Some(meta) = meta.filter(|meta| meta.get().starts_with('{')) else {
            return Ok(());
        };
        let read = lookalikes::read(meta.get(), &IN_META, |member, value| match member {
            PROGRESS => self.progress_token = Some(params.share(value)),
            VERSION => self.version = text(value),
            CLIENT => self.client = Some(params.share(value)),
            CAPABILITIES => self.capabilities = Some(params.share(value)),
            searching::KEY => self.tool_search = Some(params.share(value)),
            LOG_LEVEL => self.log_level = Some(params.share(value)),
            _ => {}
        });
        read.map_err(|unclear| unclear.refusal("`_meta`"))
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

/// The members of its parameters that decide what becomes of a request, or that are written down.
fn members_of(method: &str) -> &'static [&'static str] {
    match method {
        "tools/call" => &[
            "name",
            "arguments",
            "_meta",
            "task",
            "requestState",
            "inputResponses",
        ],
        "prompts/get" => &[
            "name",
            "arguments",
            "_meta",
            "requestState",
            "inputResponses",
        ],
        "completion/complete" => &["ref", "argument", "_meta"],
        "resources/list" | "resources/templates/list" => &ONLY_META,
        method if method.starts_with("resources/") => {
            &["uri", "_meta", "requestState", "inputResponses"]
        }
        method if method.starts_with("tasks/") => &["taskId", "_meta", "inputResponses"],
        _ => &ONLY_META,
    }
}

/// What a completion is for is one thing, whoever reads it.
fn read_reference(reference: Option<&RawValue>) -> Result<(), RpcError> {
    let Some(reference) = reference else {
        return Ok(());
    };
    let (mut has_name, mut has_uri) = (false, false);
    let read = lookalikes::read(reference.get(), &IN_REFERENCE, |member, value| {
        let is_there = value.get() != "null";
        match member {
            "name" => has_name = is_there,
            "uri" => has_uri = is_there,
            _ => {}
        }
    });
    read.map_err(|unclear| unclear.refusal("`ref`"))?;
    if has_name && has_uri {
        let what = "`ref` names both a prompt and a resource";
        return Err(RpcError::new(code::INVALID_PARAMS, what));
    }
    Ok(())
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
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
