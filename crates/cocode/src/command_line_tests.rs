//! Command lines of `mcp add`, as typed and as understood.

use clap::CommandFactory as _;

use super::*;
use crate::args::Cli;

/// The words after `cocode mcp add`, as they are understood.
fn read(typed: &str) -> (String, Option<String>) {
    let words = format!("cocode mcp add {typed}");
    // A tilde is a space within a word.
    let words: Vec<OsString> = words
        .split(' ')
        .map(|word| word.replace('~', " ").into())
        .collect();
    let CommandLine { words, note } = understood(&words, &Cli::command());
    let words: Vec<String> = words
        .iter()
        .skip(3)
        .map(|word| word.to_str().unwrap().replace(' ', "~"))
        .collect();
    (words.join(" "), note)
}

#[test]
fn values_and_commands_are_put_where_they_belong() {
    for (typed, expected) in [
        // Several values after one option.
        ("n -e A=1 B=2 -- npx y", "n -e A=1 --env B=2 -- npx y"),
        ("-e A=1 B=2 n -- npx y", "-e A=1 --env B=2 n -- npx y"),
        ("-e A=1 B=2 n npx y", "-e A=1 --env B=2 n -- npx y"),
        ("--env=A=1 B= n npx", "--env=A=1 --env B= n -- npx"),
        ("-eA=1 B=2 n npx", "-eA=1 --env B=2 n -- npx"),
        ("-fe A=1 B=2 n npx", "-fe A=1 --env B=2 n -- npx"),
        ("-e TOKEN n npx", "-e TOKEN n -- npx"),
        (
            "n https://a.example/ -H A:~b C:~d",
            "n https://a.example/ -H A:~b --header C:~d",
        ),
        (
            "-H A:~b C:~d n https://a.example/",
            "-H A:~b --header C:~d n https://a.example/",
        ),
        // A command without `--`.
        ("n npx -y pkg", "n -- npx -y pkg"),
        (
            "n --env A=1 npx -y --env B=2",
            "n --env A=1 -- npx -y --env B=2",
        ),
        ("--scope user n npx --json", "--scope user n -- npx --json"),
        ("n npx -y -- foo", "n -- npx -y -- foo"),
        ("n npx pkg -- -y z", "n -- npx pkg -y z"),
        ("n npx", "n -- npx"),
        // Options after an address are ours.
        (
            "n https://a.example/ --scope user",
            "n https://a.example/ --scope user",
        ),
        (
            "n --url https://a.example/ -s user",
            "n --url https://a.example/ -s user",
        ),
        // What cannot be right is left to be refused.
        ("n https://a.example/ more", "n https://a.example/ more"),
        (
            "n --url https://a.example/ more",
            "n --url https://a.example/ more",
        ),
        ("n -e -- npx A=1", "n -e -- npx A=1"),
        ("n", "n"),
        ("", ""),
        ("--unknown n npx -y", "--unknown n -- npx -y"),
        ("n -- npx -e A=1 B=2", "n -- npx -e A=1 B=2"),
    ] {
        assert_eq!(read(typed).0, expected, "{typed}");
    }
}

#[test]
fn options_that_go_to_the_command_are_mentioned_where_claude_would_take_them() {
    for typed in [
        "n npx pkg --scope user",
        "n npx --scope=user",
        "n npx -s user",
    ] {
        let (_, note) = read(typed);
        assert!(note.unwrap().contains("comes after the command"), "{typed}");
    }
    for typed in [
        "n npx -y pkg --scope user",
        "n -- npx pkg --scope user",
        "n npx pkg -- --scope user",
        "n npx pkg --port 1",
        "--scope user n npx pkg",
    ] {
        assert_eq!(read(typed).1, None, "{typed}");
    }
}

#[test]
fn other_command_lines_stay_as_they_are() {
    for typed in [
        "cocode mcp call add -- x -e A=1 B=2",
        "cocode plugin add folder -y",
        "cocode mcp list",
        "cocode --config add mcp list",
        "cocode mcp help add",
        "cocode",
    ] {
        let words: Vec<OsString> = typed.split(' ').map(Into::into).collect();
        assert_eq!(understood(&words, &Cli::command()).words, words, "{typed}");
    }
    let words = [
        "cocode", "--config", "mcp", "mcp", "-v", "add", "n", "x", "-y",
    ];
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let last = understood(&words, &Cli::command()).words;
    assert_eq!(last.get(6..).unwrap(), ["n", "--", "x", "-y"]);
}
