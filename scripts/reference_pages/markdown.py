"""Markdown from plain text: docstrings, tables, code, and links from names to where they are described."""

import re
from collections.abc import Callable, Collection, Sequence

__all__ = [
    "Link",
    "cell",
    "code",
    "escaped",
    "generated",
    "line_of",
    "prose",
    "signature_block",
    "slug",
    "table",
    "text_of",
    "without_items",
]

#: Returns the address of the entry that a name has; "" if it has none.
Link = Callable[[str], str]

#: A signature up to this many characters stays on one line.
WIDEST = 100
#: An item of a list that describes parameters or fields.
ITEM = re.compile(r"- (?P<names>`\w+`(?:, `\w+`)*): (?P<text>.*)")
EXAMPLE = re.compile(r"\bExample(?P<case>[^:`]{0,60}): (?P<text>[^`]* -> [^`]*|[a-zA-Z_.]+\([^`]*\))$")


def generated(source: str) -> str:
    """Return the first line of a page that is written by the program."""
    return f"<!-- Written by `python scripts/reference.py` from {source}. Change that, not this page. -->"


def slug(heading: str) -> str:
    """Return the anchor that GitHub and the site give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def code(text: str) -> str:
    """Return text as code within a line."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def escaped(text: str) -> str:
    """Return plain text that Markdown leaves as it is."""
    text = re.sub(r"([*<])|(?<!\w)(_)|(_)(?!\w)", lambda found: f"\\{found[0]}", text)
    return text.replace("](", "]\\(")


def _linked(word: str, link: Link) -> str:
    address = link(word.rstrip("()"))
    return f"[{code(word)}]({address})" if address else code(word)


def _line(text: str, link: Link) -> str:
    """Return a paragraph: code stays code, names that have an entry lead to it."""
    example = EXAMPLE.search(text)
    after = ""
    if example is not None:
        shown = example["text"]
        text, after = text[: example.start()], f"Example{example['case']}: {code(shown)}"
    pieces = re.split(r"(`[^`]+`)", text)
    for at, piece in enumerate(pieces):
        if piece.startswith("`") and len(piece) > 2:
            pieces[at] = _linked(piece.strip("`"), link)
        else:
            raised = re.sub(
                r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b",
                lambda found: f"\0{found[0]}\0" if link(found[0]) else found[0],
                piece,
            )
            words = [
                escaped(word) if number % 2 == 0 else _linked(word, link)
                for number, word in enumerate(raised.split("\0"))
            ]
            pieces[at] = "".join(words)
    return "".join(pieces) + after


def prose(doc: str, link: Link = lambda _: "") -> list[str]:
    """Return a docstring as lines of Markdown. Indented lines are code; lines that begin with a dash are a list."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", doc.strip()):
        rows = paragraph.split("\n")
        if all(row.startswith("    ") for row in rows):
            lines += ["```py", *(row[4:] for row in rows), "```", ""]
            continue
        if rows[0].startswith(">>> "):
            lines += ["```pycon", *rows, "```", ""]
            continue
        joined: list[str] = []
        for row in rows:
            if joined and not row.startswith("- ") and not row.startswith("Example"):
                joined[-1] += " " + row.strip()
            else:
                joined.append(row.strip())
        for at, row in enumerate(joined):
            item = row.startswith("- ")
            if lines and lines[-1] and item and not lines[-1].startswith("- "):
                lines.append("")
            lines.append(_line(row, link))
            if not item or at == len(joined) - 1:
                lines.append("")
    return lines


def line_of(doc: str, link: Link = lambda _: "") -> str:
    """Return a docstring as one line, for a cell of a table."""
    return " ".join(line for line in prose(doc, link) if line)


def without_items(doc: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return a docstring without the items of a list that describe these names, and the descriptions by name.

    Where an item describes several names, it stands at the first, and the others point to it.
    """
    rest: list[str] = []
    found: dict[str, str] = {}
    described: tuple[str, ...] = ()
    for line in doc.split("\n"):
        item = ITEM.fullmatch(line)
        if item is not None:
            words = tuple(re.findall(r"`([^`]+)`", item["names"]))
            described = words if set(words) <= set(names) else ()
            text = item["text"]
            if described:
                together = f"{item['names']}: {text}"
                found |= dict.fromkeys(described, f"See `{described[0]}`.")
                found[described[0]] = together if len(described) > 1 else text[:1].upper() + text[1:]
        elif described and line.startswith("  "):
            found[described[0]] += f" {line.strip()}"
        else:
            described = ()
        if not described:
            rest.append(line)
    return "\n".join(rest), found


def text_of(doc: str) -> str:
    """Return the first sentence of a docstring."""
    first = re.split(r"\n\s*\n", doc.strip())[0].replace("\n", " ")
    sentence = re.match(r".*?\.(?=\s|$)", first)
    return sentence[0] if sentence else first


def cell(text: str) -> str:
    """Return text for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ").strip()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table; columns in which no row says anything are left out."""
    kept = [at for at in range(len(head)) if any(row[at] for row in rows)]
    lines = ["| " + " | ".join(head[at] for at in kept) + " |", "|" + " --- |" * len(kept)]
    lines += ["| " + " | ".join(cell(row[at]) for at in kept) + " |" for row in rows]
    return [*lines, ""]


def signature_block(*signatures: tuple[str, Sequence[str], str]) -> list[str]:
    """Return signatures as code: each has what comes before the parameters, the parameters, and what comes after."""
    lines = ["```py"]
    for before, parameters, after in signatures:
        whole = f"{before}({', '.join(parameters)}){after}"
        if len(whole) <= WIDEST:
            lines.append(whole)
        else:
            lines += [f"{before}(", *(f"    {parameter}," for parameter in parameters), f"){after}"]
    return [*lines, "```", ""]
