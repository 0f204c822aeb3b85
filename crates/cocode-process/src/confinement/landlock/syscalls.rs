//! Classification of every system call for the seccomp filter of the sandbox.
//!
//! Landlock decides about files, and about tracing and signals of processes outside. These tables decide about everything
//! else. A call that no table names is answered with `ENOSYS`, so a kernel that is newer than the tables adds nothing.

#![cfg_attr(
    not(test),
    expect(
        clippy::wildcard_imports,
        reason = "the tables name some 370 constants"
    )
)]

use linux_raw_sys::general::*;

/// Namespace flags of `clone` and `unshare`: a new user namespace brings back capabilities inside of it.
const NAMESPACES: u32 = CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET
    | CLONE_NEWTIME;

/// `S_ISUID` and `S_ISGID`: another user who executes such a file acts as its owner, outside of the sandbox.
const SET_ID: u32 = 0o6000;

/// Flags of `open` that make the mode argument count.
const CREATES: u32 = O_CREAT | O_TMPFILE & !O_DIRECTORY;

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

use Access::{Absent, Allowed, Checked, Refused};
use ArgumentTest::{IsNoneOf, IsNullPointer, IsOneOf, IsZero, LacksBits, LacksBitsIf};

/// The flags ask for reading, writing or both. Access mode 3 asks for neither: Landlock is not consulted, and the
/// descriptor of a hidden file or device can still be watched, leased and measured.
const fn opens_for_access(flags: u8) -> ArgumentTest {
    IsOneOf(flags, O_ACCMODE, &[O_RDONLY, O_WRONLY, O_RDWR])
}

/// System calls of one class.
pub(super) struct SyscallGroup {
    pub(super) access: Access,
    pub(super) calls: &'static [u32],
}

/// Groups of system calls: `ACCESS => NAMES;`.
macro_rules! groups {
    ($($access:expr => $($call:ident)*;)*) => {
        &[$(SyscallGroup { access: $access, calls: &[$($call),*] }),*]
    };
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

const CHECKED: &[SyscallGroup] = groups! {
    // Files are created without set-user-ID and set-group-ID bits, and get none later.
    Checked(&[opens_for_access(2), LacksBitsIf { flags: (2, CREATES), argument: 3, bits: SET_ID }]) => __NR_openat;
    Checked(&[LacksBits(1, SET_ID)]) => __NR_fchmod;
    Checked(&[LacksBits(2, SET_ID)]) => __NR_fchmodat __NR_fchmodat2 __NR_mknodat;
    // TIOCSTI types into a terminal; TIOCLINUX pastes into the console. Landlock covers devices from ABI 5 on.
    Checked(&[IsNoneOf(1, &[0x5412, 0x541C])]) => __NR_ioctl;
    Checked(&[LacksBits(0, NAMESPACES)]) => __NR_clone __NR_unshare;
    // Limits, scheduling and memory of the calling process alone; of others, the gateway's first of all, never.
    Checked(&[IsZero(0)]) => __NR_prlimit64 __NR_sched_setaffinity __NR_sched_setparam __NR_sched_setscheduler
        __NR_sched_setattr __NR_migrate_pages __NR_move_pages;
    // PRIO_PROCESS and PRIO_PGRP of the caller; PRIO_USER is every process of the user.
    Checked(&[IsOneOf(0, u32::MAX, &[0, 1]), IsZero(1)]) => __NR_setpriority;
    Checked(&[IsOneOf(0, u32::MAX, &[1, 2]), IsZero(1)]) => __NR_ioprio_set;
};

/// With network: the internet families, and unix and netlink sockets. Others reach the hypervisor or raw devices.
const ONLINE: &[SyscallGroup] = groups! {
    Checked(&[IsOneOf(0, u32::MAX, &[1, 2, 10, 16])]) => __NR_socket;
    Allowed => __NR_socketpair __NR_connect __NR_bind __NR_listen __NR_accept __NR_accept4 __NR_sendto;
};

/// Without network: no socket but a connected pair. A pair of datagram sockets could be addressed elsewhere.
const OFFLINE: &[SyscallGroup] = groups! {
    Refused => __NR_socket __NR_connect __NR_bind __NR_listen __NR_accept __NR_accept4;
    // SOCK_STREAM and SOCK_SEQPACKET, without their flags.
    Checked(&[IsOneOf(0, u32::MAX, &[1]), IsOneOf(1, 0xF, &[1, 5])]) => __NR_socketpair;
    Checked(&[IsNullPointer(4)]) => __NR_sendto;
};

/// Landlock keeps signals inside of the sandbox.
const SCOPED: &[SyscallGroup] = groups! {
    Allowed => __NR_kill __NR_tkill __NR_tgkill __NR_rt_sigqueueinfo __NR_rt_tgsigqueueinfo __NR_pidfd_send_signal;
};

/// Landlock before ABI 6: at least no signal to everything at once.
const UNSCOPED: &[SyscallGroup] = groups! {
    Checked(&[IsNoneOf(0, &[u32::MAX])]) => __NR_kill;
    Allowed => __NR_tkill __NR_tgkill __NR_rt_sigqueueinfo __NR_rt_tgsigqueueinfo __NR_pidfd_send_signal;
};

const COMMON: &[SyscallGroup] = groups! {
    // Administration of the machine, its clock, kernel and file systems.
    Refused => __NR_acct __NR_adjtimex __NR_bpf __NR_chroot __NR_clock_adjtime __NR_clock_settime __NR_delete_module
        __NR_fanotify_init __NR_fanotify_mark __NR_finit_module __NR_fsconfig __NR_fsmount __NR_fsopen __NR_fspick
        __NR_init_module __NR_kexec_file_load __NR_kexec_load __NR_lookup_dcookie __NR_mount __NR_mount_setattr
        __NR_move_mount __NR_nfsservctl __NR_open_tree __NR_open_tree_attr __NR_perf_event_open __NR_pivot_root
        __NR_quotactl __NR_quotactl_fd __NR_reboot __NR_sethostname __NR_setdomainname __NR_setns __NR_settimeofday
        __NR_swapoff __NR_swapon __NR_syslog __NR_umount2 __NR_userfaultfd __NR_vhangup;
    // Files by handle, past every directory.
    Refused => __NR_open_by_handle_at;
    // Memory and descriptors of other processes, where no Landlock rule is needed to say no.
    Refused => __NR_pidfd_getfd __NR_process_madvise __NR_process_mrelease;
    // System V and POSIX message queues, semaphores and shared memory are shared with every program of the user.
    Absent => __NR_shmget __NR_shmat __NR_shmctl __NR_shmdt __NR_semget __NR_semop __NR_semtimedop __NR_semctl
        __NR_msgget __NR_msgsnd __NR_msgrcv __NR_msgctl __NR_mq_open __NR_mq_unlink __NR_mq_timedsend
        __NR_mq_timedreceive __NR_mq_notify __NR_mq_getsetattr;
    // Kernel keyrings of the user hold credentials of other programs.
    Absent => __NR_add_key __NR_request_key __NR_keyctl;
    // io_uring makes calls past this filter.
    Absent => __NR_io_uring_setup __NR_io_uring_enter __NR_io_uring_register;
    // Their flags are in memory, where the filter cannot read them.
    Absent => __NR_clone3 __NR_openat2;
    // Files and directories: Landlock decides.
    Allowed => __NR_chdir __NR_close __NR_close_range __NR_copy_file_range __NR_dup __NR_dup3 __NR_faccessat
        __NR_faccessat2 __NR_fadvise64 __NR_fallocate __NR_fchdir __NR_fcntl __NR_fdatasync __NR_flock __NR_fstat
        __NR_fstatfs __NR_fsync __NR_ftruncate __NR_getcwd __NR_getdents64 __NR_inotify_add_watch __NR_inotify_init1
        __NR_inotify_rm_watch __NR_linkat __NR_lseek __NR_memfd_create __NR_memfd_secret __NR_mkdirat
        __NR_name_to_handle_at __NR_newfstatat __NR_pipe2 __NR_pread64 __NR_preadv __NR_preadv2 __NR_pwrite64
        __NR_pwritev __NR_pwritev2 __NR_read __NR_readahead __NR_readlinkat __NR_readv __NR_renameat __NR_renameat2
        __NR_sendfile __NR_splice __NR_statfs __NR_statx __NR_symlinkat __NR_sync __NR_sync_file_range __NR_syncfs
        __NR_tee __NR_truncate __NR_umask __NR_unlinkat __NR_vmsplice __NR_write __NR_writev __NR_cachestat
        __NR_statmount __NR_listmount;
    // Attributes of files: neither Landlock nor this filter knows whose. See docs/sandbox.md.
    Allowed => __NR_fchown __NR_fchownat __NR_fgetxattr __NR_flistxattr __NR_fremovexattr __NR_fsetxattr __NR_getxattr
        __NR_lgetxattr __NR_listxattr __NR_llistxattr __NR_lremovexattr __NR_lsetxattr __NR_removexattr __NR_setxattr
        __NR_utimensat __NR_setxattrat __NR_getxattrat __NR_listxattrat __NR_removexattrat __NR_file_getattr
        __NR_file_setattr;
    // Processes: Landlock decides about those outside. `setpgid` stays in the own session.
    Allowed => __NR_execve __NR_execveat __NR_exit __NR_exit_group __NR_get_robust_list __NR_kcmp __NR_pidfd_open
        __NR_process_vm_readv __NR_process_vm_writev __NR_ptrace __NR_setpgid __NR_setsid __NR_wait4 __NR_waitid;
    // What the calling process is and has.
    Allowed => __NR_capget __NR_capset __NR_getegid __NR_geteuid __NR_getgid __NR_getgroups __NR_getpgid __NR_getpid
        __NR_getppid __NR_getpriority __NR_getresgid __NR_getresuid __NR_getrlimit __NR_getrusage __NR_getsid
        __NR_gettid __NR_getuid __NR_ioprio_get __NR_landlock_add_rule __NR_landlock_create_ruleset
        __NR_landlock_restrict_self __NR_personality __NR_prctl __NR_sched_getaffinity __NR_sched_getattr
        __NR_sched_getparam __NR_sched_getscheduler __NR_seccomp __NR_setfsgid __NR_setfsuid __NR_setgid
        __NR_setgroups __NR_setregid __NR_setresgid __NR_setresuid __NR_setreuid __NR_setrlimit __NR_setuid
        __NR_lsm_get_self_attr __NR_lsm_set_self_attr __NR_lsm_list_modules;
    // Memory, threads, signals and timers of the calling process; facts about the machine.
    Allowed => __NR_brk __NR_clock_getres __NR_clock_gettime __NR_clock_nanosleep __NR_futex __NR_futex_waitv
        __NR_get_mempolicy __NR_getcpu __NR_getitimer __NR_getrandom __NR_gettimeofday __NR_madvise __NR_mbind
        __NR_membarrier __NR_mincore __NR_mlock __NR_mlock2 __NR_mlockall __NR_mmap __NR_mprotect __NR_mremap
        __NR_msync __NR_munlock __NR_munlockall __NR_munmap __NR_nanosleep __NR_pkey_alloc __NR_pkey_free
        __NR_pkey_mprotect __NR_remap_file_pages __NR_restart_syscall __NR_rseq __NR_rt_sigaction __NR_rt_sigpending
        __NR_rt_sigprocmask __NR_rt_sigreturn __NR_rt_sigsuspend __NR_rt_sigtimedwait __NR_sched_get_priority_max
        __NR_sched_get_priority_min __NR_sched_rr_get_interval __NR_sched_yield __NR_set_mempolicy
        __NR_set_mempolicy_home_node __NR_set_robust_list __NR_set_tid_address __NR_setitimer __NR_sigaltstack
        __NR_sysinfo __NR_timer_create __NR_timer_delete __NR_timer_getoverrun __NR_timer_gettime __NR_timer_settime
        __NR_times __NR_uname __NR_map_shadow_stack __NR_futex_wake __NR_futex_wait __NR_futex_requeue __NR_mseal;
    // Events and input and output on descriptors that the process has, sockets among them.
    Allowed => __NR_epoll_create1 __NR_epoll_ctl __NR_epoll_pwait __NR_epoll_pwait2 __NR_eventfd2 __NR_getpeername
        __NR_getsockname __NR_getsockopt __NR_io_cancel __NR_io_destroy __NR_io_getevents __NR_io_pgetevents
        __NR_io_setup __NR_io_submit __NR_ppoll __NR_pselect6 __NR_recvfrom __NR_recvmmsg __NR_recvmsg __NR_sendmmsg
        __NR_sendmsg __NR_setsockopt __NR_shutdown __NR_signalfd4 __NR_timerfd_create __NR_timerfd_gettime
        __NR_timerfd_settime;
};

#[cfg(not(target_arch = "x86_64"))]
const ARCHITECTURE: &[SyscallGroup] = &[];

/// The newest call, which the constants of the kernel's headers do not have yet.
#[cfg(target_arch = "x86_64")]
const UPROBE: u32 = 336;

/// Older names of the same calls, and those of this processor.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: &[SyscallGroup] = groups! {
    Checked(&[opens_for_access(1), LacksBitsIf { flags: (1, CREATES), argument: 2, bits: SET_ID }]) => __NR_open;
    Checked(&[LacksBits(1, SET_ID)]) => __NR_chmod __NR_creat __NR_mknod;
    // Ports of the machine.
    Refused => __NR_iopl __NR_ioperm;
    // Numbers that the kernel no longer has, or never had.
    Absent => __NR__sysctl __NR_afs_syscall __NR_epoll_ctl_old __NR_epoll_wait_old __NR_get_thread_area
        __NR_getpmsg __NR_putpmsg __NR_security __NR_set_thread_area __NR_sysfs __NR_tuxcall __NR_uselib
        __NR_ustat __NR_vserver;
    Allowed => __NR_access __NR_alarm __NR_arch_prctl __NR_chown __NR_dup2 __NR_epoll_create __NR_epoll_wait
        __NR_eventfd __NR_fork __NR_futimesat __NR_getdents __NR_getpgrp __NR_inotify_init __NR_lchown __NR_link
        __NR_lstat __NR_mkdir __NR_modify_ldt __NR_pause __NR_pipe __NR_poll __NR_readlink __NR_rename __NR_rmdir
        __NR_select __NR_signalfd __NR_stat __NR_symlink __NR_time __NR_unlink __NR_utime __NR_utimes __NR_vfork
        __NR_uretprobe UPROBE;
};

#[cfg(test)]
#[path = "syscalls_tests.rs"]
mod tests;
