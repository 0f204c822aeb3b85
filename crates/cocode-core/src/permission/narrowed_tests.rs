//! That nobody's own rules give more than the rules for everybody.

use proptest::prelude::{Strategy, prop_assert, proptest};

use super::Narrowed;
use crate::names::ToolName;
use crate::permission::{Authority, RuleEntry, RuleSet, ToolUse, Verdict};

use Verdict::{Allow, Ask, Deny};

fn rules(entries: &[(Verdict, &'static str)]) -> RuleSet<&'static str> {
    let mut rules = RuleSet::new();
    rules.extend(entries.iter().map(|(kind, text)| RuleEntry {
        kind: *kind,
        authority: Authority::User,
        rule: text.parse().unwrap(),
        origin: *text,
    }));
    rules
}

fn verdict(rules: &Narrowed<&'static str>, server: &str, tool: &str) -> Verdict {
    let (server, tool) = (server.parse().unwrap(), ToolName::new(tool));
    rules.decide(&ToolUse::mcp(&server, &tool)).verdict
}

#[test]
fn the_stricter_of_both_holds_and_is_named() {
    let everybody = rules(&[(Deny, "mcp__a__x"), (Ask, "mcp__a__y")]);
    let own = rules(&[
        (Allow, "mcp__a__*"),
        (Ask, "mcp__a__z"),
        (Deny, "mcp__b__*"),
    ]);
    let both = Narrowed::new(everybody, own);
    assert_eq!(verdict(&both, "a", "x"), Deny, "denied to everybody");
    assert_eq!(verdict(&both, "a", "y"), Ask, "asked of everybody");
    assert_eq!(verdict(&both, "a", "z"), Ask, "asked of them");
    assert_eq!(verdict(&both, "b", "x"), Deny, "denied to them");
    assert_eq!(verdict(&both, "a", "w"), Allow);
    let (server, tool) = ("b".parse().unwrap(), ToolName::new("x"));
    let decision = both.decide(&ToolUse::mcp(&server, &tool));
    assert_eq!(decision.origin(), Some(&"mcp__b__*"));
    assert!(!both.is_open());
    assert!(Narrowed::<&str>::new(RuleSet::new(), rules(&[(Allow, "*")])).is_open());
}

#[test]
fn a_default_of_one_counts_for_what_their_rules_do_not_name() {
    let mut own = rules(&[(Allow, "mcp__a__*"), (Ask, "mcp__b__*")]);
    own.set_default(Deny, Authority::User, "the table");
    let both = Narrowed::new(RuleSet::new(), own);
    assert_eq!(verdict(&both, "a", "x"), Allow);
    assert_eq!(verdict(&both, "b", "x"), Ask);
    assert_eq!(verdict(&both, "c", "x"), Deny);
    assert!(!both.is_open());
}

fn some_rules() -> impl Strategy<Value = Vec<(Verdict, &'static str)>> {
    let kinds = proptest::sample::select(vec![Allow, Ask, Deny]);
    let texts = vec![
        "*",
        "mcp__*",
        "mcp__a__*",
        "mcp__a__x",
        "mcp__*__y",
        "mcp__b",
    ];
    let one = (kinds, proptest::sample::select(texts));
    proptest::collection::vec(one, 0..5)
}

proptest! {
    #[test]
    fn nobody_gets_more_than_everybody_nor_more_than_their_own(
        general in some_rules(),
        own in some_rules(),
        default in proptest::option::of(proptest::sample::select(vec![Allow, Ask, Deny])),
        server in proptest::sample::select(vec!["a", "b", "c"]),
        tool in proptest::sample::select(vec!["x", "y", "z"]),
    ) {
        let everybody = rules(&general);
        let mut theirs = rules(&own);
        if let Some(default) = default {
            theirs.set_default(default, Authority::User, "the table");
        }
        let (name, tool_name) = (server.parse().unwrap(), ToolName::new(tool));
        let used = ToolUse::mcp(&name, &tool_name);
        let (of_all, of_one) = (everybody.decide(&used).verdict, theirs.decide(&used).verdict);
        let both = Narrowed::new(everybody.clone(), theirs.clone());
        let found = both.decide(&used).verdict;
        prop_assert!(found >= of_all && found >= of_one);
        prop_assert!(found == of_all || found == of_one);
        prop_assert!(!both.is_open() || found == Allow);
    }
}
