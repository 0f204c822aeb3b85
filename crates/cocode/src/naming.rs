//! Which configured server the words of a command line mean.
//!
//! `SERVER TOOL …`, `SERVER.TOOL …` and the name that models see, `mcp__SERVER__TOOL …`, all work, as do
//! `@SERVER:URI` for resources and `/mcp__SERVER__PROMPT` for prompts. Names of servers may have dots
//! themselves: the longest one that fits is meant.

use cocode_core::nearest;

use crate::args::Verb;
use crate::error::{CliError, Code};
use crate::text::plain;

/// With no more servers than this, an error names all of them.
const MAX_NAMES_SHOWN: usize = 20;

/// Takes the server out of the words of a verb, so that the rest is as if it were given by
/// `--url` or `--`.
pub(crate) fn take_server(verb: &mut Verb, names: &[&str]) -> Result<String, CliError> {
    match verb {
        Verb::Resources { server, .. }
        | Verb::Ping { server, .. }
        | Verb::Inspect { server, .. } => {
            let given = server.take().ok_or_else(|| none_given(names))?;
            whole(&given, names)
        }
        Verb::Tools { words, .. } | Verb::Prompts { words, .. } => first(words, names),
        Verb::Prompt { words, .. } => match words.first() {
            Some(word) if is_command(word) => of_command(word, names),
            _ => first(words, names),
        },
        Verb::Call(call) => first(&mut call.words, names),
        Verb::Read { words, .. } => {
            if let [word] = words.as_mut_slice()
                && word.starts_with('@')
            {
                let (server, uri) = of_reference(word, names)?;
                *word = uri;
                return Ok(server);
            }
            match words.as_slice() {
                [server] if names.contains(&server.as_str()) => {
                    let hint = format!("`cocode mcp resources {server}` lists its resources");
                    let error = CliError::new(Code::InvalidUsage, "no resource is given");
                    return Err(error.hint(hint));
                }
                [] | [_] => return Err(none_given(names).hint("or write @SERVER:URI")),
                _ => {}
            }
            whole(&words.remove(0), names)
        }
        Verb::Complete { words, .. } => {
            if words.len() < 3 {
                return Err(none_given(names));
            }
            whole(&words.remove(0), names)
        }
    }
}

/// Whether a word names a prompt as a command: `/mcp__server__prompt`.
pub(crate) fn is_command(word: &str) -> bool {
    word.starts_with("/mcp__")
}

/// The server of `/mcp__server__prompt`. Of a name that had to be altered, only servers with plain
/// names can be told.
fn of_command(word: &str, names: &[&str]) -> Result<String, CliError> {
    let name = word.trim_start_matches('/');
    if let Some((server, _)) = split(name, names) {
        return Ok(server);
    }
    let rest = name.trim_start_matches("mcp__");
    let given = rest.split_once("__").map_or(rest, |(server, _)| server);
    if names.contains(&given) {
        let message = format!("`{}` names no prompt", plain(word));
        return Err(CliError::new(Code::InvalidUsage, message)
            .hint(format!("`cocode mcp prompts {given}` lists its prompts")));
    }
    Err(unknown(given, names))
}

/// The server and the URI of `@server:uri`; the longest server wins, because names may have colons.
fn of_reference(word: &str, names: &[&str]) -> Result<(String, String), CliError> {
    let text = word.trim_start_matches('@');
    let uri_of = |name: &&&str| {
        let rest = text.strip_prefix(**name)?.strip_prefix(':')?;
        (!rest.is_empty()).then_some(rest)
    };
    let longest = names
        .iter()
        .filter(|name| uri_of(name).is_some())
        .max_by_key(|name| name.len());
    if let Some(name) = longest {
        let uri = uri_of(&name).unwrap_or_default();
        return Ok(((*name).to_owned(), uri.to_owned()));
    }
    let Some((server, _)) = text.split_once(':').filter(|(_, uri)| !uri.is_empty()) else {
        let message = format!("`{}` names no resource", plain(word));
        return Err(CliError::new(Code::InvalidUsage, message).hint("write @SERVER:URI"));
    };
    Err(unknown(server, names))
}

/// No server of this name, where a program may have been meant.
fn neither(given: &str, names: &[&str]) -> CliError {
    // Of `SERVER.TOOL`, only the first part can be a misspelled server.
    let server = given.split_once('.').map_or(given, |(server, _)| server);
    let given = if nearest(given, names.iter().copied()).is_empty() {
        server
    } else {
        given
    };
    unknown(given, names).hint("the program that is the server, and its arguments, come after `--`")
}

/// The server that a word is.
fn whole(given: &str, names: &[&str]) -> Result<String, CliError> {
    if names.contains(&given) {
        return Ok(given.to_owned());
    }
    Err(neither(given, names))
}

/// The server that the first word is or begins with; what is left of that word stays.
fn first(words: &mut Vec<String>, names: &[&str]) -> Result<String, CliError> {
    let Some(word) = words.first_mut() else {
        return Err(none_given(names));
    };
    if names.contains(&word.as_str()) {
        return Ok(words.remove(0));
    }
    let Some((server, rest)) = split(word, names) else {
        return Err(neither(word, names));
    };
    *word = rest;
    Ok(server)
}

/// Splits `SERVER.TOOL` and `mcp__SERVER__TOOL`; the longest server wins.
pub(crate) fn split(word: &str, names: &[&str]) -> Option<(String, String)> {
    let model = word.strip_prefix("mcp__");
    let rest_of = |name: &&&str| {
        let dotted = word
            .strip_prefix(**name)
            .and_then(|rest| rest.strip_prefix('.'));
        let qualified = || model?.strip_prefix(**name)?.strip_prefix("__");
        dotted.or_else(qualified).filter(|rest| !rest.is_empty())
    };
    let longest = names
        .iter()
        .filter(|name| rest_of(name).is_some())
        .max_by_key(|name| name.len())?;
    let rest = rest_of(&longest)?;
    Some(((*longest).to_owned(), rest.to_owned()))
}

/// No server of this name.
pub(crate) fn unknown(given: &str, names: &[&str]) -> CliError {
    let message = format!("there is no server `{}`", plain(given));
    let error = CliError::new(Code::UnknownServer, message);
    let close = nearest(given, names.iter().copied());
    let error = if close.is_empty() {
        error
    } else {
        let close: Vec<String> = close.iter().map(|name| format!("`{name}`")).collect();
        error.hint(format!("did you mean {}?", crate::text::either(&close)))
    };
    with_names(error, names)
}

fn none_given(names: &[&str]) -> CliError {
    let error = CliError::new(Code::InvalidUsage, "no server is given");
    let error = with_names(error, names);
    error.hint("or name a program after `--`, or an address after `--url`")
}

fn with_names(error: CliError, names: &[&str]) -> CliError {
    match names.len() {
        0 => error.hint(
            "no servers are configured: `cocode mcp add NAME -- COMMAND` or `cocode mcp import`",
        ),
        1..=MAX_NAMES_SHOWN => error.hint(format!("configured servers: {}", names.join(", "))),
        n_names => error.hint(format!("`cocode mcp list` lists all {n_names} servers")),
    }
}

#[cfg(test)]
mod tests {
    use super::{of_command, split};

    #[test]
    fn a_server_alone_is_no_prompt_and_is_not_called_unknown() {
        let error = of_command("/mcp__a", &["a", "b"]).unwrap_err();
        assert_eq!(error.message, "`/mcp__a` names no prompt");
        let error = of_command("/mcp__c__d", &["a", "b"]).unwrap_err();
        assert!(error.message.contains("`c`"), "{}", error.message);
    }

    #[test]
    fn the_longest_server_name_wins() {
        let names = ["a", "a.b", "a__b", "x"];
        let check = |word: &str, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(server, rest)| (server.to_owned(), rest.to_owned()));
            assert_eq!(split(word, &names), expected, "{word}");
        };
        check("a.c", Some(("a", "c")));
        check("a.b.c", Some(("a.b", "c")));
        check("a.b", Some(("a", "b")));
        check("mcp__a__c", Some(("a", "c")));
        check("mcp__a__b__c", Some(("a__b", "c")));
        check("y.c", None);
        check("x.", None);
        check("a", None);
    }
}
