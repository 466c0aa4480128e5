"""What is being asked, as weighted terms: the last user message, recent words, thoughts and arguments."""

from collections.abc import Sequence

from everlong.core.messages import Message, Reasoning, Role, user_text
from everlong.relevance.terms import terms_of, words_of

__all__ = ["file_names", "query_of", "query_of_text"]

FADING = 0.8  # each message further back counts this much of the next one
SPOKEN_BACK = 6  # assistant messages whose words count
CALLED_BACK = 2  # assistant messages whose arguments count
THOUGHT_WEIGHT = 2.0  # thinking names what comes next
RESULT_WEIGHT = 0.5
WORDS_TAKEN = 400  # of any one text: its start says what it is about
FILES_BACK = 6
LONGEST_PATH = 300


def query_of_text(text: str) -> dict[str, float]:
    """The terms of a question."""
    query: dict[str, float] = {}
    _take(query, text, 1.0)
    return query


def query_of(messages: Sequence[Message]) -> dict[str, float]:
    """The terms that the end of a conversation is about."""
    query: dict[str, float] = {}
    asked = next((message for message in reversed(messages) if user_text(message)), None)
    if asked is not None:
        _take(query, user_text(asked), 1.0)
    newest = next((message for message in reversed(messages) if message.results), None)
    if newest is not None:
        _take(query, "\n".join(result.text[:20_000] for result in newest.results), RESULT_WEIGHT)
    spoken = 0
    for message in reversed(messages):
        if message.role is not Role.ASSISTANT:
            continue
        _take_spoken(query, message, spoken)
        spoken += 1
        if spoken >= SPOKEN_BACK:
            break
    return query


def file_names(messages: Sequence[Message]) -> list[str]:
    """The paths in the arguments of the latest calls, newest first, as far as they look like files."""
    names: list[str] = []
    for message in reversed(messages):
        for call in reversed(message.calls):
            names.extend(filter(_looks_like_a_file, call.arguments.replace("\\/", "/").split('"')))
        if len(names) >= FILES_BACK:
            break
    return list(dict.fromkeys(names))[:FILES_BACK]


def _looks_like_a_file(word: str) -> bool:
    return len(word) < LONGEST_PATH and "." in word.rsplit("/", 1)[-1] and not any(c.isspace() for c in word)


def _take_spoken(query: dict[str, float], message: Message, back: int) -> None:
    fading = FADING**back
    _take(query, message.text, fading)
    for part in message.parts:
        if isinstance(part, Reasoning):
            _take(query, part.text, THOUGHT_WEIGHT * fading)
    if back < CALLED_BACK:
        for call in message.calls:
            _take(query, call.arguments, fading)


def _take(query: dict[str, float], text: str, weight: float) -> None:
    for word in dict.fromkeys(words_of(text)[:WORDS_TAKEN]):
        for term, share in terms_of(word):
            query[term] = max(query.get(term, 0.0), weight * share)
