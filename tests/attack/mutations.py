"""Changes that spoil a request: what clients, proxies and strangers really do to one.

Each change works on the decoded body, in place. Some know conversations (a call loses its result, an id comes twice),
the others know only JSON (a value of another type, half a surrogate pair, a thousand levels). Seeded: the same dice
spoil a body in the same way.
"""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from tests.attack.bodies import Payload, words

__all__ = ["JSON_JUNK", "PYTHON_JUNK", "mutated", "nested"]

HALVES = ("\ud83d", "\ude00", "cut \ud83d", "\ude00 wrong half", "\ud83d\ude00 not joined")


def nested(levels: int) -> Any:
    """A list in a list, so many levels deep."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def _nested_object(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


#: Values that JSON can say, in the place of any other.
JSON_JUNK: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: True,
    lambda: 0,
    lambda: -1,
    lambda: 1.5,
    lambda: 10**30,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: "",
    lambda: " \n\t",
    lambda: "x",
    lambda: "\x00",
    lambda: "\ud83d",
    lambda: "{}",
    lambda: '{"a": "\\ud83d"}',
    lambda: '{"a": NaN',
    list,
    dict,
    lambda: [[]],
    lambda: [None],
    lambda: [""],
    lambda: ["user"],
    lambda: [{"type": "text", "text": ""}],
    lambda: {"type": "text", "text": " "},
    lambda: {"type": None},
    lambda: {"type": []},
    lambda: {"type": "hologram", "data": {"x": 1}},
    lambda: {"role": {}},
    lambda: {"role": ["user"], "content": "x"},
    lambda: {"parts": []},
    lambda: {"\ud83d": 1},
    lambda: {"": ""},
    lambda: "a" * 5_000,
)
#: Rarely, because they are slow: what lies deeper than any provider reads.
DEEP_JUNK: tuple[Callable[[], Any], ...] = (
    lambda: nested(90),
    lambda: nested(200),
    lambda: nested(1_200),
    lambda: _nested_object(400),
    lambda: _nested_object(3_000),
    lambda: "[" * 3_000,
    lambda: 10**5_000,
)


def _circle() -> Any:
    value: Any = {"type": "text"}
    value["text"] = value
    return value


#: What only a Python caller can hand in.
PYTHON_JUNK: tuple[Callable[[], Any], ...] = (
    _circle,
    lambda: b"bytes",
    lambda: ("a", "tuple"),
    lambda: {1: 2},
    lambda: {None: "x"},
    lambda: {("a",): "x"},
    lambda: {"a", "set"},
    object,
)

ROLES: tuple[Any, ...] = (
    "user",
    "assistant",
    "system",
    "tool",
    "model",
    "function",
    "developer",
    "bot",
    "",
    " ",
    None,
    7,
    ["user"],
    {},
    "User",
)
TYPES: tuple[Any, ...] = (
    "text",
    "image",
    "image_url",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "input_text",
    "output_text",
    "refusal",
    "function_call",
    "function_call_output",
    "reasoning",
    "message",
    "hologram",
    "",
    None,
    5,
    [],
    "item_reference",
    "custom_tool_call",
    "document",
    "summary_text",
    "compaction",
)
FIELDS = (
    "role",
    "content",
    "type",
    "text",
    "id",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "call_id",
    "arguments",
    "input",
    "output",
    "parts",
    "functionCall",
    "functionResponse",
    "thought",
    "thoughtSignature",
    "signature",
    "thinking",
    "cache_control",
    "refusal",
    "audio",
    "reasoning",
    "reasoning_content",
    "summary",
    "encrypted_content",
    "$shape",
    "item",
    "extra",
    "inlineData",
    "fileData",
    "source",
    "is_error",
    "function",
    "image_url",
    "system",
    "tools",
    "status",
)
LISTS = ("messages", "input", "contents")


def mutated(body: Payload, dice: Random, *, python: bool = False) -> Payload:
    """A body with up to five changes, and one in twenty without any. With `python`, also what JSON cannot say."""
    spoiled = deepcopy(body)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 2, 3, 4, 5))):
        change = dice.choice(CHANGES)
        change(spoiled, dice)
    if python and dice.random() < 0.03:
        _put(spoiled, dice, dice.choice(PYTHON_JUNK)())
    elif dice.random() < 0.01:
        _put(spoiled, dice, dice.choice(DEEP_JUNK)())
    return spoiled


# --- places --------------------------------------------------------------------------------------


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every container with each of its keys."""
    if isinstance(value, dict):
        for key, inner in list(value.items()):
            found.append((value, key))
            _places(inner, found)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            found.append((value, at))
            _places(inner, found)
    return found


def _place(body: Payload, dice: Random) -> tuple[Any, Any] | None:
    """A place: among all of them, or first a message and then a place in it, so that long bodies do not hide fields."""
    listed = _listed(body)
    if listed and dice.random() < 0.6:
        message = dice.choice(listed)
        found = _places(message, []) if isinstance(message, dict | list) else []
        if found:
            return dice.choice(found)
    found = _shallow(body)
    return dice.choice(found) if found else None


def _shallow(body: Payload) -> list[tuple[Any, Any]]:
    return _places({key: value for key, value in body.items() if key not in LISTS}, []) + [(body, key) for key in body]


def _put(body: Payload, dice: Random, value: Any) -> None:
    place = _place(body, dice)
    if place is not None:
        place[0][place[1]] = value


def _listed(body: Payload) -> list[Any]:
    for key in LISTS:
        listed = body.get(key)
        if isinstance(listed, list):
            return listed
    return []


def _objects(body: Payload) -> list[Payload]:
    """Every object of the conversation."""
    held = [place[0][place[1]] for place in _places(_listed(body), [])]
    return [value for value in held if isinstance(value, dict)]


# --- changes that know only JSON -----------------------------------------------------------------


def put_junk(body: Payload, dice: Random) -> None:
    _put(body, dice, dice.choice(JSON_JUNK)())


def drop_field(body: Payload, dice: Random) -> None:
    place = _place(body, dice)
    if place is not None:
        del place[0][place[1]]


def add_field(body: Payload, dice: Random) -> None:
    objects = _objects(body) or [body]
    dice.choice(objects)[dice.choice(FIELDS)] = dice.choice(JSON_JUNK)()


def break_text(body: Payload, dice: Random) -> None:
    """Half a surrogate pair in a text, wherever it stands: words, names, ids, schemas, addresses."""
    texts = [place for place in _places(body, []) if isinstance(place[0][place[1]], str)]
    if texts:
        holder, key = dice.choice(texts)
        half = dice.choice(HALVES)
        holder[key] = dice.choice((half, holder[key] + half, half + holder[key]))


def break_key(body: Payload, dice: Random) -> None:
    objects = [place[0] for place in _places(body, []) if isinstance(place[0], dict)]
    if objects:
        holder = dice.choice(objects)
        if holder:
            key = dice.choice(list(holder))
            holder[f"{key}{dice.choice(HALVES)}"] = holder.pop(key) if dice.random() < 0.5 else holder[key]


def wrap(body: Payload, dice: Random) -> None:
    place = _place(body, dice)
    if place is not None:
        holder, key = place
        value = holder[key]
        holder[key] = dice.choice(([value], {"text": value}, [[value]], [value, value], {"content": value}))


def move_value(body: Payload, dice: Random) -> None:
    """A value of one place in another: blocks where ids were, calls of the user, messages in messages."""
    place, other = _place(body, dice), _place(body, dice)
    if place is not None and other is not None:
        place[0][place[1]] = deepcopy(other[0][other[1]])


# --- changes that know conversations -------------------------------------------------------------


def drop_message(body: Payload, dice: Random) -> None:
    listed = _listed(body)
    if listed:
        del listed[dice.randrange(len(listed))]


def repeat_message(body: Payload, dice: Random) -> None:
    listed = _listed(body)
    if listed:
        listed.insert(dice.randint(0, len(listed)), deepcopy(dice.choice(listed)))


def swap_messages(body: Payload, dice: Random) -> None:
    listed = _listed(body)
    if len(listed) > 1:
        first, second = dice.randrange(len(listed)), dice.randrange(len(listed))
        listed[first], listed[second] = listed[second], listed[first]


def cut_messages(body: Payload, dice: Random) -> None:
    """The end or the beginning is gone; one time in ten all of it."""
    listed = _listed(body)
    at = dice.randint(0, len(listed))
    if dice.random() < 0.1:
        listed.clear()
    elif dice.random() < 0.5:
        del listed[:at]
    else:
        del listed[at:]


def blank_message(body: Payload, dice: Random) -> None:
    messages = [message for message in _listed(body) if isinstance(message, dict)]
    if messages:
        message = dice.choice(messages)
        field = next((key for key in ("content", "parts", "output") if key in message), "content")
        blank: tuple[Any, ...] = (
            None,
            "",
            " ",
            [],
            [""],
            [{"text": ""}],
            [{"type": "text", "text": "\n"}],
            0,
            [[]],
            {},
        )
        message[field] = dice.choice(blank)


def change_role(body: Payload, dice: Random) -> None:
    bearers = [value for value in _objects(body) if "role" in value]
    if bearers:
        dice.choice(bearers)["role"] = deepcopy(dice.choice(ROLES))


def change_type(body: Payload, dice: Random) -> None:
    bearers = [value for value in _objects(body) if "type" in value]
    if bearers:
        dice.choice(bearers)["type"] = deepcopy(dice.choice(TYPES))


def share_ids(body: Payload, dice: Random) -> None:
    """One id, or one name, for two."""
    for key in dice.sample(("id", "tool_call_id", "call_id", "tool_use_id", "name"), 5):
        bearers = [value for value in _objects(body) if key in value]
        if len(bearers) > 1:
            dice.choice(bearers)[key] = deepcopy(dice.choice(bearers)[key])
            return


def odd_id(body: Payload, dice: Random) -> None:
    bearers = [(value, key) for value in _objects(body) for key in value if str(key).endswith(("id", "name"))]
    if bearers:
        holder, key = dice.choice(bearers)
        holder[key] = dice.choice(
            ("", " ", "functions.bash:0", "x" * 200, "é", "\ud800", "a b", "9lives", None, 5, "0")
        )


def drop_block(body: Payload, dice: Random) -> None:
    """One of the blocks, parts or calls of a message: two calls and one result, a thought without its answer."""
    lists = [value for message in _objects(body) for value in message.values() if isinstance(value, list) and value]
    if lists:
        blocks = dice.choice(lists)
        del blocks[dice.randrange(len(blocks))]


def repeat_block(body: Payload, dice: Random) -> None:
    lists = [value for message in _objects(body) for value in message.values() if isinstance(value, list) and value]
    if lists:
        blocks, others = dice.choice(lists), dice.choice(lists)
        blocks.insert(dice.randint(0, len(blocks)), deepcopy(dice.choice(others)))


def mark_everything(body: Payload, dice: Random) -> None:
    share = dice.random()
    for value in [*_objects(body), *(tool for tool in _list(body.get("tools")) if isinstance(tool, dict))]:
        if dice.random() < share:
            value["cache_control"] = dice.choice(({"type": "ephemeral"}, {"type": "ephemeral"}, None, "x", {}))


def break_thinking(body: Payload, dice: Random) -> None:
    thoughts = (
        {"type": "thinking", "thinking": "hm"},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "redacted_thinking", "data": ""},
        {"type": "thinking", "thinking": "half \ud83d", "signature": "EqQB"},
        {"type": "reasoning", "summary": []},
        {"type": "reasoning", "id": "rs_9", "encrypted_content": None},
        {"text": "", "thought": True},
        {"text": "hm", "thought": True, "thoughtSignature": ""},
        {"thought": True},
        {"thoughtSignature": "EqQB"},
    )
    thought = deepcopy(dice.choice(thoughts))
    blocks = [value for message in _objects(body) for value in message.values() if isinstance(value, list)]
    target = dice.choice([*blocks, _listed(body)])
    target.insert(dice.randint(0, len(target)), thought)


def break_picture(body: Payload, dice: Random) -> None:
    pictures: tuple[Payload, ...] = (
        {"type": "image_url", "image_url": {"url": ""}},
        {"type": "image_url", "image_url": "data:image/png;base64,"},
        {"type": "image_url"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
        {"type": "image", "source": {"type": "url"}},
        {"type": "image", "source": {"type": "hologram"}},
        {"type": "image"},
        {"type": "input_image", "image_url": None},
        {"type": "input_image", "file_id": ""},
        {"inlineData": {"mimeType": "image/png", "data": ""}},
        {"inline_data": {"mime_type": "", "data": "aGk="}},
        {"inlineData": None},
        {"fileData": {}},
    )
    blocks = [value for message in _objects(body) for value in message.values() if isinstance(value, list)]
    if blocks:
        dice.choice(blocks).append(deepcopy(dice.choice(pictures)))


def change_tools(body: Payload, dice: Random) -> None:
    schemas: tuple[Any, ...] = (
        None,
        [],
        {},
        5,
        "x",
        [5],
        [None],
        ["x"],
        [[]],
        [{}],
        [{"type": "function"}],
        [{"type": "function", "function": 5}],
        [{"name": 5}],
        [{"name": "read", "input_schema": {"type": "object", "default": float("nan")}}],
        [{"name": "read\ud83d", "input_schema": {"type": "object", "\ude00": "\ud83d"}}],
        [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "x": "\ud83d"}}}],
        [{"type": "function", "function": {"name": "", "parameters": 5}}],
        [{"functionDeclarations": 5}],
        [{"functionDeclarations": [{"name": "read", "description": "\ude00"}]}],
    )
    body["tools"] = deepcopy(dice.choice(schemas))


def change_system(body: Payload, dice: Random) -> None:
    field = dice.choice(("system", "instructions", "systemInstruction", "system_instruction"))
    texts: tuple[Any, ...] = (
        None,
        "",
        " ",
        "x\ud83d",
        5,
        [],
        {},
        ["x"],
        [{"type": "text", "text": ""}],
        [{"type": "text", "text": "x"}],
        {"parts": []},
        {"parts": [{"text": ""}]},
        {"parts": [{"text": "x"}]},
        {"parts": "x"},
        {"role": "x", "parts": {"text": "y"}},
        [{"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}],
        {"text": "x"},
        {"parts": [{"functionCall": {"name": "read"}}]},
    )
    body[field] = deepcopy(dice.choice(texts))


def add_message(body: Payload, dice: Random) -> None:
    listed = _listed(body)
    said: tuple[Any, ...] = (
        {"role": "user", "content": words(dice)},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": []},
        {"role": "system", "content": "Be brief."},
        {"role": "tool", "content": "no id"},
        {"role": "function", "name": "read_file", "content": "old"},
        {"role": "assistant", "content": None, "function_call": {"name": "read_file", "arguments": "{}"}},
        {"role": "model", "parts": [{"functionCall": {"name": "read_file"}}, {"functionCall": {"name": "read_file"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read_file", "response": {"output": "x"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": "x"}}, {"text": "and"}]},
        {"role": "user", "parts": [{"text": " "}]},
        {"role": "model", "parts": [{"text": "a", "functionCall": {"name": "bash", "args": {}}}]},
        {"type": "function_call_output", "call_id": "nobody", "output": "x"},
        {"type": "item_reference", "id": "msg_0"},
        {"id": "msg_0"},
        "hello",
        None,
        [],
    )
    listed.insert(dice.randint(0, len(listed)), deepcopy(dice.choice(said)))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


CHANGES: tuple[Callable[[Payload, Random], None], ...] = (
    put_junk,
    drop_field,
    add_field,
    break_text,
    break_key,
    wrap,
    move_value,
    drop_message,
    repeat_message,
    swap_messages,
    cut_messages,
    blank_message,
    change_role,
    change_type,
    share_ids,
    odd_id,
    drop_block,
    repeat_block,
    mark_everything,
    break_thinking,
    break_picture,
    change_tools,
    change_system,
    add_message,
)
