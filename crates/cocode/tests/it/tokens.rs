//! Tokens of gateways, from the command line: made, listed, revoked, and kept as nothing but a hash.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::gateway::Running;
use crate::harness::{mcp_at, with_system_files};
use crate::home::Home;
use crate::http::ByHand;

fn token(home: &Home, words: &[&str]) -> crate::harness::Finished {
    home.run(["gateway", "token"].iter().chain(words))
}

fn names(home: &Home) -> Vec<String> {
    let listed = home.json(&["gateway", "token", "list"]);
    let tokens = listed["tokens"].as_array().unwrap();
    let names = tokens.iter().map(|token| token["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// All that is kept below the home of the user, as one text.
fn kept(home: &Home) -> String {
    fn collect(path: &std::path::Path, text: &mut String) {
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, text);
            } else {
                text.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut text = String::new();
    collect(&home.home(), &mut text);
    text
}

#[test]
fn a_token_is_printed_once_alone_and_kept_as_a_hash() {
    let home = Home::new();
    let made = token(&home, &["add", "ci"]).with_code(0);
    let secret = made.stdout.strip_suffix('\n').unwrap();
    assert!(secret.starts_with("cocode_"), "{}", made.stdout);
    assert_eq!(secret.lines().count(), 1, "nothing else is on stdout");
    made.complains(&["`ci`", "shown this once", "Authorization: Bearer"]);
    assert!(!made.stderr.contains(secret));
    let kept = kept(&home);
    assert!(kept.contains("\"ci\""), "{kept}");
    assert!(!kept.contains(secret), "only the hash is kept");
    let file = home.home().join("state/gateway/tokens.json");
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Who wants quiet hears the token and nothing else.
    let quiet = token(&home, &["add", "bob", "-q"]).clean();
    assert!(quiet.starts_with("cocode_"), "{quiet}");
}

#[test]
fn tokens_are_listed_with_what_they_may_and_until_when() {
    let home = Home::new();
    token(&home, &["list"])
        .with_code(0)
        .complains(&["there are no tokens", "cocode gateway token add NAME"]);
    let words = [
        "gateway",
        "token",
        "add",
        "ana",
        "--admin",
        "--expires",
        "30d",
    ];
    let made = home.json(&words);
    assert_eq!(made["name"], "ana");
    assert_eq!(made["admin"], true);
    assert!(made["token"].as_str().unwrap().starts_with("cocode_"));
    token(&home, &["add", "ci"]).with_code(0);
    let listed = home.json(&["gateway", "token", "list"]);
    let [ana, ci] = listed["tokens"].as_array().unwrap().as_slice() else {
        panic!("{listed}");
    };
    for told in [ana, ci] {
        assert_eq!(told["token"], Value::Null, "it is never shown again");
        assert_eq!(told["lastUsedAt"], Value::Null);
    }
    assert_eq!(ana["createdAt"], made["createdAt"]);
    assert_eq!(ana["expiresAt"], made["expiresAt"]);
    assert!(ana["expiresAt"].as_str().unwrap() > ana["createdAt"].as_str().unwrap());
    assert_eq!(
        (&ci["admin"], &ci["expiresAt"]),
        (&false.into(), &Value::Null)
    );
    let shown = token(&home, &["ls"]).clean();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines[1].starts_with("ana") && lines[1].contains("manage"),
        "{shown}"
    );
    assert!(
        lines[1].contains("in 29 days") || lines[1].contains("in 30 days"),
        "{shown}"
    );
    assert!(
        lines[2].starts_with("ci") && lines[2].ends_with("never"),
        "{shown}"
    );
}

#[test]
fn a_revoked_token_is_gone_and_its_name_free() {
    let home = Home::new();
    token(&home, &["add", "ci"]).with_code(0);
    let taken = token(&home, &["add", "ci", "--json"]).with_code(2);
    assert_eq!(taken.error()["code"], "already-there");
    assert_eq!(taken.stdout, "");
    let revoked = token(&home, &["revoke", "ci"]).with_code(0);
    assert_eq!(revoked.stdout, "revoked `ci`\n");
    revoked.complains(&["that was the last token"]);
    assert_eq!(names(&home), [""; 0]);
    let unknown = token(&home, &["revoke", "ci", "--json"]).with_code(2);
    assert_eq!(unknown.error()["code"], "unknown-token");
    token(&home, &["add", "ci"]).with_code(0);
    assert_eq!(names(&home), ["ci"]);
}

#[test]
fn running_gateways_apply_changes_of_tokens_before_the_command_returns() {
    let home = Home::new();
    token(&home, &["add", "first"]).with_code(0);
    let gateways = [Running::start(&home, &[]), Running::start(&home, &[])];
    for round in 0..3 {
        let secret = token(&home, &["add", "ci"]).with_code(0).stdout;
        let clients = gateways
            .each_ref()
            .map(|gateway| ByHand::new(gateway.url(), Some(secret.trim())).initialized());
        token(&home, &["revoke", "ci"]).with_code(0);
        for client in clients {
            let answer = client.request("ping", &serde_json::json!({}));
            assert_eq!(answer.status, 401, "round {round}");
        }
    }
}

#[test]
fn what_cannot_be_a_token_is_refused() {
    let home = Home::new();
    for (words, part) in [
        (&["add", "*"][..], "stands for everybody"),
        (&["add", "local"], "choose another name"),
        (&["add", "two words"], "' '"),
        (&["add", ""], "empty"),
        (&["add", "ci", "--expires", "0d"], "good for no time"),
        (&["add", "ci", "--expires", "soon"], "as in 12h or 30d"),
        (&["add"], "<NAME>"),
        (&["show"], "unrecognized subcommand"),
    ] {
        let refused = token(&home, words).with_code(2);
        refused.complains(&[part, "invalid-usage"]);
        assert_eq!(refused.stdout, "", "{words:?}");
    }
    assert_eq!(names(&home), [""; 0]);
}

#[test]
fn what_somebody_may_do_is_told_with_their_token() {
    let home = Home::new();
    home.user_file(
        "config.toml",
        "[gateway.principals.ci]\nservers = ['git']\n[gateway.principals.bad]\nallow = ['']\n",
    );
    let told = token(&home, &["add", "ci"]).with_code(0);
    told.complains(&["what `ci` may do", "config.toml:1"]);
    let told = token(&home, &["add", "bad"]).with_code(0);
    told.complains(&["`bad` may do nothing", "config.toml:3"]);
    let shown = home.run(["config", "show", "--json"]).with_code(0).stdout;
    assert!(shown.contains("gateway.principals.ci"), "{shown}");
}

#[test]
fn the_gateway_starts_without_a_verb_and_its_options_belong_to_nothing_else() {
    let home = Home::new();
    let both = home.run(["gateway", "--listen", ":0", "token", "list"]);
    both.with_code(2).complains(&["cannot be used with"]);
    // Where output goes may be said anywhere.
    let listed = home.run(["--json", "gateway", "token", "list"]).clean();
    assert_eq!(listed, "{\"tokens\":[]}\n");
    let help = home.run(["gateway", "--help"]).clean();
    assert!(
        help.contains("token") && help.contains("--listen"),
        "{help}"
    );
}

#[test]
fn a_gateway_does_not_begin_while_it_is_in_doubt_who_may_use_it() {
    let home = Home::new();
    for (settings, part) in [
        ("[gateway.oauth]\nresource = 'https://r'\n", "config.toml:2"),
        (
            "[gateway.principals.ci]\ndeny = ['']\n",
            "gateway.principals.ci.deny[0]",
        ),
        (
            "[gateway]\nrequire_tokens = true\n",
            "gateway.require_tokens",
        ),
        ("[gateway\n", "config.toml:1"),
    ] {
        home.user_file("config.toml", settings);
        let refused = home.run(["gateway", "--listen", ":0"]).with_code(2);
        refused.complains(&["invalid-config", "nobody is let in", part]);
        assert_eq!(refused.stdout, "", "{settings}");
    }
}

#[test]
fn a_work_tree_says_nothing_about_who_may_use_a_gateway() {
    let home = Home::new();
    let settings = "[gateway.principals.mallory]\nadmin = true\n";
    home.project_file(".cocode/config.toml", settings);
    let checked = home.run(["config", "check"]);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(
        said.contains("config.toml:1") && said.contains("work tree"),
        "{said}"
    );
    let shown = home.run(["config", "show", "--json"]).with_code(0).stdout;
    assert!(!shown.contains("mallory"), "{shown}");
}

#[test]
fn others_may_reach_a_gateway_that_asks_who_they_are() {
    let home = Home::new();
    let secret = token(&home, &["add", "ci"]).with_code(0).stdout;
    let mut command = home.command(["gateway", "--listen", "0.0.0.0:0", "--json"]);
    let mut gateway = Running::of(&mut command);
    gateway.until_ready(&["workspace"]);
    let port = gateway.url().rsplit(':').next().unwrap();
    let url = format!("http://127.0.0.1:{port}");
    let ping = |words: &[&str]| mcp_at(&[&["ping"], words].concat(), &url);
    ping(&[]).with_code(4);
    let header = |secret: &str| format!("Authorization: Bearer {}", secret.trim());
    ping(&["--header", &header("cocode_guessed")]).with_code(4);
    ping(&["--header", &header(&secret)]).with_code(0);
    // What was revoked lets nobody in, also where it was the last.
    token(&home, &["revoke", "ci"]).with_code(0);
    let with_it = ["--header", &header(&secret)];
    // The gateway notices within a second.
    while ping(&with_it).code == Some(0) {}
    ping(&with_it).with_code(4);
    ping(&[]).with_code(4);
    let (code, told) = gateway.end("-TERM");
    assert_eq!(code, Some(0));
    for part in ["--tls-cert", "--allow-host"] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn system_an_organization_may_want_to_know_who_connects() {
    let home = Home::new();
    let policy = "[gateway]\nrequire_authentication = true\n";
    let system = with_system_files(&[("policy.toml", policy)]);
    let refused = system.run(&home.command(["gateway", "--listen", ":0"]));
    let refused = refused.with_code(6);
    refused.complains(&[
        "blocked-by-policy",
        "/etc/cocode/policy.toml:2",
        "cocode gateway token add",
    ]);
}
