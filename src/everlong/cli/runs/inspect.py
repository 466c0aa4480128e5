"""`everlong inspect`: the token map of a conversation, on the terminal, as a page or as JSON."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from everlong.cli.maps.inspection import as_json, inspect_document
from everlong.cli.maps.page import page_of
from everlong.cli.maps.terminal_map import draw_map
from everlong.cli.terminal.files import pick_document, source_bytes, write_page
from everlong.cli.terminal.tables import console
from everlong.cli.variables import engine_budget, engine_settings
from everlong.cli.words.language import Language
from everlong.cli.words.wording import Words
from everlong.errors import InputError

__all__ = ["run"]

PAGES = (".html", ".htm")
LONG_WORK = 500_000  # bytes of a file; a larger one takes noticeable time


def run(  # noqa: PLR0913 - one parameter an option
    file: str | None,
    model: str,
    sample: bool,
    budget: int | None,
    preset: str | None,
    html: str | None,
    json_wanted: bool,
    top: int,
    pick: str,
    target: str | None,
    language: Language,
) -> None:
    """Draw the map of a conversation, or write it as a page or JSON."""
    if file is None and not sample and html and html != "-" and not html.endswith(PAGES):
        file, html = html, ""  # `inspect --html FILE`: click gave FILE to the option
    page_path = None if html is None else _page_path(html, file, sample=sample)
    say = Words(language, "inspect")
    name, settings = _name(file, sample=sample), engine_settings(preset)
    data = source_bytes(file, sample=sample)
    with _status(len(data), say):
        picked = pick_document(data, pick, name if file in (None, "-") else str(file))
        document = picked.document
        inspection = inspect_document(
            document,
            name=name,
            model=model,
            target=target or "",
            budget=engine_budget(model or document.model, settings) if budget is None and preset else budget,
            planned=preset is not None,
            settings=settings,
        )
    say.report_model(model or document.model)
    if not json_wanted:
        say.report_picked(picked.number, picked.of)
    if page_path is not None:
        write_page(page_of(inspection, say, top=top), page_path)
        if page_path != "-":
            click.echo(say("page_written", path=page_path), err=json_wanted)
    if json_wanted:
        click.echo(json.dumps(as_json(inspection, picked=picked.number, conversations=picked.of), indent=2))
    elif page_path is None:
        draw_map(inspection, console(), say, top=top)
    if inspection.impossible is not None:
        if page_path is not None:
            raise inspection.impossible
        sys.exit(1)  # the map says why


def _name(file: str | None, *, sample: bool) -> str:
    if sample:
        return "sample"
    return "standard input" if file in (None, "-") else Path(str(file)).name


@contextmanager
def _status(size: int, say: Words) -> Iterator[None]:
    """Show progress while a large file is counted, if a person watches."""
    if size < LONG_WORK or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - only where it is seen

    with Console(stderr=True).status(say("working")):
        yield


def _page_path(html: str, file: str | None, *, sample: bool) -> str:
    """Return the path of the page. A path that does not end like a page is refused: it may be the conversation."""
    if html == "-" or html.endswith(PAGES):
        return html
    if html:
        raise InputError(f"--html: {html} does not end in .html")
    if sample or file in (None, "-"):
        return f"everlong-{'sample' if sample else 'conversation'}.map.html"
    path = Path(str(file))
    return str(path.with_name(Path(path.name.removesuffix(".gz")).stem + ".map.html"))
