"""Move every part into a message that may contain it.

Results belong in tool messages, before anything else; calls and thinking in the assistant's; images in messages of the
roles that the provider allows. A tool message without results becomes the user's.
"""

from dataclasses import replace

from everlong.core import Image, Message, Opaque, Part, Reasoning, Role, Text, ToolResult
from everlong.wire.formats.format import Rules
from everlong.wire.formats.translation import image_note
from everlong.wire.formats.validation import may_hold, misplaced
from everlong.wire.repair.draft import Change

__all__ = ["NOT_ITS_OWN", "as_user", "plain", "seat_parts", "usual_shapes"]


def seat_parts(message: Message, rules: Rules) -> Change | None:
    """Move misplaced parts of a message, and replace images that its role may not have."""
    if not misplaced(message) and not _hidden_pictures(message, rules):
        return None
    results = message.results
    rest = tuple(_stub(part, message.role, rules) for part in message.parts if may_hold(message.role, part))
    reasons = _reasons(message, rules)
    if not results:
        known = as_user(message, rest) if message.role is Role.TOOL else message.with_parts(rest)
        return Change((known,), reasons)
    if message.role in (Role.TOOL, Role.USER):
        return Change((replace(message, role=Role.TOOL, parts=(*results, *rest)),), reasons)
    return Change((message.with_parts(rest), Message(Role.TOOL, results, origin=message.origin)), reasons)


def as_user(message: Message, parts: tuple[Part, ...]) -> Message:
    """Return parts of a tool message as a user message, without `extra`, which belongs to the results."""
    return replace(message, role=Role.USER, parts=parts, extra="")


def _hidden_pictures(message: Message, rules: Rules) -> bool:
    return message.role not in rules.pictures and any(isinstance(part, Image) for part in message.parts)


def _stub(part: Part, role: Role, rules: Rules) -> Part:
    return Text(image_note(part)) if isinstance(part, Image) and role not in rules.pictures else part


def _reasons(message: Message, rules: Rules) -> tuple[str, ...]:
    reasons = ["parts were in a place where they cannot be sent"] if misplaced(message) else []
    return (
        (*reasons, f"images are not allowed in messages from {message.role}")
        if _hidden_pictures(message, rules)
        else tuple(reasons)
    )


NOT_ITS_OWN = "sent without fields that only its own format has"


def usual_shapes(message: Message, rules: Rules) -> Change | None:
    """Rewrite a message of the provider's own format in the usual shape."""
    if message.origin != rules.fmt:
        return None
    known = rules.usual_shape(message)
    return None if known == message else Change((known,), ("its form was not accepted",))


def plain(message: Message, _rules: Rules) -> Change | None:
    """The last resort: keep only text, images, calls and results."""
    if not message.origin:
        return None
    parts = tuple(_plain_part(part) for part in message.parts if not isinstance(part, Opaque | Reasoning))
    return Change((replace(message, parts=parts, origin="", extra=""),), (NOT_ITS_OWN,))


def _plain_part(part: Part) -> Part:
    if isinstance(part, Opaque):
        return part
    if isinstance(part, ToolResult):
        content = tuple(replace(inner, extra="") for inner in part.content if not isinstance(inner, Opaque))
        return replace(part, content=content, extra="")
    return replace(part, extra="")
