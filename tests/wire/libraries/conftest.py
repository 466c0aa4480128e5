"""The messages of a library are tested where it is installed; see the adapters' tests."""

from pathlib import Path

from tests.adapters.conftest import without_framework

collect_ignore = without_framework(Path(__file__).parent)
