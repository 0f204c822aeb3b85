//! The content blocks of a result as a reader meets them: text as it is, JSON indented, and a note
//! in the place of everything that is no text.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use cocode_core::{PixelSize, estimate_tokens, image_tokens, pixel_size};
use cocode_wire::RawJson;
use serde_json::value::RawValue;

use super::pretty::pretty;
use crate::features::{Content, ResourceContents};
use cocode_wire::members::Members;

/// Base64 as servers write it: padded or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Enough base64 for the size of every image format but JPEG.
const SHORT_HEADER: usize = 64;

/// Enough base64 to find the size behind the metadata of most JPEG images.
const LONG_HEADER: usize = 512 * 1024;

/// What is said in the text about an image that is shown beside it.
pub(super) const ATTACHED: &str = "attached";

/// A result, taken apart.
pub(super) struct Parts<'a> {
    pub(super) blocks: Vec<Block<'a>>,
    /// Unless a text repeats it.
    pub(super) structured: Option<&'a RawValue>,
    /// Everything but content and structured content, in order.
    pub(super) others: Members<'a>,
}

/// One content block.
pub(super) struct Block<'a> {
    pub(super) raw: &'a RawValue,
    pub(super) content: Content,
}

impl<'a> Parts<'a> {
    pub(super) fn of(result: &'a RawJson) -> Self {
        let mut others: Members<'a> = result.decode().unwrap_or_default();
        let content = others.get("content");
        let structured = others.get("structuredContent");
        let structured = structured.filter(|raw| raw.get() != "null");
        let raws = match content {
            Some(content) if content.get() == "null" => Vec::new(),
            // Some servers send one block, or a bare text, where a list belongs.
            Some(content) => {
                serde_json::from_str(content.get()).unwrap_or_else(|_not_a_list| vec![content])
            }
            None if structured.is_some() => Vec::new(),
            // Nothing that the protocol knows: all of it is content.
            None => {
                others
                    .0
                    .retain(|(key, _)| key == "_meta" || key == "isError");
                result.decode().into_iter().collect()
            }
        };
        others
            .0
            .retain(|(key, _)| key != "content" && key != "structuredContent");
        let blocks: Vec<Block<'a>> = raws
            .into_iter()
            .map(|raw| Block {
                raw,
                content: Content::parse(result, raw),
            })
            .collect();
        let is_repeated = structured.is_some_and(|structured| is_repeated(structured, &blocks));
        Self {
            structured: structured.filter(|_| !is_repeated),
            blocks,
            others,
        }
    }

    /// What all of it costs a model.
    pub(super) fn tokens(&self) -> u64 {
        let blocks = self.blocks.iter().map(Block::tokens);
        let structured = self.structured.map_or(0, |raw| estimate_tokens(raw.get()));
        blocks.sum::<u64>() + structured
    }

    /// All of it as one text, in which the blocks of these numbers are attached.
    pub(super) fn text(&self, attached: &[usize]) -> String {
        let mut text = String::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let state = if attached.contains(&number) {
                ATTACHED
            } else {
                ""
            };
            push_lines(&mut text, &block.text(state));
        }
        if let Some(structured) = self.structured {
            push_lines(&mut text, &indented(structured.get()));
        }
        text
    }
}

impl Block<'_> {
    pub(super) fn is_image(&self) -> bool {
        matches!(self.content, Content::Image { .. })
    }

    /// What it costs a model: what is no text costs its pixels, or the note in its place.
    pub(super) fn tokens(&self) -> u64 {
        match &self.content {
            Content::Text(text)
            | Content::Embedded(ResourceContents {
                text: Some(text), ..
            }) => estimate_tokens(text),
            Content::Image { data, .. } => image_tokens(&header(data)),
            Content::Unknown { raw, .. } => estimate_tokens(raw.as_str()),
            Content::Audio { .. } | Content::Link { .. } | Content::Embedded(_) => {
                estimate_tokens(&self.text(""))
            }
        }
    }

    /// What a person reads. `state` is added to the note of what is no text.
    fn text(&self, state: &str) -> Cow<'_, str> {
        match &self.content {
            Content::Text(text)
            | Content::Embedded(ResourceContents {
                text: Some(text), ..
            }) => indented(text),
            Content::Image { data, mime_type } => {
                let size = pixel_size(&header(data));
                let size =
                    size.map(|PixelSize { width, height }| format!("{width} x {height} pixels"));
                note(
                    "image",
                    &[mime_type, &size.unwrap_or_default()],
                    data,
                    state,
                )
                .into()
            }
            Content::Audio { data, mime_type } => note("audio", &[mime_type], data, state).into(),
            Content::Link { uri, name, .. } if uri == name => uri.into(),
            Content::Link { uri, name, .. } => format!("{uri} ({name})").into(),
            Content::Embedded(ResourceContents {
                uri,
                mime_type,
                text: None,
                blob,
            }) => {
                let mime_type = mime_type.as_deref().unwrap_or_default();
                let data = blob.as_deref().unwrap_or_default();
                note(&format!("resource {uri}"), &[mime_type], data, state).into()
            }
            Content::Unknown { raw, .. } => indented(raw.as_str()),
        }
    }
}

/// Whether one of the texts is the structured content again, as servers write it for those who know
/// only text.
fn is_repeated(structured: &RawValue, blocks: &[Block<'_>]) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    let wanted = value(structured.get());
    let texts = blocks.iter().filter_map(|block| match &block.content {
        Content::Text(text) if text.trim_start().starts_with(['{', '[']) => Some(text),
        _ => None,
    });
    let wrapped = wrapped_text(structured);
    let is_wrapped = |block: &Block<'_>| match (&block.content, &wrapped) {
        (Content::Text(text), Some(wrapped)) => *text == **wrapped,
        _ => false,
    };
    wanted.is_some() && texts.into_iter().any(|text| value(text) == wanted)
        || blocks.iter().any(is_wrapped)
}

/// The text in an object that has nothing else, such as `{"result": "…"}`: how many libraries make
/// structured content of a text.
fn wrapped_text(structured: &RawValue) -> Option<Cow<'_, str>> {
    let members = Members::of(structured)?;
    match members.0.as_slice() {
        [(_, only)] => serde_json::from_str(only.get()).ok(),
        _ => None,
    }
}

fn indented(text: &str) -> Cow<'_, str> {
    pretty(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Adds a text and the end of its last line.
fn push_lines(text: &mut String, more: &str) {
    text.push_str(more);
    if !more.ends_with('\n') {
        text.push('\n');
    }
}

/// `[image image/png, 640 x 480 pixels, 1234 bytes]`.
fn note(name: &str, facts: &[&str], data: &str, state: &str) -> String {
    let bytes = format!("{} bytes", decoded_length(data));
    let mut facts: Vec<&str> = facts.to_vec();
    facts.extend([bytes.as_str(), state]);
    facts.retain(|fact| !fact.is_empty());
    format!("[{name} {}]", facts.join(", "))
}

/// How many bytes base64 stands for.
fn decoded_length(data: &str) -> usize {
    let is_digit = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'=';
    data.bytes().filter(is_digit).count() * 3 / 4
}

/// The first bytes of an image; none if they are not base64.
fn header(data: &str) -> Vec<u8> {
    let start = decoded_start(data, SHORT_HEADER);
    if start.starts_with(&[0xff, 0xd8]) {
        return decoded_start(data, LONG_HEADER);
    }
    start
}

fn decoded_start(data: &str, characters: usize) -> Vec<u8> {
    let is_digit = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'=';
    let start: Vec<u8> = data.bytes().filter(is_digit).take(characters).collect();
    BASE64.decode(start).unwrap_or_default()
}
