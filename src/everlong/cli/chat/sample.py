"""The sample conversation as a thread: its turns in one language, or enough of its text to nearly fill a window."""

import json
from collections.abc import Iterator
from itertools import pairwise

from everlong.cli.chat.session import Session
from everlong.cli.terminal.files import sample_document
from everlong.core import Budget, History, Message, Role, Text
from everlong.engine import counter_for
from everlong.relevance import language_of
from everlong.tokens import Counter

__all__ = ["SMALL", "begin_sample", "sample_talk", "sample_turns"]

SMALL = 8_000  # tokens of the window, if the model's own is larger
FILLED = 0.9  # of the threshold: the first compaction comes with the first or second turn
LATIN = 0.95  # of the characters; a model that knows no Chinese reads such a text quickly
TITLE = "Lantern Books"


def sample_talk(counter: Counter, most: int, *, latin: bool = False) -> History:
    """Return questions and answers without tool use, from the beginning, within `most` tokens; at least one pair."""
    taken: list[Message] = []
    size = 0
    for pair in _pairs(sample_document().messages):
        if latin and not all(_is_latin(message.text) for message in pair):
            continue
        size += counter.messages(pair)
        if taken and size > most:
            break
        taken += pair
    return tuple(taken)


def sample_turns(language: str) -> History:
    """Return the turns of the sample conversation whose question is in this language, with their calls and results."""
    messages = sample_document().messages
    starts = [at for at, message in enumerate(messages) if message.role is Role.USER]
    turns = [messages[start:stop] for start, stop in pairwise((*starts, len(messages)))]
    answered = (turn for turn in turns if len(turn) > 1 and language_of([turn[0].text]) == language)
    return tuple(message for turn in answered for message in turn)


def _pairs(messages: History) -> Iterator[History]:
    """Yield each user message with the last text of its answer, without calls and results."""
    question = ""
    answer = ""
    for message in messages:
        if message.role is Role.USER:
            if question and answer:
                yield _message(Role.USER, question), _message(Role.ASSISTANT, answer)
            question, answer = message.text, ""
        elif message.role is Role.ASSISTANT:
            answer = message.text or answer
    if question and answer:
        yield _message(Role.USER, question), _message(Role.ASSISTANT, answer)


def _message(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def _is_latin(text: str) -> bool:
    return sum(character.isascii() for character in text) >= LATIN * len(text)


async def begin_sample(session: Session) -> tuple[int, int]:
    """Fill the session's new thread; return the number of messages, and the window."""
    threads, config = session.engine.threads, session.config
    window = (await session.window()).context
    threads.create(session.thread, owner=config.owner, title=TITLE)
    if window > SMALL:
        window = SMALL
        threads.change(session.thread, settings=json.dumps({"window": SMALL}))
    budget = Budget.of(window, requested=config.max_tokens)
    counter = counter_for(config.model)
    call = await session.call()
    overhead = counter.tools(call.schemas) + counter.messages(call.standing)
    talk = sample_talk(counter, int(FILLED * (budget.threshold_tokens - overhead)), latin=session.setup.small)
    first = (_message(Role.SYSTEM, config.system),) if config.system else ()
    await session.engine.append(session.thread, (*first, *talk))
    return len(talk), window
