//! What debugging shows of how a server is reached, and what it does not; how long tools may be
//! silent; and what is assumed where nothing is said.

use super::*;

#[test]
fn debugging_shows_no_arguments_and_no_secrets_of_addresses() {
    for (url, expected) in [
        ("https://example.com/mcp", "https://example.com/mcp"),
        (
            "https://me:hunter2@example.com/mcp?token=hunter2#hunter2",
            "https://…@example.com/mcp?…",
        ),
        ("me:hunter2@example.com#hunter2", "…@example.com?…"),
    ] {
        assert_eq!(without_secrets(url), expected);
    }
}

#[test]
fn debugging_shows_no_commands_and_no_secrets_of_addresses_about_signing_in() {
    let text = || Some("https://me:hunter2@example.com/?hunter2".to_owned());
    let shown = format!(
        "{:?}",
        OAuth {
            callback_url: text(),
            resource: text(),
            client_metadata_url: text(),
            issuer: text(),
            assertion_command: text(),
            idp_issuer: text(),
            idp_token_endpoint: text(),
            ..OAuth::default()
        }
    );
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(shown.matches("https://…@example.com/?…").count(), 6);
}

#[test]
fn what_is_said_of_signing_in_is_found_by_its_name() {
    for known in Registration::ALL {
        assert_eq!(Registration::from_name(known.as_str()), Some(known));
    }
    for known in Grant::ALL {
        assert_eq!(Grant::from_name(known.as_str()), Some(known));
    }
    for known in Dpop::ALL {
        assert_eq!(Dpop::from_name(known.as_str()), Some(known));
    }
    assert_eq!(Registration::from_name("Auto"), None);
    assert_eq!(Grant::from_name(""), None);
    assert_eq!(Dpop::from_name("sometimes"), None);
}

#[test]
fn the_timeout_of_a_tool_is_that_of_its_name_else_of_the_pattern_that_fixes_most_of_it() {
    let mut spec = ServerSpec::program("a".parse().unwrap(), "a", [""; 0]);
    spec.tool_timeout = Duration::from_secs(1);
    assert_eq!(spec.timeout_of("create_issue"), Duration::from_secs(1));
    for (pattern, seconds) in [
        ("*", 2),
        ("create_*", 3),
        ("create_issue", 4),
        ("************", 5),
        ("*_issue", 6),
        ("del*", 7),
        ("*ete", 8),
    ] {
        let timeout = Duration::from_secs(seconds);
        spec.tool_timeouts.insert(pattern.to_owned(), timeout);
    }
    for (tool, seconds) in [
        ("create_issue", 4),
        ("create_label", 3),
        ("close_issue", 6),
        ("create_a_issue", 3),
        ("delete", 8),
        ("other", 2),
        ("create_*", 3),
    ] {
        let timeout = Duration::from_secs(seconds);
        assert_eq!(spec.timeout_of(tool), timeout, "{tool}");
    }
}

#[test]
fn an_address_is_talked_to_as_its_scheme_says() {
    for (url, expected) in [
        ("https://example.com", RemoteTransport::HttpWithFallback),
        ("http://example.com", RemoteTransport::HttpWithFallback),
        ("WSS://example.com", RemoteTransport::WebSocket),
        ("ws://example.com", RemoteTransport::WebSocket),
        ("unix:///run/mcp.sock", RemoteTransport::Unix),
    ] {
        let spec = ServerSpec::remote("a".parse().unwrap(), url);
        let Reach::Remote(remote) = spec.reach else {
            panic!("{url} is an address");
        };
        assert_eq!(remote.transport, expected, "{url}");
        assert_eq!(remote.url, url);
    }
}
