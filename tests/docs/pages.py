"""The pages of the documentation as values: their headings, links, pictures, code blocks and tables."""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Every page that a reader may open.
PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *(ROOT / "design").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(path for path in (ROOT / "packages").rglob("*.md") if "node_modules" not in path.parts),
    }
)
#: Those that `scripts/reference.py` writes.
GENERATED = "<!-- Written by"
PARSER = MarkdownIt("commonmark").enable("table")
HTML_LINK = re.compile(r"""<(?:a|img|source)\b[^>]*?\s(?:href|src|srcset)=["']([^"'\s]+)""")
HTML_ANCHOR = re.compile(r"""<\w+\b[^>]*?\s(?:id|name)=["']([^"']+)["']""")
HTML_IMAGE = re.compile(r"<img\b[^>]*>")


@dataclass(frozen=True)
class Block:
    """A block of code: its language, what is in it, and its line on the page."""

    language: str
    code: str
    line: int


@dataclass(frozen=True)
class Image:
    """A picture on a page: its file, and the text for those who do not see it."""

    file: str
    alt: str


@dataclass
class Section:
    """A heading and what stands below it, up to the next heading; the first has no heading."""

    level: int
    title: str
    text: str = ""
    tables: list[list[list[str]]] = field(default_factory=list)


@dataclass
class Page:
    """One page."""

    path: Path
    text: str
    links: list[str] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    sections: list[Section] = field(default_factory=lambda: [Section(0, "")])

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def generated(self) -> bool:
        return self.text.startswith(GENERATED)


@cache
def read_page(path: Path) -> Page:
    page = Page(path, path.read_text(encoding="utf-8"))
    lines, seen = page.text.splitlines(), Counter[str]()
    tokens = PARSER.parse(page.text)
    for at, token in enumerate(tokens):
        section = page.sections[-1]
        if token.type == "heading_open":
            title = words_of(tokens[at + 1])
            section = Section(int(token.tag[1]), title)
            page.sections.append(section)
            anchor = slug(title)
            page.anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1
        elif token.type in ("fence", "code_block"):
            page.blocks.append(Block(token.info.strip(), token.content, (token.map or [0])[0] + 1))
        elif token.type == "table_open":
            section.tables.append(table_of(tokens, at))
        elif token.type == "html_block":
            read_html(page, token.content)
        for inner in token.children or ():
            read_inline(page, inner)
        if token.map is not None and token.level == 0:
            section.text += "\n".join(lines[token.map[0] : token.map[1]]) + "\n"
    return page


def read_inline(page: Page, token: Token) -> None:
    if token.type == "link_open":
        page.links.append(str(token.attrs["href"]))
    elif token.type == "image":
        page.images.append(Image(str(token.attrs["src"]), token.content))
    elif token.type == "html_inline":
        read_html(page, token.content)


def read_html(page: Page, html: str) -> None:
    page.links += HTML_LINK.findall(html)
    page.anchors.update(HTML_ANCHOR.findall(html))
    for tag in HTML_IMAGE.findall(html):
        file, alt = (re.search(rf"""\b{name}=["']([^"']*)""", tag) for name in ("src", "alt"))
        page.images.append(Image(file[1] if file else "", alt[1] if alt else ""))


def words_of(inline: Token) -> str:
    """The words of a heading, without its marks."""
    words = (each.content for each in inline.children or () if each.type in ("text", "code_inline", "image"))
    return "".join(words)


def slug(title: str) -> str:
    """The anchor of a heading, as GitHub makes it: letters of any language stay, blanks become dashes."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def table_of(tokens: list[Token], start: int) -> list[list[str]]:
    """The rows of a table, the head first, each cell as it is written."""
    rows: list[list[str]] = []
    for token in tokens[start:]:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(token.content)
        elif token.type == "table_close":
            break
    return rows
