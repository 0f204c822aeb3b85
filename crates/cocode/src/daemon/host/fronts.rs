//! Who is served, and what of: fronts that ask for the same in the same place share it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cocode_gateway::Gateway;
use cocode_wire::serve::Endpoint;
use futures_util::future::join_all;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::admission::Admissions;
use crate::args::govern::CredentialStoreArg;
use crate::args::serve::WantedArgs;
use crate::args::{ConfigArgs, OutputArgs};
use crate::configured;
use crate::daemon::hello::{Front, Text};
use crate::environment::{Environment, Variables};
use crate::error::{CliError, Code};
use crate::managing::{Purpose, SetupForOthers};
use crate::printer::Printer;
use crate::serve::{endpoint, shape};
use crate::serving::{Serving, Supervision};
use crate::workspace::Workspace;

/// All fronts.
#[derive(Debug)]
pub(super) struct Fronts {
    setup: SetupForOthers,
    /// Those of this process.
    variables: Variables,
    /// Who watches over what they have servers do.
    supervision: Supervision,
    next: AtomicU64,
    here: watch::Sender<HashMap<u64, Arc<Present>>>,
    /// How many are about to be let in.
    entering: AtomicUsize,
    /// What is served, by what was asked for.
    served: Mutex<HashMap<Front, Arc<Slot>>>,
    /// All that let servers in. Those of a front may be needed after it has left: whoever shares a
    /// server shares how it is reached.
    admissions: Mutex<Vec<Weak<Admissions>>>,
}

/// Something that is served, or about to be.
#[derive(Debug)]
struct Slot {
    /// Lets one begin to serve, while the others wait for it.
    beginning: Semaphore,
    serving: Mutex<Weak<Serving>>,
}

/// A front that is there.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) pid: Option<i32>,
    pub(super) directory: Option<String>,
    pub(super) wanted: WantedArgs,
    pub(super) since: Instant,
    pub(super) serving: Weak<Serving>,
}

/// A front that was let in.
pub(super) struct Guest<'a> {
    pub(super) endpoint: Arc<dyn Endpoint>,
    pub(super) warnings: Vec<String>,
    pub(super) serving: Arc<Serving>,
    pub(super) presence: Presence<'a>,
}

/// Counts among those who are there until it is dropped.
pub(super) struct Presence<'a> {
    fronts: &'a Fronts,
    number: u64,
}

impl Fronts {
    pub(super) fn new(
        setup: SetupForOthers,
        variables: Variables,
        supervision: Supervision,
    ) -> Self {
        Self {
            setup,
            variables,
            supervision,
            next: AtomicU64::new(1),
            here: watch::Sender::default(),
            entering: AtomicUsize::new(0),
            admissions: Mutex::default(),
            served: Mutex::default(),
        }
    }

    /// Whether nobody is there, nor about to be.
    pub(super) fn is_empty(&self) -> bool {
        self.here.borrow().is_empty() && self.entering.load(Ordering::Acquire) == 0
    }

    /// Waits until what was renewed is stored, for whomever it was.
    pub(super) async fn settle(&self) {
        let all: Vec<_> = {
            let mut admissions = lock(&self.admissions);
            admissions.retain(|one| one.strong_count() > 0);
            admissions.iter().filter_map(Weak::upgrade).collect()
        };
        join_all(all.iter().map(|one| one.settle())).await;
    }

    /// Forgets what is known of a server besides what is stored. Whether anything was known.
    pub(super) fn forget(&self, server: &str) -> bool {
        let admissions = lock(&self.admissions);
        let all: Vec<_> = admissions.iter().filter_map(Weak::upgrade).collect();
        drop(admissions);
        let forgotten = all.iter().filter(|one| one.forget(server));
        forgotten.count() > 0
    }

    /// Those who are there, in the order in which they came.
    pub(super) fn all(&self) -> Vec<Arc<Present>> {
        let here = self.here.borrow();
        let mut all: Vec<_> = here.iter().collect();
        all.sort_by_key(|(number, _)| **number);
        all.into_iter()
            .map(|(_, present)| Arc::clone(present))
            .collect()
    }

    /// Ends when nobody is there.
    pub(super) async fn none(&self) {
        // The sender is held by us.
        drop(self.here.subscribe().wait_for(HashMap::is_empty).await);
    }

    /// Ends when nobody has been there for this long.
    pub(super) async fn unneeded(&self, idle: Duration) {
        let mut here = self.here.subscribe();
        loop {
            // The sender is held by us.
            drop(here.wait_for(HashMap::is_empty).await);
            let somebody = here.wait_for(|here| !here.is_empty());
            if tokio::time::timeout(idle, somebody).await.is_err() {
                return;
            }
        }
    }

    /// Whether a front sees other values of these variables than this process does.
    pub(super) fn differs_in(&self, front: &Front, names: &[&str]) -> bool {
        names.iter().any(|name| {
            let of_front = front.environment.iter();
            let mut of_front = of_front.filter(|(Text(known), _)| known == OsStr::new(name));
            let value = of_front.next().map(|(_, Text(value))| value.clone());
            value != self.variables.get(name.as_ref())
        })
    }

    /// Lets a front in.
    pub(super) async fn enter(
        &self,
        gateway: &Gateway,
        front: Front,
        pid: Option<i32>,
    ) -> Result<Guest<'_>, CliError> {
        let _entering = Entering::new(&self.entering);
        let slot = self.slot(&front);
        let serving = {
            // The semaphore is never closed.
            let _one_at_a_time = slot.beginning.acquire().await.ok();
            let known = lock(&slot.serving).upgrade();
            if let Some(known) = known {
                known
            } else {
                let workspace = workspace(&front).await?;
                let serving = Arc::new(self.begin(&workspace, gateway, &front).await?);
                *lock(&slot.serving) = Arc::downgrade(&serving);
                serving
            }
        };
        let only = front.wanted.server.as_deref();
        let endpoint = endpoint(serving.view(), only);
        let Some(endpoint) = endpoint else {
            let name = only.unwrap_or_default();
            let workspace = workspace(&front).await?;
            return Err(configured::unusable(name, workspace.config()?));
        };
        let directory = front.directory.map(|Text(path)| path.display().to_string());
        let present = Present {
            pid,
            directory,
            wanted: front.wanted,
            since: Instant::now(),
            serving: Arc::downgrade(&serving),
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.here.send_modify(|here| {
            here.insert(number, Arc::new(present));
        });
        Ok(Guest {
            endpoint,
            warnings: serving.warnings(),
            serving,
            presence: Presence {
                fronts: self,
                number,
            },
        })
    }

    fn slot(&self, front: &Front) -> Arc<Slot> {
        let mut served = lock(&self.served);
        // What nobody is served of any more, nor waits for.
        served.retain(|_, slot| {
            Arc::strong_count(slot) > 1 || lock(&slot.serving).strong_count() > 0
        });
        let slot = served.entry(front.clone()).or_insert_with(|| {
            Arc::new(Slot {
                beginning: Semaphore::new(1),
                serving: Mutex::default(),
            })
        });
        Arc::clone(slot)
    }

    async fn begin(
        &self,
        workspace: &Workspace,
        gateway: &Gateway,
        front: &Front,
    ) -> Result<Serving, CliError> {
        let manager = self.setup.options(Purpose::Serving, workspace)?;
        let shape = shape(&front.wanted, workspace)?;
        let admissions = Arc::downgrade(workspace.admissions()?);
        lock(&self.admissions).push(admissions);
        let supervision = self.supervision.clone();
        Serving::of(workspace, manager, gateway, shape, supervision).await
    }
}

/// What a command would work in that was started where the front was. The first to read its files does
/// so beside everything else: they may be on a disk that does not answer.
async fn workspace(front: &Front) -> Result<Workspace, CliError> {
    let front = front.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let workspace = unread(&front)?;
        workspace.config()?;
        Ok(workspace)
    });
    let failed = |error| {
        CliError::new(Code::SetupFailed, "the configuration could not be read").because(&error)
    };
    reading.await.map_err(failed)?
}

pub(super) fn unread(front: &Front) -> Result<Workspace, CliError> {
    let pairs = front.environment.iter().cloned();
    let variables: Variables = pairs
        .map(|(Text(name), Text(value))| (name, value))
        .collect();
    let environment = Environment::of(variables, front.home.clone().map(Text::into_path));
    let output = OutputArgs {
        quiet: true,
        ..OutputArgs::default()
    };
    let printer = Arc::new(Printer::new(&output, &environment));
    let config = ConfigArgs {
        config: front.config.iter().cloned().map(Text::into_path).collect(),
        strict_config: front.strict,
    };
    let directory = front.directory.clone().map(Text::into_path);
    let workspace = Workspace::at(directory, environment, printer, output, &config)?;
    let store = front.store.as_deref().and_then(CredentialStoreArg::named);
    Ok(workspace.with_store(store))
}

/// Counts among those who are about to be let in until it is dropped.
struct Entering<'a>(&'a AtomicUsize);

impl<'a> Entering<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.fronts.here.send_modify(|here| {
            here.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use cocode_gateway::Gateway;

    use super::{Fronts, unread};
    use crate::daemon::hello::Front;
    use crate::environment::Variables;
    use crate::managing::{Purpose, Setup};
    use crate::serving::Supervision;

    #[test]
    fn files_are_read_beside_everything_else_and_whoever_waits_for_it_counts() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build();
        runtime.unwrap().block_on(enter());
    }

    async fn enter() {
        // The only one who could read is at something else.
        let (go_on, busy) = std::sync::mpsc::channel::<()>();
        let reading = tokio::task::spawn_blocking(move || busy.recv());
        let scratch = tempfile::tempdir().unwrap();
        let front = Front {
            directory: Some(scratch.path().into()),
            home: Some(scratch.path().into()),
            ..Front::default()
        };
        let workspace = unread(&front).unwrap();
        let setup = Setup::new(Purpose::Serving, &workspace).unwrap();
        let nobody = Supervision::default();
        let fronts = Fronts::new(setup.for_others(), Variables::default(), nobody);
        let gateway = Gateway::new();
        assert!(fronts.is_empty());
        let mut entering = Box::pin(fronts.enter(&gateway, front, None));
        let first = futures_util::poll!(&mut entering);
        assert!(first.is_pending(), "everybody waited for it");
        assert!(!fronts.is_empty(), "nobody knows of it");
        go_on.send(()).unwrap();
        reading.await.unwrap().unwrap();
        let guest = entering.await.unwrap();
        assert!(!fronts.is_empty());
        drop(guest);
        assert!(fronts.is_empty());
        setup.end();
    }
}
