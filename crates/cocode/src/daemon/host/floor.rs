//! Who is served in this process, and by which servers: what is told of it, and told anew when it is
//! other than before.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_admin::model::{Front, Instance, Restarted, SharedNews, SharedServers};
use cocode_admin::{Bulletin, News};
use cocode_client::StateKind;
use cocode_gateway::{Running, View};
use tokio::time::Instant;

use super::fronts::{Fronts, Present};
use crate::fleet::short;
use crate::serving::{Serving, Supervision};
use crate::trouble::About;

/// How often it is looked whether something is other than before, while somebody listens.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A gateway that people have started, which serves fronts besides.
#[derive(Debug)]
pub(crate) struct Own {
    /// Where it listens.
    pub(crate) url: String,
    pub(crate) directory: Option<String>,
    pub(crate) view: View,
    /// Who watches over its clients, and over fronts as well.
    pub(crate) supervision: Supervision,
}

/// Who is served, and by which servers.
#[derive(Debug)]
pub(crate) struct Floor {
    begun: Instant,
    /// Where fronts find it.
    socket: Option<String>,
    /// None where another process serves them.
    fronts: Option<Arc<Fronts>>,
    /// What is served to others than fronts.
    own: Mutex<Option<Own>>,
}

impl Floor {
    pub(super) fn new(socket: &Path, fronts: Arc<Fronts>, own: Option<Own>) -> Self {
        Self {
            begun: Instant::now(),
            socket: Some(socket.display().to_string()),
            fronts: Some(fronts),
            own: Mutex::new(own),
        }
    }

    /// That of a gateway whose servers no front uses.
    pub(crate) fn of(own: Own) -> Self {
        Self {
            begun: Instant::now(),
            socket: None,
            fronts: None,
            own: Mutex::new(Some(own)),
        }
    }

    /// Gives the servers of the gateway itself back, which end when nobody has them.
    pub(super) fn release(&self) {
        drop(self.own().take());
    }

    fn own(&self) -> MutexGuard<'_, Option<Own>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn present(&self) -> Vec<Arc<Present>> {
        let fronts = self.fronts.as_ref();
        fronts.map(|fronts| fronts.all()).unwrap_or_default()
    }

    pub(crate) fn report(&self) -> SharedServers {
        let fronts = self.present();
        let fronts = fronts.iter().map(|front| Front {
            pid: number(front.pid),
            directory: front.directory.clone(),
            server: front.wanted.server.clone(),
            servers: Some(front.wanted.servers.clone()).filter(|names| !names.is_empty()),
            profile: front.wanted.profile.clone(),
            tool_search: front.wanted.search.tool_search.map(String::from),
            seconds: front.since.elapsed().as_secs(),
        });
        let mut servers: Vec<Instance> = self.used().into_values().map(told).collect();
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        SharedServers {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            socket: self.socket.clone(),
            url: self.own().as_ref().map(|own| own.url.clone()),
            seconds: self.begun.elapsed().as_secs(),
            fronts: fronts.collect(),
            servers,
        }
    }

    /// Connects anew to all servers of this name.
    pub(crate) async fn restart(&self, name: &str) -> Restarted {
        let used = self.used().into_values();
        let meant = used.filter(|used| used.running.status.name.as_str() == name);
        let (mut servers, mut stopped) = (0, 0);
        for used in meant {
            let was_stopped = used.running.status.state.kind() == StateKind::Stopped;
            match used.running.restart().await {
                Ok(()) => {
                    servers += 1;
                    stopped += u64::from(was_stopped);
                }
                Err(error) => tracing::warn!(server = name, %error, "not restarted"),
            }
        }
        Restarted { servers, stopped }
    }

    /// Forgets what lets fronts in at a server, which somebody has signed out of. Connections that were
    /// made with it begin anew.
    pub(crate) async fn forget(&self, name: &str) {
        let fronts = self.fronts.as_ref();
        if fronts.is_some_and(|fronts| fronts.forget(name)) {
            self.restart(name).await;
        }
    }

    /// Tells whoever listens when something is other than before. Does not end.
    pub(crate) async fn tell(&self, bulletin: &Bulletin) {
        let mut before = None;
        loop {
            bulletin.attended().await;
            let report = without_clocks(self.report());
            if before.as_ref() != Some(&report) {
                bulletin.publish(&News::Shared(SharedNews {
                    fronts: report.fronts.len() as u64,
                    servers: report.servers.len() as u64,
                }));
                before = Some(report);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// All servers, each with the fronts whose view has it, and those of the gateway itself.
    fn used(&self) -> BTreeMap<usize, Used> {
        let mut used: BTreeMap<usize, Used> = BTreeMap::new();
        if let Some(own) = &*self.own() {
            for running in own.view.running() {
                let entry = Used {
                    fronts: Vec::new(),
                    directories: own.directory.iter().cloned().collect(),
                    running,
                };
                used.insert(entry.running.number, entry);
            }
        }
        for front in self.present() {
            let Some(serving) = front.serving.upgrade() else {
                continue;
            };
            for running in seen(&serving, front.wanted.server.as_deref()) {
                let number = running.number;
                let entry = used.entry(number).or_insert_with(|| Used {
                    running,
                    fronts: Vec::new(),
                    directories: Vec::new(),
                });
                entry.fronts.extend(self::number(front.pid));
                entry.directories.extend(front.directory.clone());
            }
        }
        used
    }
}

/// The number of a process, where it is known.
fn number(pid: Option<i32>) -> Option<u32> {
    pid.and_then(|pid| pid.try_into().ok())
}

/// A server, and who uses it.
struct Used {
    running: Running,
    fronts: Vec<u32>,
    directories: Vec<String>,
}

/// The servers that a front sees.
fn seen(serving: &Arc<Serving>, only: Option<&str>) -> Vec<Running> {
    let mut all = serving.view().running();
    all.retain(|running| only.is_none_or(|only| running.status.name.as_str() == only));
    all
}

fn told(used: Used) -> Instance {
    let Used {
        running,
        mut fronts,
        mut directories,
    } = used;
    fronts.sort_unstable();
    directories.sort_unstable();
    directories.dedup();
    let status = &running.status;
    let is_ready = status.state.kind() == StateKind::Ready;
    let facts = status.connection.as_ref();
    let catalog = running.manager().catalog();
    let tools = catalog
        .server(&status.name)
        .map(|server| server.tools.len());
    let about = About::configured(&running.spec, "connect_timeout_sec");
    let trouble = status.last_trouble.as_ref().map(|trouble| {
        let text = short(&about.trouble(trouble).error);
        match status.state.trouble() {
            Some(_) => text,
            None => format!("({text})"),
        }
    });
    Instance {
        name: status.name.to_string(),
        fingerprint: running.spec.fingerprint(),
        state: status.state.kind().as_str().to_owned(),
        sharing: running.terms.sharing.as_str().to_owned(),
        sharing_reason: running.terms.reason.clone(),
        fronts,
        directories,
        seconds: running.age.as_secs(),
        in_flight: status.in_flight as u64,
        reconnects: status.reconnects,
        pid: facts.and_then(|facts| facts.pid).filter(|_| is_ready),
        revision: facts.map(|facts| facts.revision.as_str().to_owned()),
        transport: facts.map(|facts| facts.transport.to_owned()),
        tools: facts.and(tools).map(|tools| tools as u64),
        ready_milliseconds: facts
            .and_then(|facts| u64::try_from(facts.time_to_ready.as_millis()).ok()),
        trouble,
    }
}

/// What has to change for the whole to be another: time passes anyway.
fn without_clocks(mut report: SharedServers) -> SharedServers {
    report.seconds = 0;
    report.fronts.iter_mut().for_each(|front| front.seconds = 0);
    report
        .servers
        .iter_mut()
        .for_each(|server| server.seconds = 0);
    report
}
