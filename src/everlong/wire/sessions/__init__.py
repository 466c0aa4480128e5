"""Session files of other programs, read and written: one module a program, and the one table of them.

Every module reads a record (a line of a file), writes it again as equal JSON, and says what all records together amount
to: the conversation, valid, in the order a model would see it.
"""

from collections.abc import Mapping

from everlong.wire.sessions.chatbox import SESSION as CHATBOX
from everlong.wire.sessions.claude_code import SESSION as CLAUDE_CODE
from everlong.wire.sessions.codex import SESSION as CODEX
from everlong.wire.sessions.nanobot import SESSION as NANOBOT
from everlong.wire.sessions.pi import SESSION as PI
from everlong.wire.sessions.session import SessionFormat

__all__ = [
    "CHATBOX",
    "CLAUDE_CODE",
    "CODEX",
    "NANOBOT",
    "PI",
    "SESSION_FORMATS",
    "SESSION_PROGRAMS",
    "SESSION_SUFFIXES",
]

#: By name, in the order in which they are tried.
SESSION_FORMATS: Mapping[str, SessionFormat] = {each.name: each for each in (PI, CLAUDE_CODE, CODEX, NANOBOT, CHATBOX)}
#: The programs, as people call them.
SESSION_PROGRAMS: tuple[str, ...] = tuple(each.program for each in SESSION_FORMATS.values())
#: How the names of their files end, and those of chat JSON; a file may also be packed, with `.gz` behind it.
SESSION_SUFFIXES: tuple[str, ...] = tuple(
    sorted({".json", *(suffix for each in SESSION_FORMATS.values() for suffix in each.suffixes)})
)
