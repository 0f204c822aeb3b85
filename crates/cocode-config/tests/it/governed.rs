//! What the organization and the user decide: the managed file, the policy, and approvals.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cocode_config::{Loss, Scope, check_entry};

use crate::room::{Room, about, server, state, words};

const SERVER: &str = "[mcp_servers.a]\ncommand = \"x\"\n";
const JSON: &str = r#"{"mcpServers": {"a": {"command": "x"}}}"#;

/// Makes a file.
type Make = fn(&Path);

/// A room in which every scope has a server, and all are approved.
fn full() -> Room {
    let room = Room::new();
    room.write("user/mcp.toml", SERVER.replace(".a]", ".user]"));
    room.write("work/.cocode.local.toml", SERVER.replace(".a]", ".local]"));
    room.write("work/.mcp.toml", SERVER.replace(".a]", ".project]"));
    room.write("work/.mcp.json", JSON.replace("\"a\"", "\"json\""));
    let plugin = room.write("plugin/.mcp.json", JSON.replace("\"a\"", "\"plugin\""));
    let plugin = plugin.parent().unwrap().display();
    room.write(
        "user/plugins.toml",
        format!("[[plugins]]\npath = \"{plugin}\"\n"),
    );
    room.write("explicit.toml", SERVER.replace(".a]", ".explicit]"));
    for name in ["local", "project", "json", "plugin"] {
        room.approve(name);
    }
    room
}

fn unlisted() -> cocode_core::ServerSpec {
    let entry = cocode_config::Entry {
        command: Some("x".to_owned()),
        ..cocode_config::Entry::default()
    };
    check_entry("adhoc", &entry, &|_| None).unwrap()
}

#[test]
fn every_scope_counts_without_a_managed_file() {
    let mut room = full();
    let config = room.load();
    let names: Vec<_> = config.ready().map(|spec| spec.name.to_string()).collect();
    assert_eq!(names, ["json", "local", "plugin", "project", "user"]);
    assert_eq!(config.refuses_unlisted(&unlisted()), None);
    room.places.explicit = vec![room.root.join("explicit.toml")];
    let config = room.load();
    let names: Vec<_> = config.ready().map(|spec| spec.name.to_string()).collect();
    assert_eq!(
        names,
        ["explicit"],
        "a named file replaces the other scopes"
    );
}

#[test]
fn a_managed_file_in_any_condition_is_alone() {
    let make: [(&str, Make); 8] = [
        ("good", |path| fs::write(path, SERVER).unwrap()),
        ("empty", |path| fs::write(path, "").unwrap()),
        ("bad syntax", |path| fs::write(path, "[").unwrap()),
        ("no text", |path| fs::write(path, b"\xff").unwrap()),
        ("directory", |path| fs::create_dir(path).unwrap()),
        ("to nowhere", |path| symlink("nothing", path).unwrap()),
        ("loop", |path| symlink(path, path).unwrap()),
        ("broken entry", |path| {
            fs::write(path, "[mcp_servers.a]\nx = 1\n").unwrap();
        }),
    ];
    for (kind, make) in make {
        let mut room = full();
        let managed = room.root.join("system/managed-mcp.toml");
        make(&managed);
        for explicit in [vec![], vec![room.root.join("explicit.toml")]] {
            room.places.explicit = explicit;
            let config = room.load();
            assert_eq!(config.managed_by.as_deref(), Some(&*managed), "{kind}");
            let is_managed = |one: &cocode_config::Server| one.winner.scope == Scope::Enterprise;
            assert!(config.servers.values().all(is_managed), "{kind}");
            assert!(config.plugins.is_empty(), "{kind}");
            assert_eq!(
                config.ready().count(),
                usize::from(kind == "good"),
                "{kind}"
            );
            let refusal = config.refuses_unlisted(&unlisted()).unwrap();
            assert!(refusal.contains("managed-mcp.toml"), "{refusal}");
            let is_fine = ["good", "empty"].contains(&kind);
            assert_eq!(about(&config, &managed).is_empty(), is_fine, "{kind}");
        }
    }
}

#[test]
fn the_policy_judges_what_is_run_after_expansion() {
    let room = Room::new();
    let servers = "[mcp_servers.a]\ncommand = \"${TOOL:-good}\"\n\
                   [mcp_servers.b]\nurl = \"https://${HOST:-h.example}/x\"\n";
    room.write("user/mcp.toml", servers);
    room.write(
        "system/policy.toml",
        "[[allowed]]\ncommand = [\"good\"]\n[[allowed]]\nurl = \"https://*.example/*\"\n",
    );
    let config = room.load();
    assert_eq!(
        (state(&config, "a"), state(&config, "b")),
        ("ready", "ready")
    );
    let config = room.load_with(&|_| Some("evil".to_owned()));
    assert_eq!(
        (state(&config, "a"), state(&config, "b")),
        ("blocked", "blocked")
    );
    assert!(config.refuses_unlisted(&unlisted()).is_some());
}

#[test]
fn what_waits_never_shadows_what_is_approved() {
    let room = Room::new();
    room.write("user/mcp.toml", SERVER.replace("\"x\"", "\"mine\""));
    room.write("work/.mcp.toml", SERVER.replace("\"x\"", "\"theirs\""));
    let config = room.load();
    assert_eq!(words(&config, "a"), ["mine"]);
    let losses: Vec<_> = server(&config, "a")
        .others
        .iter()
        .map(|(_, loss)| *loss)
        .collect();
    assert_eq!(losses, [Loss::Pending]);
    room.approve("a");
    let config = room.load();
    assert_eq!(words(&config, "a"), ["theirs"]);
    // A change asks again, and until then the user's own counts.
    room.write("work/.mcp.toml", SERVER.replace("\"x\"", "\"changed\""));
    let config = room.load();
    assert_eq!(words(&config, "a"), ["mine"]);
    let (other, _) = server(&config, "a").others.first().unwrap();
    assert_eq!(other.trust.as_str(), "changed");
}

#[test]
fn every_kind_of_file_in_the_work_tree_waits_again_after_a_change() {
    for (file, before, after) in [
        (
            "work/.cocode.local.toml",
            SERVER,
            "[mcp_servers.a]\ncommand = \"y\"\n",
        ),
        (
            "work/.mcp.toml",
            SERVER,
            "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"y\"]\n",
        ),
        (
            "work/.mcp.json",
            JSON,
            r#"{"mcpServers": {"a": {"command": "x", "env": {"A": "b"}}}}"#,
        ),
        (
            "plugin/.mcp.json",
            JSON,
            r#"{"mcpServers": {"a": {"command": "y"}}}"#,
        ),
        (
            "plugin/plugin.json",
            JSON,
            r#"{"mcpServers": {"a": {"command": "y"}}}"#,
        ),
    ] {
        let room = Room::new();
        let plugin = room.root.join("plugin");
        if file.starts_with("plugin") {
            let list = format!("[[plugins]]\npath = \"{}\"\n", plugin.display());
            room.write("user/plugins.toml", list);
        }
        room.write(file, before);
        assert_eq!(state(&room.load(), "a"), "pending", "{file}");
        room.approve("a");
        assert_eq!(state(&room.load(), "a"), "ready", "{file}");
        room.write(file, after);
        assert_eq!(state(&room.load(), "a"), "pending", "{file}");
        assert_eq!(room.load().ready().count(), 0);
        room.write(file, before);
        assert_eq!(state(&room.load(), "a"), "ready", "{file}");
    }
}

#[test]
fn a_work_tree_elsewhere_is_not_approved() {
    let mut room = Room::new();
    room.write("work/.mcp.toml", SERVER);
    room.approve("a");
    for name in ["copy", "moved"] {
        fs::create_dir_all(room.root.join(name).join(".git")).unwrap();
    }
    fs::copy(
        room.root.join("work/.mcp.toml"),
        room.root.join("copy/.mcp.toml"),
    )
    .unwrap();
    room.places.directory = Some(room.root.join("copy"));
    assert_eq!(state(&room.load(), "a"), "pending");
    fs::rename(
        room.root.join("work/.mcp.toml"),
        room.root.join("moved/.mcp.toml"),
    )
    .unwrap();
    room.places.directory = Some(room.root.join("moved"));
    assert_eq!(state(&room.load(), "a"), "pending");
}

#[test]
fn a_link_to_an_approved_file_runs_nothing_beside_the_link() {
    let mut room = Room::new();
    let file = room.write("work/.mcp.toml", "[mcp_servers.a]\ncommand = \"./run\"\n");
    room.approve("a");
    fs::create_dir_all(room.root.join("hostile/.git")).unwrap();
    symlink(&file, room.root.join("hostile/.mcp.toml")).unwrap();
    room.places.directory = Some(room.root.join("hostile"));
    let config = room.load();
    for spec in config.ready() {
        let cocode_core::Reach::Program(program) = &spec.reach else {
            panic!("it is a program");
        };
        assert_eq!(program.directory(), Some(&*room.root.join("work")));
    }
}

#[test]
fn an_approval_store_that_is_broken_approves_nothing() {
    let room = full();
    fs::write(room.places.approvals(), "{").unwrap();
    let config = room.load();
    let names: Vec<_> = config.ready().map(|spec| spec.name.to_string()).collect();
    assert_eq!(names, ["user"]);
    assert!(!about(&config, &room.places.approvals()).is_empty());
}

#[test]
fn a_user_overrides_what_others_wrote_by_any_path_of_the_work_tree() {
    let mut room = Room::new();
    room.write("work/.mcp.toml", SERVER);
    room.approve("a");
    let link = room.root.join("link");
    symlink(room.root.join("work"), &link).unwrap();
    let tree = room.root.join("work");
    let text = format!(
        "[[overrides]]\nserver = \"a\"\nproject = \"{}\"\nenabled = false\n",
        tree.display()
    );
    room.write("user/mcp.toml", text);
    assert_eq!(state(&room.load(), "a"), "disabled");
    room.places.directory = Some(link);
    assert_eq!(state(&room.load(), "a"), "disabled");
    room.write(
        "user/mcp.toml",
        "[[overrides]]\nserver = \"a\"\nproject = \"/elsewhere\"\nenabled = false\n",
    );
    assert_eq!(state(&room.load(), "a"), "ready");
}

#[test]
fn settings_of_a_home_that_is_a_work_tree_are_the_users_own() {
    let mut room = Room::new();
    room.places.user = room.root.join("work/.cocode");
    room.write("work/.cocode/config.toml", "");
    assert!(room.load().pending_settings.is_empty());
}

#[test]
fn a_plugin_that_names_its_own_server_file_has_its_servers_once() {
    let room = Room::new();
    let manifest = room.write(
        "plugin/plugin.json",
        r#"{"name": "p", "mcpServers": "./.mcp.json"}"#,
    );
    room.write(
        "plugin/.mcp.json",
        r#"{"a": {"command": "${COCODE_PLUGIN_ROOT}/run"}}"#,
    );
    let plugin = manifest.parent().unwrap().display();
    room.write(
        "user/plugins.toml",
        format!("[[plugins]]\npath = \"{plugin}\"\n"),
    );
    room.approve("a");
    let config = room.load();
    assert!(
        config.all_problems().is_empty(),
        "{:?}",
        config.all_problems()
    );
    assert_eq!(words(&config, "a"), [format!("{plugin}/run")]);
}
