//! The servers of a workspace that run in the shared daemon: they are shown as they are there, and
//! no second ones are started.

use cocode_core::ServerSpec;

use crate::daemon::{Ask, Asking, InstanceReport, Report, ask};
use crate::workspace::Workspace;

/// What the daemon keeps.
#[derive(Debug, Default)]
pub(super) struct Shared {
    servers: Vec<InstanceReport>,
}

impl Shared {
    /// What the daemon keeps now; nothing, if there is none that can be asked.
    pub(super) async fn ask(workspace: &Workspace) -> Self {
        let Some(asking) = begin(Ask::Status, workspace).await else {
            return Self::default();
        };
        Self::of(asking.answer())
    }

    /// The same, and whoever tells of changes.
    pub(super) async fn follow(workspace: &Workspace) -> (Self, Option<Asking>) {
        let Some(asking) = begin(Ask::Watch, workspace).await else {
            return (Self::default(), None);
        };
        (Self::of(asking.answer()), Some(asking))
    }

    pub(super) fn of<E: std::fmt::Debug>(report: Result<Report, E>) -> Self {
        match report {
            Ok(report) => Self {
                servers: report.servers,
            },
            Err(error) => {
                tracing::debug!(?error, "the daemon is not understood");
                Self::default()
            }
        }
    }

    /// Those that are this server, and can be used.
    pub(super) fn ready<'a>(
        &'a self,
        spec: &'a ServerSpec,
    ) -> impl Iterator<Item = &'a InstanceReport> {
        let fingerprint = spec.fingerprint();
        self.servers.iter().filter(move |server| {
            server.name == spec.name.as_str()
                && server.fingerprint == fingerprint
                && server.state == "ready"
        })
    }

    /// Whether the daemon has this server.
    pub(super) fn has(&self, spec: &ServerSpec) -> bool {
        self.ready(spec).next().is_some()
    }
}

/// A daemon that cannot be asked is as good as none: servers are then looked at by themselves.
async fn begin(what: Ask, workspace: &Workspace) -> Option<Asking> {
    match ask(what, workspace).await {
        Ok(asking) => asking,
        Err(error) => {
            tracing::debug!(?error, "the daemon cannot be asked");
            None
        }
    }
}
