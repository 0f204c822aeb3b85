//! Adding, listing, showing, switching and removing servers.

use serde_json::json;

use crate::home::Home;

fn read(path: std::path::PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn what_users_of_other_tools_type_is_understood() {
    let home = Home::new();
    for words in [
        // As in `claude mcp add`.
        &["add", "c1", "--", "npx", "-y", "server"][..],
        &["add", "--transport", "http", "c2", "https://a.example/mcp"],
        &[
            "add",
            "-t",
            "sse",
            "c3",
            "https://a.example/sse",
            "-H",
            "X-Key: 1",
        ],
        &[
            "add", "-s", "user", "-e", "A=b", "c4", "--", "node", "s.js", "--flag",
        ],
        &["add", "c5", "node", "server.js"],
        &[
            "add-json",
            "c6",
            r#"{"type":"stdio","command":"node","args":["s.js"],"env":{"A":"b"}}"#,
        ],
        // As in `codex mcp add`.
        &["add", "x1", "--env", "A=b", "--", "npx", "-y", "server"],
        &[
            "add",
            "x2",
            "--url",
            "https://a.example/mcp",
            "--bearer-token-env-var",
            "TOKEN",
        ],
        &[
            "add",
            "x3",
            "--url",
            "https://a.example/mcp",
            "--oauth-client-id",
            "id",
        ],
    ] {
        home.mcp(words).with_code(0);
    }
    let expected = [
        ("c1", "local", "stdio", "npx -y server"),
        ("c2", "local", "http", "https://a.example/mcp"),
        ("c3", "local", "sse", "https://a.example/sse"),
        ("c4", "user", "stdio", "node s.js --flag"),
        ("c5", "local", "stdio", "node server.js"),
        ("c6", "local", "stdio", "node s.js"),
        ("x1", "local", "stdio", "npx -y server"),
        ("x2", "local", "http", "https://a.example/mcp"),
        ("x3", "local", "http", "https://a.example/mcp"),
    ];
    let listed = home.json(&["mcp", "list"]);
    let listed = listed["servers"].as_array().unwrap();
    assert_eq!(listed.len(), expected.len());
    for (server, (name, scope, transport, shown)) in listed.iter().zip(expected) {
        let found = [
            &server["name"],
            &server["scope"],
            &server["transport"],
            &server["server"],
        ];
        assert_eq!(
            found,
            [
                &json!(name),
                &json!(scope),
                &json!(transport),
                &json!(shown)
            ]
        );
        assert_eq!(server["state"], "ready", "{server}");
    }
    assert_eq!(
        home.json(&["mcp", "get", "x2"])["entry"],
        json!({"url": "https://a.example/mcp", "bearer_token_env_var": "TOKEN"})
    );
}

#[test]
fn edits_keep_what_people_wrote() {
    let home = Home::new();
    let file = home.user_file(
        "mcp.toml",
        "# my servers\n\n[mcp_servers.a] # first\ncommand = 'x'   # single quotes\n\n# the end\n",
    );
    home.mcp(&["add", "-s", "user", "b", "--", "y"])
        .with_code(0);
    let text = read(file.clone());
    assert!(
        text.starts_with(
            "# my servers\n\n[mcp_servers.a] # first\ncommand = 'x'   # single quotes\n"
        ),
        "{text}"
    );
    home.mcp(&["disable", "a"]).with_code(0);
    home.mcp(&["enable", "a"]).with_code(0);
    home.mcp(&["remove", "b"]).with_code(0);
    assert_eq!(
        read(file),
        "# my servers\n\n[mcp_servers.a] # first\ncommand = 'x'   # single quotes\n\n# the end\n"
    );
}

#[test]
fn a_name_is_taken_once_in_each_scope() {
    let home = Home::new();
    home.mcp(&["add", "a", "--", "one"]).with_code(0);
    let refused = home.mcp(&["add", "a", "--", "two", "--json"]).with_code(2);
    refused.complains(&["already-there", "--force"]);
    home.mcp(&["add", "a", "--force", "--", "two"]).with_code(0);
    let shadowed = home
        .mcp(&["add", "-s", "user", "a", "--", "three"])
        .with_code(0);
    shadowed.complains(&["the local scope has a server `a` too, which counts more"]);
    assert_eq!(home.json(&["mcp", "get", "a"])["entry"]["command"], "two");
    home.mcp(&["remove", "a"])
        .with_code(2)
        .complains(&["several scopes", "--scope"]);
    home.mcp(&["remove", "a", "-s", "local"]).with_code(0);
    assert_eq!(home.json(&["mcp", "get", "a"])["entry"]["command"], "three");
}

#[test]
fn explain_names_the_line_of_every_value_and_what_is_shadowed() {
    let home = Home::new();
    home.user_file("mcp.toml", "[mcp_servers.a]\ncommand = 'old'\n");
    home.mcp(&[
        "add",
        "a",
        "-e",
        "TOKEN=hush",
        "-e",
        "PLACE=${HOME}",
        "--",
        "new",
    ])
    .with_code(0);
    let told = home.mcp(&["explain", "a"]).with_code(0).stdout;
    for part in [
        "a is ready",
        ".cocode.local.toml:1 (local scope)",
        "command = \"new\"  line 2",
        "env.PLACE = \"${HOME}\"",
        "env.TOKEN = …",
        "mcp.toml:1 (user scope): shadowed: old",
        "policy: there is none",
    ] {
        assert!(told.contains(part), "{part:?} is not in:\n{told}");
    }
    let report = home.json(&["mcp", "explain", "a"]);
    assert_eq!(report["others"][0]["why"], "shadowed");
    assert_eq!(report["values"][0]["line"], 2);
    for words in [
        &["explain", "a"][..],
        &["get", "a"],
        &["list"],
        &["explain", "a", "--json"],
    ] {
        let finished = home.mcp(words);
        assert!(
            !(finished.stdout + &finished.stderr).contains("hush"),
            "{words:?}"
        );
    }
}

#[test]
fn bad_files_and_entries_hide_nothing_else() {
    let home = Home::new();
    home.user_file(
        "mcp.toml",
        "[mcp_servers.good]\ncommand = 'x'\n\n[mcp_servers.typo]\ncomand = 'x'\n",
    );
    home.project_file(".mcp.json", "{\"mcpServers\": {\n  \"broken\": \n");
    let finished = home.mcp(&["list"]).with_code(0);
    assert!(
        finished.stdout.contains("good  user   ready"),
        "{}",
        finished.stdout
    );
    assert!(
        finished.stdout.contains("typo  user   invalid"),
        "{}",
        finished.stdout
    );
    assert!(
        finished.stdout.contains("did you mean `command`?"),
        "{}",
        finished.stdout
    );
    finished.complains(&[".mcp.json:3: the file is not valid JSON"]);
    let strict = home.mcp(&["list", "--strict-config"]).with_code(2);
    strict.complains(&["invalid-config", "mcp.toml:5", "`comand`"]);
    home.mcp(&["call", "typo", "x"])
        .with_code(2)
        .complains(&["mcp.toml:5", "`comand`"]);
}

#[test]
fn a_file_given_by_hand_is_the_only_one_that_counts() {
    let home = Home::new();
    home.user_file("mcp.toml", "[mcp_servers.user]\ncommand = 'x'\n");
    let file = home.project_file("ci.toml", "[mcp_servers.only]\ncommand = 'x'\n");
    let file = file.to_str().unwrap();
    let listed = home.json(&["mcp", "list", "--config", file]);
    assert_eq!(listed["servers"].as_array().unwrap().len(), 1);
    assert_eq!(listed["servers"][0]["name"], "only");
    assert_eq!(listed["servers"][0]["scope"], "file");
    home.mcp(&["list", "--config", "missing.toml"])
        .with_code(2)
        .complains(&["missing.toml", "there is no such file"]);
    home.mcp(&["add", "more", "--config", file, "--", "y"])
        .with_code(0);
    assert!(read(file.into()).contains("[mcp_servers.more]"));
}

#[test]
fn variables_are_needed_when_a_server_is_used_and_not_before() {
    let home = Home::new();
    let added = home.mcp(&[
        "add",
        "a",
        "-H",
        "X-Key: ${NOT_SET}",
        "http://127.0.0.1:9/mcp",
    ]);
    added
        .with_code(0)
        .complains(&["`NOT_SET`, which is not set"]);
    let finished = home.mcp(&["ping", "a"]).with_code(2);
    finished.complains(&[
        ".cocode.local.toml:",
        "server `a`, key `headers.X-Key`: the variable `NOT_SET` is not set",
        "${NOT_SET:-value}",
    ]);
}

#[test]
fn two_hundred_processes_that_add_at_once_lose_nothing() {
    let home = Home::new();
    home.user_file("mcp.toml", "# kept\n");
    let start = |number: usize| {
        let name = format!("s{number:03}");
        let words = ["mcp", "add", "-q", "-s", "user", &name, "--", "x"];
        home.command(words).spawn().unwrap()
    };
    let children: Vec<_> = (0..200).map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let listed = home.json(&["mcp", "list"]);
    assert_eq!(listed["servers"].as_array().unwrap().len(), 200);
    assert_eq!(listed["problems"], json!([]));
    assert!(read(home.home().join("mcp.toml")).starts_with("# kept\n"));
}

#[test]
fn every_verb_says_what_to_do_about_a_server_that_is_not_there() {
    let home = Home::new();
    home.mcp(&["add", "files", "--", "x"]).with_code(0);
    for verb in [
        "get", "explain", "remove", "enable", "disable", "trust", "ping", "tools",
    ] {
        let finished = home.mcp(&[verb, "filse"]).with_code(2);
        finished.complains(&["there is no server `filse`", "did you mean `files`?"]);
    }
}
