//! Content blocks of tool results and prompts. An unknown or broken block harms no other.

use std::borrow::Cow;

use cocode_wire::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::lenient_string;

/// One block of content.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// An image, in base64.
    Image {
        /// Base64.
        data: String,
        /// Such as `image/png`.
        mime_type: String,
    },
    /// Sound, in base64.
    Audio {
        /// Base64.
        data: String,
        /// Such as `audio/wav`.
        mime_type: String,
    },
    /// A resource that can be read.
    Link {
        /// Where.
        uri: String,
        /// Its name.
        name: String,
        /// What kind of data it is.
        mime_type: Option<String>,
    },
    /// A resource with its contents.
    Embedded(ResourceContents),
    /// Something this version does not know, or that lacks what its kind needs.
    Unknown {
        /// Its `type`.
        kind: String,
        /// The block as it came.
        raw: RawJson,
    },
}

/// The contents of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceContents {
    /// Which resource.
    pub uri: String,
    /// What kind of data it is.
    pub mime_type: Option<String>,
    /// The text, if it is text.
    pub text: Option<String>,
    /// The bytes in base64, if it is not.
    pub blob: Option<String>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default, rename = "mimeType")]
    mime_type: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    resource: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ContentsWire<'a> {
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "mimeType")]
    mime_type: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    blob: Option<&'a RawValue>,
}

impl Content {
    pub(crate) fn parse(result: &RawJson, block: &RawValue) -> Self {
        Self::known(block).unwrap_or_else(|kind| Self::Unknown {
            kind,
            raw: result.share(block),
        })
    }

    fn known(raw: &RawValue) -> Result<Self, String> {
        let block: Block<'_> =
            serde_json::from_str(raw.get()).map_err(|_not_an_object| String::new())?;
        let kind = block.kind.into_owned();
        let known = match kind.as_str() {
            "text" => block.text.map(Self::Text),
            "image" => block
                .data
                .zip(block.mime_type)
                .map(|(data, mime_type)| Self::Image { data, mime_type }),
            "audio" => block
                .data
                .zip(block.mime_type)
                .map(|(data, mime_type)| Self::Audio { data, mime_type }),
            "resource_link" => block.uri.map(|uri| Self::Link {
                name: block.name.unwrap_or_else(|| uri.clone()),
                mime_type: block.mime_type,
                uri,
            }),
            "resource" => block
                .resource
                .and_then(ResourceContents::parse)
                .map(Self::Embedded),
            _ => None,
        };
        known.ok_or(kind)
    }
}

impl ResourceContents {
    pub(crate) fn parse(raw: &RawValue) -> Option<Self> {
        let wire: ContentsWire<'_> = serde_json::from_str(raw.get()).ok()?;
        Some(Self {
            uri: lenient_string(wire.uri).unwrap_or_default(),
            mime_type: lenient_string(wire.mime_type),
            text: lenient_string(wire.text),
            blob: lenient_string(wire.blob),
        })
    }
}
