//! The keys of providers and models.

use super::{Kind, SettingKey, key};
use crate::settings::{MAX_RETRIES, ProviderKind};

/// The keys of `[providers.NAME]`.
pub(super) const PROVIDER: &[SettingKey] = &[
    key(
        "kind",
        Kind::OneOf(ProviderKind::WORDS),
        "What the provider speaks. With sampling, the client that called cocode is asked.",
    ),
    key(
        "base_url",
        Kind::HttpUrl,
        "The address of the provider; openai-compatible needs it.",
    ),
    key(
        "model",
        Kind::Text,
        "The model that is used where none is named.",
    ),
    key(
        "api_key_env",
        Kind::Text,
        "The variable that holds the key.",
    ),
    key(
        "api_key",
        Kind::SecretReference,
        "Where the key is: `keyring:NAME`, `cmd:COMMAND` or `${VAR}`. Never the key itself.",
    ),
    key(
        "max_retries",
        Kind::Between(0, MAX_RETRIES),
        "How often a request is made again that failed for a reason that may pass.",
    ),
];

/// The keys of `[models.NAME]`.
pub(super) const MODEL: &[SettingKey] = &[
    key("provider", Kind::Text, "The provider that has the model."),
    key(
        "context_window",
        Kind::Count,
        "How many tokens the model can see at once.",
    ),
    key(
        "max_output_tokens",
        Kind::Count,
        "How many tokens the model can write at once.",
    ),
    key("vision", Kind::Boolean, "Whether the model can see images."),
    key("tools", Kind::Boolean, "Whether the model can call tools."),
    key(
        "input_price",
        Kind::Price,
        "US dollars for a million tokens that the model reads.",
    ),
    key(
        "output_price",
        Kind::Price,
        "US dollars for a million tokens that the model writes.",
    ),
    key(
        "cache_read_price",
        Kind::Price,
        "US dollars for a million tokens that the model reads from a cache. Without it, as `input_price`.",
    ),
    key(
        "cache_write_price",
        Kind::Price,
        "US dollars for a million tokens that the model reads and puts into a cache. Without it, as \
         `input_price`.",
    ),
];
