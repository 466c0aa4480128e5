"""The wire formats, one folder each, and the table of them."""

from collections.abc import Mapping

from everlong.core import JsonObject, did_you_mean
from everlong.errors import InputError
from everlong.wire.formats.anthropic import FORMAT as ANTHROPIC
from everlong.wire.formats.format import Format
from everlong.wire.formats.gemini import FORMAT as GEMINI
from everlong.wire.formats.ollama import FORMAT as OLLAMA
from everlong.wire.formats.openai_chat import FORMAT as OPENAI_CHAT
from everlong.wire.formats.openai_responses import FORMAT as OPENAI_RESPONSES
from everlong.wire.formats.validation import Problem

__all__ = ["ANTHROPIC", "FORMATS", "GEMINI", "OLLAMA", "OPENAI_CHAT", "OPENAI_RESPONSES", "format_named", "problems"]

#: The formats by name. If a file has signs of several, the first in this order counts.
FORMATS: Mapping[str, Format] = {each.name: each for each in (OPENAI_CHAT, GEMINI, OPENAI_RESPONSES, ANTHROPIC, OLLAMA)}


def format_named(name: str) -> Format:
    """Return the format with this name. Raises InputError with the names of all formats."""
    known = FORMATS.get(name)
    if known is None:
        meant = did_you_mean(name, FORMATS)
        raise InputError(f"unknown format {name!r}; the formats are {', '.join(sorted(FORMATS))}{meant}")
    return known


def problems(fmt: str, body: JsonObject) -> list[Problem]:
    """Return every reason for which the provider of the format would reject the body; [] if it is valid.

    Example: problems("openai-chat", {"messages": []}) -> [Problem("messages", "there are no messages")]
    """
    return format_named(fmt).problems(body)
