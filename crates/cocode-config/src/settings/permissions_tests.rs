//! Rules and answers of `[permissions]`, and that a broken one lets nothing through.

use cocode_core::{Answer, Hints, RuleSet, ServerName, ToolName, ToolRef, ToolUse, Verdict};
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use super::remembered_path;
use crate::document::{Format, parse};
use crate::policy::Policy;
use crate::problem::{Origin, Problem};
use crate::settings::parse::parse_settings;
use crate::settings::{LayerTrust, SettingOrigin, SettingsFile, SettingsLayer, merge_settings};

fn layer(trust: LayerTrust, text: &str) -> (SettingsLayer, Vec<Problem>) {
    let root = parse(text, Format::Toml).unwrap();
    let origin = Origin::file("config.toml");
    let (settings, problems) = parse_settings(&root, &origin, SettingsFile::Alone);
    let scope = "user";
    (
        SettingsLayer {
            scope,
            trust,
            settings,
        },
        problems,
    )
}

fn rules(layers: &[(LayerTrust, &str)]) -> RuleSet<SettingOrigin> {
    let layers: Vec<_> = layers
        .iter()
        .map(|(trust, text)| layer(*trust, text).0)
        .collect();
    let (settings, _) = merge_settings(&layers);
    settings.permissions.rule_set(&Policy::none())
}

fn own(text: &str) -> RuleSet<SettingOrigin> {
    rules(&[(LayerTrust::Own, text)])
}

fn verdict(rules: &RuleSet<SettingOrigin>, server: &str, tool: &str) -> Verdict {
    let (server, tool) = (server.parse().unwrap(), ToolName::new(tool));
    rules.decide(&ToolUse::mcp(&server, &tool)).verdict
}

#[test]
fn rules_are_texts_or_tables() {
    let rules = own(
        "[permissions]\ndefault = \"ask\"\nallow = [\"mcp__files__*\", { read_only = true }]\n\
         deny = [{ server = \"a__b\", tool = \"drop_*\" }, { tool = \"mcp__x__*\", destructive = true }]\n",
    );
    assert_eq!(verdict(&rules, "files", "read"), Verdict::Allow);
    assert_eq!(verdict(&rules, "a__b", "drop_all"), Verdict::Deny);
    assert_eq!(verdict(&rules, "a", "b__drop_all"), Verdict::Ask);
    let (server, tool) = ("x".parse().unwrap(), ToolName::new("t"));
    for (read_only, expected) in [(true, Verdict::Allow), (false, Verdict::Deny)] {
        let hints = Hints {
            read_only: Some(read_only),
            destructive: None,
        };
        let tool_use = ToolUse::mcp(&server, &tool).with_hints(hints);
        assert_eq!(rules.decide(&tool_use).verdict, expected);
    }
}

#[test]
fn a_decision_names_the_line_and_the_scope() {
    let rules = own("[permissions]\ndeny = [\n  \"mcp__a__*\",\n  \"mcp__b__*\",\n]");
    let (server, tool) = ("b".parse().unwrap(), ToolName::new("t"));
    let decision = rules.decide(&ToolUse::mcp(&server, &tool));
    let origin = decision.origin().map(ToString::to_string);
    assert_eq!(origin.as_deref(), Some("config.toml:4 (user)"));
}

#[test]
fn whatever_may_have_been_a_restriction_makes_every_tool_ask() {
    for broken in [
        "deny = [\"mcp__\"]",
        "ask = [\"\"]",
        "deny = [1]",
        "deny = \"mcp__a__*\"",
        "deny = [{ tol = \"x\" }]",
        "deny = [{ tool = 1 }]",
        "deny = [{}]",
        "deny = [{ tool = \"x\", destructive = \"yes\" }]",
        "denied = [\"x\"]",
        "default = \"denny\"",
        "default = false",
    ] {
        let text = format!(
            "[permissions]\n{broken}\nallow = [\"*\"]\n\
             [permissions.remembered]\nmcp__a__b = \"allow\"\nmcp__a__no = \"deny\"\n"
        );
        let (layer, problems) = layer(LayerTrust::Own, &text);
        assert_eq!(problems.len(), 2, "{broken}: {problems:?}");
        assert!(
            problems
                .iter()
                .all(|problem| problem.origin.line == Some(2))
        );
        let (settings, _) = merge_settings(&[layer]);
        assert!(settings.permissions.is_broken(), "{broken}");
        let places = settings.permissions.broken().iter();
        let places: Vec<_> = places.map(ToString::to_string).collect();
        assert_eq!(places, ["config.toml:2 (user)"], "{broken}");
        let rules = settings.permissions.rule_set(&Policy::none());
        assert_eq!(verdict(&rules, "a", "b"), Verdict::Ask, "{broken}");
        assert_eq!(verdict(&rules, "z", "z"), Verdict::Ask, "{broken}");
    }
    let whole = own("permissions = \"none\"");
    assert_eq!(verdict(&whole, "a", "b"), Verdict::Ask);
}

#[test]
fn deny_rules_beside_a_broken_one_still_deny() {
    let rules = own("[permissions]\ndeny = [\"mcp__\", \"mcp__a__*\"]");
    assert_eq!(verdict(&rules, "a", "b"), Verdict::Deny);
    assert_eq!(verdict(&rules, "b", "b"), Verdict::Ask);
}

#[test]
fn a_broken_allow_rule_or_answer_only_allows_less() {
    let (layer, problems) = layer(
        LayerTrust::Own,
        "[permissions]\ndefault = \"ask\"\nallow = [\"mcp__\", \"mcp__a__*\"]\n\
         [permissions.remembered]\nmcp__b__c = \"yes\"\nmcp__x = \"allow\"\n",
    );
    assert_eq!(problems.len(), 3);
    let (settings, _) = merge_settings(&[layer]);
    assert!(!settings.permissions.is_broken());
    let rules = settings.permissions.rule_set(&Policy::none());
    assert_eq!(verdict(&rules, "a", "b"), Verdict::Allow);
    assert_eq!(verdict(&rules, "b", "c"), Verdict::Ask);
}

#[test]
fn answers_count_in_the_users_own_file_alone() {
    let text = "[permissions]\ndefault = \"ask\"\n[permissions.remembered]\n\
                mcp__a__b = \"allow\"\nmcp__a__no = \"deny\"\nshell = \"allow\"\n";
    let rules_own = own(text);
    assert_eq!(verdict(&rules_own, "a", "b"), Verdict::Allow);
    assert_eq!(verdict(&rules_own, "a", "no"), Verdict::Deny);
    assert_eq!(
        rules_own.decide(&ToolUse::built_in("shell")).verdict,
        Verdict::Allow
    );
    for trust in [
        LayerTrust::Approved,
        LayerTrust::Unapproved,
        LayerTrust::Organization,
    ] {
        assert_eq!(verdict(&rules(&[(trust, text)]), "a", "b"), Verdict::Ask);
    }
}

#[test]
fn an_answer_that_two_tools_could_mean_is_refused() {
    let (layer, problems) = layer(
        LayerTrust::Own,
        "[permissions]\ndefault = \"ask\"\n[permissions.remembered]\nmcp__a__b__c = \"allow\"\n\
         [permissions.remembered.a__b]\nd = \"allow\"\n",
    );
    assert_eq!(problems.len(), 1);
    let (settings, _) = merge_settings(&[layer]);
    let rules = settings.permissions.rule_set(&Policy::none());
    assert_eq!(verdict(&rules, "a", "b__c"), Verdict::Ask);
    assert_eq!(verdict(&rules, "a__b", "c"), Verdict::Ask);
    assert_eq!(verdict(&rules, "a__b", "d"), Verdict::Allow);
    assert_eq!(verdict(&rules, "a", "b__d"), Verdict::Ask);
}

#[test]
fn a_work_tree_that_is_not_approved_can_only_restrict() {
    let user = (
        LayerTrust::Own,
        "[permissions]\ndefault = \"ask\"\nallow = [\"mcp__a__*\"]",
    );
    let tree = "[permissions]\ndefault = \"allow\"\nallow = [\"*\"]\ndeny = [\"mcp__a__drop\"]";
    let both = rules(&[(LayerTrust::Unapproved, tree), user]);
    assert_eq!(verdict(&both, "z", "z"), Verdict::Ask);
    assert_eq!(verdict(&both, "a", "read"), Verdict::Allow);
    assert_eq!(verdict(&both, "a", "drop"), Verdict::Deny);
    let approved = rules(&[(LayerTrust::Approved, tree), user]);
    assert_eq!(verdict(&approved, "z", "z"), Verdict::Allow);
}

#[test]
fn the_organization_is_stronger_than_any_answer() {
    let policy = Policy::parse(
        "[permissions]\nask = [\"mcp__a__*\"]\ndeny = [\"mcp__b__*\"]",
        "policy.toml".as_ref(),
    );
    let (layer, _) = layer(
        LayerTrust::Own,
        "[permissions]\nallow = [\"*\"]\n[permissions.remembered]\nmcp__a__b = \"allow\"\n\
         mcp__b__c = \"allow\"\n",
    );
    let (settings, _) = merge_settings(&[layer]);
    let rules = settings.permissions.rule_set(&policy);
    assert_eq!(verdict(&rules, "a", "b"), Verdict::Ask);
    assert_eq!(verdict(&rules, "b", "c"), Verdict::Deny);
    assert_eq!(verdict(&rules, "c", "c"), Verdict::Allow);
}

proptest! {
    /// What is written under the path of a tool is the answer for that tool and no other.
    #[test]
    fn the_path_of_an_answer_leads_back_to_the_tool(server in "[a_.]{1,6}", tool in "[a_ .\"]{0,6}") {
        let server: ServerName = server.parse().unwrap();
        let tool = ToolName::new(tool);
        let tool_ref = ToolRef::Mcp { server: &server, tool: &tool };
        let path = remembered_path(tool_ref);
        let keys: Vec<_> = path.iter().map(|key| serde_json::to_string(key).unwrap()).collect();
        let rules = own(&format!("{} = \"deny\"", keys.join(".")));
        let answers: Vec<_> = rules.answers().map(|(tool, answer, _)| (tool, answer)).collect();
        prop_assert_eq!(answers, [(tool_ref, Answer::Deny)]);
    }

    /// Where a restriction is broken, nothing is allowed, whatever else is written.
    #[test]
    fn nothing_is_allowed_beside_a_broken_restriction(
        allow in proptest::collection::vec("[a-z_*]{1,8}", 0..4),
        tool in "[a-z_]{1,8}",
    ) {
        let allow = serde_json::to_string(&allow).unwrap();
        let rules = own(&format!("[permissions]\nallow = {allow}\ndeny = [\"mcp__\"]"));
        prop_assert!(verdict(&rules, "a", &tool) != Verdict::Allow);
    }
}
