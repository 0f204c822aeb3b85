//! Everything that all servers offer, as one snapshot that never changes: a new one takes its
//! place. Sorted by server and by name, so that equal catalogs are equal to the byte.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cocode_core::{NameTable, QualifiedName, ServerName, ToolName};

use super::lists::{CatalogTool, Lists};
use crate::features::{Prompt, Resource, ResourceTemplate};
use crate::list_cache::ListKind;
use crate::pages::Quarantined;
use crate::server::ServerCapabilities;

/// What all servers offer.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    version: u64,
    servers: BTreeMap<ServerName, Arc<ServerCatalog>>,
    names: NameTable,
    prompt_names: NameTable,
}

/// What one server offers.
#[derive(Clone, Debug)]
pub struct ServerCatalog {
    /// Which server.
    pub name: ServerName,
    /// Whether it is there, or will be when it is needed. What a server offered stays known when
    /// it cannot be used, but is not offered to models.
    pub is_offered: bool,
    /// Its tools, by name, without those that filters take away.
    pub tools: Vec<Arc<CatalogTool>>,
    /// How many tools its filters take away.
    pub filtered_tools: usize,
    /// Its resources, by URI.
    pub resources: Vec<Arc<Resource>>,
    /// Its resource templates, by URI template.
    pub templates: Vec<Arc<ResourceTemplate>>,
    /// Its prompts, by name.
    pub prompts: Vec<Arc<Prompt>>,
    /// What it listed that cannot be used.
    pub quarantined: Vec<(ListKind, Quarantined)>,
    /// Lists that it has, but that could not be read, and why.
    pub unlisted: BTreeMap<ListKind, String>,
    /// Which of its lists are known: read on this connection, or remembered.
    pub known: BTreeSet<ListKind>,
    /// How it wants to be used, in its own words.
    pub instructions: Option<String>,
    /// What it says it can do, if it was ever there.
    pub capabilities: Option<ServerCapabilities>,
}

/// A tool and where it is found.
#[derive(Clone, Copy, Debug)]
pub struct FoundTool<'a> {
    /// Whose tool.
    pub server: &'a ServerName,
    /// The tool.
    pub tool: &'a Arc<CatalogTool>,
}

/// How two catalogs differ, in what they offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogChange {
    /// The version of the newer one.
    pub version: u64,
    /// Tools that are new.
    pub added: Vec<QualifiedName>,
    /// Tools that are gone.
    pub removed: Vec<QualifiedName>,
    /// Tools that are described otherwise.
    pub changed: Vec<QualifiedName>,
    /// Servers whose resources or templates are others.
    pub resources: Vec<ServerName>,
    /// Servers whose prompts are others.
    pub prompts: Vec<ServerName>,
}

impl Catalog {
    pub(crate) fn new(version: u64, servers: impl IntoIterator<Item = ServerCatalog>) -> Self {
        let servers: BTreeMap<_, _> = servers
            .into_iter()
            .map(|server| (server.name.clone(), Arc::new(server)))
            .collect();
        let pairs = servers.values().flat_map(|server| {
            let names = server.tools.iter().map(|tool| tool.name.clone());
            names.map(|tool| (server.name.clone(), tool))
        });
        let names = NameTable::build(pairs);
        let prompts = servers.values().flat_map(|server| {
            let names = server.prompts.iter().map(|prompt| prompt.name.as_str());
            names.map(|prompt| (server.name.clone(), ToolName::new(prompt)))
        });
        let prompt_names = NameTable::build(prompts);
        Self {
            version,
            servers,
            names,
            prompt_names,
        }
    }

    /// Grows with every catalog that a manager publishes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All servers, by name.
    pub fn servers(&self) -> impl Iterator<Item = &ServerCatalog> {
        self.servers.values().map(|server| &**server)
    }

    /// One server.
    pub fn server(&self, name: &ServerName) -> Option<&ServerCatalog> {
        self.servers.get(name).map(|server| &**server)
    }

    /// This catalog without the tools that are not to be seen. It has the same version, and names stay
    /// what they are as far as they are those of tools that are left.
    #[must_use]
    pub fn with_tools(&self, is_seen: impl Fn(&ServerName, &CatalogTool) -> bool) -> Self {
        let servers = self.servers.values().map(|server| {
            let seen = server
                .tools
                .iter()
                .filter(|tool| is_seen(&server.name, tool));
            let tools: Vec<_> = seen.cloned().collect();
            if tools.len() == server.tools.len() {
                return Arc::clone(server);
            }
            let filtered_tools = server.filtered_tools + (server.tools.len() - tools.len());
            Arc::new(ServerCatalog {
                tools,
                filtered_tools,
                ..(**server).clone()
            })
        });
        let servers = servers.map(|server| (server.name.clone(), server));
        Self {
            servers: servers.collect(),
            ..self.clone()
        }
    }

    /// The tools that are offered, each with the name that models know it by.
    pub fn tools(&self) -> impl Iterator<Item = (&QualifiedName, FoundTool<'_>)> {
        self.names.iter().filter_map(|(server, tool, qualified)| {
            let server = self
                .servers
                .get(server)
                .filter(|server| server.is_offered)?;
            let tool = server.tool(tool)?;
            let server = &server.name;
            Some((qualified, FoundTool { server, tool }))
        })
    }

    /// The tool of this qualified name, offered or not.
    pub fn resolve(&self, qualified: &str) -> Option<FoundTool<'_>> {
        let (server, tool) = self.names.resolve(qualified)?;
        let server = self.servers.get(server)?;
        let tool = server.tool(tool)?;
        let server = &server.name;
        Some(FoundTool { server, tool })
    }

    /// The tool of a server, by the server's own name for it.
    pub fn find(&self, server: &ServerName, tool: &str) -> Option<FoundTool<'_>> {
        let server = self.servers.get(server)?;
        let tool = server.tool(&ToolName::new(tool))?;
        let server = &server.name;
        Some(FoundTool { server, tool })
    }

    /// The name that models know a tool by.
    pub fn name_of(&self, server: &ServerName, tool: &str) -> Option<&QualifiedName> {
        self.names.name_of(server, &ToolName::new(tool))
    }

    /// The prompts that are offered, each with the name that people know it by: the one after the
    /// slash in `/mcp__server__prompt`.
    pub fn prompts(&self) -> impl Iterator<Item = (&QualifiedName, &ServerName, &Arc<Prompt>)> {
        self.prompt_names
            .iter()
            .filter_map(|(server, prompt, qualified)| {
                let server = self
                    .servers
                    .get(server)
                    .filter(|server| server.is_offered)?;
                let prompt = server.prompt(prompt.as_str())?;
                Some((qualified, &server.name, prompt))
            })
    }

    /// The prompt of this qualified name, offered or not.
    pub fn resolve_prompt(&self, qualified: &str) -> Option<(&ServerName, &Arc<Prompt>)> {
        let (server, prompt) = self.prompt_names.resolve(qualified)?;
        let server = self.servers.get(server)?;
        Some((&server.name, server.prompt(prompt.as_str())?))
    }

    /// Whether the two say the same of what is not offered, too.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.servers.len() == other.servers.len()
            && self
                .servers
                .values()
                .zip(other.servers.values())
                .all(|(one, other)| one.is_like(other))
    }

    /// What is different from an older catalog.
    pub(crate) fn change_since(&self, older: &Self) -> CatalogChange {
        let mut change = CatalogChange {
            version: self.version,
            ..CatalogChange::default()
        };
        let before: BTreeMap<_, _> = older.tools().collect();
        let after: BTreeMap<_, _> = self.tools().collect();
        for (name, found) in &after {
            match before.get(*name) {
                None => change.added.push((*name).clone()),
                Some(was) if !was.tool.is_described_like(found.tool) => {
                    change.changed.push((*name).clone());
                }
                Some(_) => {}
            }
        }
        let gone = before.keys().filter(|name| !after.contains_key(**name));
        change.removed = gone.map(|name| (*name).clone()).collect();
        let servers = self.servers.keys().chain(older.servers.keys());
        let mut servers: Vec<_> = servers.collect();
        servers.sort();
        servers.dedup();
        for name in servers {
            let (was, is) = (older.server(name), self.server(name));
            if raw_resources(was) != raw_resources(is) {
                change.resources.push(name.clone());
            }
            if raw_prompts(was) != raw_prompts(is) {
                change.prompts.push(name.clone());
            }
        }
        change
    }
}

impl ServerCatalog {
    pub(crate) fn of(
        name: &ServerName,
        filter: &cocode_core::ToolFilter,
        is_offered: bool,
        lists: &Lists,
    ) -> Self {
        let all = lists.tools.items();
        let tools: Vec<_> = all
            .iter()
            .filter(|tool| filter.admits(tool.name.as_str()))
            .cloned()
            .collect();
        Self {
            name: name.clone(),
            is_offered,
            filtered_tools: all.len() - tools.len(),
            tools,
            resources: lists.resources.items().to_vec(),
            templates: lists.templates.items().to_vec(),
            prompts: lists.prompts.items().to_vec(),
            quarantined: lists.quarantined(),
            unlisted: lists.unlisted.clone(),
            known: lists.known(),
            instructions: lists.instructions.clone(),
            capabilities: lists.capabilities.clone(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let Self {
            name,
            is_offered,
            tools,
            filtered_tools,
            resources,
            templates,
            prompts,
            quarantined,
            unlisted,
            known,
            instructions,
            capabilities,
        } = self;
        *name == other.name
            && *is_offered == other.is_offered
            && same(tools, &other.tools, |one, other| {
                one.is_described_like(other)
            })
            && *filtered_tools == other.filtered_tools
            && same(resources, &other.resources, |one, other| {
                one.raw == other.raw
            })
            && same(templates, &other.templates, |one, other| {
                one.raw == other.raw
            })
            && same(prompts, &other.prompts, |one, other| one.raw == other.raw)
            && *quarantined == other.quarantined
            && *unlisted == other.unlisted
            && *known == other.known
            && *instructions == other.instructions
            && *capabilities == other.capabilities
    }

    /// Whether the two offer the same tools, and say the same of themselves.
    pub(crate) fn has_tools_like(&self, other: &Self) -> bool {
        let alike = |one: &CatalogTool, other: &CatalogTool| one.is_described_like(other);
        self.is_offered == other.is_offered
            && self.instructions == other.instructions
            && same(&self.tools, &other.tools, alike)
    }

    /// One of its tools.
    pub fn tool(&self, name: &ToolName) -> Option<&Arc<CatalogTool>> {
        let place = self.tools.binary_search_by(|tool| tool.name.cmp(name));
        place.ok().and_then(|place| self.tools.get(place))
    }

    /// One of its prompts.
    pub fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> {
        let place = self
            .prompts
            .binary_search_by(|prompt| prompt.name.as_str().cmp(name));
        place.ok().and_then(|place| self.prompts.get(place))
    }
}

impl CatalogChange {
    /// Whether the two offer the same.
    pub fn is_empty(&self) -> bool {
        let Self {
            version: _,
            added,
            removed,
            changed,
            resources,
            prompts,
        } = self;
        added.is_empty()
            && removed.is_empty()
            && changed.is_empty()
            && resources.is_empty()
            && prompts.is_empty()
    }
}

fn same<T>(one: &[Arc<T>], other: &[Arc<T>], is_same: impl Fn(&T, &T) -> bool) -> bool {
    let alike = |(one, other): (&Arc<T>, &Arc<T>)| Arc::ptr_eq(one, other) || is_same(one, other);
    one.len() == other.len() && one.iter().zip(other).all(alike)
}

fn raw_resources(server: Option<&ServerCatalog>) -> Vec<&str> {
    let offered = server.filter(|server| server.is_offered);
    let Some(server) = offered else {
        return Vec::new();
    };
    let resources = server
        .resources
        .iter()
        .map(|resource| resource.raw.as_str());
    let templates = server
        .templates
        .iter()
        .map(|template| template.raw.as_str());
    resources.chain(templates).collect()
}

fn raw_prompts(server: Option<&ServerCatalog>) -> Vec<&str> {
    let offered = server.filter(|server| server.is_offered);
    let prompts = offered.map(|server| server.prompts.iter());
    let prompts = prompts.into_iter().flatten();
    prompts.map(|prompt| prompt.raw.as_str()).collect()
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
