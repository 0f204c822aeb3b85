//! Properties of decisions, over names and rules that are likely to be mistaken for each other.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::names::{ServerName, ToolName};
use crate::table::NameTable;

/// A rule as data, for the model to read in its own way.
#[derive(Debug, Clone)]
struct Draft {
    kind: Verdict,
    authority: Authority,
    text: Text,
    condition: Condition,
}

#[derive(Debug, Clone)]
enum Text {
    Whole(String),
    Apart(String, String),
}

#[derive(Debug, Clone)]
enum Tool {
    Mcp(ServerName, ToolName),
    BuiltIn(String),
}

/// Everything a decision depends on.
#[derive(Debug, Clone)]
struct World {
    drafts: Vec<Draft>,
    defaults: Vec<(Verdict, Authority)>,
    answers: Vec<(Tool, Answer)>,
    tool: Tool,
    hints: Hints,
}

impl Text {
    fn rule(&self) -> Result<Rule, InvalidRule> {
        match self {
            Self::Whole(text) => text.parse(),
            Self::Apart(server, tool) => Rule::for_server(server, tool),
        }
    }
}

impl Tool {
    fn as_ref(&self) -> ToolRef<'_> {
        match self {
            Self::Mcp(server, tool) => ToolRef::Mcp { server, tool },
            Self::BuiltIn(name) => ToolRef::BuiltIn { name },
        }
    }
}

impl World {
    fn rules(&self) -> RuleSet<()> {
        let mut rules = RuleSet::new();
        for draft in &self.drafts {
            rules.push(RuleEntry {
                kind: draft.kind,
                authority: draft.authority,
                rule: draft.text.rule().unwrap().when(draft.condition),
                origin: (),
            });
        }
        for (verdict, authority) in &self.defaults {
            rules.set_default(*verdict, *authority, ());
        }
        for (tool, answer) in &self.answers {
            rules.remember(tool.as_ref(), *answer, ());
        }
        rules
    }

    fn tool_use(&self) -> ToolUse<'_> {
        ToolUse::new(self.tool.as_ref()).with_hints(self.hints)
    }

    fn verdict(&self) -> Verdict {
        self.rules().decide(&self.tool_use()).verdict
    }

    /// The documented order, one question after the other.
    fn model(&self) -> Verdict {
        let organization = self.model_part(Authority::Organization);
        let user = match self.model_part(Authority::User) {
            Some(Verdict::Ask) => self.model_answer().unwrap_or(Verdict::Ask),
            Some(verdict) => verdict,
            None => Verdict::Allow,
        };
        for verdict in [Verdict::Deny, Verdict::Ask] {
            if organization == Some(verdict) || user == verdict {
                return verdict;
            }
        }
        Verdict::Allow
    }

    /// What one authority says without regard to the other and to answers.
    fn model_part(&self, authority: Authority) -> Option<Verdict> {
        let strict_to_permissive = [Verdict::Deny, Verdict::Ask, Verdict::Allow];
        let by_rule = strict_to_permissive.into_iter().find(|kind| {
            self.drafts.iter().any(|draft| {
                draft.kind == *kind
                    && draft.authority == authority
                    && model_matches(draft, &self.tool, self.hints)
            })
        });
        by_rule.or_else(|| {
            strict_to_permissive
                .into_iter()
                .find(|verdict| self.defaults.contains(&(*verdict, authority)))
        })
    }

    fn model_answer(&self) -> Option<Verdict> {
        let mut answers = self.answers.iter().rev();
        let (_, answer) = answers.find(|(tool, _)| tool.as_ref() == self.tool.as_ref())?;
        Some(match answer {
            Answer::Allow => Verdict::Allow,
            Answer::Deny => Verdict::Deny,
        })
    }

    /// The same with nothing but what one authority said. Answers are the user's.
    fn only(&self, authority: Authority) -> Self {
        let mut world = self.clone();
        world.drafts.retain(|draft| draft.authority == authority);
        world.defaults.retain(|(_, by)| *by == authority);
        if authority == Authority::Organization {
            world.answers.clear();
        }
        world
    }
}

/// Wildcards by definition. `None` in the text stands for a separator, which only a star covers.
fn covers(pattern: &[char], text: &[Option<char>]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some(('*', rest)), None) => covers(rest, text),
        (Some(('*', rest)), Some((_, after))) => covers(rest, text) || covers(pattern, after),
        (None, Some(_)) | (Some(_), None) => false,
        (Some((expected, rest)), Some((found, after))) => {
            Some(*expected) == *found && covers(rest, after)
        }
    }
}

fn covers_text(pattern: &str, text: &str) -> bool {
    let pattern: Vec<_> = pattern.chars().collect();
    let text: Vec<_> = text.chars().map(Some).collect();
    covers(&pattern, &text)
}

fn covers_apart(pattern: &str, server: &str, tool: &str) -> bool {
    let pattern: Vec<_> = pattern.chars().collect();
    let server = server.chars().map(Some);
    let tool = tool.chars().map(Some);
    let text: Vec<_> = server.chain([None]).chain(tool).collect();
    covers(&pattern, &text)
}

fn model_matches(draft: &Draft, tool: &Tool, hints: Hints) -> bool {
    if !draft.condition.holds(hints) {
        return false;
    }
    let (server, tool) = match (tool, &draft.text) {
        (Tool::BuiltIn(name), Text::Whole(text)) => {
            return !text.starts_with("mcp__") && covers_text(text, name);
        }
        (Tool::BuiltIn(_), Text::Apart(..)) => return false,
        (Tool::Mcp(server, tool), _) => (server, tool),
    };
    let text = match &draft.text {
        Text::Apart(server_pattern, tool_pattern) => {
            return covers_text(server_pattern, server.as_str())
                && covers_text(tool_pattern, tool.as_str());
        }
        Text::Whole(text) => text,
    };
    let mut whole = text.clone();
    let by_structure = match text.strip_prefix("mcp__") {
        None => text.chars().all(|character| character == '*'),
        Some(rest) => match rest.split_once("__") {
            Some((server_pattern, tool_pattern)) if !server_pattern.is_empty() => {
                covers_text(server_pattern, server.as_str())
                    && covers_text(tool_pattern, tool.as_str())
            }
            None if !rest.contains('*') => {
                whole.push_str("__*");
                rest == server.as_str()
            }
            _ => covers_apart(rest, server.as_str(), tool.as_str()),
        },
    };
    let verbatim = format!("mcp__{server}__{tool}");
    let table = NameTable::build([(server.clone(), tool.clone())]);
    let seen = table.name_of(server, tool).unwrap();
    by_structure
        || draft.kind != Verdict::Allow
            && (covers_text(&whole, &verbatim) || covers_text(&whole, seen.as_str()))
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    select(vec![Verdict::Allow, Verdict::Ask, Verdict::Deny])
}

fn authorities() -> impl Strategy<Value = Authority> {
    select(vec![Authority::User, Authority::Organization])
}

/// Text of up to three pieces: names that are longer would never meet.
fn pieces(pieces: &'static [&'static str], least: usize) -> impl Strategy<Value = String> {
    vec(select(pieces), least..4).prop_map(|pieces| pieces.concat())
}

fn servers() -> impl Strategy<Value = ServerName> {
    pieces(&["a", "b", "_", "__", " "], 1).prop_map(|text| text.parse().unwrap())
}

fn tool_names() -> impl Strategy<Value = ToolName> {
    pieces(&["a", "b", "_", "__", "."], 0).prop_map(ToolName::from)
}

fn tools() -> impl Strategy<Value = Tool> {
    prop_oneof![
        4 => (servers(), tool_names()).prop_map(|(server, tool)| Tool::Mcp(server, tool)),
        1 => pieces(&["a", "b", "_"], 1).prop_map(Tool::BuiltIn),
    ]
}

fn texts() -> impl Strategy<Value = Text> {
    let part = || pieces(&["a", "b", "_", "*", "__"], 1);
    prop_oneof![
        3 => (part(), part()).prop_map(|(server, tool)| Text::Whole(format!("mcp__{server}__{tool}"))),
        2 => part().prop_map(|rest| Text::Whole(format!("mcp__{rest}"))),
        1 => pieces(&["a", "b", "_", "m", "mcp", "*"], 1).prop_map(Text::Whole),
        1 => Just(Text::Whole("*".to_owned())),
        1 => Just(Text::Whole("mcp__*".to_owned())),
        1 => (part(), part()).prop_map(|(server, tool)| Text::Apart(server, tool)),
    ]
    .prop_filter("not a rule", |text| text.rule().is_ok())
}

/// A rule that is made to fit often: by its pattern, or by naming the tool itself with a star.
fn texts_near(tool: &Tool) -> impl Strategy<Value = Text> + use<> {
    let whole = match tool {
        Tool::Mcp(server, tool) => format!("mcp__{server}__{tool}"),
        Tool::BuiltIn(name) => name.clone(),
    };
    let near = (any::<Index>(), any::<Index>()).prop_map(move |(start, end)| {
        let mut characters: Vec<char> = whole.chars().collect();
        let start = start.index(characters.len());
        let end = start + end.index(characters.len() - start + 1);
        characters.splice(start..end, ['*']);
        Text::Whole(characters.into_iter().collect())
    });
    prop_oneof![texts(), near].prop_filter("not a rule", |text| text.rule().is_ok())
}

fn conditions() -> impl Strategy<Value = Condition> {
    let value = || option::weighted(0.2, any::<bool>());
    (value(), value()).prop_map(|(read_only, destructive)| Condition {
        read_only,
        destructive,
    })
}

fn hints() -> impl Strategy<Value = Hints> {
    (any::<Option<bool>>(), any::<Option<bool>>()).prop_map(|(read_only, destructive)| Hints {
        read_only,
        destructive,
    })
}

fn drafts_near(tool: &Tool) -> impl Strategy<Value = Draft> + use<> {
    (verdicts(), authorities(), texts_near(tool), conditions()).prop_map(
        |(kind, authority, text, condition)| Draft {
            kind,
            authority,
            text,
            condition,
        },
    )
}

fn worlds() -> impl Strategy<Value = World> {
    tools().prop_flat_map(|tool| {
        let answer = select(vec![Answer::Allow, Answer::Deny]);
        let answered = prop_oneof![Just(tool.clone()), tools()];
        (
            vec(drafts_near(&tool), 0..5),
            vec((verdicts(), authorities()), 0..3),
            vec((answered, answer), 0..3),
            hints(),
        )
            .prop_map(move |(drafts, defaults, answers, hints)| World {
                drafts,
                defaults,
                answers,
                tool: tool.clone(),
                hints,
            })
    })
}

fn worlds_and_drafts() -> impl Strategy<Value = (World, Draft)> {
    worlds().prop_flat_map(|world| {
        let draft = drafts_near(&world.tool);
        (Just(world), draft)
    })
}

fn with_rule(world: &World, draft: Draft, place: Index) -> World {
    let mut world = world.clone();
    world
        .drafts
        .insert(place.index(world.drafts.len() + 1), draft);
    world
}

#[test]
fn what_is_denied_is_hidden_from_lists() {
    let shown = [Verdict::Allow, Verdict::Ask, Verdict::Deny].map(Verdict::allows_listing);
    assert_eq!(shown, [true, true, false]);
}

#[test]
fn verdicts_go_from_permissive_to_strict() {
    assert!(Verdict::Allow < Verdict::Ask && Verdict::Ask < Verdict::Deny);
    assert_eq!(
        format!("{:<6}|{:?}", Verdict::Ask, Verdict::Deny),
        "ask   |Deny"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn decisions_equal_the_model(world in worlds()) {
        prop_assert_eq!(world.verdict(), world.model());
    }

    #[test]
    fn the_order_of_rules_never_changes_the_verdict(
        world in worlds().prop_flat_map(|world| {
            let shuffled = Just(world.drafts.clone()).prop_shuffle();
            (Just(world), shuffled)
        }),
    ) {
        let (world, drafts) = world;
        let shuffled = World { drafts, ..world.clone() };
        prop_assert_eq!(world.verdict(), shuffled.verdict());
        let (before, after) = (world.rules(), shuffled.rules());
        let (before, after) = (before.decide(&world.tool_use()), after.decide(&world.tool_use()));
        prop_assert_eq!(before.is_by_organization(), after.is_by_organization());
    }

    #[test]
    fn one_more_deny_rule_never_permits_more(
        (world, draft) in worlds_and_drafts(),
        place in any::<Index>(),
    ) {
        let draft = Draft { kind: Verdict::Deny, ..draft };
        let matches = model_matches(&draft, &world.tool, world.hints);
        let verdict = with_rule(&world, draft, place).verdict();
        prop_assert_eq!(verdict, if matches { Verdict::Deny } else { world.verdict() });
    }

    #[test]
    fn neither_authority_permits_what_the_other_does_not(world in worlds()) {
        let organization = world.only(Authority::Organization).verdict();
        let user = world.only(Authority::User).verdict();
        prop_assert_eq!(world.verdict(), organization.max(user));
    }

    #[test]
    fn the_authority_that_is_named_comes_to_the_verdict_by_itself(world in worlds()) {
        let rules = world.rules();
        let decision = rules.decide(&world.tool_use());
        let named = if decision.is_by_organization() {
            Authority::Organization
        } else {
            Authority::User
        };
        prop_assert_eq!(world.only(named).verdict(), decision.verdict);
        let organization = world.only(Authority::Organization).verdict();
        if decision.verdict != Verdict::Allow && organization == decision.verdict {
            prop_assert!(decision.is_by_organization());
        }
    }

    /// Except where the rule makes an exception to a default of deny by the same authority.
    #[test]
    fn one_more_ask_rule_never_permits_more(
        (mut world, draft) in worlds_and_drafts(),
        place in any::<Index>(),
    ) {
        world.defaults.retain(|default| *default != (Verdict::Deny, draft.authority));
        let draft = Draft { kind: Verdict::Ask, ..draft };
        let verdict = with_rule(&world, draft, place).verdict();
        prop_assert!(verdict >= world.verdict(), "{} < {}", verdict, world.verdict());
    }

    #[test]
    fn one_more_allow_rule_never_forbids_more_and_never_overrules_a_rule(
        (world, draft) in worlds_and_drafts(),
        place in any::<Index>(),
    ) {
        let draft = Draft { kind: Verdict::Allow, ..draft };
        let stricter = world.drafts.iter().any(|other| {
            other.kind != Verdict::Allow
                && other.authority == draft.authority
                && model_matches(other, &world.tool, world.hints)
        });
        let verdict = with_rule(&world, draft, place).verdict();
        if stricter {
            prop_assert_eq!(verdict, world.verdict());
        } else {
            prop_assert!(verdict <= world.verdict());
        }
    }

    #[test]
    fn allowing_one_server_allows_nothing_of_another(
        server in "(a|b)(_?(a|b)){0,2}",
        tool_pattern in "(a|b|_|\\*|__){1,3}",
        other in servers(),
        tool in tool_names(),
    ) {
        prop_assume!(other.as_str() != server);
        let tool_use = ToolUse::mcp(&other, &tool);
        for text in [format!("mcp__{server}__{tool_pattern}"), format!("mcp__{server}")] {
            let rule: Rule = text.parse().unwrap();
            prop_assert!(!rule.matches(Verdict::Allow, &tool_use), "{}", text);
        }
    }

    #[test]
    fn allowing_one_server_apart_allows_nothing_of_another(
        server in servers(),
        tool_pattern in "(a|b|_|\\*|__){1,3}",
        other in servers(),
        tool in tool_names(),
    ) {
        prop_assume!(other != server && !server.as_str().trim().is_empty());
        let rule = Rule::for_server(server.as_str(), &tool_pattern).unwrap();
        for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
            prop_assert!(!rule.matches(verdict, &ToolUse::mcp(&other, &tool)), "{}", verdict);
        }
    }

    #[test]
    fn a_strict_rule_matches_whatever_the_same_allow_rule_does(
        (world, draft) in worlds_and_drafts(),
    ) {
        let rule = draft.text.rule().unwrap().when(draft.condition);
        if rule.matches(Verdict::Allow, &world.tool_use()) {
            prop_assert!(rule.matches(Verdict::Ask, &world.tool_use()));
        }
        prop_assert_eq!(
            rule.matches(Verdict::Ask, &world.tool_use()),
            rule.matches(Verdict::Deny, &world.tool_use())
        );
    }

    #[test]
    fn a_tool_is_denied_under_the_name_that_models_see(server in servers(), tool in ".{0,80}") {
        let tool = ToolName::new(tool);
        let table = NameTable::build([(server.clone(), tool.clone())]);
        let name = table.name_of(&server, &tool).unwrap().as_str();
        let rule: Rule = name.parse().unwrap();
        prop_assert!(rule.matches(Verdict::Deny, &ToolUse::mcp(&server, &tool)), "{}", name);
    }

    #[test]
    fn any_text_is_a_rule_or_an_error(text in prop_oneof![".{0,300}", "(mcp)?[_* ab\n]{0,8}"]) {
        match text.parse::<Rule>() {
            Ok(rule) => {
                prop_assert!(text.len() <= MAX_RULE_BYTES && text.trim() == text);
                prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
