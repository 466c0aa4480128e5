"""A compacted history in one item: what was put in comes out, in place of what it stands for."""

from hypothesis import given, strategies as st

from everlong.core import JsonObject
from everlong.wire import OPENAI_RESPONSES

COMPACTION = OPENAI_RESPONSES.server.compaction
TEXTS = st.text(min_size=1, max_size=20)


def _message(role: str, text: str, *, blocks: bool) -> JsonObject:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}] if blocks else text}


items = st.lists(
    st.builds(_message, st.sampled_from(["user", "assistant", "developer"]), TEXTS, blocks=st.booleans()), max_size=6
)


@given(items, items, items)
def test_an_item_is_opened_in_place_of_what_it_stands_for(
    source: list[JsonObject], view: list[JsonObject], after: list[JsonObject]
) -> None:
    assert COMPACTION is not None
    assert COMPACTION.sealed is not None
    sealed = COMPACTION.sealed(view, source)
    assert list(COMPACTION.read([sealed, *after])) == [*view, *after]
    # What a client sends again is covered; system text is its own, and said once.
    system = [item for item in source if item["role"] == "developer"]
    known = {_text(item) for item in system}
    told = [item for item in view if item["role"] != "developer" or _text(item) not in known]
    assert list(COMPACTION.read([*source, sealed, *after])) == [*system, *told, *after]


@given(items, items, items)
def test_a_second_compaction_covers_what_the_first_one_did(
    source: list[JsonObject], first: list[JsonObject], second: list[JsonObject]
) -> None:
    assert COMPACTION is not None
    assert COMPACTION.sealed is not None
    spoken = [item for item in source if item["role"] != "developer"]
    once = COMPACTION.sealed(first, spoken)
    twice = COMPACTION.sealed(second, [*spoken[:1], once])
    assert list(COMPACTION.read([*spoken, twice])) == list(second)


@given(items)
def test_a_client_may_write_the_items_differently(source: list[JsonObject]) -> None:
    assert COMPACTION is not None
    assert COMPACTION.sealed is not None
    spoken = [item for item in source if item["role"] != "developer"]
    sealed = COMPACTION.sealed([], spoken)
    rewritten = [
        {"role": item["role"], "content": _text(item), "id": f"msg_{at}", "status": "completed"}
        for at, item in enumerate(spoken)
    ]
    assert list(COMPACTION.read([*rewritten, sealed])) == []


def _text(item: JsonObject) -> str:
    content = item["content"]
    return content if isinstance(content, str) else "".join(str(block["text"]) for block in content)  # type: ignore


def test_what_others_sealed_is_left_alone() -> None:
    assert COMPACTION is not None
    theirs: list[JsonObject] = [{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}]
    assert COMPACTION.read(theirs) is theirs
