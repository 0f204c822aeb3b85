//! The resources and templates of many servers as one, and the way from a URI to its server.

use std::collections::{BTreeMap, BTreeSet};

use cocode_client::{ListKind, ServerCatalog};
use cocode_core::ServerName;
use cocode_wire::RawJson;

use super::pages::{Pages, with_text};
use super::uris::{self, Pattern};

/// What many servers have to be read.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    single: Shown,
    templates: Shown,
    patterns: Vec<(ServerName, Pattern)>,
    /// Servers that have resources, by name.
    owners: Vec<ServerName>,
}

/// Things that are known by a URI, or a template of URIs.
#[derive(Debug, Default)]
struct Shown(BTreeMap<String, Item>);

#[derive(Debug)]
struct Item {
    server: ServerName,
    /// What its server knows it by.
    uri: String,
    raw: RawJson,
}

impl Resources {
    /// Of servers, sorted by name.
    pub(crate) fn of<'a>(servers: impl Iterator<Item = &'a ServerCatalog> + Clone) -> Self {
        let mut all = Self::default();
        let names: BTreeSet<_> = servers.clone().map(|server| &server.name).collect();
        // A URI that names a server is reserved for it, whichever server lists it and whether or not it is served.
        let is_free = |uri: &str| {
            let named = uris::split(uri);
            !uris::names_server(uri) && named.is_none_or(|(name, _)| !names.contains(&name))
        };
        for server in servers {
            let name = &server.name;
            let capabilities = server.capabilities.as_ref();
            if capabilities.is_some_and(|capabilities| capabilities.resources) {
                all.owners.push(name.clone());
            }
            for resource in &server.resources {
                let uri = &resource.uri;
                all.single.add(name, uri, &resource.raw, is_free(uri));
            }
            for template in &server.templates {
                let uri = &template.uri_template;
                all.patterns.push((name.clone(), Pattern::new(uri)));
                all.templates.add(name, uri, &template.raw, is_free(uri));
            }
        }
        all
    }

    /// The lists of those whose servers are offered: resources, and templates.
    pub(crate) fn written(&self, is_offered: impl Fn(&ServerName) -> bool) -> (Pages, Pages) {
        let resources = self.single.items("uri", &is_offered);
        let templates = self.templates.items("uriTemplate", &is_offered);
        (
            Pages::of(ListKind::Resources.member(), resources),
            Pages::of(ListKind::ResourceTemplates.member(), templates),
        )
    }

    /// The server of a resource, and what that server knows it by. The one whose name is in it has it;
    /// else the first by name that lists it, the one with the template that fits best, or the only one that has
    /// resources at all.
    pub(crate) fn find(
        &self,
        uri: &str,
        is_served: impl Fn(&ServerName) -> bool,
    ) -> Option<(ServerName, String)> {
        if let Some(found) = named(uri, is_served).or_else(|| self.single.find(uri)) {
            return Some(found);
        }
        if uris::names_server(uri) {
            return None;
        }
        let is_of_scheme = uris::split(uri).is_some();
        let fitting = self.patterns.iter().filter(|(_, pattern)| {
            (!is_of_scheme || pattern.is_of_scheme()) && pattern.matches(uri)
        });
        // The first of those that fit equally well.
        let best = fitting.rev().max_by_key(|(_, pattern)| pattern.fixed());
        let only = match self.owners.as_slice() {
            [only] if !is_of_scheme => Some(only),
            _ => None,
        };
        let server = best.map(|(server, _)| server).or(only)?;
        Some((server.clone(), uri.to_owned()))
    }

    /// The server of a template, or of a resource, and what that server knows it by.
    pub(crate) fn find_template(
        &self,
        template: &str,
        is_served: impl Fn(&ServerName) -> bool,
    ) -> Option<(ServerName, String)> {
        let found = named(template, &is_served).or_else(|| self.templates.find(template));
        found.or_else(|| self.find(template, is_served))
    }
}

fn named(uri: &str, is_served: impl Fn(&ServerName) -> bool) -> Option<(ServerName, String)> {
    let (server, uri) = uris::split(uri)?;
    is_served(&server).then(|| (server, uri.to_owned()))
}

impl Shown {
    fn add(&mut self, server: &ServerName, uri: &str, raw: &RawJson, is_free: bool) {
        let shown = if is_free && !self.0.contains_key(uri) {
            uri.to_owned()
        } else {
            uris::named(server, uri)
        };
        if self.0.contains_key(&shown) {
            tracing::warn!(%server, uri, "a resource is left out: its URI means another one");
            return;
        }
        let item = Item {
            server: server.clone(),
            uri: uri.to_owned(),
            raw: raw.clone(),
        };
        self.0.insert(shown, item);
    }

    fn find(&self, shown: &str) -> Option<(ServerName, String)> {
        let item = self.0.get(shown)?;
        Some((item.server.clone(), item.uri.clone()))
    }

    fn items(
        &self,
        member: &str,
        is_offered: impl Fn(&ServerName) -> bool,
    ) -> impl Iterator<Item = RawJson> {
        self.0.iter().filter_map(move |(shown, item)| {
            if !is_offered(&item.server) {
                return None;
            }
            if *shown == item.uri {
                return Some(item.raw.clone());
            }
            with_text(&item.raw, member, shown)
        })
    }
}
