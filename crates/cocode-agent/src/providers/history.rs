//! What all providers do alike with a conversation before they put it in their words.

use crate::content::{Arguments, Block};
use crate::model::Model;

/// Tokens that a model may write if nothing is known of it and a number has to be given.
pub(super) const DEFAULT_MAX_OUTPUT_TOKENS: u64 = 8192;

/// Tokens that a model may write: what is asked for, but no more than it can.
pub(super) fn max_output_tokens(model: &Model, wanted: Option<u64>) -> Option<u64> {
    match (wanted, model.max_output_tokens) {
        (Some(wanted), Some(most)) => Some(wanted.min(most)),
        (wanted, most) => wanted.or(most),
    }
}

/// What a model without eyes is told instead of an image.
pub(super) fn unseen(media_type: &str, data: &str) -> String {
    // Base64 has four characters for three bytes.
    let kilobytes = (data.len() / 4 * 3).div_ceil(1024);
    format!("an image ({media_type}, {kilobytes} KB) was left out: this model cannot see")
}

/// An image as an address that holds it.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// The blocks, with words for the images where the model has no eyes.
pub(super) fn visible(blocks: &[Block], vision: bool) -> impl Iterator<Item = Block> + '_ {
    blocks.iter().map(move |block| match block {
        Block::Image { media_type, data } if !vision => Block::text(unseen(media_type, data)),
        other => other.clone(),
    })
}

/// The model's name for a call, in letters that a provider takes. Another provider may have given it.
pub(super) fn call_id(id: &str, max_chars: usize) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if id.is_empty() {
        return "call".to_owned();
    }
    let letters = id
        .chars()
        .map(|letter| if fits(letter) { letter } else { '_' });
    let letters: Vec<char> = letters.collect();
    // The end differs more often than the beginning.
    let start = letters.len().saturating_sub(max_chars);
    letters.into_iter().skip(start).collect()
}

/// Whether a call was cut off because the model has written as much as it may. A call without
/// arguments looks the same as one that had no time to begin with them.
pub(super) fn is_cut_off(written: &str) -> bool {
    written.trim().is_empty() || matches!(Arguments::read(written), Arguments::Malformed(_))
}

#[cfg(test)]
mod tests {
    use super::{call_id, is_cut_off, max_output_tokens, unseen};
    use crate::model::Model;

    #[test]
    fn an_image_is_told_with_its_kind_and_size() {
        let data = "A".repeat(16 * 1024);
        let told = "an image (image/png, 12 KB) was left out: this model cannot see";
        assert_eq!(unseen("image/png", &data), told);
    }

    #[test]
    fn names_of_calls_fit_and_stay_the_same_where_they_do() {
        assert_eq!(call_id("toolu_01-A", 64), "toolu_01-A");
        assert_eq!(call_id("functions.search:0", 64), "functions_search_0");
        assert_eq!(call_id("", 64), "call");
        assert_eq!(call_id("abcdef", 4), "cdef");
    }

    #[test]
    fn a_model_writes_no_more_than_it_can() {
        let mut model = Model {
            name: String::new(),
            context_window: 1000,
            max_output_tokens: Some(10),
            vision: false,
            tools: true,
            price: None,
        };
        assert_eq!(max_output_tokens(&model, Some(20)), Some(10));
        assert_eq!(max_output_tokens(&model, Some(5)), Some(5));
        assert_eq!(max_output_tokens(&model, None), Some(10));
        model.max_output_tokens = None;
        assert_eq!(max_output_tokens(&model, None), None);
    }

    #[test]
    fn what_is_whole_is_not_cut_off() {
        assert!(!is_cut_off("{}"));
        assert!(is_cut_off("{\"a\": "));
        assert!(is_cut_off(" "));
    }
}
