//! What the organization and the user decide: the managed file, the policy, and approvals.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cocode_config::{Loss, Scope, State, check_entry};
use cocode_core::Verdict;

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
fn managed_json_file_is_alone_and_yields_to_toml() {
    let room = full();
    let managed = room.root.join("system/managed-mcp.json");
    let servers =
        r#"{"mcpServers": {"json": {"command": "/bin/x"}, "both": {"command": "/bin/x"}}}"#;
    fs::write(&managed, servers).unwrap();
    let config = room.load();
    assert_eq!(config.managed_by.as_deref(), Some(&*managed));
    let names: Vec<_> = config.ready().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["both", "json"]);
    assert!(config.refuses_unlisted(&unlisted()).is_some());
    assert!(room.places.looked_at().contains(&managed));
    let toml = room.root.join("system/managed-mcp.toml");
    fs::write(&toml, "[mcp_servers.both]\ncommand = \"/bin/toml\"\n").unwrap();
    let config = room.load();
    assert_eq!(config.managed_by.as_deref(), Some(&*toml));
    let winner = &config.servers["both"].winner.found.entry;
    assert_eq!(winner.command.as_deref(), Some("/bin/toml"));
    assert!(config.servers.contains_key("json"));
    // A policy in this file would not count.
    fs::write(&managed, r#"{"mcpServers": {}, "deniedMcpServers": []}"#).unwrap();
    let config = room.load();
    let problem = about(&config, &managed)
        .into_iter()
        .next()
        .unwrap()
        .to_string();
    assert!(problem.contains("deniedMcpServers"), "{problem}");
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

/// The program of a server that is ready.
#[track_caller]
fn program(config: &cocode_config::Config, name: &str) -> cocode_core::Program {
    let State::Ready(spec) = &server(config, name).state else {
        panic!("{name} is {}", state(config, name));
    };
    let cocode_core::Reach::Program(program) = &spec.reach else {
        panic!("{name} is a program");
    };
    program.clone()
}

#[test]
fn a_program_of_a_plugin_is_in_its_real_folder() {
    let room = Room::new();
    room.write("real/.mcp.toml", "[mcp_servers.a]\ncommand = \"./run\"\n");
    let link = room.root.join("link");
    symlink(room.root.join("real"), &link).unwrap();
    let list = format!("[[plugins]]\npath = \"{}\"\n", link.display());
    room.write("user/plugins.toml", list);
    room.approve("a");
    let program = program(&room.load(), "a");
    let folder = room.root.join("real");
    assert_eq!(program.path(), folder.join("./run"));
    assert_eq!(program.directory(), Some(&*folder));
}

#[test]
fn a_relative_path_of_any_file_begins_beside_the_file_behind_all_links() {
    let mut room = Room::new();
    let text = "[mcp_servers.a]\ncommand = \"bin/run\"\n\n\
                [mcp_servers.b]\ncommand = \"./run\"\ncwd = \"sub\"\n\n\
                [mcp_servers.c]\ncommand = \"run\"\n\n\
                [mcp_servers.d]\nurl = \"https://example.com/\"\n";
    let file = room.write("real/all.toml", text);
    let real = room.root.join("real");
    let check = |room: &Room| {
        let config = room.load();
        let a = program(&config, "a");
        assert_eq!((a.path(), a.directory()), (real.join("bin/run"), None));
        let b = program(&config, "b");
        assert_eq!(b.path(), real.join("sub/./run"));
        assert_eq!(b.directory(), Some(&*real.join("sub")));
        let c = program(&config, "c");
        assert_eq!((c.path(), c.directory()), ("run".into(), None));
    };
    symlink(&file, room.root.join("user/mcp.toml")).unwrap();
    check(&room);
    let link = room.root.join("given.toml");
    symlink(&file, &link).unwrap();
    room.places.explicit = vec![link];
    check(&room);
    symlink(&file, room.root.join("system/managed-mcp.toml")).unwrap();
    check(&room);
}

const BROKEN: &str = "[mcp_servers.a]\ncommand = \"test\"\nenabeld = true\n";

#[test]
fn nothing_is_used_instead_of_a_broken_entry_that_was_approved() {
    let room = Room::new();
    let lower = room.write("user/mcp.toml", SERVER);
    let file = room.write(
        "work/.cocode.local.toml",
        "[mcp_servers.a]\ncommand = \"test\"\n",
    );
    room.approve("a");
    assert_eq!(words(&room.load(), "a"), ["test"]);
    room.write("work/.cocode.local.toml", BROKEN);
    let config = room.load();
    let server = server(&config, "a");
    assert_eq!(*server.winner.found.origin.file, *file);
    let State::Invalid(problems) = &server.state else {
        panic!("it is {}", server.state.as_str());
    };
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(told[0].contains(".cocode.local.toml:3"), "{told:?}");
    let hint = problems.last().unwrap().hint.as_deref().unwrap();
    assert!(hint.contains(lower.to_str().unwrap()), "{hint}");
}

#[test]
fn a_broken_entry_that_nobody_approved_keeps_no_other_from_working() {
    let room = Room::new();
    room.write("user/mcp.toml", SERVER);
    for file in ["work/.cocode.local.toml", "work/.mcp.toml"] {
        room.write(file, BROKEN);
    }
    let config = room.load();
    assert_eq!(state(&config, "a"), "ready");
    let passed_over = server(&config, "a").passed_over();
    let losses: Vec<_> = passed_over.iter().map(|(_, loss)| *loss).collect();
    assert_eq!(losses, [Loss::Broken, Loss::Broken]);
}

#[test]
fn a_file_that_cannot_be_read_says_that_servers_are_missing() {
    let room = Room::new();
    room.write("user/mcp.toml", SERVER);
    let file = room.write("work/.cocode.local.toml", "[mcp_servers\n");
    let config = room.load();
    assert_eq!(state(&config, "a"), "ready");
    let problems: Vec<_> = config.file_problems().collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(*problems[0].origin.file, *file);
    let hint = problems[0].hint.as_deref().unwrap();
    assert!(hint.contains("servers in this file are missing"), "{hint}");
}

#[test]
fn overrides_in_a_file_of_the_command_line_are_read_and_checked() {
    let mut room = Room::new();
    let good = "[mcp_servers.a]\ncommand = \"run\"\n\n\
                [[overrides]]\nserver = \"b\"\nenabled = false\n";
    room.places.explicit = vec![room.write("given.toml", good)];
    let config = room.load();
    assert!(
        config.all_problems().is_empty(),
        "{:?}",
        config.all_problems()
    );
    assert_eq!(state(&config, "a"), "ready");
    // Wrong ones are said, and said once.
    let wrong = "[[overrides]]\nserver = \"b\"\nenabeld = false\n";
    let file = room.write("given.toml", wrong);
    assert_eq!(about(&room.load(), &file).len(), 1);
    let file = room.write("given.toml", "nonsense = 1\n");
    assert_eq!(about(&room.load(), &file).len(), 1);
    let file = room.write("given.toml", "[nonsense\n");
    let config = room.load();
    let errors = about(&config, &file);
    let errors: Vec<_> = errors.iter().filter(|one| one.is_error()).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn programs_by_name_alone_are_warned_of_where_the_organization_wrote_them() {
    let room = Room::new();
    room.write(
        "system/policy.toml",
        "[[allowed]]\ncommand = [\"run\"]\n\n[[allowed]]\ncommand = [\"/bin/run\"]\n\n\
         [[allowed]]\nname = \"x\"\n\n[[denied]]\ncommand = [\"rm\"]\n",
    );
    room.write(
        "system/managed-mcp.toml",
        "[mcp_servers.a]\ncommand = \"run\"\n\n[mcp_servers.b]\ncommand = \"/bin/run\"\n\n\
         [mcp_servers.c]\nurl = \"https://example.com/\"\n",
    );
    let warnings = room.load().policy_warnings();
    let places: Vec<_> = warnings
        .iter()
        .map(|one| {
            let name = one.origin.file.file_name().unwrap().to_str().unwrap();
            (name.to_owned(), one.server.clone())
        })
        .collect();
    let a = Some("a".to_owned());
    assert_eq!(
        places,
        [
            ("policy.toml".to_owned(), None),
            ("managed-mcp.toml".to_owned(), a)
        ]
    );
    assert!(warnings.iter().all(|one| !one.is_error()));
    let user = Room::new();
    user.write("user/mcp.toml", SERVER);
    assert_eq!(user.load().policy_warnings(), []);
}

#[test]
fn remembered_answers_allow_nothing_of_a_work_tree_or_plugin() {
    let room = Room::new();
    room.write(
        "user/config.toml",
        "[permissions]\nask = [\"mcp__*\"]\n\n[permissions.remembered]\n\
         mcp__a__good = \"allow\"\nmcp__a__bad = \"deny\"\n",
    );
    let verdicts = || {
        let config = room.load();
        let rules = config.rules_for("a");
        let server = "a".parse().unwrap();
        ["good", "bad"].map(|tool| {
            let tool = cocode_core::ToolName::new(tool);
            rules
                .decide(&cocode_core::ToolUse::mcp(&server, &tool))
                .verdict
        })
    };
    room.write("user/mcp.toml", SERVER);
    assert!(room.load().remembers_answers_for("a"));
    assert_eq!(verdicts(), [Verdict::Allow, Verdict::Deny]);
    for file in ["work/.mcp.toml", "work/.cocode.local.toml"] {
        let written = room.write(file, SERVER);
        room.approve("a");
        assert!(!room.load().remembers_answers_for("a"), "{file}");
        assert_eq!(verdicts(), [Verdict::Ask, Verdict::Deny], "{file}");
        fs::remove_file(written).unwrap();
    }
}

#[test]
fn a_broken_rule_of_the_organization_denies() {
    let room = Room::new();
    room.write("user/mcp.toml", SERVER);
    let verdict = || {
        let config = room.load();
        let tool = cocode_core::ToolName::new("t");
        let server = "a".parse().unwrap();
        let wanted = cocode_core::ToolUse::mcp(&server, &tool);
        config.rules_for("a").decide(&wanted).verdict
    };
    for text in [
        "[permissions]\ndefault = \"deny\"\ndney = [\"mcp__x__*\"]\n",
        "[permissions]\ndefault = \"allow\"\ndeny = [3]\n",
        "[permissions\n",
    ] {
        let file = room.write("system/config.toml", text);
        assert_eq!(verdict(), Verdict::Deny, "{text}");
        let config = room.load();
        let told: Vec<_> = about(&config, &file)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(
            told.iter().any(|one| one.contains("every tool is denied")),
            "{told:?}"
        );
        fs::remove_file(file).unwrap();
        // The user's own broken file asks, as before.
        let file = room.write("user/config.toml", text.replace("default = \"deny\"\n", ""));
        assert_eq!(verdict(), Verdict::Ask, "{text}");
        fs::remove_file(file).unwrap();
    }
}
