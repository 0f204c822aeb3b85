//! Lines that are prompts, and lines that are not.

use std::collections::BTreeMap;
use std::time::SystemTime;

use cocode_core::ToolFilter;
use cocode_wire::RawJson;

use super::{PromptCommand, PromptError};
use crate::features::Prompt;
use crate::manager::catalog::{Catalog, ServerCatalog};
use crate::manager::lists::{Asked, Lists};
use crate::pages::Listing;

fn asked() -> Asked {
    Asked {
        connection: Some(1),
        number: 1,
        at: SystemTime::now(),
    }
}

fn catalog() -> Catalog {
    let page = r#"{"prompts":[{"name":"review","arguments":[
        {"name":"branch","required":true},{"name":"focus"},{"name":"depth"}]}]}"#;
    let page = RawJson::parse(page).unwrap();
    let listing = Listing::<Prompt>::from_pages(vec![page]).unwrap();
    let mut lists = Lists::default();
    lists.prompts.update(listing, asked());
    let name = "git".parse().unwrap();
    let server = ServerCatalog::of(&name, &ToolFilter::default(), true, &lists);
    Catalog::new(1, [server])
}

fn check(line: &str, expected: &[(&str, &str)]) {
    let command = PromptCommand::parse(line, &catalog()).unwrap();
    let expected: BTreeMap<String, String> = expected
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    assert_eq!(command.arguments, expected, "{line}");
    assert_eq!(
        (command.server.as_str(), command.prompt.as_str()),
        ("git", "review")
    );
}

fn refused(line: &str) -> PromptError {
    PromptCommand::parse(line, &catalog()).unwrap_err()
}

#[test]
fn words_fill_arguments_by_place_or_by_name() {
    check("/mcp__git__review main", &[("branch", "main")]);
    check(
        "  /mcp__git__review main \"the new parser\" 2 ",
        &[
            ("branch", "main"),
            ("focus", "the new parser"),
            ("depth", "2"),
        ],
    );
    check(
        "/mcp__git__review depth=2 main",
        &[("branch", "main"), ("depth", "2")],
    );
    check(
        r#"/mcp__git__review branch='a b' "focus=x \"y\"""#,
        &[("branch", "a b"), ("focus", "x \"y\"")],
    );
    // What looks like a name and is none is a value.
    check("/mcp__git__review a=b", &[("branch", "a=b")]);
}

#[test]
fn whatever_is_wrong_is_told_with_the_right_use() {
    let usage = "/mcp__git__review BRANCH [FOCUS] [DEPTH]".to_owned();
    assert_eq!(
        refused("/mcp__git__review"),
        PromptError::Missing {
            arguments: vec!["branch".into()],
            usage: usage.clone()
        }
    );
    assert_eq!(
        refused("/mcp__git__review a b c d"),
        PromptError::TooMany {
            word: "d".into(),
            usage: usage.clone()
        }
    );
    assert_eq!(
        refused("/mcp__git__review branch=a branch=b"),
        PromptError::Twice {
            argument: "branch".into(),
            usage
        }
    );
    assert_eq!(refused("/mcp__git__review 'a"), PromptError::Unclosed);
    assert_eq!(refused("/help"), PromptError::NotAPrompt);
    assert_eq!(refused("mcp__git__review"), PromptError::NotAPrompt);
    assert_eq!(
        refused("/mcp__git__reviev main").to_string(),
        "there is no prompt `/mcp__git__reviev`; did you mean `/mcp__git__review`?"
    );
}
