//! The index: which words stand in which tools.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What is known of a tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolText<'a> {
    /// Its server's name for it.
    pub name: &'a str,
    /// A name for people.
    pub title: Option<&'a str>,
    /// What it does.
    pub description: Option<&'a str>,
    /// The JSON Schema of its arguments, as text.
    pub input_schema: Option<&'a str>,
}

/// A tool that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Whose tool.
    pub server: Arc<str>,
    /// The server's name for it.
    pub tool: Arc<str>,
    /// How well it fits: above zero, and comparable within one search.
    pub score: f64,
}

/// A tool that was found, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The tool.
    pub hit: Hit,
    /// What its score is made of, the largest part first.
    pub parts: Vec<ScorePart>,
}

/// A part of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorePart {
    /// What of the query, or which rule.
    pub what: String,
    /// Where it was found, in words.
    pub found: String,
    /// How much it brings.
    pub score: f64,
}

/// Tools, ready to be searched.
#[derive(Clone, Debug, Default)]
pub struct ToolIndex {
    servers: BTreeMap<Arc<str>, Vec<(Arc<str>, String)>>,
}

impl ToolIndex {
    /// An index without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Knows exactly these tools of a server from now on, whatever it knew before. `about` is what
    /// is said of the server as a whole.
    pub fn set_server<'a>(
        &mut self,
        server: &str,
        about: Option<&str>,
        tools: impl IntoIterator<Item = ToolText<'a>>,
    ) {
        let tools = tools.into_iter().map(|tool| {
            let text = format!(
                "{server} {} {} {}",
                tool.name,
                tool.description.unwrap_or_default(),
                about.unwrap_or_default()
            );
            (tool.name.into(), text.to_lowercase())
        });
        self.servers.insert(server.into(), tools.collect());
    }

    /// Forgets a server, and says whether it was known.
    pub fn remove_server(&mut self, server: &str) -> bool {
        self.servers.remove(server).is_some()
    }

    /// The servers that are known, by name.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(|name| &**name)
    }

    /// How many tools are known.
    pub fn len(&self) -> usize {
        self.servers.values().map(Vec::len).sum()
    }

    /// Whether no tool is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tools that fit a query best, the best first.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        self.search_among(query, limit, |_, _| true)
    }

    /// The same among the tools that are admitted, by server and name.
    pub fn search_among(
        &self,
        query: &str,
        limit: usize,
        admits: impl Fn(&str, &str) -> bool,
    ) -> Vec<Hit> {
        let words: Vec<_> = query.split_whitespace().map(str::to_lowercase).collect();
        let mut hits: Vec<Hit> = Vec::new();
        for (server, tools) in &self.servers {
            for (tool, text) in tools {
                let n = words.iter().filter(|word| text.contains(*word)).count();
                if n > 0 && admits(server, tool) {
                    hits.push(Hit {
                        server: server.clone(),
                        tool: tool.clone(),
                        score: f64::from(u32::try_from(n).unwrap_or(u32::MAX)),
                    });
                }
            }
        }
        hits.sort_by(|one, other| other.score.total_cmp(&one.score));
        hits.truncate(limit);
        hits
    }

    /// The same as [`ToolIndex::search`], with what each score is made of.
    pub fn explain(&self, query: &str, limit: usize) -> Vec<Explained> {
        let hits = self.search(query, limit).into_iter();
        hits.map(|hit| Explained {
            hit,
            parts: Vec::new(),
        })
        .collect()
    }
}
