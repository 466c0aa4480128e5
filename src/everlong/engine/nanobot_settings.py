"""nanobot's settings, by the names of its configuration file. Every field has a default; an old file loads."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from everlong.compress import Preset, nanobot
from everlong.errors import InputError
from everlong.windows import window

__all__ = ["NanobotSettings"]

WHOLE_NUMBERS = ("context_window_override", "max_user_message_chars", "max_assistant_message_chars")
FLAGS = ("context_compression", "enable_history_summarization")
SHARES = ("tool_result_soft_limit", "tool_result_hard_limit", "context_reserve_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class NanobotSettings:
    """The compression fields of nanobot's agent defaults."""

    context_compression: bool = True
    context_window_override: int | None = None
    tool_result_soft_limit: float = 0.3
    tool_result_hard_limit: float = 0.5
    context_reserve_ratio: float = 0.15
    compression_model: str | None = None
    enable_history_summarization: bool = False
    max_user_message_chars: int = 30_000
    max_assistant_message_chars: int = 20_000

    def __post_init__(self) -> None:
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} is true or false, not {getattr(self, name)!r}")
        for name in SHARES:
            share = getattr(self, name)
            if not isinstance(share, int | float) or not 0 < share < 1:
                raise InputError(f"{name} is a share between 0 and 1, not {share!r}")
        for name in WHOLE_NUMBERS:
            number = getattr(self, name)
            if number is not None and (type(number) is not int or number < 0):
                raise InputError(f"{name} is a whole number and cannot be negative: {number!r}")

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "NanobotSettings":
        """From the agent defaults of a `config.json`, snake_case or camelCase.

        Null is the default; other fields are ignored.
        """
        known = {field.name for field in fields(cls)}
        given = {_snake(key): value for key, value in config.items()}
        return cls(**{key: value for key, value in given.items() if key in known and value is not None})

    def preset(self) -> Preset | str:
        """The preset with these settings; "off" where compression is switched off."""
        if not self.context_compression:
            return "off"
        return nanobot(
            soft=self.tool_result_soft_limit,
            hard=self.tool_result_hard_limit,
            user=self.max_user_message_chars,
            assistant=self.max_assistant_message_chars,
        )

    def budget(self, model: str) -> int:
        """What a request to the model may take: its window without the share kept for the answer."""
        context = window(model, override=self.context_window_override).context
        return int(context * (1 - self.context_reserve_ratio))


def _snake(name: str) -> str:
    """contextCompression -> context_compression"""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
