//! Tools: listing and calling them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_wire::{RawJson, code};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::content::Content;
use super::lenient_string;
use crate::error::RequestError;
use crate::list_cache::ListKind;
use crate::mux::Reports;
use crate::options::RequestOptions;
use crate::pages::{Listing, Quarantined, Reader};
use crate::session::{Call, Session};
use crate::tool_headers::{Mirrored, mirrored_in};
use cocode_core::Era;
use cocode_wire::members::{begins_or_ends_with, never_mentions};

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

/// Each member is read by itself, so that an odd one spoils no other.
#[derive(Deserialize)]
struct ResultWire<'a> {
    #[serde(borrow, default, rename = "isError")]
    is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
}

/// Arguments that are repeated in headers, by tool, as they are learned from a list.
#[derive(Default)]
struct Learned(Mutex<HashMap<String, Arc<[Mirrored]>>>);

impl Learned {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<[Mirrored]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> HashMap<String, Arc<[Mirrored]>> {
        std::mem::take(&mut *self.lock())
    }
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

impl Listing<Tool> {
    /// Reads pages of `tools/list` that were kept.
    pub fn from_pages(pages: Vec<RawJson>) -> Result<Self, RequestError> {
        Self::recall(pages, &Reader::of(ListKind::Tools, &Tool::parse))
    }
}

impl CallResult {
    /// Reads a result of `tools/call`.
    pub fn parse(raw: RawJson) -> Self {
        if begins_or_ends_with(&raw, r#""isError":false"#) || never_mentions(&raw, "isError") {
            return Self {
                raw,
                is_error: false,
            };
        }
        let wire = raw.decode::<ResultWire<'_>>().ok();
        let flag = wire.and_then(|wire| wire.is_error);
        // A flag that says nothing we know is a sign of trouble rather than of success.
        let is_error = flag.is_some_and(|flag| {
            !matches!(flag.get().trim_matches('"'), "false" | "null" | "0" | "")
        });
        Self { raw, is_error }
    }

    /// The content blocks. One that cannot be read is there as [`Content::Unknown`].
    pub fn content(&self) -> Vec<Content> {
        let wire = self.raw.decode::<ResultWire<'_>>().ok();
        let Some(content) = wire.and_then(|wire| wire.content) else {
            return Vec::new();
        };
        if content.get() == "null" {
            return Vec::new();
        }
        let blocks: Result<Vec<&RawValue>, _> = serde_json::from_str(content.get());
        // Some servers send one block, or a bare text, where a list belongs.
        let blocks = blocks.unwrap_or_else(|_not_a_list| vec![content]);
        blocks
            .into_iter()
            .map(|block| Content::parse(&self.raw, block))
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
        let learned = Learned::default();
        let item = self.tool_reader(&learned);
        let listing = self.list(Reader::of(ListKind::Tools, &item)).await?;
        self.shared().tool_headers.learn(learned.take());
        Ok(listing)
    }

    /// As [`Session::tools`], from pages that this server sent to another session: what calls over
    /// this one have to repeat in headers is then known without asking again.
    pub fn recall_tools(&self, pages: Vec<RawJson>) -> Result<Listing<Tool>, RequestError> {
        let learned = Learned::default();
        let item = self.tool_reader(&learned);
        let listing = Listing::recall(pages, &Reader::of(ListKind::Tools, &item))?;
        self.shared().tool_headers.learn(learned.take());
        Ok(listing)
    }

    /// Whether arguments of tools may have to be repeated in headers.
    pub(crate) fn mirrors_arguments(&self) -> bool {
        self.shared().connection.link.carries_headers() && self.server().era() == Era::Modern
    }

    /// Reads tools, and learns which of their arguments are repeated in headers where this session
    /// has any.
    fn tool_reader(
        &self,
        learned: &Learned,
    ) -> impl Fn(&RawJson, &RawValue) -> Result<Tool, Quarantined> + Sync {
        let mirrors = self.mirrors_arguments();
        move |page, item| {
            let tool = Tool::parse(page, item)?;
            if mirrors {
                let bad = |reason| Quarantined {
                    name: Some(tool.name.clone()),
                    reason,
                };
                let mirrored = mirrored_in(&tool.input_schema).map_err(bad)?;
                if !mirrored.is_empty() {
                    learned.lock().insert(tool.name.clone(), mirrored.into());
                }
            }
            Ok(tool)
        }
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
        let begun = Instant::now();
        let deadlines = options.deadlines;
        let deadlines = deadlines.unwrap_or(self.shared().options.timeouts.call);
        let first = self.call_tool_once(name, arguments, options.clone()).await;
        let mismatch = matches!(&first, Err(RequestError::Rpc { error, .. })
            if error.code == code::HEADER_MISMATCH);
        if !mismatch {
            return first;
        }
        // The server wants headers for arguments that we did not know of, or know no longer.
        let left = deadlines.after(begun.elapsed()).total;
        if left.is_zero() {
            return first;
        }
        let listed = tokio::time::timeout(left, Box::pin(self.tools())).await;
        listed.map_err(|_elapsed| RequestError::Timeout {
            method: ListKind::Tools.method().to_owned(),
            after: left,
        })??;
        let options = RequestOptions {
            deadlines: Some(deadlines.after(begun.elapsed())),
            ..options
        };
        self.call_tool_once(name, arguments, options).await
    }

    async fn call_tool_once(
        &self,
        name: &str,
        arguments: Option<&RawJson>,
        options: RequestOptions,
    ) -> Result<CallResult, RequestError> {
        let size = arguments.map_or(0, |arguments| arguments.as_bytes().len());
        let mut params = Vec::with_capacity(name.len() + size + 32);
        params.extend_from_slice(b"{\"name\":");
        cocode_wire::encode::push_string(&mut params, name);
        if let Some(arguments) = arguments {
            params.extend_from_slice(b",\"arguments\":");
            params.extend_from_slice(arguments.as_bytes());
        }
        if let Some(meta) = &options.meta {
            params.extend_from_slice(b",\"_meta\":");
            params.extend_from_slice(meta.as_bytes());
        }
        params.push(b'}');
        let headers = if self.shared().connection.link.carries_headers() {
            self.shared().tool_headers.headers(name, arguments)
        } else {
            HeaderMap::new()
        };
        let call = Call {
            method: "tools/call",
            params: Some(&params),
            name: Some(name),
            headers,
            deadlines: options
                .deadlines
                .unwrap_or(self.shared().options.timeouts.call),
            reports: Reports::Yes(options.on_progress),
            meta: None,
        };
        self.call_with_input(&call).await.map(CallResult::parse)
    }
}
