"""Read the text of one PDF or Office file: `python -m everlong.web.documents.reader KIND SECONDS MEMORY`.

It is a separate process because such files can be hostile: its time and its memory are limited, and it cannot write
files. The file comes in on standard input; each section goes out as a line of JSON: [label, text].
"""

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from everlong.web.documents.kinds import LARGEST_TEXT, MOST_SECTIONS

__all__ = ["READERS", "main"]

PARAGRAPHS = 60  # of a text document, in a section
MOST_CELLS = 200  # columns of a sheet
ENCRYPTED, DAMAGED = 3, 4  # exit codes

Section = tuple[str, str]


class Encrypted(Exception):
    """The file has a password."""


def _pdf(data: bytes) -> Iterator[Section]:
    from pypdf import PdfReader  # noqa: PLC0415

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Encrypted
    for number, page in enumerate(reader.pages, 1):
        yield str(number), page.extract_text() or ""


def _docx(data: bytes) -> Iterator[Section]:
    from docx import Document  # noqa: PLC0415
    from docx.table import Table  # noqa: PLC0415

    lines: list[str] = []
    first = number = 1
    for number, block in enumerate(Document(io.BytesIO(data)).iter_inner_content(), 1):
        lines.append(_table(row.cells for row in block.rows) if isinstance(block, Table) else _paragraph(block))
        if number - first + 1 >= PARAGRAPHS:
            yield f"{first}–{number}", "\n".join(lines)
            first, lines = number + 1, []
    if lines:
        yield f"{first}–{number}", "\n".join(lines)


def _paragraph(block: Any) -> str:
    """Return a paragraph; a heading in Markdown."""
    style = str(getattr(block.style, "name", "") or "")
    level = style.removeprefix("Heading ")
    return f"{'#' * int(level)} {block.text}" if style != level and level.isdecimal() else str(block.text)


def _table(rows: Iterable[Iterable[Any]]) -> str:
    return "\n".join(" | ".join(" ".join(str(cell.text).split()) for cell in row) for row in rows)


def _pptx(data: bytes) -> Iterator[Section]:
    from pptx import Presentation  # noqa: PLC0415

    for number, slide in enumerate(Presentation(io.BytesIO(data)).slides, 1):
        texts = []
        for shape in slide.shapes:
            if getattr(shape, "has_table", False):
                texts.append(_table(row.cells for row in shape.table.rows))
            elif shape.has_text_frame:
                texts.append(shape.text_frame.text)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            texts.append(slide.notes_slide.notes_text_frame.text)
        yield str(number), "\n".join(text for text in texts if text.strip())


def _xlsx(data: bytes) -> Iterator[Section]:
    from openpyxl import load_workbook  # noqa: PLC0415

    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    for sheet in book.worksheets:
        lines = []
        for row in sheet.iter_rows(values_only=True, max_col=MOST_CELLS):
            cells = ["" if cell is None else " ".join(str(cell).split()) for cell in row]
            while cells and not cells[-1]:
                cells.pop()
            if cells:
                lines.append(" | ".join(cells))
        yield sheet.title, "\n".join(lines)


READERS: dict[str, Callable[[bytes], Iterator[Section]]] = {"pdf": _pdf, "docx": _docx, "pptx": _pptx, "xlsx": _xlsx}


def main(kind: str, seconds: int, memory: int) -> int:
    """Read the file on standard input and write its sections; return the exit code."""
    _bound(seconds, memory)
    data = sys.stdin.buffer.read()
    written = 0
    try:
        for number, (label, text) in enumerate(READERS[kind](data)):
            rest = text[: LARGEST_TEXT - written]
            written += len(rest)
            sys.stdout.write(json.dumps([label, rest]) + "\n")
            if written >= LARGEST_TEXT or number + 1 >= MOST_SECTIONS:
                break
    except Encrypted:
        return ENCRYPTED
    except Exception:  # noqa: BLE001 -- whatever a library raises, the file is damaged
        return DAMAGED
    return 0


def _bound(seconds: int, memory: int) -> None:
    try:
        import resource  # noqa: PLC0415 -- not on Windows, where the parent process ends it
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
