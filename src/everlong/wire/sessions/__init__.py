"""Session files of other programs, read and written: one module per program, and the table of them.

Every module reads a record (a line of a file), writes it again as equal JSON, and builds the conversation from all
records: valid, in the order that a model would see.
"""

from collections.abc import Mapping

from everlong.wire.sessions.agents.claude_code import SESSION as CLAUDE_CODE
from everlong.wire.sessions.agents.codex import SESSION as CODEX
from everlong.wire.sessions.agents.copilot import SESSION as COPILOT
from everlong.wire.sessions.agents.gemini_cli import SESSION as GEMINI_CLI
from everlong.wire.sessions.agents.nanobot import SESSION as NANOBOT
from everlong.wire.sessions.agents.opencode import SESSION as OPENCODE
from everlong.wire.sessions.agents.openhands import SESSION as OPENHANDS
from everlong.wire.sessions.agents.pi import SESSION as PI
from everlong.wire.sessions.agents.swe_agent import SESSION as SWE_AGENT
from everlong.wire.sessions.chats.chatbox import SESSION as CHATBOX
from everlong.wire.sessions.chats.chatgpt import SESSION as CHATGPT
from everlong.wire.sessions.chats.everlong import SESSION as EVERLONG
from everlong.wire.sessions.chats.librechat import SESSION as LIBRECHAT
from everlong.wire.sessions.chats.open_webui import SESSION as OPEN_WEBUI
from everlong.wire.sessions.session import SessionFormat

__all__ = [
    "CHATBOX",
    "CHATGPT",
    "CLAUDE_CODE",
    "CODEX",
    "COPILOT",
    "EVERLONG",
    "GEMINI_CLI",
    "LIBRECHAT",
    "NANOBOT",
    "OPENCODE",
    "OPENHANDS",
    "OPEN_WEBUI",
    "PI",
    "SESSION_FORMATS",
    "SESSION_PROGRAMS",
    "SESSION_SUFFIXES",
    "SWE_AGENT",
]

#: The formats by name, in the order in which they are tried.
SESSION_FORMATS: Mapping[str, SessionFormat] = {
    each.name: each
    for each in (
        PI,
        CLAUDE_CODE,
        CODEX,
        NANOBOT,
        EVERLONG,
        CHATGPT,
        OPEN_WEBUI,
        LIBRECHAT,
        CHATBOX,
        OPENCODE,
        GEMINI_CLI,
        SWE_AGENT,
        COPILOT,
        OPENHANDS,
    )
}
#: The names of the programs, for people.
SESSION_PROGRAMS: tuple[str, ...] = tuple(each.program for each in SESSION_FORMATS.values())
#: The suffixes of their files and of chat JSON; a compressed file also ends with `.gz`.
SESSION_SUFFIXES: tuple[str, ...] = tuple(
    sorted({".json", *(suffix for each in SESSION_FORMATS.values() for suffix in each.suffixes)})
)
