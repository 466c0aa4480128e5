"""The usage figures of two answers that the client sees as one."""

from everlong.core import Json, JsonObject

__all__ = ["added"]


def added(first: Json, second: Json) -> JsonObject:
    """Both usage objects as one; figures add up, all else is the second's.

    Example: {"prompt_tokens": 5}, {"prompt_tokens": 7, "details": {"cached": 2}} -> 12 and cached 2
    """
    one, other = _fields(first), _fields(second)
    total: JsonObject = dict(one)
    for name, value in other.items():
        before = one.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            total[name] = added(before, value)
        elif _is_figure(value) and _is_figure(before):
            total[name] = before + value  # type: ignore[operator]
        elif value is not None or name not in one:
            total[name] = value
    return total


def _fields(usage: Json) -> JsonObject:
    return usage if isinstance(usage, dict) else {}


def _is_figure(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
