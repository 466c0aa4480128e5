"""What a provider would say no to, as a value."""

from dataclasses import dataclass

__all__ = ["Problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to reject a request: where it is ("messages[3]") and what is wrong, in words."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"
