"""Builds the documentation site from docs/ (`make docs`): two languages, versions, search, no request to another host.

python scripts/docs_site.py [--output site] [--url https://docs.example.org] [--serve]

The site is in OUTPUT/LANGUAGE/VERSION/. Existing versions stay, so that a published site keeps them. The project's
pages (contributing, changelog, design notes) are part of it; a link to any other file of the repository leads to a copy
of that file. A warning of the generator is an error here.
"""

import argparse
import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from os.path import normpath, relpath
from pathlib import Path
from typing import Any

import tomlkit

import everlong

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LANGUAGES = ("en", "zh")
PORT = 8334
BUILT = "built"
#: Placeholder for the site's address while the generator checks links; the generator sees one language at a time.
HERE = "everlong.invalid"
#: Pages outside docs/ that belong to the site, and their places in it.
PROJECT = {name: f"project/{name}" for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md")}
#: A link to the README leads to the site's first page.
HOMES = {ROOT / "README.md": DOCS / "README.md", ROOT / "README.zh.md": DOCS / "zh" / "README.md"}
LINK = re.compile(r"(\]\(|src=\")([^)#\s\"]+)(#[^)\s\"]*)?(\)|\")")
FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
FORWARD = '<!doctype html><meta charset="utf-8"><title>Everlong</title>{}<a href="{}">Everlong</a>\n'
#: The first page sends people to the language of their browser.
CHOOSE = "<script>location.replace(navigator.language.startsWith('zh') ? 'zh/' : 'en/')</script>"


@dataclass(frozen=True, slots=True)
class Stage:
    """The folder from which one language is built, and the place of each repository file in it."""

    language: str
    folder: Path
    places: dict[Path, str]

    def copy(self) -> None:
        """Copy every page with adjusted links, and every picture."""
        for source, place in self.places.items():
            target = self.folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".md":
                target.write_text(self.page(source, place), encoding="utf-8")
            else:
                shutil.copyfile(source, target)

    def page(self, source: Path, place: str) -> str:
        """Return the text of a page for the site."""
        pieces = FENCE.split(source.read_text(encoding="utf-8"))
        change = functools.partial(self.link, source, place)
        pieces[::2] = [LINK.sub(change, piece) for piece in pieces[::2]]
        return "".join(pieces)

    def link(self, source: Path, place: str, found: re.Match[str]) -> str:
        """Return a page's link, changed to the target's place in the site."""
        before, target, anchor, after = found[1], found[2], found[3] or "", found[4]
        if re.match(r"[a-z]+:", target):
            return found[0]
        file = Path(normpath(source.parent / target))
        file = HOMES.get(file, file)
        if file.is_dir() and (file / "README.md").exists():
            file /= "README.md"
        if not file.exists():
            return found[0]  # the generator reports it
        if file not in self.places:
            return f"{before}{self.other(file, place)}{anchor}{after}"
        return f"{before}{relpath(self.places[file], Path(place).parent)}{anchor}{after}"

    def other(self, file: Path, place: str) -> str:
        """Return the address of a file without a page here: the other language's page, or a copy of the file."""
        here = Path(place).parent
        for other in LANGUAGES:
            if file.suffix == ".md" and (page := placed(other).get(file)) is not None:
                page = page.removesuffix(".md").removesuffix("README")
                return f"https://{HERE}/{other}/{everlong.__version__}/{page}"
        name = relpath(file, ROOT)
        if not file.is_file():
            sys.exit(f"{place} links to {name}, which is not a page or a file")
        copy = self.folder / "files" / f"{name}.txt"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        return relpath(copy, self.folder / here)


@functools.cache
def placed(language: str) -> dict[Path, str]:
    """Return the files of a language's site, each with its place in the site."""
    home = DOCS / "zh" if language == "zh" else DOCS
    places = {
        file: file.relative_to(home).as_posix()
        for file in sorted(home.rglob("*"))
        if file.is_file() and file.suffix != ".toml" and (language == "zh" or not file.is_relative_to(DOCS / "zh"))
    }
    shared = [DOCS / "site.css", *sorted((DOCS / "images").iterdir())]
    places |= {file: file.relative_to(DOCS).as_posix() for file in shared}
    if language == "en":
        places |= {ROOT / name: place for name, place in PROJECT.items()}
        places |= {file: f"project/design/{file.name}" for file in sorted((ROOT / "design").glob("*.md"))}
    return places


def navigation(sections: list[dict[str, Any]], pages: set[str]) -> list[dict[str, list[str]]]:
    """Return the sections with the existing pages; `folder/*` stands for the pages that no section lists."""
    listed = {page for section in sections for page in section["pages"]}
    shown = [{section["title"]: list(_expanded(section["pages"], listed, pages))} for section in sections]
    return [section for section in shown if any(section.values())]


def _expanded(names: list[str], listed: set[str], pages: set[str]) -> Iterator[str]:
    for name in names:
        if name.endswith("*"):
            yield from sorted(page for page in pages - listed if Path(page).parent == Path(name).parent)
        elif name in pages:
            yield name


def settings(language: str, stage: Stage) -> dict[str, Any]:
    """Return the generator's settings for a language."""
    given = tomllib.loads((DOCS / "site.toml").read_text(encoding="utf-8"))
    project, own = given["project"], given["languages"][language]
    pages = {place for place in stage.places.values() if place.endswith(".md")}
    project["docs_dir"], project["site_dir"] = stage.folder.name, BUILT
    project["site_url"] = f"https://{HERE}/{language}/{everlong.__version__}/"
    project["site_description"] = own["description"]
    project["theme"]["language"] = language
    project["nav"] = navigation(own["sections"], pages)
    project["extra"]["alternate"] = [
        {
            "name": given["languages"][other]["name"],
            "link": f"https://{HERE}/{other}/{everlong.__version__}/",
            "lang": other,
        }
        for other in LANGUAGES
    ]
    return {"project": project}


def build(language: str, output: Path, url: str = "") -> None:
    """Build one language of this version; `url` is its later address. Ends the program if the generator warns."""
    place = output / language / everlong.__version__
    with tempfile.TemporaryDirectory() as folder:
        staged = Stage(language, Path(folder) / "pages", placed(language))
        staged.copy()
        config = Path(folder) / "zensical.toml"
        config.write_text(tomlkit.dumps(settings(language, staged)), encoding="utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode:
            sys.exit(re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr))
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(Path(folder) / BUILT, place)
    for page in [*place.rglob("*.html"), *place.rglob("sitemap.xml")]:
        up = "../" * (len(page.relative_to(output).parts) - 1) if page.suffix == ".html" else f"{url}/"
        page.write_text(page.read_text(encoding="utf-8").replace(f"https://{HERE}/", up), encoding="utf-8")
    write_versions(output / language)


def write_versions(folder: Path) -> None:
    """Write the list of versions for the site's menu, newest first, and the page that redirects to the newest."""
    names = sorted((page.name for page in folder.iterdir() if page.is_dir()), key=_numbers, reverse=True)
    versions = [{"version": name, "title": name, "aliases": ["latest"] if name == names[0] else []} for name in names]
    (folder / "versions.json").write_text(json.dumps(versions), encoding="utf-8")
    forward = f'<meta http-equiv="refresh" content="0; url={names[0]}/">'
    (folder / "index.html").write_text(FORWARD.format(forward, f"{names[0]}/"), encoding="utf-8")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *values: object) -> None:
        """Log no requests."""


def served(folder: Path, port: int = 0) -> http.server.ThreadingHTTPServer:
    """Return a local server for the built site; `serve_forever` runs it."""
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(_Quiet, directory=str(folder)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "site", help="the folder of the site (default: site)")
    parser.add_argument("--url", default="", help="where the site will be published, for its sitemap")
    parser.add_argument("--serve", action="store_true", help=f"show it at http://127.0.0.1:{PORT} afterwards")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        build(language, given.output, given.url.rstrip("/"))
    (given.output / "index.html").write_text(FORWARD.format(CHOOSE, "en/"), encoding="utf-8")
    print(f"{given.output}/index.html: {everlong.__version__} in {len(LANGUAGES)} languages")
    if given.serve:
        print(f"http://127.0.0.1:{PORT}  (Ctrl+C ends it)")
        served(given.output, PORT).serve_forever()


if __name__ == "__main__":
    main()
