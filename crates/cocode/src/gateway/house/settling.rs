//! Changes of the files: made where blocking does no harm, and waited for until they are in use.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cocode_admin::{Refusal, RefusalStatus};
use cocode_config::{Config, Entry};

use super::interior::Interior;
use super::refusing::refusal;
use crate::error::CliError;
use crate::gateway::servers::Present;
use crate::workspace::Workspace;

/// How long a change of the files may take to be in use.
const APPLIED_WITHIN: Duration = Duration::from_secs(5);

/// What the files say of a server, and of settings that wait for approval.
#[derive(Debug, PartialEq)]
struct Standing {
    server: Option<OfServer>,
    settings: Vec<(PathBuf, &'static str)>,
}

#[derive(Debug, PartialEq)]
struct OfServer {
    state: &'static str,
    trust: &'static str,
    file: Arc<Path>,
    entry: Entry,
}

impl Standing {
    fn of(config: &Config, name: &str) -> Self {
        let server = config.servers.get(name).map(|server| OfServer {
            state: server.state.as_str(),
            trust: server.winner.trust.as_str(),
            file: Arc::clone(&server.winner.found.origin.file),
            entry: server.winner.found.entry.clone(),
        });
        let settings = config.pending_settings.iter();
        Self {
            server,
            settings: settings
                .map(|file| (file.path.clone(), file.trust.as_str()))
                .collect(),
        }
    }
}

impl Interior {
    /// Changes what the files say of a server, and waits until that is in use.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&Workspace) -> Result<T, CliError> + Send + 'static,
    ) -> Result<T, Refusal> {
        // The semaphore is never closed.
        let _one_at_a_time = self.editing.acquire().await.ok();
        let server = name.to_owned();
        let (outcome, standing) = self
            .blocking(move |workspace| {
                let outcome = work(workspace)?;
                Ok((outcome, Standing::of(&workspace.reloaded(), &server)))
            })
            .await?;
        self.until(name, |present| {
            Standing::of(&present.config, name) == standing
        })
        .await?;
        Ok(outcome)
    }

    /// Does something that may take its time with disks and locks, with the configuration as it is now.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Workspace) -> Result<T, CliError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let workspace = self.workspace.anew();
        let done = tokio::task::spawn_blocking(move || work(&workspace)).await;
        let done = done.map_err(|error| {
            tracing::error!(%error, "something that the management API asked for broke");
            let message = "this broke halfway; the log of the gateway says more";
            Refusal::new(RefusalStatus::Unavailable, "setup-failed", message)
        })?;
        done.map_err(refusal)
    }

    async fn until(&self, name: &str, is_so: impl FnMut(&Present) -> bool) -> Result<(), Refusal> {
        let mut is_so = is_so;
        let mut present = self.present.clone();
        let waiting = present.wait_for(|present| is_so(present));
        match tokio::time::timeout(APPLIED_WITHIN, waiting).await {
            Ok(Ok(_present)) => Ok(()),
            Ok(Err(_closed)) => Err(Refusal::new(
                RefusalStatus::Unavailable,
                "already-ending",
                "the change is written, and the gateway is ending",
            )),
            Err(_elapsed) => {
                let seconds = APPLIED_WITHIN.as_secs();
                let message = format!(
                    "the change of `{name}` is written, but was not in use within {seconds} s"
                );
                Err(
                    Refusal::new(RefusalStatus::Unavailable, "not-applied-yet", message)
                        .hint("GET /api/v1/servers shows when it is")
                        .hint("somebody else may have changed the files at the same time"),
                )
            }
        }
    }
}
