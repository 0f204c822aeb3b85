//! Prompts: listing and getting them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cocode_wire::RawJson;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::content::Content;
use super::{lenient_string, with_meta};
use crate::clock::Deadlines;
use crate::error::RequestError;
use crate::list_cache::ListKind;
use crate::mux::Reports;
use crate::options::RequestOptions;
use crate::pages::{Listing, Quarantined, Reader};
use crate::session::{Call, Session};

/// A prompt as its server describes it.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The name it is asked for by.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it wants to be told.
    pub arguments: Vec<PromptArgument>,
    /// The whole description as it came.
    pub raw: RawJson,
}

/// Something a prompt wants to be told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it means.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether it has to be given.
    #[serde(default)]
    pub required: bool,
}

/// A prompt, filled in.
#[derive(Clone, Debug)]
pub struct PromptResult {
    /// The result as it came.
    pub raw: RawJson,
}

/// One message of a prompt.
#[derive(Clone, Debug)]
pub struct PromptMessage {
    /// Who says it: `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: Content,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    title: Option<&'a RawValue>,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct ResultWire<'a> {
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct MessageWire<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: &'a RawValue,
}

impl Prompt {
    fn parse(page: &RawJson, item: &RawValue) -> Result<Self, Quarantined> {
        let bad = |reason: String| Quarantined { name: None, reason };
        let wire: Wire<'_> =
            serde_json::from_str(item.get()).map_err(|error| bad(error.to_string()))?;
        let name = wire
            .name
            .map(Cow::into_owned)
            .filter(|name| !name.is_empty());
        let arguments = wire.arguments.unwrap_or_default().into_iter();
        Ok(Self {
            name: name.ok_or_else(|| bad("it has no name".into()))?,
            title: lenient_string(wire.title),
            description: lenient_string(wire.description),
            arguments: arguments
                .filter_map(|raw| serde_json::from_str(raw.get()).ok())
                .collect(),
            raw: page.share(item),
        })
    }
}

impl Listing<Prompt> {
    /// Reads pages of `prompts/list` that were kept.
    pub fn from_pages(pages: Vec<RawJson>) -> Result<Self, RequestError> {
        Self::recall(pages, &Reader::of(ListKind::Prompts, &Prompt::parse))
    }
}

impl PromptResult {
    /// What the prompt is for.
    pub fn description(&self) -> Option<String> {
        lenient_string(self.raw.decode::<ResultWire<'_>>().ok()?.description)
    }

    /// Its messages. One that cannot be read is there as [`Content::Unknown`].
    pub fn messages(&self) -> Vec<PromptMessage> {
        let wire = self.raw.decode::<ResultWire<'_>>().ok();
        let messages = wire.and_then(|wire| wire.messages).unwrap_or_default();
        messages
            .into_iter()
            .map(|message| PromptMessage::parse(&self.raw, message))
            .collect()
    }
}

impl PromptMessage {
    fn parse(result: &RawJson, message: &RawValue) -> Self {
        match serde_json::from_str::<MessageWire<'_>>(message.get()) {
            Ok(MessageWire { role, content }) => Self {
                role: lenient_string(role).unwrap_or_default(),
                content: Content::parse(result, content),
            },
            Err(_without_content) => Self {
                role: String::new(),
                content: Content::Unknown {
                    kind: String::new(),
                    raw: result.share(message),
                },
            },
        }
    }
}

impl Session {
    /// All prompts of the server.
    pub async fn prompts(&self) -> Result<Listing<Prompt>, RequestError> {
        self.list(Reader::of(ListKind::Prompts, &Prompt::parse))
            .await
    }

    /// Gets a prompt, filled in with `arguments`.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
        options: RequestOptions,
    ) -> Result<PromptResult, RequestError> {
        let params = if arguments.is_empty() {
            serde_json::json!({ "name": name })
        } else {
            serde_json::json!({ "name": name, "arguments": arguments })
        };
        let params = with_meta(params.to_string(), options.meta.as_ref());
        let fixed = Deadlines::fixed(self.shared().options.timeouts.request);
        let call = Call {
            method: "prompts/get",
            params: Some(params.as_bytes()),
            name: Some(name),
            headers: HeaderMap::new(),
            deadlines: options.deadlines.unwrap_or(fixed),
            reports: Reports::Yes(options.on_progress),
            meta: None,
        };
        self.call_with_input(&call)
            .await
            .map(|raw| PromptResult { raw })
    }
}
