"""What is wrong with a setting, in one line that names the place and the field and repeats no secret."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

__all__ = ["all_differ", "in_one_line", "not_a_truth"]

#: Fields that may hold a secret: what stands in them is never repeated.
SECRETS = {"keys", "store", "upstream", "upstreams"}

LONGEST_VALUE = 60  # characters of a wrong value

#: What a field should be, by the name that pydantic gives to the problem.
WORDS: Mapping[str, str] = {
    "bool_parsing": "is true or false",
    "bool_type": "is true or false",
    "byte_size": "is a number of bytes, such as 67108864 or 64MiB",
    "byte_size_unit": "is a number of bytes, such as 67108864 or 64MiB",
    "dict_type": "is a table",
    "finite_number": "is a finite number",
    "float_parsing": "is a number",
    "float_type": "is a number",
    "greater_than": "is more than {gt:g}",
    "greater_than_equal": "is at least {ge:g}",
    "int_from_float": "is a whole number",
    "int_parsing": "is a whole number",
    "int_parsing_size": "is a whole number of fewer digits",
    "int_type": "is a whole number",
    "less_than_equal": "is at most {le:g}",
    "literal_error": "is one of {expected}",
    "missing": "is missing",
    "model_type": "is a table",
    "string_too_short": "is empty",
    "string_type": "is text",
    "tuple_type": "is a list",
    "value_error": "{error}",
}


def in_one_line(error: ValidationError, model: type[BaseModel], origins: Mapping[str, str]) -> str:
    """The first problem, an unknown field before all others. `origins` says where each field was set.

    Example: port = "x" in gateway.toml -> "gateway.toml: port is a whole number, not 'x'"
    """
    problems = error.errors(include_url=False)
    problem = next((one for one in problems if one["type"] == "extra_forbidden"), problems[0])
    first, *rest = problem["loc"]
    field = str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)
    origin = origins[str(first)]
    if problem["type"] == "extra_forbidden":
        return f"{origin}: {_unknown(field, _fields_beside(model, problem['loc']))}"
    words = WORDS.get(problem["type"], "cannot be used").format(**problem.get("ctx", {}))
    value = problem["input"]
    shown = first not in SECRETS and isinstance(value, str | int | float)
    return f"{origin}: {field} {words}" + (f", not {repr(value)[:LONGEST_VALUE]}" if shown else "")


def not_a_truth(annotation: Any, value: Any) -> Any:
    """The value, unless it is true or false where something else is asked for: pydantic takes true for a 1."""
    if isinstance(value, bool) and bool not in (annotation, *get_args(annotation)):
        raise ValueError("does not take a yes or no")
    return value


def all_differ(what: str, values: Sequence[str], *, shown: bool = True) -> None:
    """Raises ValueError if two tables of a list have the same."""
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ValueError(f"has two tables of the same {what}" + (f", {twice!r}" if shown else ""))


def _unknown(field: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(field.rpartition(".")[2].lower(), known, n=1, cutoff=0.5)
    return f"there is no field {field!r}" + (f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}")


def _fields_beside(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """The fields of the table that an unknown one stands in.

    Example: ("keys", 0, "limits", "at_onc") -> ["at_once", "requests_per_minute", "tokens_per_minute"]
    """
    for step in place[:-1]:
        if isinstance(step, str):
            asked = model.model_fields[step].annotation
            tables = [one for one in (asked, *get_args(asked)) if isinstance(one, type) and issubclass(one, BaseModel)]
            model = tables[0]
    return sorted(model.model_fields)
