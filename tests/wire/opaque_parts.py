"""Opaque parts of one message or of the items of an answer, by the name of a format."""

from collections.abc import Sequence
from typing import Any

from everlong.wire import Find, format_named


def opaque_parts(fmt: str, message: dict[str, Any] | Sequence[Any]) -> dict[str, str]:
    members = [message] if isinstance(message, dict) else message
    return format_named(fmt).server.opaque.parts(members)


def restored(fmt: str, message: dict[str, Any], find: Find) -> dict[str, Any]:
    (whole,) = format_named(fmt).server.opaque.restored([message], find)
    return whole


def restored_items(items: list[Any], find: Find) -> list[Any]:
    return format_named("openai-responses").server.opaque.restored(items, find)
