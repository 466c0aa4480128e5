"""The documents as presets: the same steps, each document's settings and marks."""

import ast
import asyncio
import inspect
import json
import sys
from pathlib import Path

import pytest

from everlong import count, fit
from everlong.agent import AgentConfig
from everlong.agent.config import load_config
from everlong.compress import PRESET_OPTIONS, PRESETS, Preset, presets
from everlong.core import History
from everlong.engine import Call, Engine, Finished, Settings, converse
from everlong.errors import InputError
from everlong.llm import Answer, HttpModel, ReceivedRequest, ScriptedServer, in_turn
from everlong.store import open_store
from everlong.wire import problems
from tests.core.build import user
from tests.engine.talking import over_http

SYSTEM = {
    "role": "system",
    "content": "You are nanobot.\n\n## Memory\nThe owner is called 林老板 and likes short answers.",
}


def tool_rounds(rounds: int, characters: int = 9_000) -> list[dict[str, object]]:
    """A user asks once; the agent uses tools, one call a round."""
    messages: list[dict[str, object]] = [SYSTEM, {"role": "user", "content": "请检查所有服务的日志。"}]
    for n in range(rounds):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"logs/service_{n}.log"})}
        messages.append(
            {
                "role": "assistant",
                "content": f"Reading {n}.",
                "reasoning_content": "thinking " * 400,
                "tool_calls": [{"id": f"call_{n}", "type": "function", "function": function}],
            }
        )
        line = f"10:00:{n % 60:02} INFO service {n} answered"
        messages.append(
            {
                "role": "tool",
                "tool_call_id": f"call_{n}",
                "name": "read_file",
                "content": (line + "\n") * (characters // len(line)),
            }
        )
    return messages


# --- N1: nanobot ----------------------------------------------------------------------------------


DEFAULTS = {
    "context_compression": True,
    "context_window_override": None,
    "tool_result_soft_limit": 0.3,
    "tool_result_hard_limit": 0.5,
    "context_reserve_ratio": 0.15,
    "compression_model": None,
    "enable_history_summarization": False,
    "max_user_message_chars": 30_000,
    "max_assistant_message_chars": 20_000,
}


def nanobot_config(folder: Path, **defaults: object) -> AgentConfig:
    """What the agent makes of nanobot's own file."""
    file = folder / "config.json"
    file.write_text(json.dumps({"agents": {"defaults": defaults}}), "utf-8")
    return load_config({}, file=file)


def test_N1_1_4_every_field_has_the_documents_name_and_default(tmp_path: Path) -> None:
    written, old = nanobot_config(tmp_path, **DEFAULTS), nanobot_config(tmp_path)
    assert written == old
    assert (old.engine.preset, old.engine.mode, old.engine.summarises, old.summary_model) == (
        "nanobot",
        "auto",
        False,
        "",
    )
    limits = [name for name in DEFAULTS if name in PRESET_OPTIONS]
    assert len(limits) == 5
    assert {name: old.engine.option(name) for name in limits} == {name: DEFAULTS[name] for name in limits}


def test_N1_1_4_an_old_file_loads_unchanged_and_camel_case_is_understood(tmp_path: Path) -> None:
    old = {"workspace": "~/.nanobot/workspace", "model": "anthropic/claude-opus-4-5", "maxToolIterations": 20}
    assert nanobot_config(tmp_path, **old).engine == nanobot_config(tmp_path).engine
    assert nanobot_config(tmp_path, contextWindowOverride=64_000).engine.window == 64_000


def test_N1_1_4_null_is_the_default(tmp_path: Path) -> None:
    assert nanobot_config(tmp_path, **dict.fromkeys(DEFAULTS)) == nanobot_config(tmp_path)


WRONG = [
    ({"tool_result_soft_limit": 3}, "tool_result_soft_limit must be a share from 0 to 1, not 3"),
    ({"toolResultSoftLimit": "much"}, "toolResultSoftLimit must be a number, not 'much'"),
    ({"contextWindowOverride": -1}, "contextWindowOverride must be a number of tokens, not -1"),
    ({"max_user_message_chars": "many"}, "max_user_message_chars must be an integer, not 'many'"),
    ({"context_compression": "false"}, "context_compression must be true or false, not 'false'"),
    ({"contextPreset": "nano"}, "unknown preset 'nano'"),
]


@pytest.mark.parametrize(("wrong", "line"), WRONG, ids=str)
def test_N1_1_4_impossible_settings_are_refused_in_words(wrong: dict[str, object], line: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=line):
        nanobot_config(tmp_path, **wrong)


def test_N1_1_4_off_is_byte_identical(tmp_path: Path) -> None:
    assert nanobot_config(tmp_path, contextCompression=False).engine.untouched
    messages = tool_rounds(30)
    fitted = fit(messages, model="gpt-4o", budget=2_000, preset="off")
    assert json.dumps(fitted.messages) == json.dumps(messages)
    assert fitted.edits == ()


def test_N1_10_a_memory_block_in_the_prompt_is_untouched() -> None:
    fitted = fit(tool_rounds(40), model="gpt-4o", budget=6_000, preset="nanobot")
    assert fitted.messages[0] == SYSTEM
    assert 3_000 < fitted.tokens <= 6_000


def test_N1_10_the_presets_need_nothing_that_the_core_does_not_have() -> None:
    needed = {"everlong", "msgspec", "splintr", *sys.stdlib_module_names}
    for path in Path(inspect.getfile(presets)).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= needed, path.name
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").partition(".")[0] in needed, path.name


# --- N3: nanobot V3.1 -----------------------------------------------------------------------------


def test_N3_12_two_settings_only_and_off_is_unchanged_behaviour() -> None:
    messages = tool_rounds(30)
    assert fit(messages, model="gpt-4o", budget=1_000, preset="off").messages == messages
    wide = fit(messages, model="gpt-4o", budget=1_000_000, preset="nanobot-v3")
    assert wide.messages == messages


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_N3_13_no_preset_calls_a_model(name: str) -> None:
    """All local: the whole path runs in a pure function, and no layer below the engine may import a network library."""
    fitted = fit(tool_rounds(10), model="gpt-4o", budget=3_000, preset=name)
    assert fitted.tokens <= 3_000


# --- CS: context subsystem ------------------------------------------------------------------------


class Table:
    """A Provider over a table of one's own."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []

    async def load(self, thread: str) -> list[dict[str, str]]:
        return [{"role": row["role"], "content": row["content"]} for row in self.rows if row["chat"] == thread]

    def add(self, role: str, content: str) -> None:
        self.rows.append({"chat": "7", "role": role, "content": content})


def last_three(history: History, target: int) -> History:
    return history[-3:]


def dated(system: History, history: History, now: History) -> History:
    return (*system, *history, user("It is Friday."), *now)


def worker(table: Table, preset: Preset, questions: int) -> list[ReceivedRequest]:
    """The document's worker: load, compress, assemble, ask, and keep both in the table."""
    with ScriptedServer(in_turn([Answer(text=f"answer {n}") for n in range(questions)])) as server:

        async def run(model: HttpModel) -> None:
            engine = Engine(open_store("memory:"), settings=Settings(preset=preset))
            for n in range(questions):
                table.add("user", f"question {n}")
                await engine.follow("7", table)
                replies = [reply async for reply in converse(engine, model, "7", Call(model="gpt-4o"))]
                assert isinstance(replies[-1], Finished)
                table.add("assistant", replies[-1].message.text)

        over_http(server, run)
        return server.requests


def test_CS_1_the_three_parts_are_replaceable_in_the_engine() -> None:
    table = Table()
    table.add("system", "Be brief.")
    requests = worker(table, Preset(name="mine", compressor=last_three, assembler=dated), 4)
    assert len(table.rows) == 9
    assert [message.text for message in requests[-1].messages] == [
        "Be brief.",
        "question 2",
        "answer 2",
        "It is Friday.",
        "question 3",
    ]
    assert problems("openai-chat", json.loads(requests[-1].body)) == []


def test_CS_1_a_provider_is_read_on_from_where_it_was_and_never_against_what_was_read() -> None:
    async def run() -> None:
        engine, table = Engine(open_store("memory:")), Table()
        table.add("user", "one")
        assert [len(await engine.follow("7", table)) for _ in range(2)] == [1, 0]
        table.add("assistant", "two")
        assert [row.entry.text for row in await engine.follow("7", table)] == ["two"]
        table.rows[0]["content"] = "another"
        with pytest.raises(InputError, match="earlier messages of '7' have changed"):
            await engine.follow("7", table)

    asyncio.run(run())


def test_CS_1_a_preset_of_ones_own_is_known_by_its_name() -> None:
    settings = Settings(preset=Preset(name="mine", assembler=dated))
    assert settings.rules.every_call
    assert settings.for_thread('{"preset": "mine", "window": 9000}').preset is settings.preset
    assert settings.for_thread('{"preset": "simple"}').rules.name == "simple"


def test_CS_5_the_assembler_puts_system_history_and_what_is_asked_together() -> None:
    messages = [
        SYSTEM,
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    fitted = fit(messages, model="gpt-4o", preset=Preset(name="mine", assembler=dated))
    assert [message["content"] for message in fitted.messages] == [SYSTEM["content"], "a", "b", "It is Friday.", "c"]


def test_CS_7_window_and_characters_come_from_the_environment() -> None:
    settings = Settings.from_environment(
        {
            "EVERLONG_PRESET": "simple",
            "EVERLONG_HISTORY_WINDOW": "3",
            "EVERLONG_MAX_CHARS_PER_MESSAGE": "500",
        }
    )
    messages = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "x" * 900} for n in range(9)]
    fitted = fit(messages, model="gpt-4o", preset=settings.rules)
    assert [str(message["content"])[0] for message in fitted.messages] == ["6", "7", "8"]
    assert all(len(str(message["content"])) <= 500 for message in fitted.messages[:-1])
    with pytest.raises(InputError, match="history_window must be an integer, not 'many'"):
        Settings.from_environment({"EVERLONG_PRESET": "simple", "EVERLONG_HISTORY_WINDOW": "many"})


def test_CS_4_the_simple_preset_keeps_the_last_twelve_messages_of_four_thousand_characters() -> None:
    messages = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "x" * 6_000} for n in range(31)]
    sent = [
        str(message["content"]) for message in fit(messages, model="gpt-4o", budget=100_000, preset="simple").messages
    ]
    assert [int(text.partition(" ")[0]) for text in sent] == list(range(18, 31))
    assert all(3_900 < len(text) <= 4_000 for text in sent[:-1])
    assert fit([], model="gpt-4o", preset="simple").messages == []


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_fits_and_is_valid(name: str) -> None:
    messages = [*tool_rounds(25), {"role": "assistant", "content": "done"}, {"role": "user", "content": "and now?"}]
    fitted = fit(messages, model="gpt-4o", budget=5_000, preset=name)
    assert count(fitted.messages, model="gpt-4o") == fitted.tokens <= 5_000
    assert problems("openai-chat", {"messages": fitted.messages}) == []
    assert fitted.messages[-1] == messages[-1]
