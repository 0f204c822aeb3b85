//! Decisions by example: which rule wins, what is remembered, and what people are told.

use super::*;

use Authority::{Organization, User};
use Verdict::{Allow, Ask, Deny};

type Entry = (Authority, Verdict, &'static str);

/// Rules whose origin is their place in the list.
fn rules(entries: &[Entry]) -> RuleSet<usize> {
    let mut rules = RuleSet::new();
    for (origin, (authority, kind, text)) in entries.iter().enumerate() {
        rules.push(RuleEntry {
            kind: *kind,
            authority: *authority,
            rule: text.parse().unwrap(),
            origin,
        });
    }
    rules
}

/// What is decided about the tool `create_issue` of the server `github`.
fn decide(rules: &RuleSet<usize>) -> (Verdict, Option<usize>, bool, String) {
    let (server, tool) = github();
    let decision = rules.decide(&ToolUse::mcp(&server, &tool));
    (
        decision.verdict,
        decision.origin().copied(),
        decision.is_by_organization(),
        decision.reason(),
    )
}

fn github() -> (ServerName, ToolName) {
    ("github".parse().unwrap(), ToolName::new("create_issue"))
}

fn remember(rules: &mut RuleSet<usize>, answer: Answer, origin: usize) {
    let (server, tool) = github();
    let tool_ref = ToolRef::Mcp {
        server: &server,
        tool: &tool,
    };
    rules.remember(tool_ref, answer, origin);
}

#[test]
fn deny_comes_before_ask_before_allow() {
    let check = |entries: &[Entry], verdict: Verdict, origin: usize, reason: &str| {
        let organization = entries[origin].0 == Organization;
        let expected = (verdict, Some(origin), organization, reason.to_owned());
        assert_eq!(decide(&rules(entries)), expected, "{entries:?}");
    };
    check(
        &[(User, Allow, "mcp__*")],
        Allow,
        0,
        "allowed because of your rule `mcp__*`",
    );
    check(
        &[(User, Allow, "*"), (User, Ask, "mcp__github__*")],
        Ask,
        1,
        "asked because of your rule `mcp__github__*`",
    );
    check(
        &[
            (User, Ask, "*"),
            (Organization, Allow, "*"),
            (User, Deny, "mcp__github__create_*"),
        ],
        Deny,
        2,
        "denied because of your rule `mcp__github__create_*`",
    );
    check(
        &[
            (User, Deny, "mcp__github__delete_*"),
            (Organization, Deny, "mcp__*"),
            (User, Allow, "*"),
        ],
        Deny,
        1,
        "denied because of the organization's rule `mcp__*`",
    );
}

#[test]
fn of_equal_rules_the_organization_is_named_first_then_the_first() {
    let deciding = |entries: &[Entry]| decide(&rules(entries)).1;
    assert_eq!(
        deciding(&[(User, Ask, "*"), (User, Ask, "mcp__*")]),
        Some(0)
    );
    let entries = [
        (User, Ask, "*"),
        (Organization, Ask, "mcp__*"),
        (Organization, Ask, "*"),
    ];
    assert_eq!(deciding(&entries), Some(1));
}

#[test]
fn without_rules_everything_is_allowed() {
    let expected = "allowed because no rule matches and the default is to allow";
    assert_eq!(
        decide(&RuleSet::default()),
        (Allow, None, false, expected.to_owned())
    );
    assert_eq!(
        decide(&rules(&[(User, Deny, "shell")])),
        (Allow, None, false, expected.to_owned())
    );
}

#[test]
fn of_several_defaults_the_strictest_holds() {
    let check = |defaults: &[(Verdict, Authority)], verdict: Verdict, origin: usize| {
        let mut rules = rules(&[]);
        for (origin, (verdict, authority)) in defaults.iter().enumerate() {
            rules.set_default(*verdict, *authority, origin);
        }
        let because = match defaults[origin].1 {
            User => "no rule of yours matches and your",
            Organization => "no rule of the organization matches and its",
        };
        let (found, by, organization, reason) = decide(&rules);
        assert_eq!((found, by), (verdict, Some(origin)), "{defaults:?}");
        assert_eq!(organization, defaults[origin].1 == Organization);
        assert!(
            reason.ends_with(&format!(" because {because} default is to {verdict}")),
            "{reason}"
        );
    };
    check(&[(Allow, User)], Allow, 0);
    check(&[(Allow, User), (Allow, Organization)], Allow, 1);
    check(&[(Ask, User), (Allow, Organization)], Ask, 0);
    check(&[(Allow, Organization), (Deny, User), (Ask, User)], Deny, 1);
    check(&[(Ask, User), (Ask, User), (Ask, Organization)], Ask, 2);
    check(&[(Ask, Organization), (Ask, User)], Ask, 0);
}

#[test]
fn a_rule_makes_an_exception_to_the_default() {
    let mut rules = rules(&[(User, Ask, "mcp__github__*")]);
    rules.set_default(Deny, User, 9);
    assert_eq!(decide(&rules).0, Ask);
    let denied = rules.decide(&ToolUse::built_in("shell")).verdict;
    assert_eq!(denied, Deny);
}

#[test]
fn a_remembered_answer_is_taken_instead_of_asking() {
    let mut rules = rules(&[(User, Ask, "mcp__*"), (Organization, Allow, "*")]);
    remember(&mut rules, Answer::Allow, 7);
    let reason = "allowed because of your remembered answer (your rule `mcp__*` asks)";
    assert_eq!(decide(&rules), (Allow, Some(7), false, reason.to_owned()));

    // The later answer counts.
    remember(&mut rules, Answer::Deny, 8);
    let reason = "denied because of your remembered answer (your rule `mcp__*` asks)";
    assert_eq!(decide(&rules), (Deny, Some(8), false, reason.to_owned()));

    let (server, tool) = github();
    let decision = rules.decide(&ToolUse::mcp(&server, &tool));
    let (asking, origin) = decision.rule().unwrap();
    assert_eq!((asking.to_string().as_str(), *origin), ("mcp__*", 0));
}

#[test]
fn an_answer_counts_for_exactly_one_tool() {
    let mut rules = rules(&[(User, Ask, "*")]);
    remember(&mut rules, Answer::Allow, 7);
    rules.remember(ToolRef::BuiltIn { name: "shell" }, Answer::Deny, 8);
    let verdict = |server: &str, tool: &str| {
        let (server, tool) = (server.parse().unwrap(), ToolName::new(tool));
        rules.decide(&ToolUse::mcp(&server, &tool)).verdict
    };
    assert_eq!(verdict("github", "create_issue"), Allow);
    assert_eq!(verdict("github", "create_issues"), Ask);
    assert_eq!(verdict("github2", "create_issue"), Ask);
    assert_eq!(verdict("shell", "shell"), Ask);
    assert_eq!(rules.decide(&ToolUse::built_in("shell")).verdict, Deny);
    assert_eq!(rules.decide(&ToolUse::built_in("read")).verdict, Ask);
}

#[test]
fn an_answer_neither_opens_what_is_denied_nor_closes_what_is_allowed() {
    for (kind, answer) in [(Deny, Answer::Allow), (Allow, Answer::Deny)] {
        let mut rules = rules(&[(User, kind, "mcp__*")]);
        remember(&mut rules, answer, 7);
        assert_eq!(decide(&rules).0, kind);
    }
}

#[test]
fn no_answer_permits_what_the_organization_wants_asked() {
    // A user's rule in front does not hide the organization's.
    let by_rule = rules(&[(User, Ask, "*"), (Organization, Ask, "mcp__github__*")]);
    let mut by_default = rules(&[(User, Ask, "*")]);
    by_default.set_default(Ask, Organization, 1);
    let because_of_rule = "asked because of the organization's rule `mcp__github__*`";
    let because_of_default =
        "asked because no rule of the organization matches and its default is to ask";
    for (mut rules, reason) in [(by_rule, because_of_rule), (by_default, because_of_default)] {
        remember(&mut rules, Answer::Allow, 7);
        assert_eq!(decide(&rules), (Ask, Some(1), true, reason.to_owned()));

        // A no needs no asking: it is stricter.
        remember(&mut rules, Answer::Deny, 8);
        let reason = "denied because of your remembered answer (your rule `*` asks)";
        assert_eq!(decide(&rules), (Deny, Some(8), false, reason.to_owned()));
    }
}

#[test]
fn an_answer_is_not_taken_where_only_the_organization_asks() {
    for answer in [Answer::Allow, Answer::Deny] {
        let mut rules = rules(&[(User, Allow, "*"), (Organization, Ask, "mcp__*")]);
        remember(&mut rules, answer, 7);
        let reason = "asked because of the organization's rule `mcp__*`";
        assert_eq!(decide(&rules), (Ask, Some(1), true, reason.to_owned()));
    }
}

#[test]
fn the_default_of_a_user_can_be_answered_once_and_for_all() {
    let mut rules = rules(&[]);
    rules.set_default(Ask, User, 3);
    assert_eq!(decide(&rules).0, Ask);
    remember(&mut rules, Answer::Allow, 7);
    let reason = "allowed because of your remembered answer (your default is to ask)";
    assert_eq!(decide(&rules), (Allow, Some(7), false, reason.to_owned()));
}

/// The organization allows the tools of `github` and nothing else.
fn allow_list(users: &[Entry]) -> RuleSet<usize> {
    let mut entries = vec![(Organization, Allow, "mcp__github__*")];
    entries.extend(users);
    let mut rules = rules(&entries);
    rules.set_default(Deny, Organization, 9);
    rules
}

#[test]
fn users_add_nothing_to_what_the_organization_allows() {
    let check = |rules: &RuleSet<usize>| {
        assert_eq!(decide(rules).0, Allow);
        let (server, tool) = ("other".parse().unwrap(), ToolName::new("read"));
        for tool_use in [ToolUse::mcp(&server, &tool), ToolUse::built_in("shell")] {
            let decision = rules.decide(&tool_use);
            assert_eq!((decision.verdict, decision.origin()), (Deny, Some(&9)));
            assert!(decision.is_by_organization());
            assert_eq!(
                decision.reason(),
                "denied because no rule of the organization matches and its default is to deny"
            );
        }
    };
    check(&allow_list(&[]));
    check(&allow_list(&[(User, Allow, "*")]));

    let mut default = allow_list(&[]);
    default.set_default(Allow, User, 8);
    check(&default);

    let mut answered = allow_list(&[(User, Ask, "*")]);
    remember(&mut answered, Answer::Allow, 7);
    let (server, tool) = ("other".parse().unwrap(), ToolName::new("read"));
    let other = ToolRef::Mcp {
        server: &server,
        tool: &tool,
    };
    answered.remember(other, Answer::Allow, 7);
    answered.remember(ToolRef::BuiltIn { name: "shell" }, Answer::Allow, 7);
    check(&answered);
}

#[test]
fn users_are_stricter_than_the_organization_if_they_like() {
    let denied = allow_list(&[(User, Deny, "mcp__github__create_*")]);
    let reason = "denied because of your rule `mcp__github__create_*`";
    assert_eq!(decide(&denied), (Deny, Some(1), false, reason.to_owned()));

    let mut asked = allow_list(&[]);
    asked.set_default(Ask, User, 8);
    let reason = "asked because no rule of yours matches and your default is to ask";
    assert_eq!(decide(&asked), (Ask, Some(8), false, reason.to_owned()));
}

#[test]
fn what_allows_a_tool_is_a_rule_rather_than_a_default() {
    let mut by_user = rules(&[(User, Allow, "*")]);
    by_user.set_default(Allow, Organization, 9);
    assert_eq!(decide(&by_user).1, Some(0));

    let mut by_organization = rules(&[(Organization, Allow, "*")]);
    by_organization.set_default(Allow, User, 9);
    assert_eq!(decide(&by_organization).1, Some(0));

    let by_both = rules(&[(User, Allow, "*"), (Organization, Allow, "*")]);
    assert_eq!(decide(&by_both).1, Some(1));
}

#[test]
fn rules_and_answers_can_be_listed() {
    let mut rules = rules(&[(User, Ask, "b"), (Organization, Deny, "a")]);
    rules.extend([RuleEntry {
        kind: Allow,
        authority: User,
        rule: "c".parse().unwrap(),
        origin: 2,
    }]);
    let listed: Vec<_> = rules.rules().map(|entry| entry.rule.to_string()).collect();
    assert_eq!(listed, ["b", "a", "c"]);

    rules.remember(ToolRef::BuiltIn { name: "shell" }, Answer::Deny, 8);
    remember(&mut rules, Answer::Allow, 7);
    let (server, tool) = github();
    let expected = [
        (
            ToolRef::Mcp {
                server: &server,
                tool: &tool,
            },
            Answer::Allow,
            &7,
        ),
        (ToolRef::BuiltIn { name: "shell" }, Answer::Deny, &8),
    ];
    assert_eq!(rules.answers().collect::<Vec<_>>(), expected);
}
