//! What the daemon tells of itself: fronts, servers, and who uses which.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::StateKind;
use cocode_gateway::Running;
use cocode_wire::serve::UnixClient;
use tokio::sync::watch;

use super::{Host, Order};
use crate::daemon::control::{FrontStatus, InstanceReport, Report, Restarted};
use crate::fleet::short;
use crate::serving::Serving;
use crate::trouble::About;

/// How often it is looked whether something is other than before, while somebody watches.
const LOOK_EVERY: Duration = Duration::from_millis(250);

impl Host {
    pub(super) fn report(&self) -> Report {
        let fronts = self.fronts.all();
        let fronts = fronts.iter().map(|front| FrontStatus {
            pid: front.pid,
            directory: front.directory.clone(),
            server: front.wanted.server.clone(),
            servers: front.wanted.servers.clone(),
            profile: front.wanted.profile.clone(),
            tool_search: front.wanted.search.tool_search.map(String::from),
            seconds: front.since.elapsed().as_secs(),
        });
        let mut servers: Vec<InstanceReport> = self.used().into_values().map(told).collect();
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        Report {
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
    pub(super) async fn restart(&self, name: &str) -> Restarted {
        let used = self.used().into_values();
        let meant = used.filter(|used| used.running.status.name.as_str() == name);
        let (mut servers, mut stopped) = (0, 0);
        for used in meant {
            let was_stopped = used.running.status.state.kind() == StateKind::Stopped;
            match used.running.restart().await {
                Ok(()) => {
                    servers += 1;
                    stopped += usize::from(was_stopped);
                }
                Err(error) => tracing::warn!(server = name, %error, "not restarted"),
            }
        }
        Restarted { servers, stopped }
    }

    /// Tells how everything is, again and again.
    pub(super) async fn watch(&self, mut client: UnixClient, mut orders: watch::Receiver<Order>) {
        let mut before = None;
        loop {
            let report = self.report();
            let seen = without_clocks(&report);
            if before.as_ref() != Some(&seen) {
                if !self.answer(&mut client, &report).await {
                    return;
                }
                before = Some(seen);
            }
            tokio::select! {
                _left = client.stream().readable() => return,
                _order = orders.wait_for(|order| *order >= Order::Leave) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
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
        for front in self.fronts.all() {
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
                entry.fronts.extend(front.pid);
                entry.directories.extend(front.directory.clone());
            }
        }
        used
    }
}

/// A server, and who uses it.
struct Used {
    running: Running,
    fronts: Vec<i32>,
    directories: Vec<String>,
}

/// The servers that a front sees.
fn seen(serving: &Arc<Serving>, only: Option<&str>) -> Vec<Running> {
    let mut all = serving.view().running();
    all.retain(|running| only.is_none_or(|only| running.status.name.as_str() == only));
    all
}

fn told(used: Used) -> InstanceReport {
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
    InstanceReport {
        name: status.name.to_string(),
        fingerprint: running.spec.fingerprint(),
        state: status.state.kind().as_str().to_owned(),
        sharing: running.terms.sharing.as_str().to_owned(),
        sharing_reason: running.terms.reason.clone(),
        fronts,
        directories,
        seconds: running.age.as_secs(),
        in_flight: status.in_flight,
        reconnects: status.reconnects,
        pid: facts.and_then(|facts| facts.pid).filter(|_| is_ready),
        revision: facts.map(|facts| facts.revision.as_str().to_owned()),
        transport: facts.map(|facts| facts.transport.to_owned()),
        tools: facts.and(tools),
        ready_milliseconds: facts
            .and_then(|facts| u64::try_from(facts.time_to_ready.as_millis()).ok()),
        trouble,
    }
}

/// What has to change for the whole to be another: time passes anyway.
fn without_clocks(report: &Report) -> Report {
    let mut seen = report.clone();
    seen.seconds = 0;
    seen.fronts.iter_mut().for_each(|front| front.seconds = 0);
    seen.servers
        .iter_mut()
        .for_each(|server| server.seconds = 0);
    seen
}
