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
from pathlib import Path

from everlong.core import Json, JsonObject
from everlong.windows import LITELLM, MODELS_DEV, Registry, assembled, litellm, parse_models_dev, snapshot

OUT = Path(snapshot.__file__).with_name(snapshot.FILE)
LIMITS = ("context", "input", "output")
COSTS = ("input", "output", "cache_read", "cache_write")


def main() -> None:
    options = arguments()
    models_dev_body, litellm_body = read(options.models_dev), read(options.litellm)
    models_dev_date = options.models_dev_date or own_date(models_dev_body, options.models_dev)
    litellm_date = options.litellm_date or own_date(litellm_body, options.litellm)
    models_dev = parse_models_dev(as_api(models_dev_body), models_dev_date)
    registry = assembled(models_dev, litellm.parse_litellm(as_price_table(litellm_body), litellm_date))
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


def as_price_table(body: JsonObject) -> Json:
    """litellm's own shape, whichever of the two came."""
    rows = flat_rows(body)
    if not rows:
        return body
    return {str(row.get("id")): priced(row) for row in rows}


def priced(row: JsonObject) -> JsonObject:
    costs = {field: per_token(row.get(f"usd_per_m_{name}")) for name, field in litellm.COSTS.items()}
    limits = {"max_input_tokens": row.get("input"), "max_output_tokens": row.get("output")}
    return {"litellm_provider": row.get("provider"), **limits, **costs}


def per_token(price: Json) -> Json:
    return price / litellm.PER_MILLION if isinstance(price, int | float) else None


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
