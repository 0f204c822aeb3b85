//! What is odd about the tools of a server: those that cannot be used, names that models cannot
//! see as they are, and filters that match nothing.

use std::collections::BTreeSet;

use cocode_client::{Listing, Quarantined, Tool};
use cocode_core::{Dialect, NameTable, ServerSpec, ToolName, ToolSource, Wildcard, convert};
use serde_json::Value;

use super::check::Check;
use crate::gate::Gate;

/// How many tools of a kind are named.
const MAX_NAMED: usize = 5;

/// Whom tools are given to. A tool that cannot be strict is given to OpenAI all the same.
const PROVIDERS: [Dialect; 4] = [
    Dialect::OpenAi,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::Plain,
];

const STAGE: &str = "tools";

pub(super) fn examine(spec: &ServerSpec, gate: &Gate, listing: &Listing<Tool>) -> Check {
    let mut odd = Vec::new();
    odd.extend(listing.quarantined.iter().map(unusable));
    odd.extend(
        listing
            .incomplete
            .iter()
            .map(|reason| format!("the list is not complete: {reason}")),
    );
    let schemas = listing.items.iter();
    odd.extend(schemas.filter_map(|tool| bad_schema(tool).or_else(|| unfit(tool))));
    odd.extend(clashes(&listing.items));
    odd.extend(renamed(spec, &listing.items));
    odd.extend(idle_filters(spec, listing));
    let shown = listing
        .items
        .iter()
        .filter(|tool| gate.shows(&tool.name, tool.annotations))
        .count();
    let all = listing.items.len();
    let message = match (shown, all) {
        (_, 0) => "it lists no tools".to_owned(),
        (shown, all) if shown == all => format!("{all} usable"),
        (shown, all) => format!("{shown} of {all}; filters and rules hide the others"),
    };
    if shown == 0 {
        if all > 0 {
            odd.push("filters and rules hide every tool".to_owned());
        }
        return Check::warning(STAGE, message).details(odd);
    }
    if odd.is_empty() {
        return Check::ok(STAGE, message);
    }
    Check::warning(STAGE, message).details(odd)
}

fn unusable(one: &Quarantined) -> String {
    let Quarantined { name, reason } = one;
    match name {
        Some(name) => format!("`{name}` cannot be used: {reason}"),
        None => format!("a tool without a name cannot be used: {reason}"),
    }
}

/// Models are told the arguments of a tool by an object; anything else they refuse.
fn bad_schema(tool: &Tool) -> Option<String> {
    let name = &tool.name;
    let schema: Value = match tool.input_schema.decode() {
        Ok(schema) => schema,
        Err(error) => return Some(format!("the inputSchema of `{name}` is not JSON: {error}")),
    };
    let kind = schema.get("type")?;
    let is_object = match kind {
        Value::String(kind) => kind == "object",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    };
    let properties = schema.get("properties");
    if !is_object {
        Some(format!(
            "the inputSchema of `{name}` describes {kind}, not an object"
        ))
    } else if properties.is_some_and(|properties| !properties.is_object()) {
        Some(format!(
            "the `properties` in the inputSchema of `{name}` are no object"
        ))
    } else {
        None
    }
}

/// A tool that some providers of models cannot be told of.
fn unfit(tool: &Tool) -> Option<String> {
    let schema: Value = tool.input_schema.decode().ok()?;
    let source = ToolSource {
        name: &tool.name,
        description: None,
        input_schema: &schema,
    };
    let refused = PROVIDERS.iter().filter_map(|dialect| {
        let error = convert(&source, *dialect).err()?;
        Some((dialect.as_str(), error))
    });
    let refused: Vec<_> = refused.collect();
    let (_, reason) = refused.first()?;
    let dialects: Vec<&str> = refused.iter().map(|(dialect, _)| *dialect).collect();
    let (name, dialects) = (&tool.name, dialects.join(", "));
    Some(format!("`{name}` cannot be given to {dialects}: {reason}"))
}

/// Names that stand for more than one tool.
fn clashes(tools: &[Tool]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<&str> = tools
        .iter()
        .map(|tool| tool.name.as_str())
        .filter(|name| !seen.insert(*name))
        .collect();
    let told = twice.into_iter();
    told.map(|name| format!("`{name}` is listed more than once; which one is called is chance"))
        .collect()
}

/// Tools that models see under another name, because theirs is too long or has other characters.
fn renamed(spec: &ServerSpec, tools: &[Tool]) -> Vec<String> {
    let server = &spec.name;
    let pairs = tools
        .iter()
        .map(|tool| (server.clone(), ToolName::new(tool.name.as_str())));
    let table = NameTable::build(pairs);
    let renamed: Vec<String> = table
        .iter()
        .filter(|(server, tool, name)| {
            name.as_str() != format!("mcp__{}__{}", server.as_str(), tool.as_str())
        })
        .map(|(_, tool, name)| format!("models see `{}` as `{name}`", tool.as_str()))
        .collect();
    let more = renamed.len().saturating_sub(MAX_NAMED);
    let rest = (more > 0).then(|| format!("and {more} more that models see by other names"));
    renamed.into_iter().take(MAX_NAMED).chain(rest).collect()
}

/// Entries of filters that match no tool: usually a typing mistake, or a tool that was renamed.
fn idle_filters(spec: &ServerSpec, listing: &Listing<Tool>) -> Vec<String> {
    let names: Vec<&str> = listing
        .items
        .iter()
        .map(|tool| tool.name.as_str())
        .chain(
            listing
                .quarantined
                .iter()
                .filter_map(|one| one.name.as_deref()),
        )
        .collect();
    let enabled = spec.tools.enabled.iter().flatten();
    let enabled = enabled.map(|pattern| ("enabled_tools", pattern));
    let disabled = spec.tools.disabled.iter();
    let disabled = disabled.map(|pattern| ("disabled_tools", pattern));
    enabled
        .chain(disabled)
        .filter(|(_, pattern)| {
            let pattern = Wildcard::new(pattern.as_str());
            !names.iter().any(|name| pattern.matches(name))
        })
        .map(|(key, pattern)| {
            let close = cocode_core::nearest(pattern, names.iter().copied());
            match close.first() {
                Some(close) => {
                    format!("`{pattern}` in `{key}` matches no tool; did you mean `{close}`?")
                }
                None => format!("`{pattern}` in `{key}` matches no tool"),
            }
        })
        .collect()
}
