//! Files that change while they are used: what counts at once, what goes on as it was, and that
//! nothing opens up because something cannot be understood.

use std::fs;
use std::sync::mpsc::{TrySendError, sync_channel};
use std::time::Duration;

use cocode_config::{
    ChangeKind, Gone, KeptPart, Live, Reload, ServerChange, State, TrustStore, Watcher,
};
use cocode_core::{Reach, ToolName, ToolRef, ToolUse, Verdict};

use crate::room::Room;

const USER: &str = "user/mcp.toml";
const PROJECT: &str = "work/.mcp.toml";
const LOCAL: &str = "work/.cocode.local.toml";
const POLICY: &str = "system/policy.toml";
const SETTINGS: &str = "user/config.toml";

fn entry(name: &str, command: &str) -> String {
    format!("[mcp_servers.{name}]\ncommand = \"{command}\"\n")
}

fn live(room: &Room) -> Live {
    Live::new(room.places.clone(), |_| None)
}

/// Each server that counts, as `NAME=COMMAND`.
fn running(live: &Live) -> Vec<String> {
    let shown = live.specs().map(|spec| match &spec.reach {
        Reach::Program(program) => format!("{}={}", spec.name, program.command),
        Reach::Remote(remote) => format!("{}={}", spec.name, remote.url),
    });
    shown.collect()
}

fn changes(reload: &Reload) -> Vec<(&str, &ChangeKind)> {
    let changes = reload.changes.iter();
    let changes = changes.map(|ServerChange { server, kind }| (server.as_str(), kind));
    changes.collect()
}

/// What was kept and why, as a user is told it, without the path of the room.
fn kept(room: &Room, live: &Live) -> Vec<String> {
    let root = format!("{}/", room.root.display());
    let kept = live.kept().iter();
    kept.map(|kept| kept.to_string().replace(&root, ""))
        .collect()
}

fn parts(reload: &Reload) -> Vec<&KeptPart> {
    reload.kept.iter().map(|kept| &kept.what).collect()
}

fn revoke(room: &Room, name: &str, file: &str) {
    let mut store = TrustStore::load(room.places.approvals()).unwrap();
    let context = cocode_config::EditContext::new(room.places.locks());
    let file = room.root.join(file);
    assert!(store.revoke(&context, &file, name).unwrap());
}

fn verdict(live: &Live, tool: &str) -> Verdict {
    let server = "a".parse().unwrap();
    let tool = ToolName::new(tool);
    let (server, tool) = (&server, &tool);
    let tool = ToolUse::new(ToolRef::Mcp { server, tool });
    live.config().rules().decide(&tool).verdict
}

#[test]
fn what_is_valid_counts_at_once_and_is_told_apart() {
    let room = Room::new();
    let both = [entry("a", "one"), entry("b", "two")].concat();
    room.write(USER, &both);
    let mut live = live(&room);
    assert_eq!(running(&live), ["a=one", "b=two"]);
    assert!(live.reload().is_quiet());

    let text = format!(
        "{}tool_timeout_sec = 5\n{}",
        entry("a", "one"),
        entry("c", "three")
    );
    room.write(USER, text);
    let reload = live.reload();
    let in_place = ChangeKind::Changed {
        needs_restart: false,
    };
    let expected = [
        ("a", &in_place),
        ("b", &ChangeKind::Removed(Gone::Removed)),
        ("c", &ChangeKind::Added),
    ];
    assert_eq!(changes(&reload), expected);
    assert_eq!(reload.kept, []);

    room.write(
        USER,
        format!(
            "{}enabled = false\n{}",
            entry("c", "three"),
            entry("a", "other")
        ),
    );
    let reload = live.reload();
    let anew = ChangeKind::Changed {
        needs_restart: true,
    };
    let [
        (name, change),
        (_, ChangeKind::Removed(Gone::Disabled(origin))),
    ] = &*changes(&reload)
    else {
        panic!("{reload:?}");
    };
    assert_eq!((*name, *change), ("a", &anew));
    assert_eq!(origin.line, Some(3));
    assert_eq!(running(&live), ["a=other"]);
    fs::remove_file(room.root.join(USER)).unwrap();
    assert_eq!(live.reload().changes.len(), 1);
    assert_eq!(running(&live), [""; 0]);
}

#[test]
fn a_bad_edit_keeps_the_last_good_state_and_says_where_it_is_until_it_is_mended() {
    let room = Room::new();
    room.write(USER, [entry("a", "one"), entry("b", "two")].concat());
    let mut live = live(&room);
    room.write(USER, format!("{}[mcp_servers.b\n", entry("a", "changed")));
    let reload = live.reload();
    assert_eq!(reload.changes, []);
    assert_eq!(running(&live), ["a=one", "b=two"]);
    let servers = ["a", "b"].map(|name| KeptPart::Server(name.to_owned()));
    assert_eq!(parts(&reload), servers.iter().collect::<Vec<_>>());
    let [first, _] = &*kept(&room, &live) else {
        panic!("{reload:?}");
    };
    let expected = "server `a` counts as before until this is mended: user/mcp.toml:3: the file is \
                    not valid TOML: ";
    assert!(first.starts_with(expected), "{first}");
    assert_eq!(reload.problems.len(), 1);
    // Once is enough.
    assert_eq!(live.reload().problems, []);
    assert_eq!(live.kept().len(), 2);

    room.write(USER, [entry("a", "changed"), entry("c", "three")].concat());
    let reload = live.reload();
    assert_eq!(running(&live), ["a=changed", "c=three"]);
    assert_eq!(reload.kept, []);
    assert_eq!(reload.changes.len(), 3);
}

#[test]
fn an_entry_that_became_invalid_goes_on_as_it_was_and_the_others_change() {
    for broken in [
        "[mcp_servers.a]\ncommand = 7\n",
        "[mcp_servers.a]\ncomand = \"one\"\n",
        "[mcp_servers.a]\ncommand = \"${UNSET}\"\n",
        "[mcp_servers.a]\ncommand = \"one\"\nurl = \"https://example.com\"\n",
    ] {
        let room = Room::new();
        room.write(USER, [entry("a", "one"), entry("b", "two")].concat());
        let mut live = live(&room);
        room.write(USER, format!("{broken}{}", entry("b", "changed")));
        let reload = live.reload();
        assert_eq!(running(&live), ["a=one", "b=changed"], "{broken}");
        let [kept] = &*reload.kept else {
            panic!("{broken}: {reload:?}");
        };
        assert_eq!(kept.what, KeptPart::Server("a".to_owned()));
        assert_eq!(kept.because.server.as_deref(), Some("a"), "{broken}");
        assert!(kept.because.origin.line.is_some(), "{broken}");
    }
}

#[test]
fn a_misspelled_table_is_no_removal_but_a_clean_file_without_a_server_is() {
    let room = Room::new();
    room.write(USER, entry("a", "one"));
    let mut live = live(&room);
    for doubtful in ["[mcp_server.a]\ncommand = \"one\"\n", "mcp_servers = 7\n"] {
        room.write(USER, doubtful);
        assert_eq!(live.reload().kept.len(), 1, "{doubtful}");
        assert_eq!(running(&live), ["a=one"], "{doubtful}");
    }
    room.write(USER, "# nothing\n");
    assert_eq!(
        changes(&live.reload()),
        [("a", &ChangeKind::Removed(Gone::Removed))]
    );
    // What was let go does not come back with the next mistake.
    room.write(USER, "[");
    assert_eq!(live.reload().kept, []);
    assert_eq!(running(&live), [""; 0]);
}

#[test]
fn a_broken_entry_that_is_switched_off_does_not_go_on() {
    let room = Room::new();
    room.write(USER, entry("a", "one"));
    let mut live = live(&room);
    room.write(USER, "[mcp_servers.a]\ncommand = 7\nenabled = false\n");
    let reload = live.reload();
    let [(_, ChangeKind::Removed(Gone::Disabled(origin)))] = &*changes(&reload) else {
        panic!("{reload:?}");
    };
    assert_eq!(origin.line, Some(3));
}

#[test]
fn a_file_of_the_command_line_that_is_gone_is_no_removal() {
    let room = Room::new();
    let file = room.write("given.toml", entry("a", "one"));
    let mut places = room.places.clone();
    places.explicit = vec![file.clone()];
    let mut live = Live::new(places, |_| None);
    fs::remove_file(&file).unwrap();
    let reload = live.reload();
    assert_eq!(running(&live), ["a=one"]);
    assert_eq!(parts(&reload), [&KeptPart::Server("a".to_owned())]);
    fs::write(&file, entry("a", "two")).unwrap();
    assert_eq!(live.reload().kept, []);
    assert_eq!(running(&live), ["a=two"]);
}

#[test]
fn a_link_that_leads_nowhere_is_no_removal() {
    let room = Room::new();
    let target = room.write("dotfiles/mcp.toml", entry("a", "one"));
    std::os::unix::fs::symlink(&target, room.root.join(USER)).unwrap();
    let mut live = live(&room);
    fs::remove_file(&target).unwrap();
    assert_eq!(live.reload().kept.len(), 1);
    assert_eq!(running(&live), ["a=one"]);
}

#[test]
fn a_deny_rule_lands_although_another_file_is_broken() {
    let room = Room::new();
    room.write(USER, [entry("a", "one"), entry("b", "two")].concat());
    let mut live = live(&room);
    room.write(USER, "[");
    assert_eq!(live.reload().kept.len(), 2);
    room.write(POLICY, "[[denied]]\nname = \"a\"\n");
    let reload = live.reload();
    assert_eq!(running(&live), ["b=two"]);
    let [("a", ChangeKind::Removed(Gone::Blocked { reason }))] = &*changes(&reload) else {
        panic!("{reload:?}");
    };
    assert!(reason.contains("system/policy.toml:1"), "{reason}");
    assert!(reload.settings_changed);
}

#[test]
fn a_broken_policy_leaves_the_last_good_one_and_opens_nothing() {
    let room = Room::new();
    room.write(USER, [entry("a", "one"), entry("b", "two")].concat());
    room.write(
        POLICY,
        "[[denied]]\nname = \"b\"\n[permissions]\ndeny = [\"mcp__a__drop\"]\n",
    );
    let mut live = live(&room);
    assert_eq!(running(&live), ["a=one"]);
    for broken in ["[[denied]\n", "[[denied]]\nname = 7\n", "unknown = 1\n"] {
        room.write(POLICY, broken);
        let reload = live.reload();
        assert_eq!(running(&live), ["a=one"], "{broken}");
        assert_eq!(parts(&reload), [&KeptPart::Policy], "{broken}");
        assert!(
            kept(&room, &live)[0].contains("system/policy.toml:"),
            "{broken}"
        );
        assert_eq!(verdict(&live, "drop"), Verdict::Deny, "{broken}");
        assert_ne!(verdict(&live, "read"), Verdict::Deny, "{broken}");
    }
    room.write(USER, [entry("b", "two"), entry("c", "three")].concat());
    assert_eq!(live.reload().changes.len(), 2);
    assert_eq!(running(&live), ["c=three"]);
    room.write(POLICY, "[[denied]]\nname = \"c\"\n");
    assert_eq!(live.reload().kept, []);
    assert_eq!(running(&live), ["b=two"]);
}

#[test]
fn a_broken_policy_where_none_was_known_blocks_everything() {
    let room = Room::new();
    room.write(USER, entry("a", "one"));
    let mut live = live(&room);
    room.write(POLICY, "[");
    let reload = live.reload();
    assert_eq!(running(&live), [""; 0]);
    let [(_, ChangeKind::Removed(Gone::Blocked { reason }))] = &*changes(&reload) else {
        panic!("{reload:?}");
    };
    assert!(reason.contains("the policy cannot be used"), "{reason}");
    // And nothing that was blocked is brought back by another mistake.
    room.write(USER, "[");
    assert_eq!(live.reload().changes, []);
    assert_eq!(running(&live), [""; 0]);
}

#[test]
fn an_entry_of_a_work_tree_that_changed_waits_and_does_not_go_on() {
    let room = Room::new();
    for file in [PROJECT, LOCAL] {
        room.write(file, entry("a", "one"));
        room.approve("a");
        let mut live = live(&room);
        assert_eq!(running(&live), ["a=one"]);
        room.write(file, entry("a", "changed"));
        let reload = live.reload();
        assert_eq!(
            changes(&reload),
            [("a", &ChangeKind::Removed(Gone::Pending))]
        );
        assert_eq!(reload.kept, []);
        room.approve("a");
        assert_eq!(changes(&live.reload()), [("a", &ChangeKind::Added)]);
        assert_eq!(running(&live), ["a=changed"]);
        fs::remove_file(room.root.join(file)).unwrap();
    }
}

#[test]
fn a_broken_file_of_a_work_tree_leaves_what_is_approved_until_that_is_withdrawn() {
    for broken in ["[", "[mcp_servers.a]\ncommand = 7\n"] {
        let room = Room::new();
        room.write(PROJECT, entry("a", "one"));
        room.approve("a");
        let mut live = live(&room);
        room.write(PROJECT, broken);
        assert_eq!(live.reload().kept.len(), 1, "{broken}");
        assert_eq!(running(&live), ["a=one"], "{broken}");
        revoke(&room, "a", PROJECT);
        let reload = live.reload();
        assert_eq!(
            changes(&reload),
            [("a", &ChangeKind::Removed(Gone::Pending))]
        );
        assert_eq!(running(&live), [""; 0], "{broken}");
    }
}

#[test]
fn an_approval_that_is_withdrawn_counts_at_once() {
    let room = Room::new();
    room.write(PROJECT, entry("a", "one"));
    room.approve("a");
    let mut live = live(&room);
    revoke(&room, "a", PROJECT);
    assert_eq!(
        changes(&live.reload()),
        [("a", &ChangeKind::Removed(Gone::Pending))]
    );
    room.approve("a");
    assert_eq!(live.reload().changes.len(), 1);
    fs::write(room.places.approvals(), "{").unwrap();
    assert_eq!(
        changes(&live.reload()),
        [("a", &ChangeKind::Removed(Gone::Pending))]
    );
}

#[test]
fn nothing_that_was_switched_off_comes_on_because_the_users_file_is_broken() {
    let room = Room::new();
    room.write(PROJECT, entry("a", "one"));
    room.approve("a");
    let off = "[[overrides]]\nserver = \"a\"\nenabled = false\n";
    room.write(USER, format!("{off}{}", entry("b", "two")));
    let mut live = live(&room);
    assert_eq!(running(&live), ["b=two"]);
    for broken in [
        "[",
        "[[overrides]]\nserver = \"a\"\nenabled = 0\n",
        "overides = 1\n",
    ] {
        room.write(USER, broken);
        let reload = live.reload();
        assert_eq!(running(&live), ["b=two"], "{broken}");
        let server = KeptPart::Server("b".to_owned());
        assert_eq!(parts(&reload), [&KeptPart::Overrides, &server], "{broken}");
    }
    room.write(USER, "");
    assert_eq!(live.reload().kept, []);
    assert_eq!(running(&live), ["a=one"]);
}

#[test]
fn a_broken_entry_in_the_way_leaves_the_one_below_only_while_that_is_as_it_was() {
    let room = Room::new();
    room.write(USER, entry("a", "users"));
    room.write(LOCAL, entry("a", "local"));
    room.approve("a");
    room.write(LOCAL, "");
    let mut live = live(&room);
    assert_eq!(running(&live), ["a=users"]);
    room.write(LOCAL, "[mcp_servers.a]\ncommand = 7\n");
    assert!(matches!(live.config().servers["a"].state, State::Ready(_)));
    assert_eq!(live.reload().kept.len(), 1);
    assert!(matches!(
        live.config().servers["a"].state,
        State::Invalid(_)
    ));
    assert_eq!(running(&live), ["a=users"]);
    room.write(USER, entry("a", "changed"));
    let reload = live.reload();
    assert_eq!(
        changes(&reload),
        [("a", &ChangeKind::Removed(Gone::Invalid))]
    );
}

#[test]
fn an_entry_that_nobody_approved_does_not_end_a_broken_one_of_the_users_own() {
    for broken in ["[", "[mcp_servers.a]\ncommand = 7\n"] {
        let room = Room::new();
        room.write(USER, entry("a", "users"));
        room.write(PROJECT, entry("a", "strangers"));
        let mut live = live(&room);
        assert_eq!(running(&live), ["a=users"]);
        room.write(USER, broken);
        assert_eq!(live.reload().kept.len(), 1, "{broken}");
        assert_eq!(running(&live), ["a=users"], "{broken}");
    }
}

#[test]
fn a_managed_file_ends_all_others_even_broken_and_goes_on_itself() {
    let room = Room::new();
    room.write(USER, entry("a", "one"));
    let mut live = live(&room);
    room.write(USER, "[");
    assert_eq!(live.reload().kept.len(), 1);
    room.write("system/managed-mcp.toml", "[");
    assert_eq!(
        changes(&live.reload()),
        [("a", &ChangeKind::Removed(Gone::Removed))]
    );
    room.write("system/managed-mcp.toml", entry("m", "managed"));
    assert_eq!(live.reload().changes.len(), 1);
    room.write("system/managed-mcp.toml", "[");
    assert_eq!(live.reload().kept.len(), 1);
    assert_eq!(running(&live), ["m=managed"]);
}

#[test]
fn a_plugin_goes_on_while_its_files_or_its_list_are_broken_but_not_once_it_is_off() {
    let room = Room::new();
    let json = r#"{"mcpServers": {"p": {"command": "one"}}}"#;
    let file = room.write("plugin/.mcp.json", json);
    let folder = file.parent().unwrap().display().to_string();
    let list = format!("[[plugins]]\npath = \"{folder}\"\n");
    room.write("user/plugins.toml", &list);
    room.approve("p");
    let mut live = live(&room);
    assert_eq!(running(&live), ["p=one"]);
    room.write("plugin/.mcp.json", "{");
    assert_eq!(live.reload().kept.len(), 1);
    room.write("user/plugins.toml", "[");
    assert_eq!(live.reload().kept.len(), 1);
    assert_eq!(running(&live), ["p=one"]);
    room.write("user/plugins.toml", format!("{list}enabled = false\n"));
    assert_eq!(live.reload().changes.len(), 1);
    assert_eq!(running(&live), [""; 0]);
}

#[test]
fn broken_settings_keep_denying_what_they_denied_and_ask_for_the_rest() {
    let room = Room::new();
    let rules = "[permissions]\ndeny = [\"mcp__a__drop\"]\nallow = [\"mcp__a__read\"]\n";
    room.write(SETTINGS, format!("{rules}[health]\nmax_failures = 9\n"));
    let mut live = live(&room);
    let failures = |live: &Live| live.config().settings.health.max_failures.value;
    assert_eq!(verdict(&live, "drop"), Verdict::Deny);
    assert_eq!(verdict(&live, "read"), Verdict::Allow);
    for broken in [
        "[",
        "[permissions]\ndeny = [7]\n[health]\nmax_failures = \"many\"\n",
    ] {
        room.write(SETTINGS, broken);
        let reload = live.reload();
        assert_eq!(verdict(&live, "drop"), Verdict::Deny, "{broken}");
        assert_eq!(verdict(&live, "read"), Verdict::Ask, "{broken}");
        assert_eq!(parts(&reload), [&KeptPart::Settings], "{broken}");
        assert_eq!(failures(&live), 9, "{broken}");
    }
    room.write(SETTINGS, "");
    let reload = live.reload();
    assert_eq!(reload.kept, []);
    assert!(reload.settings_changed);
    assert_ne!(verdict(&live, "drop"), Verdict::Deny);
    assert_ne!(failures(&live), 9);
}

/// All of it together: a thread notices, and what it says is read.
#[test]
fn an_edit_reaches_whoever_watches_and_a_bad_one_changes_nothing() {
    let room = Room::new();
    room.write(USER, entry("a", "one"));
    let (sender, calls) = sync_channel(1);
    // One call that nobody has seen yet stands for all after it.
    let on_change = move || match sender.try_send(()) {
        Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
    };
    let _watcher = Watcher::start(room.places.clone(), on_change).unwrap();
    let mut live = live(&room);
    for (text, expected, n_kept) in [
        (entry("a", "two"), "a=two", 0),
        ("[".to_owned(), "a=two", 1),
        (entry("a", "three"), "a=three", 0),
    ] {
        // As careful editors do it: there is never half a file.
        let other = room.write("user/mcp.toml.new", &text);
        fs::rename(other, room.root.join(USER)).unwrap();
        loop {
            calls.recv_timeout(Duration::from_mins(1)).unwrap();
            let reload = live.reload();
            if running(&live) == [expected] && reload.kept.len() == n_kept {
                break;
            }
        }
    }
}
