"""Files that people attach, over the API: their text in sections, their cost, and what is refused in one line."""

import asyncio
import base64
import io
import json
import zipfile
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from everlong.cli.demo_app import picture
from everlong.errors import Refused
from everlong.web.documents import process
from everlong.web.documents.kinds import kind_of
from tests.web.documents import files
from tests.web.running import Page, an_app


def read(page: Page, data: bytes) -> tuple[int, Any]:
    status, body, _ = page.raw("POST", "/everlong/api/attachments?model=main/gpt-4o", data)
    return status, json.loads(body)


def bomb() -> bytes:
    """A small file that unpacks to a large one."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        for part in range(5):
            archive.writestr(f"word/{part}.xml", b"\0" * 100_000_000)
    return file.getvalue()


CASES: dict[str, tuple[bytes, str, list[tuple[str, str]]]] = {
    "pdf": (files.pdf("Seven boats.", "No wind."), "pdf", [("1", "Seven boats."), ("2", "No wind.")]),
    "docx": (
        files.docx("The tide comes at six."),
        "docx",
        [("1–3", "# The harbour\nThe tide comes at six.\nboats | 7")],
    ),
    "xlsx": (
        files.xlsx(Boats=[["name", "length"], ["Ada", 12.5], [None, None]], Empty=[]),
        "xlsx",
        [("Boats", "name | length\nAda | 12.5"), ("Empty", "")],
    ),
    "pptx": (files.pptx("One", "Two"), "pptx", [("1", "One"), ("2", "Two")]),
    "text": (b"a\nb\n", "text", [("1–2", "a\nb\n")]),
    "chinese": ("潮水六点来。".encode("gb18030"), "text", [("1–1", "潮水六点来。")]),
    "utf-16": ("tide".encode("utf-16"), "text", [("1–1", "tide")]),
}


def test_the_text_of_every_kind_of_file_is_read_with_its_tokens() -> None:
    with an_app() as (app, _):
        page = app.page()
        for name, (data, kind, sections) in CASES.items():
            status, told = read(page, data)
            assert status == 200, (name, told)
            assert (told["kind"], told["cut"]) == (kind, False)
            assert [(section["label"], section["text"]) for section in told["sections"]] == sections, name
            assert told["tokens"] == sum(section["tokens"] for section in told["sections"]) > 0
        status, told = read(page, base64.b64decode(picture(8, 8)))
        assert (status, told["kind"]) == (200, "picture")
        assert told["tokens"] > 0
        long = "\n".join(f"line {at}" for at in range(1_000)).encode()
        assert [section["label"] for section in read(page, long)[1]["sections"]][:2] == ["1–200", "201–400"]


REFUSED: dict[str, tuple[bytes, str]] = {
    "a scan": (files.scan(), "no_text"),
    "a password": (files.encrypted_pdf(), "encrypted"),
    "an old file": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 100, "old_office"),
    "a program": (b"\x7fELF\0\0\0", "not_text"),
    "a damaged PDF": (b"%PDF-1.4\nnothing", "damaged"),
    "a damaged zip": (b"PK\x03\x04nothing", "damaged"),
    "another zip": (files.xlsx(A=[["x"]]).replace(b"xl/", b"ab/"), "not_text"),
    "a bomb": (bomb(), "too_large"),
    "nothing": (b"", "no_text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_one_line(name: str) -> None:
    data, kind = REFUSED[name]
    with pytest.raises(Refused) as raised:
        asyncio.run(process.read_document(data, "gpt-4o"))
    assert raised.value.kind == kind
    assert "\n" not in str(raised.value)


def test_a_file_that_takes_too_long_is_ended() -> None:
    many = files.pdf(*(["word " * 20] * 2_000))
    with pytest.raises(Refused) as raised:
        asyncio.run(process.read_document(many, "gpt-4o", seconds=0))
    assert raised.value.kind in ("too_slow", "too_large")


@settings(max_examples=25)
@given(st.sampled_from([name for name, (_, kind, _) in CASES.items() if kind != "text"]), st.data())
def test_damage_never_raises_anything_else(name: str, data: st.DataObject) -> None:
    whole = bytearray(CASES[name][0])
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(8, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        kind = kind_of(bytes(whole))
    except Refused:
        return
    assert kind in ("pdf", "docx", "xlsx", "pptx", "text")
