//! Finds tools by what they are for, and decides when models have to.

mod activation;
mod answer;
mod index;
mod json;
mod mode;
mod tools;

pub use activation::{
    CHARACTERS_PER_TOKEN, SearchDecision, SearchPolicy, Searcher, Share, ToolLoad, WhySearch,
    WhyShowAll,
};
pub use answer::{FoundDetail, FoundText, found_tools, nothing_found};
pub use index::{Explained, Hit, ScorePart, ToolIndex, ToolText};
pub use mode::{ToolSearchMode, UnknownToolSearchMode};
pub use tools::{
    DEFAULT_FOUND, MAX_FOUND, SearchedServer, TOOL_CALL, TOOL_SEARCH, first_sentence,
    tool_call_definition, tool_search_definition,
};
