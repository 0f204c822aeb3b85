//! What a server says about itself when a session begins, read leniently.

use std::borrow::Cow;
use std::time::Duration;

use cocode_wire::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

use cocode_core::{Era, Revision};
use cocode_wire::members::Members;

/// A server as it presented itself.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// The revision that this session speaks.
    pub revision: Revision,
    /// All revisions the server named.
    pub supported: Vec<String>,
    /// Its name, if it gave one.
    pub name: Option<String>,
    /// Its version, if it gave one.
    pub version: Option<String>,
    /// Its name for people, if it gave one.
    pub title: Option<String>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// How it wants to be used, in its own words.
    pub instructions: Option<String>,
    /// The result of `initialize` or `server/discover` as it came.
    pub raw: RawJson,
    /// How long each step of making the session took.
    pub steps: Vec<Step>,
    /// The transport that carries the session.
    pub transport: &'static str,
}

/// One step of making a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was done.
    pub name: &'static str,
    /// How long it took.
    pub took: Duration,
}

/// What a server can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the protocol"
)]
pub struct ServerCapabilities {
    /// Names of all declared capabilities, in the server's order.
    pub names: Vec<String>,
    /// Names of those that it declares as experimental.
    pub experimental: Vec<String>,
    /// Names of the extensions that it declares.
    pub extensions: Vec<String>,
    /// It has tools.
    pub tools: bool,
    /// It tells when its tools change.
    pub tools_changes: bool,
    /// It has resources.
    pub resources: bool,
    /// It tells when its resources change.
    pub resources_changes: bool,
    /// It tells when one resource changes.
    pub resources_subscribe: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It tells when its prompts change.
    pub prompts_changes: bool,
    /// It completes arguments.
    pub completions: bool,
    /// It sends log messages.
    pub logging: bool,
}

impl ServerFacts {
    /// The era of this session.
    pub fn era(&self) -> Era {
        self.revision.era()
    }
}

#[derive(Deserialize)]
struct Hello<'a> {
    #[serde(borrow, default, rename = "protocolVersion")]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(default, rename = "supportedVersions")]
    supported_versions: Option<Vec<String>>,
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "serverInfo")]
    server_info: Option<&'a RawValue>,
    #[serde(borrow, default)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// The answer to `initialize` or `server/discover`, before anything was decided.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) version: Option<String>,
    pub(crate) supported: Option<Vec<String>>,
    name: Option<String>,
    server_version: Option<String>,
    title: Option<String>,
    capabilities: ServerCapabilities,
    instructions: Option<String>,
    raw: RawJson,
}

impl Greeting {
    pub(crate) fn parse(raw: &RawJson) -> Result<Self, serde_json::Error> {
        let hello: Hello<'_> = raw.decode()?;
        let meta = hello.meta.and_then(Members::of).unwrap_or_default();
        let info = meta
            .get("io.modelcontextprotocol/serverInfo")
            .or(hello.server_info);
        let info = info.and_then(Members::of).unwrap_or_default();
        Ok(Self {
            version: hello.protocol_version.map(Cow::into_owned),
            supported: hello.supported_versions,
            name: string(info.get("name")),
            server_version: string(info.get("version")),
            title: string(info.get("title")),
            capabilities: hello
                .capabilities
                .map(ServerCapabilities::parse)
                .unwrap_or_default(),
            instructions: string(hello.instructions),
            raw: raw.detached(),
        })
    }

    pub(crate) fn into_facts(self, revision: Revision) -> ServerFacts {
        ServerFacts {
            revision,
            supported: self
                .supported
                .unwrap_or_else(|| vec![revision.as_str().to_owned()]),
            name: self.name,
            version: self.server_version,
            title: self.title,
            capabilities: self.capabilities,
            instructions: self.instructions,
            raw: self.raw,
            steps: Vec::new(),
            transport: "",
        }
    }
}

impl ServerCapabilities {
    fn parse(raw: &RawValue) -> Self {
        let members = Members::of(raw).unwrap_or_default();
        let has = |name: &str| members.get(name).is_some_and(|value| value.get() != "null");
        let flag = |name: &str, flag: &str| {
            let inner = members.get(name).and_then(Members::of).unwrap_or_default();
            inner.get(flag).is_some_and(|value| value.get() == "true")
        };
        Self {
            tools: has("tools"),
            tools_changes: flag("tools", "listChanged"),
            resources: has("resources"),
            resources_changes: flag("resources", "listChanged"),
            resources_subscribe: flag("resources", "subscribe"),
            prompts: has("prompts"),
            prompts_changes: flag("prompts", "listChanged"),
            completions: has("completions"),
            logging: has("logging"),
            experimental: names_in(members.get("experimental").and_then(Members::of)),
            extensions: names_in(members.get("extensions").and_then(Members::of)),
            names: members
                .0
                .iter()
                .map(|(name, _)| name.clone().into_owned())
                .collect(),
        }
    }
}

fn names_in(members: Option<Members<'_>>) -> Vec<String> {
    let members = members.unwrap_or_default();
    let named = members
        .0
        .iter()
        .filter(|(_, value)| !matches!(value.get(), "null" | "false"));
    named.map(|(name, _)| name.clone().into_owned()).collect()
}

/// The text of a JSON string; anything else counts as absent.
fn string(value: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(value?.get()).ok()
}
