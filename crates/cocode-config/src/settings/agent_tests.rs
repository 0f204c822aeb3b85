//! What agents may do: defaults, profiles, files that nobody approved, and bounds.

use std::path::{Path, PathBuf};

use cocode_core::{ApprovalPolicy as Ask, SandboxMode as Mode};

use super::{AgentBounds, AgentSettings};
use crate::document::{Format, parse};
use crate::problem::{Origin, Problem};
use crate::settings::parse::parse_settings;
use crate::settings::{LayerTrust, Setting, Settings, SettingsFile, SettingsLayer, merge_settings};

fn layer(scope: &'static str, trust: LayerTrust, text: &str) -> SettingsLayer {
    let root = parse(text, Format::Toml).unwrap();
    let origin = Origin::file(format!("{scope}.toml"));
    let (settings, problems) = parse_settings(&root, &origin, SettingsFile::Alone);
    assert_eq!(problems, [], "{text}");
    SettingsLayer {
        scope,
        trust,
        settings,
    }
}

fn own(text: &str) -> AgentSettings {
    merge_settings(&[layer("user", LayerTrust::Own, text)])
        .0
        .agent
}

/// The settings of a user, in a work tree whose file nobody approved.
fn in_a_tree(own: &str, theirs: &str) -> (Settings, Vec<Problem>) {
    merge_settings(&[
        layer("project", LayerTrust::Unapproved, theirs),
        layer("user", LayerTrust::Own, own),
    ])
}

fn place<T>(setting: &Setting<T>) -> Option<String> {
    setting.from.as_ref().map(ToString::to_string)
}

#[test]
fn the_defaults_write_nothing_and_ask() {
    let agent = Settings::default().agent;
    assert_eq!(agent.approval_policy.value, Ask::OnRequest);
    assert_eq!(agent.sandbox.value, Mode::ReadOnly);
    assert!(!agent.network.value);
    assert!(agent.writable_roots.value.is_empty());
    assert_eq!(agent.max_steps.value, 100);
    assert_eq!(agent.compact_percent.value, 80);
    assert_eq!(place(&agent.sandbox), None);
}

#[test]
fn every_value_tells_where_it_is_written() {
    let agent = own(
        "[agent]\nsandbox = \"workspace-write\"\nwritable_roots = [\"/a\", \"~/b\"]\n\
         instructions = \"\"\"\nBe brief.\n\"\"\"\nmax_steps = 7",
    );
    assert_eq!(place(&agent.sandbox).unwrap(), "user.toml:2 (user)");
    assert_eq!(place(&agent.max_steps).unwrap(), "user.toml:7 (user)");
    assert_eq!(agent.instructions.as_ref().unwrap().value, "Be brief.\n");
    let roots = agent.writable_in(Path::new("/homes/ann"));
    assert_eq!(roots, ["/a", "/homes/ann/b"].map(PathBuf::from));
}

#[test]
fn a_profile_counts_as_a_whole_and_only_from_files_that_are_trusted() {
    let (settings, problems) = merge_settings(&[
        layer(
            "project",
            LayerTrust::Unapproved,
            "[agent.profiles.ours]\nsandbox = \"danger-full-access\"\n[agent.profiles.theirs]\n",
        ),
        layer(
            "local",
            LayerTrust::Approved,
            "[agent.profiles.ours]\nmodel = \"m\"\nnetwork = true",
        ),
        layer(
            "user",
            LayerTrust::Own,
            "[agent.profiles.ours]\nsandbox = \"workspace-write\"\nmax_steps = 3",
        ),
    ]);
    let profiles = settings.agent.profiles;
    assert_eq!(profiles.len(), 1);
    let ours = profiles.get("ours").unwrap();
    assert_eq!(ours.model.as_deref(), Some("m"));
    assert_eq!(ours.network, Some(true));
    assert_eq!(ours.sandbox, None);
    assert_eq!(ours.max_steps, None);
    assert_eq!(ours.from.to_string(), "local.toml:1 (local)");
    assert_eq!(problems.len(), 1);
}

#[test]
fn an_unapproved_file_makes_agents_stricter_and_nothing_else() {
    let user = "[agent]\napproval_policy = \"on-failure\"\nsandbox = \"danger-full-access\"\nnetwork = true";
    let strict =
        "[agent]\napproval_policy = \"untrusted\"\nsandbox = \"read-only\"\nnetwork = false";
    let (settings, problems) = in_a_tree(user, strict);
    assert_eq!(problems, []);
    let agent = settings.agent;
    assert_eq!(agent.approval_policy.value, Ask::Untrusted);
    assert_eq!(agent.sandbox.value, Mode::ReadOnly);
    assert!(!agent.network.value);
    assert_eq!(place(&agent.network).unwrap(), "project.toml:4 (project)");

    let (settings, problems) = in_a_tree(strict, user);
    assert_eq!(settings.agent, own(strict));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("is not approved"));

    // What is written there already need not be said.
    assert_eq!(in_a_tree(strict, strict).1, []);
}

#[test]
fn an_unapproved_file_neither_sets_never_nor_takes_it_away() {
    let never = "[agent]\napproval_policy = \"never\"";
    let untrusted = "[agent]\napproval_policy = \"untrusted\"";
    let (settings, problems) = in_a_tree(untrusted, never);
    assert_eq!(settings.agent.approval_policy.value, Ask::Untrusted);
    assert_eq!(problems.len(), 1);
    let (settings, problems) = in_a_tree("", never);
    assert_eq!(settings.agent.approval_policy.value, Ask::OnRequest);
    assert_eq!(problems.len(), 1);
    // Who never wants to be asked is not asked because of somebody's work tree.
    let (settings, problems) = in_a_tree(never, untrusted);
    assert_eq!(settings.agent.approval_policy.value, Ask::Never);
    assert_eq!(problems.len(), 1);
}

#[test]
fn an_unapproved_file_says_nothing_to_models_and_opens_no_directory() {
    for theirs in [
        "writable_roots = [\"/\"]",
        "instructions = \"Obey.\"",
        "max_steps = 9999",
        "compact_percent = 95",
        "network = true",
        "sandbox = \"workspace-write\"",
        "approval_policy = \"on-failure\"",
    ] {
        let (settings, problems) = in_a_tree("", &format!("[agent]\n{theirs}"));
        assert_eq!(settings, Settings::default(), "{theirs}");
        assert_eq!(problems.len(), 1, "{theirs}");
    }
}

fn bounds(sandbox: Mode, policies: &[Ask]) -> AgentBounds {
    AgentBounds {
        max_sandbox: Some(Setting {
            value: sandbox,
            from: None,
        }),
        approval_policies: Some(Setting {
            value: policies.to_vec(),
            from: None,
        }),
    }
}

#[test]
fn bounds_lower_what_is_beyond_them_and_leave_the_rest() {
    let wild = own("[agent]\napproval_policy = \"never\"\nsandbox = \"danger-full-access\"");
    assert_eq!(AgentBounds::default().applied_to(&wild), wild);
    let bounded = bounds(Mode::WorkspaceWrite, &[Ask::OnFailure, Ask::Untrusted]).applied_to(&wild);
    assert_eq!(bounded.sandbox.value, Mode::WorkspaceWrite);
    assert_eq!(bounded.approval_policy.value, Ask::Untrusted);
    let tame = Settings::default().agent;
    let same = bounds(Mode::WorkspaceWrite, &[Ask::OnFailure]).applied_to(&tame);
    assert_eq!(same, tame, "what asks more than what is allowed is allowed");
}

#[test]
fn what_is_not_allowed_becomes_the_next_stricter_policy() {
    for (wanted, allowed, expected) in [
        (
            Ask::OnFailure,
            &[Ask::Untrusted, Ask::OnRequest][..],
            Ask::OnRequest,
        ),
        (Ask::OnFailure, &[Ask::Untrusted], Ask::Untrusted),
        (Ask::OnFailure, &[Ask::Never], Ask::Never),
        (Ask::Untrusted, &[Ask::Never], Ask::Never),
        (
            Ask::Never,
            &[Ask::OnFailure, Ask::OnRequest],
            Ask::OnRequest,
        ),
        (Ask::Never, &[Ask::Never], Ask::Never),
    ] {
        let wanted = own(&format!("[agent]\napproval_policy = \"{wanted}\""));
        let bounds = bounds(Mode::ReadOnly, allowed);
        let settled = bounds.applied_to(&wanted).approval_policy.value;
        assert_eq!(settled, expected, "{allowed:?}");
        assert_eq!(bounds.objection_to_policy(settled), None);
    }
}
