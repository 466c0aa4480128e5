"""The programs in `examples`: each runs against a scripted provider, is short, and passes two type checkers."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from everlong.llm import ReceivedRequest
from everlong.testing import Answer, ScriptedServer, Window

EXAMPLES = Path(__file__).parents[1] / "examples"
#: Non-blank lines at 100 columns, imports included, that a user may have to write at most.
MOST_LINES = {
    "engine_anthropic.py": 22,
    "fastapi_chat.py": 28,
    "langchain_agent.py": 10,
    "openai_agents_session.py": 8,
    "openai_fit.py": 14,
    "pydantic_ai_agent.py": 10,
}
KEYS = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
CHAT = 24  # notes, each of about a tenth of the smaller window


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda _: Answer(text="Noted."), window=Window(200_000)) as server:
        yield server


def environment(server: ScriptedServer) -> dict[str, str]:
    return {
        **os.environ,
        **KEYS,
        "OPENAI_BASE_URL": server.url,
        "ANTHROPIC_BASE_URL": server.address,
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }


def run(name: str, server: ScriptedServer, folder: Path, said: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", EXAMPLES / name],
        cwd=folder,
        env=environment(server),
        input=said,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6_000:]
    return done.stdout


def questions() -> str:
    """A chat of two windows and more: a fact, then long notes."""
    notes = [f"Note {n}: " + f"the ship number {n} sails north with {n} barrels of salt. " * 1_100 for n in range(CHAT)]
    return "\n".join(["My name is Ottilie Brandt.", *notes, "What is my name?"]) + "\n\n"


def texts(request: ReceivedRequest) -> list[str]:
    return [message.text for message in request.messages]


@pytest.mark.parametrize("name", ["openai_fit.py", "engine_anthropic.py"])
def test_a_chat_of_two_windows_goes_on(name: str, scripted: ScriptedServer, tmp_path: Path) -> None:
    printed = run(name, scripted, tmp_path, questions())
    assert printed.count("Noted.") == CHAT + 2
    asked = scripted.requests
    assert len(asked) == CHAT + 2
    assert max(request.tokens for request in asked) < (128_000 if name == "openai_fit.py" else 200_000)
    assert any("Ottilie Brandt" in text for text in texts(asked[-1]))
    breaks = sum(texts(after)[: len(texts(before))] != texts(before) for before, after in pairwise(asked))
    assert 1 <= breaks <= 6  # four tenths of what can move are new at each


#: The page on which each program stands.
PAGES = {
    "engine_anthropic.py": "how-to/own-client.md",
    "fastapi_chat.py": "how-to/multi-user-backend.md",
    "langchain_agent.py": "adapters/langchain.md",
    "openai_agents_session.py": "adapters/openai-agents.md",
    "openai_fit.py": "how-to/fit.md",
    "pydantic_ai_agent.py": "adapters/pydantic-ai.md",
}
FILES = 3  # of a third of the window each; more does not go into one step of calls
LINES = 1_500


def reads_all(request: ReceivedRequest) -> Answer:
    """Read every file in turn, then tell the code word if it is still to be seen."""
    done = request.number
    if "read_file" not in str(request.tools) or done >= 2 * FILES:
        return Answer(text="PLOVER" if "PLOVER" in str(texts(request)) else "I do not know.")
    return Answer(calls=(("read_file", f'{{"path": "notes{done % FILES}.txt"}}'),))


@pytest.mark.parametrize("name", ["langchain_agent.py", "pydantic_ai_agent.py", "openai_agents_session.py"])
def test_an_agent_works_on_past_its_window(name: str, tmp_path: Path) -> None:
    for number in range(FILES):
        (tmp_path / f"notes{number}.txt").write_text(
            "".join(f"note {number}.{line}: ship {line} sails north with {line} barrels\n" for line in range(LINES)),
            encoding="utf-8",
        )
    with ScriptedServer(reads_all, window=Window(128_000)) as server:
        printed = run(name, server, tmp_path, "The code word is PLOVER. Read all the notes twice, then say it.\n")
    assert printed.strip().removeprefix(">").strip() == "PLOVER"
    assert max(request.tokens for request in server.requests) <= 128_000


def test_each_stands_on_its_page() -> None:
    for name, page in PAGES.items():
        code = re.sub(r'\A""".*?"""\n', "", (EXAMPLES / name).read_text(encoding="utf-8"), flags=re.DOTALL).strip()
        assert code in (EXAMPLES.parent / "docs" / page).read_text(encoding="utf-8"), f"{name} is not in docs/{page}"


@contextmanager
def served(name: str, server: ScriptedServer, folder: Path) -> Iterator[str]:
    """The example's app behind uvicorn; its address."""
    code = f"import uvicorn, {name}; uvicorn.run({name}.app, port=0, log_level='info')"
    variables = {
        **environment(server),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(EXAMPLES), os.environ.get("PYTHONPATH", "")])),
    }
    program = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env=variables, stderr=subprocess.PIPE, text=True
    )
    assert program.stderr is not None
    try:
        for line in program.stderr:
            if found := re.search(r"running on (http://\S+)", line):
                yield found[1]
                break
        else:
            pytest.fail("the server did not start")
    finally:
        program.terminate()
        program.wait(30)
        program.stderr.close()


def test_many_users_have_their_own_threads(scripted: ScriptedServer, tmp_path: Path) -> None:
    import httpx  # noqa: PLC0415 - came with the SDKs

    with served("fastapi_chat", scripted, tmp_path) as address, httpx.Client(base_url=address, timeout=60) as client:
        for user in ("ann", "bob"):
            said = client.post(f"/threads/of-{user}", params={"text": f"I am {user}."}, headers={"user": user})
            assert (said.status_code, said.text) == (200, "Noted.")
        assert client.get("/threads", headers={"user": "ann"}).json() == ["of-ann"]
        other = client.post("/threads/of-ann", params={"text": "hello"}, headers={"user": "bob"})
        assert other.status_code == 404
        assert "ann" not in json.dumps(
            [texts(request) for request in scripted.requests if "bob" in str(texts(request))]
        )


def test_each_is_as_short_as_it_was_promised() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(MOST_LINES)
    for name, most in MOST_LINES.items():
        source = (EXAMPLES / name).read_text(encoding="utf-8")
        formatted = subprocess.run(
            [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "100", "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        code = re.sub(r'\A""".*?"""\n', "", formatted, flags=re.DOTALL)
        lines = [line for line in code.splitlines() if line.strip()]
        assert len(lines) <= most, f"{name}: {len(lines)} lines"


#: What `fit` gives back stands where the SDKs expect their own parameters.
PARAMETERS = """
import anthropic
import openai
from anthropic.types import MessageParam
from langchain_core.messages import AnyMessage, HumanMessage
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam

from everlong import Fitted, fit

chat: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]
openai.OpenAI().chat.completions.create(model="gpt-4o", messages=fit(chat, model="gpt-4o").messages)
items: list[ResponseInputItemParam] = [{"role": "user", "content": "hello"}]
openai.OpenAI().responses.create(model="gpt-4o", input=fit(items, model="gpt-4o").messages)
talk: list[MessageParam] = [{"role": "user", "content": "hello"}]
anthropic.Anthropic().messages.create(model="claude-sonnet-5", max_tokens=9, messages=fit(talk).messages)
fitted: Fitted[AnyMessage] = fit([HumanMessage("hello")])
"""


CHECKERS = {
    "mypy": ("--config-file", "mypy.ini", "--cache-dir", "cache"),
    "basedpyright": ("--level", "error", "--pythonpath", sys.executable),
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_two_type_checkers_accept_them(checker: str, tmp_path: Path) -> None:
    parameters = tmp_path / "parameters.py"
    parameters.write_text(PARAMETERS, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n", encoding="utf-8")
    command = [sys.executable, "-m", checker, *CHECKERS[checker], EXAMPLES, parameters]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3_000:]
