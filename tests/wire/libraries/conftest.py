"""The messages of a library are tested where it is installed; most are only in environments of their own.

There: `python -m pytest -W default tests/adapters tests/wire/libraries`, with the source in PYTHONPATH.
"""

from everlong.wire.libraries import MODULES
from tests.adapters.conftest import is_installed

#: Messages of these are plain dicts, and tested everywhere.
DICTS = {"strands"}
collect_ignore = [
    f"test_{module}.py" for package, module in MODULES.items() if module not in DICTS and not is_installed(package)
]
