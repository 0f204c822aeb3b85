//! How client and gateway get to know each other, in each era.

use std::borrow::Cow;

use cocode_client::ServerFacts;
use cocode_core::{Era, Revision};
use cocode_wire::encode::push_member;
use cocode_wire::members::Members;
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::caller::Caller;
use crate::reply::Reply;

/// What a client says when it opens a session.
#[derive(Debug)]
pub(crate) struct Hello {
    requested: String,
    client: Option<RawJson>,
    capabilities: Option<RawJson>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default, rename = "protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "clientInfo")]
    client: Option<&'a RawValue>,
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
}

impl Hello {
    pub(crate) fn read(params: Option<&RawJson>) -> Result<Self, RpcError> {
        let missing = || {
            let what = "`initialize` lacks its `protocolVersion`";
            RpcError::new(code::INVALID_PARAMS, what)
        };
        let params = params.ok_or_else(missing)?;
        let parts: Params<'_> = params.decode().map_err(|error| {
            RpcError::new(code::INVALID_PARAMS, format!("`initialize`: {error}"))
        })?;
        let share = |part: &RawValue| params.share(part).detached();
        Ok(Self {
            requested: parts.version.ok_or_else(missing)?.into_owned(),
            client: parts.client.map(share),
            capabilities: parts.capabilities.map(share),
        })
    }

    /// The client. It is answered in the revision that it asked for, or else in the newest that
    /// has sessions.
    pub(crate) fn caller(self) -> Caller {
        let revision = self.requested.parse().ok();
        let revision = revision.filter(|revision: &Revision| revision.era() == Era::Legacy);
        let revision = revision.unwrap_or(Revision::LATEST_LEGACY);
        Caller::new(revision, self.client, self.capabilities)
    }
}

/// What a server says about itself, to be told to clients of either era.
#[derive(Clone, Debug)]
pub(crate) struct Presentation {
    pub(crate) capabilities: RawJson,
    pub(crate) info: RawJson,
    pub(crate) instructions: Option<RawJson>,
    /// How long, in milliseconds, and for whom this holds.
    pub(crate) freshness: (u64, &'static str),
}

impl Presentation {
    /// What an upstream server has said, as it said it.
    pub(crate) fn of(facts: &ServerFacts) -> Self {
        let empty = || RawJson::from(RawValue::from_string("{}".into()).unwrap_or_default());
        let members: Members<'_> = facts.raw.decode().unwrap_or_default();
        let share = |part: &RawValue| facts.raw.share(part);
        let meta = members
            .get("_meta")
            .and_then(Members::of)
            .unwrap_or_default();
        let info = meta
            .get("io.modelcontextprotocol/serverInfo")
            .or(members.get("serverInfo"));
        let ttl = members.get("ttlMs").and_then(|ttl| ttl.get().parse().ok());
        let is_public = members
            .get("cacheScope")
            .is_some_and(|scope| scope.get() == "\"public\"");
        Self {
            capabilities: members.get("capabilities").map_or_else(empty, share),
            info: info.map_or_else(
                || {
                    let name = facts.name.clone().unwrap_or_else(|| "unknown".into());
                    let version = facts.version.clone().unwrap_or_else(|| "unknown".into());
                    let info = serde_json::json!({ "name": name, "version": version });
                    RawJson::of(&info).unwrap_or_else(|_| empty())
                },
                share,
            ),
            instructions: members.get("instructions").map(share),
            freshness: (
                ttl.unwrap_or_default(),
                if is_public { "public" } else { "private" },
            ),
        }
    }

    /// Says nothing of a list of tasks, which would be those of everybody.
    pub(crate) fn lists_no_tasks(&mut self) {
        let Ok(mut all) = self.capabilities.decode::<serde_json::Value>() else {
            return;
        };
        let tasks = all.get_mut("tasks").and_then(|tasks| tasks.as_object_mut());
        let listed = tasks.and_then(|tasks| tasks.remove("list"));
        if listed.is_some()
            && let Ok(without) = RawJson::of(&all)
        {
            self.capabilities = without;
        }
    }

    /// The result of `initialize`.
    pub(crate) fn initialized(&self, revision: Revision) -> Reply {
        let mut text = b"{".to_vec();
        push_member(&mut text, "protocolVersion", &format!("\"{revision}\""));
        self.push(&mut text, "serverInfo");
        text.push(b'}');
        parsed(text)
    }

    /// The result of `server/discover`.
    pub(crate) fn discovered(&self) -> Reply {
        let (ttl, scope) = self.freshness;
        let served: Vec<_> = Revision::ALL
            .into_iter()
            .rev()
            .map(Revision::as_str)
            .collect();
        let served = serde_json::json!(served).to_string();
        let mut text = b"{\"resultType\":\"complete\",".to_vec();
        push_member(&mut text, "supportedVersions", &served);
        let info = format!(r#"{{"io.modelcontextprotocol/serverInfo":{}}}"#, self.info);
        text.push(b',');
        push_member(&mut text, "_meta", &info);
        self.push(&mut text, "");
        text.push(b',');
        push_member(&mut text, "ttlMs", &ttl.to_string());
        text.push(b',');
        push_member(&mut text, "cacheScope", &format!("\"{scope}\""));
        text.push(b'}');
        parsed(text)
    }

    fn push(&self, text: &mut Vec<u8>, info: &str) {
        text.push(b',');
        push_member(text, "capabilities", self.capabilities.as_str());
        if !info.is_empty() {
            text.push(b',');
            push_member(text, info, self.info.as_str());
        }
        if let Some(instructions) = &self.instructions {
            text.push(b',');
            push_member(text, "instructions", instructions.as_str());
        }
    }
}

fn parsed(text: Vec<u8>) -> Reply {
    match RawJson::parse(text) {
        Ok(result) => Reply::Result(result),
        Err(error) => RpcError::new(code::INTERNAL_ERROR, error.to_string()).into(),
    }
}
