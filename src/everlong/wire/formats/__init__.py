"""The wire formats, one folder each, and the one table of them."""

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

#: By name. If a file shows signs of several, the first of them in this order counts.
FORMATS: Mapping[str, Format] = {each.name: each for each in (OPENAI_CHAT, GEMINI, OPENAI_RESPONSES, ANTHROPIC, OLLAMA)}


def format_named(name: str) -> Format:
    """Return the format of that name. Raises InputError that lists the names there are."""
    known = FORMATS.get(name)
    if known is None:
        meant = did_you_mean(name, FORMATS)
        raise InputError(f"unknown format {name!r}; the formats are {', '.join(sorted(FORMATS))}{meant}")
    return known


def problems(fmt: str, body: JsonObject) -> list[Problem]:
    """Return everything for which the provider of the format would reject the body; [] if it is valid.

    Example: problems("openai-chat", {"messages": []}) -> [Problem("messages", "there are no messages")]
    """
    return format_named(fmt).problems(body)
