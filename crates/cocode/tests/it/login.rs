//! Signing in where there is nothing to sign in to, or where nobody may: what is said instead.

use cocode_testkit::Script;
use serde_json::{Value, json};

use crate::home::Home;
use crate::terminal::typed_at;

#[test]
fn a_server_that_asks_for_nothing_needs_no_sign_in() {
    let home = Home::new();
    let open = Script::new().http();
    home.user_file(
        "mcp.toml",
        &format!("[mcp_servers.open]\nurl = '{}'\n", open.url()),
    );
    let finished = home.mcp(&["login", "open"]).with_code(0);
    assert_eq!(
        finished.stdout,
        "server `open` asks for no sign-in: it answers anybody\n"
    );
    let report = home.json(&["mcp", "login", "open"]);
    assert_eq!(report["signedIn"], false);
}

#[test]
fn where_nobody_can_sign_in_it_is_said_why() {
    let home = Home::new();
    let seen = Script::new().http();
    let url = seen.url();
    home.user_file(
        "mcp.toml",
        &format!(
            "[mcp_servers.program]\ncommand = 'true'\n\
             [mcp_servers.bearer]\nurl = '{url}'\nbearer_token_env_var = 'T'\n\
             [mcp_servers.header]\nurl = '{url}'\nheaders.Authorization = 'Bearer ${{T:-x}}'\n\
             [mcp_servers.helper]\nurl = '{url}'\nheaders_helper = 'print'\n\
             [mcp_servers.off]\nurl = '{url}'\nenabled = false\n\
             [mcp_servers.socket]\nurl = 'unix:///run/none'\n"
        ),
    );
    home.project_file(
        ".mcp.toml",
        &format!("[mcp_servers.pending]\nurl = '{url}'\n"),
    );
    for (name, code, part) in [
        ("program", 2, "is a program of this machine"),
        (
            "bearer",
            2,
            "is let in by `bearer_token_env_var` of its file",
        ),
        (
            "header",
            2,
            "is let in by `headers.Authorization` of its file",
        ),
        ("helper", 2, "by what its `headers_helper` prints"),
        ("off", 2, "is switched off in"),
        ("socket", 2, "is a socket"),
        ("pending", 6, "is not approved"),
        ("nobody", 2, "code: unknown-server"),
        ("unix:///run/none", 2, "this is no address to sign in at"),
    ] {
        home.mcp(&["login", name])
            .with_code(code)
            .complains(&[part]);
    }
    let finished = home.mcp(&["login", "unix:///run/none"]).with_code(2);
    assert!(!finished.stderr.contains("--url"), "{}", finished.stderr);
    assert!(seen.requests().all().is_empty(), "somebody was contacted");
    // At a terminal, approval is asked for first, and refused without contact.
    let command = home.command(["mcp", "login", "pending"]);
    let (code, _, shown) = typed_at(command, "n\n");
    assert_eq!(code, Some(6), "{shown}");
    assert!(seen.requests().all().is_empty(), "somebody was contacted");
}

#[test]
fn a_server_that_cannot_be_reached_is_no_matter_of_signing_in() {
    let home = Home::new();
    let refused = home
        .mcp(&["login", "http://127.0.0.1:1/mcp", "--json"])
        .with_code(3);
    assert_eq!(refused.error()["code"], "unreachable");
}

#[test]
fn contradictions_of_the_command_line_are_told() {
    let home = Home::new();
    home.user_file(
        "mcp.toml",
        "[mcp_servers.a]\nurl = 'http://127.0.0.1:1/'\noauth.client_id = 'one'\n",
    );
    for (words, part) in [
        (
            &["login", "a", "--client-id", "two"][..],
            "is not the client in the file",
        ),
        (
            &["login", "http://127.0.0.1:1/", "--client-secret"],
            "`--client-secret` needs a client",
        ),
        (&["login", "a", "--registration", "drc"], "cimd, dcr"),
        (&["login"], "<NAME|URL>"),
        (&["logout"], "<NAME|URL>"),
        (&["logout", "a", "--all"], "cannot be used with"),
        (&["auth", "client-metadata"], "where the document will be"),
        (
            &[
                "auth",
                "client-metadata",
                "--url",
                "http://a.example/c.json",
            ],
            "would not take this address",
        ),
    ] {
        home.mcp(words).with_code(2).complains(&[part]);
    }
}

#[test]
fn the_document_of_the_client_is_printed_to_be_hosted() {
    let home = Home::new();
    let url = "https://a.example/cocode.json";
    let words = ["mcp", "auth", "client-metadata", "--url", url];
    let hosts = |port: &str| {
        ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("http://{host}{port}/callback"))
    };
    let expected = |port: &str| {
        json!({
            "client_id": url,
            "client_name": "cocode",
            "redirect_uris": hosts(port),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        })
    };
    assert_eq!(home.json(&words), expected(""));
    // Settings say it too, and the note says where it goes.
    let settings = format!("[oauth]\nclient_metadata_url = '{url}'\ncallback_port = 4455\n");
    home.user_file("config.toml", &settings);
    let finished = home.mcp(&["auth", "client-metadata"]).with_code(0);
    let document: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(document, expected(":4455"));
    finished.complains(&[&format!("put it at {url}")]);
}
