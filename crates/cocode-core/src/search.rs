//! Finds tools by what they are for, and decides when models have to.

mod activation;
mod index;
mod mode;

pub use activation::{
    CHARACTERS_PER_TOKEN, SearchDecision, SearchPolicy, Searcher, Share, ToolLoad, WhySearch,
    WhyShowAll,
};
pub use index::{Explained, Hit, ScorePart, ToolIndex, ToolText};
pub use mode::{ToolSearchMode, UnknownToolSearchMode};
