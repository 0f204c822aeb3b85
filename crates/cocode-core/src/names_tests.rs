//! Which texts may name a server, and that tool names are kept as sent.

use super::*;

#[test]
fn a_server_name_keeps_the_configured_text() {
    for text in [
        "files",
        "my server",
        "日本",
        "a__b",
        "-",
        "x".repeat(128).as_str(),
    ] {
        assert_eq!(text.parse::<ServerName>().unwrap().as_str(), text);
    }
}

#[test]
fn a_server_name_is_refused_with_the_reason() {
    let check = |text: &str, expected: InvalidServerName| {
        assert_eq!(text.parse::<ServerName>(), Err(expected), "{text:?}");
    };
    check("", InvalidServerName::Empty);
    check(&"x".repeat(129), InvalidServerName::TooLong { bytes: 129 });
    check(&"é".repeat(65), InvalidServerName::TooLong { bytes: 130 });
    check(
        "a\nb",
        InvalidServerName::ControlCharacter { character: '\n' },
    );
    check(
        "\u{1b}[31m",
        InvalidServerName::ControlCharacter {
            character: '\u{1b}',
        },
    );
    check(
        "a\u{85}",
        InvalidServerName::ControlCharacter {
            character: '\u{85}',
        },
    );
}

#[test]
fn any_text_is_a_tool_name() {
    for text in ["", "read", "a b\n", "日本"] {
        assert_eq!(ToolName::new(text).as_str(), text);
    }
}

#[test]
fn names_align_in_columns() {
    assert_eq!(format!("{:<6}|", ToolName::new("read")), "read  |");
    assert_eq!(
        format!("{:>6}|", "git".parse::<ServerName>().unwrap()),
        "   git|"
    );
}
