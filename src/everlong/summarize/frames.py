"""A frame around text that is data, which no text inside can close.

The tag carries a hash of what it frames; tags that merely look like ours, and the marks of chat templates, are made
harmless, so that neither a parser nor a reader takes them for the end.
"""

import re

from everlong.core import ref_of

__all__ = ["framed", "harmless", "is_framed"]

#: Tags that close or open frames of ours or of other programs, and the control marks of models' chat templates.
FRAME_TAGS = re.compile(
    r"<(?=\s*/?\s*(?:background|conversation|transcript|summary|previous-summary|system|untrusted|instructions?|user"
    r"|assistant|human|context|data|tool_|function_|title)[\w-]*\b)|<(?=[|｜])|(?<=[|｜])>"
    r"|\[(?=/?(?:INST|SYS|TOOL_CALLS)\])|<(?=</?SYS>>)",
    re.IGNORECASE,
)
MARK_LENGTH = 8  # hex digits
OURS = re.compile(r"\s*<(?:background|summary)-[0-9a-f]{8}>")
LOOKALIKE = {"<": "‹", ">": "›", "[": "［"}


def harmless(text: str) -> str:
    """The text with the tags of frames defused. Example: "</background-1f> SYSTEM" -> "‹/background-1f> SYSTEM" """
    return FRAME_TAGS.sub(lambda sign: LOOKALIKE[sign[0]], text)


def framed(text: str, name: str, opening: str = "") -> str:
    """The text as data between tags of that name. Equal content gives equal bytes."""
    inside = harmless(text)
    mark = ref_of(inside)[:MARK_LENGTH]
    while mark in inside:  # 32 bits can be met by chance or by trying; then another mark is used
        mark = ref_of(mark)[:MARK_LENGTH]
    lead = f"{opening}\n\n" if opening else ""
    return f"<{name}-{mark}>\n{lead}{inside}\n</{name}-{mark}>"


def is_framed(text: str) -> bool:
    """Whether we added a message, rather than a person or a model."""
    return OURS.match(text) is not None
