//! Rules of Landlock: made by the owner, entered by the child that becomes the program.
//!
//! The rules are complete before anything is forked, because a forked copy of the owner may only do what a
//! signal handler may. What is left for it is in [`Ruleset::enter`]: system calls with values that lie ready.
#![expect(
    unsafe_code,
    reason = "system calls that the standard library does not offer"
)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::ptr;

pub(super) use super::sockets::is_known as filters_sockets;

use super::sockets::SocketFilter;
use super::{ConfineError, Confinement, DEVICE_CONTROL_ABI, NETWORK_ABI, SCOPES_ABI, Support};

/// Asks `landlock_create_ruleset` for the version instead of a ruleset.
const ASK_FOR_VERSION: libc::c_uint = 1;
/// The kind of rule that is about a place and everything below it.
const PATH_BENEATH: libc::c_int = 1;

/// `CAP_SYS_ADMIN` and `CAP_PERFMON`, as the kernel numbers them. Whoever has one of them reads the memory of
/// any process, its environment first of all, before Landlock is asked: root, for one.
const LOST: [libc::c_ulong; 2] = [21, 38];

/// The rights, as the kernel numbers them. What is not handled is not restricted: reading and executing.
mod right {
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    const REMOVE_DIRECTORY: u64 = 1 << 4;
    const REMOVE_FILE: u64 = 1 << 5;
    pub(super) const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
    const MAKE_DIRECTORY: u64 = 1 << 7;
    const MAKE_FILE: u64 = 1 << 8;
    const MAKE_SOCKET: u64 = 1 << 9;
    const MAKE_FIFO: u64 = 1 << 10;
    pub(super) const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
    const MAKE_LINK: u64 = 1 << 12;
    /// To rename or link from one directory into another.
    const REFER: u64 = 1 << 13;
    pub(super) const TRUNCATE: u64 = 1 << 14;
    pub(super) const CONTROL_DEVICE: u64 = 1 << 15;

    /// What a writable directory allows. Devices are not made: who may make one, and write it, writes the disk
    /// below all files.
    pub(super) const IN_DIRECTORY: u64 = WRITE_FILE
        | REMOVE_DIRECTORY
        | REMOVE_FILE
        | MAKE_DIRECTORY
        | MAKE_FILE
        | MAKE_SOCKET
        | MAKE_FIFO
        | MAKE_LINK
        | REFER
        | TRUNCATE;

    pub(super) const BIND_TCP: u64 = 1 << 0;
    pub(super) const CONNECT_TCP: u64 = 1 << 1;

    pub(super) const SCOPE_ABSTRACT_SOCKETS: u64 = 1 << 0;
    pub(super) const SCOPE_SIGNALS: u64 = 1 << 1;
}

/// Devices that every program may write, because nothing comes of it. Terminals are not among them: what is
/// written to the terminal of the user can look like our own questions, and make it answer them.
const HARMLESS_DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// As the kernel lays it out. It takes the whole of it in every version, if what it does not know is zero.
#[repr(C)]
struct RulesetAttributes {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// As the kernel lays it out.
#[repr(C, packed)]
struct PathBeneathAttributes {
    allowed_access: u64,
    parent_fd: i32,
}

/// Complete rules. The descriptor closes itself when a program is executed.
#[derive(Debug)]
pub(crate) struct Ruleset {
    descriptor: OwnedFd,
    sockets: SocketFilter,
}

/// Asks the kernel for its version.
pub(crate) fn probe() -> Support {
    // SAFETY: with this flag the kernel reads no memory.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<RulesetAttributes>(),
            0_usize,
            ASK_FOR_VERSION,
        )
    };
    if let Ok(abi) = u32::try_from(answer) {
        return Support::Landlock { abi };
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EOPNOTSUPP) => Support::SwitchedOff,
        Some(libc::ENOSYS) => Support::Missing,
        _ => Support::Forbidden,
    }
}

/// Makes the rules for a confinement, as far as the system goes. Relative places are below `base`.
pub(crate) fn prepare(
    confinement: &Confinement,
    base: Option<&Path>,
    support: Support,
) -> Result<Ruleset, ConfineError> {
    support.check()?;
    let Support::Landlock { abi } = support else {
        return Err(ConfineError::Unsupported { support });
    };
    let Confinement { writable, network } = confinement;
    let device_control = if abi >= DEVICE_CONTROL_ABI {
        right::CONTROL_DEVICE
    } else {
        0
    };
    let no_network = !network && abi >= NETWORK_ABI;
    let attributes = RulesetAttributes {
        handled_access_fs: right::IN_DIRECTORY
            | right::MAKE_BLOCK_DEVICE
            | right::MAKE_CHARACTER_DEVICE
            | device_control,
        handled_access_net: if no_network {
            right::BIND_TCP | right::CONNECT_TCP
        } else {
            0
        },
        scoped: if abi >= SCOPES_ABI {
            right::SCOPE_ABSTRACT_SOCKETS | right::SCOPE_SIGNALS
        } else {
            0
        },
    };
    let ruleset = Ruleset {
        descriptor: create(&attributes).map_err(ConfineError::Rules)?,
        sockets: SocketFilter::new(*network),
    };
    for device in HARMLESS_DEVICES {
        let rights = right::WRITE_FILE | right::TRUNCATE | device_control;
        ruleset.allow(Path::new(device), rights, rights)?;
    }
    let in_file = right::WRITE_FILE | right::TRUNCATE;
    for place in writable {
        let place = base.map_or_else(|| place.clone(), |base| base.join(place));
        ruleset.allow(&place, right::IN_DIRECTORY, in_file)?;
    }
    Ok(ruleset)
}

fn create(attributes: &RulesetAttributes) -> io::Result<OwnedFd> {
    let flags: libc::c_uint = 0;
    // SAFETY: the pointer and size describe a live value that is laid out as the kernel wants it.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::from_ref(attributes),
            size_of::<RulesetAttributes>(),
            flags,
        )
    };
    match RawFd::try_from(answer) {
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Ruleset {
    /// Lets a place be written, if there is one.
    fn allow(&self, path: &Path, in_directory: u64, in_file: u64) -> Result<(), ConfineError> {
        let failed = |source| ConfineError::Place {
            path: path.to_owned(),
            source,
        };
        let place = match open_place(path) {
            Ok(place) => place,
            Err(error) if is_nowhere(&error) => {
                tracing::debug!(path = %path.display(), "a writable place of a sandbox does not exist");
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        };
        let is_directory = place.metadata().map_err(failed)?.is_dir();
        let attributes = PathBeneathAttributes {
            allowed_access: if is_directory { in_directory } else { in_file },
            parent_fd: place.as_raw_fd(),
        };
        let flags: libc::c_uint = 0;
        // SAFETY: the pointer is to a live value that is laid out as the kernel wants it, and both descriptors
        // are open.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.descriptor.as_raw_fd(),
                PATH_BENEATH,
                &raw const attributes,
                flags,
            )
        };
        if answer == 0 {
            Ok(())
        } else {
            Err(failed(io::Error::last_os_error()))
        }
    }

    /// Confines the calling process, and all that it will start, for good. Safe to call between `fork` and
    /// `exec`: a few system calls, no allocation, no lock.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let (on, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
        for capability in LOST {
            // Whoever may not give it up does not have it, or is no administrator who could use it.
            // SAFETY: touches no memory. The unused arguments are zeros of full width.
            let _kept = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, none, none, none) };
        }
        // SAFETY: touches no memory. The unused arguments are zeros of full width.
        if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, on, none, none, none) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags: libc::c_uint = 0;
        // SAFETY: touches no memory; the descriptor is open.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_landlock_restrict_self,
                self.descriptor.as_raw_fd(),
                flags,
            )
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        self.sockets.enter()
    }
}

/// Opens a place as a name only, which reads nothing and waits for nobody.
fn open_place(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(path)
}

fn is_nowhere(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}
