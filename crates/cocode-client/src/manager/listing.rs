//! Keeps what a server listed up to date: reads its lists when it comes up and whenever they have
//! changed, and remembers them.

use std::collections::BTreeSet;
use std::sync::Arc;

use cocode_wire::code;

use super::lists::Source;
use super::options::ListReading;
use super::server::Server;
use super::shared::Shared;
use super::state::{Cause, Trouble};
use crate::error::RequestError;
use crate::list_cache::{ListKind, Remembered};
use crate::session::Session;

/// The lists besides the tools, which a server does not have to give before it can be used.
const LATER: [ListKind; 3] = [
    ListKind::Resources,
    ListKind::ResourceTemplates,
    ListKind::Prompts,
];

/// Reads the remaining lists, then whatever is said to have changed. Ends with the session, or at
/// once where lists are read on demand.
pub(crate) async fn keep(shared: Arc<Shared>, server: Arc<Server>, session: Session) {
    if shared.options.lists == ListReading::OnDemand {
        return;
    }
    let health = shared.options.health;
    read(&shared, &server, &session, &LATER.into()).await;
    remember(&shared, &server, &session).await;
    loop {
        let gathered = server
            .changes
            .gathered(health.relist_after, health.relist_within);
        let changed = gathered.await;
        server.trace(|trace| {
            for kind in &changed {
                trace.relisted(kind.method());
            }
        });
        read(&shared, &server, &session, &changed).await;
        remember(&shared, &server, &session).await;
    }
}

/// Reads these lists side by side, and publishes the catalog as each of them comes.
pub(crate) async fn read(
    shared: &Shared,
    server: &Server,
    session: &Session,
    kinds: &BTreeSet<ListKind>,
) {
    let each = kinds.iter().map(|kind| async move {
        let outcome = read_one(shared, server, session, *kind).await;
        note(server, *kind, outcome.err());
        shared.publish();
    });
    futures_util::future::join_all(each).await;
}

/// Reads the tools of a session that was just made. An error that ended the session is the
/// caller's; any other leaves a server without tools.
pub(crate) async fn first_tools(
    shared: &Shared,
    server: &Server,
    session: &Session,
) -> Result<(), RequestError> {
    match read_one(shared, server, session, ListKind::Tools).await {
        Err(error @ RequestError::Closed { .. }) => Err(error),
        outcome => {
            note(server, ListKind::Tools, outcome.err());
            Ok(())
        }
    }
}

async fn read_one(
    shared: &Shared,
    server: &Server,
    session: &Session,
    kind: ListKind,
) -> Result<(), RequestError> {
    let capabilities = &session.server().capabilities;
    let asked_at = (shared.options.time_of_day)();
    let has = match kind {
        ListKind::Tools => capabilities.tools,
        ListKind::Resources | ListKind::ResourceTemplates => capabilities.resources,
        ListKind::Prompts => capabilities.prompts,
    };
    if !has {
        server.change_lists(|lists| match kind {
            ListKind::Tools => lists.tools.clear(asked_at),
            ListKind::Resources => lists.resources.clear(asked_at),
            ListKind::ResourceTemplates => lists.templates.clear(asked_at),
            ListKind::Prompts => lists.prompts.clear(asked_at),
        });
        return Ok(());
    }
    let source = Source::Connection;
    match kind {
        ListKind::Tools => {
            let listing = session.tools().await?;
            server.change_lists(|lists| lists.tools.update(listing, source, asked_at));
        }
        ListKind::Resources => {
            let listing = session.resources().await?;
            server.change_lists(|lists| lists.resources.update(listing, source, asked_at));
        }
        ListKind::ResourceTemplates => {
            match session.resource_templates().await {
                // Many servers have resources without knowing what templates are.
                Err(RequestError::Rpc { error, .. }) if error.code == code::METHOD_NOT_FOUND => {
                    server.change_lists(|lists| lists.templates.clear(asked_at));
                }
                listing => {
                    let listing = listing?;
                    server.change_lists(|lists| lists.templates.update(listing, source, asked_at));
                }
            }
        }
        ListKind::Prompts => {
            let listing = session.prompts().await?;
            server.change_lists(|lists| lists.prompts.update(listing, source, asked_at));
        }
    }
    Ok(())
}

/// Notes that a list could not be read, or could be again. The older list stays.
pub(super) fn note(server: &Server, kind: ListKind, error: Option<RequestError>) {
    let text = error.map(|error| {
        tracing::warn!(server = %server.name, list = kind.method(), %error, "a list could not be read");
        Trouble::from(Cause::Request(Arc::new(error))).to_string()
    });
    server.change_lists(|lists| match text {
        Some(text) => {
            lists.unlisted.insert(kind, text);
        }
        None => {
            lists.unlisted.remove(&kind);
        }
    });
}

/// Writes down what the server listed. A disk that does not take it costs only the memory.
pub(super) async fn remember(shared: &Shared, server: &Server, session: &Session) {
    let cache = shared.options.cache.clone();
    if cache.is_off() {
        return;
    }
    let key = server.spec().fingerprint();
    let mut remembered = Remembered::of(session.server());
    remembered.lists = server.lists(super::lists::Lists::to_remember);
    let name = server.name.clone();
    let written = tokio::task::spawn_blocking(move || cache.store(&key, &remembered)).await;
    match written {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(server = %name, %error, "the lists are not remembered"),
        Err(error) => tracing::warn!(server = %name, %error, "the lists are not remembered"),
    }
}
