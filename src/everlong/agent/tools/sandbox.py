"""The sandbox of the shell: its kinds, which of them work here, and how to run a command in one.

Each kind translates the same `Rules`. The strongest that works is used; "works" means that a program was tried in it
and could not write outside. If none works, the description says so, and commands run as the user.

How the kinds differ:
- `namespaces` and `bubblewrap` show the command a file system of its own, with its own processes and its own network,
  which is a loopback that nobody else reaches. What git runs later (`.git/hooks`, `.git/config`) is read-only.
- `landlock` can only grant rights. It cannot protect anything inside the workspace, so a command can write a hook
that git runs later, outside. A command opens no sockets, or with the network none to services on this machine.
  Metadata (modes, times) of files outside can be changed, and older kernels prevent less: see `_gaps`.
- None of them limits time, memory or disk, or checks what a command leaves in the workspace: a Makefile that it wrote
does what it says when somebody runs it. With `landlock`, a command also sees the names of system processes.
"""

import atexit
import inspect
import marshal
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from everlong.agent.tools import launcher
from everlong.agent.tools.environment import environment_in
from everlong.agent.tools.launcher import MACHINES, landlock_version
from everlong.agent.tools.rules import Rules, covered, rules_for, without
from everlong.errors import InputError

__all__ = ["CHOICES", "KINDS", "Sandbox", "find_sandbox", "why_not"]

KindName: TypeAlias = Literal["namespaces", "bubblewrap", "landlock"]
PROBE_SECONDS = 20.0
TEMPORARY = Path("/tmp")
#: Where to look for bubblewrap: PATH may have folders that a command can write.
BUBBLEWRAP_PATH = "/usr/bin:/bin:/usr/local/bin"
#: Runs the launcher from memory: a command may be able to change the file it came from.
RUN = "import marshal, sys; exec(marshal.loads(bytes.fromhex(sys.argv.pop(1))))"
LIMITED = ("/bin/sh", "-c", 'ulimit -c 0; exec "$@"', "sh")
FILES_REFUSED = re.compile(
    r"permission denied|operation not permitted|read-only file system|device or resource busy|\bE(?:ACCES|PERM|ROFS)\b",
    re.IGNORECASE,
)
NETWORK_REFUSED = re.compile(
    r"network is unreachable|could ?n[o']t (?:resolve|connect)|name resolution|connection refused|failed to connect"
    r"|name or service not known|\b(?:ENETUNREACH|EAI_AGAIN|ECONNREFUSED|ENOTFOUND)\b",
    re.IGNORECASE,
)
ENDING = 600  # characters at the end of a successful command's output in which a reason is searched


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A sandbox for commands. `kind` is "" if there is none; `asked` says whether that was wanted."""

    kind: KindName | Literal[""]
    asked: str = "auto"
    network: bool = False

    @property
    def description(self) -> str:
        """What a command cannot do here, for the model that writes it."""
        if not self.kind:
            why = "it is turned off" if self.asked == "off" else "none works on this system"
            return f"There is no sandbox ({why}): the command can do everything that the user can do."
        network = NETWORKS[self.network, self.kind == "landlock"]
        gaps = "".join(f" {gap}" for gap in _gaps(self.kind, network=self.network))
        return (
            "It runs in a sandbox: it can read the system and the installed tools, writes only in the workspace, "
            f"$TMPDIR and $HOME (private and temporary), and cannot see any other files of the user. {network}{gaps}"
        )

    def enclosed(
        self, command: Sequence[str], roots: Sequence[Path], folder: Path, environment: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command and its environment. `roots` are the workspace and the allowed folders."""
        if not self.kind:
            return list(command), dict(environment)
        private = _private_folder(roots[0], environment.get("HOME", ""))
        rules = rules_for(roots, private, environment, network=self.network)
        if not (private / "home").exists():
            _fill_home(private / "home", rules)
        return KINDS[self.kind](rules, command, folder), environment_in(private, environment)

    def reason(self, output: str, *, failed: bool, homes: Iterable[str] = ()) -> str:
        """Return a line about the sandbox if it may be why a command failed; "" otherwise."""
        seen = output if failed else output[-ENDING:]
        hidden = "No such file" in seen and any(home in seen for home in homes if len(home) > 1)
        if not self.kind:
            return ""
        if not self.network and NETWORK_REFUSED.search(seen):
            return f"sandbox: {NETWORKS[False, self.kind == 'landlock']} {ONLY_USER.format(option='--network')}"
        if hidden or FILES_REFUSED.search(seen):
            return f"sandbox: {FILES} {ONLY_USER.format(option='--sandbox off')}"
        return ""


NETWORKS = {
    (False, False): "It has no network. It has its own loopback, which ends with the command.",
    (False, True): "It has no network and no loopback.",
    (True, False): "It has network access.",
    (True, True): "It has network access, but no sockets to other programs on this machine.",
}
FILES = (
    "it may be the reason: a command writes only in the workspace (if that is the home folder, only in its visible "
    "folders), $TMPDIR and $HOME, cannot see any other files of the user, and cannot change .git/hooks or .git/config."
)
ONLY_USER = "Only the user can allow more ({option}); do not try to work around it."


def find_sandbox(asked: str = "auto", *, network: bool = False) -> Sandbox:
    """Return the sandbox that was asked for: a kind, the best that works for "auto", none for "off".

    Raises InputError for a kind that does not work on this system.
    """
    if asked == "off":
        return Sandbox("", asked, network)
    if asked == "auto":
        return Sandbox(next((kind for kind in KINDS if not why_not(kind)), ""), asked, network)
    for kind in KINDS:
        if kind == asked and (reason := why_not(kind)):
            raise InputError(
                f"sandbox: {kind} does not work here ({reason}); use auto to choose one that works, or off to use none"
            )
        if kind == asked:
            return Sandbox(kind, asked, network)
    raise InputError(f"sandbox must be one of {', '.join(CHOICES)}, not {asked!r}")


@cache
def why_not(kind: KindName) -> str:
    """Return why a kind does not work on this system, "" if it does: a program is run in it, once."""
    if sys.platform != "linux":
        return "it works only on Linux"
    if kind == "bubblewrap" and not _bubblewrap():
        return "bwrap is not installed"
    if kind == "landlock" and not (landlock_version() and os.uname().machine in MACHINES):
        return "the kernel has no Landlock"
    with tempfile.TemporaryDirectory(prefix="everlong-") as name:
        base = Path(os.path.realpath(name))
        inside, outside, private = base / "inside", base / "outside", base / "private"
        for folder in (inside, private / "tmp"):
            folder.mkdir(parents=True)
        test = ("/bin/sh", "-c", 'echo > in || exit 8; (echo > "$0") 2>/dev/null && exit 9; true', str(outside))
        command = KINDS[kind](rules_for([inside], private, {"PATH": os.defpath}), test, inside)
        try:
            ran = subprocess.run(command, cwd=inside, capture_output=True, timeout=PROBE_SECONDS, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        said = " ".join(ran.stderr.decode(errors="replace").split())
        if outside.exists():
            return "it does not isolate"
        return "" if ran.returncode == 0 else said or f"exit code {ran.returncode}"


def _gaps(kind: str, *, network: bool) -> Iterator[str]:
    """Yield what a kind does not prevent on this system; older kernels prevent less."""
    version, alone = landlock_version(), kind == "landlock"
    if alone and version < 3:
        yield "Files outside the workspace can be emptied."
    if alone and version < 6:
        yield "Signals to other programs are not prevented."
    if not alone and network and version < 6:
        yield "The user's services with abstract sockets can be reached."


# --- the private folder -----------------------------------------------------------------------------


@cache
def _private_folder(workspace: Path, home: str) -> Path:  # noqa: ARG001 - one for each
    """Make the private folder that commands in a workspace share. It is removed when the program ends."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="everlong-")))
    (folder / "tmp").mkdir()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _fill_home(home: Path, rules: Rules) -> None:
    """Make the home folder before any command can, with links to the usable parts of the real one."""
    home.mkdir()
    for real in rules.homes:
        for path in (*rules.write, *rules.read):
            if path.is_relative_to(real) and path != real:
                link = home / path.relative_to(real)
                with suppress(OSError):  # it is inside a folder that is linked already
                    link.parent.mkdir(parents=True, exist_ok=True)
                    link.symlink_to(path)


# --- the kinds --------------------------------------------------------------------------------------


@cache
def _launcher() -> tuple[str, ...]:
    """Return the command that runs the launcher, with the interpreter itself and not a link to it."""
    code = compile(inspect.getsource(launcher), "launcher", "exec", dont_inherit=True, optimize=2)
    return (os.path.realpath(sys.executable), "-I", "-S", "-c", RUN, marshal.dumps(code).hex())


def _words(kind: str, paths: Iterable[Path]) -> list[str]:
    return [f"{kind}={path}" for path in paths]


def _by_landlock(rules: Rules, command: Sequence[str], folder: Path) -> list[str]:  # noqa: ARG001 - we are in it
    plan = [
        *_words("read", _parts(rules.read, rules.hidden)),
        "read=/proc",
        *_words("write", rules.write),
        *_words("list", rules.listed),
    ]
    return [*_launcher(), "landlock", *plan, *(("network",) if rules.network else ()), "--", *command]


@lru_cache(maxsize=64)
def _parts(read: tuple[Path, ...], hidden: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(part for root in read for part in without(root, hidden))


def _by_namespaces(rules: Rules, command: Sequence[str], folder: Path) -> list[str]:  # noqa: ARG001 - we are in it
    plan = [f"temporary={rules.private / 'tmp'}"] if _has_temporary(rules) else []
    plan += [f"{'write' if path in rules.write else 'read'}={path}" for path in sorted((*rules.read, *rules.write))]
    plan += [f"link={path}={target}" for path, target in _links(rules)]
    plan += [*_words("hide", rules.hidden), *_words("fix", rules.fixed), *_words("keep", rules.kept)]
    return [*_launcher(), "namespaces", *plan, *(("network",) if rules.network else ()), "--", *command]


def _has_temporary(rules: Rules) -> bool:
    """Return whether /tmp is the private folder; not if the workspace is in /tmp, because its paths must not change."""
    used = (path for path in rules.write if path != rules.private)
    return not any(covered(path, [TEMPORARY]) or covered(TEMPORARY, [path]) for path in used)


def _links(rules: Rules) -> list[tuple[Path, Path]]:
    """Return the links to create: those that are not inside a path that is shown."""
    shown = (*rules.read, *rules.write, *((TEMPORARY,) if _has_temporary(rules) else ()))
    return [link for link in rules.links if not covered(link[0], shown)]


def _bubblewrap() -> str:
    return shutil.which("bwrap", path=BUBBLEWRAP_PATH) or ""


def _by_bubblewrap(rules: Rules, command: Sequence[str], folder: Path) -> list[str]:
    line = [_bubblewrap() or "bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc"]
    line += () if rules.network else ("--unshare-net",)
    line += ("--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev")
    line += ("--bind", str(rules.private / "tmp"), "/tmp") if _has_temporary(rules) else ()
    for path in sorted((*rules.read, *rules.write)):
        line += ("--bind" if path in rules.write else "--ro-bind", str(path), str(path))
    for path, target in _links(rules):
        line += ("--symlink", str(target), str(path))
    for path in rules.hidden:
        line += ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path))
    for option, paths in (("--bind", rules.fixed), ("--ro-bind", rules.kept)):
        for path in paths:
            line += (option, str(path), str(path))
    inner = (*_launcher(), "scope", "--") if rules.network else LIMITED  # a shell starts ten milliseconds faster
    return [*line, "--remount-ro", "/", "--chdir", str(folder), "--", *inner, *command]


#: Every kind by its name, the strongest first.
KINDS: Mapping[KindName, Callable[[Rules, Sequence[str], Path], list[str]]] = {
    "namespaces": _by_namespaces,
    "bubblewrap": _by_bubblewrap,
    "landlock": _by_landlock,
}
#: The values of the setting.
CHOICES: tuple[str, ...] = ("auto", "off", *KINDS)
