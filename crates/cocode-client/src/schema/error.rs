//! Why a value could not be checked against a schema.

use super::limits::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH};

/// Why a schema cannot be used for checking. Such a schema never makes a call fail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text of the schema is too long.
    #[error("the schema has {bytes} bytes, and at most {MAX_SCHEMA_BYTES} are looked at")]
    TooLarge {
        /// The length of the text.
        bytes: usize,
    },
    /// The schema is nested too deeply.
    #[error("the schema is nested {depth} levels deep, and at most {MAX_SCHEMA_DEPTH} are allowed")]
    TooDeep {
        /// The depth that was found.
        depth: usize,
    },
    /// Checking one value by this schema could take forever.
    #[error("the schema refers to itself or branches too much to be followed safely")]
    TooIntricate,
    /// The schema is written in a dialect that is not known here.
    #[error("the schema is written in the unknown dialect `{dialect}`")]
    UnknownDialect {
        /// What `$schema` says.
        dialect: String,
    },
    /// The schema needs another document, and nothing is ever fetched for a schema.
    #[error("the schema refers to `{uri}`, which is not part of it and is not fetched")]
    RemoteReference {
        /// The document that would be needed.
        uri: String,
    },
    /// The schema breaks the rules of its dialect.
    #[error("the schema is not valid{}{place}: {problem}", if place.is_empty() { "" } else { " at " })]
    Invalid {
        /// A JSON pointer into the schema; empty for the whole.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// The schema is not JSON that can be read.
    #[error("the schema cannot be read: {problem}")]
    Unreadable {
        /// What the parser says.
        problem: String,
    },
    /// The value is JSON, but has something that cannot be held here.
    #[error("the value cannot be read: {problem}")]
    UnreadableValue {
        /// What the parser says.
        problem: String,
    },
    /// Checking this value would have cost too much.
    #[error("checking the value against the schema takes too much work")]
    TooMuchWork,
    /// The system gave no room to check something deep.
    #[error("the system gives no stack to check the value on")]
    NoStack,
}
