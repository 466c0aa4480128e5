"""What every format does with messages that were made for another one.

Owns the pieces that do not depend on the target: arguments that must be an object, pictures that
travel inline, system text in a list that has no such role, and which neighbours a provider reads as one
message. Never looks at `extra`: what a foreign format put there is not ours to understand.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from everlong.core import Image, JsonObject, JsonText, Message, Role, Text
from everlong.wire.fields import load

__all__ = ["RAW_ARGUMENTS", "arguments_object", "image_note", "inline_image", "is_web_url", "marked_system", "runs_of"]

#: Where arguments that are no JSON object go, for providers that accept nothing else.
RAW_ARGUMENTS = "_raw"

DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)

Rendering = TypeVar("Rendering")


def arguments_object(arguments: JsonText) -> JsonObject:
    """The arguments of a call as an object, whatever they are.

    Example: '{"a":1}' -> {"a": 1};  "" and "null" -> {};  '{"a":' -> {"_raw": '{"a":'}
    """
    if not arguments.strip():
        return {}
    try:
        value = load(arguments)
    except (ValueError, RecursionError):  # cut short, or nested deeper than any parser goes
        return {RAW_ARGUMENTS: arguments}
    if value is None:
        return {}
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: arguments}


def inline_image(image: Image) -> tuple[str, str] | None:
    """Media type and base64 of a picture that brings its own bytes, also as a data URL."""
    if not image.url:
        return image.media_type, image.data
    found = DATA_URL.fullmatch(image.url)
    return (found[1], found[2]) if found else None


def is_web_url(url: str) -> bool:
    """Whether any provider could fetch it; a file id or a storage path belongs to one of them."""
    return url.startswith(("https://", "http://"))


def image_note(image: Image) -> str:
    """The text for a picture that the provider does not accept."""
    inline = inline_image(image)
    return f"[image not shown: {inline[0] or 'unknown type'}]" if inline else f"[image not shown: {image.url}]"


SYSTEM_TAG = "system-message"


def marked_system(message: Message) -> Message:
    """System text for a list that has no role for it: where it stands, its words between tags that say what they are.

    In front it would be system text for the provider too, but there the bytes before everything else would change.
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
    """Neighbours that the provider wants in one message: those whose roles have the same voice.

    A role without a voice stays single. Two neighbours of the origin `apart` stay as they came.

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
