"""Files with a few values that are anything: what a reader must live with."""

from hypothesis import strategies as st

from everlong.core import Json

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def spoiled(raw: Json, draw: st.DrawFn) -> Json:
    """The same with a few values replaced by anything."""
    if draw(st.integers(0, 12)) == 0:
        return draw(values)
    if isinstance(raw, dict):
        return {key: spoiled(value, draw) for key, value in raw.items()}
    if isinstance(raw, list):
        return [spoiled(value, draw) for value in raw]
    return raw
