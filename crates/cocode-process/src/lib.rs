//! Child process trees that cannot be orphaned: spawn, guard, stop.
//!
//! [`spawn`] starts a program behind a small guard process. The guard adopts whatever the program
//! forks, and ends all of it when the program exits, when the [`GuardedChild`] is stopped or
//! dropped, and when the owning process dies, be it by SIGKILL. The program's standard streams
//! come back as nonblocking pipes, its last words on stderr as a [`StderrTail`].
//!
//! [`spawn_detached`] does the opposite, for the rare program that is to outlive whoever starts it.
//!
//! A program may be started with a [`Confinement`]: then it, and all that it starts, can write only where
//! that says, and the guard stays free to end it. [`Restrictions`] tell such a program from others when it connects
//! to a unix socket.
//!
//! [`protect_process_memory`], [`clear_environment`] and [`adopt_orphans`] keep what it starts from reading the own
//! process and from leaving its process tree. [`release_free_heap`] makes the own process smaller.
//!
//! Nothing here uses the environment of the own process, and nothing knows what travels through
//! the pipes. `docs/decisions/0002-guard-process.md` explains why the guard exists and what it
//! costs.

#[cfg(not(unix))]
compile_error!("cocode-process needs a Unix system");

mod child;
mod cleanup;
mod confinement;
mod detached;
mod environment;
mod error;
mod exit;
mod guard;
mod hardening;
mod heap;
mod lifeline;
mod restrictions;
mod spec;
mod stderr;

pub use child::{GuardedChild, spawn};
pub use cleanup::{spawn_cleanup, wait_for_cleanup};
pub use confinement::{
    ConfineError, Confinement, PathHandle, Support, TemporaryDirectory, confinement_support,
    remove_tree, reserved_paths, resolve,
};
pub use detached::spawn_detached;
pub use environment::{baseline_environment, is_baseline};
pub use error::{ProgramLookup, SpawnError};
pub use exit::ExitReport;
pub use hardening::{
    adopt_orphans, clear_environment, protect_process_memory, raise_descriptor_limit,
};
pub use heap::release_free_heap;
pub use restrictions::{
    Namespaces, Restrictions, RestrictionsError, peer_is_descendant, peer_shares_mounts,
};
pub use spec::{ProcessSpec, StderrTap, StopPolicy};
pub use stderr::{STDERR_LINE_BYTES, STDERR_TAIL_BYTES, StderrTail};
