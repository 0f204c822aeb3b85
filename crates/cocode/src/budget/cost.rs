//! What a definition takes in the eyes of a model.

use std::iter::Sum;
use std::ops::AddAssign;

use cocode_core::{definition_characters, estimate_tokens};
use serde::Serialize;
use serde_json::Value;

use crate::toolbox::ToolEntry;

/// The size of definitions: names, descriptions and input schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cost {
    pub(super) characters: u64,
    /// By estimate.
    pub(crate) tokens: u64,
}

impl Cost {
    /// A tool of a server.
    pub(crate) fn of_tool(server: &str, tool: &ToolEntry) -> Self {
        Self::of(&format!("mcp__{server}__{}", tool.name), tool)
    }

    /// A tool under the name that models know it by.
    pub(super) fn of(name: &str, tool: &ToolEntry) -> Self {
        let (description, schema) = (tool.description.as_deref(), tool.input_schema.as_deref());
        let characters = definition_characters(name, description, schema);
        let schema = schema.map(compact);
        let texts = [Some(name), description, schema.as_deref()];
        Self {
            characters,
            tokens: texts.into_iter().flatten().map(estimate_tokens).sum(),
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.characters = self.characters.saturating_add(other.characters);
        self.tokens = self.tokens.saturating_add(other.tokens);
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// JSON without the blanks that its server wrote it with: models do not see those.
fn compact(json: &str) -> String {
    let value: Result<Value, _> = serde_json::from_str(json);
    value.map_or_else(|_bad| json.to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::Cost;
    use crate::toolbox::ToolEntry;

    #[test]
    fn names_descriptions_and_schemas_count_and_blanks_of_schemas_do_not() {
        let tool = ToolEntry {
            name: "read".to_owned(),
            title: Some("not seen".to_owned()),
            description: Some("12345678".to_owned()),
            input_schema: Some("{ \"type\" :\n \"object\" }".to_owned()),
        };
        let cost = Cost::of("mcp__a__read", &tool);
        assert_eq!((cost.characters, cost.tokens), (12 + 8 + 17, 3 + 2 + 5));
        let bare = ToolEntry::default();
        assert_eq!(Cost::of("abcd", &bare).tokens, 1);
    }
}
