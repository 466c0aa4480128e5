"""A tool: something that a model may call, and the decorator that makes one from a function.

Owns how a function call becomes an outcome, whatever the function raises. The engine reads the signature. `calls` runs
the loop and asks for permission.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from everlong.agent.permissions.action import Action
from everlong.agent.permissions.permissions import Gate, Permissions
from everlong.core import Image, JsonObject, JsonText
from everlong.engine import Function, Signature, checked, run_function, tool_function, value_text
from everlong.errors import InputError

__all__ = ["Outcome", "Place", "Tool", "call_action", "tool"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call. A failure is an outcome too: the model reads it and continues."""

    text: str
    failed: bool = False
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call is made: the thread and call it belongs to, the workspace, and the gate its action goes through."""

    thread: str
    call: str
    workspace: Path
    #: Other folders that may be used.
    allowed: tuple[Path, ...] = ()
    gate: Gate = field(default=Gate(Permissions(), ""), repr=False)
    #: The action that a person saw and allowed; None if nobody was asked.
    asked: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a model can call.

    - `name`, `description`: what the model reads.
    - `parameters`: the JSON schema of the arguments.
    - `run`: runs a call. It never raises for a mistake of the model.
    - `action`: describes what a call is about to do, for permission; None for a tool that only reads. It may raise
      InputError for a call that cannot do anything.
    - `seconds`: how long a call may take; None for the agent's default.
    """

    name: str
    description: str
    parameters: JsonText
    run: Callable[[JsonObject, Place], Awaitable[Outcome]] = field(repr=False)
    action: Callable[[JsonObject, Place], Action] | None = field(default=None, repr=False)
    seconds: float | None = None


#: Describes what a call is about to do. The arguments include those with defaults.
Describe = Callable[[Mapping[str, Any], Place], Action]


@overload
def tool(function: Function, /) -> Tool: ...


@overload
def tool(
    *, name: str = "", description: str = "", asks: bool = False, action: Describe | None = None
) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    asks: bool = False,
    action: Describe | None = None,
) -> Tool | Callable[[Function], Tool]:
    """Make a tool from a function. A function that is not async runs in a thread.

    - The description is the function's docstring. Describe a parameter with `Annotated[str, "what it is"]`.
    - A parameter of type `Place` is filled in by the agent.
    - The model reads a returned string or `Outcome` as it is, and anything else as JSON.
    - With `asks=True` each call needs permission and shows its arguments; `action` can describe it better.

    Raises InputError for a function that a model could not call.

    Example: `@tool async def add(a: int, b: int = 1) -> str: "Add two numbers."` -> a Tool named "add"
    """

    def build(target: Function) -> Tool:
        known = tool_function(target, name=name, description=description, filled=Place)
        signature = known.signature

        async def run(arguments: JsonObject, place: Place) -> Outcome:
            return await _run(target, signature, arguments, place)

        def describe(arguments: JsonObject, place: Place) -> Action:
            values, complaints = checked(arguments, signature)
            if complaints:
                raise InputError(complaints)
            return action({**signature.defaults, **values}, place) if action else call_action(known.name, arguments)

        acts = describe if asks or action is not None else None
        return Tool(name=known.name, description=known.description, parameters=known.parameters, run=run, action=acts)

    return build if function is None else build(function)


def call_action(name: str, arguments: JsonObject, hint: str = "") -> Action:
    """Return the action of a tool about which nothing is known but its name and its arguments."""
    details = json.dumps(arguments, ensure_ascii=False, indent=2)
    return Action(tool=name, kind="tool", subject=name, details=details, hint=hint)


async def _run(function: Function, signature: Signature, arguments: JsonObject, place: Place) -> Outcome:
    """Call the function with the arguments of a model; whatever goes wrong is an outcome."""
    values, complaints = checked(arguments, signature)
    if complaints:
        return Outcome(complaints, failed=True)
    if signature.filled:
        values[signature.filled] = place
    outcome, raised = await run_function(function, values, _outcome)
    return Outcome(raised, failed=True) if outcome is None else outcome


def _outcome(value: Any) -> Outcome:
    return value if isinstance(value, Outcome) else Outcome(value_text(value))
