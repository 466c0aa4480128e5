"""An adapter without its framework says in one line what to install."""

from importlib import import_module
from importlib.util import find_spec

import pytest

from tests.adapters.conftest import ABSENT


def test_a_framework_that_is_not_installed_is_named_with_the_line_that_installs_it() -> None:
    for name in ABSENT:
        module = f"everlong.adapters.{name}"
        if find_spec(module) is not None:
            with pytest.raises(ImportError, match=rf"^{module} needs .+: pip install \"[^\"]+\"$"):
                import_module(module)
