//! Whom tools are written for.

use clap::ValueEnum;
use cocode_core::Dialect;

pub(crate) const TOOLS_HELP: &str = "\
With --for, what is printed is a JSON list of definitions, ready for the request to the provider: for OpenAI \
as its Responses interface takes them, for Gemini as `functionDeclarations`. Names are those that models see, \
mcp__SERVER__TOOL; a server given by --url or -- has no name, and its tools have their own. What had to be \
changed is said on stderr; with --json, {\"provider\", \"tools\": [{\"tool\", \"definition\", \"notes\"}, ...], \
\"quarantined\": [{\"tool\", \"reason\"}, ...]} has all of it. Tools that cannot be strict are given without \
that. If a tool cannot be given at all, the others are printed and the exit code is 2.

Examples:
  cocode mcp tools files
  cocode mcp tools files read_file
  cocode mcp tools files --for gemini > tools.json
  cocode mcp tools --for openai-strict --cached --json";

/// Providers of models that want the schemas of tools in their own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    /// OpenAI
    #[value(name = "openai")]
    OpenAi,
    /// OpenAI, with `strict` where a tool can be
    #[value(name = "openai-strict")]
    OpenAiStrict,
    /// Anthropic
    Anthropic,
    /// Gemini and Vertex AI
    Gemini,
    /// Anyone else with function calling
    Plain,
}

impl Provider {
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::OpenAi => Dialect::OpenAi,
            Self::OpenAiStrict => Dialect::OpenAiStrict,
            Self::Anthropic => Dialect::Anthropic,
            Self::Gemini => Dialect::Gemini,
            Self::Plain => Dialect::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_called_as_dialects_are() {
        let names = Provider::value_variants().iter().map(|provider| {
            let value = provider.to_possible_value().unwrap();
            (value.get_name().to_owned(), provider.dialect())
        });
        let expected = Dialect::ALL.map(|dialect| (dialect.as_str().to_owned(), dialect));
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}
