//! Claude Code.

use cocode_config::{Entry, OAuthEntry, PlaceScope, Tool, Transport};

use crate::agent::{ADDRESS, Agent, address_entry, program_entry, servers};

const SCOPES: [PlaceScope; 3] = [PlaceScope::User, PlaceScope::Project, PlaceScope::Local];

fn http(entry: Entry) -> Entry {
    Entry {
        transport: Some(Transport::Http),
        ..entry
    }
}

#[test]
fn what_it_adds_is_read_as_it_was_meant() {
    let claude = Agent::new(Tool::ClaudeCode);
    for scope in SCOPES {
        let add = |arguments: &[&str]| {
            claude.run(&[&["mcp", "add", "--scope", scope.as_str()], arguments].concat());
        };
        add(&[
            "files",
            "--env",
            "TOKEN=${API_TOKEN}",
            "--env",
            "ROOT=/srv",
            "--",
            "/bin/false",
            "two words",
            "$HOME",
        ]);
        add(&[
            "--transport",
            "http",
            "web",
            ADDRESS,
            "--header",
            "Authorization: Bearer ${TOKEN:-none}",
        ]);
        add(&["--transport", "sse", "events", ADDRESS]);
        let sign_in = ["--client-id", "abc", "--callback-port", "8123"];
        add(&[&["--transport", "http", "signed", ADDRESS][..], &sign_in].concat());
        let events = Entry {
            transport: Some(Transport::Sse),
            ..address_entry(&[])
        };
        let signed = Entry {
            oauth: OAuthEntry {
                client_id: Some("abc".to_owned()),
                callback_port: Some(8123),
                ..OAuthEntry::default()
            },
            ..address_entry(&[])
        };
        let expected = servers([
            (
                "files",
                program_entry(
                    &["two words", "$HOME"],
                    &[("TOKEN", "${API_TOKEN}"), ("ROOT", "/srv")],
                ),
            ),
            (
                "web",
                http(address_entry(&[("Authorization", "Bearer ${TOKEN:-none}")])),
            ),
            ("events", events),
            ("signed", http(signed)),
        ]);
        assert_eq!(claude.read(scope), expected, "{scope:?}");
    }
}

#[test]
fn what_is_written_for_it_is_listed_and_kept_by_it() {
    let claude = Agent::new(Tool::ClaudeCode);
    for scope in SCOPES {
        let named = |name: &str| format!("{name}-{}", scope.as_str());
        let (files, web) = (named("files"), named("web"));
        claude.write(
            scope,
            &servers([
                (&files, program_entry(&["a", "b c"], &[("ROOT", "/srv")])),
                (&web, http(address_entry(&[("X-Kind", "${KIND:-plain}")]))),
            ]),
        );
        claude.write(scope, &servers([("gone", program_entry(&[], &[]))]));
        claude.remove(scope, "gone");
        // A server of its own beside ours leaves ours alone.
        let own = named("own");
        let words = ["mcp", "add", "--scope", scope.as_str()];
        claude.run(&[&words[..], &[&own, "--", "/bin/false"]].concat());
        let kept = claude.read(scope);
        assert_eq!(
            kept.keys().cloned().collect::<Vec<_>>(),
            [files, own, web],
            "{scope:?}"
        );
    }
    let listed = claude.run(&["mcp", "list"]);
    for scope in SCOPES.map(PlaceScope::as_str) {
        let files = format!("files-{scope}: /bin/false a b c - ");
        assert!(listed.contains(&files), "{files} in {listed}");
        let web = format!("web-{scope}: {ADDRESS} (HTTP) - ");
        assert!(listed.contains(&web), "{web} in {listed}");
        let shown = claude.run(&["mcp", "get", &format!("files-{scope}")]);
        for line in ["Type: stdio", "Command: /bin/false", "ROOT=/srv"] {
            assert!(shown.contains(line), "{line} in {shown}");
        }
        let shown = claude.run(&["mcp", "get", &format!("web-{scope}")]);
        // It shows no defaults, which may be secret.
        for line in ["Type: http", ADDRESS, "X-Kind: ${KIND}"] {
            assert!(shown.contains(line), "{line} in {shown}");
        }
    }
    assert!(!listed.contains("gone"), "{listed}");
}
