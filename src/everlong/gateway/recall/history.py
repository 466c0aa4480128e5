"""Calls of our tool that a client never saw, put back where they were made when it sends the answer again.

The model reads a history in which its recall and what it brought stand, so the prefix stays what it was and nothing
is recalled twice. An answer is known by its first call or its first sealed thought; it is put back only where it
still says what the client was shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from everlong.core import CallId, Json, JsonObject, JsonText, Message, ref_of
from everlong.gateway.conversations.opaque import SEALS, Find, call_id, call_key
from everlong.gateway.recall.tool import answered, recall_calls, rendered, results_of, without_recall
from everlong.wire import CALLS, OUTPUTS, dump, load

__all__ = ["Round", "beside", "continued", "put_back"]


#: Keys begin with these, so that they may share a store with those of `opaque`.
KEY = "recall:"
RESULT_KEY = "recall-result:"
RESPONSE_KEY = "recall-response:"


@dataclass(frozen=True, slots=True)
class Round:
    """One answer of the model in an exchange, and what its calls of our tool brought."""

    message: Message
    results: Mapping[CallId, str]
    #: Its id at the provider, in Responses.
    response: str = ""


def beside(fmt: str, rounds: Sequence[Round]) -> dict[str, JsonText]:
    """What is to be kept of an exchange, each under its key; nothing if our tool was not called in it."""
    if not any(recall_calls(round_.message) for round_ in rounds):
        return {}
    first, last = rounds[0], rounds[-1]
    results = results_of(fmt, last.message, last.results)
    out = _kept_answer(fmt, rounds, results)
    if fmt == "openai-responses" and results:
        out |= {RESULT_KEY + call.id: dump(cast(Json, results)) for call in without_recall(last.message).calls[:1]}
    if first.response and last.response != first.response:
        out[RESPONSE_KEY + first.response] = dump(last.response)
    return out


def _kept_answer(fmt: str, rounds: Sequence[Round], results: list[JsonObject]) -> dict[str, JsonText]:
    """All answers with their results. Those of the last stand apart: they go beside those of the client's calls."""
    shown: list[Json] = [item for round_ in rounds for item in rendered(fmt, without_recall(round_.message))]
    name = _name(fmt, shown)
    if not name:
        return {}
    *earlier, last = rounds
    instead = [item for round_ in earlier for item in answered(fmt, round_.message, round_.results)]
    kept: Json = [cast(Json, [*instead, *rendered(fmt, last.message)]), cast(Json, results)]
    return {KEY + name: "", _key(fmt, name, shown): dump(kept)}


def continued(response: str, find: Find) -> str:
    """The id that `previous_response_id` must name: clients know an answer by that of its first stream."""
    text = find(RESPONSE_KEY + response)
    last = load(text) if text else response
    return last if isinstance(last, str) else response


def put_back(fmt: str, messages: list[Json], find: Find) -> list[Json]:
    """The messages (of Responses: items) of a request with our calls in them; the same list if there are none."""
    out: list[Json] = []
    waiting: list[Json] = []  # results that go into the next message of the user
    changed = False
    unanswered = _called_elsewhere(messages) if fmt == "openai-responses" else frozenset()
    for unit in _units(fmt, messages):
        kept = _kept(fmt, unit, find)
        if kept is not None:
            changed = True
            instead, results = kept
            out += instead
            if fmt == "anthropic":
                waiting = results
            else:
                out += results
            continue
        late = _results_for(unit[0], unanswered, find)
        changed = changed or bool(late)
        out += [*late, *(_with_results(unit[0], waiting) if waiting else unit)]
        waiting = []
    return [*out, *waiting] if changed else messages


def _units(fmt: str, messages: list[Json]) -> list[list[Json]]:
    """Answers, and all else one by one. The items of an answer in Responses stand in a row."""
    units: list[list[Json]] = []
    row = False
    for message in messages:
        own = fmt == "openai-responses" and _is_answer(message)
        if own and row:
            units[-1].append(message)
        else:
            units.append([message])
        row = own
    return units


def _is_answer(message: Json) -> bool:
    fields = _fields(message)
    return fields.get("role") == "assistant" or _kind(fields) == "reasoning" or _kind(fields) in CALLS


def _kept(fmt: str, unit: list[Json], find: Find) -> tuple[list[Json], list[Json]] | None:
    """What stands for this answer, and the results that follow; None if nothing is known of one that says the same."""
    name = _name(fmt, unit) if _is_answer(unit[0]) else ""
    if not name or find(KEY + name) is None:
        return None
    text = find(_key(fmt, name, unit))
    if text is None:
        return None
    instead, results = _list(load(text))
    return _list(instead), _list(results)


def _with_results(message: Json, results: list[Json]) -> list[Json]:
    """Anthropic wants all results of an answer in the message after it, before any words."""
    blocks = [block for result in results for block in _list(_fields(result).get("content"))]
    fields = _fields(message)
    if fields.get("role") != "user":
        return [*results, message]
    content = fields.get("content")
    words: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else _list(content)
    return [fields | {"content": [*blocks, *words]}]


# --- an answer that the provider keeps itself ------------------------------------------------------


def _called_elsewhere(items: list[Json]) -> frozenset[str]:
    """The calls whose results are here while they themselves are in an earlier response."""
    called = {str(_fields(item).get("call_id")) for item in items if _kind(item) in CALLS}
    return frozenset(str(_fields(item).get("call_id")) for item in items if _kind(item) in OUTPUTS) - called


def _results_for(item: Json, unanswered: frozenset[str], find: Find) -> list[Json]:
    """The results of our calls beside the one that is answered here: the provider has the calls."""
    call = _fields(item).get("call_id")
    text = find(RESULT_KEY + call) if isinstance(call, str) and call in unanswered else None
    return _list(load(text)) if text else []


# --- what an answer says ---------------------------------------------------------------------------


def _name(fmt: str, answer: Sequence[Json]) -> str:
    """What an answer is found by: its first call, else its first seal; "" if it has neither."""
    blocks = _blocks(fmt, answer)
    call = next((found for block in blocks if (found := call_id(fmt, block))), "")
    if call:
        return call
    seal = next((seal for seal in map(_seal, blocks) if seal), "")
    return f"seal:{ref_of(seal)}" if seal else ""


def _key(fmt: str, name: str, answer: Sequence[Json]) -> str:
    """The name with a mark of what one or several messages (or items) of the assistant say and call together."""
    spoken = [_fields(item) for item in answer if _fields(item).get("role") == "assistant"]
    text = "".join(_words(item.get("content")) for item in spoken)
    calls = [call_key(fmt, _fields(block)) for block in _blocks(fmt, answer) if call_id(fmt, block)]
    return f"{KEY}{name}:{ref_of(dump([text, *calls]))}"


def _blocks(fmt: str, answer: Sequence[Json]) -> list[Json]:
    """Among what calls and seals stand: entries of `tool_calls`, blocks, or the items themselves."""
    if fmt == "openai-responses":
        return [*answer]
    field = "tool_calls" if fmt == "openai-chat" else "content"
    return [block for message in answer for block in _list(_fields(message).get(field))]


def _seal(block: Json) -> str:
    fields = _fields(block)
    seal = fields.get(SEALS.get(str(fields.get("type")), ""))
    return seal if isinstance(seal, str) else ""


def _words(content: Json) -> str:
    """The text of a content, a string or blocks."""
    texts = [_fields(block).get("text") for block in _content(content)]
    return "".join(text for text in texts if isinstance(text, str))


def _content(content: Json) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else _list(content)


def _kind(item: Json) -> str:
    return str(_fields(item).get("type"))


def _fields(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
