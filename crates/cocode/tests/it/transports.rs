//! The same commands over every transport.

use cocode_testkit::Script;
use serde_json::Value;

use crate::harness::{mcp_at, run};

#[track_caller]
fn check(words: &[&str], url: &str, transport: &str) {
    let report = mcp_at(&[&["inspect", "--json"], words].concat(), url).clean();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["transport"], transport);
    assert_eq!(report["tools"]["count"], 1);
    let text = mcp_at(&[&["call", "echo", "a=1"], words].concat(), url).clean();
    assert_eq!(text, "{\"a\":\"1\"}\n");
}

#[test]
fn streamable_http_in_both_eras() {
    for script in [
        Script::new(),
        Script::modern(),
        Script::dual().event_answers(),
    ] {
        let server = script.http();
        check(&[], &server.url(), "http");
        check(&["--transport", "http"], &server.url(), "http");
    }
}

#[test]
fn an_address_in_the_place_of_a_program_is_understood() {
    let server = Script::new().http();
    let listed = run(["mcp", "tools", "--json", "--", &server.url()]).clean();
    assert!(listed.contains("\"echo\""), "{listed}");
}

#[test]
fn http_with_sse_by_name_or_by_fallback() {
    let server = Script::new().http_sse().http();
    check(&["--transport", "sse"], &server.url(), "sse");
    check(&[], &server.url(), "sse");
    mcp_at(&["ping", "--transport", "http"], &server.url())
        .with_code(3)
        .complains(&["code: http-status"]);
}

#[test]
fn web_sockets() {
    for script in [Script::new(), Script::modern()] {
        let server = script.websocket();
        check(&[], &server.url(), "ws");
        check(&["--transport", "ws"], &server.url(), "ws");
    }
}

#[test]
fn unix_sockets_by_url_or_path() {
    let server = Script::new().unix();
    check(&[], &server.url(), "unix");
    check(
        &["--transport", "unix"],
        server.path().to_str().unwrap(),
        "unix",
    );
}

#[test]
fn programs_start_in_the_directory_that_is_named() {
    let words = [
        "mcp",
        "-v",
        "ping",
        "--cwd",
        "/usr",
        "--",
        "sh",
        "-c",
        "pwd >&2; exit 1",
    ];
    run(words).with_code(3).complains(&["server: /usr\n"]);
    run(["mcp", "ping", "--cwd", "/no/such", "--", "sh"])
        .with_code(3)
        .complains(&["/no/such", "--cwd"]);
}
