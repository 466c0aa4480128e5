"""`everlong mcp` through the real MCP client: the user's sessions of every program can be found, recalled and read."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from everlong.cli.mcp.answers import LONGEST, list_text, map_text, recall_text, search_text, session_text
from everlong.cli.mcp.shelf import PROGRAMS, Shelf, places_of
from everlong.core import Message, Role, Text, ToolResult
from everlong.errors import InputError
from everlong.store import open_store
from tests.cli.running import everlong
from tests.wire.sessions.samples import CLAUDE, CODEX, NANOBOT, PI_3, claude_user

FILES = {
    "claude-code": (".claude/projects/-w/0a1b.jsonl", CLAUDE),
    "codex": (".codex/sessions/2026/03/01/rollout-2026-03-01.jsonl", CODEX),
    "pi": (".pi/agent/sessions/--w--/2026_s.jsonl", PI_3),
    "nanobot": (".nanobot/sessions/0123/Y2xpOmRpcmVjdA.jsonl", NANOBOT),
}
KEYS = {name: f"{name}:{Path(file).stem}" for name, (file, _) in FILES.items()}
SECRET = "sk-ant-api03-" + "Qm7xT2pVb9Lk4Rz8Wn1Yc6Df3Gh5Js0A" * 3 + "AA"


def write_lines(path: Path, records: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user who has worked with every program, and with our own."""
    for file, records in FILES.values():
        write_lines(tmp_path / file, list(records))
    with open_store(str(tmp_path / "own.db")) as store:
        store.create("harbour", title="The harbour")
        said = [
            Message(Role.USER, (Text("Which crane lifts the containers at pier nine?"),)),
            Message(Role.ASSISTANT, (Text(f"The blue crane, Ottilie. 蓝色的起重机。 The key is {SECRET} for now."),)),
        ]
        store.append("harbour", said)
    return tmp_path


def variables(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "EVERLONG_STORE": str(home / "own.db")}


def shelf(home: Path, **moved: str) -> Shelf:
    return Shelf(places_of(home, moved, PROGRAMS), open_store(str(home / "own.db")))


def with_client(home: Path, work: Callable[[Client], Awaitable[None]], *options: str) -> None:
    """Let a client start the program and work with it."""

    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "everlong", "mcp", *options],
            env={**os.environ, **variables(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        async with Client(stdio_client(command), read_timeout_seconds=60) as client:
            await work(client)

    asyncio.run(run())


def text_of(result: Any) -> str:
    assert not result.is_error, result
    (part,) = result.content
    return str(part.text)


def test_a_client_finds_recalls_and_reads_the_sessions_of_every_program(home: Path) -> None:
    async def work(client: Client) -> None:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(offered) == {"list_sessions", "search", "recall", "read_session", "token_map"}
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in offered.values())
        listed = text_of(await client.call_tool("list_sessions", {}))
        assert all(key in listed for key in (*KEYS.values(), "everlong:harbour"))
        found = text_of(await client.call_tool("search", {"query": "crane at the pier"}))
        assert "everlong:harbour" in found
        assert "Ottilie" in found
        brought = text_of(await client.call_tool("recall", {"session": "everlong:harbour", "what": "起重机"}))
        assert "Ottilie" in brought
        assert SECRET not in found + brought
        weighed = text_of(await client.call_tool("token_map", {"session": KEYS["codex"]}))
        assert "tokens" in weighed
        assert "largest messages" in weighed
        for key in KEYS.values():
            assert key in text_of(await client.call_tool("read_session", {"session": key, "limit": 5}))
        resources = {resource.name: resource for resource in (await client.list_resources()).resources}
        assert set(resources) == {*KEYS.values(), "everlong:harbour"}
        content = (await client.read_resource(resources["everlong:harbour"].uri)).contents[0]
        assert "pier nine" in content.text  # type: ignore[union-attr]
        wrong = await client.call_tool("read_session", {"session": "codex:none"})
        assert wrong.is_error
        assert "no session 'codex:none'" in wrong.content[0].text  # type: ignore[union-attr]

    before = {path: path.stat().st_mtime_ns for path in home.rglob("*") if path.is_file() and "own.db" not in path.name}
    with_client(home, work)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_only_the_programs_that_are_named_are_shown(home: Path) -> None:
    async def work(client: Client) -> None:
        listed = text_of(await client.call_tool("list_sessions", {}))
        assert KEYS["pi"] in listed
        assert "1 session" in listed

    with_client(home, work, "--program", "pi")
    assert "'nonesuch' is not one of" in everlong("mcp", "--program", "nonesuch").err


@pytest.mark.parametrize(
    ("program", "variable", "folder"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "projects/-w"),
        ("codex", "CODEX_HOME", "sessions/2026"),
        ("pi", "PI_CODING_AGENT_DIR", "sessions/--w--"),
    ],
)
def test_a_program_is_found_where_its_own_variable_says(
    program: str, variable: str, folder: str, home: Path, tmp_path: Path
) -> None:
    write_lines(tmp_path / "moved" / folder / "elsewhere.jsonl", list(FILES[program][1]))
    found = {one.key for one in shelf(home, **{variable: str(tmp_path / "moved")}).sessions(program)}
    assert found == {f"{program}:elsewhere"}


def test_a_session_is_read_page_by_page_to_its_end(home: Path) -> None:
    long = [claude_user(f"u{n}", f"u{n - 1}" if n else None, f"line {n} of the log") for n in range(90)]
    write_lines(home / ".claude/projects/-w/long.jsonl", long)
    books, start, seen = shelf(home), 0, []
    for _ in range(90):
        text = session_text(books, "claude-code:long", start, 20)
        seen += [line for line in text.splitlines() if line.startswith("line ")]
        if "to read on: start=" not in text:
            break
        start = int(text.rpartition("to read on: start=")[2])
    assert seen == [f"line {n} of the log" for n in range(90)]


def test_answers_are_bounded_whatever_a_session_holds(home: Path) -> None:
    huge = Message(Role.USER, (Text("needle " + "hay " * 100_000),))
    with open_store(str(home / "own.db")) as store:
        store.create("huge")
        store.append("huge", [huge] * 12)
    books = shelf(home)
    for text in (
        session_text(books, "everlong:huge", 0, 200),
        search_text(books, "needle", "everlong:huge", limit=50),
        recall_text(books, "everlong:huge", "needle", 50),
        map_text(books, "everlong:huge"),
        list_text(books),
    ):
        assert len(text) < 2 * LONGEST
    assert "more characters" in session_text(books, "everlong:huge", 0, 1)


def test_secrets_are_taken_out_of_every_answer(home: Path) -> None:
    with open_store(str(home / "own.db")) as store:
        store.create("keys", title=f"Use {SECRET}")
        store.append("keys", [Message(Role.TOOL, (ToolResult("c", (Text(f"export ANTHROPIC_API_KEY={SECRET}"),)),))])
    books = shelf(home)
    for text in (
        list_text(books),
        session_text(books, "everlong:keys"),
        search_text(books, "ANTHROPIC_API_KEY export"),
        recall_text(books, "everlong:keys", "export"),
        map_text(books, "everlong:keys"),
    ):
        assert SECRET not in text


def test_a_session_that_grew_is_read_as_it_is_now(home: Path) -> None:
    books = shelf(home)
    path = home / ".claude/projects/-w/grows.jsonl"
    write_lines(path, [claude_user("u0", None, "the first line")])
    assert "the second line" not in session_text(books, "claude-code:grows")
    write_lines(path, [claude_user("u0", None, "the first line"), claude_user("u1", "u0", "the second line")])
    assert "the second line" in session_text(books, "claude-code:grows")
    assert "claude-code:grows" in search_text(books, "second line")


def test_what_is_no_session_is_said_and_breaks_nothing(home: Path) -> None:
    (home / ".codex/sessions/broken.jsonl").write_bytes(b"\x00\xff not json")
    (home / ".codex/sessions/link.jsonl").symlink_to("/etc/passwd")
    books = shelf(home)
    listed = list_text(books, "codex")
    assert "codex:broken" in listed
    assert "codex:link" not in listed
    assert "everlong:harbour" in search_text(books, "crane")
    with pytest.raises(InputError):
        session_text(books, "codex:broken")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda books: list_text(books, "word"), "program 'word' is not one of everlong"),
        (lambda books: list_text(books, limit=0), "limit must be between 1 and 100"),
        (lambda books: session_text(books, "everlong:harbour", -1), "start must be at least 0"),
        (lambda books: session_text(books, "everlong:nonesuch"), "no session 'everlong:nonesuch'"),
        (lambda books: session_text(books, "codex:../../etc/passwd"), "no session"),
        (lambda books: search_text(books, "  "), "query is empty"),
        (lambda books: recall_text(books, "everlong:harbour", " "), "nothing to recall"),
    ],
)
def test_a_wrong_argument_is_one_line(call: Callable[[Shelf], str], said: str, home: Path) -> None:
    with pytest.raises(InputError, match=said.replace(".", r"\.")):
        call(shelf(home))


def test_a_search_says_how_much_it_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everlong.cli.mcp.shelf.MOST_SEARCHED", 2)
    assert "searched the newest 3 of 5 sessions" in search_text(shelf(home), "hello")
