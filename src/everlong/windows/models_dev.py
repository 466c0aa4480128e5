"""Reading models.dev: the body of https://models.dev/api.json as a registry.

    {provider: {"id", "models": {id: {"limit": {"context", "input", "output"}, "cost": {…}, "modalities": {…}}}}}

Tolerant: what is not of this shape is left out. Fetching it, and knowing what day it is, is for others.
"""

from collections.abc import Iterator

from everlong.core import Json, JsonObject
from everlong.windows.entries import MODELS_DEV, Entry, entry_of
from everlong.windows.names import is_chat
from everlong.windows.providers import canonical
from everlong.windows.registry import Registry

__all__ = ["parse_models_dev"]


def parse_models_dev(body: Json, date: str) -> Registry:
    """The chat models of the table, as of `date` (2026-07-02)."""
    return Registry(tuple(_entries(body, date)))


def _entries(body: Json, date: str) -> Iterator[Entry]:
    for name, provider in _object(body).items():
        for model, fields in _object(_object(provider).get("models")).items():
            facts = _object(fields)
            if facts and is_chat(model) and _writes_text(facts):
                yield entry_of(
                    canonical(name), model, MODELS_DEV, date, _object(facts.get("limit")), _object(facts.get("cost"))
                )


def _writes_text(facts: JsonObject) -> bool:
    written = _object(facts.get("modalities")).get("output")
    return not isinstance(written, list) or "text" in written


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
