"""The launcher of a sandboxed command: it gives up every right the command must not have, and becomes the command.

It runs as a separate process, `python -I -S`, so it uses only the standard library, and little of it. `sandbox` decides
what is allowed and starts the launcher with a plan. The plan is a list of words. The first word is `namespaces`,
`landlock` or `scope` (which only blocks abstract sockets and signals). The others are:

    read=PATH  write=PATH   a folder or file that may be read and executed, or changed as well
    network                 the network of the system; without this word, none
    list=PATH               with Landlock only: a folder whose names may be seen

    With namespaces only, in the order in which they are carried out:
    temporary=PATH          the folder to use as /tmp
    link=PATH=TARGET        a link to create
    hide=PATH  fix=PATH  keep=PATH    hide it; prevent moving it; make it read-only

The command follows `--`. If a step fails, nothing is run.
"""

import ctypes
import os
import sys

__all__ = ["FAILED", "MACHINES", "landlock_version", "main"]

FAILED = 125  # the exit code of a launcher that could not do its work
LIBC = ctypes.CDLL(None, use_errno=True)
ROOT = 0  # the user

# Numbers of the kernel's interface, the same on every machine unless a table says otherwise.
NEW_USER, NEW_MOUNT, NEW_PROCESS, NEW_IPC, NEW_NETWORK = 0x10000000, 0x20000, 0x20000000, 0x8000000, 0x40000000
NOSUID, NODEV, NOEXEC, BIND, RECURSIVE, PRIVATE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x40000
READ_ONLY, ATTRIBUTES = 0x1, 0x1 | 0x2 | 0x4
DETACH = 2
HERE, WHOLE_TREE, EMPTY_PATH = -100, 0x8000, 0x1000
MOUNT_SETATTR, LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 442, 444, 445, 446
NO_NEW_PRIVILEGES, SET_SECCOMP, DROP_BOUND, AMBIENT = 38, 22, 24, 47
CORE_FILES = 4  # the resource limit on core files
PIPE_SIGNAL, FILE_SIGNAL = 13, 25  # Python ignores them, and a command must not inherit that
CAPABILITIES = 0x20080522  # the version of their structure
#: The capabilities that root keeps: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID.
ROOTS_POWERS = (0, 1, 3, 4, 5, 6, 7)
LAST_CAPABILITY = 63

#: By machine: its architecture in a filter of system calls, and the number of its system call `socket`.
MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
IO_URING = 425
OTHER_ABI = 0x40000000  # system calls of x86-64 with short pointers have numbers from here on
UNIX = 1  # the family of Unix sockets

# Rights of Landlock, by the version that knows them.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, MAKE_CHAR, MAKE_BLOCK = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 6, 1 << 11
FIRST_RIGHTS, REFER, TRUNCATE, IOCTL = (1 << 13) - 1, 1 << 13, 1 << 14, 1 << 15
READING = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL
DEVICES = ("null", "zero", "full", "random", "urandom")


def main(words: list[str]) -> None:
    """Carry out the plan and become the command. Ends the process in any case."""
    end = words.index("--")
    plan, command = words[1:end], words[end + 1 :]
    try:
        if words[0] == "namespaces":
            _in_namespaces(plan, command)
        elif words[0] == "landlock":
            _restrict(plan)
        else:
            _scope()
        _become(command)
    except OSError as error:
        os.write(2, f"the sandbox could not be made: {error.filename or ''} {error.strerror}\n".encode())
    os._exit(FAILED)


def _paths(plan: list[str], kind: str) -> list[str]:
    return [word.partition("=")[2] for word in plan if word.startswith(kind + "=")]


def _call(name: str, *values: object, path: str = "") -> int:
    """Call a function of the C library. Raises OSError."""
    result: int = getattr(LIBC, name)(*values)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), path or name)
    return result


def _pack(*numbers: tuple[int, int]) -> bytes:
    """Return numbers as bytes, one after the other. Each comes with its size in bytes."""
    return b"".join(number.to_bytes(size, sys.byteorder) for number, size in numbers)


def _become(command: list[str]) -> None:
    for number in (PIPE_SIGNAL, FILE_SIGNAL):
        LIBC.signal(number, None)
    _call("setrlimit", CORE_FILES, _pack((0, 8), (0, 8)))  # a core file would have all of a program's memory in it
    _call("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    os.execv(command[0], command)


# --- Landlock and a filter of system calls ----------------------------------------------------------


def landlock_version() -> int:
    """Return the version of Landlock that the kernel has; 0 if it has none."""
    version: int = LIBC.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    return max(0, version)


def _restrict(plan: list[str]) -> None:
    """Give up sockets, other processes, and the file system except for what the plan allows."""
    version, network = landlock_version(), "network" in plan
    if not version:
        raise OSError(0, "the kernel has no Landlock", "")
    handled = FIRST_RIGHTS | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    handled |= IOCTL if version >= 5 else 0
    rules = _ruleset(handled, 0 if network or version < 4 else 0b11, 0b11 if version >= 6 else 0)
    writing = handled & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL)
    for path in _paths(plan, "read"):
        _allow(rules, path, READING)
    for path in _paths(plan, "write"):
        _allow(rules, path, writing)
    for path in _paths(plan, "list"):
        _allow(rules, path, READ_DIR)
    for device in DEVICES:
        _allow(rules, f"/dev/{device}", handled & (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL))
    _allow(rules, "/dev/shm", writing & ~EXECUTE)  # semaphores between the processes of a program are files there
    _enforce(rules)
    _drop_powers()
    _forbid_sockets(only_unix=network)


def _scope() -> None:
    """Give up signals to other processes and their abstract sockets, which are not in the file system."""
    if landlock_version() >= 6:
        _enforce(_ruleset(0, 0, 0b11))


def _enforce(rules: int) -> None:
    _call("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _call("syscall", LANDLOCK_RESTRICT, rules, 0)
    os.close(rules)


def _ruleset(files: int, network: int, scopes: int) -> int:
    attributes = _pack((files, 8))
    if network or scopes:
        attributes += _pack((network, 8))
    if scopes:  # signals and abstract sockets stay inside the sandbox
        attributes += _pack((scopes, 8))
    return _call("syscall", LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)


def _allow(rules: int, path: str, rights: int) -> None:
    """Allow what is below a path; what does not exist needs no rule."""
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    rights &= rights if os.path.isdir(path) else OF_FILES  # noqa: PTH112 - pathlib takes milliseconds to import
    try:
        _call("syscall", LANDLOCK_ADD, rules, 1, _pack((rights, 8), (opened, 4)), 0, path=path)
    finally:
        os.close(opened)


def _forbid_sockets(*, only_unix: bool) -> None:
    """Forbid new sockets, because Landlock does not cover UDP or Unix sockets, on which services take orders.

    Pairs of sockets between the processes of a program remain possible.
    """
    machine, socket = MACHINES[os.uname().machine]
    load, equal, above, give = 0x20, 0x15, 0x35, 0x06
    permission_denied, network_unreachable = 13, 101  # errors that a person understands
    allowed, refused = 0x7FFF0000, 0x00050000 | (permission_denied if only_unix else network_unreachable)
    steps = [
        (load, 0, 0, 4),  # the architecture of the system call
        (equal, 0, 7, machine),
        (load, 0, 0, 0),  # its number
        (above, 5, 0, OTHER_ABI),
        (equal, 4, 0, IO_URING),  # another way to the same calls
        (equal, 0, 2, socket),
        (load, 0, 0, 16),  # the family of the socket
        (equal, 1, 0, UNIX) if only_unix else (above, 1, 1, 0),
        (give, 0, 0, allowed),
        (give, 0, 0, refused),
    ]
    program = b"".join(_pack((code, 2), (yes, 1), (no, 1), (value, 4)) for code, yes, no, value in steps)
    text = ctypes.create_string_buffer(program, len(program))
    _call("prctl", SET_SECCOMP, 2, _pack((len(steps), 8), (ctypes.addressof(text), 8)), 0, 0)


# --- namespaces -------------------------------------------------------------------------------------


def _in_namespaces(plan: list[str], command: list[str]) -> None:
    """Run the command in its own namespaces, wait for its end, and exit in the same way.

    Three processes: we wait outside, the first process inside waits for all others there, and the command. When our
    process group is killed, the first process inside dies with it, and the kernel ends everything else there.
    """
    folder = os.getcwd()  # noqa: PTH109 - see above
    _leave_namespaces(0 if "network" in plan else NEW_NETWORK)
    reading, writing = os.pipe()
    first = os.fork()
    if first:
        os.close(writing)
        status = os.read(reading, 4) or os.waitpid(first, 0)[1].to_bytes(4, "big")
        _end_like(int.from_bytes(status, "big"))
    os.close(reading)
    _build_root(plan)
    if "network" not in plan:
        _start_loopback()
    os.chdir(folder)
    _drop_powers()
    child = os.fork()
    if not child:
        os.setsid()
        _scope()
        _become(command)
    _wait_for_all(child, writing)


def _wait_for_all(child: int, writing: int) -> None:
    """Report how the command ended, and wait for the processes that it left running."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for standard in range(3):  # whoever reads the output must not wait for us
        os.dup2(nothing, standard)
    try:
        while True:
            ended, status = os.wait()
            if ended == child:
                os.write(writing, status.to_bytes(4, "big"))
                os.close(writing)
    except ChildProcessError:
        os._exit(0)


def _end_like(status: int) -> None:
    """End as a process did: by the same signal, or with the same code."""
    if os.WIFSIGNALED(status):
        _call("setrlimit", CORE_FILES, _pack((0, 8), (0, 8)))
        LIBC.signal(os.WTERMSIG(status), None)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def _leave_namespaces(more: int) -> None:
    """Enter new namespaces as the same user. For root, all users are mapped to themselves if that is permitted."""
    user, group, asks = os.getuid(), os.getgid(), -1
    if user == ROOT:
        waiting, asks = os.pipe()
        helper = os.fork()
        if not helper:
            os.close(asks)
            os.read(waiting, 1)
            os._exit(_map_all(os.getppid()))
    _call("unshare", NEW_USER | NEW_MOUNT | NEW_PROCESS | NEW_IPC | more)
    if user == ROOT:
        os.close(asks)
        if os.waitpid(helper, 0)[1] == 0:
            return
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        _write(f"/proc/self/{name}", text)


def _map_all(process: int) -> int:
    """Map all users and groups that we know to themselves, for another process. Return an exit code."""
    try:
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/self/{name}", encoding="ascii") as file:  # noqa: PTH123 - see above
                known = [line.split() for line in file]
            _write(f"/proc/{process}/{name}", "".join(f"{first} {first} {count}\n" for first, _, count in known))
    except OSError:
        return 1
    return 0


def _write(path: str, text: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(opened, text.encode())
    finally:
        os.close(opened)


def _build_root(plan: list[str]) -> None:
    """Build a file system from what the plan allows, and switch to it."""
    _mount("none", "/", "", RECURSIVE | PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", NOSUID | NODEV, "mode=755")
    os.mkdir("/tmp/new")  # noqa: PTH102
    os.mkdir("/tmp/old")  # noqa: PTH102
    _mount("/tmp/new", "/tmp/new", "", BIND | RECURSIVE)
    _call("pivot_root", b"/tmp", b"/tmp/old")
    os.chdir("/")
    for path in _paths(plan, "temporary"):
        _bind(f"/old{path}", "/new/tmp", 0)
    for word in plan:
        kind, _, path = word.partition("=")
        if kind in ("read", "write"):
            _bind(f"/old{path}", f"/new{path}", READ_ONLY if kind == "read" else 0)
    _fill_devices()
    for word in _paths(plan, "link"):
        path, _, target = word.partition("=")
        if not os.path.lexists(f"/new{path}"):
            os.makedirs(os.path.dirname(f"/new{path}"), exist_ok=True)  # noqa: PTH103, PTH120 - see above
            os.symlink(target, f"/new{path}")  # noqa: PTH211
    for path in _paths(plan, "hide"):
        _hide(f"/new{path}")
    for kind, attributes in (("fix", 0), ("keep", READ_ONLY)):
        for path in _paths(plan, kind):
            _bind(f"/new{path}", f"/new{path}", attributes)
    os.makedirs("/new/proc", exist_ok=True)  # noqa: PTH103
    _mount("proc", "/new/proc", "proc", NOSUID | NODEV | NOEXEC)
    _set_attributes("/new/proc", READ_ONLY)  # root could change the system there, in namespaces too
    _set_attributes("/new", READ_ONLY, 0)
    os.chdir("/new")
    _call("pivot_root", b".", b".")
    _call("umount2", b".", DETACH)
    os.chdir("/")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    names = (text.encode(errors="surrogateescape") or None for text in (source, target, kind))
    _call("mount", *names, ctypes.c_ulong(flags), data.encode() or None, path=target.removeprefix("/new"))


def _bind(source: str, target: str, attributes: int) -> None:
    """Mount a folder or a file at another place, if it exists."""
    if not os.path.exists(source):  # noqa: PTH110 - see above
        return
    if not os.path.exists(target):  # noqa: PTH110
        if os.path.isdir(source):  # noqa: PTH112
            os.makedirs(target)  # noqa: PTH103
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
            os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o600))
    _mount(source, target, "", BIND | RECURSIVE)
    _set_attributes(target, attributes | NOSUID | NODEV)


def _set_attributes(path: str, attributes: int, depth: int = WHOLE_TREE) -> None:
    text = _pack((attributes & ATTRIBUTES, 8), (0, 8), (0, 8), (0, 8))
    place = path.encode(errors="surrogateescape")
    _call("syscall", MOUNT_SETATTR, HERE, place, depth, text, ctypes.c_size_t(len(text)), path=path)


def _hide(path: str) -> None:
    if os.path.isdir(path):  # noqa: PTH112
        _mount("tmpfs", path, "tmpfs", NOSUID | NODEV | NOEXEC | READ_ONLY, "mode=555")
    elif os.path.exists(path):  # noqa: PTH110
        _mount("/new/dev/null", path, "", BIND)


def _fill_devices() -> None:
    """Make /dev with harmless devices such as null, its own terminals and shared memory, and no real device."""
    for folder in ("pts", "shm"):
        os.makedirs(f"/new/dev/{folder}")  # noqa: PTH103
    for device in DEVICES:
        os.close(os.open(f"/new/dev/{device}", os.O_CREAT | os.O_CLOEXEC, 0o666))
        _mount(f"/old/dev/{device}", f"/new/dev/{device}", "", BIND)
    _mount("tmpfs", "/new/dev/shm", "tmpfs", NOSUID | NODEV, "mode=1777")
    _mount("devpts", "/new/dev/pts", "devpts", NOSUID | NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    links = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
    for name, target in ({name: f"/proc/self/{at}" for name, at in links.items()} | {"ptmx": "pts/ptmx"}).items():
        os.symlink(target, f"/new/dev/{name}")  # noqa: PTH211


def _start_loopback() -> None:
    internet, datagrams, set_flags, up = 2, 2, 0x8914, 0x41
    socket = _call("socket", internet, datagrams, 0)
    _call("ioctl", socket, set_flags, b"lo".ljust(16, b"\0") + _pack((up, 2)).ljust(24, b"\0"))
    os.close(socket)


def _drop_powers() -> None:
    """Give up the capabilities that a namespace gives its user, so that the command cannot change the mounts."""
    kept = ROOTS_POWERS if os.getuid() == ROOT else ()
    for power in range(LAST_CAPABILITY + 1):
        if power not in kept:
            LIBC.prctl(DROP_BOUND, power, 0, 0, 0)  # fails for those that this kernel does not know
    LIBC.prctl(AMBIENT, 4, 0, 0, 0)
    bits = sum(1 << power for power in kept)
    _call("capset", _pack((CAPABILITIES, 4), (0, 4)), _pack((bits, 4), (bits, 4), (0, 4), (0, 4), (0, 4), (0, 4)))


if __name__ == "__main__":
    main(sys.argv[1:])
