//! The names of a whole catalog, both ways: [`NameTable`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::names::{ServerName, ToolName};
use crate::qualified::{self, PairHash, QualifiedName};

/// One [`QualifiedName`] for each tool of each server, and the way back.
///
/// A tool keeps its name whatever else the table holds, in every order and on every run. The one
/// exception is two tools whose 40-bit hashes and visible parts are all equal: the first in sorted
/// order keeps the name and the other takes the next free one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameTable {
    names: BTreeMap<ServerName, BTreeMap<ToolName, QualifiedName>>,
    tools: HashMap<QualifiedName, (ServerName, ToolName)>,
}

impl NameTable {
    /// Names every pair. A pair that comes twice is one entry.
    pub fn build(pairs: impl IntoIterator<Item = (ServerName, ToolName)>) -> Self {
        Self::build_with(pairs, qualified::sha256)
    }

    /// The name of a tool, if the table was built with it.
    pub fn name_of(&self, server: &ServerName, tool: &ToolName) -> Option<&QualifiedName> {
        self.names.get(server)?.get(tool)
    }

    /// The tool behind a name, if the table gave that name out.
    pub fn resolve(&self, name: &str) -> Option<(&ServerName, &ToolName)> {
        self.tools.get(name).map(|(server, tool)| (server, tool))
    }

    /// All entries, sorted by server and then by tool.
    pub fn iter(&self) -> impl Iterator<Item = (&ServerName, &ToolName, &QualifiedName)> {
        self.names
            .iter()
            .flat_map(|(server, tools)| tools.iter().map(move |(tool, name)| (server, tool, name)))
    }

    /// How many tools have a name.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    fn build_with(pairs: impl IntoIterator<Item = (ServerName, ToolName)>, hash: PairHash) -> Self {
        // Sorted, so that who yields in a collision does not depend on who came first.
        let pairs: BTreeSet<_> = pairs.into_iter().collect();
        let mut table = Self::default();
        for (server, tool) in pairs {
            let name = qualified::plain(&server, &tool)
                .unwrap_or_else(|| table.free_hashed(&server, &tool, hash));
            let of_server = table.names.entry(server.clone()).or_default();
            of_server.insert(tool.clone(), name.clone());
            table.tools.insert(name, (server, tool));
        }
        table
    }

    /// The hashed name with the lowest salt that is still free.
    fn free_hashed(&self, server: &ServerName, tool: &ToolName, hash: PairHash) -> QualifiedName {
        let mut salt = 0;
        loop {
            let name = qualified::hashed(server, tool, salt, hash);
            if !self.tools.contains_key(&name) {
                return name;
            }
            salt += 1;
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
