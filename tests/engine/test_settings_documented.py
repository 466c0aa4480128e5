"""The page about the engine names every setting with its default and variable, and every event."""

from pathlib import Path

import pytest

from everlong.core import EventKind
from everlong.engine.settings import PREFIX, SETTINGS

PAGE = (Path(__file__).parents[2] / "docs" / "engine.md").read_text(encoding="utf-8")
DEFAULTS = [(option.name, option.default) for option in SETTINGS]


@pytest.mark.parametrize(("name", "default"), DEFAULTS, ids=[name for name, _ in DEFAULTS])
def test_every_setting_is_in_the_table_with_its_default(name: str, default: object) -> None:
    shown = "none" if default is None else f"`{default}`"
    assert f"| `{name}` | `{PREFIX}{name.upper()}` | {shown} |" in PAGE


@pytest.mark.parametrize("kind", EventKind)
def test_every_event_is_named(kind: EventKind) -> None:
    assert f"`{kind.value}`" in PAGE
