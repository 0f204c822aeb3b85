//! Ten thousand tools that nobody has, described at the length at which real ones are.

use serde_json::{json, value::RawValue};

use super::Tool;
use crate::Failure;

const VERBS: &[&str] = &[
    "get",
    "list",
    "create",
    "update",
    "delete",
    "search",
    "send",
    "export",
    "import",
    "archive",
    "approve",
    "assign",
    "compare",
    "convert",
    "copy",
    "download",
    "merge",
    "move",
    "publish",
    "rename",
    "restore",
    "schedule",
    "share",
    "split",
    "start",
    "stop",
    "summarize",
    "sync",
    "translate",
    "validate",
];
const NOUNS: &[&str] = &[
    "account",
    "article",
    "booking",
    "branch",
    "budget",
    "calendar",
    "campaign",
    "channel",
    "chart",
    "comment",
    "contact",
    "contract",
    "customer",
    "dashboard",
    "dataset",
    "deployment",
    "document",
    "event",
    "expense",
    "file",
    "folder",
    "forecast",
    "image",
    "incident",
    "invoice",
    "issue",
    "label",
    "lead",
    "meeting",
    "message",
    "metric",
    "milestone",
    "note",
    "order",
    "page",
    "payment",
    "pipeline",
    "playlist",
    "product",
    "project",
    "release",
    "report",
    "repository",
    "review",
    "route",
    "schema",
    "sheet",
    "shipment",
    "station",
    "task",
    "team",
    "template",
    "ticket",
    "user",
    "vehicle",
    "video",
    "webhook",
    "workflow",
];
const FILLERS: &[&str] = &[
    "with",
    "all",
    "its",
    "details",
    "for",
    "the",
    "given",
    "workspace",
    "by",
    "identifier",
    "optional",
    "filters",
    "such",
    "as",
    "status",
    "owner",
    "date",
    "range",
    "and",
    "returns",
    "paginated",
    "results",
    "requires",
    "permission",
    "to",
    "read",
    "or",
    "write",
    "this",
    "resource",
    "fails",
    "when",
    "it",
    "does",
    "not",
    "exist",
];

/// So many tools, twenty to a server; the same ones each time.
pub(crate) fn tools(count: usize) -> Result<Vec<Tool>, Failure> {
    let mut random = fastrand::Rng::with_seed(7);
    let pick = |random: &mut fastrand::Rng, words: &'static [&'static str]| {
        random.choice(words).copied().unwrap_or_default()
    };
    let mut tools = Vec::with_capacity(count);
    for number in 0..count {
        let server = number / 20;
        let (verb, noun) = (pick(&mut random, VERBS), pick(&mut random, NOUNS));
        let other = pick(&mut random, NOUNS);
        let mut description = format!("{verb} a {noun} of a {other}");
        for _ in 0..28 {
            description.push(' ');
            description.push_str(pick(&mut random, FILLERS));
        }
        let mut properties = serde_json::Map::new();
        for _ in 0..4 {
            let name = format!(
                "{}_{}",
                pick(&mut random, NOUNS),
                pick(&mut random, FILLERS)
            );
            let said = format!("The {} of the {noun}", pick(&mut random, NOUNS));
            properties.insert(name, json!({ "type": "string", "description": said }));
        }
        let schema = json!({ "type": "object", "properties": properties });
        tools.push(Tool {
            server: format!("{}-{server}", NOUNS[server % NOUNS.len()]),
            name: format!("{verb}_{noun}_{other}_{number}"),
            description: Some(description),
            input_schema: Some(RawValue::from_string(schema.to_string())?),
        });
    }
    Ok(tools)
}

/// What people might ask of them.
pub(crate) fn queries(count: usize) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(11);
    let mut pick =
        |words: &'static [&'static str]| random.choice(words).copied().unwrap_or_default();
    let mut queries = Vec::with_capacity(count);
    for number in 0..count {
        let (verb, noun, other) = (pick(VERBS), pick(NOUNS), pick(NOUNS));
        // One letter is missing.
        let misspelled = noun.get(..2).zip(noun.get(3..));
        let misspelled = misspelled.map(|(begin, end)| format!("{begin}{end}"));
        queries.push(match number % 5 {
            0 => format!("{verb} {noun}"),
            1 => format!("find the {noun} that belongs to a {other} and {verb} it"),
            2 => format!("I need to {verb} every {noun} in my {other}, then save it to out.csv"),
            3 => format!("{verb} a {} please", misspelled.unwrap_or_default()),
            _ => format!("{verb} the latest {noun} by date for this {other}"),
        });
    }
    queries
}
