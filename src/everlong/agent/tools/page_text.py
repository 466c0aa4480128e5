"""The program behind `fetch_url`: a web page as text, with headings, paragraphs, lists, links and code.

`isolation` runs it in a process of its own: parsing a hostile page can take for ever. It reads one `Page` as JSON and
writes the text. Scripts, styles and buttons are left out.
"""

import re
import sys
from html.parser import HTMLParser
from typing import BinaryIO
from urllib.parse import urljoin

import msgspec

__all__ = ["Page", "main", "text_of_page"]

UNSEEN = frozenset(("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "select", "button"))
BLOCKS = frozenset(
    ("p", "div", "section", "article", "main", "header", "footer", "aside", "table", "tr", "ul", "ol", "dl", "dd")
) | frozenset(("dt", "blockquote", "figure", "figcaption", "title", "hr", "pre", "address", "details", "summary"))
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
BLANKS = re.compile(r"[ \t\r\n\f\v\xa0]+")
EMPTY_LINES = re.compile(r"\n{3,}")


class Page(msgspec.Struct, frozen=True):
    """A page and the address that its links are relative to."""

    url: str
    html: str


def text_of_page(page: Page) -> str:
    """Return what a person would read.

    Example: <h1>A</h1><p>b <a href="/c">c</a></p> -> "# A\\n\\nb [c](https://…/c)"
    """
    reader = _Reader(page.url)
    reader.feed(page.html)
    reader.close()
    lines = (line.rstrip() for line in "".join(reader.pieces).split("\n"))
    return EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()


class _Reader(HTMLParser):
    """Collects the text of a page, piece by piece."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.url = url
        self.pieces: list[str] = []
        self.unseen: list[str] = []
        self.links: list[str] = []
        self.verbatim = 0  # depth of nested <pre>

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.unseen or tag in UNSEEN:
            if tag in UNSEEN:
                self.unseen.append(tag)
            return
        if tag in HEADINGS:
            self.pieces.append("\n\n" + HEADINGS[tag])
        elif tag == "li":
            self.pieces.append("\n- ")
        elif tag == "br":
            self.pieces.append("\n")
        elif tag in ("td", "th"):
            self.pieces.append(" | ")
        elif tag in BLOCKS:
            self.pieces.append("\n" if tag in ("tr", "dd", "dt") else "\n\n")
        if tag == "pre":
            self.verbatim += 1
        elif tag == "a":
            self._link(dict(attrs).get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        if self.unseen:
            if tag in self.unseen:
                del self.unseen[self.unseen.index(tag) :]
            return
        if tag == "pre":
            self.verbatim = max(0, self.verbatim - 1)
        if tag == "a" and self.links:
            href = self.links.pop()
            if href:
                self.pieces.append(f"]({href})")
        elif tag in HEADINGS or tag in BLOCKS:
            self.pieces.append("\n" if tag in ("tr", "dd", "dt") else "\n\n")

    def handle_data(self, data: str) -> None:
        if self.unseen:
            return
        if self.verbatim:
            self.pieces.append(data)
            return
        text = BLANKS.sub(" ", data)
        begins_line = not self.pieces or self.pieces[-1].endswith(("\n", " "))
        self.pieces.append(text.lstrip() if begins_line else text)

    def _link(self, href: str) -> None:
        """Begin a link, if its address leads to another page; links inside a page and to scripts are left out."""
        try:
            target = urljoin(self.url, href) if href and not href.startswith("#") else ""
        except ValueError:
            target = ""
        self.links.append(target if target.startswith(("http://", "https://")) else "")
        if self.links[-1]:
            self.pieces.append("[")


def main(source: BinaryIO, output: BinaryIO) -> None:
    """Read a page from `source`; write its text to `output`."""
    page = msgspec.json.decode(source.read(), type=Page)
    output.write(text_of_page(page).encode("utf-8", "replace"))


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
