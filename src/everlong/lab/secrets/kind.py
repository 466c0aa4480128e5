"""What a kind of secret is: how one is drawn from a seed, the names it is kept under, and what must be hidden."""

import base64
import string
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

__all__ = [
    "ALNUM",
    "BASE64",
    "HEX",
    "LOWER",
    "UPPER",
    "URLSAFE",
    "Kind",
    "Made",
    "Place",
    "encoded",
    "some",
    "with_crc",
]

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = DIGITS + UPPER + LOWER
HEX = DIGITS + "abcdef"
BASE64 = ALNUM + "+/"
URLSAFE = ALNUM + "_-"

#: "token": recognisable by its own shape, so it may occur anywhere. "value": random letters, so a name must come before
#: it. "snippet": a whole piece of text, such as a command, with the secret inside.
Place = Literal["token", "value", "snippet"]


@dataclass(frozen=True, slots=True)
class Made:
    """A drawn secret: the text, and the parts that must be removed."""

    text: str
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of secret: its name, how one is drawn, where it may occur, the names people keep it under."""

    name: str
    draw: Callable[[Random], str | Made]
    place: Place = "token"
    names: tuple[str, ...] = ("api key", "token", "secret")

    def made(self, random: Random) -> Made:
        """Return one secret of this kind."""
        drawn = self.draw(random)
        return drawn if isinstance(drawn, Made) else Made(drawn, (drawn,))


def some(random: Random, alphabet: str, length: int) -> str:
    """Return that many characters of an alphabet."""
    return "".join(random.choices(alphabet, k=length))


def with_crc(prefix: str, body: str) -> str:
    """Return a token with the checksum that GitHub and npm append: CRC-32 of the body as six digits in base 62."""
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, len(ALNUM))
        digits = ALNUM[digit] + digits
    return f"{prefix}{body}{digits.rjust(6, '0')}"


def encoded(text: str, *, padded: bool = True) -> str:
    """Return a text in base64; without padding, in the form for addresses."""
    if padded:
        return base64.b64encode(text.encode()).decode()
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
