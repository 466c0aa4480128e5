"""The bundled snapshot and its file."""

import gzip
import json
from pathlib import Path

from everlong.core import JsonObject
from everlong.windows import tables
from everlong.windows.tables import bundled, pack, unpack
from tests.windows.tables import JULY, MAY, SMALL

TABLES: list[JsonObject] = [{"name": "models.dev", "date": JULY}, {"name": "litellm", "date": MAY}]


def test_the_file_gives_the_registry_back_whatever_its_order() -> None:
    packed = pack(SMALL, TABLES)
    assert set(unpack(packed)) == set(SMALL)
    assert pack(unpack(packed), TABLES) == packed


def test_the_bundled_file_is_small_dated_and_names_its_sources() -> None:
    packed = Path(tables.__file__).with_name(tables.FILE).read_bytes()
    assert len(packed) <= 250_000
    stored = json.loads(gzip.decompress(packed))["tables"]
    assert [(table["name"], table["licence"]) for table in stored] == [("models.dev", "MIT"), ("litellm", "MIT")]
    assert all(table["date"] >= "2026-07-02" for table in stored)


def test_the_bundled_registry_is_read_once() -> None:
    assert bundled() is bundled()


def test_every_bundled_figure_can_be_true() -> None:
    for entry in bundled():
        assert 1_024 <= entry.window <= 16_000_000, entry
        assert entry.output is None or 256 <= entry.output <= entry.window or entry.context is None, entry
        assert entry.input is None or entry.context is None or entry.input < entry.context, entry
        assert all(price is None or price >= 0 for price in entry[7:11]), entry
        assert entry.date
        assert entry.provider


def test_every_bundled_model_is_found_at_its_own_provider() -> None:
    registry = bundled()
    for entry in registry:
        found = registry.lookup(entry.id, entry.provider)
        assert found is not None, entry
        assert found.entry.provider == entry.provider, entry
        assert found.applies, entry
