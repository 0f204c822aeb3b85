//! Who may use a gateway, from files on a disk: whose files count, and that nothing opens up because
//! something cannot be understood.

use cocode_config::{Config, KeptPart, Live};
use cocode_core::{ToolName, ToolUse, Verdict};

use crate::room::{Room, about};

const SETTINGS: &str = "user/config.toml";
const OAUTH: &str = "[gateway.oauth]\nissuers = ['https://i']\nresource = 'https://r'\n";

fn verdict(config: &Config, principal: &str, server: &str, tool: &str) -> Verdict {
    let rules = config.rules_of(principal, server);
    let (server, tool) = (server.parse().unwrap(), ToolName::new(tool));
    rules.decide(&ToolUse::mcp(&server, &tool)).verdict
}

#[test]
fn somebody_may_do_less_than_everybody_and_never_more() {
    let room = Room::new();
    room.write(
        "system/policy.toml",
        "[permissions]\ndeny = [\"mcp__*__wipe\"]\n",
    );
    room.write(
        SETTINGS,
        "[permissions]\nask = ['mcp__git__push']\ndeny = ['mcp__git__reset']\n\
         [permissions.remembered]\nmcp__git__push = 'allow'\n\
         [gateway.principals.ci]\nservers = ['git']\n\
         allow = ['mcp__git__*']\nask = ['mcp__git__tag']\ndeny = ['mcp__git__gc']\n",
    );
    let config = room.load();
    assert_eq!(config.problems, []);
    let of = |tool: &str| verdict(&config, "ci", "git", tool);
    assert_eq!(of("log"), Verdict::Allow);
    assert_eq!(of("tag"), Verdict::Ask);
    assert_eq!(of("gc"), Verdict::Deny);
    assert_eq!(of("wipe"), Verdict::Deny, "the organization's rule");
    assert_eq!(of("reset"), Verdict::Deny, "the rule for everybody");
    assert_eq!(
        of("push"),
        Verdict::Ask,
        "no file names this server, so no answer counts"
    );
    assert_eq!(verdict(&config, "ci", "files", "read"), Verdict::Deny);
    assert_eq!(verdict(&config, "ana", "files", "read"), Verdict::Allow);
}

#[test]
fn a_policy_may_want_to_know_who_connects() {
    let room = Room::new();
    assert_eq!(room.load().authentication_required(), None);
    let file = room.write(
        "system/policy.toml",
        "[gateway]\nrequire_authentication = true\n",
    );
    let required = room.load().authentication_required().unwrap();
    assert_eq!(
        required.to_string(),
        format!("{}:2 (policy)", file.display())
    );
    room.write(
        "system/policy.toml",
        "[gateway]\nrequire_authentication = false\n",
    );
    assert_eq!(room.load().authentication_required(), None);
    room.write("system/policy.toml", "[gateway]\nrequire = true\n");
    let broken = room.load();
    assert!(broken.policy.is_broken());
    assert!(broken.authentication_required().is_some());
}

#[test]
fn a_project_cannot_let_anybody_in() {
    let room = Room::new();
    room.write(SETTINGS, "[gateway.limits]\nmax_concurrent = 2\n");
    let file = room.write(
        "work/.cocode/config.toml",
        format!("{OAUTH}[gateway.limits]\nmax_concurrent = 99\n"),
    );
    let config = room.load();
    let gateway = &config.settings.gateway;
    assert_eq!(gateway.oauth, None);
    assert_eq!(gateway.limits.max_concurrent.as_ref().unwrap().value, 2);
    let said = about(&config, &file);
    assert_eq!(said.len(), 3, "{said:?}");
    let is_pointed_at = |problem: &&cocode_config::Problem| {
        problem.is_error() && problem.origin.line.is_some() && problem.key.is_some()
    };
    assert!(said.iter().all(is_pointed_at), "{said:?}");
    assert_eq!(
        config.gateway_doubts,
        [],
        "what never counts cannot be missing"
    );
}

#[test]
fn what_cannot_be_understood_puts_a_gateway_in_doubt() {
    for (text, is_in_doubt) in [
        (OAUTH, false),
        ("[gateway]\nprefix = 'x'\n", false),
        ("[gateway]\nrequire_tokens = true\n", true),
        ("[gateway.oauth]\nresource = 'https://r'\n", true),
        ("[gateway.principals.ci]\ndeny = ['']\n", true),
        ("[gateway.oauth\n", true),
    ] {
        let room = Room::new();
        room.write(SETTINGS, text);
        let config = room.load();
        assert_eq!(!config.gateway_doubts.is_empty(), is_in_doubt, "{text}");
    }
    let room = Room::new();
    room.write("work/.cocode/config.toml", "[gateway.oauth\n");
    assert_eq!(room.load().gateway_doubts, []);
}

#[test]
fn an_edit_that_cannot_be_understood_lets_nobody_do_more() {
    let room = Room::new();
    let good = format!(
        "{OAUTH}[gateway.principals.ci]\ndeny = ['mcp__git__push']\n\
         [gateway.limits.servers.git]\nmax_concurrent = 1\n"
    );
    room.write(SETTINGS, &good);
    let mut live = Live::new(room.places.clone(), |_| None);
    for edit in [
        good.replace("deny =", "denied ="),
        good.replace("['mcp__git__push']", "['mcp__']"),
        good.replace("max_concurrent = 1", "max_concurrent = 0"),
        good.replace("['https://i']", "['http://i']"),
        good.replace("[gateway.oauth]", "[gateway.oauth"),
        good.replace("[gateway.oauth]", "[gateway.oaut]"),
        good.replace("principals", "principal"),
        good.replace("gateway.limits", "gateway.limit"),
    ] {
        assert_ne!(edit, good);
        room.write(SETTINGS, &edit);
        let reload = live.reload();
        let config = live.config();
        assert!(!config.gateway_doubts.is_empty(), "{edit}");
        let kept = reload.kept.iter().map(|kept| &kept.what);
        assert!(
            kept.into_iter().any(|what| *what == KeptPart::Settings),
            "{edit}"
        );
        let gateway = &config.settings.gateway;
        assert!(gateway.oauth.is_some(), "{edit}");
        assert!(!gateway.principal("ci").unwrap().is_broken, "{edit}");
        assert_eq!(
            verdict(config, "ci", "git", "push"),
            Verdict::Deny,
            "{edit}"
        );
        assert!(gateway.limits.servers.contains_key("git"), "{edit}");
    }
    // What is taken out on purpose is gone.
    room.write(SETTINGS, OAUTH);
    let reload = live.reload();
    assert_eq!(reload.kept, []);
    let config = live.config();
    assert_eq!(config.gateway_doubts, []);
    assert_eq!(verdict(config, "ci", "git", "push"), Verdict::Allow);
}
