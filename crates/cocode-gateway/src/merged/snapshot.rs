//! Everything that the servers of a view offer, as one: names given out, lists written down. Made
//! anew when something has changed, and then only read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use cocode_client::{Catalog, CatalogTool, ListKind, Prompt, ServerCapabilities, ServerCatalog};
use cocode_core::{Prefix, ServerName, ServerSpec, Shadowed, ShownNames, ToolName};
use cocode_wire::RawJson;

use super::deferring::Deferring;
use super::pages::{Pages, with_text};
use super::resources::Resources;
use crate::view::{Entry, Inner};

type Servers = BTreeMap<ServerName, Entry>;

/// What servers have, by their own names.
type Names = Vec<(ServerName, ToolName)>;

/// What a view offers at one moment.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    basis: Basis,
    pub(crate) tools: ShownNames,
    /// Tools that may not be seen, by the names that they would have, where somebody watches who tries
    /// to call them.
    pub(crate) hidden: ShownNames,
    pub(crate) prompts: ShownNames,
    pub(crate) resources: Resources,
    pub(crate) lists: Lists,
    /// Servers of which it is not known what they have.
    unknown: BTreeMap<ListKind, BTreeSet<ServerName>>,
    capabilities: BTreeMap<ServerName, ServerCapabilities>,
    /// What is shown to those who search.
    pub(super) deferring: Deferring,
}

/// What a snapshot was made of. It must not keep servers running, so that it only knows them.
#[derive(Debug, Default)]
struct Basis {
    servers: Weak<Servers>,
    catalogs: Vec<Arc<Catalog>>,
    specs: Vec<Arc<ServerSpec>>,
    n_gate_changes: u64,
}

/// The lists as they are sent. Lists that are equal are the same.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    tools: Arc<Pages>,
    resources: Arc<Pages>,
    templates: Arc<Pages>,
    prompts: Arc<Pages>,
}

impl Snapshot {
    /// Makes a snapshot of what there is now.
    pub(crate) fn of(view: &Inner, prefix: Prefix, before: &Self) -> Self {
        let servers = view.servers();
        // First what may change meanwhile: then the next look sees that it has.
        let n_gate_changes = view.n_gate_changes();
        let catalogs: Vec<_> = servers
            .values()
            .map(|entry| entry.instance.manager().catalog())
            .collect();
        let offers: Vec<Offer<'_>> = servers
            .values()
            .zip(&catalogs)
            .filter_map(|(entry, catalog)| {
                let listed = catalog.server(&entry.spec.name)?;
                Some(Offer {
                    view,
                    entry,
                    listed,
                })
            })
            .collect();
        let named = |pairs: Names| ShownNames::build(prefix, pairs);
        let (tools, hidden) = offers
            .iter()
            .map(Offer::tool_names)
            .fold(Default::default(), joined);
        let (tools, hidden) = (named(tools), named(hidden));
        let prompts = offers.iter().flat_map(Offer::prompt_names);
        let prompts = named(prompts.collect());
        let resources = Resources::of(offers.iter().map(|offer| offer.listed));
        let find = |server: &ServerName| {
            let place = offers.binary_search_by(|offer| offer.listed.name.cmp(server));
            let offer = offers.get(place.ok()?)?;
            offer.listed.is_offered.then_some(offer.listed)
        };
        let written_tools = Pages::of(
            ListKind::Tools.member(),
            tools.iter().filter_map(|(shown, server, tool)| {
                let tool: &CatalogTool = find(server)?.tool(tool)?;
                shown_as(&tool.tool.raw, &tool.tool.name, shown)
            }),
        );
        let written_prompts = Pages::of(
            ListKind::Prompts.member(),
            prompts.iter().filter_map(|(shown, server, prompt)| {
                let prompt: &Prompt = find(server)?.prompt(prompt.as_str())?;
                shown_as(&prompt.raw, &prompt.name, shown)
            }),
        );
        let is_offered = |server: &ServerName| find(server).is_some();
        let (resource_pages, template_pages) = resources.written(is_offered);
        let lists = Lists {
            tools: kept(&before.lists.tools, written_tools),
            resources: kept(&before.lists.resources, resource_pages),
            templates: kept(&before.lists.templates, template_pages),
            prompts: kept(&before.lists.prompts, written_prompts),
        };
        warn_of_shadowed("tool", &before.tools, &tools);
        warn_of_shadowed("prompt", &before.prompts, &prompts);
        let capabilities = offers.iter().filter_map(Offer::capabilities);
        let capabilities = capabilities.collect();
        let unknown = ListKind::ALL.into_iter();
        let unknown = unknown.map(|kind| (kind, without(kind, &servers, &offers)));
        let unknown = unknown.collect();
        drop(offers);
        let specs = servers.values().map(|entry| Arc::clone(&entry.spec));
        let specs = specs.collect();
        Self {
            basis: Basis {
                servers: Arc::downgrade(&servers),
                catalogs,
                specs,
                n_gate_changes,
            },
            tools,
            hidden,
            prompts,
            resources,
            lists,
            unknown,
            capabilities,
            deferring: Deferring::default(),
        }
    }

    /// Whether nothing has changed since.
    pub(crate) fn is_current(&self, view: &Inner) -> bool {
        let servers = view.servers();
        let Basis {
            servers: known,
            catalogs,
            specs: _,
            n_gate_changes,
        } = &self.basis;
        let is_same = |(entry, catalog): (&Entry, &Arc<Catalog>)| {
            Arc::ptr_eq(&entry.instance.manager().catalog(), catalog)
        };
        std::ptr::eq(known.as_ptr(), Arc::as_ptr(&servers))
            && *n_gate_changes == view.n_gate_changes()
            && servers.values().zip(catalogs).all(is_same)
    }

    /// The servers that it was made of, and what each offered.
    pub(super) fn servers(&self) -> impl Iterator<Item = (&Arc<ServerSpec>, &Arc<Catalog>)> {
        let Basis {
            specs, catalogs, ..
        } = &self.basis;
        specs.iter().zip(catalogs)
    }

    /// What a server offers, if it can be used or will be when it is needed.
    pub(super) fn offered(&self, server: &str) -> Option<(&ServerSpec, &ServerCatalog)> {
        let specs = &self.basis.specs;
        let place = specs.binary_search_by(|spec| spec.name.as_str().cmp(server));
        let place = place.ok()?;
        let (spec, catalog) = (specs.get(place)?, self.basis.catalogs.get(place)?);
        let listed = catalog.server(&spec.name)?;
        listed.is_offered.then_some((spec, listed))
    }

    /// The servers of which it is not known what they have.
    pub(crate) fn unknown(&self, kind: ListKind) -> &BTreeSet<ServerName> {
        static NONE: BTreeSet<ServerName> = BTreeSet::new();
        self.unknown.get(&kind).unwrap_or(&NONE)
    }

    /// What a server says it can do, if it was ever there.
    pub(crate) fn capabilities(&self, server: &ServerName) -> Option<&ServerCapabilities> {
        self.capabilities.get(server)
    }

    /// What all servers say they can do.
    pub(crate) fn all_capabilities(
        &self,
    ) -> impl Iterator<Item = (&ServerName, &ServerCapabilities)> {
        self.capabilities.iter()
    }
}

impl Lists {
    pub(crate) fn get(&self, kind: ListKind) -> &Arc<Pages> {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Resources => &self.resources,
            ListKind::ResourceTemplates => &self.templates,
            ListKind::Prompts => &self.prompts,
        }
    }

    pub(crate) fn set(&mut self, kind: ListKind, pages: Arc<Pages>) {
        *match kind {
            ListKind::Tools => &mut self.tools,
            ListKind::Resources => &mut self.resources,
            ListKind::ResourceTemplates => &mut self.templates,
            ListKind::Prompts => &mut self.prompts,
        } = pages;
    }

    /// The lists that are others here than there.
    pub(crate) fn changed_since(&self, before: &Self) -> Vec<ListKind> {
        let differs = |kind: &ListKind| {
            let (now, then) = (self.get(*kind), before.get(*kind));
            !Arc::ptr_eq(now, then) && now != then
        };
        ListKind::ALL.into_iter().filter(differs).collect()
    }
}

impl Default for Lists {
    fn default() -> Self {
        let empty = |kind: ListKind| Arc::new(Pages::of(kind.member(), []));
        Self {
            tools: empty(ListKind::Tools),
            resources: empty(ListKind::Resources),
            templates: empty(ListKind::ResourceTemplates),
            prompts: empty(ListKind::Prompts),
        }
    }
}

/// What one server of a view offers.
struct Offer<'a> {
    view: &'a Inner,
    entry: &'a Entry,
    listed: &'a ServerCatalog,
}

impl Offer<'_> {
    /// Its tools: those that may be seen, and the others if that is of interest. Those of a server that cannot be used at the
    /// moment have their names nevertheless: whoever calls one makes us try again.
    fn tool_names(&self) -> (Names, Names) {
        let Self {
            view,
            entry,
            listed,
        } = self;
        let name = &listed.name;
        let is_visible = |tool: &Arc<CatalogTool>| {
            let verdict = || {
                view.gate()
                    .decide(name, tool.name.as_str(), tool.tool.annotations)
            };
            entry.spec.tools.admits(tool.name.as_str())
                && (view.gate().is_open() || verdict().allows_listing())
        };
        let (visible, mut hidden): (Vec<_>, Vec<_>) =
            listed.tools.iter().partition(|tool| is_visible(tool));
        if !view.is_watched() {
            hidden.clear();
        }
        let named = |tools: Vec<&Arc<CatalogTool>>| {
            let named = tools.into_iter();
            let named = named.map(|tool| (name.clone(), tool.name.clone()));
            named.collect()
        };
        (named(visible), named(hidden))
    }

    fn prompt_names(&self) -> Names {
        let name = &self.listed.name;
        let prompts = self.listed.prompts.iter();
        prompts
            .map(|prompt| (name.clone(), ToolName::new(prompt.name.as_str())))
            .collect()
    }

    fn capabilities(&self) -> Option<(ServerName, ServerCapabilities)> {
        let capabilities = self.listed.capabilities.clone()?;
        Some((self.listed.name.clone(), capabilities))
    }
}

fn joined(mut all: (Names, Names), more: (Names, Names)) -> (Names, Names) {
    all.0.extend(more.0);
    all.1.extend(more.1);
    all
}

/// The servers of which a list is not known.
fn without(kind: ListKind, servers: &Servers, offers: &[Offer<'_>]) -> BTreeSet<ServerName> {
    let known = offers
        .iter()
        .filter(|offer| offer.listed.known.contains(&kind));
    let known: BTreeSet<_> = known.map(|offer| &offer.listed.name).collect();
    let unknown = servers.keys().filter(|name| !known.contains(name));
    unknown.cloned().collect()
}

pub(super) fn shown_as(raw: &RawJson, name: &str, shown: &str) -> Option<RawJson> {
    if name == shown {
        return Some(raw.clone());
    }
    with_text(raw, "name", shown)
}

/// The list as it was, if it still is.
fn kept(before: &Arc<Pages>, now: Pages) -> Arc<Pages> {
    if **before == now {
        return Arc::clone(before);
    }
    Arc::new(now)
}

/// Once for each that is left out.
fn warn_of_shadowed(what: &str, before: &ShownNames, now: &ShownNames) {
    let shadowed = now.shadowed().iter();
    let new = shadowed.filter(|shadowed| !before.shadowed().contains(shadowed));
    for Shadowed { server, name, by } in new {
        tracing::warn!(
            %server, %name, %by,
            "a {what} is left out, because another server has one of the same name; let names have \
             prefixes to show both"
        );
    }
}
