//! Keeping a program from writing and from the network: what is asked for, and whether this system can do it.
//!
//! Who asks for a confined program gets one or gets an error; it never runs with less than was asked for, but
//! for what [`Support::gaps`] names. `docs/sandbox.md` says what confinement is good for and what not.

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod sockets;

#[cfg(not(target_os = "linux"))]
#[path = "confinement/elsewhere.rs"]
mod landlock;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) use landlock::{Ruleset, prepare, probe};

/// The first version whose rules cover cutting files short. Without that, a program that may not write a file
/// could still empty it.
const LEAST_ABI: u32 = 3;
/// The first version with rules for TCP.
const NETWORK_ABI: u32 = 4;
/// The first version with rules for ioctls of devices.
const DEVICE_CONTROL_ABI: u32 = 5;
/// The first version that keeps signals and abstract sockets inside.
const SCOPES_ABI: u32 = 6;

/// Where every system lets programs write for a while.
const SHARED_TEMPORARY: [&str; 2] = ["/tmp", "/dev/shm"];

/// What a program, and everything that it starts, may still do. It may read and execute whatever the user may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// The directories (and single files) in and below which it may write, make, rename and remove. A relative
    /// path is one below the working directory of the program. What does not exist when the program starts is
    /// left out: nothing can be written there, and to make it is to write beside it.
    pub writable: Vec<PathBuf>,
    /// Whether it may use the network. Without, it can neither open TCP connections nor wait for them, and has
    /// no sockets but unix sockets.
    pub network: bool,
}

impl Confinement {
    /// Nothing may be written, and there is no network.
    pub fn read_only() -> Self {
        Self::default()
    }

    /// A workspace may be written, and the places for temporary files: `/tmp`, `/dev/shm`, and `TMPDIR` if the
    /// environment that the program gets has one. There is no network.
    pub fn workspace_write(workspace: &Path, environment: &[(OsString, OsString)]) -> Self {
        let temporary = environment
            .iter()
            .rfind(|(name, _)| name == OsStr::new("TMPDIR"))
            .map(|(_, value)| PathBuf::from(value))
            // A relative one would be looked for below the workspace, which may be written anyway.
            .filter(|path| path.is_absolute());
        let shared = SHARED_TEMPORARY.map(PathBuf::from);
        let places = [workspace.to_owned()].into_iter().chain(shared);
        Self {
            writable: places.chain(temporary).collect(),
            network: false,
        }
    }

    /// The same, with the network.
    #[must_use]
    pub fn with_network(self) -> Self {
        Self {
            network: true,
            ..self
        }
    }

    /// The same, with more places that may be written.
    #[must_use]
    pub fn with_writable(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        self.writable.extend(places);
        self
    }
}

/// What this system can do to confine a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Support {
    /// The kernel has Landlock.
    Landlock {
        /// The version of its interface.
        abi: u32,
    },
    /// The kernel has Landlock, but it was not switched on when the system started.
    SwitchedOff,
    /// The kernel was made without Landlock, or is older than it.
    Missing,
    /// Something around this process, such as a container, does not let it ask.
    Forbidden,
    /// The system is not Linux.
    OtherSystem,
}

/// Asks the system what it can do. Takes a few microseconds and changes nothing.
pub fn confinement_support() -> Support {
    probe()
}

impl Support {
    /// Whether confined programs can be started.
    pub fn is_sufficient(self) -> bool {
        matches!(self, Self::Landlock { abi } if abi >= LEAST_ABI)
    }

    /// What confined programs can do here that they could not do under a newer kernel. Each is a whole phrase.
    pub fn gaps(self) -> Vec<&'static str> {
        let Self::Landlock { abi } = self else {
            return Vec::new();
        };
        let all = [
            (
                DEVICE_CONTROL_ABI,
                "control devices that they may only read (Linux 6.10 prevents it)",
            ),
            (
                SCOPES_ABI,
                "send signals to programs outside, and connect to abstract unix sockets (Linux 6.12 prevents it)",
            ),
        ];
        let network = if landlock::filters_sockets() {
            None
        } else if abi < NETWORK_ABI {
            Some("use the network even if they are to have none (Linux 6.7 prevents it for TCP)")
        } else {
            Some(
                "use the network even if they are to have none, but not TCP (prevented on x86-64 and ARM64)",
            )
        };
        let by_version = all.into_iter().filter(|(since, _)| abi < *since);
        by_version.map(|(_, gap)| gap).chain(network).collect()
    }

    /// An error where confined programs cannot be started.
    pub fn check(self) -> Result<(), ConfineError> {
        if self.is_sufficient() {
            Ok(())
        } else {
            Err(ConfineError::Unsupported { support: self })
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Landlock { abi } if *abi < LEAST_ABI => write!(
                formatter,
                "Landlock of this kernel has version {abi}, and version {LEAST_ABI} (Linux 6.2) is the first \
                 that keeps files from being emptied"
            ),
            Self::Landlock { abi } => write!(formatter, "Landlock, version {abi}"),
            Self::SwitchedOff => formatter.write_str(
                "Landlock is not switched on: add `landlock` to the list `lsm=` of the kernel's command line",
            ),
            Self::Missing => formatter.write_str("this kernel has no Landlock"),
            Self::Forbidden => {
                formatter.write_str("the container, or what else is around, forbids Landlock")
            }
            Self::OtherSystem => {
                formatter.write_str("programs can be confined on Linux only, by Landlock")
            }
        }
    }
}

/// Why a program cannot be confined. It was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// The system cannot do it.
    #[error(
        "{support}. Nothing was started; use Linux 6.2 or newer with Landlock, or go without the sandbox \
         (`sandbox = \"danger-full-access\"` for an agent, `sandbox = \"off\"` for a server)"
    )]
    Unsupported {
        /// What it can do.
        support: Support,
    },
    /// A place that is to be writable cannot be looked at.
    #[error("cannot let it write to `{}`", path.display())]
    Place {
        /// The place.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The system did not take the rules.
    #[error("the system did not take the rules of the sandbox")]
    Rules(#[source] io::Error),
}

#[cfg(test)]
#[path = "confinement/support_tests.rs"]
mod tests;
