"""What was done to which process, and when: printed with every verdict that fails."""

from dataclasses import dataclass, field
from time import monotonic

__all__ = ["Log"]


@dataclass(slots=True)
class Log:
    """Lines with their seconds since the start."""

    lines: list[str] = field(default_factory=list)
    started: float = field(default_factory=monotonic)

    def note(self, line: str) -> None:
        """Add a line."""
        self.lines.append(f"{monotonic() - self.started:8.2f}  {line}")

    def tail(self, most: int = 200) -> str:
        """Return the newest lines."""
        left = max(0, len(self.lines) - most)
        return "\n".join(([f"… {left} lines before"] if left else []) + self.lines[left:])
