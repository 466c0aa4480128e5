"""What each provider insists on, as far as repair has to know it. A table, nothing else."""

import re
from dataclasses import dataclass

from everlong.core import Role
from everlong.errors import InputError

__all__ = ["RULES", "Rules", "rules_of"]

ANYTHING = re.compile(r"(?=.*\S).+", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One provider."""

    fmt: str
    #: What a call id must look like; an id that does not gets a new one that begins with `id_prefix`.
    call_id: re.Pattern[str] = ANYTHING
    id_prefix: str = "call"
    #: The same for calls that came in another format, where that is stricter.
    foreign_call_id: re.Pattern[str] | None = None
    #: Whether an id may not come again in a later turn. Within a message it never may.
    unique_ids: bool = False
    #: What a tool's name must look like, and what cannot stay in it.
    tool_name: re.Pattern[str] = ANYTHING
    not_in_tool_name: re.Pattern[str] = re.compile(r"(?!)")
    longest_tool_name: int = 128
    #: Whether a result repeats the name of its call.
    results_named: bool = False
    object_arguments: bool = False
    #: Whether a result may say nothing at all.
    silent_results: bool = False
    #: Whether neighbouring assistant messages are sent as one, so that results stand after the last.
    joins_assistants: bool = True
    #: Whether thinking is accepted only from this very provider, and only with its signature.
    own_thinking: bool = True
    signed_thinking: bool = False
    #: Whether thinking must be followed by what it led to.
    led_thinking: bool = False
    #: Who may show a picture.
    pictures: frozenset[Role] = frozenset({Role.USER, Role.TOOL})


RULES: dict[str, Rules] = {
    rules.fmt: rules
    for rules in (
        Rules(
            fmt="anthropic",
            call_id=re.compile(r"[a-zA-Z0-9_-]+"),
            id_prefix="toolu",
            unique_ids=True,
            tool_name=re.compile(r"[a-zA-Z0-9_-]{1,128}"),
            not_in_tool_name=re.compile(r"[^a-zA-Z0-9_-]"),
            object_arguments=True,
            signed_thinking=True,
            led_thinking=True,
        ),
        Rules(
            fmt="gemini",
            tool_name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
            not_in_tool_name=re.compile(r"[^a-zA-Z0-9_.:-]|^(?=[^a-zA-Z_])"),
            longest_tool_name=64,
            results_named=True,
            object_arguments=True,
            silent_results=True,
            pictures=frozenset(Role),
        ),
        Rules(
            fmt="openai-chat",
            foreign_call_id=re.compile(r"(?=.*\S).{1,40}", re.DOTALL),  # OpenAI takes no longer ones, others do
            joins_assistants=False,
            own_thinking=False,
        ),
        Rules(
            fmt="openai-responses",
            call_id=re.compile(r"(?=.*\S).{1,64}", re.DOTALL),
            unique_ids=True,
            tool_name=re.compile(r"[a-zA-Z0-9_-]+"),
            not_in_tool_name=re.compile(r"[^a-zA-Z0-9_-]"),
            led_thinking=True,
            pictures=frozenset({Role.SYSTEM, Role.USER, Role.TOOL}),
        ),
    )
}


def rules_of(fmt: str) -> Rules:
    """The rules of a format; InputError names the known ones."""
    if fmt not in RULES:
        raise InputError(f"no repair for {fmt!r}; known: {', '.join(RULES)}")
    return RULES[fmt]
