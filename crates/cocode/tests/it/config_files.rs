//! The files of configuration: listed, checked, shown with the place of every value, described.

use serde_json::{Value, json};

use crate::home::Home;

#[test]
fn every_file_that_is_looked_for_is_listed_with_its_state() {
    let home = Home::new();
    home.user_file("mcp.toml", "[mcp_servers.mine]\ncommand = \"a\"\n");
    home.user_file("config.toml", "nonsense = [\n");
    home.project_file(".mcp.json", r#"{"mcpServers": {"x": {"command": "b"}}}"#);
    home.project_file(".cocode/config.toml", "credential_store = \"file\"\n");
    let listing = home.json(&["config", "files"]);
    let state = |end: &str, kind: &str| -> (Value, Value, Value) {
        let files = listing["files"].as_array().unwrap();
        let file = files
            .iter()
            .find(|file| file["kind"] == kind && file["path"].as_str().unwrap().ends_with(end));
        let file = file.unwrap_or_else(|| panic!("{end} is not in {listing}"));
        (
            file["scope"].clone(),
            file["state"].clone(),
            file["servers"].clone(),
        )
    };
    assert_eq!(
        state("home/mcp.toml", "servers"),
        (json!("user"), json!("used"), json!(1))
    );
    assert_eq!(
        state("project/.mcp.json", "servers"),
        (json!("project"), json!("pending"), json!(1))
    );
    assert_eq!(
        state("project/.cocode/config.toml", "settings"),
        (json!("project"), json!("pending"), Value::Null)
    );
    assert_eq!(
        state("home/config.toml", "settings"),
        (json!("user"), json!("broken"), Value::Null)
    );
    assert_eq!(
        state("project/.cocode.local.toml", "servers"),
        (json!("local"), json!("missing"), json!(0))
    );
    assert_eq!(
        state("/etc/cocode/policy.toml", "policy").0,
        json!("enterprise")
    );
    home.mcp(&["trust", "--yes"]).with_code(0);
    let table = home.run(["config", "files"]).with_code(0).stdout;
    let line = table.lines().find(|line| line.ends_with(".mcp.json"));
    assert!(line.unwrap().contains("approved"), "{table}");
}

#[test]
fn a_check_says_everything_that_is_wrong() {
    let home = Home::new();
    let checked = home.run(["config", "check"]).with_code(0);
    assert_eq!(checked.stdout, "");
    home.user_file("mcp.toml", "[mcp_servers.a]\ncomand = \"a\"\n");
    home.user_file("config.toml", "\ncredential_store = 3\n");
    let checked = home.run(["config", "check"]).with_code(2).stdout;
    for part in ["mcp.toml:2", "config.toml:2", "`command`"] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    let checked = home.run(["config", "check", "--json"]).with_code(2).stdout;
    let checked: Value = serde_json::from_str(&checked).unwrap();
    let problems = checked["problems"].as_array().unwrap().len() as u64;
    let counted = [&checked["errors"], &checked["warnings"]].map(|count| count.as_u64().unwrap());
    assert_eq!(counted.iter().sum::<u64>(), problems);
}

#[test]
fn settings_are_shown_with_their_place_or_as_defaults() {
    let home = Home::new();
    home.user_file(
        "config.toml",
        "credential_store = \"file\"\n\n[health]\nmax_failures = 7\n",
    );
    let shown = home.json(&["config", "show"]);
    let row = |key: &str| {
        let rows = shown["settings"].as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        (
            row["value"].clone(),
            row["default"].clone(),
            row["line"].clone(),
        )
    };
    assert_eq!(
        row("credential_store"),
        (json!("file"), json!(false), json!(1))
    );
    assert_eq!(
        row("health.max_failures"),
        (json!(7), json!(false), json!(4))
    );
    assert_eq!(
        row("gateway.prefix"),
        (json!("always"), json!(true), Value::Null)
    );
}

#[test]
fn schemas_are_json() {
    let home = Home::new();
    for kind in ["mcp", "config", "policy"] {
        let text = home.run(["config", "schema", kind]).clean();
        let schema: Value = serde_json::from_str(&text).unwrap();
        assert!(schema["$schema"].is_string(), "{kind}");
    }
}

#[test]
fn a_users_own_file_may_be_named_on_the_command_line_after_disabling() {
    let home = Home::new();
    let file = home.user_file("mcp.toml", "[mcp_servers.mine]\ncommand = \"a\"\n");
    let file = file.to_str().unwrap();
    home.project_file(".mcp.json", r#"{"mcpServers": {"x": {"command": "b"}}}"#);
    home.mcp(&["trust", "--yes"]).with_code(0);
    home.mcp(&["disable", "x"]).with_code(0);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("[[overrides]]"), "{text}");
    let listed = home.json(&["--config", file, "mcp", "list"]);
    assert_eq!(listed["servers"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["problems"], json!([]));
    // What is wrong with such a file is said once.
    let file = home.user_file("given.toml", "nonsense = 1\n");
    let refused = home.run(["--config", file.to_str().unwrap(), "mcp", "list"]);
    let refused = refused.with_code(2).stderr;
    assert_eq!(refused.matches("given.toml:1").count(), 1, "{refused}");
}

#[test]
fn a_json_file_whose_servers_stand_at_the_top_is_warned_of() {
    let home = Home::new();
    for server in [r#"{"command": "x"}"#, r#"{"url": "https://x.example"}"#] {
        home.project_file(".mcp.json", &format!("{{\n\"a\": {server}}}"));
        let checked = home.run(["config", "check"]).with_code(0).stdout;
        for part in [".mcp.json:2", "servers stand under `mcpServers`"] {
            assert!(checked.contains(part), "{part}: {checked}");
        }
        let listed = home.mcp(&["list"]).with_code(0);
        listed.complains(&["servers stand under `mcpServers`"]);
    }
    for fine in ["", " \n", "{}", r#"{"a": {"title": "x"}, "command": "x"}"#] {
        home.project_file(".mcp.json", fine);
        let checked = home.run(["config", "check"]).with_code(0).stdout;
        assert_eq!(checked, "", "{fine:?}");
    }
}
