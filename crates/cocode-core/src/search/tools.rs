//! The two tools of models that search: `tool_search` finds tools, `tool_call` calls one that was
//! found. What they are described with depends on nothing but the servers, and is written in the
//! same bytes every time, so that the prompts of models that are told of it stay the same.

use super::json::push_string;

/// The tool that finds tools.
pub const TOOL_SEARCH: &str = "tool_search";
/// The tool that calls a tool.
pub const TOOL_CALL: &str = "tool_call";

/// How many tools are found where nobody says how many.
pub const DEFAULT_FOUND: usize = 5;
/// How many tools are found at most.
pub const MAX_FOUND: usize = 20;

/// Bytes of what the description of `tool_search` says of all servers.
const MAX_SERVERS_BYTES: usize = 4096;
/// Bytes of what it says of one server.
const MAX_WORDS_BYTES: usize = 120;
/// What is shorter than this says nothing.
const MIN_WORDS_BYTES: usize = 16;

/// What is left for the line that says how many servers are not named.
const MORE_BYTES: usize = 24;

/// How a model comes to the tools that it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loading {
    /// They join the tools that it is shown, and it calls them by name. `tool_search` answers with
    /// names.
    #[default]
    Listed,
    /// What it is shown stays as it is, for models and caches that allow no other: `tool_search`
    /// answers with definitions, and `tool_call` calls what was found.
    Answered,
}

/// A server whose tools are searched.
#[derive(Clone, Copy, Debug)]
pub struct SearchedServer<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What it is for, in anybody's words.
    pub about: Option<&'a str>,
}

/// How `tool_search` is described to models, as one object of `tools/list`.
///
/// The description names the servers, because nobody searches for what they have no idea of. How many
/// tools a server has is not said: what models are told would be another text whenever one changes.
pub fn tool_search_definition<'a>(servers: impl IntoIterator<Item = SearchedServer<'a>>) -> String {
    tool_search_for(servers, Loading::Answered, usize::MAX)
}

/// The same for models that come to tools in either way, and whose descriptions have at most so many
/// bytes.
pub fn tool_search_for<'a>(
    servers: impl IntoIterator<Item = SearchedServer<'a>>,
    loading: Loading,
    max_description_bytes: usize,
) -> String {
    let servers: Vec<_> = servers.into_iter().collect();
    let then = match loading {
        Loading::Listed => {
            "what was found is among your tools from then on, to be called by its name"
        }
        Loading::Answered => "then call what was found with `tool_call`",
    };
    let mut description = format!(
        "Finds tools by what they are for. Most tools are not listed: search before you say that \
         something cannot be done, {then}. Write the query as a few words for what the tool does and \
         what it works on, or the name of a tool.",
    );
    let room = max_description_bytes.saturating_sub(description.len() + MORE_BYTES);
    push_servers(&mut description, &servers, room.min(MAX_SERVERS_BYTES));
    let mut text = format!(r#"{{"name":"{TOOL_SEARCH}","title":"Search tools","description":"#);
    push_string(&mut text, &description);
    text.push_str(
        r#","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do, in a few words"},"limit":{"type":"integer","minimum":1,"maximum":20,"default":5,"description":"How many tools to find"},"server":{"type":"string","description":"Only tools of this server"}"#,
    );
    if loading == Loading::Answered {
        text.push_str(
            r#","detail":{"type":"string","enum":["full","names"],"default":"full","description":"Whole definitions, or only names with a sentence each"}"#,
        );
    }
    text.push_str(r#"},"required":["query"],"additionalProperties":false},"#);
    text.push_str(
        r#""outputSchema":{"type":"object","properties":{"tools":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"server":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},"inputSchema":{"type":"object"},"annotations":{"type":"object"}},"required":["name","server"]}},"message":{"type":"string"}},"required":["tools"]},"#,
    );
    text.push_str(
        r#""annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}"#,
    );
    text
}

/// How `tool_call` is described to models, as one object of `tools/list`.
pub fn tool_call_definition() -> &'static str {
    r#"{"name":"tool_call","title":"Call a tool","description":"Calls a tool that `tool_search` has found. Its arguments have to fit the inputSchema of that tool.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"The name of the tool, as it was found"},"arguments":{"type":"object","description":"The arguments of the tool"}},"required":["name"],"additionalProperties":false}}"#
}

/// The first sentence of a text, in one line. Headings of Markdown are none, unless there is nothing
/// else.
pub fn first_sentence(text: &str) -> String {
    let text = below_headings(text);
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    // An abbreviation is not the end: what follows a sentence is a new one, or nothing.
    let ends = line.match_indices(['.', '!', '?', '。']);
    let ends = ends.map(|(at, mark)| at + mark.len());
    let end = ends.into_iter().find(|end| {
        let mut rest = line.get(*end..).unwrap_or_default().chars();
        match (rest.next(), rest.next()) {
            (None, _) => true,
            (Some(' '), Some(next)) => !next.is_lowercase(),
            _ => line.get(..*end).is_some_and(|said| said.ends_with('。')),
        }
    });
    let sentence = end.and_then(|end| line.get(..end));
    sentence.unwrap_or(&line).to_owned()
}

/// A text from where its headings end.
fn below_headings(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with('#') {
        let (_, below) = rest.split_once('\n').unwrap_or_default();
        rest = below.trim_start();
    }
    if rest.is_empty() {
        text.trim_start().trim_start_matches('#').trim_start()
    } else {
        rest
    }
}

/// A text with at most so many bytes, cut between words where that can be.
pub(super) fn cut(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max_bytes.saturating_sub('…'.len_utf8()));
    let (shown, _) = text.split_at(end);
    let shown = shown.rsplit_once(' ').map_or(shown, |(shown, _)| shown);
    format!("{}…", shown.trim_end_matches([',', ';', ':', ' ']))
}

/// Says which servers there are: all alike, so that one with many words takes the room of no other.
fn push_servers(text: &mut String, servers: &[SearchedServer<'_>], most: usize) {
    if servers.is_empty() {
        return;
    }
    let begin = text.len();
    text.push_str(" Servers:");
    let of_one = most / servers.len();
    for (number, server) in servers.iter().enumerate() {
        // "\n- NAME: WORDS"
        let room = of_one.saturating_sub(server.name.len() + 5);
        let room = room.min(MAX_WORDS_BYTES);
        let words = server.about.map(first_sentence).unwrap_or_default();
        let words = Some(words).filter(|words| !words.is_empty() && room >= MIN_WORDS_BYTES);
        let line = match words {
            Some(words) => format!("\n- {}: {}", server.name, cut(&words, room)),
            None => format!("\n- {}", server.name),
        };
        if text.len() - begin + line.len() > most {
            let left_out = servers.len() - number;
            let more = format!("\n- and {left_out} more");
            text.push_str(&more);
            return;
        }
        text.push_str(&line);
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
