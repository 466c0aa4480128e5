"""Archives of many files: read within bounds, written piece by piece."""

import io
import zipfile

import pytest

from everlong.errors import InputError
from everlong.wire.archives import files_in, packed


def zipped(files: dict[str, bytes]) -> io.BytesIO:
    return io.BytesIO(b"".join(packed(files.items())))


def test_an_archive_is_made_piece_by_piece() -> None:
    made: list[str] = []

    def files() -> object:
        for name in ("a.json", "b.json", "c.json"):
            made.append(name)
            yield name, name.encode() * 1_000

    pieces = packed(files())  # type: ignore[arg-type]
    first = next(pieces)
    assert (made, first[:2]) == (["a.json"], b"PK")
    whole = first + b"".join(pieces)
    assert {name: len(data) for name, data in files_in(io.BytesIO(whole))} == dict.fromkeys(made, 6_000)


def test_only_files_that_may_hold_conversations_are_read() -> None:
    archive = zipped(
        {"a/talk.json": b"1", "picture.png": b"2", "__MACOSX/._talk.json": b"3", "b.JSONL": b"4", ".x.json": b"5"}
    )
    assert [name for name, _ in files_in(archive)] == ["a/talk.json", "b.JSONL"]


BOMBS = {
    "one file that is too large": ({"largest": 100}, "a.json unpacks to more than"),
    "all of them together": ({"total": 1_500}, "b.json unpacks to more than"),
    "too many": ({"members": 1}, "more than 1 files"),
}


@pytest.mark.parametrize(("bounds", "told"), BOMBS.values(), ids=BOMBS)
def test_an_archive_that_holds_too_much_is_refused(bounds: dict[str, int], told: str) -> None:
    with pytest.raises(InputError, match=told):
        list(files_in(zipped({"a.json": b"0" * 1_000, "b.json": b"0" * 1_000}), **bounds))


def test_a_locked_archive_says_so() -> None:
    archive = bytearray(zipped({"a.json": b"{}"}).getvalue())
    with zipfile.ZipFile(io.BytesIO(bytes(archive))) as read:
        assert read.infolist()[0].flag_bits & 1 == 0
    central = archive.index(b"PK\x01\x02")
    archive[central + 8] |= 1
    with pytest.raises(InputError, match="locked with a password"):
        list(files_in(io.BytesIO(bytes(archive))))
