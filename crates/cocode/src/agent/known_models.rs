//! What is known of models that many use, for those who have not written it down themselves. Names
//! change faster than programs: what is not known is assumed to be small, and `[models.NAME]` counts
//! more than all of this.

use cocode_agent::Model;
use cocode_config::ProviderKind;

/// A model by the beginning of its name.
struct Known {
    prefix: &'static str,
    context_window: u64,
    max_output_tokens: u64,
    vision: bool,
}

const fn known(prefix: &'static str, context_window: u64, max_output_tokens: u64) -> Known {
    Known {
        prefix,
        context_window,
        max_output_tokens,
        vision: true,
    }
}

/// The first that fits counts.
const MODELS: &[Known] = &[
    known("claude-3-haiku", 200_000, 4_096),
    known("claude-3-opus", 200_000, 4_096),
    known("claude-3-5", 200_000, 8_192),
    known("claude-3-7", 200_000, 64_000),
    known("claude-opus-4", 200_000, 32_000),
    known("claude-", 200_000, 64_000),
    known("gpt-4o", 128_000, 16_384),
    known("gpt-4.1", 1_000_000, 32_768),
    known("gpt-5-chat", 128_000, 16_384),
    known("gpt-5", 400_000, 128_000),
    known("gpt-", 128_000, 16_384),
    known("o3", 200_000, 100_000),
    known("o4", 200_000, 100_000),
];

/// Tokens that a model sees of which nothing is known, by who has it.
fn usual_window(kind: ProviderKind) -> u64 {
    match kind {
        ProviderKind::Anthropic => 200_000,
        // What is served locally is often small, and says no to more than it sees.
        ProviderKind::OpenAiCompatible => 32_768,
        // That of a client is told nowhere; clients cut for themselves if they have to.
        ProviderKind::OpenAi | ProviderKind::Sampling => 128_000,
    }
}

/// A model as it is known by its name.
pub(super) fn model(name: &str, kind: ProviderKind) -> Model {
    let known = MODELS.iter().find(|known| name.starts_with(known.prefix));
    let sees = matches!(kind, ProviderKind::Anthropic | ProviderKind::OpenAi);
    Model {
        name: name.to_owned(),
        context_window: known.map_or(usual_window(kind), |known| known.context_window),
        max_output_tokens: known.map(|known| known.max_output_tokens),
        vision: known.map_or(sees, |known| known.vision),
        tools: true,
        price: None,
    }
}

/// Whether a model of OpenAI thinks before it speaks: only those are asked for their thoughts, and the
/// others refuse to be.
pub(super) fn thinks(name: &str) -> bool {
    let is_chat = name.contains("-chat");
    let thinkers = [
        "o1", "o3", "o4", "gpt-5", "gpt-6", "gpt-7", "gpt-oss", "codex",
    ];
    !is_chat && thinkers.iter().any(|prefix| name.starts_with(prefix))
}

/// The model that is used where nobody has named one.
pub(super) fn usual(kind: ProviderKind) -> Option<&'static str> {
    match kind {
        ProviderKind::Anthropic => Some("claude-sonnet-4-5"),
        ProviderKind::OpenAi => Some("gpt-5"),
        ProviderKind::OpenAiCompatible | ProviderKind::Sampling => None,
    }
}

#[cfg(test)]
mod tests {
    use cocode_config::ProviderKind;

    use super::model;

    #[test]
    fn models_are_known_by_the_beginning_of_their_names() {
        let found = model("claude-sonnet-4-5-20250929", ProviderKind::Anthropic);
        assert_eq!((found.context_window, found.vision), (200_000, true));
        let found = model("gpt-4.1-mini", ProviderKind::OpenAi);
        assert_eq!(found.context_window, 1_000_000);
    }

    #[test]
    fn what_is_not_known_is_assumed_to_be_small_and_blind() {
        let found = model("qwen3-coder", ProviderKind::OpenAiCompatible);
        assert_eq!((found.context_window, found.vision), (32_768, false));
    }
}
