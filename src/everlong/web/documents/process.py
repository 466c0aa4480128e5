"""Read a file in a separate process, within limits of time and size, and count its tokens."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

from everlong.core import JsonObject
from everlong.engine import count
from everlong.extras import command_for, lacking
from everlong.web.documents.kinds import LARGEST_TEXT, UTF16, Kind, kind_of, refuse
from everlong.web.documents.reader import DAMAGED, ENCRYPTED

__all__ = ["Document", "Section", "read_document"]

SECONDS = 30  # of reading
MEMORY = 2 * 1024**3  # bytes of address space, libraries included
LINES = 200  # of a text file, in a section
MOST_TEXT_SECTIONS = 2_000


@dataclass(frozen=True, slots=True)
class Section:
    """A page, slide, sheet, or some lines. `label` says which; `tokens` is what it costs."""

    label: str
    text: str
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a file. `cut`: it was too long, and this is only its beginning."""

    kind: Kind
    sections: tuple[Section, ...]
    cut: bool = False

    def shown(self) -> JsonObject:
        """Return it as the page reads it."""
        return {
            "kind": self.kind,
            "cut": self.cut,
            "tokens": sum(section.tokens for section in self.sections),
            "sections": [
                {"label": section.label, "text": section.text, "tokens": section.tokens} for section in self.sections
            ],
        }


async def read_document(data: bytes, model: str, *, seconds: int = SECONDS, memory: int = MEMORY) -> Document:
    """Return the text of a file, counted as the model counts. Raises Refused if no text can be read."""
    kind = await asyncio.to_thread(kind_of, data)
    if kind == "text":
        sections = await asyncio.to_thread(_text_sections, data)
    else:
        missing = lacking("documents")
        if missing:
            raise refuse(
                "documents_missing", f"to read this file, install the missing packages: {command_for('documents')}", 501
            )
        sections = await _in_a_process(kind, data, seconds, memory)
    if not any(section.text.strip() for section in sections):
        raise refuse("no_text", "the file contains no text; it may be a scan")
    counted = await asyncio.to_thread(_counted, sections, model)
    return Document(kind, counted, cut=sum(len(section.text) for section in counted) >= LARGEST_TEXT)


def _text_sections(data: bytes) -> list[Section]:
    try:
        text = data.decode("utf-16") if data.startswith(UTF16) else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = data.decode("gb18030")
        except UnicodeDecodeError:
            raise refuse("not_text", "files of this kind contain no text") from None
    lines = text[:LARGEST_TEXT].splitlines(keepends=True)
    step = max(LINES, -(-len(lines) // MOST_TEXT_SECTIONS))
    return [
        Section(f"{at + 1}–{min(at + step, len(lines))}", "".join(lines[at : at + step]))
        for at in range(0, len(lines), step)
    ]


async def _in_a_process(kind: Kind, data: bytes, seconds: int, memory: int) -> list[Section]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "everlong.web.documents.reader",
        kind,
        str(seconds),
        str(memory),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate(data)
    except TimeoutError:
        raise refuse("too_slow", f"the file was not read within {seconds} seconds", 413) from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    sections = [Section(*json.loads(line)) for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
    if process.returncode == ENCRYPTED:
        raise refuse("encrypted", "the file is protected by a password; save a copy without one and attach that")
    if process.returncode and not sections:
        text = "the file is damaged" if process.returncode == DAMAGED else "the file takes too much memory or time"
        raise refuse("damaged" if process.returncode == DAMAGED else "too_large", text)
    return sections


def _environment() -> dict[str, str]:
    """Return a minimal environment: no key of the server is visible to the process that reads a file."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _counted(sections: list[Section], model: str) -> tuple[Section, ...]:
    return tuple(
        Section(section.label, section.text, count([{"role": "user", "content": section.text}], model=model))
        for section in sections
    )
