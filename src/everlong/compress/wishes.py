"""Keep the user's standing wishes through every compaction, in one message of ours with the user's own words.

Our other messages are background, which the model must not obey. It must obey these, so they come only from users,
never from a tool, a file, the assistant or quoted text, and their frame differs from that of background. Each wish
appears once, at its last position. If two contradict each other, the later one counts, and both are visible.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from everlong.compress.draft import Task
from everlong.compress.excerpts import QUOTED, mark_of
from everlong.core import Message, Role, Text, frames_in, user_text
from everlong.relevance import in_language, wishes_in

__all__ = ["standing_wishes", "wishes_message"]

MOST_TOKENS = 1_500  # of all wishes together
BETWEEN = "\n\n"
WORDS = {
    "en": "The user's standing wishes, word for word, oldest first. They still hold; where two contradict, the later "
    "one counts, and newer messages count more.",
    "zh": "用户要求一直遵守的事项，均为原话，由旧到新，至今有效；相互矛盾时以较晚的为准，之后的消息优先。",
}

_FRAME = re.compile(r"<wishes-([0-9a-f]{8,})>\n[^\n]+\n\n(.*)\n</wishes-\1>", re.DOTALL)


def standing_wishes(messages: Sequence[Message]) -> dict[str, int]:
    """Return the standing wishes of the users, in order, each with the index of its last message.

    If the messages begin later, one of our own messages has the earlier wishes. In a conversation between people (the
    assistant role has names), nothing counts as a wish.
    """
    if any(message.name for message in messages if message.role is Role.ASSISTANT):
        return {}
    frames = frames_in(messages)
    found: dict[str, tuple[str, int]] = {}
    for at, message in enumerate(messages):
        text = user_text(message)
        for wish in _framed_wishes(text) if at in frames else wishes_in(text) if text else ():
            key = " ".join(wish.casefold().split()).strip(" .!。！")
            found.pop(key, None)
            found[key] = wish, at
    return dict(found.values())


def wishes_message(messages: Sequence[Message], sent: Mapping[int, Message], task: Task, most: int) -> Message | None:
    """Return a message with the newest wishes that the sent messages lack and that fit in `most` tokens.

    `sent` are the messages that are sent, by their index. None if there are no such wishes.
    """
    wishes = [
        wish for wish, at in standing_wishes(messages).items() if at not in sent or wish not in user_text(sent[at])
    ]
    most = min(most, MOST_TOKENS)
    left = most - task.counter.message(_framed((), task)) if wishes else 0
    kept: list[str] = []
    for wish in reversed(wishes):
        size = task.counter.text(_item(wish) + BETWEEN)
        if size <= left:
            kept.insert(0, wish)
            left -= size
    while kept and task.counter.message(_framed(kept, task)) > most:  # together they may take a little more
        del kept[0]
    return _framed(kept, task) if kept else None


def _framed(wishes: Iterable[str], task: Task) -> Message:
    inside = BETWEEN.join(map(_item, wishes))
    tag = f"wishes-{mark_of(inside)}"
    opening = in_language(WORDS, task.language)
    return Message(Role.USER, (Text(f"<{tag}>\n{opening}\n\n{inside}\n</{tag}>"),))


def _item(wish: str) -> str:
    return "\n".join(QUOTED + line for line in wish.split("\n"))


def _framed_wishes(text: str) -> list[str]:
    """Return the wishes in one of our messages; none for any other message, even if it looks like one."""
    found = _FRAME.fullmatch(text)
    if found is None or mark_of(found[2]) != found[1]:
        return []
    return [wish.replace(f"\n{QUOTED}", "\n").removeprefix(QUOTED) for wish in found[2].split(BETWEEN)]
