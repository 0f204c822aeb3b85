//! Signing out while somebody else uses the sign-in: a gateway or a daemon lets go of it at once.

use serde_json::json;

use crate::fronts::{Client, wait_while};
use crate::gateway::Running;
use crate::sign_in::{NOTES, SignIn};

#[test]
fn a_gateway_lets_go_of_what_another_process_has_signed_out_of() {
    let signing = SignIn::new();
    signing.login(&[]).with_code(0);
    let mut gateway = Running::start(&signing.home, &[]);
    gateway.until_ready(&[NOTES]);
    let url = gateway.server(NOTES);
    let call = ["call", "whoami", "--json", "--url", &url];
    let called = signing.home.mcp(&call).with_code(0);
    assert!(called.stdout.contains("alice"), "{}", called.stdout);
    let out = signing.home.mcp(&["logout", NOTES]).clean();
    assert_eq!(out, "signed out of `notes`\n");
    // It says so by itself, before anybody has asked for anything, and tries nothing with the old token.
    gateway.until_state(NOTES, "needs-auth");
    let refused = signing.home.mcp(&call);
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    assert!(!refused.stdout.contains("alice"), "{}", refused.stdout);
    let status = signing.home.json(&["gateway", "status"]);
    assert_eq!(status["servers"]["needsAuth"], json!(1), "{status}");
    // Whoever signs in again is let in again.
    signing.login(&[]).with_code(0);
    gateway.until_state(NOTES, "ready");
    let called = signing.home.mcp(&call).with_code(0);
    assert!(called.stdout.contains("alice"), "{}", called.stdout);
    assert_eq!(gateway.end("-TERM").0, Some(0));
}

#[test]
fn a_daemon_lets_go_of_it_as_well() {
    let signing = SignIn::new();
    signing.login(&[]).with_code(0);
    let home = &signing.home;
    let mut front = Client::start(&mut home.command(["mcp", "serve", "--server", NOTES]));
    front.open(&json!({}));
    front.skip_notifications();
    let answer = front.ask(1, "tools/call", &json!({"name": "whoami", "arguments": {}}));
    assert!(answer.to_string().contains("alice"), "{answer}");
    home.mcp(&["logout", NOTES]).clean();
    let state = || home.json(&["mcp", "daemon", "status"])["servers"][0]["state"].clone();
    wait_while(|| state() != json!("needs-auth"));
    let answer = front.ask(2, "tools/call", &json!({"name": "whoami", "arguments": {}}));
    assert!(!answer.to_string().contains("alice"), "{answer}");
    front.leave();
    home.mcp(&["daemon", "stop"]).with_code(0);
}
