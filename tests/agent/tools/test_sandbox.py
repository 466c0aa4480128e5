"""The sandbox, by real commands of an agent: what they may not do, and all that they still can.

Each kind that works on this machine is tried. Where none does, commands have to say that there is no sandbox.
"""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from everlong.agent.config import AgentConfig
from everlong.agent.definitions import Outcome
from everlong.agent.tools.rules import rules_for
from everlong.agent.tools.sandbox import KINDS, Sandbox, find_sandbox, why_not
from everlong.agent.tools.shell import shell_tool
from everlong.agent.toolset import standard_tools, workspace_agent
from everlong.engine import Engine
from everlong.errors import InputError
from everlong.llm import ScriptedModel
from everlong.store import MemoryThreads
from tests.agent.acting import CONFIG, calls_then, outcomes, run

WORKING = [kind for kind in KINDS if not why_not(kind)]
#: What is tried: every kind that works, and without one the answer that there is none.
TRIED = WORKING or ["auto"]
OWN_FILES = [kind for kind in WORKING if kind != "landlock"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with a key, a history, a repository's author and a workspace in it."""
    folder = tmp_path / "home"
    for path, text in {
        ".ssh/id_x": "PRIVATE",
        ".aws/credentials": "PRIVATE",
        ".bash_history": "PRIVATE",
        ".local/share/everlong/threads.db": "PRIVATE",
        "letters/a.txt": "PRIVATE",
        ".gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.org\n",
        "work/README": "hello\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    monkeypatch.setenv("HOME", str(folder))
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    return folder


def command(kind: str, workspace: Path, text: str, *, network: bool = False, allowed: tuple[Path, ...] = ()) -> Outcome:
    """Let an agent run a command; return its outcome."""
    return commands(kind, workspace, [text], network=network, allowed=allowed)[0]


def commands(
    kind: str, workspace: Path, texts: list[str], *, network: bool = False, allowed: tuple[Path, ...] = ()
) -> list[Outcome]:
    config = replace(
        CONFIG, workspace=workspace, allowed=allowed, approval="always", sandbox=kind, sandbox_network=network
    )
    model = ScriptedModel(calls_then([[("shell", json.dumps({"command": text}))] for text in texts]))

    async def turn() -> list[Outcome]:
        agent = workspace_agent(Engine(MemoryThreads()), model, config)
        return outcomes([event async for event in agent.turn("t", "go")])

    return run(turn())


def enclosed(outcome: Outcome, kind: str) -> bool:
    """Whether the command was in a sandbox. Where the machine has none, that was said."""
    if kind == "auto":
        assert "There is no sandbox" in find_sandbox().description
        assert not outcome.text.startswith("the sandbox")
        return False
    return True


@contextmanager
def listening() -> Iterator[int]:
    """A server on the loopback, outside; the port it is at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_greet, args=[server], daemon=True).start()
        yield server.getsockname()[1]


def _greet(server: socket.socket) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        with client:
            client.sendall(b"from outside")


# --- what it may not --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TRIED)
def test_it_writes_nothing_outside_the_workspace(kind: str, home: Path) -> None:
    outside = home / "letters"
    tries = [f"echo x > {outside}/b.txt", f"echo x >> {outside}/a.txt", f"mkdir {outside}/new", f"rm -r {outside}"]
    ended = commands(kind, home / "work", [*tries, f"mv README {outside}/moved", f"echo x > {home}/.profile"])
    if enclosed(ended[0], kind):
        assert [outcome.failed for outcome in ended] == [True] * 6
        assert [path.name for path in outside.iterdir()] == ["a.txt"]
        assert (outside / "a.txt").read_text() == "PRIVATE"
        assert not (home / ".profile").exists()
        assert (home / "work/README").exists()
        assert all("[sandbox: it may be the reason" in outcome.text for outcome in ended)


@pytest.mark.parametrize("kind", TRIED)
@pytest.mark.parametrize(
    "secret", [".ssh/id_x", ".aws/credentials", ".bash_history", ".local/share/everlong/threads.db", "letters/a.txt"]
)
def test_it_reads_no_secret_of_the_user(kind: str, secret: str, home: Path) -> None:
    named, tilde, linked = commands(
        kind, home / "work", [f"cat {home / secret}", f"cat ~/{secret}", f"ln -s {home / secret} l; cat l"]
    )
    if enclosed(named, kind):
        for outcome in (named, tilde, linked):
            assert outcome.failed
            assert "PRIVATE" not in outcome.text


@pytest.mark.parametrize("kind", TRIED)
def test_a_link_in_the_workspace_leads_nowhere_else(kind: str, home: Path) -> None:
    (home / "work/out").symlink_to(home / "letters")
    outcome = command(kind, home / "work", "cat out/a.txt; ls out; echo x > out/b.txt; cp -r out/. copied; find copied")
    if enclosed(outcome, kind):
        assert "PRIVATE" not in outcome.text
        assert not (home / "letters/b.txt").exists()
        assert not (home / "work/copied/a.txt").exists()


CONNECT = "import socket; print(socket.create_connection(('127.0.0.1', {port}), 10).recv(99))"
DATAGRAM = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('192.0.2.1', 53)); s.send(b'x')"


@pytest.mark.parametrize("kind", TRIED)
def test_it_reaches_no_server_unless_the_network_is_on(kind: str, tmp_path: Path) -> None:
    with listening() as port:
        program = f'{sys.executable} -c "{CONNECT.format(port=port)}"'
        off = command(kind, tmp_path, program)
        on = command(kind, tmp_path, program, network=True)
    assert "from outside" in on.text
    if enclosed(off, kind):
        assert off.failed
        assert "from outside" not in off.text
        assert "--network" in off.text
        assert command(kind, tmp_path, f'{sys.executable} -c "{DATAGRAM}"').failed


@pytest.mark.parametrize("kind", TRIED)
@pytest.mark.parametrize("network", [False, True])
def test_it_reaches_no_service_behind_a_socket_that_is_a_file(kind: str, network: bool, tmp_path: Path) -> None:
    """Such as Docker's and the session bus, which start programs outside for whoever asks."""
    path, workspace = tmp_path / "service", tmp_path / "work"
    workspace.mkdir()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as abstract:
        server.bind(str(path))
        server.listen()
        abstract.bind(f"\0everlong-{os.getpid()}")
        abstract.listen()
        for name in (str(path), f"\\0everlong-{os.getpid()}"):
            program = f"import socket; socket.socket(socket.AF_UNIX).connect('{name}')"
            outcome = command(kind, workspace, f'{sys.executable} -c "{program}"', network=network)
            if enclosed(outcome, kind):
                assert outcome.failed


@pytest.mark.parametrize("kind", TRIED)
def test_it_neither_signals_nor_inspects_processes_outside(kind: str, tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "300"], env={"SECRET_WORD": "PRIVATE"}) as other:
        try:
            outcome = command(kind, tmp_path, f"kill -9 {other.pid}; tr '\\0' ' ' < /proc/{other.pid}/environ; false")
            own = command(kind, tmp_path, f"tr '\\0' ' ' < /proc/{os.getpid()}/environ; kill -0 {os.getpid()}")
            if enclosed(outcome, kind):
                assert other.poll() is None
                assert "PRIVATE" not in outcome.text
                assert "PATH=" not in own.text
                assert own.failed
        finally:
            other.kill()


@pytest.mark.parametrize("kind", TRIED)
def test_it_gains_no_rights(kind: str, tmp_path: Path) -> None:
    outcome = command(kind, tmp_path, "grep -E 'NoNewPrivs|CapEff' /proc/self/status; ulimit -c; mount -t tmpfs none .")
    if enclosed(outcome, kind):
        assert "NoNewPrivs:\t1" in outcome.text
        assert outcome.text.splitlines()[2] == "0"  # no core files
        assert outcome.failed
        powers = int(outcome.text.splitlines()[0 if "CapEff" in outcome.text.splitlines()[0] else 1].split()[1], 16)
        assert powers & ~0b11111011 == 0  # at most root's over files, never over the system


@pytest.mark.parametrize("kind", OWN_FILES or ["auto"])
def test_what_git_runs_later_is_read_only(kind: str, home: Path) -> None:
    work = home / "work"
    made = command("off", work, "git init -q . && rm -rf .git/hooks && echo '[agent]' > everlong.toml")
    assert not made.failed
    (work / ".git/modules/sub/hooks").mkdir(parents=True)
    before = (work / ".git/config").read_text()
    attacks = [
        "printf '#!/bin/sh\\ntouch owned' > .git/hooks/pre-commit",
        "rm -rf .git/hooks && mkdir .git/hooks && touch .git/hooks/pre-commit",
        "mv .git/hooks moved && mkdir .git/hooks && touch .git/hooks/pre-commit",
        "mv .git moved && cp -r moved .git && touch .git/hooks/pre-commit",
        "git config core.fsmonitor 'touch owned'",
        "echo '[core]' >> .git/config",
        "touch .git/modules/sub/hooks/pre-commit",
        "printf 'approval = \"always\"' >> everlong.toml",
    ]
    ended = commands(kind, work, [*attacks, "git add README && git commit -qm first && git log --format=%an"])
    if enclosed(ended[0], kind):
        assert [outcome.failed for outcome in ended] == [True] * len(attacks) + [False]
        assert ended[-1].text.startswith("Ada\n")
        assert not list(work.glob(".git/hooks/*"))
        assert (work / ".git/config").read_text() == before
        assert (work / "everlong.toml").read_text() == "[agent]\n"


@pytest.mark.parametrize("kind", TRIED)
def test_in_the_home_folder_itself_only_what_is_visible_is_open(kind: str, home: Path) -> None:
    read, write, profile, secret = commands(
        kind, home, ["ls; cat letters/a.txt", "echo new > letters/b.txt", "echo x > .profile", f"cat {home}/.ssh/id_x"]
    )
    assert "PRIVATE" in read.text
    assert not write.failed
    assert (home / "letters/b.txt").read_text() == "new\n"
    if enclosed(read, kind):
        assert profile.failed
        assert secret.failed
        assert not (home / ".profile").exists()


# --- what it can ------------------------------------------------------------------------------------

#: What people's projects do. Each must work in every kind of sandbox.
WORK = {
    "files": "mkdir -p a/b && echo 1 > a/b/c && mv a/b/c d && ln -s d e && cat e && rm -r a",
    "pipes": "set -o pipefail; seq 1 1000 | sort -rn | head -1 > top || true; grep 1000 top",
    "null": "echo lost > /dev/null && test ! -s /dev/null && head -c 8 /dev/urandom | wc -c",
    "temporary": 'f=$(mktemp) && echo "1" > "$f" && mv "$f" here && test -d "${TMPDIR:-/tmp}"',
    "home": 'mkdir -p ~/.cache/x && echo 1 > ~/.cache/x/y && test "$HOME" != /',
    "python": f"{sys.executable} -c 'import ssl, sqlite3, tempfile; tempfile.mkstemp(); print(1)'",
    "processes": f"{sys.executable} -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1]))'",
    # Without the plugin that opens a socket: there is not even loopback in every kind.
    "pytest": f"echo 'def test_a(tmp_path): assert tmp_path.exists()' > test_a.py && {sys.executable} -m pytest -q . "
    "-p no:rerunfailures",
    "pip": f"{sys.executable} -m pip --version || test $? = 1",
    "background": "(sleep 0.01; echo 1 > late) & wait; cat late",
    "git": "git init -q . && echo 1 > f && git add f && git commit -qm 1 && git mv f g && git commit -qam 2 && git log",
    "make": "printf 'a: b\\n\\tcp b a\\nb:\\n\\techo 1 > b\\n' > Makefile; make -j2 && cat a",
    "compiler": "echo 'int main(){return 0;}' > a.c; command -v cc || exit 0; cc a.c -o a.out && ./a.out",
    "node": "command -v node || exit 0; node -e 'require(`fs`).writeFileSync(`n`, `1`)' && cat n",
    "shell": "diff <(echo 1) <(echo 1) && cat <<< 1",
    "users": 'id && test -n "$(getent passwd root)" && date && locale > /dev/null',
}


@pytest.mark.parametrize("kind", [*TRIED, "off"])
@pytest.mark.parametrize("work", WORK)
def test_work_goes_on_as_ever(kind: str, work: str, home: Path) -> None:
    outcome = command(kind, home / "work", WORK[work])
    assert not outcome.failed, outcome.text


@pytest.mark.parametrize("kind", TRIED)
def test_allowed_folders_are_open_too(kind: str, home: Path) -> None:
    outcome = command(
        kind, home / "work", f"cat {home}/letters/a.txt > {home}/letters/b.txt", allowed=(home / "letters",)
    )
    assert not outcome.failed
    assert (home / "letters/b.txt").read_text() == "PRIVATE"


@pytest.mark.parametrize("kind", OWN_FILES or ["auto"])
def test_a_server_and_its_test_meet_within_one_command(kind: str, tmp_path: Path) -> None:
    program = (
        "import socket, threading; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection("
        "s.getsockname()); s.accept()[0].send(b'from inside'); print(c.recv(99))"
    )
    assert "from inside" in command(kind, tmp_path, f'{sys.executable} -c "{program}"').text


@pytest.mark.parametrize("kind", OWN_FILES or ["auto"])
def test_what_is_called_tmp_is_private_and_stays_between_commands(kind: str) -> None:
    name = f"everlong-test-{os.getpid()}"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        tries = [f"echo 1 > /tmp/{name}", f"cat /tmp/{name} && rm /tmp/{name}"]
        first, second = commands(kind, Path(folder), tries)
    assert not first.failed
    assert second.text.startswith("1\n")
    if enclosed(first, kind):
        assert not Path("/tmp", name).exists()


@pytest.mark.parametrize("kind", TRIED)
def test_a_worktree_can_be_committed_to_and_its_repository_is_kept(kind: str, home: Path) -> None:
    main = home / "main"
    setup = "git init -q . && touch f && git add f && git commit -qm 1 && git worktree add -q ../work/tree"
    main.mkdir()
    assert not command("off", main, setup, allowed=(home / "work",)).failed
    tree = home / "work/tree"
    committed, hook, pointer = commands(
        kind,
        tree,
        ["touch g && git add g && git commit -qm 2", f"touch {main}/.git/hooks/pre-commit", f"touch {main}/f2"],
    )
    assert not committed.failed, committed.text
    if enclosed(committed, kind):
        assert hook.failed
        assert pointer.failed


def test_a_file_that_claims_to_be_of_a_repository_opens_nothing(home: Path, tmp_path: Path) -> None:
    work, own = home / "work", home / "letters/worktrees/x"
    own.mkdir(parents=True)
    (work / ".git").write_text(f"gitdir: {own}\n")
    (own / "commondir").write_text("../..\n")
    (own / "gitdir").write_text("/elsewhere/.git\n")
    assert not any(str(path).startswith(str(home / "letters")) for path in opened(work, tmp_path / "one"))
    (own / "gitdir").write_text(f"{work}/.git\n")
    assert {home / "letters", own} <= opened(work, tmp_path / "other")


def opened(workspace: Path, private: Path) -> set[Path]:
    rules = rules_for([workspace], private, {"HOME": os.environ["HOME"]})
    return {*rules.read, *rules.write}


# --- which one, and what is said of it --------------------------------------------------------------


def test_what_is_asked_for_counts() -> None:
    assert find_sandbox("off") == Sandbox("", "off")
    assert find_sandbox().kind == (WORKING[0] if WORKING else "")
    for kind in KINDS:
        if kind in WORKING:
            assert find_sandbox(kind).kind == kind
        else:
            with pytest.raises(InputError, match=f"sandbox: {kind} does not work here") as error:
                find_sandbox(kind)
            assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="sandbox must be one of auto, off"):
        find_sandbox("soft")


def test_the_tools_description_says_what_a_command_may_not() -> None:
    described = {asked: shell_tool(sandbox=asked).description for asked in map(find_sandbox, ("off", "auto"))}
    assert "There is no sandbox (it is turned off)" in described[find_sandbox("off")]
    said = "writes only in the workspace" if WORKING else "There is no sandbox (none works on this system)"
    assert said in described[find_sandbox()]
    assert said in next(tool for tool in standard_tools() if tool.name == "shell").description
    assert "no network" in Sandbox("namespaces").description
    assert "no network" not in Sandbox("namespaces", network=True).description
    assert "no loopback" in Sandbox("landlock").description


REASONS = [
    ("touch: x: Permission denied", True, "--sandbox off"),
    ("OSError: [Errno 30] Read-only file system: '/usr/x'", True, "--sandbox off"),
    ("cat: /home/me/.ssh/x: No such file or directory", True, "--sandbox off"),
    ("cat: x: No such file or directory", True, ""),
    ("curl: (6) Could not resolve host: example.org", True, "--network"),
    ("connect ECONNREFUSED 127.0.0.1:3000", True, "--network"),
    ("getaddrinfo EAI_AGAIN registry.npmjs.org", False, "--network"),
    ("1 failed: assert 1 == 2", True, ""),
    ("Permission denied" + "x" * 5_000, False, ""),
]


@pytest.mark.parametrize(("output", "failed", "option"), REASONS)
def test_the_sandbox_is_named_where_it_may_be_the_reason(output: str, failed: bool, option: str) -> None:
    said = Sandbox("namespaces").reason(output, failed=failed, homes=("/home/me", ""))
    assert (option in said) if option else not said
    assert not Sandbox("", "off").reason(output, failed=failed, homes=("/home/me",))
    assert "--network" not in Sandbox("namespaces", network=True).reason(output, failed=failed)


def test_the_command_line_for_bubblewrap() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        base = Path(folder).resolve()
        work, private = base / "home/work", base / "private"
        (work / ".git/hooks").mkdir(parents=True)
        (work / ".git/HEAD").touch()
        (base / "home/.ssh").mkdir()
        rules = rules_for([work], private, {"HOME": str(base / "home"), "PATH": "/usr/bin"})
        line = KINDS["bubblewrap"](rules, ("/bin/sh", "-c", "true"), work)
    assert Path(line[0]).name == "bwrap"
    options = " ".join(line)
    assert {"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"} <= set(line)
    kept = f"--ro-bind {work}/.git/hooks {work}/.git/hooks"
    for part in (f"--bind {work} {work}", f"--bind {private}/tmp /tmp", "--ro-bind /usr /usr", kept):
        assert part in options
    assert options.index(f"--bind {work} {work}") < options.index(f"--bind {work}/.git {work}") < options.index(kept)
    assert ".ssh" not in options
    assert line[-3:] == ["/bin/sh", "-c", "true"]
    assert line.index("--remount-ro") > max(at for at, word in enumerate(line) if word in ("--bind", "--ro-bind"))
    assert "--unshare-net" not in KINDS["bubblewrap"](replace(rules, network=True), ("x",), work)


def test_a_program_of_that_name_on_the_path_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert shutil.which("bwrap") == str(fake)
    rules = rules_for([tmp_path], tmp_path, {})
    assert str(fake) != KINDS["bubblewrap"](rules, ("true",), tmp_path)[0]


def test_the_settings_reach_the_tool(tmp_path: Path) -> None:
    config = AgentConfig(workspace=tmp_path, sandbox="off")
    agent = workspace_agent(Engine(MemoryThreads()), ScriptedModel(), config)
    assert any("There is no sandbox (it is turned off)" in tool for tool in asyncio.run(agent.call("t")).tools)
