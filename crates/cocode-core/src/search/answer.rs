//! What `tool_search` answers: the tools that were found, in the words of their servers.

use super::json::{push_member, string};
use super::tools::{cut, first_sentence};
use crate::output::estimate_tokens;

/// Bytes of the sentence that is said of a tool whose definition is not shown.
const MAX_SENTENCE_BYTES: usize = 240;
/// Servers that are named where nothing fits.
const MAX_NAMED: usize = 50;

/// A tool that was found.
#[derive(Clone, Copy, Debug)]
pub struct FoundText<'a> {
    /// The name that models call it by.
    pub name: &'a str,
    /// Whose tool.
    pub server: &'a str,
    /// What it does, in plain text.
    pub about: Option<&'a str>,
    /// The members of its definition that are passed on, as JSON and as its server wrote them: name
    /// and value.
    pub members: &'a [(&'a str, &'a str)],
}

/// How much of a tool is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FoundDetail {
    /// Its whole definition.
    #[default]
    Full,
    /// Its name, and a sentence about it.
    Names,
}

/// The structured content that tells of tools, as JSON. Definitions that would take more than
/// `max_tokens` together are left out, and that is said; their names never are.
pub fn found_tools(found: &[FoundText<'_>], detail: FoundDetail, max_tokens: u64) -> String {
    let mut tools = Vec::with_capacity(found.len());
    let mut tokens = 0;
    let mut n_short = 0;
    for tool in found {
        let whole = (detail == FoundDetail::Full).then(|| full(tool));
        let whole = whole.filter(|whole| tokens + estimate_tokens(whole) <= max_tokens);
        n_short += usize::from(detail == FoundDetail::Full && whole.is_none());
        let told = whole.unwrap_or_else(|| name_only(tool));
        tokens += estimate_tokens(&told);
        tools.push(told);
    }
    let message = (n_short > 0).then(|| {
        format!(
            "{n_short} of these are shown by name only, because all definitions would be too large: \
             search for less at once to see them"
        )
    });
    answer(&tools, message.as_deref())
}

/// The same where nothing was found: says so, and which servers there are.
pub fn nothing_found<'a>(query: &str, servers: impl IntoIterator<Item = &'a str>) -> String {
    let servers: Vec<_> = servers.into_iter().collect();
    let query = cut(query, MAX_SENTENCE_BYTES);
    if servers.is_empty() {
        return answer(&[], Some("There are no tools to be found at this moment."));
    }
    let more = match servers.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<_> = servers.into_iter().take(MAX_NAMED).collect();
    let named = named.join(", ");
    answer(
        &[],
        Some(&format!(
            "No tool fits `{query}`. These servers have tools: {named}{more}. Try other words, or the \
             name of a server."
        )),
    )
}

fn answer(tools: &[String], message: Option<&str>) -> String {
    let mut text = "{".to_owned();
    push_member(&mut text, "tools", &format!("[{}]", tools.join(",")));
    if let Some(message) = message {
        push_member(&mut text, "message", &string(message));
    }
    text.push('}');
    text
}

fn full(tool: &FoundText<'_>) -> String {
    let mut text = head(tool);
    for (key, value) in tool.members {
        push_member(&mut text, key, value);
    }
    text.push('}');
    text
}

fn name_only(tool: &FoundText<'_>) -> String {
    let mut text = head(tool);
    let about = tool.about.map(first_sentence).unwrap_or_default();
    if !about.is_empty() {
        let about = cut(&about, MAX_SENTENCE_BYTES);
        push_member(&mut text, "description", &string(&about));
    }
    text.push('}');
    text
}

fn head(tool: &FoundText<'_>) -> String {
    let mut text = "{".to_owned();
    push_member(&mut text, "name", &string(tool.name));
    push_member(&mut text, "server", &string(tool.server));
    text
}

#[cfg(test)]
mod tests {
    use super::{FoundDetail, FoundText, found_tools, nothing_found};

    const READ: FoundText<'_> = FoundText {
        name: "mcp__files__read",
        server: "files",
        about: Some("Reads a file. From the start, unless told otherwise."),
        members: &[
            (
                "description",
                r#""Reads a file. From the start, unless told otherwise.""#,
            ),
            ("inputSchema", r#"{"type" : "object","z":1.10}"#),
        ],
    };

    #[test]
    fn definitions_are_passed_on_as_they_were_written() {
        assert_eq!(
            found_tools(&[READ], FoundDetail::Full, 1_000),
            r#"{"tools":[{"name":"mcp__files__read","server":"files","description":"Reads a file. From the start, unless told otherwise.","inputSchema":{"type" : "object","z":1.10}}]}"#
        );
        assert_eq!(
            found_tools(&[READ], FoundDetail::Names, 1_000),
            r#"{"tools":[{"name":"mcp__files__read","server":"files","description":"Reads a file."}]}"#
        );
    }

    #[test]
    fn what_is_too_large_is_named_and_said_to_be_missing() {
        let told = found_tools(&[READ, READ], FoundDetail::Full, 50);
        assert_eq!(told.matches("inputSchema").count(), 1, "{told}");
        assert_eq!(told.matches("mcp__files__read").count(), 2, "{told}");
        assert!(told.contains("1 of these are shown by name only"), "{told}");
    }

    #[test]
    fn where_nothing_fits_the_servers_are_named() {
        let told = nothing_found("a \"b\"", ["files", "git"]);
        assert_eq!(
            told,
            r#"{"tools":[],"message":"No tool fits `a \"b\"`. These servers have tools: files, git. Try other words, or the name of a server."}"#
        );
        let names: Vec<_> = (0..60).map(|number| format!("s{number}")).collect();
        let told = nothing_found("x", names.iter().map(String::as_str));
        assert!(told.contains("s49 and 10 more"), "{told}");
        let told = nothing_found("x", []);
        assert!(told.contains("no tools"), "{told}");
    }
}
