import json
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings, strategies as st

from everlong.compress.steps.lossless.json_tables import from_table, json_tables, to_table
from everlong.core import History, Image, Json, Message, Role, Text
from everlong.errors import InputError
from tests.compress.lossless import (
    COUNTER,
    ENDING,
    PICTURE,
    draft,
    histories,
    keeps_its_promises,
    said,
    task,
    tool_round,
)

ISSUES: Json = [
    {
        "number": 1200 + n,
        "title": f"Login fails, attempt {n}",
        "state": "open",
        "locked": False,
        "user": {"login": f"user{n % 5}", "id": 88_000 + n, "site_admin": False},
        "labels": ["bug"] if n % 2 else [],
        "assignee": None,
        "created_at": f"2026-01-{n + 10}T10:00:00Z",
    }
    for n in range(20)
]


def exactly(value: Json) -> str:
    """A text that is equal only for the same value: 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def test_a_table_reads_like_one() -> None:
    value = {
        "page": 1,
        "items": [
            {"id": 17, "user": {"login": "ada lovelace"}, "tags": ["x", "y"], "state": "open"},
            {"id": 18, "user": {"login": "7"}, "tags": [], "state": "open"},
            {"id": 19, "tags": None, "state": "open"},
        ],
    }
    assert to_table(json.dumps(value, indent=2)) == (
        "[table of 3 records at items, split by tabs; blank: no such key; name=value: the same in all; "
        'beside it: {"page":1}]\n'
        "id\tuser.login\ttags\tstate=open\n"
        '17\tada lovelace\t["x","y"]\n'
        '18\t"7"\t[]\n'
        "19\t\tnull"
    )


@dataclass(frozen=True)
class Case:
    id: str
    value: Json


LOOKALIKES = ["7", "-1", "1e5", "007", "1.", "{}", "[]", '"x"', "NaN", " x", "x "]
CASES = [
    Case("an API's list", ISSUES),
    Case("inside an object", {"items": ISSUES, "total": 20, "next": None}),
    Case("deep inside", {"data": {"repository": {"issues": {"nodes": ISSUES, "totalCount": 20}}}, "errors": []}),
    Case("deep inside and nothing beside", {"data": {"repository": {"issues": ISSUES}}}),
    Case("the longer of two lists", {"issues": ISSUES, "users": [{"id": n} for n in range(3)]}),
    Case("missing keys", [{"a": n} | ({"b": n} if n % 2 else {"c": n}) for n in range(9)]),
    Case("empty strings, nulls, absent keys", [{"a": ["", None, "null", "true"][n % 4], "bb": n} for n in range(12)]),
    Case("strings that look like other things", [{"key": text, "k": 1} for text in LOOKALIKES]),
    Case("separators inside strings", [{"text": f'tab\tnewline\nquote" and = {n}', "nn": n} for n in range(9)]),
    Case("odd names", [{"a.b": n, "a": {"b": n, "": 1}, "x=y": 2, "": 3, "tab\t": 4, "名": 5} for n in range(9)]),
    Case("an object here, a number there", [{"user": {"id": n} if n % 2 else n, "other": {}} for n in range(9)]),
    Case("objects with little in common stay JSON", [{"labels": {f"key{n}": n}, "name": "x" * 9} for n in range(9)]),
    Case(
        "numbers",
        [{"value": n, "v": 1} for n in (0, -1, 1.5, 1e300, 10**30, -0.0, 1e-9, 123456789012345678901234567890)],
    ),
    Case("Chinese and emoji", [{"姓名": "张伟", "城市": "北京 👩‍💻", "编号": n} for n in range(9)]),
    Case(
        "lone surrogates and control characters",
        [{"text": "\ud83d", "more": "\x00\x7f\x85\u2028", "n": n} for n in range(9)],
    ),
    Case("all the same", [{"alpha": 1, "beta": [None]}] * 9),
]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_written_is_read_again(case: Case, language: str) -> None:
    text = json.dumps(case.value, indent=1)
    table = to_table(text, language=language)
    assert table is not None
    assert exactly(from_table(table)) == exactly(case.value)
    table.encode()


REFUSED = {
    "prose": "There are [3] records",
    "a number": "17",
    "a list of numbers": json.dumps(list(range(100))),
    "records and something else": json.dumps([{"a": 1}, {"a": 2}, 3]),
    "one record": json.dumps([{"a": 1, "b": 2}]),
    "records without fields": json.dumps([{}] * 50),
    "records with nothing in common": json.dumps([{f"key{n}": n} for n in range(50)]),
    "a name that stands twice": "[" + ",".join(['{"alpha": 1, "alpha": 2}'] * 20) + "]",
    "no JSON number": "[" + ",".join(['{"alpha": NaN}'] * 20) + "]",
    "a number without end": '[{"name": ' + "9" * 5_000 + '}, {"name": 1}]',
    "cut off": json.dumps(ISSUES)[:-1],
    "a table already": str(to_table(json.dumps(ISSUES))),
    "nested without end": "[" * 100_000,
    "objects nested without end": '{"a":' * 50_000,
    "raw surrogates": json.dumps(ISSUES)[:-2] + ', "x": "\ud83d\ude00"}]',
    "nothing": "",
    "too small to gain": '[{"a":1},{"b":2}]',
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_left_alone(text: str) -> None:
    assert to_table(text) is None


@pytest.mark.parametrize(
    "text", ["", "a\tb", "[table of 2 records, split by tabs]\na\n1", "[table of 1 records, split by tabs]\n=\n1"]
)
def test_from_table_reads_tables_only(text: str) -> None:
    with pytest.raises(InputError):
        from_table(text)


def test_numbers_stay_as_they_were_written() -> None:
    table = to_table(
        '[{"price": 1.10, "sold": 1E3}, {"price": 20.00, "sold": -0}, {"price": 3.5, "sold": 7}]' + " " * 80
    )
    assert table is not None
    assert table.split("\n")[2:] == ["1.10\t1E3", "20.00\t-0", "3.5\t7"]


WORDS = st.sampled_from(
    [
        "",
        "a",
        "null",
        "true",
        "7",
        "-1.5e3",
        "x y",
        " x",
        "a\tb",
        "a\nb",
        '"',
        "[",
        "{",
        "=",
        "中",
        "\ud83d",
        "a.b",
        "\r",
        "\x85",
    ]
)
SCALARS = st.one_of(WORDS, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
NAMES = st.sampled_from(["a", "b", "a.b", "", "=", "c\t", '"', "名", "a b", "é"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=5
)
RECORDS = st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=6)


@given(
    RECORDS, st.sampled_from([(), ("items",), ("data", "a.b"), ("", "a")]), st.dictionaries(NAMES, VALUES, max_size=2)
)
@settings(max_examples=250, deadline=None)
@example([{"a": {"b": 1}}, {"a.b": 1}, {"a": {}}, {"a": 2}], (), {})
@example([{"a": {"": ""}}, {"a": {"": {}}}], ("",), {"": [{}]})
def test_every_table_gives_back_its_value(
    records: list[dict[str, Json]], path: tuple[str, ...], beside: dict[str, Json]
) -> None:
    value: Json = list(records)
    for name in reversed(path):
        value = {**beside, name: value}
    text = json.dumps(value, indent=8)  # so wide that a table is nearly always shorter
    table = to_table(text)
    if table is not None:
        assert exactly(from_table(table)) == exactly(json.loads(text))
        assert "\n" not in table.partition("\n")[0]
        table.encode()
        assert to_table(table) is None


@pytest.mark.parametrize("count", [5, 20, 100])
def test_a_list_of_an_api_takes_less_than_half(count: int) -> None:
    text = json.dumps((ISSUES * 5)[:count], indent=2)
    after = json_tables(draft(history(text)), task())
    assert COUNTER.text(said(after, 2)) < COUNTER.text(text) / 2


def history(*content: str | Image) -> History:
    return (Message(Role.USER, (Text(json.dumps(ISSUES)),)), *tool_round(1, "list_issues", "{}", *content), *ENDING)


def test_each_block_is_a_table_of_its_own_and_the_others_stay() -> None:
    start = draft(history("Issues:", json.dumps(ISSUES), PICTURE))
    after = json_tables(start, task())
    caption, table, picture = after.slots[2].message.parts[0].content
    assert (caption, picture) == (Text("Issues:"), PICTURE)
    assert from_table(table.text) == ISSUES
    (edit,) = after.edits
    assert edit.before == start.slots[2].tokens
    assert edit.after == after.slots[2].tokens
    assert "list of records rewritten as a table" in edit.reason


def test_on_arrival_it_works_below_the_target_too() -> None:
    wanted = task(target=100_000)
    start = draft(history(json.dumps(ISSUES)))
    assert json_tables(start, wanted) is start
    assert json_tables(start, wanted, always=True).total < start.total


@given(histories(), st.sampled_from(["en", "zh"]))
@settings(max_examples=40, deadline=None)
def test_it_keeps_the_promises_of_a_lossless_step(generated: History, language: str) -> None:
    keeps_its_promises(json_tables, generated, task(language=language))
