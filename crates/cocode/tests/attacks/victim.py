"""What is outside of the sandbox: a process that records evidence, and helpers of the tests."""
import ctypes, fcntl, json, os, resource, select, shutil, signal, socket, stat, struct, sys

from payloads import ATTACKS, CREATE, DGRAM, P, SIGNALS, STREAM, X86, call, libc, passes, raw, write

# Processes that want to outlive the command that started them. Each holds a lock as long as it lives.
def hold(directory):
    def chain():
        """Is always another process in another session; ends when the locks are removed."""
        while os.path.exists(directory):
            if os.fork():
                os._exit(0)
            os.setsid()

    def plain():
        signal.pause()

    def change_user():
        os.setgroups([])
        os.setresgid(12345, 12345, 12345)
        os.setresuid(12345, 12345, 12345)
        signal.pause()

    def renamed():
        libc.prctl(15, b"systemd", 0, 0, 0)
        os.execve("/usr/bin/sleep", ["[kworker/0:1]", "60"], {})

    def traced():
        if os.fork():
            signal.pause()
        raw(101, 0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)

    kinds = dict(plain=plain, chain=chain, stopped=lambda: os.kill(os.getpid(), signal.SIGSTOP), renamed=renamed, traced=traced,
                 undumpable=lambda: (libc.prctl(4, 0, 0, 0, 0), signal.pause()), subreaper=lambda: (libc.prctl(36, 1, 0, 0, 0), os.fork(), signal.pause()),
                 user=change_user if os.getuid() == 0 else plain, wide_chain=lambda: ([os.fork() for _ in range(3)], chain()))
    for name, run in kinds.items():
        lock = os.open(f"{directory}/{name}", os.O_RDONLY)
        if os.fork():
            os.close(lock)
            continue
        os.set_inheritable(lock, True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGALRM}:
            signal.signal(number, signal.SIG_IGN)
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(0, lock)
        os.closerange(lock + 1, 256)
        os.chdir("/")
        signal.alarm(60)
        run()
        os._exit(0)
    # The locks are taken before the command ends.
    for name in kinds:
        while not held(f"{directory}/{name}"):
            pass
    print("HOLDING")

def survivors(directory):
    print(*["HELD-" + name for name in sorted(os.listdir(directory)) if held(os.path.join(directory, name))])

def held(path):
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False

def swap(first, second):
    """Exchanges two names until it is ended."""
    print("READY", flush=True)
    while not select.select([0], [], [], 0)[0]:
        for _ in range(50):
            raw(316, -100, first.encode(), -100, second.encode(), 2)

# The process outside.
def prepare(base):
    """Programs that give privileges to everybody; only root can make them."""
    for name, program, mode in (("setuid", "id", 0o4755), ("setgid", "id", 0o2755), ("capable", "grep", 0o755)):
        shutil.copy("/usr/bin/" + program, f"{base}/{name}")
        os.chmod(f"{base}/{name}", mode)
    os.setxattr(base + "/capable", "security.capability", struct.pack("<5I", 0x2000001, 1 << 21, 0, 0, 0))

def snapshot(*places):
    found = {}
    for place in places:
        for directory, names, files in os.walk(place):
            for name in names + files:
                path = os.path.join(directory, name)
                if path in (P["config"] + "/mcp.toml", P["config"] + "/config.toml"):
                    continue
                info = os.lstat(path)
                text = open(path, "rb").read() if stat.S_ISREG(info.st_mode) and info.st_size < 1 << 16 else info.st_size
                found[path] = (stat.S_IFMT(info.st_mode), info.st_mode & 0o6000, text if stat.S_ISREG(info.st_mode) else None)
    return found

def condition(memory):
    with open("/proc/self/oom_score_adj") as score, open("/proc/self/coredump_filter") as filter_file:
        return dict(nice=os.getpriority(0, 0), core=resource.getrlimit(resource.RLIMIT_CORE), policy=os.sched_getscheduler(0),
                    affinity=sorted(os.sched_getaffinity(0)), memory=memory.raw.hex(), score=score.read(), filter=filter_file.read(),
                    ioprio=raw(252, 1, 0) if X86 else 0, terminal=os.path.exists("/etc/cocode-attack"))

def drain(end, log):
    try:
        while True:
            if end.type == socket.SOCK_STREAM:
                log.append("connected " + end.accept()[0].recv(99).decode())
            else:
                log.append(end.recv(99).decode())
    except OSError:
        pass

def victim():
    base = os.environ["BASE"]
    text = os.environ["VICTIM_SECRET"].encode()
    P.update(outside=base + "/outside", work=base + "/ws", home=base + "/user", pid=os.getpid(), setuid=base + "/setuid",
             setgid=base + "/setgid", capable=base + "/capable",
             config=base + "/user/.config/cocode", state=base + "/user/.local/state/cocode", abstract="cocode-%d" % os.getpid(),
             key=0x5EC00000 + os.getpid(), queue="cocode-%d" % os.getpid(),
             keyname="cocode-%d" % os.getpid())
    os.setpgid(0, 0)
    for name in ATTACKS:
        os.makedirs(f"{P['outside']}/{name}.d")
        write(f"{P['outside']}/{name}.f", b"original", CREATE)
    for place in ("/ws", "/user/.ssh", "/user/.config/cocode", "/user/.local/state/cocode/hidden"):
        os.makedirs(base + place, exist_ok=True)
    for name in ("attack-secret", "movable", "hidden/attack-secret", "truncated"):
        write(f"{P['state']}/{name}", text, CREATE)
    write(P["state"] + "/attack-program", b"#!/bin/sh\necho " + text + b"\n", CREATE, 0o755)
    write(P["work"] + "/removable", b"original", CREATE)
    os.chdir(P["outside"])
    P["held"] = os.open("held", os.O_RDWR | os.O_CREAT)
    P["fifo"] = P["outside"] + "/fifo"
    os.mkfifo(P["fifo"])
    fifo = os.open(P["fifo"], os.O_RDWR | os.O_NONBLOCK)
    memory = ctypes.create_string_buffer(text, 256)
    P["address"] = ctypes.addressof(memory)
    ends, log = [], []
    for name, family, kind, address in (
            ("stream", socket.AF_UNIX, STREAM, P["outside"] + "/stream"), ("datagram", socket.AF_UNIX, DGRAM, P["outside"] + "/datagram"),
            ("", socket.AF_UNIX, STREAM, "\0" + P["abstract"]), ("", socket.AF_UNIX, DGRAM, "\0" + P["abstract"] + "d"),
            ("tcp", socket.AF_INET, STREAM, ("127.0.0.1", 0)), ("udp", socket.AF_INET, DGRAM, ("127.0.0.1", 0))):
        end = socket.socket(family, kind)
        end.bind(address)
        end.setblocking(False)
        if kind == STREAM:
            end.listen(64)
        ends.append(end)
        if name:
            P[name] = end.getsockname() if isinstance(address, str) else end.getsockname()[1]
    master, slave = os.openpty()
    os.set_blocking(master, False)
    P["terminal"] = os.ttyname(slave)
    signal.signal(signal.SIGWINCH, lambda *_: log.append("signal kill_everything"))
    for name, number in SIGNALS.items():
        signal.signal(number, lambda number, _: log.append("signal " + next(key for key, value in SIGNALS.items() if value == number)))
    shared = call("shmget", P["key"], 256, 0o1600)
    place = call("shmat", shared, None, 0)
    ctypes.memmove(place, text, len(text))
    queue, semaphore = call("msgget", P["key"], 0o1600), call("semget", P["key"], 1, 0o1600)
    if X86:
        messages = raw(240, P["queue"].encode(), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600, 0)
        key = raw(248, b"user", P["keyname"].encode(), text, len(text), -4)
        raw(250, 5, key, 0x3F3F0000)
    with open(P["work"] + "/params.json", "w") as file:
        json.dump(P, file)
    places = (P["outside"], P["home"] + "/.ssh", P["config"], P["state"] + "/hidden")
    before, healthy = snapshot(*places), condition(memory)
    print("READY", flush=True)
    for line in sys.stdin:
        after, ill = snapshot(*places), condition(memory)
        log += [f"file {path}" for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        log += [f"condition {name} {ill[name]}" for name in ill if ill[name] != healthy[name]]
        log += [f"missing {name}" for name in ("movable", "attack-secret", "truncated") if not os.path.exists(f"{P['state']}/{name}") or not os.path.getsize(f"{P['state']}/{name}")]
        log += [f"created {path}" for path in (P["home"] + "/.profile", P["state"] + "/attack") if os.path.exists(path)]
        for end in ends:
            drain(end, log)
        for fd in (fifo, master):
            if select.select([fd], [], [], 0)[0]:
                log.append(os.read(fd, 99).decode())
        if ctypes.string_at(place + 64, 4) == b"sysv" or call("semctl", semaphore, 0, 12) or libc.msgrcv(queue, ctypes.create_string_buffer(64), 32, 0, 0o4000) > 0:
            log.append("sysv")
        if X86 and passes(lambda: raw(243, messages, ctypes.create_string_buffer(8192), 8192, 0, 0)):
            log.append("posix_queue")
        if X86 and passes(lambda: raw(250, 9, raw(250, 10, -4, b"user", (P["keyname"] + "x").encode(), 0), -4)):
            log.append("keyring_add")
        print(json.dumps(sorted(set(log))), flush=True)
        log.clear()
        before, healthy = after, ill
    call("shmctl", shared, 0, None)
    call("msgctl", queue, 0, None)
    call("semctl", semaphore, 0, 0)
    if X86:
        raw(241, P["queue"].encode())
        raw(250, 9, key, -4)

if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
