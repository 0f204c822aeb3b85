//! Lists that somebody wants from a server now, whatever is known of them: asked for, handed out as
//! they came, and taken over into the catalog and what is remembered.

use std::sync::Arc;

use cocode_core::ServerName;
use tokio::time::Instant;

use super::Manager;
use super::call_error::CallError;
use super::listing;
use super::lists::CatalogTool;
use super::server::Server;
use crate::features::{Prompt, Resource, ResourceTemplate, Tool};
use crate::list_cache::ListKind;
use crate::pages::Listing;
use crate::session::Session;

/// One method for each kind of list.
macro_rules! asks {
    ($(#[$doc:meta])* $method:ident, $kind:expr, $item:ty, $request:ident, $list:ident) => {
        $(#[$doc])*
        pub async fn $method(
            &self,
            server: &ServerName,
            deadline: Instant,
        ) -> Result<Listing<$item>, CallError> {
            let known = self.server(server)?;
            let session = self.session(server, deadline).await?;
            let _in_use = known.in_use();
            let asked = known.asks((self.shared().options.time_of_day)());
            let listed = session.$request().await.and_then(|listing| {
                let taken = listing.clone();
                known.change_lists(|lists| {
                    lists.take_over((server, $kind), taken, asked, |lists| &mut lists.$list)
                })?;
                Ok(listing)
            });
            match listed {
                Ok(listing) => {
                    listing::note(&known, $kind, None);
                    self.listed(known, session);
                    Ok(listing)
                }
                Err(error) => {
                    listing::note(&known, $kind, Some(error.clone()));
                    Err(self.request_failed(server, $kind.method(), error))
                }
            }
        }
    };
}

impl Manager {
    asks! {
        /// Asks a server for its tools. One that does not run is started, and waited for until
        /// `deadline`. Filters take nothing away here.
        list_tools, ListKind::Tools, Tool, tools, tools
    }

    asks! {
        /// Asks a server for its resources.
        list_resources, ListKind::Resources, Resource, resources, resources
    }

    asks! {
        /// Asks a server for its resource templates.
        list_resource_templates, ListKind::ResourceTemplates, ResourceTemplate, resource_templates,
        templates
    }

    asks! {
        /// Asks a server for its prompts.
        list_prompts, ListKind::Prompts, Prompt, prompts, prompts
    }

    /// A tool as its server listed it, now or before, if the list is still fresh: then there is no
    /// need to ask. Filters take nothing away here.
    pub fn fresh_tool(&self, server: &ServerName, tool: &str) -> Option<Arc<CatalogTool>> {
        let now = self.shared().options.list_clock();
        let known = self.server(server).ok()?;
        known.lists(|lists| {
            let listed = lists.tools.items();
            let place = listed.binary_search_by(|listed| listed.name.as_str().cmp(tool));
            let found = listed.get(place.ok()?)?;
            (!lists.tools.is_stale(now)).then(|| Arc::clone(found))
        })
    }

    /// A list was read: everybody may see it, and it is written down meanwhile.
    fn listed(&self, server: Arc<Server>, session: Session) {
        let shared = Arc::clone(self.shared());
        shared.publish();
        self.own(async move { listing::remember(&shared, &server, &session).await });
    }
}
