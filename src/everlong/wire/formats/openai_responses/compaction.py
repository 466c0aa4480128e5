"""OpenAI's compaction, and ours in its shape: fields that ask for it, and a history sealed into one item.

    {"type": "compaction", "id": "cmp_…", "encrypted_content": "everlong.compaction.1.eyJ…"}

A client that asks for a compaction gets one item and sends it back in place of what it was made from. Only its author
can read it: OpenAI's items are passed through, ours are opened before the request is processed.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from everlong.core import Json, JsonObject
from everlong.errors import InputError
from everlong.wire.fields import dump, load
from everlong.wire.formats.hidden_tool import Event
from everlong.wire.formats.server import Compaction

__all__ = ["COMPACTION", "PATH"]

PATH = "/responses/compact"
TRIGGER = "compaction_trigger"
SEAL = "everlong.compaction.1."
SHORT = 8  # bytes of the digest that identifies an item
#: Fields that servers and clients add to an item.
ADDED = frozenset({"id", "status", "internal_chat_message_metadata_passthrough"})
SYSTEM_ROLES = ("system", "developer")


# --- fields of a request ---------------------------------------------------------------------------


def _truncation(value: Json) -> Json:
    return None if value == "auto" else value


def _context_management(value: Json) -> Json:
    """Return the entries that do not ask for compaction."""
    entries = value if isinstance(value, list) else []
    left = [entry for entry in entries if not (isinstance(entry, dict) and entry.get("type") == "compaction")]
    return left or None if isinstance(value, list) else value


# --- a history in one item -------------------------------------------------------------------------


def _sealed(items: Sequence[JsonObject], source: Sequence[JsonObject]) -> JsonObject:
    """Seal the items of a compacted history into one item, with digests of the source that it covers.

    A seal in the source covers what it covered before, because a client may still send that.
    """
    covers: set[str] = set()
    for item in source:
        held = _holds(item)
        if held is not None:
            covers |= {*held[1], *(_mark(inside) for inside in held[0] if _is_spoken(inside))}
        elif _is_spoken(item):
            covers.add(_mark(item))
    holds: JsonObject = {"items": [*items], "covers": [*sorted(covers)]}
    text = SEAL + b64encode(dump(holds).encode("utf-8", "surrogatepass")).decode()
    return {"type": "compaction", "id": f"cmp_{_digest(text)}", "encrypted_content": text}


def _opened(items: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the items with our seals replaced by their contents.

    Items before a seal that it covers are dropped. System text that the client also sends is not repeated.
    """
    opened: list[JsonObject] = []
    changed = False
    for item in items:
        held = _holds(item)
        if held is None:
            opened.append(item)
            continue
        changed = True
        inside, covers = held
        opened = [each for each in opened if _mark(each) not in covers]
        said = {_mark(each) for each in opened if not _is_spoken(each)}
        opened += [each for each in inside if _is_spoken(each) or _mark(each) not in said]
    return opened if changed else items


def _is_spoken(item: JsonObject) -> bool:
    return item.get("role") not in SYSTEM_ROLES


def _holds(item: JsonObject) -> tuple[list[JsonObject], frozenset[str]] | None:
    seal = item.get("encrypted_content")
    if item.get("type") != "compaction" or not isinstance(seal, str) or not seal.startswith(SEAL):
        return None
    try:
        value = load(b64decode(seal.removeprefix(SEAL), validate=True).decode("utf-8", "surrogatepass"))
    except (ValueError, InputError):
        return None
    fields = value if isinstance(value, dict) else {}
    inside, covers = fields.get("items"), fields.get("covers")
    if not isinstance(inside, list) or not isinstance(covers, list):
        return None
    return [each for each in inside if isinstance(each, dict)], frozenset(map(str, covers))


def _mark(item: JsonObject) -> str:
    """Return a digest of what an item says, however it is written."""
    fields = {name: value for name, value in item.items() if name not in ADDED and value not in (None, "", [])}
    content = fields.get("content")
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, dict)]
        if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
            fields["content"] = "".join(map(str, texts))
    if "role" in fields:
        fields["type"] = "message"
    return _digest(dump({name: fields[name] for name in sorted(fields)}))


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SHORT).hexdigest()


# --- the answer ------------------------------------------------------------------------------------

NO_USAGE: JsonObject = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


def _answer(item: JsonObject, model: str, created: int) -> JsonObject:
    """Return the answer of the compaction path. No model was called, so the usage is zero."""
    return {
        "id": f"resp_{item['id']}",
        "object": "response.compaction",
        "created_at": created,
        "model": model,
        "output": [item],
        "usage": NO_USAGE,
    }


def _response(answer: JsonObject) -> JsonObject:
    """Return the same answer in the form of a model's response."""
    return answer | {
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _events(response: JsonObject) -> Iterator[Event]:
    begun: JsonObject = response | {"status": "in_progress", "output": [], "usage": None}
    item = response["output"][0] if isinstance(response["output"], list) else None
    events: list[JsonObject] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    for number, event in enumerate(events):
        yield str(event["type"]), event | {"sequence_number": number}


COMPACTION = Compaction(
    fields={"truncation": _truncation, "context_management": _context_management},
    sign=SEAL.encode(),
    read=_opened,
    ours=True,
    trigger=TRIGGER,
    sealed=_sealed,
    answer=_answer,
    response=_response,
    events=_events,
)
