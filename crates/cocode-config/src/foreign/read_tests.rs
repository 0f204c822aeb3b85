//! Files in the shapes that the real tools write, and files that are wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{HomePlaces, MAX_FOREIGN_BYTES, Place, PlaceScope, Tool, read_foreign};
use crate::entry::{Entry, OAuthEntry, Seconds, Text, Transport};

const CLAUDE: &str = r#"{
  "numStartups": 3,
  "mcpServers": {
    "events": { "type": "sse", "url": "https://example.com/sse" },
    "plain": { "type": "stdio", "command": "/bin/echo", "args": ["hi"], "env": {} }
  },
  "projects": {
    "/src/other": { "mcpServers": { "elsewhere": { "command": "x" } } },
    "/src/project": {
      "allowedTools": [],
      "disabledMcpServers": ["socket"],
      "mcpServers": {
        "files": {
          "type": "stdio",
          "command": "npx",
          "args": ["-y", "server", "/srv"],
          "env": { "TOKEN": "${API_TOKEN}" }
        },
        "web": {
          "type": "http",
          "url": "https://example.com/mcp",
          "headers": { "Authorization": "Bearer ${TOKEN:-none}" },
          "oauth": { "clientId": "abc", "callbackPort": 8123, "scopes": "a b" }
        },
        "socket": { "type": "ws", "url": "wss://example.com/ws" },
        "slow": { "command": "x", "timeout": 5500, "alwaysLoad": true }
      }
    }
  }
}"#;

fn place(scope: PlaceScope) -> Place {
    Place {
        path: PathBuf::from("/me/file"),
        scope,
        project: (scope != PlaceScope::User).then(|| PathBuf::from("/src/project")),
    }
}

/// The servers, and what was said about them.
fn read(tool: Tool, scope: PlaceScope, text: &str) -> (Vec<(String, Entry)>, Vec<String>) {
    match read_foreign(tool, &place(scope), text) {
        Ok(foreign) => {
            let servers = foreign.servers.into_iter();
            let servers = servers.map(|server| (server.name, server.entry));
            let problems = foreign.problems.iter().map(ToString::to_string);
            (servers.collect(), problems.collect())
        }
        Err(problem) => (Vec::new(), vec![problem.to_string()]),
    }
}

fn program(command: &str, args: &[&str]) -> Entry {
    Entry {
        command: Some(command.to_owned()),
        args: words(args),
        ..Entry::default()
    }
}

fn address(url: &str) -> Entry {
    Entry {
        url: Some(url.to_owned()),
        ..Entry::default()
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, Text> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), Text::from(*value)))
        .collect()
}

fn named(servers: Vec<(&str, Entry)>) -> Vec<(String, Entry)> {
    let servers = servers.into_iter();
    servers
        .map(|(name, entry)| (name.to_owned(), entry))
        .collect()
}

#[test]
fn claude_code_has_servers_of_the_user_and_of_each_project() {
    let (user, problems) = read(Tool::ClaudeCode, PlaceScope::User, CLAUDE);
    assert_eq!(problems, Vec::<String>::new());
    let events = Entry {
        transport: Some(Transport::Sse),
        ..address("https://example.com/sse")
    };
    let plain = program("/bin/echo", &["hi"]);
    assert_eq!(user, named(vec![("events", events), ("plain", plain)]));

    let (local, problems) = read(Tool::ClaudeCode, PlaceScope::Local, CLAUDE);
    assert_eq!(problems, Vec::<String>::new());
    let files = Entry {
        env: values(&[("TOKEN", "${API_TOKEN}")]),
        ..program("npx", &["-y", "server", "/srv"])
    };
    let web = Entry {
        transport: Some(Transport::Http),
        headers: values(&[("Authorization", "Bearer ${TOKEN:-none}")]),
        oauth: OAuthEntry {
            client_id: Some("abc".to_owned()),
            callback_port: Some(8123),
            scopes: words(&["a", "b"]),
            ..OAuthEntry::default()
        },
        ..address("https://example.com/mcp")
    };
    let socket = Entry {
        transport: Some(Transport::Ws),
        enabled: Some(false),
        ..address("wss://example.com/ws")
    };
    let slow = Entry {
        tool_timeout_sec: Some(Seconds(5.5)),
        always_load: Some(true),
        ..program("x", &[])
    };
    let servers = vec![
        ("files", files),
        ("web", web),
        ("socket", socket),
        ("slow", slow),
    ];
    assert_eq!(local, named(servers));
}

#[test]
fn every_server_knows_its_line() {
    let foreign = read_foreign(Tool::ClaudeCode, &place(PlaceScope::User), CLAUDE);
    let servers = foreign.map(|foreign| foreign.servers).unwrap_or_default();
    let lines: Vec<_> = servers.iter().map(|server| server.origin.line).collect();
    assert_eq!(lines, [Some(4), Some(5)]);
}

#[test]
fn codex_names_variables_and_expands_nothing() {
    let text = r#"
model = "some"

[mcp_servers.files]
command = "npx"
args = ["-y", "server"]
env_vars = ["A", { name = "B", source = "local" }]
cwd = "/srv"
enabled = false
startup_timeout_sec = 2.5
enabled_tools = ["read"]

[mcp_servers.files.env]
TOKEN = "${API_TOKEN}"

[mcp_servers.files.tools.read]
approval_mode = "approve"

[mcp_servers.web]
url = "https://example.com/mcp"
bearer_token_env_var = "WEB_TOKEN"
http_headers = { A = "b" }
env_http_headers = { C = "D" }
startup_timeout_ms = 1500
scopes = ["a"]
oauth_resource = "https://example.com/"
oauth = { client_id = "abc", callback_port = 4000, callback_url = "http://127.0.0.1:4000/x" }
"#;
    let (servers, problems) = read(Tool::Codex, PlaceScope::User, text);
    let files = Entry {
        env: values(&[("TOKEN", "$${API_TOKEN}")]),
        env_vars: words(&["A", "B"]),
        cwd: Some("/srv".to_owned()),
        enabled: Some(false),
        startup_timeout_sec: Some(Seconds(2.5)),
        enabled_tools: Some(words(&["read"])),
        ..program("npx", &["-y", "server"])
    };
    let web = Entry {
        bearer_token_env_var: Some("WEB_TOKEN".to_owned()),
        headers: values(&[("A", "b")]),
        env_http_headers: BTreeMap::from([("C".to_owned(), "D".to_owned())]),
        startup_timeout_sec: Some(Seconds(1.5)),
        oauth: OAuthEntry {
            client_id: Some("abc".to_owned()),
            callback_port: Some(4000),
            callback_url: Some("http://127.0.0.1:4000/x".to_owned()),
            scopes: words(&["a"]),
            resource: Some("https://example.com/".to_owned()),
            ..OAuthEntry::default()
        },
        ..address("https://example.com/mcp")
    };
    assert_eq!(servers, named(vec![("files", files), ("web", web)]));
    let left_out = "/me/file:16: server `files`, key `tools`: it is left out: cocode asks by \
                    rules of its own";
    assert_eq!(problems, [left_out]);
}

#[test]
fn opencode_has_the_command_line_in_one_list() {
    let text = r#"{
  "$schema": "https://opencode.ai/config.json",
  // Comments and trailing commas are usual here.
  "mcp": {
    "files": {
      "type": "local",
      "command": ["npx", "-y", "server"],
      "environment": { "TOKEN": "{env:API_TOKEN}", "FILE": "{file:./x}" },
      "enabled": false,
      "timeout": 5000,
    },
    "web": {
      "type": "remote",
      "url": "https://example.com/mcp",
      "headers": { "Authorization": "Bearer {env:TOKEN}" },
      "oauth": { "clientId": "abc", "clientSecret": "{env:SECRET}", "scope": "a b" },
    },
    "open": { "type": "remote", "url": "https://example.com/open", "oauth": false },
    "override": { "enabled": false },
  },
}"#;
    let (servers, problems) = read(Tool::OpenCode, PlaceScope::User, text);
    let files = Entry {
        env: values(&[("TOKEN", "${API_TOKEN}")]),
        enabled: Some(false),
        tool_timeout_sec: Some(Seconds(5.0)),
        ..program("npx", &["-y", "server"])
    };
    let web = Entry {
        headers: values(&[("Authorization", "Bearer ${TOKEN}")]),
        oauth: OAuthEntry {
            client_id: Some("abc".to_owned()),
            client_secret_env: Some("SECRET".to_owned()),
            scopes: words(&["a", "b"]),
            ..OAuthEntry::default()
        },
        ..address("https://example.com/mcp")
    };
    let open = address("https://example.com/open");
    let expected = vec![("files", files), ("web", web), ("open", open)];
    assert_eq!(servers, named(expected));
    let about: Vec<_> = problems
        .iter()
        .filter_map(|text| Some(text.split_once("server ")?.1.split_once(": ")?.0))
        .collect();
    assert_eq!(
        about,
        [
            "`files`, key `environment.FILE`",
            "`open`, key `oauth`",
            "`override`"
        ]
    );
}

#[test]
fn editors_ask_for_secrets_and_know_the_workspace() {
    let text = r#"{
  "inputs": [{ "type": "promptString", "id": "api-key", "password": true }],
  "servers": {
    "files": {
      "type": "stdio",
      "command": "${workspaceFolder}/bin/server",
      "env": { "KEY": "${input:api-key}", "HOST": "${env:HOST}", "PORT": 80, "NONE": null },
      "envFile": "${workspaceFolder}/.env"
    },
    "web": { "type": "http", "url": "https://example.com/mcp" },
    "events": { "type": "sse", "url": "https://example.com/sse" }
  }
}"#;
    let (servers, problems) = read(Tool::VsCode, PlaceScope::Project, text);
    let files = Entry {
        env: values(&[("KEY", "${API_KEY}"), ("HOST", "${HOST}"), ("PORT", "80")]),
        ..program("/src/project/bin/server", &[])
    };
    let events = Entry {
        transport: Some(Transport::Sse),
        ..address("https://example.com/sse")
    };
    let web = address("https://example.com/mcp");
    assert_eq!(
        servers,
        named(vec![("files", files), ("web", web), ("events", events)])
    );
    assert_eq!(
        problems,
        [
            "/me/file:8: server `files`, key `envFile`: it is left out: cocode reads no files \
             of variables",
            "/me/file:7: server `files`, key `env.KEY`: VS Code asks for `api-key`; here it \
             is the variable `API_KEY`",
        ]
    );

    let text = r#"{ "mcpServers": { "web": {
        "url": "https://example.com/mcp",
        "headers": { "Authorization": "Bearer ${env:TOKEN}" },
        "auth": { "CLIENT_ID": "abc", "CLIENT_SECRET": "${env:SECRET}", "scopes": ["a"] }
    } } }"#;
    let (servers, problems) = read(Tool::Cursor, PlaceScope::User, text);
    let web = Entry {
        headers: values(&[("Authorization", "Bearer ${TOKEN}")]),
        oauth: OAuthEntry {
            client_id: Some("abc".to_owned()),
            client_secret_env: Some("SECRET".to_owned()),
            scopes: words(&["a"]),
            ..OAuthEntry::default()
        },
        ..address("https://example.com/mcp")
    };
    assert_eq!((servers, problems), (named(vec![("web", web)]), Vec::new()));
}

#[test]
fn zed_has_settings_of_now_and_of_earlier() {
    let text = r#"// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "now": { "command": "server", "args": ["a"], "env": { "A": "$B" }, "timeout": 30 },
    "earlier": {
      "source": "custom",
      "enabled": false,
      "command": { "path": "server", "args": ["b"], "env": {} }
    },
    "web": { "url": "https://example.com/mcp", "oauth": { "client_id": "abc" } },
    "extension": { "enabled": true, "settings": {} }
  }
}"#;
    let (servers, problems) = read(Tool::Zed, PlaceScope::User, text);
    let now = Entry {
        env: values(&[("A", "$B")]),
        tool_timeout_sec: Some(Seconds(30.0)),
        ..program("server", &["a"])
    };
    let earlier = Entry {
        enabled: Some(false),
        ..program("server", &["b"])
    };
    let web = Entry {
        oauth: OAuthEntry {
            client_id: Some("abc".to_owned()),
            ..OAuthEntry::default()
        },
        ..address("https://example.com/mcp")
    };
    assert_eq!(
        servers,
        named(vec![("now", now), ("earlier", earlier), ("web", web)])
    );
    let refused = "/me/file:12: server `extension`: it belongs to an extension of Zed, which \
                   knows how to start it";
    assert_eq!(problems, [refused]);
}

#[test]
fn gemini_has_two_kinds_of_addresses_and_a_list_of_the_excluded() {
    let text = r#"{
  "mcp": { "excluded": ["files"] },
  "mcpServers": {
    "files": { "command": "npx", "args": ["srv"], "env": { "T": "$TOKEN" }, "cwd": "./x" },
    "new": {
      "url": "https://example.com/mcp", "type": "http", "timeout": 5000, "trust": true,
      "description": "Things", "includeTools": ["a"], "excludeTools": ["b"]
    },
    "old": { "httpUrl": "https://example.com/old" },
    "either": { "url": "https://example.com/either" }
  }
}"#;
    let (servers, problems) = read(Tool::GeminiCli, PlaceScope::User, text);
    let files = Entry {
        env: values(&[("T", "${TOKEN}")]),
        cwd: Some("./x".to_owned()),
        enabled: Some(false),
        ..program("npx", &["srv"])
    };
    let new = Entry {
        transport: Some(Transport::Http),
        tool_timeout_sec: Some(Seconds(5.0)),
        description: Some("Things".to_owned()),
        enabled_tools: Some(words(&["a"])),
        disabled_tools: words(&["b"]),
        ..address("https://example.com/mcp")
    };
    let old = Entry {
        transport: Some(Transport::Http),
        ..address("https://example.com/old")
    };
    let either = address("https://example.com/either");
    let expected = vec![
        ("files", files),
        ("new", new),
        ("old", old),
        ("either", either),
    ];
    assert_eq!(servers, named(expected));
    let trust = "/me/file:6: server `new`, key `trust`: it is left out: cocode asks by rules \
                 of its own";
    assert_eq!(problems, [trust]);
}

#[test]
fn claude_desktop_means_every_text_as_it_stands() {
    let text = r#"{ "mcpServers": { "a": { "command": "x", "args": ["${HOME}"] } } }"#;
    let (servers, problems) = read(Tool::ClaudeDesktop, PlaceScope::User, text);
    let expected = named(vec![("a", program("x", &["$${HOME}"]))]);
    assert_eq!((servers, problems), (expected, Vec::new()));
}

#[test]
fn one_broken_server_hides_no_other() {
    let text = r#"{ "mcpServers": {
        "number": 5,
        "": { "command": "x" },
        "empty": {},
        "both": { "command": "x", "url": "https://example.com" },
        "list": { "command": ["x"] },
        "args": { "command": "x", "args": [1] },
        "type": { "type": "carrier-pigeon", "url": "https://example.com" },
        "time": { "command": "x", "timeout": -1 },
        "twice": { "command": "first" },
        "good": { "command": "x", "unheard_of": 1, "cwd": null },
        "twice": { "command": "second" },
        "run": { "command": "x", "env": { "A": "cmd:touch x", "B": "b" } }
    } }"#;
    let (servers, problems) = read(Tool::McpJson, PlaceScope::Project, text);
    let run = Entry {
        env: values(&[("B", "b")]),
        ..program("x", &[])
    };
    let good = program("x", &[]);
    let twice = program("second", &[]);
    assert_eq!(
        servers,
        named(vec![("good", good), ("twice", twice), ("run", run)])
    );
    let lines: Vec<_> = problems
        .iter()
        .filter_map(|text| text.split(':').nth(1)?.parse::<u32>().ok())
        .collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13]);
}

#[test]
fn secrets_in_plain_text_are_neither_copied_nor_shown() {
    let text = r#"{ "mcp": { "web": { "type": "remote", "url": "https://example.com/mcp",
        "oauth": { "clientId": "abc", "clientSecret": "hunter2" } } } }"#;
    let (servers, problems) = read(Tool::OpenCode, PlaceScope::User, text);
    assert_eq!(servers.len(), 1);
    assert!(
        servers
            .iter()
            .all(|(_, entry)| entry.oauth.client_secret_env.is_none())
    );
    assert_eq!(problems.len(), 1);
    assert!(problems.iter().all(|problem| !problem.contains("hunter2")));
}

#[test]
fn files_that_are_no_configuration_are_refused_with_their_line() {
    for (text, expected) in [
        (
            "{\n  \"mcpServers\": {\n",
            "/me/file:2: the file cannot be understood",
        ),
        ("[]", "/me/file:1: the file holds a list"),
        (
            "{\n\"mcpServers\": []}",
            "/me/file:2: the servers are a list",
        ),
    ] {
        let (servers, problems) = read(Tool::McpJson, PlaceScope::Project, text);
        assert!(servers.is_empty());
        assert!(
            problems.iter().all(|found| found.starts_with(expected)),
            "{problems:?}"
        );
        assert_eq!(problems.len(), 1);
    }
    for nothing in [
        "",
        " \n",
        "\u{feff}{}",
        "{\"mcpServers\": null}",
        "// only a comment\n{}",
    ] {
        let read = read(Tool::McpJson, PlaceScope::Project, nothing);
        assert_eq!(read, (Vec::new(), Vec::new()), "{nothing:?}");
    }
}

#[test]
fn deeply_nested_and_huge_files_are_refused() {
    let deep = 100_000;
    for (tool, text) in [
        (Tool::McpJson, "[".repeat(1_000_000)),
        (Tool::McpJson, "{\"a\":".repeat(deep)),
        (Tool::Codex, format!("a = {}", "[".repeat(deep))),
        (Tool::Codex, format!("a = {}", "{a=".repeat(deep))),
        (Tool::Codex, format!("[{}]", vec!["a"; deep].join("."))),
        (Tool::Codex, format!("{} = 1", vec!["a"; deep].join("."))),
        (Tool::McpJson, " ".repeat(MAX_FOREIGN_BYTES + 1)),
    ] {
        let (servers, problems) = read(tool, PlaceScope::Project, &text);
        assert_eq!((servers.len(), problems.len()), (0, 1));
    }
}

#[test]
fn every_tool_has_a_name_and_places() {
    for tool in Tool::ALL {
        assert_eq!(tool.id().parse(), Ok(tool));
    }
    assert!("emacs".parse::<Tool>().is_err());
    let mut places = HomePlaces::of_home("/me", false);
    places.project = Some(PathBuf::from("/src/project"));
    let paths = |tool: Tool, places: &HomePlaces| -> Vec<_> {
        let places = tool.places(places).into_iter();
        places.map(|place| (place.scope, place.path)).collect()
    };
    let at = |scope: PlaceScope, path: &str| (scope, Path::new(path).to_owned());
    assert_eq!(
        paths(Tool::ClaudeCode, &places),
        [
            at(PlaceScope::User, "/me/.claude.json"),
            at(PlaceScope::Project, "/src/project/.mcp.json"),
            at(PlaceScope::Local, "/me/.claude.json"),
        ]
    );
    places.codex_home = Some(PathBuf::from("/codex"));
    places.project = None;
    assert_eq!(
        paths(Tool::Codex, &places),
        [at(PlaceScope::User, "/codex/config.toml")]
    );
    assert_eq!(paths(Tool::McpJson, &places), []);
    let mac = HomePlaces::of_home("/mac", true);
    assert_eq!(
        paths(Tool::ClaudeDesktop, &mac),
        [at(
            PlaceScope::User,
            "/mac/Library/Application Support/Claude/claude_desktop_config.json"
        )]
    );
}
