"""The messages of a library are tested where it is installed; most are only in environments of their own.

`make adapters` runs these tests there.
"""

from importlib.util import find_spec
from pathlib import Path

from everlong.wire.libraries import MODULES

HERE = Path(__file__).parent
PACKAGES = {f"test_{module}.py": package.partition(".")[0] for package, module in MODULES.items()}
collect_ignore = [name for name, package in PACKAGES.items() if find_spec(package) is None]
