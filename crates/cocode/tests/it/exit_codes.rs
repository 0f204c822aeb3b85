//! Every way to fail has its exit code, its stable code, and a hint.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;

use cocode_testkit::Script;

use crate::harness::{Finished, Scratch, mcp, mcp_at, program, run};

#[test]
fn refusals_are_failures_of_the_tool_or_else_of_the_server() {
    let server = Script::new()
        .on("tools/call")
        .error(-32602, "bad path")
        .on("prompts/get")
        .error(-32603, "broken inside")
        .on("ping")
        .error(-32601, "unknown")
        .stdio();
    mcp(&["call", "echo"], &server).with_code(1).complains(&[
        "error: the server refused `tools/call`\n",
        "  caused by: bad path (code -32602)\n",
        "  code: server-error (cocode explain server-error)\n",
    ]);
    mcp(&["prompt", "greet"], &server)
        .with_code(3)
        .complains(&["broken inside"]);
    mcp(&["ping"], &server)
        .with_code(3)
        .complains(&["hint: the server does not offer this"]);
    let error = mcp(&["prompt", "greet", "--json"], &server)
        .with_code(3)
        .error();
    assert_eq!(error["code"], "server-error");
    assert_eq!(error["causes"][0], "broken inside (code -32603)");
    assert_eq!(error["exit"], 3);
    assert_eq!(error["rpc"]["code"], -32603);
}

#[test]
fn what_newcomers_type_is_answered_with_what_they_meant() {
    let url = "http://127.0.0.1:1/mcp";
    let address = "comes after `--url`: --url http://127.0.0.1:1/mcp\n";
    for (words, hint) in [
        (&["mcp", "tools", url][..], address),
        (&["mcp", "inspect", url], address),
        (&["mcp", "call", "echo", url], address),
        (&["tools"], "did you mean `cocode mcp tools`?"),
        (
            &["mcp", "call", "echo", "--message", "hi", "--url", url],
            "has no dashes: message=VALUE",
        ),
    ] {
        run(words).with_code(2).complains(&[hint]);
    }
}

#[test]
fn mixed_up_kinds_of_servers_are_hinted_at() {
    let scratch = Scratch::new();
    let directory = scratch.path().to_str().unwrap();
    run(["mcp", "ping", "--", directory])
        .with_code(3)
        .complains(&["hint: this is a directory"]);
    // Answers whatever comes in plain text.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut hello = [0; 1024];
            assert!(connection.read(&mut hello).unwrap() > 0);
            connection.write_all(b"HTTP/1.1 400 No\r\n\r\n").unwrap();
        }
    });
    mcp_at(&["ping"], &format!("https://{address}/mcp"))
        .with_code(3)
        .complains(&["hint: does the server speak plain http?"]);
    mcp(&["ping", "--protocol", "modern"], &Script::new().stdio())
        .with_code(3)
        .complains(&["the server speaks no stateless revision, but 2026-07-28 is wanted"]);
}

#[test]
fn a_server_without_the_two_dashes_is_hinted_at() {
    let hint = "hint: the program that is the server, and its arguments, come after `--`\n";
    for words in [
        &["mcp", "tools", "npx", "-y", "x"][..],
        &["mcp", "ping", "x"],
    ] {
        run(words).with_code(2).complains(&[hint]);
    }
    for words in [
        &["mcp", "ping", "--tiemout", "3", "--", "x"][..],
        &["mcp", "ping", "--tiemout", "3", "--url=http://h"],
        &["completions", "bash", "x"],
    ] {
        let finished = run(words).with_code(2);
        assert!(!finished.stderr.contains("hint:"), "{}", finished.stderr);
    }
}

#[test]
fn usage_errors_come_from_the_command_line_alone() {
    for (words, part) in [
        (&["mcp", "ping"][..], "no server is given"),
        (
            &["mcp", "tools", "--url", "http://h", "--", "x"],
            "both a command and `--url`",
        ),
        (&["mcp", "ping", "--timeout", "0", "--", "x"], "--timeout"),
        (
            &["mcp", "ping", "--protocol", "2020-01-01", "--", "x"],
            "2020-01-01",
        ),
        (&["mcp", "fly"], "fly"),
        (&["mcp"], "Usage"),
        (&["--colour"], "--color"),
    ] {
        let finished = run(words).with_code(2);
        finished.complains(&[part]);
        assert_eq!(finished.stdout, "", "{words:?}");
        // Who typed too little is shown the help, and that is all.
        if words == ["mcp"] {
            assert!(!finished.stderr.contains("code:"), "{}", finished.stderr);
        } else if words.len() > 1 {
            finished.complains(&["code: invalid-usage (cocode explain invalid-usage)"]);
        }
    }
    let error = run(["mcp", "--json", "ping", "--timeout", "0", "--", "x"])
        .with_code(2)
        .error();
    assert_eq!(error["code"], "invalid-usage");
    assert_eq!(error["exit"], 2);
}

#[test]
fn a_missing_program_cannot_be_connected_to() {
    run(["mcp", "ping", "--", "no-such-program-here"])
        .with_code(3)
        .complains(&[
            "error: cannot connect to `no-such-program-here`\n",
            "caused by: program `no-such-program-here` is not in PATH\n",
            "hint: is it installed",
            "code: spawn-failed",
        ]);
    run(["mcp", "ping", "--", "npx -y server"])
        .with_code(3)
        .complains(&["leave out the quotes"]);
}

#[test]
fn the_last_words_of_a_server_that_exits_are_shown() {
    let words = [
        "mcp",
        "ping",
        "--",
        "sh",
        "-c",
        "echo it went boom >&2; exit 3",
    ];
    run(words).with_code(3).complains(&[
        "the server ended with exit code 3",
        "  the last lines that the server wrote to stderr:\n    | it went boom\n",
        "code: server-exited",
    ]);
    let error = run(words
        .iter()
        .map(|word| if *word == "ping" { "--json" } else { word }));
    error.with_code(2);
    let error = run([
        "mcp",
        "--json",
        "ping",
        "--",
        "sh",
        "-c",
        "echo boom >&2; exit 3",
    ])
    .with_code(3)
    .error();
    assert_eq!(error["stderr"][0], "boom");
    let silent = run(["mcp", "ping", "--", "sh", "-c", "exit 4"]).with_code(3);
    silent.complains(&["exit code 4", "wrote nothing to stderr"]);
}

#[test]
fn a_server_that_dies_in_a_call_fails_it() {
    let server = Script::new().on("tools/call").exit(7).stdio();
    mcp(&["call", "echo"], &server).with_code(3).complains(&[
        "the connection ended during `tools/call`",
        "exit code 7",
        "code: server-exited",
    ]);
}

#[test]
fn with_verbose_output_the_server_is_heard_live_and_not_twice() {
    let words = [
        "mcp",
        "-v",
        "ping",
        "--",
        "sh",
        "-c",
        "echo boom >&2; exit 3",
    ];
    let finished = run(words).with_code(3);
    assert!(
        finished.stderr.contains("server: boom\n"),
        "{}",
        finished.stderr
    );
    assert!(!finished.stderr.contains("| boom"), "{}", finished.stderr);
}

#[test]
fn credentials_that_are_needed_have_their_own_code() {
    let server = Script::new()
        .on("*")
        .unauthorized(&[("WWW-Authenticate", "Bearer realm=\"demo\"")])
        .http();
    let finished = mcp_at(
        &["tools", "--header", "Authorization: Bearer hunter2"],
        &format!("{}?key=hunter2", server.url()),
    );
    finished.complains(&[
        "HTTP 401",
        "hint: the given credentials were not accepted",
        "code: auth-required",
    ]);
    assert!(!finished.stderr.contains("hunter2"), "{}", finished.stderr);
    finished.with_code(4);
    let seen = server.requests().all();
    assert_eq!(seen[0].header("authorization"), Some("Bearer hunter2"));
    mcp_at(&["tools"], &server.url())
        .with_code(4)
        .complains(&["--header 'Authorization: Bearer …'"]);
}

#[test]
fn silence_is_a_timeout() {
    let server = Script::new()
        .on("tools/call")
        .ignore()
        .on("tools/list")
        .nth(2)
        .ignore()
        .stdio();
    mcp(&["call", "echo", "--timeout", "0.3"], &server)
        .with_code(5)
        .complains(&[
            "`tools/call` got no answer within 300 ms",
            "hint: `--timeout SECONDS` allows more time",
            "code: request-timeout",
        ]);
    server
        .received()
        .wait_for_blocking(|message| message.is("notifications/cancelled"));
    let mute = Script::new().on("*").ignore().stdio();
    mcp(&["ping", "--connect-timeout", "0.3"], &mute)
        .with_code(5)
        .complains(&[
            "not connected within 300 ms",
            "--connect-timeout",
            "code: connect-timeout",
        ]);
}

#[test]
fn what_a_server_printed_instead_of_messages_is_shown() {
    let words = [
        "mcp",
        "ping",
        "--connect-timeout",
        "0.5",
        "--",
        "sh",
        "-c",
        "echo 'usage: demo'; exec sleep 60",
    ];
    run(words).with_code(5).complains(&[
        "  the server sent lines that are no messages:\n    | usage: demo\n",
        "hint: a server must write nothing but messages to its stdout\n",
        "code: connect-timeout",
    ]);
}

#[test]
fn nobody_at_the_address_cannot_be_connected_to() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    mcp_at(&["ping"], &format!("http://{free}/mcp"))
        .with_code(3)
        .complains(&[
            "code: unreachable",
            "is the server running at this address?",
        ]);
    mcp_at(&["ping"], "unix:///no/such/socket")
        .with_code(3)
        .complains(&["code: unreachable"]);
}

#[test]
fn a_revision_that_the_server_does_not_speak_is_a_mismatch() {
    let server = Script::new().stdio();
    mcp(&["ping", "--protocol", "modern"], &server)
        .with_code(3)
        .complains(&["leave out `--protocol`", "code: version-mismatch"]);
    for (protocol, revision) in [("legacy", "2025-11-25"), ("2024-11-05", "2024-11-05")] {
        let text = mcp(&["inspect", "--protocol", protocol], &server).clean();
        assert!(
            text.contains(&format!("protocol      {revision} (legacy era)\n")),
            "{text}"
        );
    }
}

#[test]
fn messages_over_the_cap_are_refused() {
    let server = Script::new().stdio();
    let big = "a".repeat(3000);
    let words = [
        "call",
        "echo",
        &format!("text={big}"),
        "--max-message-bytes",
        "2000",
    ];
    mcp(&words, &server)
        .with_code(2)
        .complains(&["--max-message-bytes", "code: message-too-large"]);
}

#[test]
fn extra_certificates_that_cannot_be_read_are_a_matter_of_configuration() {
    let mut command = program(["mcp", "ping", "--url", "https://127.0.0.1:9/mcp"]);
    command
        .env("COCODE_CA_FILE", "/no/such/file.pem")
        .stdin(Stdio::null());
    let finished = Finished::of(command.output().unwrap()).with_code(2);
    finished.complains(&["/no/such/file.pem", "COCODE_CA_FILE", "code: http-setup"]);
}
