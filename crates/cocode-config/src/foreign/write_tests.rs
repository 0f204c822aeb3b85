//! Our servers in the files of others: what changes, what stays, and what comes back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;

use super::{Change, Place, PlaceScope, Tool, Written, read_foreign, write_foreign};
use crate::entry::{Entry, OAuthEntry, Seconds, Text, Transport};

fn place(scope: PlaceScope) -> Place {
    Place {
        path: PathBuf::from("/me/file"),
        scope,
        project: (scope != PlaceScope::User).then(|| PathBuf::from("/src/project")),
    }
}

fn user() -> Place {
    place(PlaceScope::User)
}

/// The change, or the reason why there is none in place of the text.
fn written(tool: Tool, place: &Place, text: Option<&str>, change: Change<'_>) -> Written {
    write_foreign(tool, place, text, change).unwrap_or_else(|problem| Written {
        text: problem.to_string(),
        names: Vec::new(),
        problems: vec![*problem],
    })
}

fn added(tool: Tool, text: Option<&str>, servers: &[(&str, Entry)]) -> Written {
    let servers: Vec<_> = servers
        .iter()
        .map(|(name, entry)| ((*name).to_owned(), entry.clone()))
        .collect();
    written(tool, &user(), text, Change::Add(&servers))
}

fn said(written: &Written) -> Vec<String> {
    written.problems.iter().map(ToString::to_string).collect()
}

fn read_back(tool: Tool, place: &Place, text: &str) -> Vec<(String, Entry)> {
    let foreign = read_foreign(tool, place, text).unwrap_or_default();
    let servers = foreign.servers.into_iter();
    servers.map(|server| (server.name, server.entry)).collect()
}

fn program(command: &str, args: &[&str]) -> Entry {
    Entry {
        command: Some(command.to_owned()),
        args: args.iter().map(|word| (*word).to_owned()).collect(),
        ..Entry::default()
    }
}

fn address(url: &str) -> Entry {
    Entry {
        url: Some(url.to_owned()),
        ..Entry::default()
    }
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, Text> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), Text::from(*value)))
        .collect()
}

#[test]
fn new_files_have_the_shape_of_the_tool() {
    let files = Entry {
        env: values(&[("TOKEN", "${API_TOKEN}")]),
        ..program("npx", &["-y", "server"])
    };
    for (tool, expected) in [
        (
            Tool::ClaudeCode,
            r#"{
  "mcpServers": {
    "files": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server"],
      "env": {
        "TOKEN": "${API_TOKEN}"
      }
    }
  }
}
"#,
        ),
        (
            Tool::OpenCode,
            r#"{
  "mcp": {
    "files": {
      "type": "local",
      "command": ["npx", "-y", "server"],
      "environment": {
        "TOKEN": "{env:API_TOKEN}"
      }
    }
  }
}
"#,
        ),
        (
            Tool::VsCode,
            r#"{
  "servers": {
    "files": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server"],
      "env": {
        "TOKEN": "${env:API_TOKEN}"
      }
    }
  }
}
"#,
        ),
    ] {
        let new = added(tool, None, &[("files", files.clone())]);
        assert_eq!(new.text, expected);
        assert_eq!(said(&new), Vec::<String>::new());
        assert_eq!(new.names, ["files"]);
    }
    let files = Entry {
        env: values(&[("TOKEN", "${TOKEN}"), ("ROOT", "/srv")]),
        ..files
    };
    let new = added(Tool::Codex, None, &[("files", files)]);
    let expected = r#"[mcp_servers.files]
command = "npx"
args = ["-y", "server"]
env_vars = ["TOKEN"]

[mcp_servers.files.env]
ROOT = "/srv"
"#;
    assert_eq!(new.text, expected);
    assert_eq!(said(&new), Vec::<String>::new());
}

#[test]
fn a_project_of_claude_code_is_a_table_of_the_users_file() {
    let before = "{\n  \"projects\": {\n    \"/src/other\": {}\n  },\n  \"mcpServers\": {}\n}";
    let servers = [("a".to_owned(), program("x", &[]))];
    let local = place(PlaceScope::Local);
    let new = written(
        Tool::ClaudeCode,
        &local,
        Some(before),
        Change::Add(&servers),
    );
    let expected = r#"{
  "projects": {
    "/src/other": {},
    "/src/project": {
      "mcpServers": {
        "a": {
          "type": "stdio",
          "command": "x"
        }
      }
    }
  },
  "mcpServers": {}
}"#;
    assert_eq!(new.text, expected);
    assert_eq!(read_back(Tool::ClaudeCode, &local, &new.text), servers);
    assert_eq!(read_back(Tool::ClaudeCode, &user(), &new.text), []);
}

#[test]
fn comments_order_and_keys_of_others_stay() {
    let before = r#"// mine
{
    "theme": "dark", // why not
    "context_servers": {
        /* the first */
        "first": {
            "command": "old", // still
            "remote": true,
            "env": { "A": "1", "B": "2" },
            "timeout": 30,
        },
        "second": { "url": "https://example.com/mcp" },
    },
    "tab_size": 4,
}
"#;
    let first = Entry {
        env: values(&[("A", "1"), ("C", "3")]),
        ..program("new", &["x"])
    };
    let new = added(Tool::Zed, Some(before), &[("first", first.clone())]);
    let expected = r#"// mine
{
    "theme": "dark", // why not
    "context_servers": {
        /* the first */
        "first": {
            "command": "new", // still
            "remote": true,
            "env": {
                "A": "1",
                "C": "3"
            },
            "args": ["x"],
        },
        "second": { "url": "https://example.com/mcp" },
    },
    "tab_size": 4,
}
"#;
    assert_eq!(new.text, expected);
    let again = added(Tool::Zed, Some(&new.text), &[("first", first)]);
    assert_eq!(again.text, new.text);

    let names = ["first".to_owned(), "nobody".to_owned()];
    let less = written(Tool::Zed, &user(), Some(&new.text), Change::Remove(&names));
    assert!(
        less.text
            .starts_with("// mine\n{\n    \"theme\": \"dark\", // why not\n")
    );
    assert!(!less.text.contains("new"));
    let names: Vec<_> = read_back(Tool::Zed, &user(), &less.text)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["second"]);
}

#[test]
fn comments_and_tables_of_codex_stay() {
    let before = r#"# mine
model = "some" # good

[mcp_servers.web] # the web
url = "https://example.com/old" # move it
startup_timeout_ms = 5
http_headers = { A = "1" }
oauth = { client_id = "abc", of_theirs = "kept" }

[mcp_servers.web.tools.read]
approval_mode = "approve"

[tui]
theme = "dark"
"#;
    let web = Entry {
        headers: values(&[
            ("A", "2"),
            ("Authorization", "Bearer ${TOKEN}"),
            ("B", "${C}"),
        ]),
        oauth: OAuthEntry {
            client_id: Some("abc".to_owned()),
            callback_port: Some(4000),
            callback_url: Some("http://127.0.0.1:4000/callback/x".to_owned()),
            ..OAuthEntry::default()
        },
        ..address("https://example.com/new")
    };
    let new = added(Tool::Codex, Some(before), &[("web", web.clone())]);
    assert_eq!(said(&new), Vec::<String>::new());
    let expected = r#"# mine
model = "some" # good

[mcp_servers.web] # the web
url = "https://example.com/new" # move it
http_headers = { A = "2" }
oauth = { client_id = "abc", of_theirs = "kept", callback_port = 4000, callback_url = "http://127.0.0.1:4000/callback/x" }
bearer_token_env_var = "TOKEN"
env_http_headers = { B = "C" }

[mcp_servers.web.tools.read]
approval_mode = "approve"

[tui]
theme = "dark"
"#;
    assert_eq!(new.text, expected);
    let again = added(Tool::Codex, Some(&new.text), &[("web", web)]);
    assert_eq!(again.text, new.text);

    let names = ["web".to_owned()];
    let less = written(
        Tool::Codex,
        &user(),
        Some(&new.text),
        Change::Remove(&names),
    );
    assert_eq!(
        less.text,
        "# mine\nmodel = \"some\" # good\n\n[tui]\ntheme = \"dark\"\n"
    );
}

#[test]
fn servers_of_codex_may_stand_in_one_line() {
    let before = "mcp_servers = { a = { command = \"x\" } }\n";
    let new = added(Tool::Codex, Some(before), &[("b", program("y", &[]))]);
    let expected = "mcp_servers = { a = { command = \"x\" }, b = { command = \"y\" } }\n";
    assert_eq!(new.text, expected);
}

#[test]
fn line_ends_and_the_mark_of_windows_stay() {
    let before = "\u{feff}{\r\n  \"mcpServers\": {}\r\n}\r\n";
    let new = added(Tool::McpJson, Some(before), &[("a", program("x", &[]))]);
    assert!(new.text.starts_with('\u{feff}'));
    assert_eq!(
        new.text.matches('\n').count(),
        new.text.matches("\r\n").count()
    );

    let before = "model = \"x\"\r\n";
    let new = added(Tool::Codex, Some(before), &[("a", program("x", &["y"]))]);
    let expected = "model = \"x\"\r\n\r\n[mcp_servers.a]\r\ncommand = \"x\"\r\nargs = [\"y\"]\r\n";
    assert_eq!(new.text, expected);
}

#[test]
fn what_a_tool_cannot_say_is_said_to_the_user() {
    let secret = Entry {
        env: values(&[("A", "keyring:a"), ("B", "b")]),
        env_vars: vec!["PASSED".to_owned()],
        protocol: Some("modern".to_owned()),
        ..program("x", &[])
    };
    let new = added(Tool::Zed, None, &[("a", secret)]);
    assert_eq!(
        said(&new),
        [
            "/me/file: server `a`, key `env.A`: it is left out: only cocode can look secrets \
             up",
            "/me/file: server `a`, key `env_vars`: it is left out: Zed has no such setting",
            "/me/file: server `a`, key `protocol`: it is left out: Zed has no such setting",
        ]
    );
    assert_eq!(
        read_back(Tool::Zed, &user(), &new.text),
        [(
            "a".to_owned(),
            Entry {
                env: values(&[("B", "b")]),
                ..program("x", &[])
            }
        )]
    );
}

#[test]
fn servers_that_would_not_work_or_would_come_on_are_not_written() {
    let events = Entry {
        transport: Some(Transport::Sse),
        ..address("https://example.com/sse")
    };
    let socket = address("wss://example.com/ws");
    let web = address("https://example.com/mcp");
    let off = Entry {
        enabled: Some(false),
        ..program("x", &[])
    };
    let variable = program("x", &["${HOME}"]);
    for (tool, entry, reason) in [
        (Tool::Codex, &events, "Codex does not speak HTTP+SSE"),
        (Tool::Zed, &events, "Zed does not speak HTTP+SSE"),
        (Tool::Cursor, &socket, "Cursor does not speak WebSocket"),
        (
            Tool::ClaudeDesktop,
            &web,
            "the file of Claude Desktop has no servers with addresses",
        ),
        (
            Tool::ClaudeCode,
            &off,
            "it is off here, and the file of Claude Code has no switch for that",
        ),
        (
            Tool::Codex,
            &variable,
            "the tool does not expand variables there",
        ),
    ] {
        let before = "\n";
        let new = added(tool, Some(before), &[("a", entry.clone())]);
        assert_eq!(new.names, Vec::<String>::new());
        assert_eq!(new.problems.len(), 1, "{:?}", new.problems);
        assert!(said(&new).iter().all(|said| said.ends_with(reason)));
        assert_eq!(read_back(tool, &user(), &new.text), []);
    }
}

#[test]
fn files_that_cannot_be_understood_are_not_touched() {
    for (tool, text) in [
        (Tool::ClaudeCode, "{ \"mcpServers\": {"),
        (Tool::ClaudeCode, "{ \"mcpServers\": 5 }"),
        (Tool::ClaudeCode, "[]"),
        (Tool::Codex, "mcp_servers = 5"),
        (Tool::Codex, "[mcp_servers"),
    ] {
        let servers = [("a".to_owned(), program("x", &[]))];
        let place = user();
        assert!(write_foreign(tool, &place, Some(text), Change::Add(&servers)).is_err());
    }
}

// === Everything at once ===

fn word() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,6}", "[ -~ü\n]{1,8}", Just("${VAR}".to_owned())]
}

fn name() -> impl Strategy<Value = String> {
    "[A-Z][A-Z_]{0,5}"
}

fn map() -> impl Strategy<Value = BTreeMap<String, Text>> {
    prop::collection::btree_map(name(), word().prop_map(Text), 0..3)
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let program =
        (word(), prop::collection::vec(word(), 0..3), map()).prop_map(|(command, args, env)| {
            Entry {
                command: Some(command),
                args,
                env,
                ..Entry::default()
            }
        });
    let oauth = (prop::option::of("[a-z]{1,4}"), prop::option::of(name()));
    let transport = prop::option::of(prop_oneof![
        Just(Transport::Http),
        Just(Transport::Sse),
        Just(Transport::Ws)
    ]);
    let remote = (
        "[a-z]{1,6}",
        map(),
        transport,
        prop::option::of(name()),
        oauth,
        prop::collection::vec("[a-z]{1,4}", 0..3),
    )
        .prop_map(
            |(host, headers, transport, bearer, (id, secret), scopes)| Entry {
                url: Some(format!("https://{host}/mcp")),
                headers,
                transport,
                bearer_token_env_var: bearer,
                oauth: OAuthEntry {
                    client_id: id,
                    client_secret_env: secret,
                    scopes,
                    ..OAuthEntry::default()
                },
                ..Entry::default()
            },
        );
    let extras = (
        prop::option::of(any::<bool>()),
        prop::option::of((1..100_000_u32).prop_map(|millis| Seconds(f64::from(millis) / 1000.0))),
        prop::option::of(prop::collection::vec("[a-z]{1,4}", 0..3)),
        prop::collection::vec(name(), 0..2),
        prop::option::of(any::<bool>()),
    );
    (prop_oneof![program, remote], extras).prop_map(
        |(entry, (enabled, time, tools, env_vars, always_load))| Entry {
            enabled,
            tool_timeout_sec: time,
            // No other tool has this, so it is always said that it is left out.
            tool_timeouts_sec: time
                .filter(|_| enabled == Some(true))
                .map(|time| ("a".to_owned(), time))
                .into_iter()
                .collect(),
            enabled_tools: tools,
            env_vars: if entry.command.is_some() {
                env_vars
            } else {
                Vec::new()
            },
            always_load,
            ..entry
        },
    )
}

fn any_tool() -> impl Strategy<Value = Tool> {
    (0..Tool::ALL.len()).prop_map(|index| Tool::ALL[index])
}

/// Entries as a tool says them: what it cannot say is gone.
fn as_said_by(tool: Tool, servers: &[(String, Entry)]) -> Vec<(String, Entry)> {
    let new = written(tool, &user(), None, Change::Add(servers));
    read_back(tool, &user(), &new.text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// What a tool can say comes back as it was, without a word, and writing it again changes
    /// nothing.
    #[test]
    fn what_a_tool_can_say_comes_back_as_it_was(
        tool in any_tool(),
        servers in prop::collection::btree_map("[ -~]{1,8}", any_entry(), 0..4),
        earlier in prop::collection::btree_map("[a-z]{1,2}", any_entry(), 0..4),
    ) {
        let servers: Vec<_> = servers.into_iter().collect();
        let servers = as_said_by(tool, &servers);
        let earlier: Vec<_> = earlier.into_iter().collect();
        let before = written(tool, &user(), None, Change::Add(&earlier));
        let new = written(tool, &user(), Some(&before.text), Change::Add(&servers));
        prop_assert_eq!(said(&new), Vec::<String>::new());
        let found = read_back(tool, &user(), &new.text);
        for server in &servers {
            prop_assert!(found.contains(server), "{:?} in {}", server, new.text);
        }
        let again = written(tool, &user(), Some(&new.text), Change::Add(&servers));
        prop_assert_eq!(&again.text, &new.text);
        let names: Vec<_> = servers.iter().map(|(name, _)| name.clone()).collect();
        let less = written(tool, &user(), Some(&new.text), Change::Remove(&names));
        let left = read_back(tool, &user(), &less.text);
        prop_assert!(left.iter().all(|(name, _)| !names.contains(name)));
    }

    /// Of what a tool cannot say, every key is named, and nothing else is lost.
    #[test]
    fn nothing_is_lost_without_a_word(tool in any_tool(), entry in any_entry()) {
        let servers = [("a".to_owned(), entry.clone())];
        let new = written(tool, &user(), None, Change::Add(&servers));
        let Some((_, found)) = read_back(tool, &user(), &new.text).pop() else {
            prop_assert!(new.problems.iter().any(crate::Problem::is_error));
            return Ok(());
        };
        if new.problems.is_empty() {
            prop_assert_eq!(&found.command, &entry.command);
            prop_assert_eq!(&found.args, &entry.args);
            prop_assert_eq!(&found.url, &entry.url);
            prop_assert_eq!(found.enabled.unwrap_or(true), entry.enabled.unwrap_or(true));
            prop_assert_eq!(found.tool_timeout_sec, entry.tool_timeout_sec);
            prop_assert_eq!(&found.tool_timeouts_sec, &entry.tool_timeouts_sec);
            prop_assert_eq!(&found.enabled_tools, &entry.enabled_tools);
            prop_assert_eq!(found.always_load, entry.always_load);
            prop_assert_eq!(&found.oauth, &entry.oauth);
        }
    }

    /// No text makes the editor of files stumble.
    #[test]
    fn any_text_is_read_and_changed_or_refused(
        tool in any_tool(),
        text in r#"[\[\]{}"',:a-c\\/*# =.\r\n-]{0,40}"#,
    ) {
        let servers = [("a".to_owned(), program("x", &["y"]))];
        let read = read_foreign(tool, &user(), &text);
        if let Ok(new) = write_foreign(tool, &user(), Some(&text), Change::Add(&servers)) {
            prop_assert!(read.is_ok());
            prop_assert_eq!(&new.names, &["a".to_owned()]);
            let found = read_back(tool, &user(), &new.text);
            prop_assert!(found.contains(&servers[0]), "{}", new.text);
        }
    }
}
