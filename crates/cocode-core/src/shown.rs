//! The names under which many servers are shown as one: with the server in them, or without.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::names::{ServerName, ToolName};
use crate::qualified;
use crate::table::NameTable;

/// Whether the names that clients see say whose they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefix {
    /// Always: `mcp__server__tool`. A name then depends on nothing but what it names.
    #[default]
    Always,
    /// Only where it is needed: the server's own name for what no other server has, as long as
    /// every model can spell it.
    OnConflict,
    /// Never: the server's own names. Of two with the same name, the one of the server whose name
    /// comes first in sorted order is shown.
    Never,
}

/// What a server offers under a name that another one has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// Whose it is.
    pub server: ServerName,
    /// The server's name for it.
    pub name: ToolName,
    /// Who has taken the name.
    pub by: ServerName,
}

/// The names under which clients see what many servers offer, and the way back. Equal for equal
/// pairs, in whatever order they come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownNames {
    names: BTreeMap<Arc<str>, (ServerName, ToolName)>,
    shadowed: Vec<Shadowed>,
}

impl ShownNames {
    /// Names every pair. A pair that comes twice is one entry.
    pub fn build(prefix: Prefix, pairs: impl IntoIterator<Item = (ServerName, ToolName)>) -> Self {
        // Sorted, so that whoever comes first by name is served first.
        let pairs: BTreeSet<_> = pairs.into_iter().collect();
        match prefix {
            Prefix::Always => Self::qualified(pairs, |_bare| false),
            Prefix::OnConflict => {
                let mut n_servers: BTreeMap<ToolName, usize> = BTreeMap::new();
                for (_, name) in &pairs {
                    *n_servers.entry(name.clone()).or_default() += 1;
                }
                Self::qualified(pairs, |bare| {
                    n_servers.get(bare) == Some(&1) && qualified::stands_alone(bare.as_str())
                })
            }
            Prefix::Never => Self::bare(pairs),
        }
    }

    /// What a name stands for, if it was given out.
    pub fn resolve(&self, shown: &str) -> Option<(&ServerName, &ToolName)> {
        self.names.get(shown).map(|(server, name)| (server, name))
    }

    /// All entries, sorted by the name that clients see.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &ServerName, &ToolName)> {
        let names = self.names.iter();
        names.map(|(shown, (server, name))| (shown, server, name))
    }

    /// What is not shown, because something else has its name.
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.shadowed
    }

    fn qualified(
        pairs: BTreeSet<(ServerName, ToolName)>,
        is_bare: impl Fn(&ToolName) -> bool,
    ) -> Self {
        let table = NameTable::build(pairs);
        let names = table.iter().map(|(server, name, qualified)| {
            let shown = if is_bare(name) {
                name.as_str()
            } else {
                qualified.as_str()
            };
            (Arc::from(shown), (server.clone(), name.clone()))
        });
        Self {
            names: names.collect(),
            shadowed: Vec::new(),
        }
    }

    fn bare(pairs: BTreeSet<(ServerName, ToolName)>) -> Self {
        let mut all = Self::default();
        for (server, name) in pairs {
            if let Some((by, _)) = all.resolve(name.as_str()) {
                let by = by.clone();
                all.shadowed.push(Shadowed { server, name, by });
                continue;
            }
            all.names.insert(Arc::from(name.as_str()), (server, name));
        }
        all
    }
}

#[cfg(test)]
#[path = "shown_tests.rs"]
mod tests;
