//! Classification of every system call for the seccomp filter of the sandbox.
//!
//! Landlock decides about files, and about tracing and signals of processes outside. These tables decide about everything
//! else. A call that no table names is answered with `ENOSYS`, so a kernel that is newer than the tables adds nothing.

use libc::c_long;

/// Namespace flags of `clone` and `unshare`: a new user namespace brings back capabilities inside of it.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned()
    | 0x80; // CLONE_NEWTIME

/// `S_ISUID` and `S_ISGID`: another user who executes such a file acts as its owner, outside of the sandbox.
const SET_ID: u32 = 0o6000;

/// Flags of `open` that make the mode argument count.
const CREATES: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned();

/// Access to one system call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Access {
    Allowed,
    /// Fails with `EPERM`.
    Refused,
    /// Fails with `ENOSYS`, where runtimes have a fallback for older kernels.
    Absent,
    /// Allowed if every test passes, `EPERM` otherwise.
    Checked(&'static [ArgumentTest]),
}

/// Condition on one argument. Numbers are compared by their lower 32 bits, as the kernel reads an `int`.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArgumentTest {
    IsZero(u8),
    IsNullPointer(u8),
    /// None of the bits is set.
    LacksBits(u8, u32),
    /// The masked value is in the list.
    IsOneOf(u8, u32, &'static [u32]),
    IsNoneOf(u8, &'static [u32]),
    /// If `flags.0` has one of the bits `flags.1`, then `argument` has none of `bits`.
    LacksBitsIf {
        flags: (u8, u32),
        argument: u8,
        bits: u32,
    },
}

use ArgumentTest::{IsNoneOf, IsNullPointer, IsOneOf, IsZero, LacksBits, LacksBitsIf};

/// System calls of one class.
pub(super) struct SyscallGroup {
    pub(super) access: Access,
    pub(super) calls: &'static [c_long],
}

/// Numbers of system calls, with those that the C library has no names for yet.
#[expect(
    non_upper_case_globals,
    reason = "names as the C library writes them, taken from it"
)]
mod number {
    use libc::c_long;
    pub(super) use libc::*;

    pub(super) const SYS_cachestat: c_long = 451;
    pub(super) const SYS_fchmodat2: c_long = 452;
    pub(super) const SYS_map_shadow_stack: c_long = 453;
    pub(super) const SYS_futex_wake: c_long = 454;
    pub(super) const SYS_futex_wait: c_long = 455;
    pub(super) const SYS_futex_requeue: c_long = 456;
    pub(super) const SYS_statmount: c_long = 457;
    pub(super) const SYS_listmount: c_long = 458;
    pub(super) const SYS_lsm_get_self_attr: c_long = 459;
    pub(super) const SYS_lsm_set_self_attr: c_long = 460;
    pub(super) const SYS_lsm_list_modules: c_long = 461;
    pub(super) const SYS_mseal: c_long = 462;
    pub(super) const SYS_setxattrat: c_long = 463;
    pub(super) const SYS_getxattrat: c_long = 464;
    pub(super) const SYS_listxattrat: c_long = 465;
    pub(super) const SYS_removexattrat: c_long = 466;
    pub(super) const SYS_open_tree_attr: c_long = 467;
    pub(super) const SYS_file_getattr: c_long = 468;
    pub(super) const SYS_file_setattr: c_long = 469;
    pub(super) const SYS_listns: c_long = 470;

    #[cfg(target_arch = "x86_64")]
    pub(super) const SYS_io_pgetevents: c_long = 333;
    #[cfg(target_arch = "x86_64")]
    pub(super) const SYS_uretprobe: c_long = 335;
    #[cfg(target_arch = "x86_64")]
    pub(super) const SYS_uprobe: c_long = 336;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_renameat: c_long = 38;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_sync_file_range: c_long = 84;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_getrlimit: c_long = 163;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_setrlimit: c_long = 164;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_io_pgetevents: c_long = 292;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_kexec_file_load: c_long = 294;
}

/// Array of system call numbers by name.
macro_rules! calls {
    ($($name:ident)*) => { &[$(number::$name),*] };
}

const fn group(access: Access, calls: &'static [c_long]) -> SyscallGroup {
    SyscallGroup { access, calls }
}

/// The groups that apply to one kind of sandbox. Together they name every call once.
pub(super) fn groups(
    network: bool,
    signals_scoped: bool,
) -> impl Iterator<Item = &'static SyscallGroup> {
    let sockets = if network { ONLINE } else { OFFLINE };
    let signals = if signals_scoped { SCOPED } else { UNSCOPED };
    // Checked calls come first, because the kernel evaluates the filter for each of them.
    [CHECKED, sockets, signals, COMMON, ARCHITECTURE]
        .into_iter()
        .flatten()
}

const CHECKED: &[SyscallGroup] = &[
    // Files are created without set-user-ID and set-group-ID bits, and get none later.
    group(
        Access::Checked(&[LacksBitsIf {
            flags: (2, CREATES),
            argument: 3,
            bits: SET_ID,
        }]),
        calls!(SYS_openat),
    ),
    group(Access::Checked(&[LacksBits(1, SET_ID)]), calls!(SYS_fchmod)),
    group(
        Access::Checked(&[LacksBits(2, SET_ID)]),
        // 452 is fchmodat2.
        calls!(SYS_fchmodat SYS_fchmodat2 SYS_mknodat),
    ),
    // TIOCSTI types into a terminal; TIOCLINUX pastes into the console. Landlock covers devices from ABI 5 on.
    group(
        Access::Checked(&[IsNoneOf(1, &[0x5412, 0x541C])]),
        calls!(SYS_ioctl),
    ),
    group(
        Access::Checked(&[LacksBits(0, NAMESPACES)]),
        calls!(SYS_clone SYS_unshare),
    ),
    // Limits, scheduling and memory of the calling process alone; of others, the gateway's first of all, never.
    group(
        Access::Checked(&[IsZero(0)]),
        calls!(
            SYS_prlimit64 SYS_sched_setaffinity SYS_sched_setparam SYS_sched_setscheduler SYS_sched_setattr
            SYS_migrate_pages SYS_move_pages
        ),
    ),
    // PRIO_PROCESS and PRIO_PGRP of the caller; PRIO_USER is every process of the user.
    group(
        Access::Checked(&[IsOneOf(0, u32::MAX, &[0, 1]), IsZero(1)]),
        calls!(SYS_setpriority),
    ),
    group(
        Access::Checked(&[IsOneOf(0, u32::MAX, &[1, 2]), IsZero(1)]),
        calls!(SYS_ioprio_set),
    ),
];

/// With network: the internet families, and unix and netlink sockets. Others reach the hypervisor or raw devices.
const ONLINE: &[SyscallGroup] = &[
    group(
        Access::Checked(&[IsOneOf(0, u32::MAX, &[1, 2, 10, 16])]),
        calls!(SYS_socket),
    ),
    group(
        Access::Allowed,
        calls!(SYS_socketpair SYS_connect SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_sendto),
    ),
];

/// Without network: no socket but a connected pair. A pair of datagram sockets could be addressed elsewhere.
const OFFLINE: &[SyscallGroup] = &[
    group(
        Access::Refused,
        calls!(SYS_socket SYS_connect SYS_bind SYS_listen SYS_accept SYS_accept4),
    ),
    group(
        Access::Checked(&[
            IsOneOf(0, u32::MAX, &[1]),
            // SOCK_STREAM and SOCK_SEQPACKET, without their flags.
            IsOneOf(1, 0xF, &[1, 5]),
        ]),
        calls!(SYS_socketpair),
    ),
    group(Access::Checked(&[IsNullPointer(4)]), calls!(SYS_sendto)),
];

/// Landlock keeps signals inside of the sandbox.
const SCOPED: &[SyscallGroup] = &[group(Access::Allowed, SIGNALS)];

/// Landlock before ABI 6: at least no signal to everything at once.
const UNSCOPED: &[SyscallGroup] = &[
    group(
        Access::Checked(&[IsNoneOf(0, &[u32::MAX])]),
        calls!(SYS_kill),
    ),
    group(Access::Allowed, OTHER_SIGNALS),
];

const SIGNALS: &[c_long] = calls!(
    SYS_kill SYS_tkill SYS_tgkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_pidfd_send_signal
);
const OTHER_SIGNALS: &[c_long] = SIGNALS.split_at(1).1;

const COMMON: &[SyscallGroup] = &[
    // Administration of the machine, its clock, kernel and file systems.
    group(
        Access::Refused,
        calls!(
            SYS_acct SYS_adjtimex SYS_bpf SYS_chroot SYS_clock_adjtime SYS_clock_settime SYS_delete_module
            SYS_fanotify_init SYS_fanotify_mark SYS_finit_module SYS_fsconfig SYS_fsmount SYS_fsopen SYS_fspick
            SYS_init_module SYS_kexec_file_load SYS_kexec_load SYS_lookup_dcookie SYS_mount SYS_mount_setattr
            SYS_move_mount SYS_nfsservctl SYS_open_tree SYS_open_tree_attr SYS_perf_event_open SYS_pivot_root
            SYS_quotactl SYS_quotactl_fd SYS_reboot SYS_sethostname SYS_setdomainname SYS_setns SYS_settimeofday
            SYS_swapoff SYS_swapon SYS_syslog SYS_umount2 SYS_userfaultfd SYS_vhangup
        ),
    ),
    // Files by handle, past every directory.
    group(Access::Refused, calls!(SYS_open_by_handle_at)),
    // Memory and descriptors of other processes, where no Landlock rule is needed to say no.
    group(
        Access::Refused,
        calls!(SYS_pidfd_getfd SYS_process_madvise SYS_process_mrelease),
    ),
    // System V and POSIX message queues, semaphores and shared memory are shared with every program of the user.
    group(
        Access::Absent,
        calls!(
            SYS_shmget SYS_shmat SYS_shmctl SYS_shmdt SYS_semget SYS_semop SYS_semtimedop SYS_semctl SYS_msgget
            SYS_msgsnd SYS_msgrcv SYS_msgctl SYS_mq_open SYS_mq_unlink SYS_mq_timedsend SYS_mq_timedreceive
            SYS_mq_notify SYS_mq_getsetattr
        ),
    ),
    // Kernel keyrings of the user hold credentials of other programs.
    group(
        Access::Absent,
        calls!(SYS_add_key SYS_request_key SYS_keyctl),
    ),
    // io_uring makes calls past this filter.
    group(
        Access::Absent,
        calls!(SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register),
    ),
    // Their flags are in memory, where the filter cannot read them.
    group(Access::Absent, calls!(SYS_clone3 SYS_openat2)),
    // Files and directories: Landlock decides.
    group(
        Access::Allowed,
        calls!(
            SYS_chdir SYS_close SYS_close_range SYS_copy_file_range SYS_dup SYS_dup3 SYS_faccessat SYS_faccessat2
            SYS_fadvise64 SYS_fallocate SYS_fchdir SYS_fcntl SYS_fdatasync SYS_flock SYS_fstat SYS_fstatfs SYS_fsync
            SYS_ftruncate SYS_getcwd SYS_getdents64 SYS_inotify_add_watch SYS_inotify_init1 SYS_inotify_rm_watch
            SYS_linkat SYS_lseek SYS_memfd_create SYS_memfd_secret SYS_mkdirat SYS_name_to_handle_at SYS_newfstatat
            SYS_pipe2 SYS_pread64 SYS_preadv SYS_preadv2 SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_read SYS_readahead
            SYS_readlinkat SYS_readv SYS_renameat SYS_renameat2 SYS_sendfile SYS_splice SYS_statfs SYS_statx
            SYS_symlinkat SYS_sync SYS_sync_file_range SYS_syncfs SYS_tee SYS_truncate SYS_umask SYS_unlinkat
            SYS_vmsplice SYS_write SYS_writev SYS_cachestat SYS_statmount SYS_listmount
        ),
    ),
    // Attributes of files: neither Landlock nor this filter knows whose. See docs/sandbox.md.
    group(
        Access::Allowed,
        calls!(
            SYS_fchown SYS_fchownat SYS_fgetxattr SYS_flistxattr SYS_fremovexattr SYS_fsetxattr SYS_getxattr
            SYS_lgetxattr SYS_listxattr SYS_llistxattr SYS_lremovexattr SYS_lsetxattr SYS_removexattr SYS_setxattr
            SYS_utimensat SYS_setxattrat SYS_getxattrat SYS_listxattrat SYS_removexattrat SYS_file_getattr
            SYS_file_setattr
        ),
    ),
    // Processes: Landlock decides about those outside. `setpgid` stays in the own session.
    group(
        Access::Allowed,
        calls!(
            SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_get_robust_list SYS_kcmp SYS_pidfd_open
            SYS_process_vm_readv SYS_process_vm_writev SYS_ptrace SYS_setpgid SYS_setsid SYS_wait4 SYS_waitid
        ),
    ),
    // What the calling process is and has.
    group(
        Access::Allowed,
        calls!(
            SYS_capget SYS_capset SYS_getegid SYS_geteuid SYS_getgid SYS_getgroups SYS_getpgid SYS_getpid SYS_getppid
            SYS_getpriority SYS_getresgid SYS_getresuid SYS_getrlimit SYS_getrusage SYS_getsid SYS_gettid SYS_getuid
            SYS_ioprio_get SYS_landlock_add_rule SYS_landlock_create_ruleset SYS_landlock_restrict_self
            SYS_personality SYS_prctl SYS_sched_getaffinity SYS_sched_getattr SYS_sched_getparam
            SYS_sched_getscheduler SYS_seccomp SYS_setfsgid SYS_setfsuid SYS_setgid SYS_setgroups SYS_setregid
            SYS_setresgid SYS_setresuid SYS_setreuid SYS_setrlimit SYS_setuid SYS_lsm_get_self_attr
            SYS_lsm_set_self_attr SYS_lsm_list_modules SYS_listns
        ),
    ),
    // Memory, threads, signals and timers of the calling process; facts about the machine.
    group(
        Access::Allowed,
        calls!(
            SYS_brk SYS_clock_getres SYS_clock_gettime SYS_clock_nanosleep SYS_futex SYS_futex_waitv SYS_get_mempolicy
            SYS_getcpu SYS_getitimer SYS_getrandom SYS_gettimeofday SYS_madvise SYS_mbind SYS_membarrier SYS_mincore
            SYS_mlock SYS_mlock2 SYS_mlockall SYS_mmap SYS_mprotect SYS_mremap SYS_msync SYS_munlock SYS_munlockall
            SYS_munmap SYS_nanosleep SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_remap_file_pages
            SYS_restart_syscall SYS_rseq SYS_rt_sigaction SYS_rt_sigpending SYS_rt_sigprocmask SYS_rt_sigreturn
            SYS_rt_sigsuspend SYS_rt_sigtimedwait SYS_sched_get_priority_max SYS_sched_get_priority_min
            SYS_sched_rr_get_interval SYS_sched_yield SYS_set_mempolicy SYS_set_mempolicy_home_node
            SYS_set_robust_list SYS_set_tid_address SYS_setitimer SYS_sigaltstack SYS_sysinfo SYS_timer_create
            SYS_timer_delete SYS_timer_getoverrun SYS_timer_gettime SYS_timer_settime SYS_times SYS_uname
            SYS_map_shadow_stack SYS_futex_wake SYS_futex_wait SYS_futex_requeue SYS_mseal
        ),
    ),
    // Events and input and output on descriptors that the process has, sockets among them.
    group(
        Access::Allowed,
        calls!(
            SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2 SYS_getpeername
            SYS_getsockname SYS_getsockopt SYS_io_cancel SYS_io_destroy SYS_io_getevents SYS_io_pgetevents
            SYS_io_setup SYS_io_submit SYS_ppoll SYS_pselect6 SYS_recvfrom SYS_recvmmsg SYS_recvmsg SYS_sendmmsg
            SYS_sendmsg SYS_setsockopt SYS_shutdown SYS_signalfd4 SYS_timerfd_create SYS_timerfd_gettime
            SYS_timerfd_settime
        ),
    ),
];

#[cfg(target_arch = "x86_64")]
use x86_64::ARCHITECTURE;
#[cfg(not(target_arch = "x86_64"))]
const ARCHITECTURE: &[SyscallGroup] = &[];

/// Older names of the same calls, and those of this processor.
#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::{Access, CREATES, LacksBits, LacksBitsIf, SET_ID, SyscallGroup, group, number};

    pub(super) const ARCHITECTURE: &[SyscallGroup] = &[
        group(
            Access::Checked(&[LacksBitsIf {
                flags: (1, CREATES),
                argument: 2,
                bits: SET_ID,
            }]),
            calls!(SYS_open),
        ),
        group(
            Access::Checked(&[LacksBits(1, SET_ID)]),
            calls!(SYS_chmod SYS_creat SYS_mknod),
        ),
        // Ports of the machine.
        group(Access::Refused, calls!(SYS_iopl SYS_ioperm)),
        // Numbers that the kernel no longer has, or never had.
        group(
            Access::Absent,
            calls!(
                SYS__sysctl SYS_afs_syscall SYS_epoll_ctl_old SYS_epoll_wait_old SYS_get_thread_area SYS_getpmsg
                SYS_putpmsg SYS_security SYS_set_thread_area SYS_sysfs SYS_tuxcall SYS_uselib SYS_ustat SYS_vserver
            ),
        ),
        group(
            Access::Allowed,
            calls!(
                SYS_access SYS_alarm SYS_arch_prctl SYS_chown SYS_dup2 SYS_epoll_create SYS_epoll_wait SYS_eventfd
                SYS_fork SYS_futimesat SYS_getdents SYS_getpgrp SYS_inotify_init SYS_lchown SYS_link SYS_lstat
                SYS_mkdir SYS_modify_ldt SYS_pause SYS_pipe SYS_poll SYS_readlink SYS_rename SYS_rmdir SYS_select
                SYS_signalfd SYS_stat SYS_symlink SYS_time SYS_unlink SYS_utime SYS_utimes SYS_vfork SYS_uretprobe
                SYS_uprobe
            ),
        ),
    ];
}

#[cfg(test)]
#[path = "syscalls_tests.rs"]
mod tests;
