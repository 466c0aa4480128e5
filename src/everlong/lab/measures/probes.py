"""The measure of probes: strings that an agent used in a later call must still be there.

A probe is a string in the arguments of a call. Before that call it stands in one to three messages only, and the last
of them ended thousands of tokens ago: an agent that still has it can go on without looking it up again. Probes are read
from the data folder, or found in anyone's own transcripts in any format that everlong reads.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from everlong.core import Message, ToolCall
from everlong.errors import InputError
from everlong.lab.cases import Case, Cases
from everlong.lab.data import Conversation, agents, in_half, rows
from everlong.lab.measures.edits import replaced_texts
from everlong.lab.measures.presence import Measure, argument_strings, find_texts, texts_of
from everlong.relevance import names_in
from everlong.tokens import Counter
from everlong.wire import OPENAI_CHAT, read_all

__all__ = ["PROBES", "Probe", "chat_form", "conversations_in", "found_probes", "probe_cases", "probes_in", "save"]

PROBES = Measure("probes", find_texts)

DISTANCE = 3_000  # tokens between the last source and the use
MOST_SOURCES = 3
MOST_PROBES = 12  # of one conversation, so that a long one does not outweigh the others
EDIT_LINE = (24, 150)  # characters
PATH = (8, 60)
IDENTIFIER = (12, 60)

_FILE = re.compile(r"[\w.-]*\w\.[A-Za-z]{1,5}")
_CODE = re.compile(
    r"\b(?=[A-Z0-9]*[A-Z])(?=[A-Z0-9]*[0-9])[A-Z0-9]{6}\b|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b"
)


@dataclass(frozen=True, slots=True)
class Probe:
    """The assistant message at `at` used `needle`; before it the string stands only in `sources`."""

    at: int
    kind: str
    needle: str
    sources: tuple[int, ...]
    distance: int


def probe_cases(folder: Path, files: Sequence[str], half: str = "all") -> list[Cases]:
    """Return the probes that the data folder holds for these files."""
    conversations = {conversation.id: conversation for name in files for conversation in agents(folder, name, half)}
    cases: dict[str, list[Case]] = {}
    path = folder / "agents" / "probes.jsonl"
    for row in rows(path):
        try:
            key = str(row["conversation"])
            if row["file"] not in files or not in_half(key, half):
                continue
            if key not in conversations:
                raise InputError(f"{path}: no conversation {key!r} in {row['file']}")
            groups = (("kind", str(row["kind"])), ("source", conversations[key].source))
            cases.setdefault(key, []).append(Case(int(row["at"]), (str(row["needle"]),), groups))
        except KeyError as error:
            raise InputError(f"{path}: a probe has no {error}") from error
        except (TypeError, ValueError) as error:
            raise InputError(f"{path}: {row.get('id', 'a probe')} cannot be read: {error}") from error
    return [Cases(conversations[key], tuple(sorted(group, key=lambda case: case.at))) for key, group in cases.items()]


def conversations_in(data: bytes, path: str) -> list[Conversation]:
    """Return every conversation of a file, as OpenAI messages. Errors name the file."""
    name = re.sub(r"\.jsonl?(?:\.gz)?$", "", Path(path).name)
    try:
        documents = read_all(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    conversations = []
    for number, document in enumerate(documents):
        key = name if len(documents) == 1 else f"{name}-{number}"
        messages = tuple(chat for message in document.messages for chat in chat_form(message))
        conversations.append(Conversation(key, name, document.fmt, messages))
    return conversations


def chat_form(message: Message) -> tuple[Message, ...]:
    """Return a message as OpenAI messages, each tool result a message of its own.

    Other formats keep several results in one message. What is saved must have the positions that were measured.
    """
    return tuple(OPENAI_CHAT.read_message(raw) for raw in OPENAI_CHAT.write_message(message))


def probes_in(conversation: Conversation, counter: Counter) -> Cases:
    """Return the probes of a conversation as cases."""
    cases = tuple(
        Case(probe.at, (probe.needle,), (("kind", probe.kind), ("source", conversation.source)))
        for probe in found_probes(conversation.messages, counter)
    )
    return Cases(conversation, cases)


def found_probes(messages: Sequence[Message], counter: Counter) -> list[Probe]:
    """Return at most twelve probes, spread over the conversation, each string once."""
    texts = ["\n".join(texts_of(message)) for message in messages]
    ends = list(accumulate(map(counter.message, messages), initial=0))
    probes: dict[str, Probe] = {}
    for at, message in enumerate(messages):
        kinds = set()
        for kind, needle in _candidates(message.calls):
            if kind in kinds or needle in probes:
                continue
            probe = _probe(at, kind, needle, texts, ends)
            if probe is not None:
                probes[needle] = probe
                kinds.add(kind)
    return _spread(list(probes.values()))


def save(folder: Path, conversations: Iterable[Conversation], cases: Iterable[Cases]) -> None:
    """Write conversations and probes in the form of the data folder, and replace what was there."""
    home = folder / "agents"
    lines: dict[str, list[object]] = {}
    for conversation in conversations:
        messages = [raw for message in conversation.messages for raw in OPENAI_CHAT.write_message(message)]
        line = {"id": conversation.id, "source": conversation.source, "messages": messages}
        lines.setdefault(conversation.data, []).append(line)
    for group in cases:
        for number, case in enumerate(group.cases):
            row = {"id": f"{group.conversation.id}#{number}", "conversation": group.conversation.id}
            row |= {"file": group.conversation.data, "kind": dict(case.groups)["kind"], "needle": case.wanted[0]}
            lines.setdefault("probes", []).append(row | {"at": case.at})
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name, rows in lines.items():
            text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
            (home / f"{name}.jsonl").write_bytes(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror or error}") from error


def _candidates(calls: Iterable[ToolCall]) -> Iterator[tuple[str, str]]:
    """Yield what could be a probe in the arguments of calls, as (kind, string); whole lines come first."""
    for call in calls:
        for text in replaced_texts(call):
            for line in map(str.strip, text.split("\n")):
                if EDIT_LINE[0] <= len(line) <= EDIT_LINE[1]:
                    yield "edit_line", line
        for text in argument_strings(call.arguments):
            for name in names_in(text):
                last = name.rsplit("/", 1)[-1]
                # A name with a dot alone may be a field: `theme.bold`.
                if ("/" in name or name == text) and _FILE.fullmatch(last) and PATH[0] <= len(last) <= PATH[1]:
                    yield "path", last
                elif "/" not in name and "." not in name and IDENTIFIER[0] <= len(name) <= IDENTIFIER[1]:
                    yield "identifier", name
            for code in _CODE.findall(text):
                yield "code", code


def _probe(at: int, kind: str, needle: str, texts: Sequence[str], ends: Sequence[int]) -> Probe | None:
    """Return the probe if the string stands in one to three earlier messages and none of them is near; else None."""
    sources: list[int] = []
    for before in range(at - 1, -1, -1):
        if needle in texts[before]:
            sources.append(before)
            if len(sources) > MOST_SOURCES or ends[at] - ends[sources[0] + 1] < DISTANCE:
                return None
    return Probe(at, kind, needle, tuple(sources[::-1]), ends[at] - ends[sources[0] + 1]) if sources else None


def _spread(probes: list[Probe]) -> list[Probe]:
    if len(probes) <= MOST_PROBES:
        return probes
    return [probes[at * len(probes) // MOST_PROBES] for at in range(MOST_PROBES)]
