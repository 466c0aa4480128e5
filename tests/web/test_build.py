"""The page is built once from its sources, and what goes wrong is one line."""

import json
from pathlib import Path

import pytest

from everlong.errors import InputError
from everlong.web.build import build_page, is_built

WRITES = (
    "const fs=require('fs');const d=process.argv[process.argv.indexOf('--outDir')+1];fs.mkdirSync(d,{recursive:true});"
)


def a_page(folder: Path, script: str) -> Path:
    """A page whose build runs that program."""
    page = folder / "page"
    (page / "src").mkdir(parents=True)
    (page / "src" / "main.ts").write_text("export {}", encoding="utf-8")
    (page / "build.cjs").write_text(script, encoding="utf-8")
    package = {"name": "a-page", "private": True, "scripts": {"build": "node build.cjs"}}
    (page / "package.json").write_text(json.dumps(package), encoding="utf-8")
    return page


def test_a_page_is_built_when_its_sources_changed_and_only_then(tmp_path: Path) -> None:
    page = a_page(tmp_path, WRITES + "fs.writeFileSync(d+'/index.html','built')")
    built = tmp_path / "built"
    assert not is_built(page, built)
    assert build_page(page, built)
    assert (built / "index.html").read_text(encoding="utf-8") == "built"
    assert not build_page(page, built)
    (page / "src" / "main.ts").write_text("export const a = 1", encoding="utf-8")
    assert not is_built(page, built)
    assert build_page(page, built)


FAILS = {
    "an error": ("console.error('error: no such tag <p>');process.exit(1)", "no such tag"),
    "nothing made": (WRITES, "no index.html"),
}


@pytest.mark.parametrize("name", FAILS)
def test_what_goes_wrong_is_one_line(name: str, tmp_path: Path) -> None:
    script, reason = FAILS[name]
    page = a_page(tmp_path, script)
    with pytest.raises(InputError) as told:
        build_page(page, tmp_path / "built")
    assert reason in str(told.value)
    assert "\n" not in str(told.value)


def test_without_sources_nothing_is_built(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        build_page(tmp_path, tmp_path / "built")
