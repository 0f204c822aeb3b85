//! The servers of a workspace that run in the shared daemon: they are shown as they are there, and
//! no second ones are started.

use std::time::Duration;

use cocode_admin::model::{Instance, SharedServers};
use cocode_client::StateKind;
use cocode_core::ServerSpec;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api_client::ApiEvents;
use crate::daemon::{Asking, Place, ask};
use crate::error::{CliError, Code};
use crate::manage::sharing::terms;
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
    servers: Vec<Instance>,
}

/// Those who use a server of the daemon.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SharedBy {
    sharing: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing_reason: Option<String>,
    fronts: Vec<u32>,
    seconds: u64,
    /// How it is shared and why, unless it simply is.
    #[serde(skip)]
    pub(super) terms: Option<String>,
}

impl SharedBy {
    pub(super) fn of(server: &Instance) -> Self {
        Self {
            sharing: server.sharing.clone(),
            sharing_reason: server.sharing_reason.clone(),
            fronts: server.fronts.clone(),
            seconds: server.seconds,
            terms: terms(server),
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
        let watching = match Watching::begin(place.as_ref()).await {
            Ok(watching) => watching,
            Err(error) => {
                workspace.printer.warn(&unasked(&error));
                None
            }
        };
        let (now, watching) = watching.unzip();
        let now = now.map(|report| Shared::of(report, directory.as_ref()));
        let (tell, told) = mpsc::channel(1);
        let mut listening = JoinSet::new();
        listening.spawn(follow(place, directory, watching, tell));
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

/// Hears when one daemon has something else to tell.
#[derive(Debug)]
struct Watching {
    asking: Asking,
    events: ApiEvents,
}

impl Watching {
    /// Begins with what it keeps now. Nothing if there is no daemon.
    async fn begin(place: Option<&Place>) -> Result<Option<(SharedServers, Self)>, CliError> {
        let Some(asking) = ask(place).await? else {
            return Ok(None);
        };
        // What changes after this is told.
        let events = asking.events().await?;
        let report = asking.shared().await?;
        Ok(Some((report, Self { asking, events })))
    }

    /// What it keeps, when that is other than before. Nothing if it has ended the stream in order, which
    /// it does from time to time.
    async fn next(&mut self) -> Result<Option<SharedServers>, CliError> {
        loop {
            let event = self.events.next().await.map_err(|error| {
                CliError::new(Code::DaemonUnavailable, "the daemon is gone").because(&error)
            })?;
            match event.as_ref().map(|event| event.name.as_str()) {
                Some("shared" | "missed") => return self.asking.shared().await.map(Some),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }
}

async fn follow(
    place: Option<Place>,
    directory: Option<String>,
    mut watching: Option<Watching>,
    tell: mpsc::Sender<Shared>,
) {
    let here = directory.as_ref();
    let mut is_told = watching.is_some();
    loop {
        if let Some(mut watched) = watching.take() {
            let is_over = loop {
                match watched.next().await {
                    Ok(Some(report)) => {
                        if tell.send(Shared::of(report, here)).await.is_err() {
                            return;
                        }
                    }
                    Ok(None) => break false,
                    Err(error) => {
                        tracing::debug!(?error, "the daemon is not heard any more");
                        break true;
                    }
                }
            };
            // A daemon that has ended keeps nothing.
            if is_over && tell.send(Shared::default()).await.is_err() {
                return;
            }
            is_told = !is_over;
        } else {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let shared = match Watching::begin(place.as_ref()).await {
            Ok(Some((report, next))) => {
                watching = Some(next);
                Some(Shared::of(report, here))
            }
            Ok(None) => is_told.then(Shared::default),
            Err(error) => {
                tracing::debug!(?error, "the daemon cannot be asked");
                is_told.then(Shared::default)
            }
        };
        is_told = watching.is_some();
        if let Some(shared) = shared
            && tell.send(shared).await.is_err()
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

    fn of(report: SharedServers, directory: Option<&String>) -> Self {
        Self {
            is_there: true,
            directory: directory.cloned(),
            servers: report.servers,
        }
    }

    /// Those that are this server, as it is used here.
    pub(super) fn known<'a>(&'a self, spec: &'a ServerSpec) -> impl Iterator<Item = &'a Instance> {
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
    pub(super) fn kept<'a>(&'a self, spec: &'a ServerSpec) -> impl Iterator<Item = &'a Instance> {
        let runs = |server: &&Instance| RUNNING.iter().any(|one| one.as_str() == server.state);
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
