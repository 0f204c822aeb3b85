//! Rules by example: which texts are rules, which tools they mean, and under which verdict.

use super::*;
use crate::names::ToolName;

const STRICT: &[Verdict] = &[Verdict::Ask, Verdict::Deny];
const ALL: &[Verdict] = &[Verdict::Allow, Verdict::Ask, Verdict::Deny];
const NONE: &[Verdict] = &[];

fn rule(text: &str) -> Rule {
    text.parse().unwrap()
}

/// The verdicts under which the rule matches the tool of a server.
fn verdicts(rule: &Rule, server: &str, tool: &str) -> Vec<Verdict> {
    let (server, tool) = (server.parse().unwrap(), ToolName::new(tool));
    let tool_use = ToolUse::mcp(&server, &tool);
    let verdicts = ALL.iter().copied();
    verdicts
        .filter(|verdict| rule.matches(*verdict, &tool_use))
        .collect()
}

fn check(text: &str, server: &str, tool: &str, expected: &[Verdict]) {
    let found = verdicts(&rule(text), server, tool);
    assert_eq!(found, expected, "{text} for {tool:?} of {server:?}");
}

#[test]
fn rules_mean_mcp_tools_with_stars_at_any_place() {
    check("*", "github", "create_issue", ALL);
    check("**", "github", "create_issue", ALL);
    check("mcp__*", "github", "create_issue", ALL);
    check("mcp__*", "日本", "", ALL);
    check("mcp__github__*", "github", "create_issue", ALL);
    check("mcp__github__*", "gitlab", "create_issue", NONE);
    check("mcp__github__create_*", "github", "create_issue", ALL);
    check("mcp__github__create_*", "github", "delete_issue", NONE);
    check("mcp__github__create_*", "github", "recreate_issue", NONE);
    check("mcp__*__delete_*", "files", "delete_all", ALL);
    check("mcp__*__delete_*", "files", "undelete_all", NONE);
    check("mcp__git*", "github", "create_issue", ALL);
    check("mcp__git*", "files", "git_log", NONE);
    check("mcp__*delete*", "files", "undelete", ALL);
    check("mcp__*delete*", "delete-server", "x", ALL);
    check("mcp__*delete*", "files", "read", NONE);
    check("mcp__g*__*_i*", "github", "create_issue", ALL);
    check("mcp__my server__read file", "my server", "read file", ALL);
    check("mcp__github__read", "github", "Read", NONE);
}

#[test]
fn a_server_alone_means_all_of_its_tools() {
    check("mcp__github", "github", "create_issue", ALL);
    check("mcp__github", "github2", "create_issue", NONE);
    check("mcp__a_", "a_", "x", ALL);
    check("mcp__a_", "a", "_x", STRICT);
}

#[test]
fn a_built_in_tool_is_meant_by_its_name() {
    let check = |text: &str, name: &str, expected: bool| {
        for verdict in ALL {
            let found = rule(text).matches(*verdict, &ToolUse::built_in(name));
            assert_eq!(found, expected, "{verdict} {text} for {name}");
        }
    };
    check("*", "shell", true);
    check("shell", "shell", true);
    check("sh*", "shell", true);
    check("sh*", "ssh", false);
    check("mcp__*", "shell", false);
    check("mcp__*", "mcp__x__y", false);
    check("mcp__shell", "shell", false);
    check("mcp__x__y", "mcp__x__y", false);
}

#[test]
fn only_strict_rules_read_a_name_in_every_possible_way() {
    // `__` inside names: the text fits, the structure does not.
    check("mcp__a__*", "a__b", "c", STRICT);
    check("mcp__a__b__c", "a__b", "c", STRICT);
    check("mcp__a__b__c", "a", "b__c", ALL);
    check("mcp__a___b", "a_", "b", STRICT);
    check("mcp__a___b", "a", "_b", ALL);
    check("mcp__github", "github__evil", "x", STRICT);
    // A literal does not cover the separator.
    check("mcp__a_*", "a", "b", STRICT);
    check("mcp__a_*", "a_x", "b", ALL);
    check("mcp__*_b", "a", "b", STRICT);
    check("mcp__*_b", "a", "x_b", ALL);
    // A name of built-in tools is not one of any server's tools.
    check("*_file", "files", "read_file", STRICT);
    check("m*", "files", "read_file", STRICT);
    check("*__delete_*", "files", "delete_all", STRICT);
    check("sh*", "files", "shell", NONE);
    // What models see.
    check("mcp__my_server__*", "my server", "read file", STRICT);
    check(
        "mcp__my_server__read_file_1fad3a1e43",
        "my server",
        "read file",
        STRICT,
    );
    check("mcp__my_server__*", "my_server", "read file", ALL);
    check("mcp________6824ab4e32", "日本", "語", STRICT);
    check("mcp____x*", "__x", "y", ALL);
    check("mcp____*", "x", "y", NONE);
}

#[test]
fn the_name_that_a_table_gave_out_counts_for_strict_rules() {
    let (server, tool) = ("s".parse().unwrap(), ToolName::new("a b"));
    let tool_use = ToolUse::mcp(&server, &tool).with_model_name("mcp__s__a_b_0000000001");
    let rule = rule("mcp__s__a_b_0000000001");
    assert!(!rule.matches(Verdict::Allow, &tool_use));
    assert!(rule.matches(Verdict::Ask, &tool_use));
    assert!(rule.matches(Verdict::Deny, &tool_use));
    assert!(!rule.matches(Verdict::Deny, &ToolUse::mcp(&server, &tool)));
}

#[test]
fn a_server_written_apart_is_meant_exactly() {
    let check = |parts: (&str, &str), server: &str, tool: &str, expected: &[Verdict]| {
        let rule = Rule::for_server(parts.0, parts.1).unwrap();
        let found = verdicts(&rule, server, tool);
        assert_eq!(found, expected, "{rule} for {tool:?} of {server:?}");
    };
    check(("a__b", "*"), "a__b", "c", ALL);
    check(("a__b", "*"), "a", "b__c", NONE);
    check(("a", "*"), "a__b", "c", NONE);
    check(("a*", "c"), "a__b", "c", ALL);
    check((" a ", "c "), " a ", "c ", ALL);
    check(("my_server", "*"), "my server", "c", NONE);
    assert!(
        !Rule::for_server("*", "*")
            .unwrap()
            .matches(Verdict::Deny, &ToolUse::built_in("shell"))
    );
}

#[test]
fn all_given_conditions_must_hold() {
    let (server, tool) = ("s".parse().unwrap(), ToolName::new("t"));
    let options = [None, Some(false), Some(true)];
    let pairs = || options.iter().flat_map(|a| options.map(|b| (*a, b)));
    for (read_only, destructive) in pairs() {
        let condition = Condition {
            read_only,
            destructive,
        };
        for (claims_read_only, claims_destructive) in pairs() {
            let hints = Hints {
                read_only: claims_read_only,
                destructive: claims_destructive,
            };
            let expected = (read_only.is_none() || read_only == Some(hints.is_read_only()))
                && (destructive.is_none() || destructive == Some(hints.is_destructive()));
            let tool_use = ToolUse::mcp(&server, &tool).with_hints(hints);
            for text in ["*", "mcp__s__t", "mcp__*"] {
                let rule = rule(text).when(condition);
                assert_eq!(rule.condition(), condition);
                for verdict in ALL {
                    let found = rule.matches(*verdict, &tool_use);
                    assert_eq!(found, expected, "{verdict} {rule} for {hints:?}");
                }
            }
        }
    }
}

#[test]
fn a_tool_without_hints_meets_the_conditions_of_a_dangerous_one() {
    let (server, tool) = ("s".parse().unwrap(), ToolName::new("t"));
    let tool_use = ToolUse::mcp(&server, &tool);
    let destructive = rule("mcp__*").when(Condition {
        destructive: Some(true),
        ..Condition::default()
    });
    let read_only = rule("mcp__*").when(Condition {
        read_only: Some(true),
        ..Condition::default()
    });
    assert!(destructive.matches(Verdict::Deny, &tool_use));
    assert!(!read_only.matches(Verdict::Allow, &tool_use));
}

#[test]
fn a_text_is_refused_with_the_reason() {
    let check = |text: &str, expected: InvalidRule| {
        assert_eq!(text.parse::<Rule>(), Err(expected), "{text:?}");
    };
    check("", InvalidRule::Empty);
    check(" \t ", InvalidRule::Empty);
    check("\u{3000}", InvalidRule::Empty);
    check(&"x".repeat(257), InvalidRule::TooLong { bytes: 257 });
    check(&"é".repeat(129), InvalidRule::TooLong { bytes: 258 });
    let control = |character| InvalidRule::ControlCharacter { character };
    check("a\nb", control('\n'));
    check("mcp__a__\0", control('\0'));
    check("\u{1b}[31m", control('\u{1b}'));
    check(" shell", InvalidRule::SurroundingBlank);
    check("mcp__a__* ", InvalidRule::SurroundingBlank);
    check("mcp__", InvalidRule::NoServer);
    check("mcp____", InvalidRule::NoServer);
    let no_tool = InvalidRule::NoTool {
        server: "github".to_owned(),
    };
    assert_eq!(
        no_tool.to_string(),
        "the permission rule names no tool after `mcp__github__`; \
         `mcp__github__*` means all of its tools"
    );
    check("mcp__github__", no_tool);
    assert!("x".repeat(256).parse::<Rule>().is_ok());
}

#[test]
fn parts_are_refused_with_the_reason() {
    let check = |server: &str, tool: &str, expected: InvalidRule| {
        assert_eq!(Rule::for_server(server, tool), Err(expected));
    };
    check("", "x", InvalidRule::Empty);
    check("x", " ", InvalidRule::Empty);
    check("x", &"y".repeat(257), InvalidRule::TooLong { bytes: 257 });
    check(
        "x\r",
        "y",
        InvalidRule::ControlCharacter { character: '\r' },
    );
}

#[test]
fn a_rule_reads_as_it_was_written() {
    for text in [
        "*",
        "mcp__*",
        "mcp__git*",
        "mcp__github",
        "mcp__github__*",
        "mcp__*__delete_*",
        "sh*",
    ] {
        assert_eq!(rule(text).to_string(), text);
    }
    let conditions = |read_only, destructive| {
        let condition = Condition {
            read_only,
            destructive,
        };
        rule("mcp__*").when(condition).to_string()
    };
    assert_eq!(conditions(Some(true), None), "mcp__* when read_only = true");
    assert_eq!(
        conditions(None, Some(false)),
        "mcp__* when destructive = false"
    );
    assert_eq!(
        conditions(Some(false), Some(true)),
        "mcp__* when read_only = false and destructive = true"
    );
    assert_eq!(
        Rule::for_server("a__b", "c*").unwrap().to_string(),
        "tool c* of server a__b"
    );
}

#[test]
fn only_rules_without_pattern_or_condition_name_a_server() {
    for (text, is_named) in [
        ("mcp__web__look", true),
        ("mcp__web__*", true),
        ("mcp__web", true),
        ("mcp__*", false),
        ("mcp__*__look", false),
        ("mcp__we*__look", false),
        ("*", false),
        ("shell", false),
    ] {
        assert_eq!(rule(text).names_server(), is_named, "{text}");
    }
    let condition = Condition {
        read_only: Some(true),
        destructive: None,
    };
    assert!(!rule("mcp__web").when(condition).names_server());
}
