"""The calls that a piece of work makes: real functions, watched by the interpreter and not replaced."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["Calls"]


class Calls:
    """Counts calls in this thread while it is entered: of these functions, and of all that stand below `folder`."""

    def __init__(self, *functions: Callable[..., object], folder: Path | None = None) -> None:
        self.made = 0
        #: The arguments of each call of one of the functions, by name.
        self.arguments: list[Mapping[str, Any]] = []
        self._codes = {function.__code__ for function in functions}
        self._folder = None if folder is None else str(folder)

    def __enter__(self) -> "Calls":
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _seen(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        if frame.f_code in self._codes:
            self.made += 1
            self.arguments.append(dict(frame.f_locals))
        elif self._folder is not None and frame.f_code.co_filename.startswith(self._folder):
            self.made += 1
