"""A Python function as a tool: its signature as a JSON schema, and a model's arguments checked against it.

Runs nothing. Schemas have no references, because not every provider follows them.
"""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, cast, get_args, get_origin, get_type_hints, runtime_checkable

import msgspec

from everlong.core import Json, JsonObject, JsonText
from everlong.errors import InputError

__all__ = [
    "DeclaredTool",
    "Function",
    "Signature",
    "ToolFunction",
    "checked",
    "tool_function",
]

MOST_COMPLAINTS = 12
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")  # what every provider accepts
LONGEST_SCHEMA = 300  # characters of a schema in an error text
REFERENCE = "#/$defs/"
#: Kinds of parameters that a model cannot give.
NOT_BY_NAME = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{name}",
    inspect.Parameter.VAR_KEYWORD: "takes **{name}",
    inspect.Parameter.POSITIONAL_ONLY: "takes {name} by position only",
}

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that the model fills in."""

    name: str
    kind: Any
    schema: JsonObject
    required: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function. `filled` names the one that the caller fills in, "" if there is none."""

    parameters: tuple[Parameter, ...]
    filled: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class DeclaredTool(Protocol):
    """Anything that declares a tool, such as one of the agent's. `parameters` is the JSON schema of its arguments."""

    @property
    def name(self) -> str:
        """The name by which a model calls it."""

    @property
    def description(self) -> str:
        """What it does, for the model."""

    @property
    def parameters(self) -> JsonText:
        """The JSON schema of its arguments."""


@dataclass(frozen=True, slots=True)
class ToolFunction:
    """A function that a model may call. `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: JsonText
    signature: Signature = field(default=Signature(()), repr=False)


def tool_function(
    function: Function, *, name: str = "", description: str = "", filled: type | None = None
) -> ToolFunction:
    """Return a function as a tool: its docstring becomes the description, its parameters the schema.

    A parameter of type `filled` is not passed by the model. Raises InputError for a function that a model could not
    call. Example: `def add(a: int, b: int = 1) -> int: "Add two numbers."` -> a tool named "add"
    """
    tool_name = name or getattr(function, "__name__", "")
    generates = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if not inspect.isfunction(function) or generates:
        raise InputError(f"{tool_name or function!r} cannot be a tool: only plain and async functions can")
    if not NAME.fullmatch(tool_name):
        raise InputError(f"{tool_name!r} is not a tool name (at most 64 letters, digits, _ and -): pass name=")
    text = description or inspect.cleandoc(function.__doc__ or "")
    if not text:
        raise InputError(f"{tool_name} needs a docstring: the model reads it as the tool's description")
    signature = signature_of(function, tool_name, filled)
    return ToolFunction(tool_name, text, json.dumps(schema_of(signature), ensure_ascii=False), signature)


def signature_of(function: Function, tool_name: str, filled: type | None = None) -> Signature:
    """Return the parameters of a function; a parameter of type `filled` is filled in by the caller, not by the model.

    Raises InputError for a parameter that a model cannot pass.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise InputError(f"{tool_name}: its type hints cannot be read: {error}") from error
    parameters, own, defaults = [], "", {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in NOT_BY_NAME:
            raise InputError(f"{tool_name} {NOT_BY_NAME[parameter.kind].format(name=name)}: a model cannot pass that")
        if name not in hints:
            raise InputError(f"{tool_name}: parameter {name} needs a type")
        if filled is not None and hints[name] is filled:
            own = name
        else:
            parameters.append(_parameter(tool_name, name, hints[name], parameter.default))
            if parameter.default is not inspect.Parameter.empty:
                defaults[name] = parameter.default
    return Signature(tuple(parameters), own, defaults)


def _parameter(tool_name: str, name: str, hint: Any, default: Any) -> Parameter:
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
    return Parameter(name, hint, inlined, required)


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
            raise InputError(f"{what} refers to itself")
        return _inlined(definitions[name], definitions, what, (*inside, name))
    titled = isinstance(schema.get("title"), str)  # if it is not a string, "title" is a field
    return {
        key: _inlined(value, definitions, what, inside)
        for key, value in schema.items()
        if not (titled and key == "title")
    }


def schema_of(signature: Signature) -> JsonObject:
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema for parameter in signature.parameters},
        "required": [parameter.name for parameter in signature.parameters if parameter.required],
        "additionalProperties": False,
    }


def checked(arguments: JsonObject, signature: Signature) -> tuple[dict[str, Any], str]:
    """Return the values to call a function with, and a line for each wrong argument; "" if all are right."""
    known = {parameter.name for parameter in signature.parameters}
    listed = ", ".join(parameter.name for parameter in signature.parameters) or "none"
    complaints = [
        f"{name[:80]}: unknown argument; known arguments: {listed}" for name in arguments if name not in known
    ]
    values: dict[str, Any] = {}
    for parameter in signature.parameters:
        given = arguments.get(parameter.name)
        if parameter.name not in arguments:
            if parameter.required:
                complaints.append(f"{parameter.name}: missing; expected {_takes(parameter)}")
            continue
        try:
            values[parameter.name] = _value(given, parameter.kind)
        except msgspec.ValidationError as error:
            if given is not None or parameter.required:  # null for an optional argument means that it is left out
                complaints.append(f"{parameter.name}: {error}; expected {_takes(parameter)}")
    return values, "\n".join(complaints[:MOST_COMPLAINTS])


def _value(given: Json, kind: Any) -> Any:
    """Return the value converted to its type. Numbers written as text and lists written as JSON text are accepted."""
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError:
        if not isinstance(given, str) or not given.lstrip().startswith(("[", "{")):
            raise
        try:
            return msgspec.json.decode(given.encode("utf-8", "replace"), type=kind, strict=False)
        except msgspec.DecodeError as error:
            raise msgspec.ValidationError(str(error)) from error


def _takes(parameter: Parameter) -> str:
    schema = {key: value for key, value in parameter.schema.items() if key != "default"}
    text = json.dumps(schema, ensure_ascii=False)
    return text if len(text) <= LONGEST_SCHEMA else text[:LONGEST_SCHEMA] + "…"
