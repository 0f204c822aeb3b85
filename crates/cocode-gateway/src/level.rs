//! How severe a log message is.

use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;

/// The levels, least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level that `logging/setLevel` asks for.
    pub(crate) fn asked_for(params: Option<&RawJson>) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Params {
            level: Level,
        }
        let params = params.and_then(|params| params.decode::<Params>().ok());
        let missing = || RpcError::new(code::INVALID_PARAMS, "no log level");
        params.map(|params| params.level).ok_or_else(missing)
    }

    /// The level of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let deserializer = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(name);
        Self::deserialize(deserializer).ok()
    }

    /// The level of a log message, which counts as severe if it names none that is known.
    pub(crate) fn of_message(params: Option<&RawJson>) -> Self {
        #[derive(Deserialize)]
        struct Message {
            level: Level,
        }
        let message = params.and_then(|params| params.decode::<Message>().ok());
        message.map_or(Self::Emergency, |message| message.level)
    }
}
