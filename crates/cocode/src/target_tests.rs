//! Which server the options of the command line mean.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use cocode_client::{Target, Timeouts};
use cocode_core::ServerSpec;

use super::{Server, adjusted, deadlines, log_level, timeouts, unlisted};
use crate::args::{Cli, Command, McpVerb, OutputArgs, TargetArgs};
use crate::environment::Environment;
use crate::error::CliError;
use crate::printer::Printer;

fn args(words: &[&str]) -> TargetArgs {
    let words = ["cocode", "mcp", "ping"].iter().chain(words);
    let Some(Command::Mcp(verb)) = Cli::try_parse_from(words).unwrap().command else {
        panic!("not an mcp command");
    };
    let McpVerb::Use(verb) = verb.0.verb else {
        panic!("not a verb for servers");
    };
    verb.target().clone()
}

fn server(words: &[&str]) -> Result<Server, CliError> {
    let environment = Environment::read();
    let printer = Arc::new(Printer::new(&OutputArgs::default(), &environment));
    Server::of(&args(words), &environment.http, &printer)
}

#[track_caller]
fn kind(words: &[&str]) -> (&'static str, String, bool) {
    let Server {
        target,
        shown,
        sse_fallback,
    } = server(words).unwrap();
    let kind = match target {
        Target::Stdio(_) => "stdio",
        Target::Http(_) => "http",
        Target::LegacySse(_) => "sse",
        Target::WebSocket(_) => "ws",
        Target::Unix(_) => "unix",
        _ => "other",
    };
    (kind, shown, sse_fallback)
}

#[test]
fn the_transport_follows_from_the_address_or_is_named() {
    for (words, expected, shown, fallback) in [
        (&["--", "server", "--token=x"][..], "stdio", "server", false),
        (
            &["--transport", "stdio", "--", "a/b"],
            "stdio",
            "a/b",
            false,
        ),
        (&["--url", "http://h/mcp"], "http", "http://h/mcp", true),
        (
            &["--url", "https://h/mcp", "--transport", "http"],
            "http",
            "https://h/mcp",
            false,
        ),
        (
            &["--url", "https://h/sse", "--transport", "sse"],
            "sse",
            "https://h/sse",
            false,
        ),
        (&["--url", "wss://h/ws"], "ws", "wss://h/ws", false),
        (&["--url", "unix:///tmp/a%20b"], "unix", "/tmp/a b", false),
        (
            &["--url", "/tmp/a", "--transport", "unix"],
            "unix",
            "/tmp/a",
            false,
        ),
        (
            &["--url", "https://u:p@h/mcp?key=k#f"],
            "http",
            "https://h/mcp?…",
            true,
        ),
    ] {
        assert_eq!(
            kind(words),
            (expected, shown.to_owned(), fallback),
            "{words:?}"
        );
    }
}

#[test]
fn servers_that_make_no_sense_are_refused_without_repeating_secrets() {
    for words in [
        &[][..],
        &["--url", "http://h", "--", "server"],
        &["--url", "hunter2"],
        &["--url", "ftp://hunter2"],
        &["--url", "ws://h/?hunter2", "--transport", "http"],
        &["--url", "http://h", "--transport", "stdio"],
        &["--url", "http://h", "--transport", "unix"],
        &["--url", "unix://host/path"],
        &["--url", "http://h", "--env", "A=hunter2"],
        &["--url", "http://h", "--cwd", "/"],
        &["--url", "http://h", "--header", "hunter2"],
        &["--url", "http://h", "--header", "a b: hunter2"],
        &["--url", "http://h", "--header", "a: hunter2\nb: c"],
        &["--url", "unix:///a", "--header", "a: hunter2"],
        &["--header", "a: hunter2", "--", "server"],
        &["--transport", "ws", "--", "server"],
        &["--env", "=hunter2", "--", "server"],
        &["--env", "COCODE_NO_SUCH_VARIABLE", "--", "server"],
    ] {
        match server(words) {
            Ok(server) => panic!("{words:?} was taken for {server:?}"),
            Err(error) => {
                let shown = error.to_lines().join("\n");
                assert_eq!(error.exit as u8, 2, "{words:?}");
                assert!(!shown.contains("hunter2"), "{words:?}: {shown}");
            }
        }
    }
}

#[test]
fn header_values_are_not_shown_by_debug_output() {
    let server = server(&[
        "--url",
        "http://h",
        "--header",
        "Authorization: Bearer hunter2",
    ])
    .unwrap();
    assert!(!format!("{server:?}").contains("hunter2"));
}

#[test]
fn variables_are_set_or_passed_on() {
    let words = [
        "--env",
        "A=1=2",
        "--env",
        "PATH=/nowhere",
        "--env",
        "A=3",
        "--",
        "server",
    ];
    let Target::Stdio(stdio) = server(&words).unwrap().target else {
        panic!("not a program");
    };
    let value = |name: &str| {
        let mut found = stdio.process.env.iter().filter(|(other, _)| other == name);
        let value = found
            .next()
            .map(|(_, value)| value.to_string_lossy().into_owned());
        assert!(found.next().is_none(), "{name} is there twice");
        value
    };
    assert_eq!(value("A").as_deref(), Some("3"));
    assert_eq!(value("PATH").as_deref(), Some("/nowhere"));
    assert_eq!(value("CARGO_MANIFEST_DIR"), None);
}

/// A server as these words want it used.
fn spec(words: &[&str]) -> ServerSpec {
    let words = [words, &["--", "server"]].concat();
    let args = args(&words);
    adjusted(unlisted(&args).unwrap(), &args)
}

#[test]
fn timeouts_bound_requests_and_calls() {
    let words = ["--timeout", "7200", "--connect-timeout", "0.5"];
    let hours = Duration::from_hours(2);
    let args = args(&words);
    assert_eq!(timeouts(&args).request, hours);
    let limits = deadlines(&args).unwrap();
    assert_eq!((limits.idle, limits.total), (hours, hours));
    assert_eq!(spec(&words).connect_timeout, Duration::from_millis(500));
}

#[test]
fn a_timeout_shortens_connecting_unless_that_has_its_own() {
    let usual = Timeouts::default().connect;
    for (words, expected) in [
        (&["--timeout", "2"][..], Duration::from_secs(2)),
        (&["--timeout", "7200"], usual),
        (
            &["--timeout", "2", "--connect-timeout", "90"],
            Duration::from_secs(90),
        ),
        (&[], usual),
    ] {
        assert_eq!(spec(words).connect_timeout, expected, "{words:?}");
    }
}

#[test]
fn verbosity_asks_the_server_for_log_messages() {
    for (verbose, expected) in [(0, None), (1, Some("info")), (2, Some("debug"))] {
        assert_eq!(log_level(verbose).as_deref(), expected);
    }
}
