"""Markdown as it arrives, cut into blocks: what is complete never changes again, the rest is still open. Pure."""

import re
from dataclasses import dataclass

__all__ = ["LONGEST_OPEN", "Blocks"]

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
LONGEST_OPEN = 12_000  # characters; an open block beyond that is closed by us, so that drawing it stays cheap


@dataclass(slots=True)
class Blocks:
    """Takes text piece by piece. `open` is what may still change."""

    open: str = ""
    #: How much of `open` was looked through, and the fence that is open there, with its line.
    _seen: int = 0
    _fence: str = ""
    _opening: str = ""

    def add(self, text: str) -> list[str]:
        """Take more text; the blocks that are complete now.

        Example: "one\\n\\ntwo" -> ["one\\n\\n"], and "two" stays open
        """
        self.open += text
        if "\n" not in text and len(self.open) < LONGEST_OPEN:
            return []
        complete: list[str] = []
        while (end := self.open.find("\n", self._seen)) >= 0:
            line = self.open[self._seen : end]
            self._seen = end + 1
            if self._ends_block(line):
                complete.append(self._taken(self._seen))
        while len(self.open) >= LONGEST_OPEN:
            complete.append(self._forced())
        return complete

    def end(self) -> str:
        """There is no more: the block that was open, "" if it says nothing."""
        return self._taken(len(self.open))

    def _ends_block(self, line: str) -> bool:
        """Whether the block is complete with this line: an empty one outside a fence, or the end of a fence."""
        found = FENCE.match(line)
        if self._fence:
            closes = found is not None and found[1].startswith(self._fence) and not found[2].strip()
            if closes:
                self._fence = ""
            return closes
        if found is not None:
            self._fence, self._opening = found[1], line
            return False
        return not line.strip()

    def _taken(self, length: int) -> str:
        block, self.open = self.open[:length], self.open[length:]
        self._seen = max(0, self._seen - length)
        return block if block.strip() else ""

    def _forced(self) -> str:
        """The beginning of a block that does not end, as a block; a fence is closed there and opened again."""
        cut = self.open.rfind("\n", len(self._opening) + 1 if self._fence else 0, LONGEST_OPEN) + 1 or LONGEST_OPEN
        if not self._fence:
            return self._taken(cut)
        block = f"{self._taken(cut).rstrip(chr(10))}\n{self._fence}\n"
        self.open = f"{self._opening}\n{self.open}"
        self._seen += len(self._opening) + 1
        return block
