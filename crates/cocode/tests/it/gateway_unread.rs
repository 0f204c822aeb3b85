//! A gateway whose output nobody reads.

use serde_json::json;

use crate::gateway::Running;
use crate::home::Home;
use crate::http::ByHand;

/// Requests that make it say far more than a pipe holds and may wait to be written.
const N_CALLS: usize = 600;

#[test]
fn who_does_not_read_what_a_gateway_says_keeps_no_client_waiting() {
    let home = Home::new();
    home.project_file("hello.txt", "good morning\n");
    let mut command = home.command(["gateway", "--listen", ":0", "--json"]);
    let mut gateway = Running::of(command.env("COCODE_LOG", "trace"));
    gateway.until_state("workspace", "ready");
    let client = ByHand::new(gateway.url(), None).initialized();
    for _ in 0..N_CALLS {
        let read = client.call("mcp__workspace__read", &json!({ "path": "hello.txt" }));
        assert!(read["result"].is_object(), "{read}");
    }
    // Whoever reads again is told that something is missing.
    let complaints = gateway.complaints();
    assert_eq!(gateway.end("-TERM").0, Some(0));
    let said = complaints.join().unwrap();
    let missing = "messages were left out, because nobody read them";
    assert!(said.contains(missing), "{} bytes", said.len());
}
