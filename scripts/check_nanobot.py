"""Proves with the real nanobot that nanobot and Everlong can continue each other's sessions.

    python scripts/check_nanobot.py [--version 0.3.5] [--folder DIR]

Installs `nanobot-ai` into a separate environment, kept in the folder or in the user's cache. Then nanobot writes a
session; Everlong continues it with messages, system text, a point and a pin; nanobot loads it, sees the summary, sends
nothing of Everlong's own, continues and saves; Everlong reads everything back; nanobot writes its own summary; Everlong
reads it as a point, withdraws it and continues; nanobot reads that too.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from everlong.core import CallId, Message, Point, Role, Text, ToolCall, ToolResult, Withdrawal
from everlong.store import JsonlThreads

KEY = "telegram:42/家"
SYSTEM = Message(Role.SYSTEM, (Text("You are ours alone."),))
OURS = (
    Message(Role.USER, (Text("Which port?"),)),
    Message(Role.ASSISTANT, (ToolCall(CallId("c2"), "read_file", '{"path": "a.toml"}'),), origin="anthropic"),
    Message(Role.TOOL, (ToolResult(CallId("c2"), (Text("port = 8080\n" * 400),), failed=True),), origin="anthropic"),
    Message(Role.ASSISTANT, (Text("8080。"),)),
)
SUMMARY = Message(Role.USER, (Text("[summary] The lamp is blue."),))
OWN_SUMMARY = "The port is 8080, says nanobot."

#: Runs inside nanobot's environment: one action from the command line; the result is JSON.
PROBE = r"""
import inspect, json, sys
from pathlib import Path
from nanobot.session.manager import SessionManager
action, root, key = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
more = {"sessions_root": root / "sessions"} if "sessions_root" in inspect.signature(SessionManager).parameters else {}
manager = SessionManager(root / "workspace", **more)
session = manager.get_or_create(key)
before = len(session.messages)
history = session.get_history()
if action == "write":
    session.add_message("user", "The lamp is blue.", media=["/pictures/lamp.png"])
    session.add_message("assistant", "", tool_calls=[
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}])
    session.add_message("tool", "blue\u2028indeed", tool_call_id="c1", name="look")
    session.add_message("assistant", "Blue it is.", reasoning_content="hm")
    session.metadata["title"] = "Lamps"
    manager.save(session)
elif action == "continue":
    session.add_message("user", "And the host?")
    session.add_message("assistant", "localhost")
    manager.save(session)
elif action == "summarise":
    session.metadata["_last_summary"] = {"text": sys.argv[4], "last_active": session.updated_at.isoformat()}
    session.last_consolidated = len(session.messages) - 2
    manager.save(session)
print(json.dumps({
    "folder": str(manager.sessions_dir), "before": before, "messages": len(session.messages),
    "history": history, "summary": session.metadata.get("_last_summary"), "consolidated": session.last_consolidated,
    "listed": [[item["key"], item.get("title")] for item in manager.list_sessions()],
}))
"""


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--version", default="", help="of nanobot-ai; the newest if not given")
    options.add_argument("--folder", type=Path, help="where its environment is kept; else in the user's cache")
    chosen = options.parse_args()
    python, version = environment(chosen.folder or cache(), chosen.version)
    root = Path(tempfile.mkdtemp(prefix="everlong-nanobot-"))
    try:
        prove(Nanobot(python, root))
    finally:
        shutil.rmtree(root)
    print(f"nanobot-ai {version} and Everlong continue each other's sessions.")
    return 0


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everlong" / "nanobot"


def environment(folder: Path, version: str) -> tuple[str, str]:
    """Return the interpreter of an environment with nanobot, and nanobot's version."""
    place = folder / (version or "newest")
    python = str(place / ("Scripts" if os.name == "nt" else "bin") / "python")
    if not Path(python).exists():
        venv.create(place, with_pip=True)
    asked = f"nanobot-ai=={version}" if version else "nanobot-ai"
    subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", asked], check=True)
    told = "import importlib.metadata as m; print(m.version('nanobot-ai'))"
    found = subprocess.run([python, "-c", told], check=True, capture_output=True, text=True)
    return python, found.stdout.strip()


class Nanobot:
    """The real program; each action runs in a new process."""

    def __init__(self, python: str, root: Path) -> None:
        self._python, self._root = python, root

    def do(self, action: str, *more: str) -> dict[str, Any]:
        command = [self._python, "-c", PROBE, action, str(self._root), KEY, *more]
        home = {"HOME": str(self._root), "USERPROFILE": str(self._root)}
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | home)
        if done.returncode:
            raise SystemExit(f"nanobot failed at {action!r}:\n{done.stderr}")
        outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return outcome


def check(claim: str, held: bool) -> None:
    print(f"{'yes' if held else 'NO '}  {claim}")
    if not held:
        raise SystemExit(1)


def texts(history: list[dict[str, Any]]) -> str:
    return json.dumps(history, ensure_ascii=False)


def prove(nanobot: Nanobot) -> None:
    folder = nanobot.do("write")["folder"]
    with JsonlThreads(folder) as store:
        first = list(store.read(KEY))
        check("nanobot's session is read: 4 messages, its title", [row.order for row in first] == [0, 1, 2, 3])
        check("its title is the thread's", store.thread(KEY).title == "Lamps")
        added = store.append(KEY, [SYSTEM, *OURS])
        point = store.append(KEY, [Point(boundary=4, summary=(SUMMARY,), tokens_before=9, tokens_after=3)])[0]
        pin = store.pin(KEY, 0)
        check("nothing was wrong with the file", store.warnings == ())
    continued_by_nanobot(nanobot, len(first))
    with JsonlThreads(folder) as store:
        rows = list(store.read(KEY))
        check("what was there is unchanged, points included", rows[:10] == [*first, *added, point])
        said = [row.entry.text for row in rows[10:] if isinstance(row.entry, Message)]
        check("what nanobot added is there", said == ["And the host?", "localhost"])
        check("the point stands, the pin holds", store.open(KEY).point == point and store.pins(KEY) == (pin,))
        check("nothing was wrong with the file", store.warnings == ())
    summarised_by_nanobot(nanobot, folder)


def continued_by_nanobot(nanobot: Nanobot, covered: int) -> None:
    seen = nanobot.do("continue")
    check("nanobot loads every line", seen["before"] == covered + 1 + len(OURS) + 1)
    check("nanobot goes on with our summary", seen["summary"]["text"] == SUMMARY.text)
    check("nanobot replays only what follows the boundary", "The lamp is blue." not in texts(seen["history"]))
    check("… and all of it", [said["role"] for said in seen["history"]] == ["user", "assistant", "tool", "assistant"])
    check("nanobot never sends our system text", "ours alone" not in texts(seen["history"]))
    check("nanobot lists it by its key", seen["listed"] == [[KEY, "Lamps"]])


def summarised_by_nanobot(nanobot: Nanobot, folder: str) -> None:
    nanobot.do("summarise", OWN_SUMMARY)
    with JsonlThreads(folder) as store:
        own = store.open(KEY).point
        check("nanobot's own summary is a point", own is not None and OWN_SUMMARY in str(own.entry))
        rows = list(store.read(KEY))
        check("it covers what nanobot says", isinstance(rows[-1].entry, Point) and rows[-1].entry.boundary == 10)
        store.append(KEY, [Withdrawal(rows[-1].order)])
        check("withdrawn, the one before stands again", store.open(KEY).point == rows[9])
    seen = nanobot.do("look")
    check("nanobot is back at that summary too", seen["summary"]["text"] == SUMMARY.text)
    (index,) = Path(folder).glob(".everlong-index.db")
    with JsonlThreads(folder) as store:
        before = list(store.read(KEY)), store.points(KEY), store.pins(KEY)
    index.unlink()
    with JsonlThreads(folder) as store:
        after = list(store.read(KEY)), store.points(KEY), store.pins(KEY)
    check("without the index everything reads back the same", before == after)


if __name__ == "__main__":
    sys.exit(main())
