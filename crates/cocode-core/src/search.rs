//! Finds tools by what they are for, and decides when models have to.
//!
//! A [`ToolIndex`] knows the tools of any number of servers and ranks them for a query in plain
//! words. It knows nothing of who asks, and no I/O: what is indexed is handed to it as text.

mod activation;
mod answer;
mod clauses;
mod concepts;
mod explain;
mod index;
mod json;
mod mode;
mod paths;
mod query;
mod rank;
mod reading;
mod schema_words;
mod stem;
mod tools;
mod vocabulary;
mod words;

pub use activation::{
    CHARACTERS_PER_TOKEN, SearchDecision, SearchPolicy, Searcher, Share, ToolLoad, WhySearch,
    WhyShowAll, definition_characters,
};
pub use answer::{FoundDetail, FoundText, found_tools, nothing_found};
pub use explain::{Explained, ScorePart};
pub use index::{ToolIndex, ToolText};
pub use mode::{ToolSearchMode, UnknownToolSearchMode};
pub use rank::Hit;
pub use tools::{
    DEFAULT_FOUND, Loading, MAX_FOUND, SearchedServer, TOOL_CALL, TOOL_SEARCH, first_sentence,
    tool_call_definition, tool_search_definition, tool_search_for,
};
