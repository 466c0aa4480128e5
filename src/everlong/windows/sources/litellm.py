"""litellm's price table: model_prices_and_context_window.json as a registry.

    {name: {"litellm_provider", "mode", "max_input_tokens", "max_output_tokens", "input_cost_per_token", …}}

Rows of another shape are left out. `max_input_tokens` is the largest prompt; the table does not have the whole window.
Pure: the caller fetches the table and passes its date.
"""

from collections.abc import Iterator, Sequence

from everlong.core import Json, JsonObject
from everlong.windows.entries import Entry, entry_of
from everlong.windows.names import is_chat
from everlong.windows.providers import canonical
from everlong.windows.registry import Registry
from everlong.windows.tables import Source

__all__ = ["LITELLM", "SOURCE", "parse_litellm"]

LITELLM = "litellm"

CHAT_MODES = ("chat", "completion", "responses", None)
PER_MILLION = 1_000_000
PRICE_DIGITS = 6
COSTS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}


def parse_litellm(body: Json, date: str) -> Registry:
    """Return the chat models of the table, as of `date` (2026-11-09)."""
    return Registry(tuple(_entries(body, date)))


def _entries(body: Json, date: str) -> Iterator[Entry]:
    for name, facts in (body if isinstance(body, dict) else {}).items():
        if not isinstance(facts, dict):
            continue
        provider, mode = facts.get("litellm_provider"), facts.get("mode")
        owner = canonical(provider) if isinstance(provider, str) else ""
        model = _without_owner(name, owner)
        if owner and mode in CHAT_MODES and "*" not in model and is_chat(model):
            limits: JsonObject = {"input": facts.get("max_input_tokens"), "output": facts.get("max_output_tokens")}
            costs: JsonObject = {kind: _per_million(facts.get(field)) for kind, field in COSTS.items()}
            yield entry_of(owner, model, LITELLM, date, limits, costs)


def _without_owner(name: str, owner: str) -> str:
    """Return the name without its owner, however that is spelt.

    Example: "deepseek/deepseek-chat" -> "deepseek-chat".
    """
    head, _, rest = name.partition("/")
    return rest if rest and canonical(head) == owner else name


def _per_million(price: Json) -> Json:
    if isinstance(price, bool) or not isinstance(price, int | float):
        return None
    return round(price * PER_MILLION, PRICE_DIGITS)


def _unflatten(rows: Sequence[JsonObject]) -> Json:
    return {str(row.get("id")): _priced(row) for row in rows}


def _priced(row: JsonObject) -> JsonObject:
    costs: JsonObject = {field: _per_token(row.get(f"usd_per_m_{name}")) for name, field in COSTS.items()}
    limits: JsonObject = {"max_input_tokens": row.get("input"), "max_output_tokens": row.get("output")}
    return {"litellm_provider": row.get("provider"), **limits, **costs}


def _per_token(price: Json) -> Json:
    return price / PER_MILLION if isinstance(price, int | float) else None


SOURCE = Source(
    table=LITELLM,
    option="litellm",
    url="https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json",
    home="https://github.com/BerriAI/litellm",
    parse=parse_litellm,
    unflatten=_unflatten,
)
