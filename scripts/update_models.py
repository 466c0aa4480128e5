"""Write the snapshot of model windows and prices that comes with the package.

    python scripts/update_models.py --models-dev api.json --litellm model_prices_and_context_window.json \
        --models-dev-date 2026-07-02 --litellm-date 2026-11-09

Reads the two public tables (both MIT) from files: models.dev's api.json and litellm's price table, or flat
extracts of them ({"models": [{"provider", "id", …}]}), which may carry their own "date". Prints what changed.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from everlong.core.messages import Json, JsonObject
from everlong.windows import snapshot
from everlong.windows.entries import LITELLM, MODELS_DEV, Entry, consistent, entry_of
from everlong.windows.models_dev import parse_models_dev
from everlong.windows.names import is_chat, key_of
from everlong.windows.providers import REGIONAL, canonical, makers_of
from everlong.windows.registry import Registry

OUT = Path(snapshot.__file__).with_name(snapshot.FILE)
LEAST_WINDOW = 1_024  # what is listed with less embeds or draws
CHAT_MODES = ("chat", "completion", "responses", None)
PER_MILLION = 1_000_000
PRICE_DIGITS = 6
LIMITS = ("context", "input", "output")
COSTS = ("input", "output", "cache_read", "cache_write")


def main() -> None:
    options = arguments()
    models_dev_body, litellm_body = read(options.models_dev), read(options.litellm)
    models_dev_date = options.models_dev_date or own_date(models_dev_body, options.models_dev)
    litellm_date = options.litellm_date or own_date(litellm_body, options.litellm)
    models_dev = parse_models_dev(as_api(models_dev_body), models_dev_date)
    litellm = Registry(tuple(litellm_entries(litellm_body, litellm_date)))
    registry = assemble(models_dev, litellm)
    tables: list[JsonObject] = [
        describe(MODELS_DEV, models_dev_date, models_dev_body, "https://models.dev"),
        describe(LITELLM, litellm_date, litellm_body, "https://github.com/BerriAI/litellm"),
    ]
    before = snapshot.unpack(options.out.read_bytes()) if options.out.exists() else Registry(())
    options.out.write_bytes(snapshot.pack(registry, tables))
    report(before, registry, options.out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models-dev", type=Path, required=True, metavar="FILE")
    parser.add_argument("--models-dev-date", default="", metavar="YYYY-MM-DD")
    parser.add_argument("--litellm", type=Path, required=True, metavar="FILE")
    parser.add_argument("--litellm-date", default="", metavar="YYYY-MM-DD")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FILE")
    return parser.parse_args()


def read(path: Path) -> JsonObject:
    try:
        body = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: {error}")
    if not isinstance(body, dict):
        sys.exit(f"{path}: not a table of models")
    return body


def own_date(body: JsonObject, path: Path) -> str:
    date = body.get("date")
    if not isinstance(date, str):
        sys.exit(f"{path}: the file has no date; say when it was taken")
    return date


def describe(name: str, date: str, body: JsonObject, url: str) -> JsonObject:
    version = body.get("commit") or body.get("version") or ""
    return {"name": name, "date": date, "version": version if flat_rows(body) else "", "url": url, "licence": "MIT"}


# --- the shapes of the tables ------------------------------------------------------------------


def flat_rows(body: JsonObject) -> list[JsonObject]:
    """The rows of a flat extract; none for the tables' own shapes."""
    rows = body.get("models")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def as_api(body: JsonObject) -> Json:
    """models.dev's own shape, whichever of the two came."""
    rows = flat_rows(body)
    if not rows:
        return body
    providers: dict[str, Json] = {}
    for row in rows:
        provider = providers.setdefault(str(row.get("provider")), {"models": {}})
        assert isinstance(provider, dict)
        models = provider["models"]
        assert isinstance(models, dict)
        models[str(row.get("id"))] = {"limit": flat_limits(row), "cost": flat_costs(row)}
    return providers


def flat_limits(row: JsonObject) -> JsonObject:
    return {name: row.get(name) for name in LIMITS}


def flat_costs(row: JsonObject) -> JsonObject:
    return {name: row.get(f"usd_per_m_{name}") for name in COSTS}


def litellm_entries(body: JsonObject, date: str) -> Iterator[Entry]:
    """litellm's rows. Its `max_input_tokens` is the largest prompt; the whole window it does not tell."""
    for name, provider, limits, costs in litellm_rows(body):
        owner = canonical(provider or "")
        head, _, rest = name.partition("/")
        model = rest if rest and canonical(head) == owner else name
        if owner and "*" not in model and is_chat(model):
            yield entry_of(owner, model, LITELLM, date, limits, costs)


def litellm_rows(body: JsonObject) -> Iterator[tuple[str, str | None, JsonObject, JsonObject]]:
    """Name, provider, limits and costs of each row, in either shape."""
    for row in flat_rows(body):
        provider = row.get("provider")
        if isinstance(provider, str):
            yield str(row.get("id")), provider, flat_limits(row), flat_costs(row)
    if flat_rows(body):
        return
    for name, facts in body.items():
        if (
            isinstance(facts, dict)
            and facts.get("mode") in CHAT_MODES
            and isinstance(facts.get("litellm_provider"), str)
        ):
            limits: JsonObject = {"input": facts.get("max_input_tokens"), "output": facts.get("max_output_tokens")}
            costs: JsonObject = {
                "input": per_million(facts.get("input_cost_per_token")),
                "output": per_million(facts.get("output_cost_per_token")),
                "cache_read": per_million(facts.get("cache_read_input_token_cost")),
                "cache_write": per_million(facts.get("cache_creation_input_token_cost")),
            }
            yield name, str(facts["litellm_provider"]), limits, costs


def per_million(price: Json) -> Json:
    return round(price * PER_MILLION, PRICE_DIGITS) if isinstance(price, int | float) else None


# --- putting them together ---------------------------------------------------------------------


def assemble(models_dev: Registry, litellm: Registry) -> Registry:
    """Both tables: limits that models.dev leaves to a base model filled in, nothing twice, nothing without a window."""
    filled = Registry(()).merged(Registry(tuple(with_limits(models_dev, litellm)))).merged(litellm)
    kept = [entry for entry in filled if entry.window >= LEAST_WINDOW]
    return Registry(tuple(without_regions(kept)))


def with_limits(models_dev: Registry, litellm: Registry) -> Iterator[Entry]:
    """models.dev's rows; one without a window takes it from the same model elsewhere, and is marked so."""
    windows, prompts = by_key(models_dev), by_key(litellm)
    for entry in models_dev:
        key = key_of(entry.id)
        like = None if entry.window and entry.output else same_model(key, windows.get(key, []), prompts.get(key, []))
        if like is None:
            yield entry
        elif entry.window:
            yield consistent(entry._replace(output=like.output))
        else:
            limits = entry._replace(context=like.window, input=like.input, output=entry.output or like.output)
            yield consistent(limits._replace(inferred=True))


def same_model(key: str, windows: list[Entry], prompts: list[Entry]) -> Entry | None:
    """Whose limits to take: the maker's, else what most say.

    litellm knows the maker's prompt limit only; where somebody in models.dev has the same limit with the
    whole window beside it, that is the one meant.
    """
    makers = makers_of(key)
    for maker in makers:
        for entry in windows:
            if entry.provider == maker:
                return entry
    for maker in makers:
        for prompt in prompts:
            if prompt.provider == maker:
                return next((entry for entry in windows if entry.input == prompt.input), prompt)
    return most_common(windows) or most_common(prompts)


def most_common(entries: list[Entry]) -> Entry | None:
    votes = Counter(entry.window for entry in entries)
    size = min(votes, key=lambda window: (-votes[window], window), default=None)
    return next((entry for entry in entries if entry.window == size), None)


def by_key(registry: Registry) -> dict[str, list[Entry]]:
    keyed: dict[str, list[Entry]] = {}
    for entry in registry:
        if entry.window:
            keyed.setdefault(key_of(entry.id), []).append(entry)
    return keyed


def without_regions(entries: Iterable[Entry]) -> Iterator[Entry]:
    """One row where a provider lists a model once for each region with the same limits: the shortest id."""
    seen = set()
    for entry in sorted(entries, key=lambda entry: (len(entry.id), entry.id)):
        same = (entry.table, entry.provider, key_of(entry.id), entry.window, entry.output)
        if entry.provider not in REGIONAL or same not in seen:
            seen.add(same)
            yield entry


def report(before: Registry, after: Registry, out: Path) -> None:
    old = {(entry.table, entry.provider, entry.id): entry for entry in before}
    new = {(entry.table, entry.provider, entry.id): entry for entry in after}
    print(f"{out.name}: {out.stat().st_size:,} bytes, {len(after):,} entries, {dict(Counter(e.table for e in after))}")
    print(f"inferred limits: {sum(entry.inferred for entry in after)}")
    print(f"added {len(new.keys() - old.keys()):,}, removed {len(old.keys() - new.keys()):,}")
    for same in sorted(old.keys() & new.keys()):
        if old[same].window != new[same].window:
            print(f"  {new[same].claimant} {new[same].id}: {old[same].window:,} -> {new[same].window:,}")


if __name__ == "__main__":
    main()
