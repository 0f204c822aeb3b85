//! How restricted a process is, to tell those inside of a sandbox from those outside.
//!
//! The system has no way to ask whether a process is in the rules of Landlock. But who enters them gives up new
//! privileges, and a [`Confinement`](crate::Confinement) sets a filter of system calls besides, always. Both are to
//! be seen from outside, are passed on to all that is started, and can never be got rid of.
//!
//! Service managers set filters, too, so a count of filters can be equal by chance. The sandbox mark cannot: a
//! `Confinement` sets the hard limit for message queues (`RLIMIT_MSGQUEUE`) to 0, which nothing in it can raise.

#[cfg(target_os = "linux")]
#[path = "restrictions/linux.rs"]
mod system;

#[cfg(not(target_os = "linux"))]
#[path = "restrictions/elsewhere.rs"]
mod system;

use std::fmt;
#[cfg(target_os = "linux")]
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// What a process has given up for good, with all that it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restrictions {
    /// Whether it can gain privileges no more.
    pub no_new_privileges: bool,
    /// How many filters its system calls go through.
    pub filters: u32,
    /// Whether it has the mark of a [`Confinement`](crate::Confinement).
    pub is_sandboxed: bool,
    /// Its user and process namespaces. They are known by what the system tells of every process, because protected
    /// processes do not let others read their namespaces.
    pub namespaces: Namespaces,
}

/// User and process namespaces of a process, as far as another process can tell them apart. Tools that make sandboxes
/// without privileges of the system need a user namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// Hash of the maps of users and groups. Only the administrator of the outer namespace can give two the same.
    users: u64,
    /// Number of nested process namespaces.
    depth: usize,
}

/// Whether the calling process has started the process at the other end of a unix socket, or one of its ancestors.
///
/// A process tree cannot leave its guard, which adopts orphans, nor a process that calls
/// [`adopt_orphans`](crate::adopt_orphans). Systems other than Linux do not tell: there, nothing is a descendant.
pub fn peer_is_descendant(socket: impl AsFd) -> Result<bool, RestrictionsError> {
    system::is_descendant(socket.as_fd())
}

/// Whether the process at the other end of a unix socket sees the same file systems as the calling one.
pub fn peer_shares_mounts(socket: impl AsFd) -> Result<bool, RestrictionsError> {
    system::shares_mounts(socket.as_fd())
}

/// Why it is not known how restricted a process is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestrictionsError {
    /// The system does not say which process it is.
    #[error("the system does not say which process it is")]
    Unidentified(#[source] io::Error),
    /// It has another view of the processes of the machine.
    #[error("its process is not to be seen from here")]
    OutOfSight,
    /// Whoever has its number now may be somebody else.
    #[error("its process has ended")]
    Ended,
    /// Its ancestors changed while they were read, or are too many.
    #[error("the ancestors of its process cannot be determined")]
    UnknownAncestors,
    /// What the system says of it cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Restrictions {
    /// Those of the calling process.
    pub fn own() -> Result<Self, RestrictionsError> {
        system::own()
    }

    /// Those of the process at the other end of a unix socket: the one that connected, or the one that began to
    /// listen, whoever holds that end by now. It must be there still.
    ///
    /// Takes some tens of microseconds, and waits for nobody. Systems that cannot confine know no restrictions.
    pub fn of_peer(socket: impl AsFd) -> Result<Self, RestrictionsError> {
        system::of_peer(socket.as_fd())
    }

    /// Whether a process with these restrictions may do what another asks for: whether that one would not get
    /// out of a sandbox by it.
    ///
    /// They are compared because no number says anything by itself: in containers and under service managers
    /// every process has some. To have given up new privileges alone says nothing either: editors start all
    /// that runs in their terminals like that.
    pub fn may_serve(self, other: Self) -> bool {
        if other.is_sandboxed && !self.is_sandboxed || other.namespaces != self.namespaces {
            return false;
        }
        // Sandboxes of other tools have no mark.
        if other.filters > self.filters {
            return false;
        }
        // A service manager may have given us more filters than a sandbox has that was begun outside of the
        // service. So who is restricted, and not by the same filters as we, may be in a sandbox.
        let has_others = 0 < other.filters && other.filters < self.filters;
        !(other.no_new_privileges && has_others)
    }

    /// Reads what the system says of a process. What this kernel does not say is nothing to compare.
    #[cfg(target_os = "linux")]
    fn read(status: &[u8], limits: &[u8], id_maps: &[u8]) -> Self {
        let process_ids = value_of(status, "NSpid:").unwrap_or_default();
        let mut users = DefaultHasher::new();
        users.write(id_maps);
        let number = |name| number_of(status, name);
        // Kernels before 5.9 say only whether there are any.
        let filters = number("Seccomp_filters:").or_else(|| number("Seccomp:"));
        Self {
            no_new_privileges: number("NoNewPrivs:").is_some_and(|is_set| is_set != 0),
            filters: filters.map_or(0, |filters| u32::try_from(filters).unwrap_or(u32::MAX)),
            // Soft limit, hard limit, unit.
            is_sandboxed: value_of(limits, "Max msgqueue size")
                .is_some_and(|values| values.split_whitespace().nth(1) == Some("0")),
            namespaces: Namespaces {
                users: users.finish(),
                depth: process_ids.split_whitespace().count(),
            },
        }
    }
}

/// The number in the line that begins with a name.
#[cfg(target_os = "linux")]
fn number_of(text: &[u8], name: &str) -> Option<i64> {
    value_of(text, name)?.trim().parse().ok()
}

/// The rest of the line that begins with a name.
#[cfg(target_os = "linux")]
fn value_of<'text>(text: &'text [u8], name: &str) -> Option<&'text str> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
    // Names of processes need not be text, but these lines are.
    std::str::from_utf8(value).ok()
}

impl fmt::Display for Restrictions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            no_new_privileges,
            filters,
            is_sandboxed,
            namespaces: Namespaces { users, depth },
        } = self;
        // By the names that they have in `/proc`, for who wants to look.
        let privileges = u8::from(*no_new_privileges);
        write!(
            formatter,
            "NoNewPrivs {privileges} and Seccomp_filters {filters}"
        )?;
        if *is_sandboxed {
            formatter.write_str(" and the mark of a sandbox of cocode")?;
        }
        write!(
            formatter,
            ", {depth} in NSpid, and the user namespace {users:016x}"
        )
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
#[path = "restrictions_tests.rs"]
mod tests;
