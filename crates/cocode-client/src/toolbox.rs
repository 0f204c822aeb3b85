//! What the model of one conversation is shown of the tools of all servers, and the way back from
//! what it says to a call.

mod index;
mod loaded;
mod options;
mod own;
mod shelf;

use std::collections::BTreeMap;
use std::sync::Arc;

use cocode_core::{
    FoundDetail, FoundText, Hit, Loading, OutputLimits, ProviderTool, QualifiedName,
    SearchDecision, SearchedServer, ServerName, TOOL_CALL, TOOL_SEARCH, ToolLoad, Unrepairable,
    found_tools, nearest, nothing_found,
};
use serde_json::{Map, Value};

use crate::manager::{Catalog, did_you_mean};
use index::{Index, about};
use loaded::Loaded;
use own::Query;
use shelf::Shelf;

pub use options::{DEFAULT_MAX_LOADED, ToolboxOptions};

/// Servers that are named where there is none of a name.
const MAX_NAMED: usize = 50;

/// The tools of one conversation: what its model is shown, and the way back from what it says.
///
/// Where the definitions of all tools would take too much of what a model can see, it is shown
/// `tool_search` in place of them, and what it finds is loaded: it joins the tools that are shown,
/// behind all others, so that caches of prompts stay good for what stands before.
///
/// ```
/// use cocode_client::{
///     CallContext, Dialect, Manager, ManagerOptions, RawJson, Said, Searcher, ServerSpec, Toolbox,
///     ToolboxOptions,
/// };
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = cocode_testkit::Script::new().tools(2_000, 500).stdio();
/// # let program = server.program().to_str().ok_or("a path")?.to_owned();
/// # let args = server.args();
/// let manager = Manager::new(ManagerOptions::with_environment(std::env::vars_os()));
/// manager.apply([ServerSpec::program("files".parse()?, program, args)]).await;
/// manager.wait_for_startup().await;
///
/// let mut toolbox = Toolbox::new(ToolboxOptions {
///     searcher: Searcher { context_window: Some(200_000), calls_tools: true },
///     ..ToolboxOptions::new(Dialect::Anthropic)
/// });
/// // Before every request to the model: what it is shown.
/// toolbox.update(&manager.catalog());
/// let tools: Vec<_> = toolbox.definitions().iter().map(|tool| tool.definition()).collect();
/// # assert_eq!(tools.len(), 1);
///
/// // After every answer: what it wants.
/// # let (name, arguments) = ("tool_search", json!({"query": "tool number 7", "limit": 1}));
/// let answer = match toolbox.handle(name, &arguments) {
///     Said::Answer(text) | Said::Unknown(text) | Said::Mistaken(text) => text,
///     Said::Call { name, arguments } => {
///         let arguments = RawJson::of(&arguments)?;
///         let called = manager.call(name.as_str(), Some(&arguments), CallContext::default());
///         match called.await {
///             Ok(called) => called.result.raw.to_string(),
///             Err(error) => error.for_model(),
///         }
///     }
/// };
/// # assert!(answer.contains("mcp__files__tool-7"), "{answer}");
/// # assert_eq!(toolbox.definitions()[1].name, "mcp__files__tool-7");
/// # manager.shutdown().await;
/// # Ok(())
/// # }
/// ```
///
/// All that it shows depends on the catalogs that it was given, in their order, and on what the model
/// has found: the same conversation has the same bytes.
#[derive(Clone, Debug)]
pub struct Toolbox {
    options: ToolboxOptions,
    catalog: Arc<Catalog>,
    shelf: Shelf,
    index: Index,
    loaded: Loaded,
    decision: SearchDecision,
    /// Whether there were tools to decide about.
    is_decided: bool,
    search: Option<Arc<ProviderTool>>,
    call: Option<Arc<ProviderTool>>,
}

/// What a model says by calling a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// It searched, and this is the answer. What was found is loaded.
    Answer(String),
    /// It calls a tool of a server: hand this to [`Manager::call`](crate::Manager::call).
    Call {
        /// Which tool.
        name: QualifiedName,
        /// The arguments as the server wants them. They are not checked yet.
        arguments: Value,
    },
    /// There is no such tool for it. Say this to the model, as an error: it names what it may have
    /// meant, and what to do.
    Unknown(String),
    /// It made a mistake with `tool_search` or `tool_call`. Say this to the model, as an error.
    Mistaken(String),
}

/// How what a model is shown differs from what it was shown before: tools by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolboxChange {
    /// What it was not shown before.
    pub added: Vec<String>,
    /// What it is not shown any more.
    pub removed: Vec<String>,
    /// What is described otherwise.
    pub changed: Vec<String>,
}

/// Tokens of definitions, as they are estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolboxTokens {
    /// Of all that the model is shown.
    pub shown: u64,
    /// Of all tools that it could be shown.
    pub all: u64,
}

impl ToolboxChange {
    /// Whether the model is shown the same.
    pub fn is_empty(&self) -> bool {
        let Self {
            added,
            removed,
            changed,
        } = self;
        added.is_empty() && removed.is_empty() && changed.is_empty()
    }

    fn between(before: &[Arc<ProviderTool>], after: &[Arc<ProviderTool>]) -> Self {
        let by_name = |tools: &[Arc<ProviderTool>]| -> BTreeMap<String, Arc<ProviderTool>> {
            let named = tools
                .iter()
                .map(|tool| (tool.name.clone(), Arc::clone(tool)));
            named.collect()
        };
        let mut before = by_name(before);
        let mut change = Self::default();
        for (name, tool) in by_name(after) {
            match before.remove(&name) {
                None => change.added.push(name),
                Some(was) if !Arc::ptr_eq(&was, &tool) && was != tool => change.changed.push(name),
                Some(_) => {}
            }
        }
        change.removed = before.into_keys().collect();
        change
    }
}

impl Toolbox {
    /// A toolbox that knows no tools yet.
    pub fn new(options: ToolboxOptions) -> Self {
        Self {
            catalog: Arc::default(),
            shelf: Shelf::new(options.dialect),
            index: Index::default(),
            loaded: Loaded::default(),
            decision: options.policy.decide(options.searcher, ToolLoad::default()),
            is_decided: false,
            search: None,
            call: own::call_tool(options.dialect).map(Arc::new),
            options,
        }
    }

    /// Takes the catalog of the moment, and says what the model is shown otherwise. Only what is other
    /// than before is looked at. What the model had found stays loaded while it is there.
    pub fn update(&mut self, catalog: &Arc<Catalog>) -> ToolboxChange {
        if self.is_decided && Arc::ptr_eq(&self.catalog, catalog) {
            return ToolboxChange::default();
        }
        let before: Vec<_> = self.shown().cloned().collect();
        self.catalog = Arc::clone(catalog);
        self.shelf.update(catalog);
        let shelf = &self.shelf;
        self.loaded
            .retain(|name| shelf.get(name.as_str()).is_some());
        if !self.is_decided || self.options.on_list_changed {
            let load = shelf.load(&self.options.always_load);
            self.decision = self.options.policy.decide(self.options.searcher, load);
            self.is_decided |= !shelf.is_empty();
        }
        let search = self.search_tool();
        if self.search.as_deref() != search.as_ref() {
            self.search = search.map(Arc::new);
        }
        self.show();
        let after: Vec<_> = self.shown().cloned().collect();
        ToolboxChange::between(&before, &after)
    }

    /// What the model is shown now: all tools by name; or `tool_search`, `tool_call` where what is
    /// shown must not grow, the tools of servers that are always shown, and what was found, in the order
    /// in which it was.
    pub fn definitions(&self) -> Vec<&ProviderTool> {
        self.shown().map(|tool| &**tool).collect()
    }

    /// The same, to be kept.
    pub fn shared_definitions(&self) -> Vec<Arc<ProviderTool>> {
        self.shown().cloned().collect()
    }

    /// Does what the model says: searches, or finds out which tool is to be called with what. A tool
    /// need not be shown to be called.
    pub fn handle(&mut self, name: &str, arguments: &Value) -> Said {
        match name {
            TOOL_SEARCH => self.handle_search(arguments),
            TOOL_CALL => {
                let arguments = back(self.call.as_deref(), arguments);
                match own::unwrapped(&arguments) {
                    Ok((name, arguments)) => self.handle_call(name, arguments),
                    Err(what) => Said::Mistaken(what),
                }
            }
            name => self.handle_call(name, arguments.clone()),
        }
    }

    /// Whether the model searches, and why.
    pub fn decision(&self) -> SearchDecision {
        self.decision
    }

    /// What is shown takes so much, and all tools would.
    pub fn tokens(&self) -> ToolboxTokens {
        ToolboxTokens {
            shown: self.shown().map(|tool| shelf::tokens(tool)).sum(),
            all: self.shelf.iter().map(|(_, shelved)| shelved.tokens).sum(),
        }
    }

    /// Tools that are offered, but cannot be described to this model, and why. They are neither shown
    /// nor found.
    pub fn quarantined(&self) -> &[(QualifiedName, Unrepairable)] {
        &self.shelf.quarantined
    }

    /// The tools that the model has found, in the order in which it found them.
    pub fn loaded(&self) -> impl Iterator<Item = &QualifiedName> {
        self.loaded.names()
    }

    fn shown(&self) -> impl Iterator<Item = &Arc<ProviderTool>> {
        let is_search = self.decision.is_search();
        let search = self.search.as_ref().filter(|_| is_search);
        let grows = self.options.loading == Loading::Listed;
        let call = self.call.as_ref().filter(|_| is_search && !grows);
        let always = &self.options.always_load;
        let standing = self.shelf.iter();
        let standing =
            standing.filter(move |(_, tool)| !is_search || always.contains(&tool.server));
        let loaded = self.loaded.names().filter(move |_| is_search);
        let loaded = loaded.filter_map(|name| self.shelf.get(name.as_str()));
        let loaded = loaded.filter(|(_, tool)| !always.contains(&tool.server));
        let tools = standing.chain(loaded);
        let tools = tools.filter_map(|(_, tool)| tool.written.as_ref());
        search.into_iter().chain(call).chain(tools)
    }

    /// Writes what is shown.
    fn show(&mut self) {
        let is_search = self.decision.is_search();
        let (always, loaded) = (&self.options.always_load, &self.loaded);
        self.shelf.show(|name, tool| {
            !is_search || always.contains(&tool.server) || loaded.contains(name)
        });
    }

    fn search_tool(&self) -> Option<ProviderTool> {
        let servers = self.shelf.servers().into_iter();
        let servers = servers.filter(|name| !self.options.always_load.contains(*name));
        let servers = servers.map(|name| SearchedServer {
            name: name.as_str(),
            about: self
                .catalog
                .server(name)
                .and_then(|server| about(server, &self.options)),
        });
        own::search_tool(servers, self.options.loading, self.options.dialect)
    }

    fn handle_search(&mut self, arguments: &Value) -> Said {
        let query = match Query::read(&back(self.search.as_deref(), arguments)) {
            Ok(query) => query,
            Err(what) => return Said::Mistaken(what),
        };
        let servers = self.shelf.servers();
        let servers: Vec<&str> = servers.into_iter().map(ServerName::as_str).collect();
        let server = query.server.as_deref();
        if let Some(server) = server
            && !servers.contains(&server)
        {
            return Said::Mistaken(unknown_server(server, &servers));
        }
        self.index
            .catch_up(&self.catalog, &self.shelf, &self.options);
        let grows = self.options.loading == Loading::Listed;
        let most = self.options.max_loaded.max(1);
        let limit = query.limit.min(if grows { most } else { usize::MAX });
        let hits = self.index.search(&query.text, server, limit);
        if hits.is_empty() {
            return Said::Answer(nothing_found(&query.text, servers));
        }
        let detail = if grows {
            FoundDetail::Names
        } else {
            query.detail
        };
        let found: Vec<_> = hits.iter().filter_map(|hit| self.found(hit)).collect();
        let answer = told(&found, detail);
        if grows && self.decision.is_search() {
            let always = &self.options.always_load;
            let found = found.iter().filter(|found| !always.contains(found.server));
            for name in found.map(|found| found.name.clone()).collect::<Vec<_>>() {
                self.loaded.load(&name, most);
            }
            self.show();
        }
        Said::Answer(answer)
    }

    fn found<'a>(&'a self, hit: &'a Hit) -> Option<Found<'a>> {
        let server = hit.server.parse().ok()?;
        let name = self.catalog.name_of(&server, &hit.tool)?;
        let (name, written) = self.shelf.written(name.as_str())?;
        let (_, shelved) = self.shelf.get(name.as_str())?;
        Some(Found {
            name,
            server: &hit.server,
            about: shelved.tool.tool.description.as_deref(),
            description: Value::from(written.description.as_str()).to_string(),
            schema: written.parameters.to_string(),
        })
    }

    fn handle_call(&mut self, name: &str, arguments: Value) -> Said {
        let arguments = match arguments {
            Value::Null => Value::Object(Map::new()),
            given => given,
        };
        if let Some((name, written)) = self.shelf.written(name) {
            self.loaded.touch(name);
            return Said::Call {
                name: name.clone(),
                arguments: written.arguments_back(arguments),
            };
        }
        let mut quarantined = self.shelf.quarantined.iter();
        if let Some((name, why)) = quarantined.find(|(tool, _)| tool.as_str() == name) {
            return Said::Unknown(format!(
                "The tool `{name}` cannot be used by you, because of how its server describes it: \
                 {why}. Go on without it."
            ));
        }
        // Of a tool whose server is away, the manager says best what is to be done.
        let known = self.catalog.resolve(name);
        let known = known.and_then(|found| {
            let name = self
                .catalog
                .name_of(found.server, found.tool.name.as_str())?;
            Some((name, found.tool))
        });
        if let Some((name, tool)) = known {
            let written = shelf::write(name, tool, self.options.dialect).ok();
            return Said::Call {
                name: name.clone(),
                arguments: back(written.as_ref(), &arguments),
            };
        }
        let names = self.shelf.iter().map(|(name, _)| name.as_str());
        let near = did_you_mean(&nearest(name, names));
        let then = if self.decision.is_search() {
            "`tool_search` finds tools by what they are for, and names them."
        } else {
            "Use one of the tools that are listed."
        };
        Said::Unknown(format!("There is no tool `{name}`.{near} {then}"))
    }
}

/// A tool that was found, in texts.
struct Found<'a> {
    name: &'a QualifiedName,
    server: &'a str,
    about: Option<&'a str>,
    /// As the model is to see them, in JSON.
    description: String,
    schema: String,
}

/// Tells of tools as they would be shown, so that there is one way back whoever reads it where.
fn told(found: &[Found<'_>], detail: FoundDetail) -> String {
    let members: Vec<_> = found
        .iter()
        .map(|found| {
            [
                ("description", found.description.as_str()),
                ("inputSchema", found.schema.as_str()),
            ]
        })
        .collect();
    let texts = found
        .iter()
        .zip(&members)
        .map(|(found, members)| FoundText {
            name: found.name.as_str(),
            server: found.server,
            about: found.about,
            members,
        });
    let max_tokens = OutputLimits::default().cap_tokens;
    found_tools(&texts.collect::<Vec<_>>(), detail, max_tokens)
}

/// What a model gave, as whoever gets it wants it.
fn back(tool: Option<&ProviderTool>, given: &Value) -> Value {
    let given = given.clone();
    match tool {
        Some(tool) => tool.arguments_back(given),
        None => given,
    }
}

fn unknown_server(server: &str, servers: &[&str]) -> String {
    let near = nearest(server, servers.iter().copied());
    let more = if near.is_empty() {
        let named: Vec<_> = servers.iter().copied().take(MAX_NAMED).collect();
        let more = match servers.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(" There are: {}{more}.", named.join(", "))
    } else {
        did_you_mean(&near)
    };
    format!("There is no server `{server}` to search.{more}")
}
