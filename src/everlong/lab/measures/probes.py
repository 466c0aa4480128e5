"""The measure of probes: strings that an agent used in a later call must still be there.

A probe is a string in the arguments of a call, or in a code block of an agent that acts in its text. Before that, it
occurs in one to three messages only, and the last of them ended thousands of tokens ago: an agent that still has it can
continue without looking it up again. Probes are read from the data folder, or found in the user's own transcripts in
any format that everlong reads.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from everlong.core import Message
from everlong.errors import InputError
from everlong.lab.cases import Case, Cases
from everlong.lab.data import OWN_PROBES, SHARED_PROBES, Conversation, agents, outside, rows
from everlong.lab.measures.edits import acted_texts, replaced_in
from everlong.lab.measures.presence import Measure, argument_strings, find_texts, texts_of
from everlong.relevance import names_in
from everlong.tokens import Counter
from everlong.wire import OPENAI_CHAT

__all__ = ["PROBES", "Probe", "chat_form", "found_probes", "probe_cases", "probes_in"]

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
    """The assistant message at `at` used `needle`; earlier, the string occurs only in `sources`."""

    at: int
    kind: str
    needle: str
    sources: tuple[int, ...]
    distance: int


def probe_cases(folder: Path, files: Sequence[str], half: str = "all") -> list[Cases]:
    """Return the probes in the data folder for these files."""
    conversations = {conversation.id: conversation for name in files for conversation in agents(folder, name, half)}
    others = {key for name in files for key in outside(folder / "agents" / f"{name}.jsonl", half)}
    cases: dict[str, list[Case]] = {}
    for path, row in _stored_probes(folder / "agents", files):
        try:
            key = str(row["conversation"])
            if row["file"] not in files or key in others:
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


def _stored_probes(home: Path, files: Sequence[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every probe with its file: that of its data set, else the one that several data sets share."""
    own = {name: path for name in files if (path := home / f"{name}{OWN_PROBES}").is_file()}
    shared = [] if own.keys() >= set(files) else [home / SHARED_PROBES]
    for path in (*own.values(), *shared):
        for row in rows(path):
            if path in shared and row.get("file") in own:
                continue
            yield path, row


def chat_form(message: Message) -> tuple[Message, ...]:
    """Return a message as OpenAI messages, each tool result as a separate message.

    Other formats have several results in one message. Saved data must have the positions that were measured.
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
        for kind, needle in _candidates(message):
            if kind in kinds or needle in probes:
                continue
            probe = _probe(at, kind, needle, texts, ends)
            if probe is not None:
                probes[needle] = probe
                kinds.add(kind)
    return _spread(list(probes.values()))


def _candidates(message: Message) -> Iterator[tuple[str, str]]:
    """Yield possible probes in the actions of a message, as (kind, string); whole lines come first."""
    for text in replaced_in(message):
        for line in map(str.strip, text.split("\n")):
            if EDIT_LINE[0] <= len(line) <= EDIT_LINE[1]:
                yield "edit_line", line
    done = [text for call in message.calls for text in argument_strings(call.arguments)]
    for text in (*done, *acted_texts(message)):
        for name in names_in(text):
            last = name.rsplit("/", 1)[-1]
            # A name with only a dot may be a field: `theme.bold`.
            if ("/" in name or name == text) and _FILE.fullmatch(last) and PATH[0] <= len(last) <= PATH[1]:
                yield "path", last
            elif "/" not in name and "." not in name and IDENTIFIER[0] <= len(name) <= IDENTIFIER[1]:
                yield "identifier", name
        for code in _CODE.findall(text):
            yield "code", code


def _probe(at: int, kind: str, needle: str, texts: Sequence[str], ends: Sequence[int]) -> Probe | None:
    """Return the probe if the string occurs in one to three earlier messages and none of them is near; else None."""
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
