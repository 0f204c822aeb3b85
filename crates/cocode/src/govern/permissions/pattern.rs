//! What a pattern on the command line means, and whether it can mean any tool at all: a rule that
//! matches nothing looks like protection and is none.

use cocode_core::{Rule, ServerName, ToolName, ToolUse, Verdict, nearest};

use crate::error::{CliError, Code};
use crate::naming;
use crate::target::UNLISTED;
use crate::text::{either, plain};

const PREFIX: &str = "mcp__";

/// The tools that belong to no server.
const BUILT_IN: [&str; 7] = ["read", "list", "find", "grep", "edit", "write", "shell"];

pub(super) fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name)
}

/// `SERVER.TOOL` of a configured server as rules spell it.
pub(super) fn spelled(given: &str, servers: &[&str]) -> Option<String> {
    if given.starts_with(PREFIX) {
        return None;
    }
    let (server, tool) = naming::split(given, servers)?;
    Some(format!("{PREFIX}{server}__{tool}"))
}

/// Refuses a rule that can match nothing. Gives a warning for one that matches nothing yet.
pub(super) fn check(
    kind: Verdict,
    text: &str,
    rule: &Rule,
    servers: &[&str],
) -> Result<Option<String>, CliError> {
    if text.starts_with(PREFIX) {
        return Ok(unmatched(kind, text, servers));
    }
    let is_everything = text.chars().all(|character| character == '*');
    let mut built_in = BUILT_IN.iter();
    // Rules that restrict are compared with whole names too, so that a star may cover `mcp__`.
    let covers_prefix = || {
        let literal = text.split_once('*').map(|(literal, _)| literal);
        kind != Verdict::Allow && literal.is_some_and(|literal| PREFIX.starts_with(literal))
    };
    if is_everything
        || built_in.any(|name| rule.matches(kind, &ToolUse::built_in(name)))
        || covers_prefix()
    {
        return Ok(None);
    }
    let message = format!("`{}` means no tool", plain(text));
    Err(with_spelling(
        CliError::new(Code::InvalidUsage, message),
        text,
        "*",
        servers,
    ))
}

/// Says how the tool that may have been meant is written; `any` stands for a server that is not
/// given.
pub(super) fn with_spelling(error: CliError, text: &str, any: &str, servers: &[&str]) -> CliError {
    let shown = plain(text);
    let dotted = text.split_once('.');
    let dotted = dotted.filter(|(server, tool)| !server.is_empty() && !tool.is_empty());
    let error = if servers.contains(&text) {
        error.hint(format!(
            "`{PREFIX}{shown}__*` means all tools of the server `{shown}`"
        ))
    } else if let Some((server, tool)) = dotted {
        let close = nearest(server, servers.iter().copied());
        let meant = close.first().copied().unwrap_or(server);
        let (meant, tool, server) = (plain(meant), plain(tool), plain(server));
        let error = if server == "*" {
            error
        } else {
            error.hint(format!("there is no server `{server}`"))
        };
        error.hint(format!("write `{PREFIX}{meant}__{tool}`"))
    } else {
        error.hint(format!(
            "write `{PREFIX}{any}__{shown}` for a tool of a server"
        ))
    };
    error.hint(format!("built-in tools: {}", BUILT_IN.join(", ")))
}

/// Why a rule about a server matches nothing as things are, if that is so.
fn unmatched(kind: Verdict, text: &str, servers: &[&str]) -> Option<String> {
    if kind == Verdict::Allow
        && let Some((server, tool)) = naming::split(text, servers)
        && server.contains("__")
    {
        return Some(format!(
            "as one text an allow rule means no server with `__` in its name: in the file, write \
             {{ server = \"{server}\", tool = \"{}\" }} instead",
            plain(&tool)
        ));
    }
    let rest = text.strip_prefix(PREFIX)?;
    let part = rest.split_once("__").map_or(rest, |(server, _)| server);
    if part.is_empty() || part.contains('*') || part == UNLISTED {
        return None;
    }
    let all_tools: Rule = format!("{PREFIX}{part}__*").parse().ok()?;
    let tool = ToolName::new("any");
    let means = |server: &&str| {
        let server: Result<ServerName, _> = server.parse();
        server.is_ok_and(|server| all_tools.matches(kind, &ToolUse::mcp(&server, &tool)))
    };
    if servers.iter().any(means) {
        return None;
    }
    let close = nearest(part, servers.iter().copied());
    let close: Vec<_> = close.iter().map(|name| format!("`{name}`")).collect();
    let meant = if close.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", either(&close))
    };
    Some(format!(
        "no server `{}` is configured, so the rule matches nothing yet{meant}",
        plain(part)
    ))
}

#[cfg(test)]
mod tests {
    use cocode_core::Verdict;

    use super::{check, spelled};

    const SERVERS: [&str; 4] = ["files", "a.b", "a", "x__y"];

    fn checked(kind: Verdict, text: &str) -> Result<Option<String>, Vec<String>> {
        let rule = text.parse().unwrap();
        check(kind, text, &rule, &SERVERS).map_err(|error| error.to_lines())
    }

    #[test]
    fn a_server_and_a_dot_become_the_spelling_of_rules() {
        for (given, expected) in [
            ("files.write_*", Some("mcp__files__write_*")),
            ("a.b.c", Some("mcp__a.b__c")),
            ("a.c", Some("mcp__a__c")),
            ("fles.write", None),
            ("mcp__files__x.y", None),
            ("files", None),
        ] {
            assert_eq!(spelled(given, &SERVERS).as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn what_can_match_something_is_accepted_without_a_word() {
        for text in [
            "*",
            "shell",
            "re*",
            "mcp__*",
            "mcp__files",
            "mcp__files__*",
            "mcp__a.b__c",
            "mcp__f*__x",
            "mcp__*__read_graph",
        ] {
            for kind in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
                assert_eq!(checked(kind, text), Ok(None), "{kind} {text}");
            }
        }
        // The name that models see restricts too, and so does any part of a whole name.
        for text in ["mcp__a_b__c", "mcp__x__y__z", "*delete*", "mcp_*"] {
            assert_eq!(checked(Verdict::Deny, text), Ok(None), "{text}");
        }
    }

    #[test]
    fn what_can_match_nothing_is_refused_with_the_right_spelling() {
        for (text, hint) in [
            ("read_graph", "`mcp__*__read_graph`"),
            ("write_*", "`mcp__*__write_*`"),
            ("files", "`mcp__files__*`"),
            ("fles.write", "`mcp__files__write`"),
            ("zzzzzz.write", "`mcp__zzzzzz__write`"),
        ] {
            let lines = checked(Verdict::Deny, text).unwrap_err().join("\n");
            assert!(lines.contains(hint), "{text}: {lines}");
        }
        assert!(checked(Verdict::Allow, "*delete*").is_err());
    }

    #[test]
    fn a_server_that_is_not_configured_is_warned_of() {
        for text in ["mcp__fles__*", "mcp__fles"] {
            let warning = checked(Verdict::Deny, text).unwrap().unwrap();
            assert!(warning.contains("did you mean `files`?"), "{warning}");
        }
        let warning = checked(Verdict::Deny, "mcp__zzzzzz__x").unwrap().unwrap();
        assert!(!warning.contains("did you mean"), "{warning}");
        // This would allow nothing of the server `x__y`.
        let warning = checked(Verdict::Allow, "mcp__x__y__z").unwrap().unwrap();
        assert!(warning.contains("server = \"x__y\""), "{warning}");
    }
}
