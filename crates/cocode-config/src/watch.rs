//! Notices that something changed where configuration is read: a thread that waits for the system
//! to say so, or looks for itself every two seconds where the system cannot. Reads nothing for what
//! it says; see [`Live`](crate::Live) for that.
//!
//! What the system says only makes us look. Whether something changed is told by what is there:
//! so a storm of writes is one change, a file that was only touched is none, and it does not matter
//! whether an editor writes into a file or puts another one in its place, nor whether a path leads
//! through links.

mod pace;
mod print;
mod trail;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::scope::Places;

use pace::{Bell, Pace, Wake};
use print::Prints;
use trail::Trail;

const PACE: Pace = Pace {
    quiet: Duration::from_millis(200),
    most: Duration::from_secs(2),
};
/// How often is looked where the system does not say anything.
const POLL: Duration = Duration::from_secs(2);
/// How often is looked even where it does: a file on another machine changes in silence, and so
/// does what is behind a directory far above.
const LOOK_ANYWAY: Duration = Duration::from_secs(30);
/// How often the paths are followed anew before whatever happens meanwhile is left to be said.
const MAX_ATTEMPTS: usize = 3;

/// Watches every path at which reading the configuration looks, until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

/// Why nothing is watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no thread for it.
    #[error("cannot start a thread to watch the configuration")]
    Thread(#[source] io::Error),
}

/// Who tells of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// The system, if it can.
    System,
    /// We look, this often.
    #[cfg(test)]
    Polling(Duration),
}

impl Watcher {
    /// Calls `on_change` after something changed, on a thread of its own: 200 ms after the last of
    /// several changes, and two seconds after the first at the latest. Whatever changes after this
    /// returns is noticed.
    ///
    /// Dropping waits for a call that is under way; it may also happen inside of one.
    pub fn start(
        places: Places,
        on_change: impl FnMut() + Send + 'static,
    ) -> Result<Self, WatchError> {
        Self::start_with(places, Method::System, on_change)
    }

    /// Why changes are looked for every two seconds, if the system cannot tell of them.
    pub fn polls_because(&self) -> Option<String> {
        self.bell.failure()
    }

    fn start_with(
        places: Places,
        method: Method,
        on_change: impl FnMut() + Send + 'static,
    ) -> Result<Self, WatchError> {
        let bell = Arc::new(Bell::default());
        let mut watch = Watch {
            places,
            method,
            on_change,
            bell: Arc::clone(&bell),
            armed: None,
            prints: Prints::default(),
        };
        watch.arm();
        watch.prints = watch.look();
        let thread = thread::Builder::new()
            .name("cocode-config-watch".to_owned())
            .spawn(move || watch.run())
            .map_err(WatchError::Thread)?;
        let thread = Some(thread);
        Ok(Self { bell, thread })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.bell.stop();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // If a call panicked, that was said when it did.
            drop(thread.join());
        }
    }
}

/// What the thread has.
struct Watch<F> {
    places: Places,
    method: Method,
    on_change: F,
    bell: Arc<Bell>,
    /// What the system tells us by; nothing where we look ourselves.
    armed: Option<RecommendedWatcher>,
    prints: Prints,
}

impl<F: FnMut()> Watch<F> {
    fn run(mut self) {
        loop {
            match self.bell.wait(PACE, self.idle()) {
                Wake::Stop => return,
                Wake::Idle if self.look() == self.prints => continue,
                // What is to be watched may be elsewhere now, under the same paths. First the
                // watching, then the look: so nothing falls between.
                Wake::Idle | Wake::Rung => self.arm(),
            }
            let prints = self.look();
            if prints != self.prints {
                self.prints = prints;
                (self.on_change)();
            }
        }
    }

    /// How long to wait without being told of anything.
    fn idle(&self) -> Duration {
        match self.method {
            #[cfg(test)]
            Method::Polling(often) => often,
            Method::System if self.armed.is_some() => LOOK_ANYWAY,
            Method::System => POLL,
        }
    }

    fn look(&self) -> Prints {
        Prints::of(self.places.looked_at())
    }

    /// Asks the system to tell of changes, or remembers why it does not.
    fn arm(&mut self) {
        let armed = match self.method {
            Method::System => self.ask_system(),
            #[cfg(test)]
            Method::Polling(_) => Err(notify::Error::generic("a test wants it so")),
        };
        // The new one is there before the old one goes.
        match armed {
            Ok(armed) => {
                self.armed = Some(armed);
                self.bell.works();
            }
            Err(error) => {
                self.armed = None;
                self.bell.fails(error.to_string());
            }
        }
    }

    fn ask_system(&self) -> Result<RecommendedWatcher, notify::Error> {
        let mut trail = Trail::of(self.places.looked_at());
        for _attempt in 1..MAX_ATTEMPTS {
            let armed = self.watch(&trail);
            let again = Trail::of(self.places.looked_at());
            if again == trail {
                return armed;
            }
            trail = again;
        }
        let armed = self.watch(&trail);
        // Somebody is changing directories all the time.
        self.bell.ring();
        armed
    }

    fn watch(&self, trail: &Trail) -> Result<RecommendedWatcher, notify::Error> {
        let Trail { directories, spots } = trail;
        let relevant: BTreeSet<PathBuf> = directories.union(spots).cloned().collect();
        let bell = Arc::clone(&self.bell);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // If the system lost count, anything may have happened.
            if event.map_or(true, |event| is_relevant(&event, &relevant)) {
                bell.ring();
            }
        })?;
        for directory in directories {
            watcher.watch(directory, RecursiveMode::NonRecursive)?;
        }
        Ok(watcher)
    }
}

/// Whether something may have changed that we look at. Looking itself makes events, too.
fn is_relevant(event: &Event, paths: &BTreeSet<PathBuf>) -> bool {
    let is_change = match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    };
    let is_ours = event.paths.is_empty() || event.paths.iter().any(|path| paths.contains(path));
    event.need_rescan() || (is_change && is_ours)
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
