"""What is installed is locked: every version with its hash, no registry named, and a bill that lists it all."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "src" / "everlong" / "web" / "page"
#: The extras and groups that each lock file is for, as the Makefile installs them.
EXTRAS = {"installed": (), "serving": ("agent", "local", "server"), "developing": ("dev",)}
GROUPS = {"installed": ("build",), "serving": ("build", "page"), "developing": ("build",)}
LINE = re.compile(r"(?P<requirement>[^\\]*?==[^\\]*?)(?P<hashes>(?:\s+--hash=sha256:[0-9a-f]{64})+)")


def entries(lock: str) -> dict[str, str]:
    """The packages of a lock file and their versions. A package may stand there twice, for two kinds of systems."""
    found = {}
    for line in (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if not line.startswith("#"):
            entry = LINE.fullmatch(line.strip())
            assert entry is not None, f"{lock}: not a version with hashes: {line[:80]}"
            requirement = Requirement(entry["requirement"].strip())
            found[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return found


@pytest.mark.parametrize("lock", EXTRAS)
def test_every_package_that_we_ask_for_is_locked_in_a_version_that_we_accept(lock: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [*project["project"]["dependencies"]]
    asked += [each for group in GROUPS[lock] for each in project["dependency-groups"][group]]
    asked += [each for extra in EXTRAS[lock] for each in project["project"]["optional-dependencies"][extra]]
    locked = entries(lock)
    for requirement in map(Requirement, asked):
        version = locked.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not locked: make lock"
        assert requirement.specifier.contains(version), f"{requirement} does not accept {version}: make lock"


def test_a_package_has_one_version_in_all_lock_files() -> None:
    developing = entries("developing")
    for lock in ("installed", "serving"):
        assert entries(lock).items() <= developing.items()


@pytest.mark.parametrize("home", [PAGE, ROOT / "packages" / "everlong"], ids=lambda home: home.name)
def test_npm_packages_are_locked_for_every_system_and_name_no_registry(home: Path) -> None:
    asked = json.loads((home / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    lock = json.loads((home / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert {name: lock[f"node_modules/{name}"]["version"] for name in asked} == asked
    installed = {path.rpartition("node_modules/")[2] for path in lock}
    for path, entry in lock.items():
        assert not path or entry["integrity"].startswith("sha512-"), path
        assert "resolved" not in entry, path
        assert installed.issuperset(entry.get("optionalDependencies", {})), (
            f"{path}: made on one system only; make lock"
        )


def test_the_makefile_installs_nothing_that_is_not_locked() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "pip install --quiet --disable-pip-version-check --no-deps\n" in makefile
    uses = re.findall(r"^\t@?\$\((INSTALL|LOCKED)\) (.*)$", makefile, re.MULTILINE)
    assert [use for use in uses if use[0] == "INSTALL"] == [("INSTALL", "--no-build-isolation --editable .")]
    assert [use for use in uses if use[0] == "LOCKED"] == [("LOCKED", f"requirements/{lock}.txt") for lock in EXTRAS]
    assert "LOCKED := $(INSTALL) --require-hashes --requirement\n" in makefile


def test_the_locks_name_everything_that_their_packages_need() -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_bill_lists_every_locked_package_with_its_licence(tmp_path: Path) -> None:
    written = tmp_path / "everlong.cdx.json"
    done = subprocess.run(
        [sys.executable, "scripts/sbom.py", "--output", str(written)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    bill = json.loads(written.read_text(encoding="utf-8"))
    told = {part["purl"]: part["licenses"][0]["license"]["name"] for part in bill["components"]}
    for name, version in entries("developing").items():
        assert f"pkg:pypi/{name}@{version}" in told
    assert (
        told["pkg:npm/svelte@" + json.loads((PAGE / "package.json").read_text())["devDependencies"]["svelte"]] == "MIT"
    )
    assert "not said" not in told.values()
    assert all(part["hashes"] for part in bill["components"])
    assert len(done.stdout.splitlines()) == len(told) + 1
