"""Halves of characters (lone surrogates): texts may hold them, UTF-8, databases and nanobot may not."""

__all__ = ["is_whole", "whole"]


def is_whole(text: str) -> bool:
    """Whether the text has no half of a character in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole(text: str) -> str:
    """The text with a sign in place of each half. Example: "a\\ud83d" -> "a�"."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
