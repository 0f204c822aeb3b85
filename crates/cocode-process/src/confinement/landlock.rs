//! The sandbox of Linux: Landlock rules and a seccomp filter, prepared by the owner, entered by the child that
//! becomes the program.
//!
//! Everything is complete before anything is forked, because a forked copy of the owner may only do what a signal
//! handler may. What is left for it is in [`Ruleset::enter`]: system calls with values that lie ready.
#![expect(
    unsafe_code,
    reason = "system calls that the standard library does not offer"
)]

mod filter;
mod syscalls;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, Scope, make_bitflags,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use self::filter::SyscallFilter;
use super::{
    ConfineError, Confinement, ConfinementRules, NETWORK_ABI, PathHandle, SCOPES_ABI, Support,
};

/// Asks `landlock_create_ruleset` for the version instead of a ruleset.
const ASK_FOR_VERSION: libc::c_uint = 1;

/// Capabilities that root keeps: they concern files, whose rules are Landlock's, the own identity, and low ports.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// More than the kernel has.
const MAX_CAPABILITIES: u32 = 64;

/// Entries beside a hidden directory for which rules are made.
const MAX_RULES: usize = 65_536;

/// Devices and the interfaces of the kernel, which a writable root does not include. A root below one of them does.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Devices that every program may use, because nothing comes of it. Nothing else below `/dev` can be opened: terminals
/// of other sessions, disks, input devices.
const HARMLESS_DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Rights below a writable directory. Device files are not made: they lead past all files.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    ReadFile | WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym | Refer
    | Truncate
});

/// A complete sandbox. The descriptor is closed when a program is executed.
#[derive(Debug)]
pub(crate) struct Ruleset {
    descriptor: OwnedFd,
    filter: SyscallFilter,
}

/// Asks the kernel for its version.
pub(crate) fn probe() -> Support {
    // SAFETY: with this flag the kernel reads no memory.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<libc::c_void>(),
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

/// Makes the rules of a sandbox from descriptors, as far as the system goes.
pub(crate) fn prepare(
    confinement: &Confinement,
    support: Support,
) -> Result<Ruleset, ConfineError> {
    support.check()?;
    let Support::Landlock { abi } = support else {
        return Err(ConfineError::Unsupported { support });
    };
    let scoped = abi >= SCOPES_ABI;
    let ConfinementRules {
        writable: _,
        temporary,
        protected,
        hidden,
        network,
    } = &*confinement.0;
    let mut rules = RulesetBuilder {
        ruleset: create(abi, *network)?,
        left: MAX_RULES,
    };
    let top = PathHandle::open(Path::new("/"))?;
    let unreadable = [hidden.as_slice(), &["/dev".into()]].concat();
    rules.grant_beneath(&top, AccessFs::ReadFile.into(), &unreadable)?;
    let device_access = AccessFs::from_file(abi_of(abi)) & !AccessFs::Execute;
    for device in HARMLESS_DEVICES {
        match PathHandle::open(Path::new(device)) {
            Ok(device) => rules.grant(&device, device_access)?,
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
    }
    let unwritable = [hidden.as_slice(), protected, &SYSTEM.map(PathBuf::from)].concat();
    for (root, _path) in confinement.roots()? {
        rules.grant_beneath(root, WRITE, &unwritable)?;
    }
    if let Some(directory) = temporary {
        rules.grant(directory.handle(), WRITE)?;
    }
    let descriptor: Option<OwnedFd> = rules.ruleset.into();
    Ok(Ruleset {
        descriptor: descriptor.ok_or(ConfineError::Unsupported { support })?,
        filter: SyscallFilter::new(*network, scoped),
    })
}

/// The newest version of which anything is used.
fn abi_of(version: u32) -> ABI {
    match version {
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    }
}

fn create(abi: u32, network: bool) -> Result<RulesetCreated, ConfineError> {
    let files = AccessFs::from_write(abi_of(abi)) | AccessFs::ReadFile;
    let make = || {
        let mut ruleset = landlock::Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(files)?;
        if !network && abi >= NETWORK_ABI {
            ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
        }
        if abi >= SCOPES_ABI {
            ruleset = ruleset.scope(Scope::from_all(ABI::V6))?;
        }
        ruleset.create()
    };
    make().map_err(|error| ConfineError::Rules(io::Error::other(error)))
}

/// Ruleset that is being filled.
struct RulesetBuilder {
    ruleset: RulesetCreated,
    /// How many more entries may get one.
    left: usize,
}

impl RulesetBuilder {
    fn grant(
        &mut self,
        handle: &PathHandle,
        access: BitFlags<AccessFs>,
    ) -> Result<(), ConfineError> {
        let failed = |source| ConfineError::Open {
            path: handle.path().to_owned(),
            source,
        };
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            let message = format!("more than {MAX_RULES} entries beside a protected directory");
            failed(io::Error::other(message))
        })?;
        let stat = rustix::fs::fstat(handle).map_err(|error| failed(error.into()))?;
        let is_directory =
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory;
        let access = if is_directory {
            access
        } else {
            access & AccessFs::from_file(ABI::V6)
        };
        (&mut self.ruleset)
            .add_rule(PathBeneath::new(handle, access))
            .map(drop)
            .map_err(|error| failed(io::Error::other(error)))
    }

    /// Grants access to everything below a directory but the excluded paths. Rules cannot subtract: the directories
    /// on the way to an excluded one get none themselves, and every other entry of theirs gets its own.
    fn grant_beneath(
        &mut self,
        directory: &PathHandle,
        access: BitFlags<AccessFs>,
        excluded: &[PathBuf],
    ) -> Result<(), ConfineError> {
        let path = directory.current_path()?;
        if excluded.contains(&path) {
            return Ok(());
        }
        let below = excluded
            .iter()
            .filter_map(|excluded| excluded.strip_prefix(&path).ok());
        let first: Vec<&OsStr> = below.filter_map(|below| below.iter().next()).collect();
        if first.is_empty() {
            return self.grant(directory, access);
        }
        let names = match directory.names() {
            Ok(names) => names,
            // Entries that cannot be listed are reached by name alone: those on the way to the excluded ones.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                first.iter().map(|name| (*name).to_owned()).collect()
            }
            Err(source) => return Err(ConfineError::Open { path, source }),
        };
        for name in names {
            let entry = match directory.entry(&name) {
                Ok(Some(entry)) => entry,
                // A link gives access to nothing by itself.
                Ok(None) => continue,
                // Entries come and go meanwhile, and some cannot be entered by this user.
                Err(error) if is_out_of_reach(&error) => continue,
                Err(source) => {
                    let path = path.join(name);
                    return Err(ConfineError::Open { path, source });
                }
            };
            if first.contains(&name.as_os_str()) {
                self.grant_beneath(&entry, access, excluded)?;
            } else {
                self.grant(&entry, access)?;
            }
        }
        Ok(())
    }
}

fn is_out_of_reach(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
    )
}

impl Ruleset {
    /// The program that starts another one in a sandbox: none, the process confines itself.
    #[expect(clippy::unused_self, reason = "on macOS the profile is an argument")]
    pub(crate) fn launcher(&self) -> Option<(&'static str, Vec<String>)> {
        None
    }

    /// Confines the calling process, and all that it will start, for good. Async-signal-safe: system calls, no
    /// allocation, no lock.
    pub(crate) fn enter(&self) -> io::Result<()> {
        mark()?;
        drop_capabilities()?;
        rustix::thread::set_no_new_privs(true)?;
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
        self.filter.install()
    }
}

/// Sets the mark by which [`Restrictions`](crate::Restrictions) tells processes of this sandbox from others: a limit
/// that programs do not set themselves, and that cannot be raised again without `CAP_SYS_RESOURCE`.
fn mark() -> io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(setrlimit(Resource::Msgqueue, none)?)
}

/// Gives up what root could leave the sandbox with, for this process and all that it executes.
fn drop_capabilities() -> io::Result<()> {
    for capability in 0..MAX_CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << capability);
        if !KEPT_CAPABILITIES.contains(capability) {
            // A process without CAP_SETPCAP has no capabilities to drop.
            let _ignored = rustix::thread::remove_capability_from_bounding_set(capability);
        }
    }
    let sets = rustix::thread::capabilities(None)?;
    // Ambient capabilities go with the inheritable ones.
    let sets = CapabilitySets {
        effective: sets.effective & KEPT_CAPABILITIES,
        permitted: sets.permitted & KEPT_CAPABILITIES,
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}
