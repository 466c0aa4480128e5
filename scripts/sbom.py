"""Lists every package that we install or ship, with its version and licence (`make sbom`).

python scripts/sbom.py a table: package, version, licence, what it is for python scripts/sbom.py --output FILE and a
software bill of materials: CycloneDX 1.6 as JSON

Versions and hashes come from the lock files, licences from the installed packages' metadata. The script does not judge
what a licence requires from people who redistribute a package.
"""

import argparse
import base64
import json
import re
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from everlong import __version__

ROOT = Path(__file__).resolve().parent.parent
PAGE_LOCK = ROOT / "src" / "everlong" / "web" / "page" / "package-lock.json"
#: The lock files, the smallest first: a package counts for the first one that contains it.
PURPOSES = {"installed": "library", "serving": "app and gateway", "developing": "tests"}
UNKNOWN = "not said"
#: Packages that have their licence only in a file.
IN_A_FILE = {"khroma": "MIT"}
ELSEWHERE = "not installed here"  # a package for another system
WHOLE_TEXT = "a text of its own, in the package"
LONGEST_NAME = 60  # characters of a licence's name
LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, order=True)
class Component:
    """One package of a lock file. `hashes` are pairs: the algorithm, as CycloneDX names it, and the digest in hex."""

    kind: str
    name: str
    version: str
    purpose: str
    licence: str
    hashes: tuple[tuple[str, str], ...] = ()

    @property
    def purl(self) -> str:
        """The package URL, which tools compare; it names no registry."""
        name = self.name.replace("@", "%40") if self.kind == "npm" else self.name.lower().replace("_", "-")
        return f"pkg:{self.kind}/{name}@{self.version}"


def components() -> list[Component]:
    """Return every locked package once."""
    return sorted({each.purl: each for each in (*_page_packages(), *_python_packages())}.values())


def _python_packages() -> Iterator[Component]:
    for lock, purpose in reversed(PURPOSES.items()):
        for entry in (
            (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
        ):
            if found := LOCKED.match(entry):
                hashes = tuple(("SHA-256", digest) for digest in HASH.findall(entry))
                licence = _licence_of(found["name"])
                yield Component("pypi", found["name"], found["version"], purpose, licence, hashes)


def _page_packages() -> Iterator[Component]:
    for path, entry in json.loads(PAGE_LOCK.read_text(encoding="utf-8"))["packages"].items():
        if path:
            kind, _, digest = entry["integrity"].partition("-")
            hashes = ((f"SHA-{kind.removeprefix('sha')}", base64.b64decode(digest).hex()),)
            name = path.rpartition("node_modules/")[2]
            licence = entry.get("license") or IN_A_FILE.get(name, UNKNOWN)
            yield Component("npm", name, entry["version"], "the page", licence, hashes)


def _licence_of(name: str) -> str:
    """Return the licence that the package states: the expression, else the classifiers, else the old field."""
    try:
        said = metadata(name).json
    except PackageNotFoundError:
        return ELSEWHERE
    classified = [row.rpartition(" :: ")[2] for row in said.get("classifier", ()) if row.startswith("License ::")]
    named = str(said.get("license", "")).strip()
    if len(named) > LONGEST_NAME or "\n" in named:  # some packages put the whole text into the name's field
        named = WHOLE_TEXT
    return str(said.get("license_expression", "")) or " / ".join(classified) or named or UNKNOWN


def bill(parts: list[Component]) -> dict[str, Any]:
    """Return the software bill of materials, without date or random number: the same locks give the same bill."""
    told = [
        {
            "type": "library",
            "bom-ref": part.purl,
            "name": part.name,
            "version": part.version,
            "purl": part.purl,
            "licenses": [{"license": {"name": part.licence}}],
            "hashes": [{"alg": kind, "content": digest} for kind, digest in part.hashes],
            "properties": [{"name": "everlong:purpose", "value": part.purpose}],
        }
        for part in parts
    ]
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(told))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "everlong", "version": __version__}},
        "components": told,
    }


def main() -> None:
    reader = argparse.ArgumentParser(description="List every package that we install, with version and licence.")
    reader.add_argument("--output", type=Path, help="write a CycloneDX file as well")
    output: Path | None = reader.parse_args().output
    parts = components()
    rows = [("package", "version", "licence", "for"), *((p.name, p.version, p.licence, p.purpose) for p in parts)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join((*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3])))
    if output is not None:
        output.write_text(json.dumps(bill(parts), indent=1) + "\n", encoding="utf-8")
        print(f"{len(parts)} packages; written to {output}", file=sys.stderr)


if __name__ == "__main__":
    main()
