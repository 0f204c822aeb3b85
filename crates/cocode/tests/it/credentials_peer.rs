//! What becomes of a sign-in: renewed, widened, shown, ended, and never told to anybody.

use cocode_testkit::{Decision, OAuthPeer};
use serde_json::json;

use crate::harness::Finished;
use crate::interrupting::signal;
use crate::sign_in::{NOTES, SignIn, Waiting};
use crate::status_verb::Watched;

#[test]
fn a_token_that_has_ended_is_renewed_without_anybody() {
    let signing = SignIn::new();
    signing.login(&[]).with_code(0);
    signing.peer.expire();
    assert_eq!(signing.whoami()["sub"], "alice");
    assert_eq!(signing.peer.count("/tokens/refresh_token/success"), 1);
    // What was renewed is stored: the next command needs nothing.
    assert_eq!(signing.whoami()["sub"], "alice");
    assert_eq!(signing.peer.count("/tokens/refresh_token/success"), 1);
    assert_eq!(signing.peer.count("/refresh_reuse"), 0);
}

#[test]
fn a_token_that_has_ended_is_shown_as_such_and_as_renewable() {
    let peer = OAuthPeer::start_with(&json!({"accessTokenTtl": 1}));
    let signing = SignIn::at(peer, "");
    signing.login(&[]).with_code(0);
    let state =
        || signing.home.json(&["mcp", "auth", "status", NOTES])["servers"][0]["state"].take();
    // The test runner ends a test that waits forever.
    loop {
        match state().as_str() {
            Some("renewable") => break,
            seen => assert_eq!(seen, Some("signed-in")),
        }
    }
    let shown = signing.home.mcp(&["auth", "status"]).with_code(0);
    assert!(shown.stdout.contains("over, renewed by itself"));
    assert_eq!(signing.whoami()["sub"], "alice");
}

#[test]
fn a_sign_in_that_was_revoked_is_asked_for_again() {
    let signing = SignIn::new();
    signing.login(&[]).with_code(0);
    signing.peer.revoke_all();
    let refused = signing.home.mcp(&["call", NOTES, "whoami"]).with_code(4);
    refused.complains(&["`cocode mcp login notes`", "code: auth-required"]);
    let status = signing.home.json(&["mcp", "auth", "status", NOTES]);
    assert_eq!(status["servers"][0]["state"], "ended", "{status}");
    signing.login(&[]).with_code(0);
    assert_eq!(signing.whoami()["sub"], "alice");
}

#[test]
fn who_watches_sees_a_server_come_back_after_a_sign_in_elsewhere() {
    let signing = SignIn::new();
    let mut watched = Watched::start(&signing.home);
    let waiting = watched.until_state(NOTES, "needs-auth");
    let hint = &waiting["server"]["error"]["hints"][0];
    assert_eq!(*hint, "sign in with `cocode mcp login notes`", "{waiting}");
    signing.login(&[]).with_code(0);
    let ready = watched.until_state(NOTES, "ready");
    assert_eq!(ready["server"]["tools"], 3);
    signal(&watched.child, "-INT");
    Finished::of(watched.child.wait_with_output().unwrap()).with_code(130);
}

#[test]
fn every_command_that_needs_a_sign_in_says_how() {
    let signing = SignIn::new();
    let login = "sign in with `cocode mcp login notes`";
    for words in [&["list", "--status"][..], &["status"], &["doctor"]] {
        let finished = signing.home.mcp(words).with_code(4);
        assert!(
            finished.stdout.contains(login),
            "{words:?}\n{}",
            finished.stdout
        );
    }
    signing
        .home
        .mcp(&["tools", NOTES])
        .with_code(4)
        .complains(&[login]);
}

#[test]
fn a_tool_that_needs_more_names_it_and_the_next_sign_in_asks_for_all() {
    let signing = SignIn::new();
    signing.login(&[]).with_code(0);
    let write = ["call", NOTES, "write_note", "note=hello"];
    let refused = signing.home.mcp(&write).with_code(4);
    refused.complains(&[
        "server `notes` wants more than you have allowed: mcp:write",
        "hint: sign in with `cocode mcp login notes`",
        "code: auth-required",
    ]);
    let status = signing.home.json(&["mcp", "auth", "status", NOTES]);
    assert_eq!(status["servers"][0]["wantedScopes"], json!(["mcp:write"]));
    // What was allowed before goes on meanwhile.
    assert_eq!(signing.scopes(), ["mcp:basic"]);
    signing.login(&[]).with_code(0);
    let expected = ["mcp:basic", "mcp:write"];
    assert_eq!(signing.scopes(), expected);
    let written = signing.home.mcp(&write).with_code(0);
    assert!(written.stdout.contains("written: hello"));
}

#[test]
fn whoever_signs_out_is_out_and_keeps_the_registration() {
    let signing = SignIn::new();
    signing.login(&[]).with_code(0);
    let out = signing.home.mcp(&["logout", NOTES]).with_code(0);
    assert_eq!(out.stdout, "signed out of `notes`\n");
    let status = signing.home.json(&["mcp", "auth", "status", NOTES]);
    let server = &status["servers"][0];
    assert_eq!(server["state"], "signed-out", "{status}");
    assert_eq!(server["scopes"], json!([]), "{status}");
    signing
        .home
        .mcp(&["call", NOTES, "whoami"])
        .with_code(4)
        .complains(&["code: auth-required"]);
    assert_eq!(signing.peer.count("/revocations"), 0);
    let again = signing.home.mcp(&["logout", NOTES]).with_code(0);
    assert_eq!(again.stdout, "nobody was signed in to `notes`\n");
    signing.login(&[]).with_code(0);
    assert_eq!(signing.peer.count("/registrations/success"), 1);
}

#[test]
fn whoever_revokes_gives_everything_back() {
    let signing = SignIn::new();
    signing.login(&[]).with_code(0);
    let issuer = signing.peer.issuer();
    assert_eq!(
        signing.home.json(&["mcp", "logout", NOTES, "--revoke"]),
        json!({
            "server": NOTES,
            "wasSignedIn": true,
            "revoked": [issuer],
            "notRevoked": [],
        })
    );
    assert!(signing.peer.count("/revocations") >= 1);
    let status = signing.home.json(&["mcp", "auth", "status"]);
    assert_eq!(status["servers"][0]["state"], "not-signed-in");
    signing.login(&[]).with_code(0);
    assert_eq!(signing.peer.count("/registrations/success"), 2);
}

#[test]
fn one_can_sign_out_everywhere() {
    let signing = SignIn::new();
    let other = SignIn::at(OAuthPeer::start(), "");
    signing.login(&[]).with_code(0);
    let url = other.peer.mcp();
    let mut command = signing.home.command(["mcp", "login", url]);
    let browser = other
        .peer
        .browser(cocode_testkit::Browser::Plain, Decision::Allow);
    command.env("BROWSER", browser);
    Finished::of(command.output().unwrap()).with_code(0);
    let out = signing.home.mcp(&["logout", "--all"]).with_code(0);
    for address in [signing.peer.mcp(), url] {
        let line = format!("signed out of `{address}`\n");
        assert!(out.stdout.contains(&line), "{}", out.stdout);
    }
    signing.home.mcp(&["call", NOTES, "whoami"]).with_code(4);
}

#[test]
fn the_status_tells_of_every_server_and_every_sign_in() {
    let signing = SignIn::new();
    let (home, peer) = (&signing.home, &signing.peer);
    let elsewhere = "url = 'https://b.example/mcp'\n";
    let file = format!(
        "[mcp_servers.notes]\nurl = '{url}'\n\
         [mcp_servers.other]\nurl = '{url}'\noauth.client_id = 'another'\n\
         [mcp_servers.fixed]\n{elsewhere}bearer_token_env_var = 'TOKEN'\n\
         [mcp_servers.helper]\n{elsewhere}headers_helper = 'print'\n\
         [mcp_servers.machine]\n{elsewhere}oauth.grant = 'client_credentials'\n\
         oauth.client_id = 'i'\noauth.client_secret_env = 'S'\n\
         [mcp_servers.program]\ncommand = 'true'\n\
         [mcp_servers.unknown]\n{elsewhere}",
        url = peer.mcp(),
    );
    home.user_file("mcp.toml", &file);
    signing.login(&[]).with_code(0);
    let mut status = home.json(&["mcp", "auth", "status"]);
    let place = status["store"].take();
    assert_eq!(place["place"], "file");
    assert!(
        place["file"]
            .as_str()
            .unwrap()
            .ends_with("/credentials.json")
    );
    let id = status["servers"][3]["client"]["id"].clone();
    for server in status["servers"].as_array_mut().unwrap() {
        let server = server.as_object_mut().unwrap();
        for key in ["expiresAt", "expiresInSeconds", "signedInAt"] {
            let time = server.remove(key);
            assert_eq!(time.is_some(), server.contains_key("issuer"), "{key}");
        }
    }
    let signed_in = json!({
        "issuer": peer.issuer(),
        "resource": peer.resource(),
        "scopes": ["mcp:basic"],
        "renewable": true,
        "boundToKey": false,
        "client": {"kind": "dynamic", "id": id},
        "keptIn": "file",
    });
    let with = |name: &str, state: &str| {
        let mut line = signed_in.clone();
        line["name"] = name.into();
        line["state"] = state.into();
        line["url"] = peer.mcp().into();
        line
    };
    let away = "https://b.example/mcp";
    let expected = json!({
        "store": null,
        "servers": [
            {"name": "fixed", "url": away, "state": "fixed-token", "key": "bearer_token_env_var"},
            {"name": "helper", "url": away, "state": "helper", "key": "headers_helper"},
            {"name": "machine", "url": away, "state": "on-demand"},
            with("notes", "signed-in"),
            with("other", "unusable"),
            {"name": "unknown", "url": away, "state": "not-signed-in"},
        ],
        "others": [],
        "unreadable": [],
    });
    assert_eq!(status, expected);
    let shown = home.mcp(&["auth", "status"]).with_code(0);
    assert!(
        shown
            .stdout
            .starts_with("new sign-ins are kept in the file ")
    );
    shown.complains(&["what is stored for `other` belongs to another client"]);
    // Without its file, what is stored is still there.
    home.user_file("mcp.toml", "");
    let status = home.json(&["mcp", "auth", "status"]);
    assert_eq!(status["servers"], json!([]));
    assert_eq!(status["others"][0]["url"], peer.mcp());
    assert_eq!(status["others"][0]["state"], "signed-in");
    for secret in signing.secrets() {
        let all = format!("{}{}{status}", shown.stdout, shown.stderr);
        assert!(!all.contains(&secret), "{all}");
    }
}

#[test]
fn the_store_is_said_and_a_keyring_that_is_not_there_is_an_error() {
    let signing = SignIn::new();
    let finished = signing.login(&["--credential-store", "file"]).with_code(0);
    assert!(
        finished
            .stdout
            .contains("because `--credential-store` says so"),
        "{}",
        finished.stdout
    );
    let refused = signing
        .login(&["--credential-store", "keyring"])
        .with_code(4);
    refused.complains(&["code: credentials-unavailable"]);
    // A server that wants nothing of it is not held up by it.
    let listed = signing.home.mcp(&["list", "--credential-store", "keyring"]);
    listed.with_code(0);
}

#[test]
fn nothing_secret_is_in_any_output_however_much_is_logged() {
    let signing = SignIn::new();
    let traced = |words: &[&str]| {
        let mut command = signing.command(words, Decision::Allow);
        command.env("COCODE_LOG", "trace").arg("-vv");
        command
    };
    let words = ["login", NOTES, "--no-browser", "--json"];
    let mut waiting = Waiting::start(&mut traced(&words));
    let back = signing.peer.redirect(&waiting.url, Decision::Allow);
    waiting.paste(&back);
    let finished = waiting.end().with_code(0);
    let mut outputs = vec![finished.stdout, finished.stderr];
    let (_, query) = back.split_once('?').unwrap();
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, code) = pairs.find(|(name, _)| *name == "code").unwrap();
    let mut secrets = signing.secrets();
    secrets.push(code.to_owned());
    let mut run = |words: &[&str], code: i32| {
        let finished = Finished::of(traced(words).output().unwrap()).with_code(code);
        outputs.extend([finished.stdout, finished.stderr]);
    };
    run(&["call", NOTES, "whoami"], 0);
    run(&["call", NOTES, "write_note", "note=x"], 4);
    signing.peer.expire();
    run(&["call", NOTES, "whoami", "--json"], 0);
    secrets.extend(signing.secrets());
    run(&["status", "--json"], 0);
    run(&["doctor"], 0);
    run(&["auth", "status", "--json"], 0);
    run(&["logout", NOTES, "--revoke"], 0);
    let log = outputs.concat();
    assert!(log.contains("TRACE"), "nothing was traced");
    for secret in &secrets {
        assert!(!log.contains(secret.as_str()), "{secret} is in the output");
    }
    // What servers kept of it, in files of their own, has none of it either.
    let state = signing.home.home().join("state");
    for entry in std::fs::read_dir(state.join("logs")).into_iter().flatten() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        assert!(secrets.iter().all(|secret| !text.contains(secret.as_str())));
    }
}

#[test]
fn lists_of_one_account_are_not_shown_to_another() {
    let signing = SignIn::new();
    let (home, cached) = (&signing.home, ["tools", NOTES, "--cached"]);
    signing.login(&[]).with_code(0);
    home.mcp(&["tools", NOTES]).with_code(0);
    home.mcp(&cached).with_code(0);
    home.mcp(&["logout", NOTES]).with_code(0);
    let refused = home
        .mcp(&["tools", NOTES, "--cached", "--json"])
        .with_code(2);
    assert_eq!(refused.error()["code"], "not-cached");
}
