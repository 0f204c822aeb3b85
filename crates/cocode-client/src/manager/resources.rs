//! Resources of all servers: listed together, read by reference, followed when they change.

use std::collections::BTreeMap;
use std::sync::Arc;

use cocode_core::ServerName;
use tokio::time::Instant;

use super::Manager;
use super::call_error::CallError;
use super::catalog::ServerCatalog;
use super::listing;
use super::options::ListReading;
use crate::clock::later;
use crate::error::RequestError;
use crate::features::{
    Completion, CompletionTarget, Prompt, ReadResult, Resource, ResourceTemplate,
};
use crate::list_cache::ListKind;
use crate::options::RequestOptions;
use crate::session::Session;

/// What all servers gave, each for itself: one that failed takes nothing from the others.
#[derive(Clone, Debug)]
pub struct Aggregated<T> {
    /// What there is, by server.
    pub items: Vec<(ServerName, Vec<Arc<T>>)>,
    /// Servers that could not be asked, and why.
    pub errors: BTreeMap<ServerName, String>,
}

/// A resource, as people and models refer to it: `@server:uri`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceReference {
    /// Whose resource.
    pub server: ServerName,
    /// Which one.
    pub uri: String,
}

impl ResourceReference {
    /// Reads `@server:uri`, with the sign at its beginning or without.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('@').unwrap_or(text);
        let (server, uri) = text.split_once(':')?;
        if uri.is_empty() {
            return None;
        }
        Some(Self {
            server: server.parse().ok()?,
            uri: uri.to_owned(),
        })
    }

    /// Every reference in a text: an `@` at the beginning of a word, up to the next blank, without
    /// the punctuation that belongs to the sentence around it.
    pub fn all_in(text: &str) -> Vec<Self> {
        let words = text.split_whitespace();
        let references = words.filter_map(|word| {
            let word = word.trim_start_matches(['(', '[', '{', '"', '\'', '`', '<']);
            let word = word.strip_prefix('@')?;
            let word = word.trim_end_matches([
                ')', ']', '}', '"', '\'', '`', '>', ',', ';', '.', ':', '!', '?',
            ]);
            Self::parse(word)
        });
        references.collect()
    }
}

impl std::fmt::Display for ResourceReference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "@{}:{}", self.server, self.uri)
    }
}

impl Manager {
    /// The resources of all servers. Servers that do not run are started if nobody knows what they
    /// have.
    pub async fn resources(&self, deadline: Instant) -> Aggregated<Resource> {
        self.aggregate(ListKind::Resources, deadline, |server| {
            server.resources.clone()
        })
        .await
    }

    /// The resource templates of all servers.
    pub async fn resource_templates(&self, deadline: Instant) -> Aggregated<ResourceTemplate> {
        self.aggregate(ListKind::ResourceTemplates, deadline, |server| {
            server.templates.clone()
        })
        .await
    }

    /// The prompts of all servers.
    pub async fn prompts(&self, deadline: Instant) -> Aggregated<Prompt> {
        self.aggregate(ListKind::Prompts, deadline, |server| server.prompts.clone())
            .await
    }

    /// Reads a resource.
    pub async fn read(
        &self,
        reference: &ResourceReference,
        options: RequestOptions,
    ) -> Result<ReadResult, CallError> {
        let ResourceReference { server, uri } = reference;
        let _in_use = self.server(server)?.in_use();
        let session = self.session_for(server, &options).await?;
        let read = session.read_resource(uri, options).await;
        read.map_err(|error| self.request_failed(server, uri, error))
    }

    /// Asks to be told when a resource changes, by
    /// [`Event::ResourceUpdated`](super::Event::ResourceUpdated), over any number of reconnections.
    pub async fn subscribe(&self, reference: &ResourceReference) -> Result<(), CallError> {
        let ResourceReference { server, uri } = reference;
        let options = RequestOptions::default();
        let known = self.server(server)?;
        let session = self.session_for(server, &options).await?;
        // First, so that a connection made meanwhile knows of it.
        known.change_subscriptions(|uris| uris.insert(uri.clone()));
        let subscribed = session.subscribe(uri).await;
        subscribed.map_err(|error| {
            known.change_subscriptions(|uris| uris.remove(uri));
            self.request_failed(server, uri, error)
        })
    }

    /// As [`Self::subscribe`], whenever the server is there: if that is not now, it is asked as soon as
    /// it has connected. Gives whether it was asked; an error is what the server itself refused.
    pub async fn subscribe_whenever(
        &self,
        reference: &ResourceReference,
    ) -> Result<bool, CallError> {
        let ResourceReference { server, uri } = reference;
        let known = self.server(server)?;
        // Every new connection is asked for what is noted here.
        known.change_subscriptions(|uris| uris.insert(uri.clone()));
        let options = RequestOptions::default();
        let session = match self.session_for(server, &options).await {
            Ok(session) => session,
            Err(error) => {
                tracing::info!(%server, %error, uri, "to be subscribed when the server is there");
                return Ok(false);
            }
        };
        match session.subscribe(uri).await {
            Ok(()) => Ok(true),
            Err(error @ (RequestError::Rpc { .. } | RequestError::Unexpected { .. })) => {
                known.change_subscriptions(|uris| uris.remove(uri));
                Err(self.request_failed(server, uri, error))
            }
            Err(error) => {
                let error = self.request_failed(server, uri, error);
                tracing::info!(%server, %error, uri, "to be subscribed when the server is back");
                Ok(false)
            }
        }
    }

    /// Asks not to be told any more.
    pub async fn unsubscribe(&self, reference: &ResourceReference) -> Result<(), CallError> {
        let ResourceReference { server, uri } = reference;
        let known = self.server(server)?;
        known.change_subscriptions(|uris| uris.remove(uri));
        let Some(session) = known.current() else {
            return Ok(());
        };
        let unsubscribed = session.unsubscribe(uri).await;
        unsubscribed.map_err(|error| self.request_failed(server, uri, error))
    }

    /// Candidates for an argument of a prompt or a resource template.
    pub async fn complete(
        &self,
        server: &ServerName,
        target: &CompletionTarget,
        (argument, value): (&str, &str),
        others: &BTreeMap<String, String>,
    ) -> Result<Completion, CallError> {
        let _in_use = self.server(server)?.in_use();
        let session = self.session_for(server, &RequestOptions::default()).await?;
        let completed = session.complete(target, argument, value, others).await;
        completed.map_err(|error| self.request_failed(server, argument, error))
    }

    pub(super) async fn session_for(
        &self,
        server: &ServerName,
        options: &RequestOptions,
    ) -> Result<Session, CallError> {
        let fixed = self.shared().options.timeouts.request;
        let patience = options.deadlines.map_or(fixed, |deadlines| deadlines.idle);
        self.session(server, later(Instant::now(), patience)).await
    }

    pub(super) fn request_failed(
        &self,
        server: &ServerName,
        what: &str,
        error: RequestError,
    ) -> CallError {
        if let Some(known) = self.shared().server(server) {
            known.suspect(&error);
        }
        CallError::Asking {
            server: server.clone(),
            what: what.to_owned(),
            error,
        }
    }

    async fn aggregate<T>(
        &self,
        kind: ListKind,
        deadline: Instant,
        of: impl Fn(&ServerCatalog) -> Vec<Arc<T>>,
    ) -> Aggregated<T> {
        let servers = self.shared().servers();
        let each = servers.keys().map(|name| self.known(name, kind, deadline));
        let outcomes = futures_util::future::join_all(each).await;
        let catalog = self.catalog();
        let mut aggregated = Aggregated {
            items: Vec::new(),
            errors: BTreeMap::new(),
        };
        for (name, outcome) in servers.keys().zip(outcomes) {
            if let Err(error) = outcome {
                aggregated.errors.insert(name.clone(), error);
            }
            let items = catalog.server(name).map(&of).unwrap_or_default();
            if !items.is_empty() {
                aggregated.items.push((name.clone(), items));
            }
        }
        aggregated
    }

    /// Makes sure that a list of a server is known, or says why it is not.
    async fn known(
        &self,
        name: &ServerName,
        kind: ListKind,
        deadline: Instant,
    ) -> Result<(), String> {
        let server = self.server(name).map_err(|error| error.to_string())?;
        let now = self.shared().options.list_clock();
        let is_known = server.lists(|lists| lists.is_known(kind));
        let is_stale = server.lists(|lists| lists.is_stale(kind, now));
        if is_known && is_stale && server.current().is_some() {
            // Good enough for now; the next look shows what it is by then.
            let stale = server.lists(|lists| lists.to_be_revalidated(now));
            server.changes.told(&stale);
        } else if !is_known || is_stale || server.state().is_on_its_way() {
            let session = self.session(name, deadline).await;
            let session = session.map_err(|error| error.to_string())?;
            self.wait_for_lists(name, deadline).await;
            if self.shared().options.lists == ListReading::OnDemand {
                listing::read(self.shared(), &server, &session, &[kind].into()).await;
            }
        }
        let error = server.lists(|lists| lists.unlisted.get(&kind).cloned());
        error.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::ResourceReference;

    #[test]
    fn a_reference_is_a_server_and_everything_after_the_colon() {
        let reference = ResourceReference::parse("@files:file:///a/b?c=d#e").unwrap();
        assert_eq!(reference.server.as_str(), "files");
        assert_eq!(reference.uri, "file:///a/b?c=d#e");
        assert_eq!(reference.to_string(), "@files:file:///a/b?c=d#e");
        for bad in ["@files", "@files:", "@:uri", "", "@"] {
            assert_eq!(ResourceReference::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn references_are_found_between_other_words() {
        let text = "compare (@docs:doc://one), mail a@b.example and see @docs:doc://two.";
        let found: Vec<String> = ResourceReference::all_in(text)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, ["@docs:doc://one", "@docs:doc://two"]);
    }
}
