"""Puts calls of our tool, which the client never saw, back into answers that the client sends again.

The model reads a history with its recall and the result, so the prefix stays the same and nothing is recalled twice. An
answer is recognised by its first call or its first sealed thought. It is put back only if it still says what the client
was shown, and only after the same messages (its context): another conversation may have an equal answer, and must not
see what was recalled in this one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from everlong.core import CallId, Json, JsonObject, JsonText, Message, ref_of
from everlong.gateway.recall.tool import continuation, recall_calls, results_of, without_recall
from everlong.wire import Find, Format, dump, load

__all__ = ["Round", "continued_response", "notes_of", "put_back"]

#: Prefixes of keys, so that they can share a store with keys of opaque parts.
KEY = "recall:"
RESULT_KEY = "recall-result:"
RESPONSE_KEY = "recall-response:"


@dataclass(frozen=True, slots=True)
class Round:
    """One answer of the model in an exchange, and the results of its calls of our tool."""

    message: Message
    results: Mapping[CallId, str]
    #: The provider's id of the answer, in Responses.
    response: str = ""


def notes_of(format_: Format, rounds: Sequence[Round], context: str = "") -> dict[str, JsonText]:
    """Return what to keep of an exchange, by key; nothing if our tool was not called."""
    if not any(recall_calls(round_.message) for round_ in rounds):
        return {}
    first, last = rounds[0], rounds[-1]
    results = results_of(format_, last.message, last.results)
    notes = _answer_notes(format_, rounds, results, context)
    if format_.server.tool.called_elsewhere is not None and results:
        notes |= {RESULT_KEY + call.id: dump(cast(Json, results)) for call in without_recall(last.message).calls[:1]}
    if first.response and last.response != first.response:
        notes[RESPONSE_KEY + first.response] = dump(last.response)
    return notes


def _answer_notes(
    format_: Format, rounds: Sequence[Round], results: list[JsonObject], context: str
) -> dict[str, JsonText]:
    """Return all answers with their results.

    The last results are separate: they join the results of the client's calls.
    """
    resent = format_.server.tool.resent
    shown: list[Json] = [item for round_ in rounds for item in resent(without_recall(round_.message))]
    name = _name(format_, shown)
    if not name:
        return {}
    *earlier, last = rounds
    instead = [item for round_ in earlier for item in continuation(format_, round_.message, round_.results)]
    kept: Json = [cast(Json, [*instead, *resent(last.message)]), cast(Json, results)]
    return {KEY + name: "", _key(format_, name, shown, context): dump(kept)}


def continued_response(response: str, find: Find) -> str:
    """Return the id of the answer to continue; clients know an answer by the id of its first stream."""
    text = find(RESPONSE_KEY + response)
    last = load(text) if text else response
    return last if isinstance(last, str) else response


def put_back(format_: Format, messages: list[Json], find: Find, contexts: Sequence[str] = ()) -> list[Json]:
    """Return the messages (of Responses: items) of a request with our calls; the same list if there are none.

    `contexts` has the context of each message.
    """
    tool = format_.server.tool
    whole: list[Json] = []
    waiting: list[Json] = []  # results for the next user message
    changed = False
    unanswered = tool.called_elsewhere(messages) if tool.called_elsewhere is not None else frozenset()
    at = 0
    for group in _grouped(format_, messages):
        kept = _kept(format_, group, find, contexts[at] if contexts else "")
        at += len(group)
        if kept is not None:
            changed = True
            instead, results = kept
            whole += instead
            if tool.with_results is not None:
                waiting = results
            else:
                whole += results
            continue
        late = _results_for(group[0], unanswered, find)
        changed = changed or bool(late)
        whole += late
        whole += tool.with_results(group[0], waiting) if waiting and tool.with_results is not None else group
        waiting = []
    return [*whole, *waiting] if changed else messages


def _grouped(format_: Format, messages: list[Json]) -> list[list[Json]]:
    """Group the items of each answer, which are consecutive in Responses; everything else is alone."""
    groups: list[list[Json]] = []
    row = False
    for message in messages:
        own = not format_.item_is_message and _is_answer(format_, message)
        if own and row:
            groups[-1].append(message)
        else:
            groups.append([message])
        row = own
    return groups


def _is_answer(format_: Format, message: Json) -> bool:
    """Whether it is the assistant's: a message, or an item that is a call or a thought."""
    opaque = format_.server.opaque
    fields = _fields(message)
    if fields.get("role") == format_.server.tool.role:
        return True
    if format_.item_is_message:
        return False
    return str(fields.get("type")) in opaque.SEALS or opaque.call_id(message) is not None


def _kept(format_: Format, group: list[Json], find: Find, context: str) -> tuple[list[Json], list[Json]] | None:
    """Return what replaces this answer, and the results that follow; None if no such answer is known."""
    name = _name(format_, group) if _is_answer(format_, group[0]) else ""
    if not name or find(KEY + name) is None:
        return None
    text = find(_key(format_, name, group, context))
    if text is None:
        return None
    instead, results = _list(load(text))
    return _list(instead), _list(results)


def _results_for(item: Json, unanswered: frozenset[str], find: Find) -> list[Json]:
    """Return the results of our calls next to the answered one; the provider already has the calls."""
    call = _fields(item).get("call_id")
    text = find(RESULT_KEY + call) if isinstance(call, str) and call in unanswered else None
    return _list(load(text)) if text else []


# --- what an answer says ---------------------------------------------------------------------------


def _name(format_: Format, answer: Sequence[Json]) -> str:
    """The name of an answer: its first call, else its first seal; "" if it has neither."""
    opaque, blocks = format_.server.opaque, format_.server.tool.blocks(answer)
    call = next((identity for block in blocks if (identity := opaque.call_id(block))), "")
    if call:
        return call
    seal = next((seal for seal in map(opaque.seal, blocks) if seal), "")
    return f"seal:{ref_of(seal)}" if seal else ""


def _key(format_: Format, name: str, answer: Sequence[Json], context: str) -> str:
    """The name with a digest of what the assistant's messages (or items) say and call, and of their context."""
    opaque, tool = format_.server.opaque, format_.server.tool
    blocks = tool.blocks(answer)
    text = "".join(tool.words(_fields(item)) for item in answer if _fields(item).get("role") == tool.role)
    calls = [opaque.call_key(_fields(block)) for block in blocks if opaque.call_id(block)]
    return f"{KEY}{name}:{ref_of(dump([context, text, *calls]))}"


def _fields(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
