"""The conversations of the lab's data folder as sessions: the longest of them, with the probes that belong to them."""

from collections.abc import Sequence
from pathlib import Path

from everlong.errors import InputError
from everlong.lab.cases import Cases, probe_cases
from everlong.lab.data import Conversation, agents
from everlong.lab.replay.results import Told
from everlong.lab.replay.sessions import Session
from everlong.lab.strategy import counter
from everlong.tokens import CALL_FRAME, MESSAGE_FRAME

__all__ = ["published"]


def published(folder: Path, files: Sequence[str], half: str = "all", longest: int = 0) -> list[Session]:
    """The sessions of these files, the longest first; only so many of them, if a number is given."""
    asked = {one.conversation.id: one for one in probe_cases(folder, files, half)}
    found = [_session(one, asked.get(one.id)) for name in files for one in agents(folder, name, half)]
    if not found:
        raise InputError(f"{folder}: no conversations in {', '.join(files)} ({half})")
    found.sort(key=lambda session: -session.told.tokens)
    return found[:longest] if longest else found


def _session(conversation: Conversation, asked: Cases | None) -> Session:
    messages = conversation.messages
    frames = sum(MESSAGE_FRAME + CALL_FRAME * len(message.calls) for message in messages)
    told = Told(
        id=conversation.id,
        source=conversation.source,
        messages=len(messages),
        tokens=counter().messages(messages) - frames,
    )
    return Session(told=told, messages=messages, cases=() if asked is None else asked.cases)
