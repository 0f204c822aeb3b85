//! The servers of a workspace that run in the shared daemon: they are shown as they are there, and
//! no second ones are started.

use std::time::Duration;

use cocode_client::StateKind;
use cocode_core::ServerSpec;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::daemon::{Ask, Asking, InstanceReport, Place, Report, ask};
use crate::error::CliError;
use crate::sharing;
use crate::workspace::Workspace;

/// How often it is looked whether a daemon has been started.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The states of servers that have a process, or whatever else they need. The others are looked at
/// by whoever wants to know.
const RUNNING: [StateKind; 3] = [
    StateKind::Starting,
    StateKind::Ready,
    StateKind::Reconnecting,
];

/// What the daemon keeps.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Shared {
    /// There is a daemon.
    pub(super) is_there: bool,
    /// Where we are.
    directory: Option<String>,
    servers: Vec<InstanceReport>,
}

/// Those who use a server of the daemon.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SharedBy {
    sharing: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing_reason: Option<String>,
    fronts: Vec<i32>,
    seconds: u64,
    /// How it is shared and why, unless it simply is.
    #[serde(skip)]
    pub(super) terms: Option<String>,
}

impl SharedBy {
    pub(super) fn of(server: &InstanceReport) -> Self {
        Self {
            sharing: server.sharing.clone(),
            sharing_reason: server.sharing_reason.clone(),
            fronts: server.fronts.clone(),
            seconds: server.seconds,
            terms: server.terms(),
        }
    }

    pub(super) fn told(&self) -> String {
        match self.fronts.len() {
            1 => format!("{} in the daemon, 1 front", self.sharing),
            fronts => format!("{} in the daemon, {fronts} fronts", self.sharing),
        }
    }
}

/// Hears of what the daemon keeps, and of the next daemon when one has ended.
#[derive(Debug)]
pub(super) struct Following {
    told: mpsc::Receiver<Shared>,
    _listening: JoinSet<()>,
}

impl Following {
    /// Begins with what the daemon keeps now.
    pub(super) async fn begin(workspace: &Workspace) -> (Shared, Self) {
        let place = Place::of(workspace);
        let directory = directory(workspace);
        let first = match ask(Ask::Watch, place.as_ref()).await {
            Ok(asking) => asking,
            Err(error) => {
                workspace.printer.warn(&unasked(&error));
                None
            }
        };
        let now = first
            .as_ref()
            .map(|asking| Shared::of(asking.answer(), directory.as_ref()));
        let (tell, told) = mpsc::channel(1);
        let mut listening = JoinSet::new();
        listening.spawn(follow(place, directory, first, tell));
        let following = Self {
            told,
            _listening: listening,
        };
        (now.unwrap_or_default(), following)
    }

    /// What the daemon keeps, when that has changed. Cancel safe.
    pub(super) async fn changed(&mut self) -> Shared {
        match self.told.recv().await {
            Some(shared) => shared,
            None => std::future::pending().await,
        }
    }
}

async fn follow(
    place: Option<Place>,
    directory: Option<String>,
    mut asking: Option<Asking>,
    tell: mpsc::Sender<Shared>,
) {
    let here = directory.as_ref();
    loop {
        if let Some(asking) = &mut asking {
            while let Ok(Some(report)) = asking.next().await {
                if tell.send(Shared::of(Ok(report), here)).await.is_err() {
                    return;
                }
            }
            // A daemon that has ended keeps nothing.
            if tell.send(Shared::default()).await.is_err() {
                return;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
        asking = begin(Ask::Watch, place.as_ref()).await;
        if let Some(asking) = &asking
            && tell.send(Shared::of(asking.answer(), here)).await.is_err()
        {
            return;
        }
    }
}

impl Shared {
    /// What the daemon keeps of these, once it is known how they are, or after this time; nothing, if
    /// there is none that can be asked.
    pub(super) async fn settled(
        workspace: &Workspace,
        specs: &[&ServerSpec],
        within: Duration,
    ) -> Self {
        let (mut now, mut following) = Following::begin(workspace).await;
        let settled = async {
            let is_coming = |now: &Self| {
                let mut kept = specs.iter().flat_map(|spec| now.kept(spec));
                kept.any(|server| server.state != StateKind::Ready.as_str())
            };
            while is_coming(&now) {
                now = following.changed().await;
            }
        };
        if tokio::time::timeout(within, settled).await.is_err() {
            tracing::debug!("servers in the daemon take long to start");
        }
        now
    }

    fn of(report: Result<Report, CliError>, directory: Option<&String>) -> Self {
        match report {
            Ok(report) => Self {
                is_there: true,
                directory: directory.cloned(),
                servers: report.servers,
            },
            Err(error) => {
                tracing::debug!(?error, "the daemon is not understood");
                Self::default()
            }
        }
    }

    /// Those that are this server, as it is used here.
    pub(super) fn known<'a>(
        &'a self,
        spec: &'a ServerSpec,
    ) -> impl Iterator<Item = &'a InstanceReport> {
        let fingerprint = spec.fingerprint();
        let is_of_directory = sharing::is_of_directory(spec);
        self.servers.iter().filter(move |server| {
            let here = self.directory.as_ref();
            let is_here = here.is_some_and(|here| server.directories.contains(here));
            server.name == spec.name.as_str()
                && server.fingerprint == fingerprint
                && (is_here || !is_of_directory)
        })
    }

    /// Those of them that can be used, or soon can.
    pub(super) fn kept<'a>(
        &'a self,
        spec: &'a ServerSpec,
    ) -> impl Iterator<Item = &'a InstanceReport> {
        let runs =
            |server: &&InstanceReport| RUNNING.iter().any(|one| one.as_str() == server.state);
        self.known(spec).filter(runs)
    }

    /// Whether the daemon has this server.
    pub(super) fn has(&self, spec: &ServerSpec) -> bool {
        self.kept(spec).next().is_some()
    }
}

/// Where we are, as the daemon has it of its fronts.
fn directory(workspace: &Workspace) -> Option<String> {
    let directory = workspace.places.directory.as_ref();
    directory.map(|directory| directory.display().to_string())
}

/// What to know of a daemon that cannot be asked.
fn unasked(error: &CliError) -> String {
    let CliError {
        message,
        causes,
        hints,
        ..
    } = error;
    let what = std::iter::once(message).chain(causes);
    let what: Vec<&str> = what.map(String::as_str).collect();
    let what = what.join(": ");
    let hints = hints.join("; ");
    format!("{what}; servers are looked at here, and those of agents may be others ({hints})")
}

/// A daemon that cannot be asked is as good as none.
async fn begin(what: Ask, place: Option<&Place>) -> Option<Asking> {
    match ask(what, place).await {
        Ok(asking) => asking,
        Err(error) => {
            tracing::debug!(?error, "the daemon cannot be asked");
            None
        }
    }
}
