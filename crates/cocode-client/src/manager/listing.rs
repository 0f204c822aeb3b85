//! Keeps what a server listed up to date: reads its lists when it comes up and whenever they have
//! changed, and remembers them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cocode_wire::{LinkError, code};
use tokio::time::{Instant, sleep, sleep_until};

use super::options::ListReading;
use super::server::Server;
use super::shared::Shared;
use super::state::{Cause, Trouble};
use crate::clock::later;
use crate::error::{RequestError, Retry};
use crate::list_cache::{ListKind, Remembered};
use crate::session::Session;

/// The lists besides the tools, which a server does not have to give before it can be used.
const LATER: [ListKind; 3] = [
    ListKind::Resources,
    ListKind::ResourceTemplates,
    ListKind::Prompts,
];

/// The longest wait before a list is read again that could not be, or that did not change though
/// it was said to.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Reads the remaining lists, then whatever is said to have changed, or could not be read before.
/// Ends with the session, or at once where lists are read on demand.
pub(crate) async fn keep(shared: Arc<Shared>, server: Arc<Server>, session: Session) {
    if shared.options.lists == ListReading::OnDemand {
        return;
    }
    let health = shared.options.health;
    let mut failed = read(&shared, &server, &session, &LATER.into()).await;
    remember(&shared, &server, &session).await;
    let mut retry_after = health.relist_within;
    // A server that says something has changed whenever it is asked must not be asked all the time.
    let (mut calm, mut last_read) = (Duration::ZERO, Instant::now());
    loop {
        let gathered = async {
            sleep_until(later(last_read, calm)).await;
            let quiet = health.relist_after;
            server.changes.gathered(quiet, health.relist_within).await
        };
        let (kinds, is_retry) = tokio::select! {
            changed = gathered => (changed, false),
            () = sleep(retry_after), if !failed.is_empty() => (std::mem::take(&mut failed), true),
        };
        server.trace(|trace| {
            for kind in &kinds {
                trace.relisted(kind.method());
            }
        });
        let before = server.lists(|lists| lists.pages_of(&kinds));
        failed.extend(read(&shared, &server, &session, &kinds).await);
        remember(&shared, &server, &session).await;
        last_read = Instant::now();
        let has_changed = before != server.lists(|lists| lists.pages_of(&kinds));
        calm = if has_changed {
            health.relist_within / 2
        } else {
            calm.saturating_mul(2)
                .max(health.relist_within)
                .min(LONGEST_PAUSE)
        };
        retry_after = if is_retry && !failed.is_empty() {
            retry_after.saturating_mul(2).min(LONGEST_PAUSE)
        } else {
            health.relist_within
        };
    }
}

/// Reads these lists side by side, and publishes the catalog as each of them comes. Gives those
/// that could not be read, and may be at another time.
pub(crate) async fn read(
    shared: &Shared,
    server: &Server,
    session: &Session,
    kinds: &BTreeSet<ListKind>,
) -> BTreeSet<ListKind> {
    let each = kinds.iter().map(|kind| async move {
        let outcome = read_one(shared, server, session, *kind).await;
        let is_worth_another = match &outcome {
            Ok(()) => false,
            Err(error) => {
                server.suspect(error);
                error.retry() != Retry::Pointless
            }
        };
        note(server, *kind, outcome.err());
        shared.publish();
        is_worth_another.then_some(*kind)
    });
    let outcomes = futures_util::future::join_all(each).await;
    outcomes.into_iter().flatten().collect()
}

/// Reads the tools of a session that was just made. A server that answers, and be it with an
/// error, can be used without tools; one that does not answer cannot be used.
pub(crate) async fn first_tools(
    shared: &Shared,
    server: &Server,
    session: &Session,
) -> Result<(), RequestError> {
    server.changes.forget(ListKind::Tools);
    let outcome = read_one(shared, server, session, ListKind::Tools).await;
    match outcome {
        Err(error) if !is_an_answer(&error) => Err(error),
        outcome => {
            note(server, ListKind::Tools, outcome.err());
            Ok(())
        }
    }
}

fn is_an_answer(error: &RequestError) -> bool {
    match error {
        RequestError::Link {
            error: LinkError::AuthRequired(_) | LinkError::Credentials(_),
            ..
        } => false,
        RequestError::Malformed { .. } => true,
        other => other.retry() == Retry::Pointless,
    }
}

async fn read_one(
    shared: &Shared,
    server: &Server,
    session: &Session,
    kind: ListKind,
) -> Result<(), RequestError> {
    let capabilities = &session.server().capabilities;
    let asked = server.asks((shared.options.time_of_day)());
    let has = match kind {
        ListKind::Tools => capabilities.tools,
        ListKind::Resources | ListKind::ResourceTemplates => capabilities.resources,
        ListKind::Prompts => capabilities.prompts,
    };
    if !has {
        server.change_lists(|lists| match kind {
            ListKind::Tools => lists.tools.clear(asked),
            ListKind::Resources => lists.resources.clear(asked),
            ListKind::ResourceTemplates => lists.templates.clear(asked),
            ListKind::Prompts => lists.prompts.clear(asked),
        });
        return Ok(());
    }
    match kind {
        ListKind::Tools => {
            let listing = session.tools().await?;
            server.change_lists(|lists| {
                lists.take_over((&server.name, kind), listing, asked, |own| &mut own.tools)
            })
        }
        ListKind::Resources => {
            let listing = session.resources().await?;
            server.change_lists(|lists| {
                lists.take_over((&server.name, kind), listing, asked, |own| {
                    &mut own.resources
                })
            })
        }
        ListKind::ResourceTemplates => {
            match session.resource_templates().await {
                // Many servers have resources without knowing what templates are.
                Err(RequestError::Rpc { error, .. }) if error.code == code::METHOD_NOT_FOUND => {
                    server.change_lists(|lists| lists.templates.clear(asked));
                    Ok(())
                }
                listing => {
                    let listing = listing?;
                    server.change_lists(|lists| {
                        lists.take_over((&server.name, kind), listing, asked, |own| {
                            &mut own.templates
                        })
                    })
                }
            }
        }
        ListKind::Prompts => {
            let listing = session.prompts().await?;
            server.change_lists(|lists| {
                lists.take_over((&server.name, kind), listing, asked, |own| &mut own.prompts)
            })
        }
    }
}

/// Notes that a list could not be read, or could be again. The older list stays.
pub(super) fn note(server: &Server, kind: ListKind, error: Option<RequestError>) {
    let text = error.map(|error| {
        tracing::warn!(server = %server.name, list = kind.method(), %error, "a list could not be read");
        Trouble::from(Cause::Request(Arc::new(error))).to_string()
    });
    let connection = server.connection();
    server.change_lists(|lists| {
        lists.tried.insert(kind, connection);
        match text {
            Some(text) => lists.unlisted.insert(kind, text),
            None => lists.unlisted.remove(&kind),
        }
    });
}

/// Writes down what the server listed. A disk that does not take it costs only the memory.
pub(super) async fn remember(shared: &Shared, server: &Server, session: &Session) {
    let cache = shared.options.cache.clone();
    if cache.is_off() {
        return;
    }
    let spec = server.spec();
    let key = shared.cache_key(&spec);
    let is_known = shared.options.connector.identity(&spec).is_some();
    let mut remembered = Remembered::of(session.server());
    remembered.lists = server.lists(super::lists::Lists::to_remember);
    remembered.lists.retain(|_, list| {
        // What is for one account only is remembered only where accounts can be told apart.
        is_known || list.cache_scope.as_deref() != Some("private")
    });
    let name = server.name.clone();
    let written = tokio::task::spawn_blocking(move || cache.store(&key, &remembered)).await;
    match written {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(server = %name, %error, "the lists are not remembered"),
        Err(error) => tracing::warn!(server = %name, %error, "the lists are not remembered"),
    }
}
