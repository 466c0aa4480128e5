"""Writes the generated pages of docs/reference: API, commands, settings, events, errors.

python scripts/reference.py            write them
python scripts/reference.py --check    exit with 1 if a page differs from what would be written
"""

import sys
from pathlib import Path

from reference_pages import commands, events, settings
from reference_pages.api import adapter_modules, api_pages
from reference_pages.catalogue import ERRORS_PAGE, catalogue
from reference_pages.errors import errors_page
from reference_pages.source import ROOT

REFERENCE = ROOT / "docs" / "reference"
COMMAND = "python scripts/reference.py"


def pages() -> dict[Path, str]:
    entries = catalogue(adapter_modules())
    written = {
        **api_pages(entries),
        ERRORS_PAGE: errors_page(entries),
        commands.PAGE: commands.commands_page(),
        events.PAGE: events.events_page(entries),
        settings.PAGE: settings.settings_page(),
    }
    return {REFERENCE / path: text for path, text in written.items()}


def differing(wanted: dict[Path, str]) -> list[str]:
    """Return the pages that are missing, different or no longer wanted."""
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    left = [path for path in (REFERENCE / "api").glob("*.md") if path not in wanted]
    return sorted(path.relative_to(ROOT).as_posix() for path in (*stale, *left))


def main(arguments: list[str]) -> int:
    wanted = pages()
    stale = differing(wanted)
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is out of date: run {COMMAND}")
        return 1 if stale else 0
    for name in stale:
        page = ROOT / name
        if page in wanted:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(wanted[page], encoding="utf-8")
            print(f"wrote {name}")
        else:
            page.unlink()
            print(f"removed {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
