"""Write the packaged snapshot of model windows and prices.

    python scripts/update_models.py --models-dev api.json --litellm model_prices_and_context_window.json \
        --models-dev-date 2026-07-02 --litellm-date 2026-11-09

Reads the two public tables (both MIT) from files: models.dev's api.json and litellm's price table, or flat extracts of
them ({"models": [{"provider", "id", …}]}), which may have their own "date". Prints what changed.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import everlong.windows
from everlong.core import JsonObject
from everlong.windows import FILE, SOURCES, Registry, Source, assembled, pack, unpack

OUT = Path(everlong.windows.__file__).with_name(FILE)


def main() -> None:
    options = arguments()
    registries: list[Registry] = []
    tables: list[JsonObject] = []
    for source in SOURCES:
        name = source.option.replace("-", "_")
        path: Path = getattr(options, name)
        body = read(path)
        date = getattr(options, f"{name}_date") or own_date(body, path)
        rows = flat_rows(body)
        registries.append(source.parse(source.unflatten(rows) if rows else body, date))
        tables.append(describe(source, date, body))
    registry = assembled(registries)
    before = unpack(options.out.read_bytes()) if options.out.exists() else Registry(())
    options.out.write_bytes(pack(registry, tables))
    report(before, registry, options.out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for source in SOURCES:
        parser.add_argument(f"--{source.option}", type=Path, required=True, metavar="FILE")
        parser.add_argument(f"--{source.option}-date", default="", metavar="YYYY-MM-DD")
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


def describe(source: Source, date: str, body: JsonObject) -> JsonObject:
    version = body.get("commit") or body.get("version") or ""
    return {
        "name": source.table,
        "date": date,
        "version": version if flat_rows(body) else "",
        "url": source.home,
        "licence": source.licence,
    }


def flat_rows(body: JsonObject) -> list[JsonObject]:
    """Return the rows of a flat extract; none for a table in its original form."""
    rows = body.get("models")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


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
