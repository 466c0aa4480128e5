"""A tool: something that a model may call, and the decorator that makes one from a function.

Owns how a signature becomes a JSON schema, how arguments are checked against it, and how anything that a function
raises becomes an outcome. It runs no loop and asks nobody: `calls` does.
"""

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints, overload

import msgspec

from everlong.agent.permissions.action import Action
from everlong.agent.permissions.permissions import Gate, Permissions
from everlong.core import Image, Json, JsonObject, JsonText
from everlong.errors import EverlongError, InputError

__all__ = ["Outcome", "Place", "Tool", "call_action", "tool"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call. A failure is an outcome too: the model reads it and goes on."""

    text: str
    failed: bool = False
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call is made: the thread and call it belongs to, the workspace, and the gate its action goes through."""

    thread: str
    call: str
    workspace: Path
    #: Folders beside the workspace that may be used as well.
    allowed: tuple[Path, ...] = ()
    gate: Gate = field(default=Gate(Permissions(), ""), repr=False)
    #: What somebody was shown and allowed; None where nobody was asked.
    asked: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. `parameters` is the JSON schema of its arguments; `run` never raises for what the model did wrong.

    `action` says what a call is about to do, and the call needs permission for that; None is a tool that only reads.
    It may raise InputError for a call that could do nothing.
    """

    name: str
    description: str
    parameters: JsonText
    run: Callable[[JsonObject, Place], Awaitable[Outcome]] = field(repr=False)
    action: Callable[[JsonObject, Place], Action] | None = field(default=None, repr=False)
    #: Seconds that a call may take; None is the time that the agent's configuration gives every tool.
    seconds: float | None = None


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")  # what every provider accepts
LONGEST_MESSAGE = 2_000  # characters of an exception
LONGEST_SCHEMA = 300  # characters of one in a complaint
MOST_COMPLAINTS = 12
REFERENCE = "#/$defs/"
#: Kinds of parameters that a model cannot give.
NOT_BY_NAME = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{name}",
    inspect.Parameter.VAR_KEYWORD: "takes **{name}",
    inspect.Parameter.POSITIONAL_ONLY: "takes {name} by position only",
}

Function = Callable[..., Any]
#: Says what a call with these arguments, all of them, is about to do.
Describe = Callable[[Mapping[str, Any], Place], Action]


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter that the model fills in."""

    name: str
    kind: Any
    schema: JsonObject
    required: bool


@dataclass(frozen=True, slots=True)
class _Signature:
    """The parameters of a function. `place` names the one that is given the Place, "" where there is none."""

    parameters: tuple[_Parameter, ...]
    place: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)


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
    """Make a tool from a function, sync (it runs in a thread) or async.

    The description is its docstring; a parameter is described by `Annotated[str, "what it is"]`; a parameter of type
    `Place` is filled in by the agent. The model reads text and an `Outcome` as they are, anything else as JSON.
    With `asks` each call needs permission and shows its arguments; `action` describes it better, from all of them.
    Raises InputError for a function that a model could not call.

    Example: `@tool async def add(a: int, b: int = 1) -> str: "Add two numbers."` -> a Tool named "add"
    """

    def build(target: Function) -> Tool:
        tool_name = name or getattr(target, "__name__", "")
        if not inspect.isfunction(target) or inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
            raise InputError(f"{tool_name or target!r} cannot be a tool: only plain and async functions can")
        if not NAME.fullmatch(tool_name):
            raise InputError(f"{tool_name!r} cannot name a tool: letters, digits, _ and -, at most 64; give name=")
        text = description or inspect.cleandoc(target.__doc__ or "")
        if not text:
            raise InputError(f"{tool_name} needs a docstring: the model reads it as the tool's description")
        signature = _signature(target, tool_name)
        schema = json.dumps(_schema(signature), ensure_ascii=False)

        async def run(arguments: JsonObject, place: Place) -> Outcome:
            return await _run(target, signature, arguments, place)

        def describe(arguments: JsonObject, place: Place) -> Action:
            values, complaints = _checked(arguments, signature)
            if complaints:
                raise InputError("\n".join(complaints[:MOST_COMPLAINTS]))
            return action({**signature.defaults, **values}, place) if action else call_action(tool_name, arguments)

        acts = describe if asks or action is not None else None
        return Tool(name=tool_name, description=text, parameters=schema, run=run, action=acts)

    return build if function is None else build(function)


def call_action(name: str, arguments: JsonObject, hint: str = "") -> Action:
    """Return the action of a tool about which nothing is known but its name and its arguments."""
    details = json.dumps(arguments, ensure_ascii=False, indent=2)
    return Action(tool=name, kind="tool", subject=name, details=details, hint=hint)


def _signature(function: Function, tool_name: str) -> _Signature:
    """Return the parameters of a function. Raises InputError for one that a model could not give."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise InputError(f"{tool_name}: its type hints cannot be read: {error}") from error
    parameters, place, defaults = [], "", {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in NOT_BY_NAME:
            raise InputError(f"{tool_name} {NOT_BY_NAME[parameter.kind].format(name=name)}: a model cannot give that")
        if name not in hints:
            raise InputError(f"{tool_name}: parameter {name} needs a type")
        if hints[name] is Place:
            place = name
        else:
            parameters.append(_parameter(tool_name, name, hints[name], parameter.default))
            if parameter.default is not inspect.Parameter.empty:
                defaults[name] = parameter.default
    return _Signature(tuple(parameters), place, defaults)


def _parameter(tool_name: str, name: str, hint: Any, default: Any) -> _Parameter:
    description = ""
    if get_origin(hint) is Annotated:
        description = next((text for text in get_args(hint)[1:] if isinstance(text, str)), "")
    try:
        (schema,), definitions = msgspec.json.schema_components([hint], ref_template=REFERENCE + "{name}")
    except (TypeError, RecursionError) as error:
        reason = str(error).splitlines()[-1]
        raise InputError(f"{tool_name}: the type of parameter {name} has no JSON schema: {reason}") from error
    inlined = cast(JsonObject, _inlined(schema, definitions, f"{tool_name}: the type of parameter {name}", ()))
    if description:
        inlined = {**inlined, "description": description}
    required = default is inspect.Parameter.empty
    if not required and (default is None or isinstance(default, str | int | float | bool)):
        inlined = {**inlined, "default": default}
    return _Parameter(name, hint, inlined, required)


def _inlined(schema: Any, definitions: dict[str, Any], what: str, inside: tuple[str, ...]) -> Json:
    """Return the schema without references: not every provider follows them."""
    if isinstance(schema, list):
        return [_inlined(item, definitions, what, inside) for item in schema]
    if not isinstance(schema, dict):
        return cast(Json, schema)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix(REFERENCE)
        if name in inside:
            raise InputError(f"{what} contains itself")
        return _inlined(definitions[name], definitions, what, (*inside, name))
    titled = isinstance(schema.get("title"), str)  # otherwise it is a field called "title"
    return {
        key: _inlined(value, definitions, what, inside)
        for key, value in schema.items()
        if not (titled and key == "title")
    }


def _schema(signature: _Signature) -> JsonObject:
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema for parameter in signature.parameters},
        "required": [parameter.name for parameter in signature.parameters if parameter.required],
        "additionalProperties": False,
    }


async def _run(function: Function, signature: _Signature, arguments: JsonObject, place: Place) -> Outcome:
    """Call the function with the arguments of a model; whatever goes wrong is an outcome."""
    failure = _Failure()
    with failure:
        values, complaints = _checked(arguments, signature)
        if complaints:
            return Outcome("\n".join(complaints[:MOST_COMPLAINTS]), failed=True)
        if signature.place:
            values[signature.place] = place
        if inspect.iscoroutinefunction(function):
            return _outcome(await function(**values))
        return await asyncio.to_thread(_run_in_thread, function, values)
    return failure.outcome


def _checked(arguments: JsonObject, signature: _Signature) -> tuple[dict[str, Any], list[str]]:
    """Return the values to call with, and a line for each argument that is wrong."""
    known = {parameter.name for parameter in signature.parameters}
    listed = ", ".join(parameter.name for parameter in signature.parameters) or "none"
    complaints = [f"{name[:80]}: no such argument; there are: {listed}" for name in arguments if name not in known]
    values: dict[str, Any] = {}
    for parameter in signature.parameters:
        given = arguments.get(parameter.name)
        if parameter.name not in arguments:
            if parameter.required:
                complaints.append(f"{parameter.name}: missing; it takes {_takes(parameter)}")
            continue
        try:
            values[parameter.name] = _value(given, parameter.kind)
        except msgspec.ValidationError as error:
            if given is not None or parameter.required:  # null for what may be left out means: left out
                complaints.append(f"{parameter.name}: {error}; it takes {_takes(parameter)}")
    return values, complaints


def _value(given: Json, kind: Any) -> Any:
    """Return the value as its type. Models write numbers as text, and lists as JSON in a text: both are read."""
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError:
        if not isinstance(given, str) or not given.lstrip().startswith(("[", "{")):
            raise
        try:
            return msgspec.json.decode(given.encode("utf-8", "replace"), type=kind, strict=False)
        except msgspec.DecodeError as error:
            raise msgspec.ValidationError(str(error)) from error


def _takes(parameter: _Parameter) -> str:
    schema = {key: value for key, value in parameter.schema.items() if key != "default"}
    text = json.dumps(schema, ensure_ascii=False)
    return text if len(text) <= LONGEST_SCHEMA else text[:LONGEST_SCHEMA] + "…"


def _run_in_thread(function: Function, values: dict[str, Any]) -> Outcome:
    failure = _Failure()  # inside the thread: a StopIteration cannot travel from a thread to the event loop
    with failure:
        return _outcome(function(**values))
    return failure.outcome


class _Failure:
    """Turns what a function raises into an outcome. Cancellations and the interrupt key pass."""

    def __init__(self) -> None:
        self.outcome = Outcome("", failed=True)

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # A tool is somebody's code: the model reads what it raised, and can do something about it.
        if not isinstance(error, Exception | SystemExit):
            return False
        text = str(error) if isinstance(error, EverlongError) else f"{type(error).__name__}: {error}"
        self.outcome = Outcome(text[:LONGEST_MESSAGE].rstrip(": "), failed=True)
        return True


def _outcome(value: Any) -> Outcome:
    match value:
        case Outcome():
            return value
        case str():
            return Outcome(value)
        case None:
            return Outcome("done")
        case _:
            return Outcome(msgspec.json.encode(value, enc_hook=str).decode())
