//! Measures results and makes the short form of those that are too large.

use cocode_core::{OutputLimits, OutputSize, estimate_tokens, preview};
use cocode_wire::RawJson;
use cocode_wire::encode::push_string;

use super::blocks::Parts;
use super::handle::ResultHandle;
use crate::features::CallResult;
use cocode_wire::members::never_mentions;

/// No JSON text costs more tokens than half its bytes, as long as it holds no images.
const BYTES_PER_TOKEN_AT_LEAST: u64 = 2;

/// What can be read later is previewed in this part of the cap.
const PREVIEW_PART: u64 = 5;

/// Measures what a model would read of a result: text and structured content, once if they are the
/// same, images by their size, and only a note of sound and other binary content.
pub fn limit(result: &CallResult, limits: &OutputLimits) -> OutputSize {
    let bytes = result.raw.as_bytes().len() as u64;
    let is_surely_small = bytes / BYTES_PER_TOKEN_AT_LEAST < limits.warn_tokens;
    if is_surely_small && never_mentions(&result.raw, "image") {
        return OutputSize::Fits;
    }
    limits.judge(Parts::of(&result.raw).tokens())
}

/// What is shown in the place of a result that is [`OutputSize::TooLarge`]; any other result as it is.
///
/// The new result has both ends of the text, as many of the images as the cap has room for, and a
/// note for the model that says what is missing and how to get at it. Structured content is left
/// out, everything else stays. It is within the cap, unless the note alone is not.
///
/// Without a handle the rest is lost, so that more of the text is shown.
pub fn shorten(
    result: &CallResult,
    limits: &OutputLimits,
    handle: Option<&ResultHandle>,
) -> CallResult {
    match limit(result, limits) {
        OutputSize::TooLarge { tokens } => shorten_measured(result, tokens, limits, handle),
        OutputSize::Fits | OutputSize::Large { .. } => result.clone(),
    }
}

/// As [`shorten`], for a result that [`limit`] has just found to be too large.
pub(crate) fn shorten_measured(
    result: &CallResult,
    tokens: u64,
    limits: &OutputLimits,
    handle: Option<&ResultHandle>,
) -> CallResult {
    let parts = Parts::of(&result.raw);
    let bytes = result.raw.as_bytes().len();
    let has_structured = result.structured().is_some();
    let note = note(&Facts {
        tokens,
        bytes,
        cap: limits.cap_tokens,
        handle,
        has_structured,
    });
    let room = limits.cap_tokens.saturating_sub(estimate_tokens(&note));
    let least_for_text = (limits.cap_tokens / PREVIEW_PART).min(room);
    let (attached, for_images) = fitting_images(&parts, room - least_for_text);
    let for_text = match handle {
        Some(_) => least_for_text,
        None => room - for_images,
    };
    let text = parts.text(&attached);
    let shown = preview(&text, for_text).text;

    let mut content = b"[".to_vec();
    if !shown.is_empty() {
        push_text_block(&mut content, &shown);
        content.push(b',');
    }
    for image in attached
        .iter()
        .filter_map(|number| parts.blocks.get(*number))
    {
        content.extend_from_slice(image.raw.get().as_bytes());
        content.push(b',');
    }
    push_text_block(&mut content, &note);
    content.push(b']');
    with_content(&content, &parts).unwrap_or_else(|error| {
        debug_assert!(false, "a shortened result is JSON: {error}");
        tracing::error!(%error, "a result that is too large could not be shortened");
        result.clone()
    })
}

/// The numbers of the first images that fit, and what they cost.
fn fitting_images(parts: &Parts<'_>, room: u64) -> (Vec<usize>, u64) {
    let mut numbers = Vec::new();
    let mut cost = 0;
    for (number, block) in parts.blocks.iter().enumerate() {
        if block.is_image() && cost + block.tokens() <= room {
            cost += block.tokens();
            numbers.push(number);
        }
    }
    (numbers, cost)
}

/// What the note speaks of.
struct Facts<'a> {
    tokens: u64,
    bytes: usize,
    cap: u64,
    handle: Option<&'a ResultHandle>,
    has_structured: bool,
}

/// What a model can do about it.
fn note(facts: &Facts<'_>) -> String {
    let Facts {
        tokens,
        bytes,
        cap,
        handle,
        has_structured,
    } = facts;
    let structured = if *has_structured {
        " Its structured content is left out."
    } else {
        ""
    };
    let rest = match handle {
        Some(handle) => format!(
            "All of it is kept as {handle}. Read it page by page with `cocode mcp result show \
             {handle} --page 1`, find lines with `cocode mcp result grep {handle} PATTERN`, or pick \
             from its JSON with `cocode mcp result jq {handle} FILTER`. Or call the tool again with \
             arguments that ask for less."
        ),
        None => "The rest is not kept. To see it, call the tool again with arguments that ask for \
                 less: a filter, a range or a page."
            .to_owned(),
    };
    format!(
        "[This result is shortened: it has about {tokens} tokens ({bytes} bytes), and the limit is \
         {cap} tokens.{structured} {rest}]"
    )
}

fn push_text_block(content: &mut Vec<u8>, text: &str) {
    content.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    push_string(content, text);
    content.push(b'}');
}

/// The result with other content.
fn with_content(content: &[u8], parts: &Parts<'_>) -> Result<CallResult, serde_json::Error> {
    let mut json = b"{\"content\":".to_vec();
    json.extend_from_slice(content);
    for (key, value) in &parts.others.0 {
        json.push(b',');
        push_string(&mut json, key);
        json.push(b':');
        json.extend_from_slice(value.get().as_bytes());
    }
    json.push(b'}');
    RawJson::parse(json).map(CallResult::parse)
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
