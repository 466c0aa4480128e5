"""Build a query of weighted terms from the end of a conversation: the last user message, recent words and calls."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import cast

from everlong.core import FrameKind, Json, JsonText, Message, Reasoning, Role, frames_in, last_user_index, said_by_users
from everlong.relevance.agenda import running_task
from everlong.relevance.calls import COMMAND_KEYS, LONGEST_ARGUMENT, base_name, fields_of, file_of
from everlong.relevance.terms import terms_of, words_of

__all__ = ["argument_text", "calls_since", "literals_asked", "newest_results", "query_of", "query_of_text"]

FADING = 0.8  # each message counts this share of the one after it
SPOKEN_BACK = 6  # assistant messages whose words, thoughts and arguments count
WORDS_TAKEN = 400  # of each text: its start says what it is about
FILES_BACK = 30  # calls
LONGEST_PATH = 300
LONGEST_RESULT = 20_000  # characters
LONGEST_QUESTION = 4_000

ASKED_WEIGHT = 0.75
SAID_WEIGHT = 2.6  # the model does next what it announces
THOUGHT_WEIGHT = 4.0
TASK_WEIGHT = 1.5
CALLED_WEIGHT = 1.2
CALLED_EARLIER_WEIGHT = 0.2
RESULT_WEIGHT = 0.2

_terms_of = lru_cache(maxsize=50_000)(terms_of)


def query_of_text(text: str) -> dict[str, float]:
    """Return the terms of a question."""
    return _terms([(text, 1.0)])


def query_of(messages: Sequence[Message]) -> dict[str, float]:
    """Return the terms that the end of a conversation is about."""
    question = next(said_by_users(messages), "")
    spoken = list(islice((message for message in reversed(messages) if message.role is Role.ASSISTANT), SPOKEN_BACK))
    faded = [(message, FADING**back) for back, message in enumerate(spoken)]
    spoken_texts = [(message.text, share) for message, share in faded]
    thought = [(part.text, share) for message, share in faded for part in message.parts if isinstance(part, Reasoning)]
    called = [(argument_text(call.arguments), share) for message, share in faded[:1] for call in message.calls]
    called_earlier = [(argument_text(call.arguments), share) for message, share in faded[1:] for call in message.calls]
    query: dict[str, float] = {}
    for texts, weight in (
        ([(question, 1.0)], ASKED_WEIGHT),
        (spoken_texts, SAID_WEIGHT),
        (thought, THOUGHT_WEIGHT),
        ([(running_task(messages), 1.0)], TASK_WEIGHT),
        (called, CALLED_WEIGHT),
        (called_earlier, CALLED_EARLIER_WEIGHT),
        ([(newest_results(messages), 1.0)], RESULT_WEIGHT),
    ):
        for term, share in _terms(texts).items():
            query[term] = query.get(term, 0.0) + weight * share
    return query


_QUOTED = re.compile(r"""[`"“「『]([^`"“”「」『』\n]{3,80})[`"”」』]""")
_LITERAL = re.compile(r"(?=.*(?:[0-9]|_|[a-z][A-Z])).{2,}|[A-Z]{3,}")


def literals_asked(messages: Sequence[Message]) -> list[str]:
    """Return what an unanswered question names literally: quoted phrases, identifiers and numbers.

    Example: 'What was with code E1207 and "no route"?' -> ["no route", "E1207"]
    """
    at = last_user_index(messages)
    if at is None or any(message.role is Role.ASSISTANT for message in messages[at:]):
        return []
    question = messages[at].text[:LONGEST_QUESTION]
    words = (word for word in words_of(question) if _LITERAL.fullmatch(word))
    return list(dict.fromkeys([*_QUOTED.findall(question), *words]))


def argument_text(arguments: JsonText) -> str:
    """Return the strings in a call's arguments, decoded and joined by newlines; unchanged if they are not JSON.

    Example: '{"path": "a.py", "new": "x\\\\ty"}' -> "a.py\\nx\\ty"
    """
    try:
        waiting = [cast(Json, json.loads(arguments))]
    except (ValueError, RecursionError):
        return arguments
    texts = []
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
    return "\n".join(texts)


def newest_results(messages: Sequence[Message]) -> str:
    """Return the newest tool results, clipped, including those in a user message."""
    frames = frames_in(messages)
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].results:
            return "\n".join(result.text[:LONGEST_RESULT] for result in messages[at].results)
        if at in frames and frames[at].kind is FrameKind.RESULT:
            return messages[at].text[:LONGEST_RESULT]
    return ""


def calls_since(messages: Sequence[Message]) -> dict[str, int]:
    """Return how many calls ago each file was last named, by base name, in the latest calls. Example: {"app.py": 0}"""
    files: dict[str, int] = {}
    latest = islice((call for message in reversed(messages) for call in reversed(message.calls)), FILES_BACK)
    for ago, call in enumerate(latest):
        for name in _file_names(call.arguments):
            files.setdefault(name, ago)
        shown = _file_shown(call.arguments)
        if shown:
            files.setdefault(base_name(shown), ago)
    return files


@lru_cache(maxsize=2_000)
def _file_shown(arguments: JsonText) -> str:
    """Return the file that a shell command shows; "" if there is none."""
    is_command = len(arguments) < 2 * LONGEST_ARGUMENT and any(key in arguments for key in COMMAND_KEYS)
    return file_of(fields_of(arguments)).path if is_command else ""


def _file_names(arguments: str) -> Iterator[str]:
    for word in arguments.replace("\\/", "/").replace("\\\\", "/").split('"'):
        name = word.rsplit("/", 1)[-1]
        if len(word) < LONGEST_PATH and "." in name and not any(map(str.isspace, word)):
            yield name


def _terms(texts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return each term with the largest weight that any text gives it."""
    query: dict[str, float] = {}
    for text, weight in texts:
        for word in dict.fromkeys(words_of(text)[:WORDS_TAKEN]):
            for term, share in _terms_of(word):
                query[term] = max(query.get(term, 0.0), weight * share)
    return query
