"""The newest pictures stay, older ones become a line of text."""

import base64
import struct

import pytest

from everlong.compress.draft import draft_of
from everlong.compress.steps.trims.images import images
from everlong.core import CallId, Image, Message, Role, Text, ToolResult, ref_of
from tests.compress.talks import assert_lawful, draft, task
from tests.core.build import assistant, calls, user


def picture(width: int = 640, height: int = 480, size: int = 3_000) -> Image:
    head = b"\x89PNG\r\n\x1a\n" + b"\0" * 8 + struct.pack(">II", width, height)
    return Image(data=base64.b64encode(head.ljust(size, b"\0")).decode(), media_type="image/png")


def shown(*pictures: Image) -> list[Message]:
    """Each in a message of the user, then a question without any."""
    return [message for one in pictures for message in (Message(Role.USER, (one,)), assistant("nice"))] + [user("so?")]


def stubs(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for message in messages[:-1:2] for part in message.parts if isinstance(part, Text)]


def test_the_newest_stay() -> None:
    before = draft(*shown(*(picture(100 + n) for n in range(5))))
    after = images(before, task(), keep=2)
    assert [edit.at for edit in after.edits] == [0, 2, 4]
    first = before.messages[0].parts[0]
    assert isinstance(first, Image)
    assert stubs(after.messages)[0] == f"[image left out: image/png, 100x480, 3 kB; ref {ref_of(first.data)}]"
    assert_lawful(before, after, task())


def test_chinese_words_and_addresses() -> None:
    before = draft(*shown(Image(url="https://example.org/cat.png")))
    after = images(before, task(language="zh"), keep=0)
    assert stubs(after.messages)[0].startswith("[图片已省略：https://example.org/cat.png；引用 ")


def test_a_data_url_is_described_not_repeated() -> None:
    one = picture()
    before = draft(*shown(Image(url=f"data:image/png;base64,{one.data}")))
    assert "image/png, 640x480, 3 kB" in stubs(images(before, task(), keep=0).messages)[0]


def test_bytes_are_limited_too() -> None:
    before = draft(*shown(*(picture(size=300_000) for _ in range(4))))
    after = images(before, task(), most_bytes=1_000_000)
    assert [edit.at for edit in after.edits] == [0, 2]


@pytest.mark.parametrize(("count", "gone"), [(20, 0), (21, 1)])
def test_large_pictures_go_where_there_are_many(count: int, gone: int) -> None:
    before = draft(*shown(picture(2_500), *(picture() for _ in range(count - 1))))
    assert len(images(before, task(), keep=30).edits) == gone


def test_protected_pictures_stay_and_count_first() -> None:
    asked = Message(Role.USER, (Text("compare"), picture(), picture()))
    before = draft(*shown(picture(1), picture(2))[:-1], asked)
    after = images(before, task(), keep=3)
    assert [edit.at for edit in after.edits] == [0]
    assert_lawful(before, after, task())


def test_a_large_picture_that_must_stay_makes_room_for_itself() -> None:
    asked = Message(Role.USER, (picture(3_000),))
    before = draft(*shown(*(picture() for _ in range(25)))[:-1], asked)
    after = images(before, task(), keep=100)
    assert len(before.messages) // 2 + 1 - len(after.edits) == 20


def test_pictures_inside_results() -> None:
    seen = Message(Role.TOOL, (ToolResult(CallId("1"), (picture(1), Text("two screenshots"), picture(2))),))
    history = (user("go"), calls("1"), seen, assistant("ok"), user("next"))
    before = draft_of(history, task())
    after = images(before, task(), keep=0)
    first, words, second = after.messages[2].results[0].content
    assert words == Text("two screenshots")
    assert isinstance(first, Text)
    assert isinstance(second, Text)
    assert "1x480" in first.text
    assert "2x480" in second.text
    assert [(edit.part, edit.before - edit.after > 0) for edit in after.edits] == [(0, True), (0, True)]
    assert_lawful(before, after, task())
