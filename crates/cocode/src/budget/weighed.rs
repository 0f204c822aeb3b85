//! The numbers of a budget: every tool, every server and all of them, with and without search.

use std::time::{Duration, SystemTime};

use cocode_client::{ToolUsage, Usage};
use cocode_core::{SearchDecision, SearchPolicy, ToolLoad};

use super::cost::Cost;
use super::search_tools::definitions;
use super::window::Model;
use crate::toolbox::{ServerTools, ToolEntry, Toolbox};

/// Whether calls are counted.
#[derive(Debug)]
pub(super) enum Counted {
    /// This is what was counted.
    Here(Usage),
    /// Nobody wants it.
    SwitchedOff,
    /// There are no servers that could be called.
    Nowhere,
}

/// A budget.
#[derive(Debug)]
pub(super) struct Weighed {
    /// Those that are shown, the most expensive first.
    pub(super) servers: Vec<WeighedServer>,
    /// How many servers and tools there are, shown or not.
    pub(super) n_servers: usize,
    pub(super) n_tools: usize,
    /// All tools, shown or not.
    pub(super) all: Cost,
    /// What a model sees that searches.
    pub(super) with_search: Cost,
    pub(super) decision: SearchDecision,
    pub(super) window: u64,
    pub(super) window_from: String,
    /// Since when calls are counted. Nothing if they are not, or none was yet.
    pub(super) since: Option<SystemTime>,
    pub(super) counting: Counting,
    /// Servers whose tools nobody knows.
    pub(super) unknown: Vec<String>,
}

/// What can be said about calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// How often each tool was called.
    Known,
    /// None was yet.
    NothingYet,
    SwitchedOff,
    Nowhere,
}

#[derive(Debug)]
pub(super) struct WeighedServer {
    pub(super) name: String,
    pub(super) always_load: bool,
    pub(super) cost: Cost,
    /// The most expensive first.
    pub(super) tools: Vec<WeighedTool>,
}

#[derive(Debug)]
pub(super) struct WeighedTool {
    pub(super) name: String,
    pub(super) cost: Cost,
    pub(super) usage: Option<ToolUsage>,
}

impl Weighed {
    pub(super) fn new(
        toolbox: Toolbox,
        model: &Model,
        policy: SearchPolicy,
        counted: Counted,
    ) -> Self {
        let Toolbox { servers, unknown } = toolbox;
        let (usage, counting) = match counted {
            Counted::Here(usage) if usage.since.is_some() => (usage, Counting::Known),
            Counted::Here(usage) => (usage, Counting::NothingYet),
            Counted::SwitchedOff => (Usage::default(), Counting::SwitchedOff),
            Counted::Nowhere => (Usage::default(), Counting::Nowhere),
        };
        let searching: Cost = definitions(&servers)
            .iter()
            .map(|tool| Cost::of(&tool.name, tool))
            .sum();
        let mut servers: Vec<WeighedServer> = servers
            .into_iter()
            .map(|server| WeighedServer::new(server, &usage))
            .collect();
        servers.sort_by(|one, other| {
            let by_cost = other.cost.tokens.cmp(&one.cost.tokens);
            by_cost.then_with(|| one.name.cmp(&other.name))
        });
        let always = servers.iter().filter(|server| server.always_load);
        let mut with_search: Cost = always.map(|server| server.cost).sum();
        with_search += searching;
        let all: Cost = servers.iter().map(|server| server.cost).sum();
        let deferrable = servers.iter().filter(|server| !server.always_load);
        let load = ToolLoad {
            characters: all.characters,
            deferrable: deferrable.map(|server| server.tools.len()).sum(),
        };
        Self {
            n_servers: servers.len(),
            n_tools: servers.iter().map(|server| server.tools.len()).sum(),
            servers,
            all,
            with_search,
            decision: policy.decide(model.searcher(), load),
            window: model.window,
            window_from: model.from.clone(),
            since: usage.since,
            counting,
            unknown,
        }
    }

    /// Shows only these servers, if any are named.
    pub(super) fn select(&mut self, names: &[String]) {
        if !names.is_empty() {
            self.servers.retain(|server| names.contains(&server.name));
        }
    }

    /// Whether some servers are not shown.
    pub(super) fn is_selection(&self) -> bool {
        self.servers.len() < self.n_servers
    }

    /// Those that are shown.
    pub(super) fn shown(&self) -> Cost {
        self.servers.iter().map(|server| server.cost).sum()
    }

    /// What part of the window so many tokens are.
    pub(super) fn percent(&self, tokens: u64) -> f64 {
        percent(tokens, self.window)
    }

    /// Tokens that a model saves by searching; less than none if it costs more.
    pub(super) fn saved(&self) -> i128 {
        i128::from(self.all.tokens) - i128::from(self.with_search.tokens)
    }

    /// How long calls are counted.
    pub(super) fn counted_for(&self, now: SystemTime) -> Option<Duration> {
        let since = self.since.filter(|_| self.counting == Counting::Known);
        since.map(|since| now.duration_since(since).unwrap_or_default())
    }

    /// The tools that are shown and were never called, by server.
    pub(super) fn never_used(&self) -> impl Iterator<Item = (&WeighedServer, &WeighedTool)> {
        let is_known = self.counting == Counting::Known;
        let servers = self.servers.iter().filter(move |_| is_known);
        servers.flat_map(|server| server.unused().map(move |tool| (server, tool)))
    }
}

impl WeighedServer {
    fn new(server: ServerTools, usage: &Usage) -> Self {
        let ServerTools {
            name,
            about: _,
            always_load,
            tools,
        } = server;
        let weigh = |tool: ToolEntry| WeighedTool {
            cost: Cost::of_tool(&name, &tool),
            usage: usage.tool(&name, &tool.name),
            name: tool.name,
        };
        let mut tools: Vec<WeighedTool> = tools.into_iter().map(weigh).collect();
        tools.sort_by(|one, other| {
            let by_cost = other.cost.tokens.cmp(&one.cost.tokens);
            by_cost.then_with(|| one.name.cmp(&other.name))
        });
        Self {
            cost: tools.iter().map(|tool| tool.cost).sum(),
            name,
            always_load,
            tools,
        }
    }

    /// Calls of all its tools.
    pub(super) fn calls(&self) -> u64 {
        self.tools.iter().map(WeighedTool::calls).sum()
    }

    pub(super) fn unused(&self) -> impl Iterator<Item = &WeighedTool> {
        self.tools.iter().filter(|tool| tool.usage.is_none())
    }
}

impl WeighedTool {
    pub(super) fn calls(&self) -> u64 {
        self.usage.map_or(0, |usage| usage.calls)
    }
}

/// A part of a whole, in percent.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 * 100.0 / whole as f64
}
