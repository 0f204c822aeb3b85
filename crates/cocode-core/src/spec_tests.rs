//! What debugging shows of how a server is reached, and what it does not.

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
