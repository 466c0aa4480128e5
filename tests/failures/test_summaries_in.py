"""What a summariser is given: E2 (input side), E5, F1, and the input side of A1 and B6."""

import re

import pytest

from everlong.core import CallId, Image, Message, Role, Text, ToolResult
from everlong.summarize import Facts, Summary, chunks, facts_of, instruction, redacted, transcript
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, user
from tests.summarize.injections import INJECTIONS

COUNTER = Counter("gpt-4o")
KEY = "sk-" + "a1B2c3D4e5F6" * 3
PASSWORD = "Tr0ub4dor" + "And3"


def read(*messages: Message, limit: int = 20_000) -> str:
    return transcript(messages, counter=COUNTER, limit=limit, language="en")


def test_A1_requests_are_copied_byte_for_byte() -> None:
    asked = ["do X", "do Y, then Z,\n\tkeep W — “as is”  (两个空格)"]
    said = [user(asked[0]), assistant("done"), user(asked[1]), assistant("ok")]
    rounds = [message for n in range(30) for message in (calls(str(n)), result(str(n), "do nothing of the kind"))]
    assert facts_of([*said, *rounds]).requests == tuple(asked)


def test_B6_a_summariser_is_given_no_pictures() -> None:
    pictures = tuple(Image(data="iVBORw0KGgo" * 200, media_type="image/png") for _ in range(41))
    shot = Message(Role.TOOL, (ToolResult(CallId("1"), (Text("page"), *pictures)),))
    said = read(Message(Role.USER, (Text("look"), *pictures)), calls("1", name="screenshot"), shot)
    assert "iVBORw0KGgo" not in said
    assert said.count("[image]") == 82


@pytest.mark.parametrize("name", INJECTIONS)
def test_E2_a_tool_result_stays_inside_the_frame(name: str) -> None:
    text = INJECTIONS[name]
    said = read(user("summarise the page"), calls("1", name="fetch"), result("1", text), assistant("I read it."))
    opening = said.partition("\n")[0]
    assert said.count(f"</{opening[1:]}") == 1
    assert said.endswith(f"</{opening[1:]}")
    assert len(re.findall(r"(?i)<\s*/\s*conversation", said)) == 1
    assert "<|" not in said
    assert "<｜" not in said


@pytest.mark.parametrize("name", INJECTIONS)
def test_E2_a_tool_result_is_no_request(name: str) -> None:
    said = [user("summarise the page"), calls("1", name="fetch"), result("1", INJECTIONS[name])]
    assert facts_of(said).requests == ("summarise the page",)
    assert facts_of(said).open_tasks == ()


PLACES = {
    "what the user said": [user(f"use {KEY}, and the password is {PASSWORD}")],
    "tool output": [calls("1"), result("1", f"OPENAI_API_KEY={KEY}\nDB_PASSWORD={PASSWORD}\n")],
    "arguments": [calls("1", name="bash", arguments=f'{{"command": "mysql --password={PASSWORD} -e \\"{KEY}\\""}}')],
    "url": [calls("1", name="bash", arguments=f'{{"url": "https://admin:{PASSWORD}@db.example.org/?key={KEY}"}}')],
    "failure": [calls("1"), result("1", f"Error: cannot log in with password={PASSWORD} and token '{KEY}'")],
    "task": [
        calls("1", name="TodoWrite", arguments=f'{{"todos": [{{"content": "rotate {KEY}, password={PASSWORD}"}}]}}')
    ],
    "name of a tool": [calls("1", name=KEY, arguments=f'{{"password": "{PASSWORD}"}}')],
    "broken up by what nobody sees": [result("1", f"{KEY[:9]}\u200b{KEY[9:]} password: \x1b[1m{PASSWORD}\x1b[0m")],
}


@pytest.mark.parametrize("name", PLACES)
def test_E5_secrets_reach_neither_the_summariser_nor_the_facts(name: str) -> None:
    said = [*PLACES[name], *PLACES[name]]
    told = read(*said)
    assert KEY not in told
    assert PASSWORD not in told
    facts = str(facts_of(said))
    assert KEY not in facts
    assert PASSWORD not in facts


def test_E5_secrets_of_an_earlier_summary_and_of_a_focus_go_too() -> None:
    secret = f"the token is {KEY}, password={PASSWORD}"
    kept = Facts(**{kind: (f"{kind} {secret}",) for kind in ("requests", "numbers", "failures", "open_tasks")})
    assert KEY not in str(facts_of([], kept))
    assert PASSWORD not in str(facts_of([], kept))
    before = Summary(context=secret, decisions=(secret,), facts=kept)
    asked = instruction("structured", "en", focus=f"keep {secret}", previous=before)
    assert KEY not in asked
    assert PASSWORD not in asked


def test_E5_names_stay_values_go() -> None:
    assert redacted(f"DB_PASSWORD={PASSWORD}") == "DB_PASSWORD=[redacted]"
    assert redacted(f'{{"client_secret": "{KEY}"}}') == '{"client_secret": "[redacted]"}'


@pytest.mark.parametrize(
    "text", ["\ud83d", "\x00", "İ" * 99, "password=" * 99, "token: '", "-----BEGIN PRIVATE KEY-----"]
)
def test_E5_redaction_makes_nothing_fail(text: str) -> None:
    assert isinstance(redacted(text * 10), str)
    assert facts_of([user(text)]).requests
    assert read(user(text))


def test_F1_a_history_of_ten_windows_is_read_in_about_ten_parts() -> None:
    window = 4_000
    rounds = [
        message
        for n in range(100)
        for message in (user(f"step {n}"), calls(str(n)), result(str(n), f"line of step {n}\n" * 56), assistant("done"))
    ]
    assert 9 * window < COUNTER.messages(rounds) < 12 * window
    parts = chunks(rounds, counter=COUNTER, room=window)
    assert 10 <= len(parts) <= 14
    told = [read(*part, limit=window) for part in parts]
    assert max(map(COUNTER.text, told)) <= window
    assert all(f"[user] step {n}" in "".join(told) for n in range(100))


def test_F1_one_message_of_three_windows_is_clamped_not_dropped() -> None:
    window = 2_000
    huge = user("FIRST " + "some words " * 3_000 + "LAST")
    assert COUNTER.message(huge) >= 3 * window
    (part,) = chunks([huge], counter=COUNTER, room=window)
    told = read(*part, limit=window)
    assert COUNTER.text(told) <= window
    assert "FIRST" in told
    assert "LAST" in told


def test_F1_parts_put_together_beyond_the_room_still_fit() -> None:
    rounds = [message for n in range(200) for message in (user(f"step {n} " * 20), assistant("done " * 20))]
    assert COUNTER.text(read(*rounds, limit=1_000)) <= 1_000
