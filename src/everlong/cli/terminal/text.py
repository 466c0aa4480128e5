"""Foreign text made safe to show: nothing in it can control a terminal or reverse a line.

Words stay unchanged. Colour codes, control characters and marks that change the writing direction are removed; lone
surrogates, which no output can encode, become the replacement character.
"""

import re

__all__ = ["clean", "one_line"]

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -~]?)")
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
SPACES = re.compile(r"[ \t\n]+")  # a narrow space stays
UNWRITABLE = re.compile(r"[\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Return the text with its line ends and tabs, but without any other control characters.

    Example: "\\x1b[31mred\\x1b[0m\\r\\nx" -> "red\\nx"
    """
    lines = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return UNWRITABLE.sub("\ufffd", STEERING.sub("", lines))


def one_line(text: str) -> str:
    """Return the cleaned text on one line."""
    return SPACES.sub(" ", clean(text)).strip(" ")
