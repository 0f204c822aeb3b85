//! Tools: listing and calling them.

use std::borrow::Cow;

use cocode_wire::{RawJson, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::content::Content;
use super::lenient_string;
use crate::connection::Reports;
use crate::error::RequestError;
use crate::members::{begins_or_ends_with, never_mentions};
use crate::pages::{Listing, Quarantined, Reader};
use crate::params::push_member;
use crate::session::{Call, RequestOptions, Session};
use crate::tool_headers::mirrored_in;

/// A tool as its server describes it.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The name it is called by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, exactly as it came.
    pub input_schema: RawJson,
    /// The JSON Schema of its structured output, exactly as it came.
    pub output_schema: Option<RawJson>,
    /// What the server says about its effects.
    pub annotations: Annotations,
    /// The whole description as it came.
    pub raw: RawJson,
}

/// What a server says about the effects of a tool. Hints, not promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// It changes nothing.
    #[serde(rename = "readOnlyHint")]
    pub read_only: Option<bool>,
    /// What it changes may be lost.
    #[serde(rename = "destructiveHint")]
    pub destructive: Option<bool>,
    /// Doing it twice is the same as doing it once.
    #[serde(rename = "idempotentHint")]
    pub idempotent: Option<bool>,
    /// It reaches beyond a closed world.
    #[serde(rename = "openWorldHint")]
    pub open_world: Option<bool>,
}

/// The result of a tool call.
#[derive(Clone, Debug)]
pub struct CallResult {
    /// The result as it came.
    pub raw: RawJson,
    /// Whether the tool says that it failed.
    pub is_error: bool,
}

#[derive(Deserialize)]
struct ToolWire<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ResultWire<'a> {
    #[serde(default, rename = "isError")]
    is_error: Option<bool>,
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

impl Tool {
    fn parse(page: &RawJson, item: &RawValue) -> Result<Self, Quarantined> {
        let bad = |name: Option<String>, reason: String| Quarantined { name, reason };
        let wire: ToolWire<'_> =
            serde_json::from_str(item.get()).map_err(|error| bad(None, error.to_string()))?;
        let name = wire
            .name
            .map(Cow::into_owned)
            .filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Err(bad(None, "it has no name".into()));
        };
        let Some(schema) = wire.input_schema else {
            return Err(bad(Some(name), "it has no inputSchema".into()));
        };
        if !schema.get().starts_with('{') {
            return Err(bad(Some(name), "its inputSchema is not an object".into()));
        }
        let annotations = wire.annotations.map(|raw| serde_json::from_str(raw.get()));
        Ok(Self {
            title: lenient_string(wire.title),
            description: lenient_string(wire.description),
            input_schema: page.share(schema),
            output_schema: wire.output_schema.map(|schema| page.share(schema)),
            // Hints that cannot be read are no hints.
            annotations: annotations.and_then(Result::ok).unwrap_or_default(),
            raw: page.share(item),
            name,
        })
    }
}

impl CallResult {
    pub(crate) fn parse(raw: RawJson) -> Self {
        // Reading a large result once more, only for this, would cost as much as receiving it.
        let is_error = if begins_or_ends_with(&raw, r#""isError":false"#) {
            false
        } else if begins_or_ends_with(&raw, r#""isError":true"#) {
            true
        } else if never_mentions(&raw, "isError") {
            false
        } else {
            let wire = raw.decode::<ResultWire<'_>>().ok();
            wire.and_then(|wire| wire.is_error).unwrap_or(false)
        };
        Self { raw, is_error }
    }

    /// The content blocks. One that cannot be read is there as [`Content::Unknown`].
    pub fn content(&self) -> Vec<Content> {
        let blocks = self
            .raw
            .decode::<ResultWire<'_>>()
            .ok()
            .and_then(|wire| wire.content);
        blocks
            .unwrap_or_default()
            .into_iter()
            .map(|b| Content::parse(&self.raw, b))
            .collect()
    }

    /// The structured output, as it came.
    pub fn structured(&self) -> Option<RawJson> {
        let wire = self.raw.decode::<ResultWire<'_>>().ok()?;
        wire.structured.map(|value| self.raw.share(value))
    }
}

impl Session {
    /// All tools of the server. A tool that cannot be used is set aside, with the reason.
    pub async fn tools(&self) -> Result<Listing<Tool>, RequestError> {
        let over_http = self.shared().connection.link.carries_headers();
        let item = |page: &RawJson, item: &RawValue| {
            let tool = Tool::parse(page, item)?;
            if over_http {
                let bad = |reason| Quarantined {
                    name: Some(tool.name.clone()),
                    reason,
                };
                let mirrored = mirrored_in(&tool.input_schema).map_err(bad)?;
                self.shared().tool_headers.learn(&tool.name, mirrored);
            }
            Ok(tool)
        };
        self.list(Reader {
            method: "tools/list",
            member: "tools",
            item: &item,
        })
        .await
    }

    /// Calls a tool. `arguments` is a JSON object, sent as it is.
    ///
    /// Questions that the tool asks on its way go to the session's handler. Dropping the future
    /// cancels the call.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<&RawJson>,
        options: RequestOptions,
    ) -> Result<CallResult, RequestError> {
        let first = self.call_tool_once(name, arguments, options.clone()).await;
        let mismatch = matches!(&first, Err(RequestError::Rpc { error, .. })
            if error.code == code::HEADER_MISMATCH);
        if !mismatch {
            return first;
        }
        // The server wants headers for arguments that we did not know of, or know no longer.
        self.tools().await?;
        self.call_tool_once(name, arguments, options).await
    }

    async fn call_tool_once(
        &self,
        name: &str,
        arguments: Option<&RawJson>,
        options: RequestOptions,
    ) -> Result<CallResult, RequestError> {
        let mut params = b"{\"name\":".to_vec();
        cocode_wire::encode::push_string(&mut params, name);
        if let Some(arguments) = arguments {
            params.push(b',');
            push_member(&mut params, "arguments", arguments.as_str());
        }
        params.push(b'}');
        let call = Call {
            method: "tools/call",
            params: Some(&params),
            name: Some(name),
            headers: self.shared().tool_headers.headers(name, arguments),
            deadlines: options
                .deadlines
                .unwrap_or(self.shared().options.timeouts.call),
            progress: Reports::Yes(options.on_progress),
        };
        self.call_with_input(&call).await.map(CallResult::parse)
    }
}
