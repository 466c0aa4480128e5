"""A tool: something the model may call, and the decorator that makes one of a function."""

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints, overload

import msgspec

from everlong.core import Image, Json, JsonObject, JsonText
from everlong.errors import EverlongError, InputError

__all__ = ["NO_CALLS", "Approve", "Outcome", "Place", "Tool", "schemas_of", "tool"]

#: Asked before a tool acts: the tool's name and, in words, what it is about to do. True lets it.
Approve = Callable[[str, str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to. A failure is an outcome too: the model reads it and goes on."""

    text: str
    failed: bool = False
    images: tuple[Image, ...] = ()


async def _nobody(name: str, what: str) -> bool:  # noqa: ARG001 - nobody to ask
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call is made: the thread and call it belongs to, the workspace, and whom to ask."""

    thread: str
    call: str
    workspace: Path
    #: Folders beside the workspace that may be used as well.
    allowed: tuple[Path, ...] = ()
    approve: Approve = field(default=_nobody, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. `parameters` is the JSON schema of its arguments; `run` never raises for what the model did wrong.

    `asks` tools act on the world beyond the workspace: they are approved before they run, unless that is switched off.
    """

    name: str
    description: str
    parameters: JsonText
    run: Callable[[JsonObject, Place], Awaitable[Outcome]] = field(repr=False)
    asks: bool = False


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")  # what every provider takes
LONGEST_MESSAGE = 2_000  # characters of an exception
LONGEST_SCHEMA = 300  # characters of it in a complaint
MOST_COMPLAINTS = 12
REFERENCE = "#/$defs/"
SEVERAL = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{name}",
    inspect.Parameter.VAR_KEYWORD: "takes **{name}",
    inspect.Parameter.POSITIONAL_ONLY: "takes {name} by position only",
}

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Parameter:
    """One argument that the model gives."""

    name: str
    kind: Any
    schema: JsonObject
    required: bool


@dataclass(frozen=True, slots=True)
class _Signature:
    """What a function takes. `place` is the parameter that is given the place, "" if none is."""

    parameters: tuple[_Parameter, ...]
    place: str = ""


@overload
def tool(function: Function, /) -> Tool: ...


@overload
def tool(*, name: str = "", description: str = "", asks: bool = False) -> Callable[[Function], Tool]: ...


def tool(
    function: Function | None = None, /, *, name: str = "", description: str = "", asks: bool = False
) -> Tool | Callable[[Function], Tool]:
    """A tool of a function, sync (it runs in a thread) or async.

    The description is its docstring; a parameter is described by `Annotated[str, "what it is"]`; a parameter of type
    `Place` is filled in, not asked for. Text or an `Outcome` is given back as it is, anything else as JSON.
    Raises InputError for a function that a model could not call.

    Example: `@tool async def add(a: int, b: int = 1) -> str: "Add two numbers."` -> a Tool named "add"
    """

    def made(of: Function) -> Tool:
        called = name or getattr(of, "__name__", "")
        if not inspect.isfunction(of) or inspect.isgeneratorfunction(of) or inspect.isasyncgenfunction(of):
            raise InputError(f"{called or of!r} cannot be a tool: only plain and async functions can")
        if not NAME.fullmatch(called):
            raise InputError(f"{called!r} cannot name a tool: letters, digits, _ and -, at most 64; give name=")
        about = description or inspect.cleandoc(of.__doc__ or "")
        if not about:
            raise InputError(f"{called} needs a docstring: it is what the model knows of it")
        signature = _signature(of, called)
        schema = json.dumps(_schema(signature), ensure_ascii=False)

        async def run(arguments: JsonObject, place: Place) -> Outcome:
            failure = _Failure()
            with failure:
                values, complaints = _checked(arguments, signature)
                if complaints:
                    return Outcome("\n".join(complaints[:MOST_COMPLAINTS]), failed=True)
                if signature.place:
                    values[signature.place] = place
                if inspect.iscoroutinefunction(of):
                    return _outcome(await of(**values))
                return await asyncio.to_thread(_in_thread, of, values)
            return failure.outcome

        return Tool(name=called, description=about, parameters=schema, run=run, asks=asks)

    return made if function is None else made(function)


def _signature(function: Function, called: str) -> _Signature:
    """What a function takes. Raises InputError where a model could not give it."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise InputError(f"{called}: its type hints cannot be read: {error}") from error
    parameters, place = [], ""
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in SEVERAL:
            raise InputError(f"{called} {SEVERAL[parameter.kind].format(name=name)}: a model could not give that")
        if name not in hints:
            raise InputError(f"{called}: parameter {name} needs a type")
        if hints[name] is Place:
            place = name
        else:
            parameters.append(_parameter(called, name, hints[name], parameter.default))
    return _Signature(tuple(parameters), place)


def _parameter(called: str, name: str, hint: Any, default: Any) -> _Parameter:
    described = ""
    if get_origin(hint) is Annotated:
        described = next((said for said in get_args(hint)[1:] if isinstance(said, str)), "")
    try:
        (schema,), definitions = msgspec.json.schema_components([hint], ref_template=REFERENCE + "{name}")
    except (TypeError, RecursionError) as error:
        first = str(error).splitlines()[-1]
        raise InputError(f"{called}: no JSON for the type of parameter {name}: {first}") from error
    whole = cast(JsonObject, _inlined(schema, definitions, f"{called}: the type of parameter {name}", ()))
    if described:
        whole = {**whole, "description": described}
    required = default is inspect.Parameter.empty
    if not required and (default is None or isinstance(default, str | int | float | bool)):
        whole = {**whole, "default": default}
    return _Parameter(name, hint, whole, required)


def _inlined(schema: Any, definitions: dict[str, Any], what: str, inside: tuple[str, ...]) -> Json:
    """The schema without references: not every provider follows them."""
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
    titled = isinstance(schema.get("title"), str)  # else it is a field of that name
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


def _checked(arguments: JsonObject, signature: _Signature) -> tuple[dict[str, Any], list[str]]:
    """The values to call with, and a line for each argument that is wrong."""
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
    """The value as its type. Models write numbers as text, and lists as text with JSON in it: both are understood."""
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
    said = json.dumps(schema, ensure_ascii=False)
    return said if len(said) <= LONGEST_SCHEMA else said[:LONGEST_SCHEMA] + "…"


def _in_thread(function: Function, values: dict[str, Any]) -> Outcome:
    failure = _Failure()  # here, for a StopIteration cannot travel from a thread to the event loop
    with failure:
        return _outcome(function(**values))
    return failure.outcome


class _Failure:
    """Holds back what a function raises, as an outcome. Cancellations and the interrupt key pass."""

    def __init__(self) -> None:
        self.outcome = Outcome("", failed=True)

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # A tool is somebody's code: what it raises is told to the model, which can do something about it.
        if not isinstance(error, Exception | SystemExit):
            return False
        said = str(error) if isinstance(error, EverlongError) else f"{type(error).__name__}: {error}"
        self.outcome = Outcome(said[:LONGEST_MESSAGE].rstrip(": "), failed=True)
        return True


def _outcome(given: Any) -> Outcome:
    match given:
        case Outcome():
            return given
        case str():
            return Outcome(given)
        case None:
            return Outcome("done")
        case _:
            return Outcome(msgspec.json.encode(given, enc_hook=str).decode())


def _chat(tool: Tool, parameters: Json) -> JsonObject:
    return {"type": "function", "function": {**_named(tool), "parameters": parameters}}


def _responses(tool: Tool, parameters: Json) -> JsonObject:
    return {"type": "function", **_named(tool), "parameters": parameters}


def _anthropic(tool: Tool, parameters: Json) -> JsonObject:
    return {**_named(tool), "input_schema": parameters}


def _gemini(tool: Tool, parameters: Json) -> JsonObject:
    return {"functionDeclarations": [{**_named(tool), "parametersJsonSchema": parameters}]}


def _named(tool: Tool) -> JsonObject:
    return {"name": tool.name, "description": tool.description}


SHAPES: Mapping[str, Callable[[Tool, Json], JsonObject]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
#: Fields of a body by which the model answers in words. The tools stay declared: the calls before need them.
NO_CALLS: Mapping[str, JsonText] = {
    "anthropic": '{"tool_choice":{"type":"none"}}',
    "gemini": '{"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}',
    "openai-chat": '{"tool_choice":"none"}',
    "openai-responses": '{"tool_choice":"none"}',
}


def schemas_of(tools: Sequence[Tool], fmt: str) -> tuple[JsonText, ...]:
    """The tools in the order given, as the format declares them. Raises InputError for one whose schema is no JSON."""
    schemas = []
    for tool in tools:
        try:
            parameters: Json = json.loads(tool.parameters)
        except ValueError as error:
            raise InputError(f"the parameters of tool {tool.name!r} are no JSON schema: {error}") from None
        schemas.append(json.dumps(SHAPES[fmt](tool, parameters), ensure_ascii=False))
    return tuple(schemas)
