//! Signing in at a real authorization server: by a browser, by a paste, denied, given up, and with
//! all that can be decided about it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use cocode_testkit::{Decision, OAuthPeer};
use serde_json::{Value, json};

use crate::harness::Finished;
use crate::interrupting::signal;
use crate::sign_in::{NOTES, SignIn, Waiting};
use crate::terminal::answered_at;

#[test]
fn a_sign_in_registers_once_and_lets_every_later_command_in() {
    let signing = SignIn::new();
    let before = signing.home.mcp(&["call", NOTES, "whoami"]).with_code(4);
    before.complains(&[
        "server `notes` wants you to sign in",
        "hint: sign in with `cocode mcp login notes`",
        "code: auth-required",
    ]);
    let finished = signing.login(&[]).with_code(0);
    finished.complains(&["opening a browser at 127.0.0.1 to sign in to `notes`"]);
    for part in [
        "signed in to `notes`\n",
        &format!("  issuer   {}\n", signing.peer.issuer()),
        "  scopes   mcp:basic",
        " min, renewed by itself\n",
        "(registered by cocode)\n",
        "  kept in  file ",
        "credentials.json, because there is no D-Bus session bus",
    ] {
        assert!(
            finished.stdout.contains(part),
            "{part:?}\n{}",
            finished.stdout
        );
    }
    let visits = signing.visits(1);
    assert_eq!(visits[0]["heading"], "Signed in to notes");
    assert_eq!(signing.whoami()["sub"], "alice");
    let mode = std::fs::metadata(signing.credentials_file()).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    // What was registered serves the next sign-in too.
    signing.login(&["--json"]).with_code(0);
    signing.whoami();
    assert_eq!(signing.peer.count("/registrations/success"), 1);
}

#[test]
fn a_sign_in_for_scripts_is_one_object_without_secrets() {
    let signing = SignIn::new();
    let finished = signing.login(&["--json"]).with_code(0);
    let mut report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let object = report.as_object_mut().unwrap();
    for key in ["expiresAt", "expiresInSeconds", "signedInAt"] {
        assert!(object.remove(key).unwrap().is_u64(), "{key}");
    }
    let store = object.remove("store").unwrap();
    assert!(store.as_str().unwrap().starts_with("file "), "{store}");
    let id = object["client"]["id"].take();
    assert!(id.is_string());
    assert_eq!(
        report,
        json!({
            "server": NOTES,
            "signedIn": true,
            "issuer": signing.peer.issuer(),
            "resource": signing.peer.resource(),
            "scopes": ["mcp:basic"],
            "renewable": true,
            "boundToKey": false,
            "client": {"kind": "dynamic", "id": null},
            "keptIn": "file",
        })
    );
    let opened: Value = serde_json::from_str(&finished.stderr).unwrap();
    assert_eq!(opened["signIn"]["browser"], true);
    let all = format!("{}{}", finished.stdout, finished.stderr);
    for secret in signing.secrets() {
        assert!(!all.contains(&secret), "{all}");
    }
}

#[test]
fn a_denial_is_explained_and_changes_nothing() {
    let signing = SignIn::new();
    let mut command = signing.command(&["login", NOTES], Decision::Deny);
    let finished = Finished::of(command.output().unwrap()).with_code(4);
    finished.complains(&[
        "error: nobody was signed in to `notes`",
        "denied",
        "code: login-failed",
    ]);
    let visits = signing.visits(1);
    assert_eq!(visits[0]["heading"], "Not signed in to notes");
    let status = signing.home.json(&["mcp", "auth", "status"]);
    assert_eq!(status["servers"][0]["state"], "signed-out");
    // Who has signed in stays so, whatever becomes of a second attempt.
    signing.login(&[]).with_code(0);
    assert_eq!(command.output().unwrap().status.code(), Some(4));
    assert_eq!(signing.whoami()["sub"], "alice");
}

#[test]
fn without_a_browser_the_address_is_shown_and_the_answer_pasted() {
    let signing = SignIn::new();
    let words = ["login", NOTES, "--no-browser", "--json"];
    let mut waiting = Waiting::start(&mut signing.command(&words, Decision::Allow));
    assert!(waiting.url.starts_with(signing.peer.issuer()));
    assert!(waiting.redirect.starts_with("http://127.0.0.1:"));
    let wrong = |waiting: &mut Waiting, text: &str, part: &str| {
        waiting.paste(text);
        let told = waiting.until(|event| event["warning"].is_string());
        assert!(told["warning"].as_str().unwrap().contains(part), "{told}");
    };
    wrong(&mut waiting, "what?", "not the end of a sign-in");
    let question = waiting.url.clone();
    wrong(&mut waiting, &question, "that is the address to sign in at");
    let back = signing.peer.redirect(&waiting.url, Decision::Allow);
    let strange = back.replace("state=", "state=x");
    wrong(&mut waiting, &strange, "paste the whole address");
    waiting.paste(&back);
    let finished = waiting.end().with_code(0);
    assert!(finished.stdout.contains(r#""signedIn":true"#));
    assert_eq!(signing.peer.visits().len(), 0);
    assert_eq!(signing.whoami()["sub"], "alice");
}

#[test]
fn over_ssh_the_address_and_the_port_to_forward_are_shown() {
    let signing = SignIn::new();
    let mut command = signing.home.command(["mcp", "login", NOTES]);
    command.env("SSH_CONNECTION", "10.0.0.1 50000 10.0.0.2 22");
    // Nobody pastes, and nobody comes.
    command.args(["--timeout", "0.5"]);
    let finished = Finished::of(command.output().unwrap()).with_code(4);
    finished.complains(&[
        "no browser was opened: this is an ssh session\n",
        "to sign in to `notes`, open this address:\n\n  http://127.0.0.1:",
        "paste the address that it ended at here\n",
        "ssh -L ",
        "nobody signed in within",
        "`cocode mcp logout notes --revoke`",
    ]);
    let (_, after) = finished.stderr.split_once("ssh -L ").unwrap();
    let (port, _) = after.split_once(':').unwrap();
    assert!(
        finished
            .stderr
            .contains(&format!("http://127.0.0.1:{port}/callback")),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_browser_that_does_not_open_is_told_and_the_address_shown() {
    let signing = SignIn::new();
    let mut command = signing.home.command(["mcp", "login", NOTES]);
    command.env("BROWSER", "no-such-browser-here");
    command.args(["--timeout", "0.5"]);
    let finished = Finished::of(command.output().unwrap()).with_code(4);
    finished.complains(&[
        "no browser was opened: no browser opened: `no-such-browser-here` did not start",
        "to sign in to `notes`, open this address:",
    ]);
}

#[test]
fn ctrl_c_gives_up_and_leaves_the_port() {
    let signing = SignIn::new();
    let words = ["login", NOTES, "--no-browser", "--json"];
    let waiting = Waiting::start(&mut signing.command(&words, Decision::Allow));
    let redirect = waiting.redirect.clone();
    signal(&waiting.child, "-INT");
    let finished = waiting.end().with_code(130);
    assert!(finished.stderr.contains(r#""code":"interrupted""#));
    let port = redirect
        .split(':')
        .nth(2)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
}

#[test]
fn a_fixed_port_is_used_and_a_busy_one_is_an_error_that_names_it() {
    let signing = SignIn::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let finished = signing.login(&["--callback-port", &port]).with_code(4);
    finished.complains(&[
        &format!("port {port}, where the browser would come back to, is in use"),
        "code: login-failed",
    ]);
    assert_eq!(signing.peer.visits().len(), 0);
    drop(taken);
    signing.login(&["--callback-port", &port]).with_code(0);
    let asked = &signing.peer.state()["requests"];
    let asked = asked.to_string();
    assert!(
        asked.contains(&format!("127.0.0.1:{port}/callback")),
        "{asked}"
    );
}

#[test]
fn scopes_of_the_command_line_count_before_those_of_the_file() {
    let signing = SignIn::with("oauth.scopes = ['mcp:basic']\n");
    signing.login(&[]).with_code(0);
    assert_eq!(signing.scopes(), ["mcp:basic"]);
    let wide = ["--scopes", "mcp:basic,mcp:write offline_access"];
    signing.login(&wide).with_code(0);
    assert_eq!(signing.scopes(), ["mcp:basic", "mcp:write"]);
}

#[test]
fn a_registered_client_shows_its_secret_from_a_variable_or_as_it_was_typed() {
    let signing = SignIn::new();
    let (id, secret) = signing.peer.confidential_client();
    // A variable for this command alone.
    let words = ["login", NOTES, "--client-id", id, "--client-secret"];
    let refused = Finished::of(signing.command(&words, Decision::Allow).output().unwrap());
    refused.with_code(2).complains(&["MCP_CLIENT_SECRET"]);
    let mut command = signing.command(&words, Decision::Allow);
    command.env("MCP_CLIENT_SECRET", secret);
    Finished::of(command.output().unwrap()).with_code(0);
    assert_eq!(signing.whoami()["client_id"], id);
    // It is kept with the tokens, so that they can be renewed without it.
    signing.peer.expire();
    assert_eq!(signing.whoami()["client_id"], id);
    signing
        .home
        .mcp(&["logout", NOTES, "--revoke"])
        .with_code(0);

    // Typed once, when the server was added.
    let url = signing.peer.mcp().to_owned();
    let words = [
        "mcp",
        "add",
        "typed",
        &url,
        "--client-id",
        id,
        "--client-secret",
    ];
    let mut command = signing.home.command(words);
    command.args(["--scope", "user"]);
    let (code, _, seen) = answered_at(command, "(not shown): ", &format!("{secret}\n"));
    assert_eq!(code, Some(0), "{seen}");
    assert!(!seen.contains(secret), "{seen}");
    let kept = signing.home.json(&["secret", "list"]);
    let name = kept["secrets"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("client-secret:127.0.0.1:"), "{name}");
    let file = std::fs::read_to_string(signing.home.home().join("mcp.toml")).unwrap();
    assert!(!file.contains(secret), "{file}");
    signing.login_at("typed", &[]).with_code(0);
    assert_eq!(signing.whoami_at("typed")["client_id"], id);
    // An entry that names no client has nothing to do with that one.
    let other = signing.home.mcp(&["call", NOTES, "whoami"]).with_code(4);
    other.complains(&["`cocode mcp login notes`"]);
    signing.login(&[]).with_code(0);
    assert_ne!(signing.whoami()["client_id"], id);
    assert_eq!(signing.whoami_at("typed")["client_id"], id);
}

#[test]
fn a_configured_client_whose_secret_is_nowhere_is_asked_for_it() {
    let peer = OAuthPeer::start();
    let (id, secret) = peer.confidential_client();
    let (id, secret) = (id.to_owned(), secret.to_owned());
    let entry = format!("oauth.client_id = '{id}'\noauth.client_secret_env = 'NOTES_SECRET'\n");
    let signing = SignIn::at(peer, &entry);
    signing
        .login(&[])
        .with_code(4)
        .complains(&["the variable `NOTES_SECRET`", "code: login-failed"]);
    let command = signing.command(&["login", NOTES], Decision::Allow);
    let (code, stdout, seen) = answered_at(command, "(not shown): ", &format!("{secret}\n"));
    assert_eq!(code, Some(0), "{seen}");
    assert!(
        seen.contains(&format!("Secret of client `{id}` (not shown): ")),
        "{seen}"
    );
    assert!(
        !seen.contains(&secret) && !stdout.contains(&secret),
        "{seen}"
    );
    assert!(stdout.contains("(registered beforehand)"), "{stdout}");
}

#[test]
fn a_server_where_nobody_can_register_says_what_to_do() {
    let peer = OAuthPeer::start_with(&json!({"registration": false, "cimd": false}));
    let signing = SignIn::at(peer, "");
    let told = [
        "name it in `client_id` of the `oauth` table",
        "bearer_token_env_var",
        "code: client-registration-required",
    ];
    signing.login(&[]).with_code(4).complains(&told);
    let called = signing.home.mcp(&["call", NOTES, "whoami"]);
    called.with_code(4).complains(&told);
    let status = signing.home.mcp(&["status", "--json"]).with_code(4);
    let report: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(report["servers"][0]["state"], "needs-client-registration");
}

#[test]
fn a_client_can_be_known_by_the_document_that_it_prints() {
    let signing = SignIn::new();
    let url = "https://cocode.example/client.json";
    let settings = format!("[oauth]\nclient_metadata_url = '{url}'\n");
    signing.home.user_file("config.toml", &settings);
    let document = signing.home.json(&["mcp", "auth", "client-metadata"]);
    signing.peer.describe_client(url, &document);
    let finished = signing.login(&[]).with_code(0);
    let line = format!("  client   {url} (described by a document)\n");
    assert!(finished.stdout.contains(&line), "{}", finished.stdout);
    assert_eq!(signing.whoami()["client_id"], url);
    assert_eq!(signing.peer.count("/registrations/success"), 0);
    // Who wants to be registered nevertheless is.
    signing
        .home
        .mcp(&["logout", NOTES, "--revoke"])
        .with_code(0);
    signing.login(&["--registration", "dcr"]).with_code(0);
    assert_eq!(signing.peer.count("/registrations/success"), 1);
}

#[test]
fn a_program_signs_in_by_itself_with_its_secret() {
    let peer = OAuthPeer::start();
    let (id, secret) = peer.confidential_client();
    let (id, secret) = (id.to_owned(), secret.to_owned());
    let entry = format!(
        "oauth.grant = 'client_credentials'\noauth.client_id = '{id}'\n\
         oauth.client_secret_env = 'NOTES_SECRET'\n"
    );
    let signing = SignIn::at(peer, &entry);
    let call = ["mcp", "call", NOTES, "whoami", "--json"];
    let refused = Finished::of(signing.home.command(call).output().unwrap()).with_code(4);
    assert_eq!(refused.error()["code"], "credentials-unavailable");
    let mut command = signing.home.command(call);
    command.env("NOTES_SECRET", &secret);
    let called = Finished::of(command.output().unwrap()).with_code(0);
    assert!(called.stdout.contains(&id), "{}", called.stdout);
    // The next one finds the token.
    Finished::of(command.output().unwrap()).with_code(0);
    assert_eq!(signing.peer.count("/tokens/client_credentials/success"), 1);
    let status = signing.home.json(&["mcp", "auth", "status", NOTES]);
    assert_eq!(status["servers"][0]["state"], "signed-in");
}

#[test]
fn an_address_can_be_signed_in_to_and_used_without_a_file() {
    let signing = SignIn::new();
    let url = signing.peer.mcp().to_owned();
    let call = ["call", "whoami", "--json", "--url", &url];
    let refused = signing.home.mcp(&call).with_code(4);
    let hints = refused.error()["hints"].clone();
    assert_eq!(
        hints,
        json!([
            format!("sign in with `cocode mcp login {url}`"),
            "or pass a token: --header 'Authorization: Bearer …'",
        ])
    );
    let finished = signing.login_at(&url, &[]).with_code(0);
    assert!(
        finished
            .stdout
            .starts_with(&format!("signed in to `{url}`\n"))
    );
    let called = signing.home.mcp(&call).with_code(0);
    assert!(called.stdout.contains("alice"), "{}", called.stdout);
    // The server of that address is let in as well.
    assert_eq!(signing.whoami()["sub"], "alice");
    signing.home.mcp(&["logout", &url]).with_code(0);
    signing.home.mcp(&call).with_code(4);
}
