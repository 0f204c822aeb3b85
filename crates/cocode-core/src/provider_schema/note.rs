//! What a conversion changed, and why a tool cannot be converted.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

/// As many notes as are kept of one tool.
const MAX_NOTES: usize = 64;

/// One thing that a provider sees differently than the server wrote it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// Where in the original schema, as a JSON pointer.
    pub place: String,
    /// What was changed.
    pub what: Change,
}

/// What was changed at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Change {
    /// There was no type, and the keywords tell which is meant.
    TypeInferred(String),
    /// A keyword cannot be said to this provider. The description tells what can be told.
    Dropped(String),
    /// A keyword has a value that means nothing.
    Malformed(String),
    /// A reference leads nowhere, so that any value goes.
    UnknownReference(String),
    /// A reference leads out of the schema. Nothing is ever fetched, so that any value goes.
    RemoteReference(String),
    /// The schema holds itself, or is too large to be written out: any value goes below here.
    Cut,
    /// The schema is nested too deeply: any value goes below here.
    TooDeep,
    /// A reference to a schema that holds itself has rules beside it, which are left out.
    BesideReference,
    /// So many alternatives came of combining that some rules are left out.
    TooManyForms,
    /// Alternatives are one object with all of their properties.
    FormsMerged,
    /// Only one of the alternatives may fit, where the provider takes any of them.
    OneOf,
    /// A key or a name is spelled in the letters that the provider allows.
    Renamed(String),
    /// The value is given as text that holds JSON.
    JsonText,
    /// A description is cut.
    DescriptionCut,
    /// An optional property is always there, and null stands for its absence.
    NullIsAbsent,
    /// Keys that the schema says nothing about cannot be given.
    Closed,
    /// The places of a list share one schema.
    TupleWidened,
    /// A property that no value fits is left out.
    PropertyForbidden,
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TypeInferred(types) => {
                write!(formatter, "the type is missing and taken to be {types}")
            }
            Self::Dropped(keyword) => write!(formatter, "`{keyword}` cannot be expressed"),
            Self::Malformed(keyword) => write!(formatter, "`{keyword}` is malformed and ignored"),
            Self::UnknownReference(to) => {
                write!(formatter, "`{to}` leads nowhere, so any value goes")
            }
            Self::RemoteReference(to) => {
                write!(formatter, "`{to}` is not fetched, so any value goes")
            }
            Self::Cut => formatter.write_str("the schema goes on and is cut, so any value goes"),
            Self::TooDeep => formatter.write_str("the schema is too deep, so any value goes"),
            Self::BesideReference => {
                formatter.write_str("rules beside a recursive reference are left out")
            }
            Self::TooManyForms => {
                formatter.write_str("there are too many alternatives, so some rules are left out")
            }
            Self::FormsMerged => formatter.write_str("the alternatives are merged into one"),
            Self::OneOf => formatter.write_str("`oneOf` is taken as `anyOf`"),
            Self::Renamed(to) => write!(formatter, "is called `{to}`"),
            Self::JsonText => formatter.write_str("the value is given as JSON text"),
            Self::DescriptionCut => formatter.write_str("the description is cut"),
            Self::NullIsAbsent => formatter.write_str("null stands for a value that is not given"),
            Self::Closed => formatter.write_str("keys that are not listed cannot be given"),
            Self::TupleWidened => formatter.write_str("the places of the list share one schema"),
            Self::PropertyForbidden => {
                formatter.write_str("no value fits the property, which is left out")
            }
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() {
            "/"
        } else {
            &self.place
        };
        write!(formatter, "{place}: {}", self.what)
    }
}

/// Why a tool cannot be given to a provider. The tool is to be left out, with this as the reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unrepairable {
    /// A tool needs a name.
    #[error("the tool has no name")]
    NoName,
    /// A schema is an object or a boolean.
    #[error("inputSchema is {found}, and only an object can be a schema")]
    NotASchema {
        /// What it is instead.
        found: &'static str,
    },
    /// Arguments are always an object.
    #[error("inputSchema takes no object, and arguments are always one: {reason}")]
    NoObject {
        /// What it takes instead.
        reason: String,
    },
    /// The schema is too large, even with everything cut that may be.
    #[error("inputSchema is too large: {what}, and at most {limit} are allowed")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// As many are allowed.
        limit: usize,
    },
    /// The tool can only be given to OpenAI without `strict`.
    #[error("cannot be strict: {reason} at `{place}`")]
    NotStrict {
        /// Where in the original schema, as a JSON pointer.
        place: String,
        /// What strictness has no way to say, or no way back from.
        reason: String,
    },
}

/// Notes in the order of their places, each once.
#[derive(Debug, Default, Clone)]
pub(super) struct Notes(BTreeSet<Note>);

impl Notes {
    pub(super) fn add(&mut self, place: &str, what: Change) {
        if self.0.len() < MAX_NOTES {
            let place = place.to_owned();
            self.0.insert(Note { place, what });
        }
    }

    pub(super) fn into_vec(self) -> Vec<Note> {
        self.0.into_iter().collect()
    }
}
