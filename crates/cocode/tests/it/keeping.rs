//! Adding, listing, showing, switching and removing servers.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::json;

use crate::harness::Finished;
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

/// Command lines from the help and documentation of other tools, with the entry that they mean.
/// A tilde is a space within a word.
const TYPED: &[(&str, &str)] = &[
    // From `claude mcp add --help`, and its documentation.
    (
        "add --transport http n https://mcp.sentry.dev/mcp",
        r#"{"transport":"http","url":"https://mcp.sentry.dev/mcp"}"#,
    ),
    (
        "add --transport http n https://app.corridor.dev/api/mcp --header Accept:~${HOME}",
        r#"{"transport":"http","url":"https://app.corridor.dev/api/mcp","headers":{"Accept":"${HOME}"}}"#,
    ),
    (
        "add n -e API_KEY=${HOME} -- node ./my-server.js",
        r#"{"command":"node","args":["./my-server.js"],"env":{"API_KEY":"${HOME}"}}"#,
    ),
    (
        "add n -- my-command --some-flag arg1",
        r#"{"command":"my-command","args":["--some-flag","arg1"]}"#,
    ),
    (
        "add --transport stdio n --env KEY=${HOME} -- npx -y airtable-mcp-server",
        r#"{"command":"npx","args":["-y","airtable-mcp-server"],"env":{"KEY":"${HOME}"}}"#,
    ),
    (
        "add n -e A=${HOME} B=${PATH} -- npx y",
        r#"{"command":"npx","args":["y"],"env":{"A":"${HOME}","B":"${PATH}"}}"#,
    ),
    (
        "add -e A=${HOME} B=${PATH} n -- npx y",
        r#"{"command":"npx","args":["y"],"env":{"A":"${HOME}","B":"${PATH}"}}"#,
    ),
    (
        "add -t http n https://a.example/ -H A:~${HOME} B:~${PATH}",
        r#"{"transport":"http","url":"https://a.example/","headers":{"A":"${HOME}","B":"${PATH}"}}"#,
    ),
    (
        "add n npx pkg -- -y z",
        r#"{"command":"npx","args":["pkg","-y","z"]}"#,
    ),
    (
        "add --transport http --client-id i --client-secret --callback-port 8080 n https://a.example/",
        r#"{"transport":"http","url":"https://a.example/","oauth":{"client_id":"i","client_secret_env":"MCP_CLIENT_SECRET","callback_port":8080}}"#,
    ),
    (
        r#"add-json n {"type":"http","url":"https://a.example/","headers":{"A":"${HOME}"}}"#,
        r#"{"transport":"http","url":"https://a.example/","headers":{"A":"${HOME}"}}"#,
    ),
    (
        r#"add-json n {"type":"http","url":"https://a.example/","oauth":{"clientId":"i"}} --client-secret"#,
        r#"{"transport":"http","url":"https://a.example/","oauth":{"client_id":"i","client_secret_env":"MCP_CLIENT_SECRET"}}"#,
    ),
    // From `codex mcp add --help`, and its documentation.
    (
        "add n -- npx -y @upstash/context7-mcp",
        r#"{"command":"npx","args":["-y","@upstash/context7-mcp"]}"#,
    ),
    (
        "add n --env A=${HOME} --env B=${PATH} -- server --port 1",
        r#"{"command":"server","args":["--port","1"],"env":{"A":"${HOME}","B":"${PATH}"}}"#,
    ),
    (
        "add n npx -y pkg",
        r#"{"command":"npx","args":["-y","pkg"]}"#,
    ),
    (
        "add n --env A=${HOME} npx -y pkg --env B=2",
        r#"{"command":"npx","args":["-y","pkg","--env","B=2"],"env":{"A":"${HOME}"}}"#,
    ),
    (
        "add n npx -y -- foo",
        r#"{"command":"npx","args":["-y","--","foo"]}"#,
    ),
    (
        "add n --url https://a.example/ --bearer-token-env-var TOKEN",
        r#"{"url":"https://a.example/","bearer_token_env_var":"TOKEN"}"#,
    ),
    (
        "add n --url https://a.example/ --oauth-client-id i --oauth-resource https://b.example/",
        r#"{"url":"https://a.example/","oauth":{"client_id":"i","resource":"https://b.example/"}}"#,
    ),
    (
        "add n --url https://a.example/ --oauth-client-registration dcr",
        r#"{"url":"https://a.example/","oauth":{"registration":"dcr"}}"#,
    ),
    // Our own.
    (
        "add n https://a.example/ --registration cimd --client-metadata-url https://b.example/c.json --callback-url http://127.0.0.1:8080/back --scopes a,b --oauth-resource https://c.example/",
        r#"{"url":"https://a.example/","oauth":{"registration":"cimd","client_metadata_url":"https://b.example/c.json","callback_url":"http://127.0.0.1:8080/back","scopes":["a","b"],"resource":"https://c.example/"}}"#,
    ),
    (
        r#"add-json n {"url":"https://a.example/","oauth":{"grant":"enterprise","clientId":"i","assertionCommand":"print","idpIssuer":"https://idp.example","dpop":"always","allowPrivateNetwork":true}}"#,
        r#"{"url":"https://a.example/","oauth":{"grant":"enterprise","client_id":"i","assertion_command":"print","idp_issuer":"https://idp.example","dpop":"always","allow_private_network":true}}"#,
    ),
];

/// The words of a line.
fn words(line: &str) -> Vec<String> {
    let words = line.split(' ').map(|word| word.replace('~', " "));
    words.collect()
}

#[test]
fn command_lines_of_other_tools_mean_here_what_they_mean_there() {
    for (line, expected) in TYPED {
        let home = Home::new();
        let mut command = home.command(["mcp"]);
        command.args(words(line)).env("MCP_CLIENT_SECRET", "hush");
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {told}");
        let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
        assert_eq!(home.json(&["mcp", "get", "n"])["entry"], expected, "{line}");
        let file = read(home.project().join(".cocode.local.toml"));
        assert!(!file.contains("hush"), "{line}: {file}");
    }
}

#[test]
fn what_cannot_be_used_to_sign_in_is_not_written() {
    let home = Home::new();
    for (line, said) in [
        (
            "add n https://a.example/ --callback-url http://b.example/back",
            "`oauth.callback_url`: it must begin with https://",
        ),
        (
            "add n https://a.example/ --callback-url http://localhost:1/ --callback-port 2",
            "`oauth.callback_port`: it is 2, but `callback_url` has the port 1",
        ),
        (
            "add n https://a.example/ --client-metadata-url http://localhost/c.json",
            "`oauth.client_metadata_url`: it must begin with https://",
        ),
        (
            "add n https://a.example/ --registration drc",
            "[possible values: auto, cimd, dcr]",
        ),
        (
            r#"add-json n {"url":"https://a.example/","oauth":{"grant":"jwt_bearer"}}"#,
            "jwt_bearer needs `assertion_env`, `assertion_file` or `assertion_command`",
        ),
        (
            r#"add-json n {"url":"https://a.example/","oauth":{"grant":"enterprize"}}"#,
            "did you mean `enterprise`?",
        ),
    ] {
        let mut command = home.command(["mcp"]);
        command.args(words(line));
        let refused = Finished::of(command.output().unwrap()).with_code(2);
        refused.complains(&[said]);
    }
    assert!(!home.project().join(".cocode.local.toml").exists());
}

#[test]
fn what_cannot_be_kept_is_answered_with_what_to_do_instead() {
    let home = Home::new();
    for line in [
        "add n --url https://a.example/ --oauth-client-secret hush",
        "add n https://a.example/ --client-secret",
        r#"add-json n {"url":"https://a.example/"} --client-secret"#,
    ] {
        let mut command = home.command(["mcp"]);
        command.args(words(line)).env_remove("MCP_CLIENT_SECRET");
        let refused = Finished::of(command.output().unwrap()).with_code(2);
        refused.complains(&["--client-secret-env NAME"]);
        assert!(!refused.stderr.contains("hush"), "{line}");
    }
    assert!(!home.project().join(".cocode.local.toml").exists());
    // Claude would take this for itself, Codex for the command: one of the two has to know.
    let added = home
        .mcp(&["add", "n", "npx", "pkg", "--scope", "user"])
        .with_code(0);
    added.complains(&["`--scope` comes after the command, and so belongs to it"]);
}

#[test]
fn a_variable_that_is_not_set_excuses_nothing_else() {
    let home = Home::new();
    let wrong_header = ["-H", "Bad Name: ${NOT_SET}", "https://a.example/"];
    let wrong_value = ["-e", "A=${NOT_SET", "-e", "B=${NOT_SET}", "--", "x"];
    for (wrong, told) in [
        (&["--url", "ftp://a.example/${NOT_SET}"][..], "`url`"),
        (&wrong_header, "`headers.Bad Name`"),
        (&wrong_value, "`env.A`"),
        (&["-t", "sse", "--", "x", "${NOT_SET}"], "`transport`"),
    ] {
        let refused = home.mcp(&[&["add", "a"], wrong].concat()).with_code(2);
        refused.complains(&[told]);
    }
    assert!(!home.project().join(".cocode.local.toml").exists());
    for (name, right) in [
        ("host", &["--url", "https://${NOT_SET}:${NOT_SET}/mcp"][..]),
        ("url", &["--url", "${NOT_SET}"]),
        ("ws", &["-t", "ws", "--url", "${NOT_SET}"]),
        ("cwd", &["--cwd", "${NOT_SET}", "--", "x"]),
    ] {
        let added = home.mcp(&[&["add", name], right].concat()).with_code(0);
        added.complains(&["`NOT_SET`, which is not set"]);
    }
    let words = ["add", "a", "-e", "A=${NOT_SET:-1}${NOR_THIS}", "--", "x"];
    let added = home.mcp(&words).with_code(0);
    added.complains(&["needs the variable `NOR_THIS`"]);
    assert!(
        !added.stderr.contains("needs the variable `NOT_SET`"),
        "{}",
        added.stderr
    );
}

#[test]
fn only_secrets_that_are_in_the_file_are_warned_of() {
    let home = Home::new();
    let warned = |name: &str, header: &str| {
        let words = ["add", name, "https://a.example/", "-H", header];
        let added = home.mcp(&words).with_code(0);
        added.stderr.contains("is in the file as plain text")
    };
    assert!(!warned("a", "Authorization: Bearer ${keyring:docs}"));
    assert!(!warned("b", "Authorization: keyring:docs"));
    assert!(!warned("c", "Authorization: Bearer ${HOME}"));
    assert!(warned("d", "Authorization: Bearer hush"));
}

#[test]
fn links_of_a_work_tree_lead_no_edit_out_of_it() {
    let home = Home::new();
    let text = "[mcp_servers.theirs]\ncommand = 'x'\n";
    let outside = home.user_file("other-tool/config.toml", text);
    let local = home.project().join(".cocode.local.toml");
    symlink(&outside, &local).unwrap();
    symlink(outside.parent().unwrap(), home.project().join(".cocode")).unwrap();
    for words in [
        &["mcp", "add", "a", "--json", "--", "x"][..],
        &["mcp", "remove", "theirs", "--json"],
        &["mcp", "disable", "theirs", "--json"],
        &[
            "permissions",
            "deny",
            "mcp__a",
            "--scope",
            "local",
            "--json",
        ],
    ] {
        let refused = home.run(words).with_code(2);
        assert_eq!(refused.error()["code"], "file-error", "{words:?}");
        refused.complains(&["leads out of the work tree", "other-tool"]);
    }
    assert_eq!(read(outside.clone()), text);
    let names = std::fs::read_dir(outside.parent().unwrap()).unwrap();
    assert_eq!(names.count(), 1);
    // Within the tree, and among the user's own files, links are followed.
    std::fs::remove_file(&local).unwrap();
    let inside = home.project_file("sub/mine.toml", "");
    symlink("sub/mine.toml", &local).unwrap();
    home.mcp(&["add", "a", "--", "x"]).with_code(0);
    assert!(read(inside).contains("[mcp_servers.a]"));
    symlink(&outside, home.home().join("mcp.toml")).unwrap();
    home.mcp(&["add", "-s", "user", "b", "--", "x"])
        .with_code(0);
    assert!(read(outside).contains("[mcp_servers.b]"));
}

#[test]
fn files_that_get_secrets_are_for_their_owner_only() {
    let home = Home::new();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = home.project().join(".cocode.local.toml");
    home.mcp(&["add", "a", "-e", "A=hush", "--", "x"])
        .with_code(0);
    assert_eq!(mode(&file), 0o600);
    let own = home.home().join("new");
    let mut command = home.command(["mcp", "add", "-s", "user", "a", "--", "x"]);
    let output = command.env("COCODE_HOME", &own).output().unwrap();
    assert!(output.status.success());
    assert_eq!(mode(&own), 0o700);
}

#[test]
fn a_file_that_cannot_be_edited_is_shown_with_what_to_do() {
    let home = Home::new();
    home.user_file("mcp.toml", "\u{0}");
    let refused = home
        .mcp(&["add", "-s", "user", "a", "--", "x"])
        .with_code(2);
    refused.complains(&["mcp.toml:1", "restore it from a backup"]);
}

#[test]
fn what_is_typed_as_a_program_but_meant_as_an_address_is_refused() {
    let home = Home::new();
    for (word, hint) in [
        ("htps://a.example/mcp", "use http://"),
        ("a.example/mcp", "is it https://a.example/mcp?"),
        ("localhost:3000/mcp", "is it http://localhost:3000/mcp?"),
        ("npx -y server", "without quotes"),
    ] {
        home.mcp(&["add", "a", word])
            .with_code(2)
            .complains(&[hint]);
    }
    home.mcp(&["add", "a", "server.py"]).with_code(0);
}

#[test]
fn what_depends_on_the_directory_it_was_typed_in_keeps_its_meaning() {
    let home = Home::new();
    let below = |words: &[&str]| {
        let mut command = home.command(["mcp"].iter().chain(words));
        let status = command.current_dir(home.project().join("sub")).status();
        assert!(status.unwrap().success());
    };
    below(&["add", "-q", "here", "--", "server", "."]);
    below(&["add", "-q", "anywhere", "--", "server"]);
    let entry = |name: &str| home.json(&["mcp", "get", name])["entry"]["cwd"].clone();
    assert_eq!(
        [entry("here"), entry("anywhere")],
        [json!("sub"), json!(null)]
    );
}

#[test]
fn json_that_describes_no_server_is_told_what_was_probably_meant() {
    let home = Home::new();
    home.mcp(&["add-json", "a", r#"{"comand":"x"}"#])
        .with_code(2)
        .complains(&["`comand`", "did you mean `command`?"]);
    home.mcp(&["add-json", "a", r#"{"mcpServers":{"a":{"command":"x"}}}"#])
        .with_code(2)
        .complains(&["the object of one server"]);
}
