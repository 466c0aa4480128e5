"""The page of `everlong inspect`: one file, nothing loaded, strangers' texts only ever text."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import cast

import pytest

from everlong.cli.maps.inspection import inspect_document
from everlong.cli.maps.page import page_of
from everlong.cli.words.chinese import CHINESE
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.language import Language
from everlong.cli.words.wording import LANGUAGES, Words
from everlong.core import Json
from everlong.wire import Document, document_of, read
from tests.cli.conversations import TALK, body, compacted_session, hostile
from tests.cli.running import everlong

ALLOWED_ATTRIBUTES = {
    "aria-hidden", "aria-label", "aria-pressed", "charset", "class", "content", "data-front", "data-k", "data-t",
    "data-text", "data-total", "dir", "d", "dx", "height", "hidden", "href", "http-equiv", "id", "lang", "name",
    "patterntransform", "patternunits", "placeholder", "preserveaspectratio", "role", "scope", "text-anchor", "title",
    "type", "viewbox", "width", "x", "x1", "x2", "y", "y1", "y2",
}  # fmt: skip


class Parsed(HTMLParser):
    """Tags, attributes and texts as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.tags if name in (attributes.get("class") or "").split()]


def page(value: object, language: Language = ENGLISH, budget: int | None = None) -> str:
    document = value if isinstance(value, Document) else document_of(cast(Json, value))
    return page_of(inspect_document(document, name="talk.json", budget=budget), Words(language, "inspect"))


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
@pytest.mark.parametrize("value", [body(TALK), hostile()], ids=["a talk", "hostile"])
def test_the_page_loads_nothing_and_runs_only_its_own_script(value: object, language: Language) -> None:
    parsed = Parsed(page(value, language))
    names = [tag for tag, _ in parsed.tags]
    assert names.count("script") == 1
    assert not {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video", "use", "image"} & set(
        names
    )
    attributes = {name for _, found in parsed.tags for name in found}
    assert attributes <= ALLOWED_ATTRIBUTES, attributes - ALLOWED_ATTRIBUTES
    links = [found["href"] for _, found in parsed.tags if "href" in found]
    assert all(link and link.startswith("#") for link in links)
    policy = next(found["content"] for _, found in parsed.tags if found.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_style_and_script_name_no_address() -> None:
    own = re.findall(r"<(style|script)>(.*?)</\1>", page(body(TALK)), re.DOTALL)
    assert [tag for tag, _ in own] == ["style", "script"]
    for _, text in own:
        assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text)


def test_strangers_texts_are_shown_as_they_are_but_cannot_act() -> None:
    shown = page(hostile())
    texts = "".join(Parsed(shown).texts)
    assert "</script><script>alert(1)</script><img src=x onerror=alert(2)>" in texts
    assert "$style ${x}" in texts
    assert not {"\x1b", "\x00", "\u202e", "\u202c", "\ud800"} & set(shown)
    shown.encode("utf-8")


def test_long_texts_are_cut_and_what_is_left_out_is_told() -> None:
    shown = page(hostile())
    assert len(shown) < 100_000
    assert "… and 296,000 more characters" in shown


def test_every_message_can_be_opened_and_is_linked_from_the_lists() -> None:
    parsed = Parsed(page(body(TALK)))
    ids = {found["id"] for _, found in parsed.tags if "id" in found}
    assert {f"m{at}" for at in range(len(TALK))} <= ids
    links = {found["href"] for _, found in parsed.tags if "href" in found}
    assert {"#m3", "#m7"} <= links
    assert all(link and link[1:] in ids for link in links)


def test_the_picture_and_the_rows_agree_on_the_total() -> None:
    parsed = Parsed(page(body(TALK, tools=[{"type": "function", "function": {"name": "list_shelf"}}])))
    picture = parsed.with_class("history")[0]
    rows = sum(int(found["data-t"] or 0) for found in parsed.with_class("m") if "data-t" in found)
    assert int(picture["data-front"] or 0) + rows == int(picture["data-total"] or 0)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        (ENGLISH, ['<html lang="en">', "Token map", "Largest messages", "tool results", "All rounds", "Protected"]),
        (CHINESE, ['<html lang="zh-Hans">', "Token 地图", "最大的消息", "工具结果", "全部轮次", "受保护"]),
    ],
    ids=["en", "zh"],
)
def test_the_page_speaks_both_languages(language: Language, words: list[str]) -> None:
    shown = page(body(TALK), language)
    for word in words:
        assert word in shown


def test_objections_and_boundaries_are_on_the_page() -> None:
    assert "call c1 has no result directly after it" in page(body(TALK[:3]))
    compacted = page(read(compacted_session()))
    assert "the messages before #2 are no longer sent" in compacted
    assert len(Parsed(compacted).with_class("cut-here")) == 1
    assert len(Parsed(compacted).with_class("past")) > 0


def test_a_budget_colours_the_messages_and_lists_the_edits() -> None:
    turns = [{"role": ("user", "assistant")[n % 2], "content": f"turn {n}: " + "word " * 150} for n in range(40)]
    parsed = Parsed(page(body([*turns, {"role": "user", "content": "What was said in turn 3?"}]), budget=2_000))
    states = [found["class"] for found in parsed.with_class("m")]
    assert "m s-goes" in states
    assert "m s-stays" in states
    assert "m s-ours" in states
    text = "".join(parsed.texts)
    assert "Fitted into 2,000 tokens" in text
    assert "older messages that no longer fit" in text


def test_a_thousand_long_messages_make_a_page_that_can_be_mailed() -> None:
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"{n} 请看<这个>&文件" * 200} for n in range(1_000)]
    assert len(page({"model": "", "messages": talk}, CHINESE).encode()) < 1_500_000


def test_the_same_conversation_gives_the_same_bytes(tmp_path: Path) -> None:
    pages = [everlong("inspect", "--sample", "--html", "-", "--lang", "en").out for _ in range(2)]
    assert pages[0] == pages[1]
    assert pages[0].endswith("</html>\n")
