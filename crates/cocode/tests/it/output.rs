//! What surrounds results: help, files for shells and manuals, logs, colors, and readers that leave.

use std::io::{BufRead as _, BufReader, Read as _};

use cocode_testkit::Script;
use serde_json::Value;

use crate::harness::{Finished, Scratch, command, mcp, received, run, start};

const VERBS: [&str; 9] = [
    "tools",
    "call",
    "resources",
    "read",
    "prompts",
    "prompt",
    "complete",
    "ping",
    "inspect",
];

#[test]
fn help_names_every_verb_and_exit_code() {
    let help = run(["mcp", "--help"]).clean();
    for verb in VERBS {
        assert!(
            help.lines()
                .any(|line| line.split_whitespace().next() == Some(verb)),
            "{verb}: {help}"
        );
    }
    assert!(run(["help"]).clean().contains("130 interrupted"));
    assert!(run(["help", "mcp", "call"]).clean().contains("key:=json"));
    assert_eq!(
        run(["--version"]).clean(),
        format!("cocode {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn every_error_code_is_explained_by_the_program_itself() {
    let list = run(["explain"]).clean();
    assert!(
        list.lines()
            .any(|line| line.starts_with("tool-error ") && line.contains("reported that it failed")),
        "{list}"
    );
    for line in list.lines() {
        let code = line.split_whitespace().next().unwrap();
        let page = run(["explain", code]).clean();
        assert!(page.starts_with(&format!("# {code}\n")), "{page}");
    }
    let page: Value =
        serde_json::from_str(&run(["explain", "--json", "unreachable"]).clean()).unwrap();
    assert_eq!(page["code"], "unreachable");
    run(["explain", "unreachabel"])
        .with_code(2)
        .complains(&["'unreachable'", "code: invalid-usage"]);
}

#[test]
fn completions_and_manual_pages_are_generated() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).clean();
        assert!(
            script.contains("inspect") && script.contains("connect-timeout"),
            "{shell}"
        );
    }
    assert!(run(["man"]).clean().contains(".TH cocode 1"));
    let scratch = Scratch::new();
    let directory = scratch.path().join("pages");
    run(["man".as_ref(), "--out".as_ref(), directory.as_os_str()]).clean();
    for verb in VERBS {
        let page = std::fs::read_to_string(directory.join(format!("cocode-mcp-{verb}.1")));
        assert!(page.unwrap().contains(verb), "{verb}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let server = Script::new().tools(20_000, 10_000).stdio();
    let mut child = start(&mut command(&["tools"], &server));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.starts_with("tool-0 "), "{line}");
    drop(stdout);
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(stderr, "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    // Only Linux has a disk that is always full.
    let Ok(full) = full else { return };
    let server = Script::new().stdio();
    let mut command = command(&["tools"], &server);
    let finished = Finished::of(command.stdout(full).output().unwrap()).with_code(2);
    finished.complains(&["cannot write to stdout", "code: file-error"]);
}

#[test]
fn logs_go_to_stderr_or_a_file_and_never_to_stdout() {
    let server = Script::new().stdio();
    let quiet = mcp(&["ping", "--json"], &server).clean();
    let loud = mcp(&["ping", "--json", "-vv"], &server).with_code(0);
    assert_eq!(loud.stdout.lines().count(), quiet.lines().count());
    loud.complains(&["DEBUG cocode_client"]);
    let scratch = Scratch::new();
    let path = scratch.path().join("log");
    mcp(&["ping", "--log-file", path.to_str().unwrap()], &server).clean();
    let log = std::fs::read_to_string(path).unwrap();
    assert!(log.contains("DEBUG cocode_client"), "{log}");
}

#[test]
fn the_log_filter_comes_from_a_variable_too() {
    let server = Script::new().stdio();
    let with = |filter: &str| {
        let mut command = command(&["ping"], &server);
        Finished::of(command.env("COCODE_LOG", filter).output().unwrap())
    };
    with("cocode_client=debug")
        .with_code(0)
        .complains(&["DEBUG cocode_client"]);
    with("not=a=filter").with_code(2).complains(&["COCODE_LOG"]);
}

#[test]
fn log_messages_of_the_server_are_shown_when_asked() {
    let server = Script::new()
        .on("ping")
        .notify(
            "notifications/message",
            r#"{"level":"info","logger":"db","data":"ready\u001b"}"#,
        )
        .result("{}")
        .stdio();
    assert!(!mcp(&["ping"], &server).clean().contains("ready"));
    mcp(&["ping", "-v"], &server)
        .with_code(0)
        .complains(&["server info db: ready\u{fffd}\n"]);
    received(&server, 2, "ping");
    let asked = server
        .received()
        .count(|message| message.is("logging/setLevel"));
    assert_eq!(asked, 1);
}

#[test]
fn colors_are_used_only_where_they_are_wanted() {
    let server = Script::new().stdio();
    assert!(!mcp(&["tools"], &server).clean().contains('\u{1b}'));
    let colored = mcp(&["tools", "--color", "always"], &server).clean();
    assert!(colored.starts_with("\u{1b}[1mecho\u{1b}[0m"), "{colored:?}");
    let failed = run(["mcp", "--color=always", "ping"]).with_code(2);
    failed.complains(&["\u{1b}[1;31merror:\u{1b}[0m no server is given"]);
}

#[test]
fn escape_sequences_of_a_server_do_not_reach_lists_and_errors() {
    let server = Script::new()
        .on("tools/list")
        .result(r#"{"tools":[{"name":"a\u001b[2Jb","description":"c\u0007d","inputSchema":{}}]}"#)
        .on("ping")
        .error(-1, "e\u{1b}[2Jf")
        .stdio();
    assert_eq!(
        mcp(&["tools"], &server).clean(),
        "a\u{fffd}[2Jb  c\u{fffd}d\n"
    );
    let failed = mcp(&["ping"], &server).with_code(3);
    assert!(!failed.stderr.contains('\u{1b}'), "{}", failed.stderr);
}

#[test]
fn servers_see_only_the_variables_that_are_meant_for_them() {
    let script = "env >&2; exit 1";
    let words = [
        "mcp", "-v", "ping", "--env", "A=1", "--env", "PASSED", "--", "sh", "-c", script,
    ];
    let mut command = crate::harness::program(words);
    command
        .env("PASSED", "2")
        .env("SECRET", "hunter2")
        .env("LC_ALL", "C");
    let finished = Finished::of(command.output().unwrap()).with_code(3);
    finished.complains(&[
        "server: A=1\n",
        "server: PASSED=2\n",
        "server: LC_ALL=C\n",
        "server: PATH=",
    ]);
    assert!(!finished.stderr.contains("hunter2"), "{}", finished.stderr);
}
