"""Options: settings that people may set, each described once.

A description has the name, type, default, bounds and unit of a setting. All readers of settings (files, variables,
commands, threads) use it to parse and check values, so that a wrong value gives the same clear error everywhere.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from everlong.core import token_count
from everlong.errors import InputError

__all__ = ["Option", "Scalar", "Unit"]

Scalar: TypeAlias = str | int | float | None
Unit: TypeAlias = Literal["", "share", "tokens", "characters", "seconds"]

_TYPES = {str: "a word", int: "an integer", float: "a number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The description of one setting: `name` in files and threads, EVERLONG_NAME in the environment.

    - `kind`, `default`: the type of the value, and its default. None is allowed only if it is the default.
    - `help`: what the setting does, in one line; `unit`: the unit of the value.
    - `choices`: the allowed values, if only some are.
    - `least`, `most`: the limits. With `above`, the value must be greater than `least`.
    - `subject`: what it limits; settings of different presets that limit the same thing have the same subject.
    - `operator`: whether only the person who runs the program may set it, because it names files or code.
    """

    name: str
    kind: type[str] | type[int] | type[float]
    default: Scalar
    help: str = ""
    unit: Unit = ""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    above: bool = False
    subject: str = ""
    operator: bool = False

    def read(self, given: object) -> Scalar:
        """Return the value from a file, a variable or a thread. Raises InputError.

        Example: an option of kind int, "16000" or 16000.0 -> 16000; one in tokens, "16k" -> 16000
        """
        if given is None and self.default is None:
            return None
        value = self._parsed(given)
        if value is None:
            raise InputError(f"{self.name} must be {_TYPES[self.kind]}, not {given!r}")
        self.check(value)
        return value

    def _parsed(self, given: object) -> Scalar:
        """Return the value as `kind`; None if that is not possible without loss."""
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            return None
        if self.unit == "tokens" and self.kind is int and isinstance(given, str):
            return token_count(given)
        try:
            value = self.kind(given)
        except (ValueError, OverflowError):
            return None
        return value if isinstance(given, str) or value == given or self.kind is str else None

    def check(self, value: Scalar) -> None:
        """Raise InputError if the value has another type, is not one of the choices, or is out of range."""
        if value is None and self.default is None:
            return
        if isinstance(value, bool) or not isinstance(value, (int, float) if self.kind is float else self.kind):
            raise InputError(f"{self.name} must be {_TYPES[self.kind]}, not {value!r}")
        if self.choices and value not in self.choices:
            raise InputError(f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}")
        if isinstance(value, int | float) and not self._within(value):
            raise InputError(f"{self.name} must be {self._bounds()}, not {value}")

    def _within(self, value: float) -> bool:
        high_enough = self.least is None or (value > self.least if self.above else value >= self.least)
        return high_enough and (self.most is None or value <= self.most)

    def _bounds(self) -> str:
        if self.unit and self.unit != "share":
            return f"a number of {self.unit}" + (f" above {self.least:g}" if self.above else "")
        if not self.unit:
            least = f"{self.least or 0:g}"
            return f"at least {least}" if self.most is None else f"from {least} to {self.most:g}"
        lowest, highest = _share(self.least or 0), _share(1 if self.most is None else self.most)
        return f"a share above {lowest} and up to {highest}" if self.above else f"a share from {lowest} to {highest}"


def _share(figure: float) -> str:
    return f"{figure:g}" if figure in (0, 1) else f"{figure:.2f}"
