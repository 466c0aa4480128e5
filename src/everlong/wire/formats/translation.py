"""Shared code for writing messages that came in another format.

It has what does not depend on the target: arguments that must be an object, inline images, system text in a list
without such a role, and which neighbours a provider reads as one message. It never reads `extra`, whose meaning only
the original format knows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from everlong.core import Image, JsonObject, JsonText, Message, Role, Text
from everlong.wire.fields import load

__all__ = ["RAW_ARGUMENTS", "arguments_object", "image_note", "inline_image", "is_web_url", "marked_system", "runs_of"]

#: Where arguments that are not a JSON object go, for providers that accept nothing else.
RAW_ARGUMENTS = "_raw"

DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)

Rendering = TypeVar("Rendering")


def arguments_object(arguments: JsonText) -> JsonObject:
    """Return the arguments of a call as an object, whatever they are.

    Example: '{"a":1}' -> {"a": 1};  "" and "null" -> {};  '{"a":' -> {"_raw": '{"a":'}
    """
    if not arguments.strip():
        return {}
    try:
        value = load(arguments)
    except (ValueError, RecursionError):  # truncated, or nested too deeply for the parser
        return {RAW_ARGUMENTS: arguments}
    if value is None:
        return {}
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: arguments}


def inline_image(image: Image) -> tuple[str, str] | None:
    """Return media type and base64 of an inline image or data URL; None for any other."""
    if not image.url:
        return image.media_type, image.data
    found = DATA_URL.fullmatch(image.url)
    return (found[1], found[2]) if found else None


def is_web_url(url: str) -> bool:
    """Whether any provider could fetch the URL; file ids and storage paths belong to one provider."""
    return url.startswith(("https://", "http://"))


def image_note(image: Image) -> str:
    """Return the text for an image that the provider does not accept."""
    inline = inline_image(image)
    return f"[image not shown: {inline[0] or 'unknown type'}]" if inline else f"[image not shown: {image.url}]"


SYSTEM_TAG = "system-message"


def marked_system(message: Message) -> Message:
    """Return system text for a list without a role for it: at its place, between tags that mark it.

    At the front it would be real system text, but it would change the first bytes of the request, which are cached.
    Example: "Be brief." -> "<system-message>\\nBe brief.\\n</system-message>"
    """
    parts = list(message.parts)
    texts = [at for at, part in enumerate(parts) if isinstance(part, Text) and part.text]
    if message.role is not Role.SYSTEM or not texts:
        return message
    for at, before, after in ((texts[0], f"<{SYSTEM_TAG}>\n", ""), (texts[-1], "", f"\n</{SYSTEM_TAG}>")):
        part = parts[at]
        assert isinstance(part, Text)
        parts[at] = replace(part, text=f"{before}{part.text}{after}")
    return message.with_parts(tuple(parts))


def runs_of(
    rendered: Sequence[tuple[Message, Rendering]], voices: Mapping[Role, str], *, apart: str = ""
) -> list[list[tuple[Message, Rendering]]]:
    """Group neighbours that the provider wants as one message: those whose roles have the same voice.

    A role without a voice stays single. Two neighbours that both have the origin `apart` stay separate.

    Example: user, assistant, tool, tool with {TOOL: "results"} -> [user], [assistant], [tool, tool]
    """
    runs: list[list[tuple[Message, Rendering]]] = []
    for item in rendered:
        before, message = runs[-1][-1][0] if runs else None, item[0]
        as_it_came = before is not None and apart != "" and before.origin == message.origin == apart
        voice = voices.get(message.role)
        if before is not None and voice is not None and voice == voices.get(before.role) and not as_it_came:
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs
