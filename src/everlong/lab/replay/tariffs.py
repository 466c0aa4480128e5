"""Tariffs: prices and cache rules of well-known providers, of any model in the registry, or from a file."""

import json
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from everlong.core import did_you_mean
from everlong.engine import cost_of
from everlong.errors import InputError
from everlong.lab.replay.caches import Rules
from everlong.windows import Prices, window
from everlong.wire import Usage

__all__ = ["TARIFFS", "Tariff", "tariff_from", "tariff_of"]

HOUR = 3_600.0
AUTOMATIC = Rules(kind="automatic", least=1_024, step=128, seconds=300.0)
MARKED = Rules(kind="marked", least=1_024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """US dollars for a million tokens, and the rules of the cache."""

    name: str
    prices: Prices
    rules: Rules

    def dollars(self, usage: Usage) -> float:
        """Return what a call costs."""
        return cost_of(usage, self.prices) or 0.0


#: The tariffs by name. Prices are those of one model of each provider, which is enough for ratios.
TARIFFS = {
    tariff.name: tariff
    for tariff in (
        Tariff(name="anthropic", prices=Prices(3.0, 15.0, 0.3, 3.75), rules=MARKED),
        Tariff(name="anthropic-1h", prices=Prices(3.0, 15.0, 0.3, 6.0), rules=replace(MARKED, seconds=HOUR)),
        Tariff(name="openai", prices=Prices(1.25, 10.0, 0.125), rules=AUTOMATIC),
        Tariff(name="openai-half", prices=Prices(2.5, 10.0, 1.25), rules=AUTOMATIC),
        Tariff(
            name="deepseek",
            prices=Prices(0.28, 0.42, 0.028),
            rules=Rules(kind="automatic", least=64, step=64, seconds=2 * HOUR),
        ),
        Tariff(
            name="gemini",
            prices=Prices(1.25, 10.0, 0.125),
            rules=Rules(kind="automatic", least=2_048, step=1, seconds=300.0),
        ),
        Tariff(name="uncached", prices=Prices(3.0, 15.0), rules=Rules(kind="none")),
    )
}
#: Prefix of a model's name -> its cache rules; the prices are the model's own.
FAMILIES = (
    ("claude", MARKED),
    ("gemini", TARIFFS["gemini"].rules),
    ("deepseek", TARIFFS["deepseek"].rules),
    ("gpt", AUTOMATIC),
    ("chatgpt", AUTOMATIC),
    ("codex", AUTOMATIC),
    ("o1", AUTOMATIC),
    ("o3", AUTOMATIC),
    ("o4", AUTOMATIC),
)
#: Claude models with a longer minimum prefix, by a part of the name.
LONGER_LEAST = (("haiku-4", 4_096), ("opus-4-5", 4_096), ("opus-4-6", 4_096), ("haiku", 2_048))
FIELDS = ("input", "output", "cache_read", "cache_write")
RULES, WHOLE = ("kind", "least", "step", "seconds"), ("least", "step")


def tariff_of(model: str, *, provider: str = "") -> Tariff:
    """Return the tariff of a model in the registry. Raises InputError if no price is known."""
    prices = window(model, provider=provider).prices
    if prices.input is None:
        raise InputError(f"no prices are known for {model!r}; choose a table with --prices: {', '.join(TARIFFS)}")
    bare = model.rsplit("/", 1)[-1].lower()
    rules = next((rules for start, rules in FAMILIES if bare.startswith(start)), None)
    if rules is None:
        rules = AUTOMATIC if prices.cache_read is not None else Rules(kind="none")
    if bare.startswith("claude"):
        least = next((least for part, least in LONGER_LEAST if part in bare), rules.least)
        rules = replace(rules, least=least)
    return Tariff(name=model, prices=prices, rules=rules)


def tariff_from(named: str) -> Tariff:
    """Return a tariff by its name or from a JSON file. Raises InputError.

    Example: {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75, "kind": "marked", "seconds": 300}
    """
    if named in TARIFFS:
        return TARIFFS[named]
    path = Path(named)
    if not path.is_file():
        meant = did_you_mean(named, TARIFFS)
        raise InputError(f"unknown prices {named!r}: use {', '.join(TARIFFS)}, or your own file{meant}")
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{named}: {error}") from error
    if not isinstance(fields, dict):
        raise InputError(f"{named}: prices must be a JSON object with {', '.join(FIELDS)}")
    return Tariff(name=path.stem, prices=_prices(named, fields), rules=_rules(named, fields))


def _prices(path: str, fields: dict[str, Any]) -> Prices:
    unknown = sorted(fields.keys() - {*FIELDS, *RULES})
    if unknown:
        raise InputError(f"{path}: {unknown[0]!r} is not a price; the fields are {', '.join((*FIELDS, *RULES))}")
    if "input" not in fields or "output" not in fields:
        raise InputError(f"{path}: input and output are missing; they are US dollars per million tokens")
    for name in FIELDS:
        value = fields.get(name, 0)
        if not _is_figure(value) or value < 0:
            raise InputError(f"{path}: {name} must be a price in US dollars per million tokens, not {value!r}")
    return Prices(*(fields.get(name) for name in FIELDS))


def _rules(path: str, fields: dict[str, Any]) -> Rules:
    usual = "marked" if fields.get("cache_write") else "automatic" if "cache_read" in fields else "none"
    kind = fields.get("kind", usual)
    if kind not in ("automatic", "marked", "none"):
        raise InputError(f"{path}: kind must be automatic, marked or none, not {kind!r}")
    rules = replace(AUTOMATIC, kind=kind) if kind != "marked" else MARKED
    figures = {name: fields[name] for name in RULES[1:] if name in fields}
    for name, value in figures.items():
        if not _is_figure(value) or value <= 0:
            raise InputError(f"{path}: {name} must be a number above 0, not {value!r}")
        if name in WHOLE and not isinstance(value, int):
            raise InputError(f"{path}: {name} must be a whole number of tokens, not {value!r}")
    return replace(rules, **figures)


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
