//! What happens in a conversation, as it is stored. Stored forms live long: members and variants may
//! be added, and none may change its meaning.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::content::{Block, ToolCall};
use crate::model::Usage;
use crate::provider::{ModelChoice, Stop};

/// Something that happened in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The person said something: a turn begins.
    Asked {
        /// What.
        content: Vec<Block>,
    },
    /// The model said something.
    Replied {
        /// What.
        content: Vec<Block>,
        /// Why it stopped.
        stop: Stop,
        /// What that took.
        usage: Usage,
        /// What that cost, in US dollars, if the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// Which model.
        model: String,
        /// Of which provider.
        provider: String,
    },
    /// The model was interrupted when it had said so much.
    BrokeOff {
        /// What; calls are not in it.
        content: Vec<Block>,
    },
    /// A tool is being called.
    CallBegun {
        /// As the model wrote it.
        call: ToolCall,
        /// Whether it may read data outside of the workspace.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reads_outside: bool,
    },
    /// A person was asked about a call.
    ApprovalAsked {
        /// The model's name for the call.
        id: String,
        /// Why.
        why: String,
    },
    /// A person answered, or could not be asked.
    ApprovalAnswered {
        /// The model's name for the call.
        id: String,
        /// The answer.
        answer: StoredAnswer,
    },
    /// A call is over.
    CallEnded {
        /// The model's name for the call.
        id: String,
        /// What the model is told: texts and images.
        content: Vec<Block>,
        /// The tool did not do what was asked.
        #[serde(default)]
        is_error: bool,
        /// How long it took.
        #[serde(default)]
        milliseconds: u64,
    },
    /// The model goes on from a summary of all that was before, but for the last messages.
    Compacted {
        /// The summary.
        summary: String,
        /// The number of the first record that still counts beside it.
        kept_from: u64,
        /// What that took.
        usage: Usage,
        /// What that cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// The loop told the model something, so that it goes on.
    Nudged {
        /// What.
        text: String,
    },
    /// The settings are others from here on.
    Changed {
        /// All of them.
        settings: Settings,
    },
    /// A turn is over.
    Ended {
        /// How.
        how: Ending,
    },
    /// The conversation is closed: nobody can go on with it.
    Closed,
}

impl Record {
    /// What [`kind`](Self::kind) gives, of all records that this version knows.
    pub(crate) const KINDS: [&'static str; 12] = [
        "asked",
        "replied",
        "broke_off",
        "call_begun",
        "approval_asked",
        "approval_answered",
        "call_ended",
        "compacted",
        "nudged",
        "changed",
        "ended",
        "closed",
    ];

    /// What it is stored as.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Asked { .. } => "asked",
            Self::Replied { .. } => "replied",
            Self::BrokeOff { .. } => "broke_off",
            Self::CallBegun { .. } => "call_begun",
            Self::ApprovalAsked { .. } => "approval_asked",
            Self::ApprovalAnswered { .. } => "approval_answered",
            Self::CallEnded { .. } => "call_ended",
            Self::Compacted { .. } => "compacted",
            Self::Nudged { .. } => "nudged",
            Self::Changed { .. } => "changed",
            Self::Ended { .. } => "ended",
            Self::Closed => "closed",
        }
    }
}

/// How a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredAnswer {
    /// Yes.
    Once,
    /// Yes, from now on.
    Always,
    /// No.
    Refused,
    /// No, and the turn is over.
    Stopped,
    /// Nobody could be asked.
    Unasked,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The model is done.
    Done,
    /// The model will not answer, or is not let.
    Refused(Option<String>),
    /// The person interrupted it.
    Interrupted,
    /// It took more steps than a turn may take.
    TooManySteps(u32),
    /// The model did the same again and again.
    Looping,
    /// Something failed.
    Failed(String),
}

/// What a conversation is held with. Stored with it, so that it can go on after a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Where it works.
    pub cwd: PathBuf,
    /// Which model.
    pub model: ModelChoice,
    /// When a person is asked: a word of [`ApprovalPolicy`](cocode_core::ApprovalPolicy).
    #[serde(with = "words")]
    pub approval: cocode_core::ApprovalPolicy,
    /// What tools may touch: a word of [`SandboxMode`](cocode_core::SandboxMode).
    #[serde(with = "words")]
    pub sandbox: cocode_core::SandboxMode,
    /// Whether commands in the sandbox may use the network.
    pub network: bool,
    /// Directories beside the workspace that may be written.
    pub writable: Vec<PathBuf>,
    /// What the model is told instead of the usual instructions.
    pub base_instructions: Option<String>,
    /// What the model is told besides.
    pub developer_instructions: Option<String>,
    /// What the model is told when it is to sum up.
    pub compact_prompt: Option<String>,
    /// How often the model may be asked within one turn, if not as often as usual.
    pub max_steps: Option<u32>,
}

impl Ending {
    /// A word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused(_) => "refused",
            Self::Interrupted => "interrupted",
            Self::TooManySteps(_) => "too_many_steps",
            Self::Looping => "looping",
            Self::Failed(_) => "failed",
        }
    }

    /// What is wrong, for people, if something is: half a sentence.
    pub fn problem(&self) -> Option<String> {
        Some(match self {
            Self::Done => return None,
            Self::Refused(None) => "the model does not answer this".to_owned(),
            Self::Refused(Some(why)) => format!("the model does not answer this: {why}"),
            Self::Interrupted => "it was interrupted".to_owned(),
            Self::TooManySteps(most) => {
                format!("it took more than the {most} steps that a turn may take")
            }
            Self::Looping => "the model did the same again and again".to_owned(),
            Self::Failed(why) => why.trim_end_matches('.').to_owned(),
        })
    }
}

/// Settings as their words.
mod words {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(serde::de::Error::custom)
    }
}
