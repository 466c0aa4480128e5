"""The frame of a page, its cards and tables: one file, one style allowed by its hash, and nothing else."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

from everlong import __version__
from everlong.lab.report.wording import Wording

__all__ = ["card", "details", "figure", "sheet", "table"]

POLICY = "default-src 'none'; style-src '{style}'; base-uri 'none'; form-action 'none'"


def sheet(title: str, intro: str, facts: Iterable[str], sections: Iterable[str], say: Wording) -> str:
    """Return the whole page. `sections` are HTML, everything else is text."""
    style = files("everlong.lab.report").joinpath("page.css").read_text(encoding="utf-8")
    digest = f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}"
    listed = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    return (
        f'<!doctype html>\n<html lang="{say("html_language")}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(style=digest)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)} · everlong</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        f'<header class="top"><p class="brand"><b>everlong</b> lab</p><h1>{escape(title)}</h1>'
        f'<p class="facts">{listed}</p><p class="hint">{escape(intro)}</p></header>\n'
        + "\n".join(sections)
        + f"\n<footer>everlong {__version__} · {escape(say('footer'))}</footer>\n</main>\n</body>\n</html>\n"
    )


def card(title: str, body: str, facts: Iterable[str] = ()) -> str:
    """Return a titled part of the page; `body` is HTML."""
    listed = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    under = f'<p class="facts">{listed}</p>' if listed else ""
    return f'<section class="card"><h2>{escape(title)}</h2>{under}{body}</section>'


def details(title: str, body: str) -> str:
    """Return a part that opens with a click on its title; `body` is HTML."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def figure(picture: str, caption: str = "") -> str:
    """Return a picture that scrolls sideways on a narrow screen."""
    return f'<div class="scroll">{picture}</div>' + (f'<p class="hint">{escape(caption)}</p>' if caption else "")


def table(head: Sequence[str], rows: Iterable[tuple[Sequence[str], bool]]) -> str:
    """Return a table. Cells are HTML; each row says whether it is ours."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(_table_row(cells, ours=ours) for cells, ours in rows)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _table_row(cells: Sequence[str], *, ours: bool) -> str:
    listed = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr class="ours">{listed}</tr>' if ours else f"<tr>{listed}</tr>"
