//! The resources and templates of many servers as one, and the way from a URI to its server.

use std::collections::BTreeMap;

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
    pub(crate) fn of<'a>(servers: impl Iterator<Item = &'a ServerCatalog>) -> Self {
        let mut all = Self::default();
        for server in servers {
            let name = &server.name;
            let capabilities = server.capabilities.as_ref();
            if capabilities.is_some_and(|capabilities| capabilities.resources) {
                all.owners.push(name.clone());
            }
            for resource in &server.resources {
                all.single.add(name, &resource.uri, &resource.raw);
            }
            for template in &server.templates {
                let pattern = Pattern::new(&template.uri_template);
                all.patterns.push((name.clone(), pattern));
                all.templates
                    .add(name, &template.uri_template, &template.raw);
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

    /// The server of a resource, and what that server knows it by. Who lists it has it; else the one
    /// whose name is in it, the one with the template that fits best, or the only one that has
    /// resources at all.
    pub(crate) fn find(
        &self,
        uri: &str,
        is_served: impl Fn(&ServerName) -> bool,
    ) -> Option<(ServerName, String)> {
        if let Some(found) = self.single.find(uri).or_else(|| named(uri, is_served)) {
            return Some(found);
        }
        let fitting = self
            .patterns
            .iter()
            .filter(|(_, pattern)| pattern.matches(uri));
        // The first of those that fit equally well.
        let best = fitting.rev().max_by_key(|(_, pattern)| pattern.fixed());
        let only = match self.owners.as_slice() {
            [only] => Some(only),
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
        let found = self.templates.find(template);
        found.or_else(|| self.find(template, is_served))
    }
}

fn named(uri: &str, is_served: impl Fn(&ServerName) -> bool) -> Option<(ServerName, String)> {
    let (server, uri) = uris::split(uri)?;
    is_served(&server).then(|| (server, uri.to_owned()))
}

impl Shown {
    fn add(&mut self, server: &ServerName, uri: &str, raw: &RawJson) {
        let shown = if self.0.contains_key(uri) {
            uris::named(server, uri)
        } else {
            uri.to_owned()
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
