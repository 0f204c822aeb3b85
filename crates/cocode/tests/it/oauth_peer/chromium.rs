//! The whole story with a real browser: Chromium signs in, clicks Allow or Deny, and comes back to
//! our page; then tokens end, are refused, revoked and widened.

use cocode_testkit::{Browser, Decision};
use serde_json::{Value, json};

use crate::harness::Finished;
use crate::sign_in::{NOTES, SignIn};

/// `cocode mcp login`, with Chromium as the browser.
fn browse(signing: &SignIn, decision: Decision) -> Finished {
    let mut command = signing.home.command(["mcp", "login", NOTES]);
    command.env("BROWSER", signing.peer.browser(Browser::Chromium, decision));
    let finished = Finished::of(command.output().unwrap());
    let log = signing.peer.browser_log();
    assert_eq!(log, "", "{finished:?}");
    finished
}

/// What Chromium saw of our page at the last of so many visits.
fn last_page(signing: &SignIn, n_visits: usize) -> Value {
    let mut page = signing.visits(n_visits).pop().unwrap();
    let address = page["url_without_query"].take();
    let address = address.as_str().unwrap();
    assert!(address.starts_with("http://127.0.0.1:"), "{address}");
    assert!(address.ends_with("/callback"), "{address}");
    page
}

/// Our page, without anything that a browser would complain about.
fn page(heading: &str) -> Value {
    json!({
        "url_without_query": null,
        "status": 200,
        "title": format!("{heading} · cocode"),
        "heading": heading,
        "console_errors": [],
        "csp_violations": [],
    })
}

#[test]
fn system_chromium_signs_in_and_everything_that_can_happen_later_happens() {
    let signing = SignIn::new();
    let peer = &signing.peer;
    browse(&signing, Decision::Allow).with_code(0);
    assert_eq!(last_page(&signing, 1), page("Signed in to notes"));
    assert_eq!(signing.scopes(), ["mcp:basic"]);

    // Renewed, and rotated.
    for n_expiries in 1..=2 {
        peer.expire();
        assert_eq!(signing.whoami()["sub"], "alice");
        assert_eq!(peer.count("/tokens/refresh_token/success"), n_expiries);
    }

    // Widened.
    let write = ["call", NOTES, "write_note", "note=hello"];
    let refused = signing.home.mcp(&write).with_code(4);
    refused.complains(&["wants more than you have allowed: mcp:write"]);
    browse(&signing, Decision::Allow).with_code(0);
    assert_eq!(last_page(&signing, 2), page("Signed in to notes"));
    assert_eq!(signing.scopes(), ["mcp:basic", "mcp:write"]);
    signing.home.mcp(&write).with_code(0);

    // Revoked, and signed in again.
    peer.revoke_all();
    let refused = signing.home.mcp(&["call", NOTES, "whoami"]).with_code(4);
    refused.complains(&["hint: sign in with `cocode mcp login notes`"]);
    browse(&signing, Decision::Allow).with_code(0);
    assert_eq!(last_page(&signing, 3), page("Signed in to notes"));
    assert_eq!(signing.whoami()["sub"], "alice");
    assert_eq!(peer.count("/refresh_reuse"), 0);
}

#[test]
fn system_chromium_is_shown_what_a_denial_means() {
    let signing = SignIn::new();
    let denied = browse(&signing, Decision::Deny).with_code(4);
    denied.complains(&["nobody was signed in to `notes`", "denied"]);
    assert_eq!(last_page(&signing, 1), page("Not signed in to notes"));
    signing.home.mcp(&["call", NOTES, "whoami"]).with_code(4);
    assert_eq!(signing.peer.count("/authorizations/access_denied"), 1);
}
