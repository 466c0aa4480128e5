"""SWE-agent: a trajectory (`.traj`).

    {"environment", "info": {…},
     "history": [{"role", "content", "agent", "action", "thought", "tool_calls", "tool_call_ids", "is_demo"}],
     "trajectory": [{"response", "thought", "action", "observation"}]}

The history is what the model got. Some files have only the steps: then each becomes an answer and an observation. Older
versions act in text and get observations as user messages; newer ones call tools.
"""

from collections.abc import Sequence

from everlong.core import Json, JsonObject, Message, Role, Text
from everlong.errors import WireError
from everlong.wire.formats.openai_chat import messages as openai_chat
from everlong.wire.sessions.session import text_in
from everlong.wire.sessions.trees import Node, Tree, TreeFormat, chained, session_of, spoken

__all__ = ["NAME", "SESSION"]

NAME = "swe-agent"
#: Fields of a message that only SWE-agent writes.
OWN_FIELDS = frozenset({"agent", "message_type", "action", "is_demo", "tool_call_ids"})


def _recognises(value: JsonObject) -> bool:
    rows = _rows(value.get("history"))
    if rows:
        return any(OWN_FIELDS & row.keys() for row in rows)
    steps = _rows(value.get("trajectory"))
    return bool(steps) and all("action" in step and "observation" in step for step in steps)


def _rows(value: Json) -> list[JsonObject]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _tree_of(raw: JsonObject) -> Tree:
    return chained(raw.get("history") or raw.get("trajectory"))


def _converse(path: Sequence[Node]) -> list[Message]:
    messages: list[Message] = []
    for node, fields in path:
        messages += _of_step(node, fields) if "role" not in fields else _of_history(node, fields)
    return messages


def _of_history(node: str, fields: JsonObject) -> list[Message]:
    answered = fields.get("tool_call_ids")
    body: JsonObject = {"role": fields.get("role"), "content": fields.get("content")}
    if isinstance(fields.get("tool_calls"), list) and fields["tool_calls"]:
        body["tool_calls"] = fields["tool_calls"]
    if fields.get("role") == Role.TOOL:
        body["tool_call_id"] = answered[0] if isinstance(answered, list) and answered else ""
    try:
        message = openai_chat.read_message(body, node)
    except WireError:
        return []
    return [spoken(NAME, node, message.role, message.parts)]


def _of_step(node: str, fields: JsonObject) -> list[Message]:
    """Return an answer and its observation. The answer is the whole response, otherwise the thought and the action."""
    action = text_in(fields.get("action")).strip("\n")
    made = "\n".join(
        filter(None, (text_in(fields.get("thought")).strip("\n"), f"```\n{action}\n```" if action else ""))
    )
    said, seen = text_in(fields.get("response")) or made, text_in(fields.get("observation"))
    messages = [spoken(NAME, node, Role.ASSISTANT, [Text(said)])] if said else []
    return [*messages, spoken(NAME, "", Role.USER, [Text(seen)])] if seen else messages


def _written(fields: JsonObject, _name: str, _title: str, messages: Sequence[Message]) -> JsonObject:
    history: list[Json] = []
    for message in messages:
        for row in openai_chat.write_message(message):
            answered = row.pop("tool_call_id", None)
            history.append(row | {"agent": "main"} | ({"tool_call_ids": [answered]} if answered else {}))
    return fields | {"history": history}


def _environment(raw: JsonObject) -> str:
    return text_in(raw.get("environment"))


SESSION = session_of(
    TreeFormat(
        name=NAME,
        program="SWE-agent",
        recognises=_recognises,
        tree_of=_tree_of,
        converse=_converse,
        written=_written,
        session_id=lambda _raw: "",
        title=_environment,
        model=lambda _raw: "",
        began=lambda _raw: None,
        changed=lambda _raw: None,
        suffixes=(".traj", ".json"),
    )
)
