"""Options of a thread: whatever is sent is taken as it is or refused by its name, and what is stored is read again."""

from typing import Any

from hypothesis import given, strategies as st

from everlong.core import Thread
from everlong.errors import Refused
from everlong.store import MemoryThreads
from everlong.web.state.options import NO_OPTIONS, Options, changed_options, stored_options
from everlong.web.state.settings import Choices, choices_of, with_choices

NAMES = ("system", "temperature", "top_p", "max_tokens", "tools")
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
sensible = st.builds(
    Options,
    system=st.text(max_size=50).map(str.strip),
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0.01, 1),
    max_tokens=st.none() | st.integers(1, 1_000_000),
    tools=st.none() | st.booleans(),
)


def taken(base: Options, body: dict[str, Any]) -> tuple[Options | None, str]:
    """The options, or the line that refuses them."""
    try:
        return changed_options(base, body), ""
    except Refused as refused:
        return None, str(refused)


@given(base=sensible, body=st.dictionaries(st.sampled_from(NAMES), anything, max_size=5))
def test_an_option_is_taken_within_its_bounds_or_refused_by_its_name(base: Options, body: dict[str, Any]) -> None:
    changed, line = taken(base, body)
    if changed is None:
        assert line.split()[0] in body
        assert "\n" not in line
        return
    assert changed.temperature is None or 0 <= changed.temperature <= 2
    assert changed.top_p is None or 0 < changed.top_p <= 1
    assert changed.max_tokens is None or 1 <= changed.max_tokens <= 1_000_000
    for name in set(NAMES) - set(body):
        assert getattr(changed, name) == getattr(base, name)
    assert changed_options(NO_OPTIONS, changed.shown()) == changed


@given(options=sensible)
def test_stored_options_are_read_as_they_were(options: Options) -> None:
    threads = MemoryThreads()
    metadata = with_choices('{"other": 1}', Choices(model="a/b", language="zh", options=options))
    thread: Thread = threads.create("t", metadata=metadata)
    assert choices_of(thread) == Choices(model="a/b", language="zh", options=options)


@given(stored=anything)
def test_whatever_is_stored_can_be_read(stored: Any) -> None:
    assert isinstance(stored_options(stored), Options)


@given(good=sensible, name=st.sampled_from(NAMES))
def test_one_option_that_cannot_be_read_costs_itself_alone(good: Options, name: str) -> None:
    broken = good.shown() | {name: ["?"]}
    read = stored_options(broken)
    assert all(getattr(read, other) == getattr(good, other) for other in NAMES if other != name)
