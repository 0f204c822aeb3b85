//! All tools that are offered, in the dialect of one provider. Every tool is weighed once; only those
//! that are shown are kept as they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cocode_core::{
    Dialect, ProviderTool, QualifiedName, ServerName, ToolLoad, ToolSource, Unrepairable, convert,
    convert_best, definition_characters, estimate_tokens,
};

use crate::manager::{Catalog, CatalogTool};

/// How deep schemas are read.
const MAX_DEPTH: usize = 128;

/// Tools by the names that models call them by.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    dialect: Dialect,
    tools: BTreeMap<QualifiedName, Shelved>,
    /// Tools that cannot be shown to this model.
    pub(super) quarantined: Vec<(QualifiedName, Unrepairable)>,
}

/// A tool that can be shown.
#[derive(Clone, Debug)]
pub(super) struct Shelved {
    pub(super) server: ServerName,
    pub(super) tool: Arc<CatalogTool>,
    /// Characters of its definition as the server wrote it.
    characters: u64,
    /// Tokens of its definition as the model sees it.
    pub(super) tokens: u64,
    /// Its definition, while it is shown.
    pub(super) written: Option<Arc<ProviderTool>>,
}

impl Shelf {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            tools: BTreeMap::new(),
            quarantined: Vec::new(),
        }
    }

    /// Has the tools of this catalog. What it had before is not looked at again.
    pub(super) fn update(&mut self, catalog: &Catalog) {
        let mut before = std::mem::take(&mut self.tools);
        self.quarantined.clear();
        for (name, found) in catalog.tools() {
            let known = before.remove(name);
            let known = known.filter(|known| known.tool.is_described_like(found.tool));
            if let Some(mut known) = known {
                known.server.clone_from(found.server);
                known.tool = Arc::clone(found.tool);
                self.tools.insert(name.clone(), known);
                continue;
            }
            match write(name, found.tool, self.dialect) {
                Ok(written) => {
                    let shelved = Shelved {
                        server: found.server.clone(),
                        tool: Arc::clone(found.tool),
                        characters: characters(name, found.tool),
                        tokens: tokens(&written),
                        written: Some(Arc::new(written)),
                    };
                    self.tools.insert(name.clone(), shelved);
                }
                Err(error) => {
                    tracing::warn!(tool = %name, %error, "a tool is not shown to the model");
                    self.quarantined.push((name.clone(), error));
                }
            }
        }
    }

    /// Keeps what is shown as it is written, and nothing else.
    pub(super) fn show(&mut self, is_shown: impl Fn(&QualifiedName, &Shelved) -> bool) {
        for (name, shelved) in &mut self.tools {
            if !is_shown(name, shelved) {
                shelved.written = None;
            } else if shelved.written.is_none() {
                let written = write(name, &shelved.tool, self.dialect).ok();
                shelved.written = written.map(Arc::new);
            }
        }
    }

    /// What all tools would take of the context window of a model.
    pub(super) fn load(&self, always: &BTreeSet<ServerName>) -> ToolLoad {
        let mut load = ToolLoad::default();
        for shelved in self.tools.values() {
            load.characters += shelved.characters;
            load.deferrable += usize::from(!always.contains(&shelved.server));
        }
        load
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&QualifiedName, &Shelved)> {
        self.tools.iter()
    }

    pub(super) fn get(&self, name: &str) -> Option<(&QualifiedName, &Shelved)> {
        self.tools.get_key_value(name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The servers that have tools here, by name.
    pub(super) fn servers(&self) -> BTreeSet<&ServerName> {
        self.tools.values().map(|shelved| &shelved.server).collect()
    }

    /// A tool as it would be shown.
    pub(super) fn written(&self, name: &str) -> Option<(&QualifiedName, Arc<ProviderTool>)> {
        let (name, shelved) = self.get(name)?;
        let written = match &shelved.written {
            Some(written) => Arc::clone(written),
            None => Arc::new(write(name, &shelved.tool, self.dialect).ok()?),
        };
        Some((name, written))
    }
}

/// Writes a tool as a provider wants it.
pub(super) fn write(
    name: &QualifiedName,
    tool: &CatalogTool,
    dialect: Dialect,
) -> Result<ProviderTool, Unrepairable> {
    let schema = tool.tool.input_schema.decode();
    let schema = schema.map_err(|_too_deep| Unrepairable::TooLarge {
        what: "it has too many levels",
        limit: MAX_DEPTH,
    })?;
    write_source(
        &ToolSource {
            name: name.as_str(),
            description: tool.tool.description.as_deref(),
            input_schema: &schema,
        },
        dialect,
    )
}

/// The same of any tool.
pub(super) fn write_source(
    tool: &ToolSource<'_>,
    dialect: Dialect,
) -> Result<ProviderTool, Unrepairable> {
    match dialect {
        Dialect::OpenAiStrict => convert_best(tool),
        _ => convert(tool, dialect),
    }
}

/// Tokens that a definition takes.
pub(super) fn tokens(written: &ProviderTool) -> u64 {
    estimate_tokens(&written.definition().to_string())
}

fn characters(name: &QualifiedName, tool: &CatalogTool) -> u64 {
    let description = tool.tool.description.as_deref();
    let schema = Some(tool.tool.input_schema.as_str());
    definition_characters(name.as_str(), description, schema)
}
