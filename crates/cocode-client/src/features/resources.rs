//! Resources and their templates: listing and reading them.

use std::borrow::Cow;

use cocode_wire::RawJson;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::content::ResourceContents;
use super::{lenient_string, with_meta};
use crate::clock::Deadlines;
use crate::error::RequestError;
use crate::list_cache::ListKind;
use crate::mux::Reports;
use crate::options::RequestOptions;
use crate::pages::{Listing, Quarantined, Reader};
use crate::session::{Call, Session};

/// A resource as its server describes it.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// What kind of data it is.
    pub mime_type: Option<String>,
    /// The whole description as it came.
    pub raw: RawJson,
}

/// A family of resources.
#[derive(Clone, Debug)]
pub struct ResourceTemplate {
    /// A URI template (RFC 6570).
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// What kind of data they are.
    pub mime_type: Option<String>,
    /// The whole description as it came.
    pub raw: RawJson,
}

/// What was read.
#[derive(Clone, Debug)]
pub struct ReadResult {
    /// The result as it came.
    pub raw: RawJson,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "uriTemplate")]
    uri_template: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    description: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "mimeType")]
    mime_type: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ReadWire<'a> {
    #[serde(borrow, default)]
    contents: Vec<&'a RawValue>,
}

fn wire(item: &RawValue) -> Result<Wire<'_>, Quarantined> {
    let bad = |error: serde_json::Error| Quarantined {
        name: None,
        reason: error.to_string(),
    };
    serde_json::from_str(item.get()).map_err(bad)
}

fn missing(wire: &Wire<'_>, what: &str) -> Quarantined {
    Quarantined {
        name: lenient_string(wire.name),
        reason: format!("it has no {what}"),
    }
}

impl Resource {
    fn parse(page: &RawJson, item: &RawValue) -> Result<Self, Quarantined> {
        let wire = wire(item)?;
        let uri = wire
            .uri
            .clone()
            .ok_or_else(|| missing(&wire, "uri"))?
            .into_owned();
        Ok(Self {
            name: lenient_string(wire.name).unwrap_or_else(|| uri.clone()),
            description: lenient_string(wire.description),
            mime_type: lenient_string(wire.mime_type),
            raw: page.share(item),
            uri,
        })
    }
}

impl ResourceTemplate {
    fn parse(page: &RawJson, item: &RawValue) -> Result<Self, Quarantined> {
        let wire = wire(item)?;
        let uri_template = wire
            .uri_template
            .clone()
            .ok_or_else(|| missing(&wire, "uriTemplate"))?;
        let uri_template = uri_template.into_owned();
        Ok(Self {
            name: lenient_string(wire.name).unwrap_or_else(|| uri_template.clone()),
            description: lenient_string(wire.description),
            mime_type: lenient_string(wire.mime_type),
            raw: page.share(item),
            uri_template,
        })
    }
}

impl Listing<Resource> {
    /// Reads pages of `resources/list` that were kept.
    pub fn from_pages(pages: Vec<RawJson>) -> Result<Self, RequestError> {
        Self::recall(pages, &Reader::of(ListKind::Resources, &Resource::parse))
    }
}

impl Listing<ResourceTemplate> {
    /// Reads pages of `resources/templates/list` that were kept.
    pub fn from_pages(pages: Vec<RawJson>) -> Result<Self, RequestError> {
        let kind = ListKind::ResourceTemplates;
        Self::recall(pages, &Reader::of(kind, &ResourceTemplate::parse))
    }
}

impl ReadResult {
    /// The contents that could be read.
    pub fn contents(&self) -> Vec<ResourceContents> {
        let wire = self.raw.decode::<ReadWire<'_>>();
        let contents = wire.map(|wire| wire.contents).unwrap_or_default();
        contents
            .into_iter()
            .filter_map(ResourceContents::parse)
            .collect()
    }
}

impl Session {
    /// All resources of the server.
    pub async fn resources(&self) -> Result<Listing<Resource>, RequestError> {
        self.list(Reader::of(ListKind::Resources, &Resource::parse))
            .await
    }

    /// All resource templates of the server.
    pub async fn resource_templates(&self) -> Result<Listing<ResourceTemplate>, RequestError> {
        self.list(Reader::of(
            ListKind::ResourceTemplates,
            &ResourceTemplate::parse,
        ))
        .await
    }

    /// Reads a resource.
    pub async fn read_resource(
        &self,
        uri: &str,
        options: RequestOptions,
    ) -> Result<ReadResult, RequestError> {
        let params = serde_json::json!({ "uri": uri }).to_string();
        let params = with_meta(params, options.meta.as_ref());
        let fixed = Deadlines::fixed(self.shared().options.timeouts.request);
        let call = Call {
            method: "resources/read",
            params: Some(params.as_bytes()),
            name: Some(uri),
            headers: HeaderMap::new(),
            deadlines: options.deadlines.unwrap_or(fixed),
            reports: Reports::Yes(options.on_progress),
            meta: None,
        };
        self.call_with_input(&call)
            .await
            .map(|raw| ReadResult { raw })
    }
}
