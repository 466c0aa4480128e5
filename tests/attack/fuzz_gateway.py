"""Attack on the gateway over HTTP: bad bodies are told so in one line, and what reaches the upstream is valid.

The gateway stands between a client and a provider that answers everything and keeps what it was sent. A body is made
as in `fuzz_formats`, then written as JSON, and one in twelve is damaged as bytes. A finding is an answer of 500 or
more, an error that is no clear line, or a conversation at the upstream that its provider would refuse.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from random import Random
from typing import Any

from tests.attack.fuzz_formats import REFUSED, VALID, body_of
from tests.attack.providers import refusals
from tests.gateway.running import RunningGateway
from tests.gateway.talking import PATHS

from everlong.gateway.conversations.canonical import in_one_form
from everlong.llm import ScriptedServer
from everlong.wire import FORMATS

__all__ = ["GatewayFinding", "attack_engine", "attack_gateway"]

NAMES = tuple(PATHS)
#: How a body is handed to the engine.
ORDERS = (
    b"",
    b'"budget": 900, ',
    b'"thread": "a", "window": 3000, ',
    b'"thread": "b", "budget": 2000, "usage": {"prompt": 700}, ',
    b'"thread": "a", "window": 3000, "refused": {"status": 400, "body": "prompt is too long"}, ',
)


@dataclass(frozen=True)
class GatewayFinding:
    """What should not have happened, and the body with which it did."""

    number: int
    said: str
    body: Any


def attack_gateway(numbers: Iterable[int]) -> Iterator[str | GatewayFinding]:
    """What became of the body of each number, through one gateway."""
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as gateway:
        for number in numbers:
            fmt, data = _request(number)
            upstream.requests.clear()
            answer = _asked(gateway, PATHS[fmt], data)
            # A summary of an earlier conversation may be asked for meanwhile, in another format.
            sent = next((one.body for one in upstream.requests if one.fmt == fmt), None)
            said = answer if isinstance(answer, str) else _judged(fmt, *answer, sent, data)
            yield (
                said
                if said in (VALID, REFUSED)
                else GatewayFinding(number, f"{fmt} {said}", data.decode(errors="replace"))
            )


def attack_engine(numbers: Iterable[int]) -> Iterator[str | GatewayFinding]:
    """What became of the body of each number at the engine's endpoint: alone, or in one of a few threads."""
    with ScriptedServer() as upstream, RunningGateway(upstream=upstream.url) as gateway:
        for number in numbers:
            fmt, body = _request(number)
            order = ORDERS[number % len(ORDERS)]
            data = b'{"format": "%b", %b"messages": %b}' % (fmt.encode(), order, body)
            answer = _asked(gateway, "/everlong/fit", data)
            said = answer if isinstance(answer, str) else _judged_fit(fmt, *answer, body)
            yield (
                said
                if said in (VALID, REFUSED)
                else GatewayFinding(number, f"{fmt} {said}", data.decode(errors="replace"))
            )


def _asked(gateway: RunningGateway, path: str, data: bytes) -> tuple[int, bytes] | str:
    """The status and the answer, or why there is none."""
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request("POST", path, data, {"x-api-key": "k", "content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (HTTPException, OSError) as error:
        return f"no answer: {type(error).__name__} {error}"
    finally:
        connection.close()


def _request(number: int) -> tuple[str, bytes]:
    """The format and the body of a number."""
    dice = Random(f"gateway/{number}")
    fmt = dice.choice(NAMES)
    body = body_of(fmt, number, python=False)
    try:
        data = json.dumps(body, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        data = b'{"model": "gpt-4o", "messages": %s}' % (b"[" * 5_000 + b"]" * 5_000)
    return fmt, _damaged(data, dice) if dice.random() < 0.08 else data


def _damaged(data: bytes, dice: Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    return dice.choice(
        (
            data[:at],
            data[:at] + b"\xff\xfe" + data[at:],
            data[:at] + b"\x00" + data[at:],
            data + data,
            b"\xef\xbb\xbf" + data,
            data[:-1] + b', "model": "gpt-4o", "messages": [], "messages": [{"role": "user", "content": "x"}]}',
            data[:-1] + b', "model": null}',
            b"",
            b"[" * 100_000,
        )
    )


def _judged(fmt: str, status: int, told: bytes, sent: bytes | None, data: bytes) -> str:
    if status >= 500:
        return f"status {status}: {told[:120]!r}"
    if status >= 400:
        return REFUSED if _is_clear(told) else f"an error that is no clear line: {told[:120]!r}"
    if sent is None:
        return "an answer, though nothing was asked"
    field = FORMATS[fmt].api.messages
    try:
        conversation = json.loads(sent)[field]
    except (ValueError, KeyError) as error:
        return f"the upstream was sent no request: {error!r}"
    if not conversation:  # an empty list is the client's own, and there is nothing to put into it
        return VALID
    if b"cache_control" in data:  # a client's own marks are passed on as they are
        conversation = _without_marks(conversation)
    found = refusals(fmt, {field: conversation})
    if found and found[0].startswith("not JSON") and _is_the_clients_own(fmt, conversation, data):
        return VALID  # ids do not tell messages apart: what was read before may come again with half a pair in its id
    return f"the upstream was sent: {found[0]}" if found else VALID


def _judged_fit(fmt: str, status: int, told: bytes, data: bytes) -> str:
    if status >= 500:
        return f"status {status}: {told[:120]!r}"
    if status >= 400:
        return REFUSED if _is_clear(told) else f"an error that is no clear line: {told[:120]!r}"
    answer = json.loads(told)
    if not answer["messages"]:
        return VALID
    # A program's own messages are as it wrote them: "User" is a role too, for those who read it so.
    own = zip(answer["from"], answer["messages"], strict=True)
    messages = [said if at is None else in_one_form(FORMATS[fmt], said) for at, said in own]
    found = refusals(fmt, {FORMATS[fmt].api.messages: _without_marks(messages)})
    if found and found[0].startswith("not JSON") and _is_the_clients_own(fmt, messages, data):
        return VALID
    return f"the program was given: {found[0]}" if found else VALID


def _is_the_clients_own(fmt: str, conversation: Any, data: bytes) -> bool:
    """Whether the gateway changed nothing in it."""
    given = json.loads(data)[FORMATS[fmt].api.messages]
    own = [in_one_form(FORMATS[fmt], message) for message in given]
    return bool(_without_marks(own) == _without_marks(conversation))


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(inner) for key, inner in value.items() if key != "cache_control"}
    return [_without_marks(inner) for inner in value] if isinstance(value, list) else value


def _is_clear(told: bytes) -> bool:
    try:
        error = json.loads(told)["error"]
        message = error if isinstance(error, str) else error["message"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(message, str) and 0 < len(message) < 500 and "\n" not in message and "Traceback" not in message
