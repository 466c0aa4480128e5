"""Repair ids of calls and names of tools for the provider.

A new id depends only on the old one and on the messages before it, so a longer history gets the same ids.
"""

from dataclasses import replace

from everlong.core import CallId, Message, Part, ToolCall, ToolResult, ref_of
from everlong.wire.formats.format import Rules
from everlong.wire.repair.draft import Change

__all__ = ["UNNAMED_TOOL", "acceptable_id", "distinct_id", "repair_names"]

UNNAMED_TOOL = "tool"


def acceptable_id(call: CallId, rules: Rules, *, own: bool) -> CallId:
    """Return the id, or one made from it. `own` means that call and result came in the provider's own format."""
    accepted = rules.call_id if own or rules.foreign_call_id is None else rules.foreign_call_id
    return call if accepted.fullmatch(call) else CallId(f"{rules.id_prefix}_{ref_of(call)}")


def distinct_id(call: CallId, numbers: dict[CallId, int], rules: Rules, *, own: bool) -> CallId:
    """Return an id that can be sent with those in `numbers`, and add it there. Example: "0", "0" -> "0", "0_2" """
    base = candidate = acceptable_id(call, rules, own=own)
    while candidate in numbers:
        numbers[base] += 1
        candidate = acceptable_id(CallId(f"{base}_{numbers[base]}"), rules, own=own)
    numbers[candidate] = 1
    return candidate


def repair_names(message: Message, rules: Rules) -> Change | None:
    """Replace names of tools that are not accepted, in calls and results."""
    parts = tuple(_with_name(part, rules) for part in message.parts)
    if parts == message.parts:
        return None
    return Change((message.with_parts(parts),), ("the name of a tool was not acceptable",))


def _with_name(part: Part, rules: Rules) -> Part:
    if isinstance(part, ToolCall) and not rules.tool_name.fullmatch(part.name):
        return replace(part, name=_acceptable(part.name, rules))
    if isinstance(part, ToolResult) and part.name and not rules.tool_name.fullmatch(part.name):
        return replace(part, name=_acceptable(part.name, rules))
    return part


def _acceptable(name: str, rules: Rules) -> str:
    """Return an accepted name. Example: "mcp.read file" -> "mcp_read_file" """
    return (rules.not_in_tool_name.sub("_", name) if name.strip() else UNNAMED_TOOL)[: rules.longest_tool_name]
