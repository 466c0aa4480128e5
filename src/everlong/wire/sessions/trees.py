"""Files with one conversation each, often a tree: every edit and every new answer begins a branch.

Shared by these formats: the path from a leaf to the root, the other branches, and the session format built from a
`TreeFormat`, which has what is specific to one program. The conversation is the branch that was open last. An export is
kept whole in `extra`, so an unchanged conversation is written as it was.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from everlong.core import Image, Json, JsonObject, Message, Part, Reasoning, Role, Text, encode_all
from everlong.errors import WireError
from everlong.wire.document import Document, Record
from everlong.wire.fields import dump, load, pack, unpack
from everlong.wire.formats.openai_chat import messages as openai_chat
from everlong.wire.sessions.conversation import settle
from everlong.wire.sessions.records import aside, fresh_uuid, time_of
from everlong.wire.sessions.session import NamedValue, SessionFormat, SessionMarks, text_in

__all__ = [
    "Node",
    "Tree",
    "TreeFormat",
    "call_arguments",
    "chained",
    "given_arguments",
    "node_id",
    "picture",
    "seconds",
    "session_of",
    "spoken",
    "thoughts_of",
]

MOST_BRANCHES = 50  # besides the one that was open last
NAME_LENGTH = 40  # characters of the first message that become the name of a new conversation
DATA = "data:"
BASE64 = ";base64,"

#: The id of a message, and its fields in the file.
Node = tuple[str, JsonObject]


@dataclass(frozen=True, slots=True)
class Tree:
    """The messages of a conversation by id, the parent of each ("" for a root), and the one that was open last."""

    nodes: Mapping[str, JsonObject]
    parents: Mapping[str, str]
    current: str

    def path(self, leaf: str) -> list[Node]:
        """Return the messages from the root to a leaf. A cycle is cut where it closes."""
        names: dict[str, None] = {}
        at = leaf
        while at in self.nodes and at not in names:
            names[at] = None
            at = self.parents.get(at, "")
        return [(name, self.nodes[name]) for name in reversed(names)]

    @property
    def open_leaf(self) -> str:
        """The leaf that was open last; the newest if the file does not say."""
        return self.current if self.current in self.nodes else next(reversed(self.leaves), "")

    @property
    def leaves(self) -> list[str]:
        """The messages without a successor, in the order of the file."""
        followed = set(self.parents.values())
        return [name for name in self.nodes if name not in followed]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFormat:
    """What is specific to one program."""

    name: str
    program: str
    #: Whether an object is one of its conversations.
    recognises: Callable[[JsonObject], bool]
    tree_of: Callable[[JsonObject], Tree]
    #: Builds the messages along a path.
    converse: Callable[[Sequence[Node]], list[Message]]
    #: Writes a changed or new conversation, given the earlier fields of the file, an id, a title and the messages.
    written: Callable[[JsonObject, str, str, Sequence[Message]], JsonObject]
    session_id: Callable[[JsonObject], str]
    title: Callable[[JsonObject], str]
    model: Callable[[JsonObject], str]
    began: Callable[[JsonObject], datetime | None]
    changed: Callable[[JsonObject], datetime | None]
    put_away: Callable[[JsonObject], bool] = lambda _fields: False
    #: The suffixes of its files, and their folders below the home directory.
    suffixes: tuple[str, ...] = (".json",)
    folders: tuple[str, ...] = ()


def chained(rows: Json) -> Tree:
    """Return the tree of a file without branches: the objects of a list, each after the one before."""
    nodes: dict[str, JsonObject] = {}
    parents: dict[str, str] = {}
    before = ""
    for at, row in enumerate(rows if isinstance(rows, list) else []):
        if isinstance(row, dict):
            name = text_in(row.get("id"))
            name = name if name and name not in nodes else f"message-{at}"
            nodes[name], parents[name], before = row, before, name
    return Tree(nodes, parents, before)


def session_of(form: TreeFormat) -> SessionFormat:
    """Return the session format of a program."""

    def document(raw: Json, leaf: str = "") -> Document:
        fields = _object(raw, form.name)
        tree = form.tree_of(fields)
        messages, _ = settle(form.converse(tree.path(leaf or tree.open_leaf)))
        return Document(fmt=form.name, messages=messages, model=form.model(fields), extra=pack(fields))

    def branches(found: Document) -> tuple[Document, ...]:
        fields = unpack(found.extra)[0]
        tree = form.tree_of(fields)
        known = {found.messages}
        others: list[Document] = []
        for leaf in [leaf for leaf in tree.leaves if leaf != tree.open_leaf][:MOST_BRANCHES]:
            messages, _ = settle(form.converse(tree.path(leaf)))
            if messages and messages not in known and not any(_begins(one, messages) for one in known):
                known.add(messages)
                others.append(replace(found, messages=messages, warnings=()))
        return tuple(others)

    def written(found: Document) -> JsonObject:
        fields = unpack(found.extra)[0] if found.fmt == form.name else {}
        if fields and document(fields).messages == found.messages:
            return fields
        name = form.session_id(fields) or fresh_uuid(encode_all(found.messages), set())
        title = form.title(fields) or _first_words(found.messages) or "Conversation"
        return form.written(fields, name, title, found.messages)

    def read(named: Iterable[NamedValue], warnings: Sequence[str]) -> tuple[Document, ...]:
        ((_, raw),) = named
        found = document(raw)
        return (replace(found, warnings=(*warnings, *found.warnings)),)

    def of_export(part: Callable[[JsonObject], str]) -> Callable[[Document], str]:
        return lambda found: part(unpack(found.extra)[0])

    return SessionFormat(
        name=form.name,
        program=form.program,
        sent_as=openai_chat.NAME,
        recognises=lambda first: len(first) == 1 and form.recognises(first[0]),
        read_record=_read_record,
        read=read,
        write=written,
        in_lines=False,
        suffixes=form.suffixes,
        folders=form.folders,
        marks=SessionMarks(
            session_id=of_export(form.session_id),
            title=of_export(form.title),
            began=lambda found: form.began(unpack(found.extra)[0]),
            changed=lambda found: form.changed(unpack(found.extra)[0]),
            message_id=node_id,
            branches=branches,
            put_away=lambda found: form.put_away(unpack(found.extra)[0]),
        ),
    )


def _read_record(raw: Json, _where: str) -> Record:
    """Return a record unchanged: an export has no records besides its conversations."""
    return aside(raw)


def _object(raw: Json, fmt: str) -> JsonObject:
    if not isinstance(raw, dict):
        raise WireError(f"a conversation must be an object, not {type(raw).__name__}", fmt=fmt)
    return raw


def _begins(longer: Sequence[Message], messages: Sequence[Message]) -> bool:
    return tuple(longer[: len(messages)]) == tuple(messages)


def _first_words(messages: Sequence[Message]) -> str:
    return next((message.text.strip().split("\n")[0][:NAME_LENGTH] for message in messages if message.text.strip()), "")


# --- parts of messages ---------------------------------------------------------------------------


def spoken(
    fmt: str, node: str, role: Role, parts: Sequence[Part], time: datetime | None = None, model: Json = ""
) -> Message:
    """Return a message read from a node, with the id of the node and the model that wrote it."""
    extra = pack({"id": node}) if node else ""
    return Message(role, tuple(parts), time=time, origin=fmt, extra=extra, model=text_in(model))


def node_id(message: Message) -> str:
    """Return the id of the node that a message was read from; "" if there is none."""
    return text_in(unpack(message.extra)[0].get("id")) if message.extra else ""


def seconds(value: Json) -> datetime | None:
    """Return a time from seconds since 1970 or ISO text; None if it is neither."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return time_of(cast(float, value) * 1_000 if number else value)


def picture(url: Json) -> Part | None:
    """Return an inline image; a note for one that is elsewhere; None without a URL."""
    if not isinstance(url, str) or not url:
        return None
    kind, found, data = url.removeprefix(DATA).partition(BASE64)
    if url.startswith(DATA) and found:
        return Image(data=data, media_type=kind)
    return Text("[image]" if url.startswith(DATA) else f"[image: {url[:200]}]")


def call_arguments(text: str) -> str:
    """Return the arguments of a call: the text itself if it is a JSON object, otherwise an object with the text."""
    try:
        value = load(text)
    except (ValueError, RecursionError):
        value = None
    return text if isinstance(value, dict) else dump({"text": text})


def given_arguments(text: str) -> JsonObject:
    """Return the arguments of a call as an object; a text that is not an object is put into one."""
    value = load(call_arguments(text))
    return value if isinstance(value, dict) else {}


def thoughts_of(message: Message) -> str:
    """Return the reasoning of a message."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Reasoning))
