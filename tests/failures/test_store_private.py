"""What is kept of conversations is its owner's alone: 0600 in 0700 whatever the umask, and closed where it was open."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step, Window
from everlong.store import open_store
from tests.cli.chat.talk import SECONDS, environment
from tests.core.build import user
from tests.gateway.processes import ServingProcess
from tests.store.contract.entries import point, talk
from tests.web.running import Page


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home, and a umask that forbids nobody anything."""
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    before = os.umask(0)
    yield made
    os.umask(before)


def scripted(asked: ReceivedRequest) -> Step:
    if "run" in asked.messages[-1].text:
        return Answer(calls=(("shell", '{"command": "seq 1 60000"}'),))
    return Answer(text="Yes.")


def everlong(home: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "everlong", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=home,
        env=environment(home) | {"XDG_DATA_HOME": str(home / "data"), "XDG_CACHE_HOME": str(home / "cache")},
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def open_to_others(folder: Path) -> list[str]:
    return [
        f"{stat.filemode(path.lstat().st_mode)} {path.relative_to(folder)}"
        for path in (folder, *folder.rglob("*"))
        if path.lstat().st_mode & 0o077
    ]


def test_nothing_that_a_session_of_all_commands_writes_can_be_read_by_others(home: Path) -> None:
    with ScriptedServer(scripted, window=Window(16_000, told=True)) as server:
        for store in ([], ["--store", "jsonl:talks/of/mine"], ["--store", "sqlite:///own/threads.db"]):
            everlong(home, "chat", "-m", "run it", "--upstream", server.url, "--yes", *store)
        (listed,) = json.loads(everlong(home, "sessions", "list", "--json"))
        everlong(home, "sessions", "export", listed["id"], "-o", "out.json")
        everlong(home, "inspect", "out.json", "--html", "map.html")
        everlong(home, "fit", "out.json", "-o", "less.json")
        everlong(home, "sessions", "import", "out.json", "--store", "jsonl:imported")
        with ServingProcess("--upstream", server.url, folder=home) as serving:
            page = Page(serving.port)
            page.do("POST", "/everlong/api/sources", {"url": server.url, "key": "sk-secret", "name": "mine"})
            page.say(page.thread(model="mine/scripted"), "Are you there?")
            assert open_to_others(home) == [], "while it runs, with SQLite's own files"
    names = {path.name for path in home.rglob("*")}
    assert names >= {"threads.db", "sources.json", "out.json", "map.html", "less.json", ".everlong", ".gitignore"}
    assert len(list(home.rglob("*.events.jsonl"))) == 1
    assert len(list(home.rglob("output/*.txt"))) == 3
    assert open_to_others(home) == []


@pytest.mark.parametrize("kind", ["sqlite:///{}/threads.db", "jsonl:{}/sessions"])
def test_files_that_were_open_to_others_are_closed_and_a_line_says_so(
    home: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = kind.format(home)
    with open_store(url) as store:
        store.create("t")
        store.append("t", [*talk(2), point(2)])
        for path in home.rglob("*"):
            path.chmod(0o777 if path.is_dir() else 0o666)
        with open_store(url) as again:
            assert again.thread("t").length == 5
            assert again.warnings == ()
        assert open_to_others(home) == []
    (line, *_) = caplog.messages
    assert line.endswith("was readable by other users; it is now private")
    assert len(caplog.messages) <= 3
    caplog.clear()
    with open_store(url) as store:
        store.append("t", [user("quiet")])
    assert caplog.messages == []


def test_a_folder_with_other_things_in_it_stays_as_it_is_and_its_sessions_are_closed(home: Path) -> None:
    project = home / "project"
    project.mkdir(mode=0o755)
    (project / "main.py").write_text("pass\n", encoding="utf-8")
    (project / "main.py").chmod(0o644)
    with open_store(f"jsonl:{project}") as store:
        store.create("t")
        store.append("t", [user("hello")])
    for path in project.glob("*.jsonl"):
        path.chmod(0o644)
    with open_store(f"jsonl:{project}") as store:
        assert store.thread("t").messages == 1
    assert [line.split()[1] for line in open_to_others(home)] == ["project", "project/main.py"]


def test_an_output_file_that_was_open_to_others_is_closed_before_it_is_written(home: Path) -> None:
    (home / "talk.json").write_text(json.dumps([{"role": "user", "content": "hello"}]), encoding="utf-8")
    (home / "talk.json").chmod(0o600)
    out = home / "out.json"
    out.touch(mode=0o666)
    everlong(home, "fit", "talk.json", "-o", "out.json")
    assert open_to_others(home) == []
    shown = everlong(home, "fit", "talk.json", "-o", "/dev/stdout")
    assert shown.startswith(out.read_text(encoding="utf-8"))
