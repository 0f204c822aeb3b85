//! A budget for scripts.

use std::time::SystemTime;

use serde::Serialize;

use super::advice::suggestions;
use super::cost::Cost;
use super::weighed::{Counting, Weighed, WeighedServer, WeighedTool, percent};
use crate::toolbox::callable;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report<'a> {
    window: Window<'a>,
    /// All tools.
    total: Total,
    /// Those below, if servers were named.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<Total>,
    servers: Vec<Server<'a>>,
    search: Search,
    usage: UsageReport<'a>,
    /// Servers whose tools nobody knows.
    unknown_servers: &'a [String],
    suggestions: Vec<String>,
}

#[derive(Serialize)]
struct Window<'a> {
    tokens: u64,
    from: &'a str,
}

#[derive(Serialize)]
struct Total {
    servers: usize,
    tools: usize,
    #[serde(flatten)]
    cost: Cost,
    /// Of the window.
    percent: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Server<'a> {
    name: &'a str,
    always_load: bool,
    #[serde(flatten)]
    cost: Cost,
    percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    name: &'a str,
    #[serde(flatten)]
    cost: Cost,
    percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    /// Seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_called: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Search {
    /// Whether models search.
    searches: bool,
    why: String,
    /// What a model sees that searches.
    #[serde(flatten)]
    cost: Cost,
    saved_tokens: i128,
    /// Of all tools.
    saved_percent: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageReport<'a> {
    /// Whether calls are counted.
    counted: bool,
    /// Seconds since 1970; null if none was counted.
    since: Option<u64>,
    never_used: Vec<String>,
    unused_servers: Vec<&'a str>,
}

pub(super) fn of(weighed: &Weighed) -> Report<'_> {
    let is_known = weighed.counting == Counting::Known;
    let unused_servers = weighed.servers.iter();
    let unused_servers =
        unused_servers.filter(|server| is_known && !server.tools.is_empty() && server.calls() == 0);
    let n_shown = weighed.servers.iter().map(|server| server.tools.len());
    Report {
        window: Window {
            tokens: weighed.window,
            from: &weighed.window_from,
        },
        total: Total {
            servers: weighed.n_servers,
            tools: weighed.n_tools,
            cost: weighed.all,
            percent: weighed.percent(weighed.all.tokens),
        },
        shown: weighed.is_selection().then(|| Total {
            servers: weighed.servers.len(),
            tools: n_shown.sum(),
            cost: weighed.shown(),
            percent: weighed.percent(weighed.shown().tokens),
        }),
        servers: weighed
            .servers
            .iter()
            .map(|server| Server::of(server, weighed))
            .collect(),
        search: Search {
            searches: weighed.decision.is_search(),
            why: weighed.decision.to_string(),
            cost: weighed.with_search,
            saved_tokens: weighed.saved(),
            saved_percent: saved_percent(weighed),
        },
        usage: UsageReport {
            counted: matches!(weighed.counting, Counting::Known | Counting::NothingYet),
            since: weighed.since.map(seconds),
            never_used: weighed
                .never_used()
                .map(|(server, tool)| callable(&server.name, &tool.name))
                .collect(),
            unused_servers: unused_servers.map(|server| server.name.as_str()).collect(),
        },
        unknown_servers: &weighed.unknown,
        suggestions: suggestions(weighed, SystemTime::now()),
    }
}

/// What search saves of all tools, in percent; below zero if it costs more.
pub(super) fn saved_percent(weighed: &Weighed) -> f64 {
    let saved = weighed.saved();
    let part = percent(
        u64::try_from(saved.unsigned_abs()).unwrap_or(u64::MAX),
        weighed.all.tokens,
    );
    if saved < 0 { -part } else { part }
}

impl<'a> Server<'a> {
    fn of(server: &'a WeighedServer, weighed: &Weighed) -> Self {
        let is_known = weighed.counting == Counting::Known;
        let tool = |tool: &'a WeighedTool| Tool {
            name: &tool.name,
            cost: tool.cost,
            percent: weighed.percent(tool.cost.tokens),
            calls: is_known.then(|| tool.calls()),
            last_called: tool.usage.map(|usage| seconds(usage.last)),
        };
        Self {
            name: &server.name,
            always_load: server.always_load,
            cost: server.cost,
            percent: weighed.percent(server.cost.tokens),
            calls: is_known.then(|| server.calls()),
            tools: server.tools.iter().map(tool).collect(),
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
