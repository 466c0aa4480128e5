"""The sample conversation keeps what the documents and demonstrations rely on."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from splintr import Tokenizer

from everlong.core import Image, Message, Reasoning, Role, ToolCall, ToolResult, pairs_of, steps_of
from everlong.wire import OPENAI_CHAT
from everlong.wire.formats.openai_chat.messages import write_message

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "src" / "everlong" / "engine" / "sample.json"
TOOLS = {"read_file", "edit_file", "run_tests", "search_code", "http_get", "tail_log", "sql_query"}


@pytest.fixture(scope="module")
def body() -> dict[str, Any]:
    return json.loads(SAMPLE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def history(body: dict[str, Any]) -> tuple[Message, ...]:
    return tuple(OPENAI_CHAT.read_message(raw) for raw in body["messages"])


@pytest.fixture(scope="module")
def answered(history: tuple[Message, ...]) -> list[tuple[ToolCall, ToolResult]]:
    """Every call with its result, in order."""
    both = []
    for pair in pairs_of(history):
        call, result = (history[at].parts[part] for at, part in (pair.call, pair.result))
        assert isinstance(call, ToolCall)
        assert isinstance(result, ToolResult)
        both.append((call, result))
    return both


def users(history: tuple[Message, ...]) -> list[Message]:
    return [message for message in history if message.role is Role.USER]


def is_chinese(text: str) -> bool:
    return len(re.findall(r"[\u4e00-\u9fff]", text)) > len(re.findall(r"[A-Za-z]", text))


def test_the_file_is_what_the_generator_writes(tmp_path: Path) -> None:
    written = tmp_path / "sample.json"
    subprocess.run([sys.executable, ROOT / "scripts" / "make_sample.py", written], check=True, capture_output=True)
    assert written.read_bytes() == SAMPLE.read_bytes()


def test_size(body: dict[str, Any]) -> None:
    """Long enough that a 32k or 16k budget forces real cuts, small enough to ship."""
    encode = Tokenizer.from_pretrained("o200k_base").encode_ordinary
    texts = [json.dumps(body["tools"], ensure_ascii=False)]
    for message in body["messages"]:
        content = message["content"] or ""
        texts += [content] if isinstance(content, str) else [block.get("text", "") for block in content]
        texts.append(message.get("reasoning_content", ""))
        texts += [call["function"]["name"] + call["function"]["arguments"] for call in message.get("tool_calls", [])]
    assert 45_000 <= sum(len(encode(text)) for text in texts) <= 60_000
    assert SAMPLE.stat().st_size < 300_000


def test_tool_results_are_small_and_large(answered: list[tuple[ToolCall, ToolResult]]) -> None:
    encode = Tokenizer.from_pretrained("o200k_base").encode_ordinary
    sizes = sorted(len(encode(result.text)) for _, result in answered)
    assert 20 <= sizes[0] < 40
    assert 2_000 < sizes[-1] < 2_600


def test_every_message_survives_parsing(body: dict[str, Any], history: tuple[Message, ...]) -> None:
    assert [out for message in history for out in write_message(message)] == body["messages"]


def test_every_call_is_answered_right_after_it(body: dict[str, Any], history: tuple[Message, ...]) -> None:
    messages = body["messages"]
    for at, message in enumerate(messages):
        calls = [call["id"] for call in message.get("tool_calls", [])]
        answers = [answer.get("tool_call_id") for answer in messages[at + 1 : at + 1 + len(calls)]]
        assert answers == calls
    results = sum(len(message.results) for message in history)
    assert len(pairs_of(history)) == results == sum(len(message.calls) for message in history)


def test_call_ids_are_unique_and_arguments_fit_the_schemas(body: dict[str, Any], history: tuple[Message, ...]) -> None:
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}
    calls = [call for message in history for call in message.calls]
    assert len({call.id for call in calls}) == len(calls)
    for call in calls:
        given, schema = set(json.loads(call.arguments)), schemas[call.name]
        assert set(schema.get("required", ())) <= given <= set(schema["properties"])


def test_turns_and_languages(history: tuple[Message, ...]) -> None:
    turns = users(history)
    chinese = [turn for turn in turns if is_chinese(turn.text)]
    assert 24 <= len(turns) <= 30
    assert 0.4 <= len(chinese) / len(turns) <= 0.6
    assert {turn.name for turn in chinese} == {"lin"}
    assert {turn.name for turn in turns} == {"lin", "robin"}


def test_answers_come_in_the_language_of_the_question(history: tuple[Message, ...]) -> None:
    asked = ""
    for message in history:
        if message.role is Role.USER:
            asked = message.text
        elif message.role is Role.ASSISTANT and message.text and not message.calls:
            assert is_chinese(message.text) == is_chinese(asked), message.text


def test_the_last_message_is_an_open_question_about_the_beginning(history: tuple[Message, ...]) -> None:
    assert history[-1].role is Role.USER
    for asked in ("取整规则", "工单没关", "预算", "周六"):
        assert asked in history[-1].text


@pytest.mark.parametrize(
    ("words", "turn"),
    [
        ("Never touch the `orders` table directly", 1),
        ("外部支出一共 ¥3,200", 2),
        ("周六不要上线任何东西", 2),
        ("LB-124 先不要关", 14),
        ("一律**向下舍到角**", 20),
    ],
)
def test_what_matters_late_is_said_once_by_a_user(history: tuple[Message, ...], words: str, turn: int) -> None:
    said = [number for number, message in enumerate(users(history), 1) if words in message.text]
    assert said == [turn]


def test_every_tool_is_used(body: dict[str, Any], history: tuple[Message, ...]) -> None:
    assert {tool["function"]["name"] for tool in body["tools"]} == TOOLS
    assert {call.name for message in history for call in message.calls} == TOOLS


def test_some_steps_make_calls_in_parallel(history: tuple[Message, ...]) -> None:
    widths = Counter(step.stop - step.start - 1 for step in steps_of(history))
    assert sum(count for width, count in widths.items() if width >= 2) >= 5


def test_a_large_result_comes_twice(answered: list[tuple[ToolCall, ToolResult]]) -> None:
    seen = Counter((call.name, call.arguments, result.text) for call, result in answered if len(result.text) > 4_000)
    assert 2 in seen.values()


def test_files_are_read_again_after_an_edit(answered: list[tuple[ToolCall, ToolResult]]) -> None:
    """The first read is stale: the second shows other text."""
    read: dict[str, list[str]] = {}
    edited: dict[str, int] = {}
    for call, result in answered:
        path = json.loads(call.arguments).get("path", "")
        if call.name == "read_file":
            read.setdefault(path, []).append(result.text)
        elif call.name == "edit_file" and path in read:
            edited.setdefault(path, len(read[path]))
    again = {path for path, count in edited.items() if len(read[path]) > count and read[path][0] != read[path][-1]}
    assert again >= {"lantern/stock.py", "lantern/pricing.py", "lantern/feed.py", "settings.toml"}


def test_some_tools_fail(answered: list[tuple[ToolCall, ToolResult]]) -> None:
    failed = {call.name for call, result in answered if re.match(r"(?i)error\b|[\s\S]*\d+ (failed|error)", result.text)}
    assert failed >= {"edit_file", "run_tests", "sql_query"}


def test_logs_have_colours_progress_and_repeated_lines(answered: list[tuple[ToolCall, ToolResult]]) -> None:
    logs = [result.text for call, result in answered if call.name == "tail_log"]
    assert all("\x1b[" in log for log in logs)
    assert any(log.count("\r") > 10 for log in logs)
    assert any(max(Counter(log.splitlines()).values()) >= 10 for log in logs)


def test_one_small_picture_and_some_reasoning(history: tuple[Message, ...]) -> None:
    parts = [part for message in history for part in message.parts]
    pictures = [part for part in parts if isinstance(part, Image)]
    assert [(picture.media_type, len(picture.data) < 2_000) for picture in pictures] == [("image/png", True)]
    assert sum(isinstance(part, Reasoning) for part in parts) >= 6


def test_the_money_adds_up(answered: list[tuple[ToolCall, ToolResult]], history: tuple[Message, ...]) -> None:
    """The refunds in the table are the ¥7.00 and 19 orders that everyone speaks about; 1,601 is what is left."""
    tables = [result.text for call, result in answered if "over_fen" in call.arguments]
    refunds = [int(row.rsplit("|", 1)[1]) for row in tables[0].splitlines() if row.startswith("H-")]
    assert (len(refunds), sum(refunds)) == (19, 700)
    assert 3_200 - 6 * 85 - 899 - 10 * len(refunds) == 1_601
    assert any("¥1,601" in message.text for message in history if message.role is Role.ASSISTANT)


def test_only_reserved_hosts_are_named() -> None:
    text = SAMPLE.read_text(encoding="utf-8")
    hosts = set(re.findall(r"https?://([\w.-]+)", text))
    assert hosts
    assert all(host.endswith(".example.com") for host in hosts)
