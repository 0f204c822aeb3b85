//! What a model is told of the result of a tool of a server.

use cocode_client::{CallResult, Content};

use crate::content::Block;

/// The blocks of a result. What no model can be given is described in its place.
pub(super) fn blocks(result: &CallResult) -> Vec<Block> {
    let mut blocks: Vec<Block> = result.content().into_iter().map(block).collect();
    if blocks.is_empty()
        && let Some(structured) = result.structured()
    {
        blocks.push(Block::text(structured.to_string()));
    }
    if blocks.is_empty() {
        blocks.push(Block::text("(no output)"));
    }
    blocks
}

fn block(content: Content) -> Block {
    match content {
        Content::Text(text) => Block::text(text),
        Content::Image { data, mime_type } => Block::image(&mime_type, data),
        Content::Audio { data, mime_type } => Block::text(format!(
            "(sound of type {mime_type}, {} bytes in base64, is not shown)",
            data.len()
        )),
        Content::Link {
            uri,
            name,
            mime_type,
        } => {
            let kind = mime_type
                .map(|kind| format!(", {kind}"))
                .unwrap_or_default();
            Block::text(format!("(resource `{name}`{kind}: {uri})"))
        }
        Content::Embedded(contents) => match (contents.text, contents.blob) {
            (Some(text), _) => Block::text(format!("{}:\n{text}", contents.uri)),
            (None, blob) => Block::text(format!(
                "(resource {}, {} bytes in base64, is not shown)",
                contents.uri,
                blob.map_or(0, |blob| blob.len())
            )),
        },
        Content::Unknown { raw, .. } => Block::text(raw.to_string()),
        _ => Block::text("(content of a kind that is not known here)"),
    }
}
