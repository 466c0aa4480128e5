"""models.dev: the body of https://models.dev/api.json as a registry.

    {provider: {"id", "models": {id: {"limit": {"context", "input", "output"}, "cost": {…}, "modalities": {…}}}}}

Rows of another shape are left out. Pure: the caller fetches the table and passes its date.
"""

from collections.abc import Iterator, Sequence

from everlong.core import Json, JsonObject
from everlong.windows.entries import MODELS_DEV, Entry, entry_of
from everlong.windows.names import is_chat
from everlong.windows.providers import canonical
from everlong.windows.registry import Registry
from everlong.windows.tables import Source

__all__ = ["SOURCE", "parse_models_dev"]

LIMITS = ("context", "input", "output")
COSTS = ("input", "output", "cache_read", "cache_write")


def parse_models_dev(body: Json, date: str) -> Registry:
    """Return the chat models of the table, as of `date` (2026-07-02)."""
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


def _unflatten(rows: Sequence[JsonObject]) -> Json:
    providers: dict[str, dict[str, Json]] = {}
    for row in rows:
        limits: JsonObject = {name: row.get(name) for name in LIMITS}
        costs: JsonObject = {name: row.get(f"usd_per_m_{name}") for name in COSTS}
        models = providers.setdefault(str(row.get("provider")), {})
        models[str(row.get("id"))] = {"limit": limits, "cost": costs}
    return {name: {"models": models} for name, models in providers.items()}


SOURCE = Source(
    table=MODELS_DEV,
    option="models-dev",
    url="https://models.dev/api.json",
    home="https://models.dev",
    parse=parse_models_dev,
    unflatten=_unflatten,
)
