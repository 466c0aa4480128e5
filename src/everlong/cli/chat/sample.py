"""A sample thread: the words of the conversation that ships with us, as much as nearly fills a small window."""

import json
from collections.abc import Iterator

from everlong.cli.chat.session import Session
from everlong.cli.terminal.files import read_document
from everlong.core import Budget, History, Message, Role, Text
from everlong.engine import counter_for
from everlong.tokens import Counter

__all__ = ["SMALL", "begin_sample", "sample_talk"]

SMALL = 8_000  # tokens, where the model's own window is larger
FILLED = 0.9  # of what may be sent before a cut: it comes with the first turn or the second
LATIN = 0.95  # of the characters: what a model that knows no Chinese reads fast
TITLE = "Lantern Books"


def sample_talk(counter: Counter, most: int, *, latin: bool = False) -> History:
    """Questions and answers in words, from the beginning, within `most` tokens; at least one of each."""
    taken: list[Message] = []
    size = 0
    for pair in _pairs(read_document(None, sample=True).messages):
        if latin and not all(_is_latin(message.text) for message in pair):
            continue
        size += counter.messages(pair)
        if taken and size > most:
            break
        taken += pair
    return tuple(taken)


def _pairs(messages: History) -> Iterator[History]:
    """What the user said and the last words of the answer, without calls and results."""
    asked = ""
    answer = ""
    for message in messages:
        if message.role is Role.USER:
            if asked and answer:
                yield _said(Role.USER, asked), _said(Role.ASSISTANT, answer)
            asked, answer = message.text, ""
        elif message.role is Role.ASSISTANT:
            answer = message.text or answer
    if asked and answer:
        yield _said(Role.USER, asked), _said(Role.ASSISTANT, answer)


def _said(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def _is_latin(text: str) -> bool:
    return sum(character.isascii() for character in text) >= LATIN * len(text)


async def begin_sample(session: Session) -> tuple[int, int]:
    """Fill the session's new thread; how many messages it has, and its window."""
    threads, config = session.engine.threads, session.config
    window = (await session.window()).context
    threads.create(session.thread, owner=config.owner, title=TITLE)
    if window > SMALL:
        window = SMALL
        threads.change(session.thread, settings=json.dumps({"window": SMALL}))
    budget = Budget.of(window, requested=config.max_tokens)
    counter = counter_for(config.model)
    call = await session.call()
    beside = counter.tools(call.tools) + counter.messages(call.standing)
    talk = sample_talk(counter, int(FILLED * (budget.high_mark - beside)), latin=session.setup.small)
    first = (_said(Role.SYSTEM, config.system),) if config.system else ()
    await session.engine.append(session.thread, (*first, *talk))
    return len(talk), window
