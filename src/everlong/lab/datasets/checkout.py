"""A folder that someone has cloned: reads its files in the data set's own shape, and names what is missing.

Nothing here downloads anything.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from everlong.errors import InputError

__all__ = ["Checkout"]

Shape = TypeVar("Shape")

POINTER = b"version https://git-lfs"  # replaces a large file if git lfs is not installed


@dataclass(frozen=True, slots=True)
class Checkout:
    """The folder of a public data set, and where it can be obtained. Paths are those of its repository."""

    folder: Path
    address: str

    def has(self, path: str) -> bool:
        """Return whether the file or folder is there."""
        return (self.folder / path).exists()

    def read(self, path: str, shape: type[Shape]) -> Shape:
        """Return a JSON file in the shape. Raises InputError that names the file and the wrong field."""
        return self._decode(path, self._bytes(path), shape, "")

    def read_lines(self, path: str, shape: type[Shape]) -> list[Shape]:
        """Return a file with one JSON object per line, each in the shape."""
        lines = self._bytes(path).splitlines()
        return [
            self._decode(path, line, shape, f"line {number}: ")
            for number, line in enumerate(lines, start=1)
            if line.strip()
        ]

    def names(self, path: str, suffix: str = "") -> list[str]:
        """Return the names in a folder with this suffix, numbers in numerical order. Example: ["2", "10"]"""
        folder = self.folder / path
        names = [entry.name for entry in folder.iterdir() if entry.name.endswith(suffix)] if folder.is_dir() else []
        if not names:
            raise self._missing(f"{path}/*{suffix}")
        return sorted(names, key=lambda name: (len(name), name) if name.isdecimal() else (0, name))

    def _bytes(self, path: str) -> bytes:
        file = self.folder / path
        if not file.is_file():
            raise self._missing(path)
        data = file.read_bytes()
        if data.startswith(POINTER):
            raise InputError(f"{file}: a pointer of git lfs; run `git lfs pull` in {self.folder}")
        return data

    def _missing(self, path: str) -> InputError:
        return InputError(f"{self.folder}: no {path}; --from takes the folder of {self.address}")

    def _decode(self, path: str, data: bytes, shape: type[Shape], where: str) -> Shape:
        try:
            return msgspec.json.decode(data, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{self.folder / path}: {where}{error}") from error
