"""An adapter without its framework says in one line what to install."""

from importlib import import_module

import pytest

from tests.adapters.conftest import ABSENT


def test_a_framework_that_is_not_installed_is_named_with_the_line_that_installs_it() -> None:
    for name in ABSENT:
        with pytest.raises(
            ImportError, match=rf"^everlong\.adapters\.{name} needs .* or newer: pip install \"[^\"]+\"$"
        ):
            import_module(f"everlong.adapters.{name}")
