"""Contents of Google's SDK, in the dicts that it takes for them. It reads what the Gemini format reads.

The SDK itself is not installed here: `everlong lab adapters google-adk` reads and writes its objects.
"""

from typing import Any

from everlong.core import Image, Role
from everlong.wire.libraries.google_genai import LIBRARY, write_rows

CONTENTS: list[dict[str, Any]] = [
    {"role": "system", "parts": [{"text": "You are a careful clerk."}]},
    {"role": "user", "parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": "+/A="}}]},
    {
        "role": "model",
        "parts": [
            {"text": "Two files.", "thought": True, "thoughtSignature": "-_A="},
            {"functionCall": {"name": "read", "args": {"path": "a.md"}}, "thoughtSignature": "-_A="},
            {"functionCall": {"name": "read", "args": {"path": "b.md"}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "read", "response": {"result": "one"}}},
            {"functionResponse": {"name": "read", "response": {"error": "no such file"}}},
        ],
    },
    {"role": "model", "parts": [{"executableCode": {"code": "1", "language": "PYTHON"}}]},
]


class Part:
    """An object of the SDK, as far as it is looked at."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    def model_dump(self, **_: object) -> dict[str, Any]:
        return self._row


def test_contents_are_read_one_by_one_paired_over_the_list_and_written_again() -> None:
    units = LIBRARY.read(CONTENTS)
    assert [unit.items for unit in units] == [(content,) for content in CONTENTS]
    messages = [message for unit in units for message in unit.messages]
    roles = [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert [message.role for message in messages] == roles
    assert [result.call for result in messages[3].results] == [call.id for call in messages[2].calls]
    assert write_rows(messages) == CONTENTS


def test_texts_and_parts_are_what_the_user_says() -> None:
    picture = Part({"inlineData": {"mimeType": "image/png", "data": "-_A="}})
    units = LIBRARY.read(["Look.", picture])
    assert [unit.messages[0].role for unit in units] == [Role.USER, Role.USER]
    assert units[0].messages[0].text == "Look."
    (part,) = units[1].messages[0].parts
    assert isinstance(part, Image)
    assert part.data == "+/A=", "pictures are measured, and their bytes are written in the usual alphabet"
