//! What hints come to, and under which texts a tool can be meant.

use super::*;

#[test]
fn absent_hints_are_read_as_the_protocol_says() {
    let check = |read_only, destructive, expected: (bool, bool)| {
        let hints = Hints {
            read_only,
            destructive,
        };
        let effective = (hints.is_read_only(), hints.is_destructive());
        assert_eq!(effective, expected, "{hints:?}");
    };
    check(None, None, (false, true));
    check(None, Some(true), (false, true));
    check(None, Some(false), (false, false));
    check(Some(false), None, (false, true));
    check(Some(false), Some(true), (false, true));
    check(Some(false), Some(false), (false, false));
    check(Some(true), None, (true, false));
    check(Some(true), Some(false), (true, false));
    check(Some(true), Some(true), (true, true));
}

#[test]
fn an_mcp_tool_is_spelled_as_named_and_as_models_see_it() {
    let check = |server: &str, tool: &str, model_name: Option<&str>, expected: &[&str]| {
        let (server, tool) = (server.parse().unwrap(), ToolName::new(tool));
        let mut tool_use = ToolUse::mcp(&server, &tool);
        if let Some(name) = model_name {
            tool_use = tool_use.with_model_name(name);
        }
        let spellings = tool_use.spellings().unwrap();
        let seen = std::cell::RefCell::new(Vec::new());
        let found = spellings.any(|spelling| {
            seen.borrow_mut().push(spelling.to_owned());
            false
        });
        assert!(!found);
        assert_eq!(seen.into_inner(), expected);
    };
    check("git", "log", None, &["mcp__git__log"]);
    check("git", "log", Some("x"), &["mcp__git__log", "x"]);
    check(
        "my server",
        "read file",
        None,
        &[
            "mcp__my server__read file",
            "mcp__my_server__read_file_1fad3a1e43",
        ],
    );
}

#[test]
fn a_built_in_tool_has_its_name_alone() {
    assert!(ToolUse::built_in("shell").spellings().is_none());
}
