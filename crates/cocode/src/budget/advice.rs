//! What could be done about the cost of tools, in words that hold.

use std::time::{Duration, SystemTime};

use cocode_core::{SearchDecision, WhyShowAll};

use super::cost::Cost;
use super::weighed::{Weighed, WeighedServer, percent};
use crate::text::{age, plain};

/// What was called in less time says nothing about what is used.
const MIN_COUNTED: Duration = Duration::from_hours(24);
/// So much is said at most.
const MAX_SUGGESTIONS: usize = 5;
/// What saves fewer tokens is not worth a word.
const MIN_SAVED_TOKENS: u64 = 200;
/// A server that was called so often is worth being shown.
const MANY_CALLS: u64 = 20;
/// A server that takes no more percent of the window is cheap.
const CHEAP_PERCENT: f64 = 1.0;
/// Search is worth a word if it saves so many percent.
const MUCH_PERCENT: f64 = 25.0;

/// Suggestions, what saves most first.
pub(super) fn suggestions(weighed: &Weighed, now: SystemTime) -> Vec<String> {
    let mut advice: Vec<(u64, String)> = Vec::new();
    advice.extend(about_search(weighed));
    let counted = weighed.counted_for(now);
    if let Some(counted) = counted.filter(|counted| *counted >= MIN_COUNTED) {
        let counted = age(counted);
        for server in &weighed.servers {
            advice.extend(about_server(server, weighed, &counted));
        }
    }
    advice.sort_by(|one, other| other.cmp(one));
    advice.truncate(MAX_SUGGESTIONS);
    advice.into_iter().map(|(_, words)| words).collect()
}

fn about_search(weighed: &Weighed) -> Option<(u64, String)> {
    let saved = u64::try_from(weighed.saved()).ok()?;
    let is_possible = matches!(
        weighed.decision,
        SearchDecision::ShowAll(WhyShowAll::UnderThreshold(_) | WhyShowAll::SwitchedOff)
    );
    let part = percent(saved, weighed.all.tokens);
    (is_possible && saved >= MIN_SAVED_TOKENS && part >= MUCH_PERCENT).then(|| {
        let words = format!(
            "`enabled = true` in [tool_search] of config.toml would save {saved} tokens, {part:.0}% \
             of all"
        );
        (saved, words)
    })
}

fn about_server(server: &WeighedServer, weighed: &Weighed, counted: &str) -> Option<(u64, String)> {
    let name = plain(&server.name);
    let (n_tools, tokens) = (server.tools.len(), server.cost.tokens);
    let searches = weighed.decision.is_search();
    if searches && !server.always_load {
        // Its tools cost nothing until they are found.
        let is_cheap = weighed.percent(tokens) <= CHEAP_PERCENT;
        let calls = server.calls();
        return (calls >= MANY_CALLS && is_cheap).then(|| {
            let words = format!(
                "`{name}`: {calls} calls in {counted}, for {tokens} tokens: `always_load = true` \
                 in its entry spares models the search for its tools"
            );
            (0, words)
        });
    }
    let unused: Cost = server.unused().map(|tool| tool.cost).sum();
    if unused.tokens < MIN_SAVED_TOKENS {
        return None;
    }
    let n_unused = server.unused().count();
    let words = match (n_unused == n_tools, searches) {
        (true, true) => format!(
            "`{name}`: models are always shown its {n_tools} tools, and none was called in \
             {counted}: without `always_load` in its entry, {tokens} tokens are saved"
        ),
        (true, false) => format!(
            "`{name}`: none of its {n_tools} tools was called in {counted}: `cocode mcp disable \
             {name}` saves {tokens} tokens"
        ),
        (false, _) => format!(
            "`{name}`: {n_unused} of its {n_tools} tools were not called in {counted}: named in \
             `disabled_tools` of its entry, they save {} tokens",
            unused.tokens
        ),
    };
    Some((unused.tokens, words))
}
