//! The two spellings, by example.

use super::*;

fn server(name: &str) -> ServerName {
    name.parse().unwrap()
}

fn plain_text(server_name: &str, tool: &str) -> Option<String> {
    plain(&server(server_name), &ToolName::new(tool)).map(|name| name.to_string())
}

fn hashed_text(server_name: &str, tool: &str) -> String {
    hashed(&server(server_name), &ToolName::new(tool), 0, |_, _, _| {
        0xabc
    })
    .to_string()
}

#[test]
fn a_plain_pair_is_spelled_verbatim() {
    let check = |server: &str, tool: &str, expected: &str| {
        assert_eq!(plain_text(server, tool).as_deref(), Some(expected));
    };
    check("files", "read", "mcp__files__read");
    check(
        "my-server_2",
        "Read_File-v2",
        "mcp__my-server_2__Read_File-v2",
    );
    // The tool may hold separators: the first one is the server's end.
    check("a", "b__c", "mcp__a__b__c");
    check("a", "_b", "mcp__a___b");
    check("_a", "b", "mcp___a__b");
    check("s", &"t".repeat(56), &format!("mcp__s__{}", "t".repeat(56)));
    // Close to the shape of a hash, but not it.
    check("s", "t_012345678", "mcp__s__t_012345678");
    check("s", "t_ABCDEF0123", "mcp__s__t_ABCDEF0123");
    check("s", "t-0123456789", "mcp__s__t-0123456789");
}

#[test]
fn a_pair_that_could_be_mistaken_is_not_plain() {
    for (server, tool) in [
        ("a__b", "c"),
        ("a_", "b"),
        ("a", ""),
        ("a b", "c"),
        ("a", "c.d"),
        ("é", "c"),
        ("a", "日本"),
        ("s", "t_0123456789"),
        ("s", "0123456789"),
        ("s", "_abcdef0123"),
        ("s", &"t".repeat(57)),
    ] {
        assert_eq!(plain_text(server, tool), None, "{server:?} {tool:?}");
    }
}

#[test]
fn a_hashed_spelling_is_sanitized_and_closed_with_the_hash() {
    assert_eq!(
        hashed_text("my server", "lire é.x"),
        "mcp__my_server__lire___x_0000000abc"
    );
    assert_eq!(hashed_text("s", ""), "mcp__s___0000000abc");
    assert_eq!(hashed_text("日本", "語"), "mcp________0000000abc");
}

#[test]
fn a_long_tool_leaves_the_server_recognizable() {
    let check = |server_bytes: usize, tool_bytes: usize, kept: (usize, usize)| {
        let name = hashed_text(&"s".repeat(server_bytes), &"t".repeat(tool_bytes));
        let (server, tool) = (name.matches('s').count(), name.matches('t').count());
        assert_eq!((server, tool), kept, "{name}");
        assert!(name.len() <= MAX_QUALIFIED_NAME_BYTES, "{name}");
    };
    check(128, 300, (16, 30));
    check(5, 300, (5, 41));
    check(128, 3, (43, 3));
    check(20, 30, (16, 30));
    check(20, 26, (20, 26));
    check(128, 0, (46, 0));
}

#[test]
fn the_hash_is_forty_bits_of_the_whole_pair() {
    let hash = |server_name: &str, tool: &str, salt: u64| {
        sha256(&server(server_name), &ToolName::new(tool), salt)
    };
    let pairs = [
        hash("ab", "c", 0),
        hash("a", "bc", 0),
        hash("ab", "c", 1),
        hash("ab", "C", 0),
    ];
    for (index, left) in pairs.iter().enumerate() {
        assert!(*left < 1 << 40);
        assert!(!pairs.iter().skip(index + 1).any(|right| left == right));
    }
}
