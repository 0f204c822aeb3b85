//! Lists as they were read before: nothing is started and nobody is contacted. Says how old they are.

use std::time::{Duration, SystemTime};

use cocode_client::{
    Connector as _, Freshness, ListCache, ListKind, Listing, RawJson, RememberedList,
};
use cocode_core::ServerSpec;

use super::{Plan, prompts, resources, tools};
use crate::error::{CliError, Code};
use crate::gate::Gate;
use crate::hints::{Doing, request_error};
use crate::managing::list_cache;
use crate::reach::Configured;
use crate::session::on_runtime;
use crate::text::age;
use crate::trouble::About;
use crate::workspace::Workspace;

/// A list that is remembered.
pub(super) struct Remembered {
    pub(super) pages: Vec<RawJson>,
    /// In words, and in seconds.
    pub(super) age: String,
    pub(super) seconds: u64,
    pub(super) is_fresh: bool,
}

/// Prints what is remembered.
pub(crate) fn run(plan: &Plan, spec: &ServerSpec, workspace: &Workspace) -> Result<(), CliError> {
    let memory = Memory::of(std::slice::from_ref(spec), workspace)?;
    let printer = &workspace.printer;
    let load = |kind| {
        let remembered = memory.load(kind, spec)?;
        let Remembered {
            pages,
            age,
            seconds,
            is_fresh,
        } = remembered;
        if printer.json() {
            printer.cached(spec.name.as_str(), seconds, is_fresh);
        } else {
            let stale = if is_fresh { "" } else { ", out of date" };
            printer.note(&format!("as it was listed {age} ago{stale}"));
        }
        Ok(pages)
    };
    let broken = |error| request_error(&error, Doing::Other);
    match plan {
        Plan::Tools { name, dialect } => {
            let listing = Listing::<cocode_client::Tool>::from_pages(load(ListKind::Tools)?);
            let gate = Gate::new(Some(spec), workspace)?;
            let about = About::configured(spec, "--timeout");
            let wanted = tools::Wanted {
                name: name.as_deref(),
                dialect: *dialect,
                about: &about,
            };
            tools::print(listing.map_err(broken)?, wanted, &gate, printer)
        }
        Plan::Resources { templates: false } => {
            let pages = load(ListKind::Resources)?;
            let listing = Listing::<cocode_client::Resource>::from_pages(pages);
            resources::print(&listing.map_err(broken)?, printer)
        }
        Plan::Resources { templates: true } => {
            let pages = load(ListKind::ResourceTemplates)?;
            let listing = Listing::<cocode_client::ResourceTemplate>::from_pages(pages);
            resources::print_templates(&listing.map_err(broken)?, printer)
        }
        Plan::Prompts { name } => {
            let listing = Listing::<cocode_client::Prompt>::from_pages(load(ListKind::Prompts)?);
            prompts::print(&listing.map_err(broken)?, name.as_deref(), printer)
        }
        // The command line has the option for lists alone.
        _ => Err(CliError::new(
            Code::InvalidUsage,
            "`--cached` is for lists alone",
        )),
    }
}

/// What is remembered of servers, as those who reach them know them.
pub(crate) struct Memory {
    cache: ListCache,
    connector: Configured,
    list_ttl: Duration,
}

impl Memory {
    /// What accounts were shown is found only by who has the account.
    pub(crate) fn of(specs: &[ServerSpec], workspace: &Workspace) -> Result<Self, CliError> {
        let connector = Configured::new(workspace)?;
        on_runtime(workspace, async {
            connector.recall(specs).await;
            Ok(())
        })?;
        Ok(Self {
            cache: list_cache(workspace),
            connector,
            list_ttl: workspace.config()?.settings.health.list_cache_ttl.value,
        })
    }

    /// Everything that is remembered of a server.
    pub(crate) fn recall(&self, spec: &ServerSpec) -> Option<cocode_client::Remembered> {
        let identity = self.connector.identity(spec).unwrap_or_default();
        let identity: Vec<&str> = identity.iter().map(String::as_str).collect();
        let key = ListCache::key_for(&spec.fingerprint(), &identity);
        self.cache.load(&key)
    }

    /// What is remembered of one list.
    pub(super) fn load(&self, kind: ListKind, spec: &ServerSpec) -> Result<Remembered, CliError> {
        let remembered = self.recall(spec);
        let list = remembered.and_then(|mut remembered| remembered.lists.remove(&kind));
        let Some(list) = list else {
            let what = match kind {
                ListKind::Tools => "tools",
                ListKind::Resources => "resources",
                ListKind::ResourceTemplates => "resource templates",
                ListKind::Prompts => "prompts",
            };
            let message = format!("nothing is remembered of the {what} of `{}`", spec.name);
            return Err(CliError::new(Code::NotCached, message)
                .hint("ask the server once, by the same command without `--cached`"));
        };
        let now = SystemTime::now();
        let is_fresh = list.freshness_by(self.list_ttl, now) == Freshness::Fresh;
        let RememberedList {
            pages, fetched_at, ..
        } = list;
        let old = now.duration_since(fetched_at).unwrap_or_default();
        Ok(Remembered {
            pages,
            age: age(old),
            seconds: old.as_secs(),
            is_fresh,
        })
    }
}
