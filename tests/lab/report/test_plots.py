"""Plots over linear axes: names keep apart and are only text, marks and dots stand at their places."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from everlong.lab.report.plots import Axis, Dot, Mark, dot_plot, ticks, value_plot
from everlong.lab.report.svg import Line, text_width

HOSTILE = '<script>alert("&")</script>'


def names_and_heights(picture: ElementTree.Element) -> dict[str, float]:
    return {
        "".join(text.itertext()): float(text.get("y", "0"))
        for group in picture.iter("g")
        for text in group.iter("text")
    }


ACROSS, UP = Axis("request", lambda value: f"{value:g}"), Axis("dollars", lambda value: f"${value:g}")


def values(*lines: Line, most: float = 1e300, marks: tuple[Mark, ...] = ()) -> ElementTree.Element:
    up = Axis(UP.name, UP.write, most)
    return ElementTree.fromstring(value_plot(lines, ACROSS, up, label="a plot", marks=marks))


def name_boxes(picture: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Where names of dots stand: left, right, upper and lower edge."""
    boxes = []
    for text in [text for group in picture.iter("g") for text in group.iter("text")]:
        x, y, wide = float(text.get("x", "0")), float(text.get("y", "0")) - 4, text_width(text.text or "")
        left = x - wide if text.get("class") == "end" else x
        boxes.append((left, left + wide, y - 8.5, y + 8.5))
    return boxes


@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [(0, 0.9, 0, 1), (0, 0.0042, 0, 0.005), (34, 100, 20, 100), (0, 0, 0, 1), (7, 7, 7, 8), (0, 1_250, 0, 1_250)],
    ids=["below one", "cents", "percent", "nothing", "one value", "thousands"],
)
def test_an_axis_has_few_round_values_around_all_others(low: float, high: float, first: float, last: float) -> None:
    found = ticks(low, high)
    assert (found[0], found[-1]) == (pytest.approx(first), pytest.approx(last))
    assert 2 <= len(found) <= 9


@settings(deadline=None)
@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_an_axis_holds_any_values(one: float, other: float) -> None:
    low, high = sorted((one, other))
    found = ticks(low, high)
    assert found[0] <= low * (1 + 1e-6) + 1e-6
    assert found[-1] >= high * (1 - 1e-6) - 1e-6
    assert 2 <= len(found) <= 10


def test_twice_the_dollars_stand_twice_as_high() -> None:
    picture = values(Line("a", ((0, 0), (50, 1), (100, 2))))
    x, y = ([float(dot.get(name, "0")) for dot in picture.iter("circle")] for name in ("cx", "cy"))
    assert x[2] - x[0] == pytest.approx(2 * (x[1] - x[0]), abs=0.2)
    assert y[0] - y[2] == pytest.approx(2 * (y[0] - y[1]), abs=0.2)


def test_what_is_far_above_is_left_out_and_said() -> None:
    picture = values(Line("low", ((0, 1), (10, 2)), ours=True), Line("high", ((0, 1), (10, 50))), most=3)
    names = names_and_heights(picture)
    assert set(names) == {"low", "high ↑"}
    tops = [float(y) for path in picture.iter("path") for y in re.findall(r"[ML][\d.]+ (-?[\d.]+)", path.get("d", ""))]
    assert min(tops) >= 34


def test_names_of_value_lines_keep_apart_and_ours_is_in_front() -> None:
    picture = values(*(Line(f"policy {number}", ((0, 0), (9, 5)), ours=number == 0) for number in range(12)))
    heights = sorted(names_and_heights(picture).values())
    assert min(after - before for before, after in pairwise(heights)) >= 16.9
    assert [group.get("class") for group in picture.iter("g")][-1] == "ours"


def test_marks_stand_at_their_place_along_the_bottom() -> None:
    picture = values(Line("a", ((0, 0), (100, 2))), marks=(Mark(50, "cut"), Mark(50, "summary", round=True)))
    (stroke,) = [path for path in picture.iter("path") if path.get("class") == "mark"]
    (spot,) = [circle for circle in picture.iter("circle") if circle.get("class") == "mark"]
    assert stroke.get("d", "").startswith(f"M{spot.get('cx')} ")


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.text("abc中文", min_size=1, max_size=18), st.floats(0, 300), st.floats(0, 100)), max_size=14)
)
def test_names_of_dots_never_overlap_and_stay_inside(rows: list[tuple[str, float, float]]) -> None:
    drawn = dot_plot([Dot(name, x, y) for name, x, y in rows], ACROSS, UP, label="x", at=("one", 100))
    boxes = name_boxes(ElementTree.fromstring(drawn)) if rows else []
    assert len(boxes) == len(rows)
    for at, one in enumerate(boxes):
        assert one[0] >= 0
        assert one[1] <= 880
        for other in boxes[at + 1 :]:
            apart = 0.2  # places are written with one digit
            beside = one[1] <= other[0] + apart or other[1] <= one[0] + apart
            assert beside or one[3] <= other[2] + apart or other[3] <= one[2] + apart


def test_dots_in_front_are_joined_by_steps() -> None:
    front = [Dot("a", 40, 70, front=True), Dot("b", 60, 90, front=True), Dot("c", 80, 50)]
    picture = ElementTree.fromstring(dot_plot(front, ACROSS, UP, label="x"))
    (steps,) = [path.get("d", "") for path in picture.iter("path") if path.get("class") == "front"]
    a, b, _ = [(dot.get("cx"), dot.get("cy")) for dot in picture.iter("circle")]
    assert f"H{a[0]}V{a[1]}H{b[0]}V{b[1]}H" in steps


def test_a_dot_beyond_the_end_stands_at_the_end_and_says_where_it_is() -> None:
    across = Axis("cost", lambda value: f"{value:g} %", 200)
    picture = ElementTree.fromstring(dot_plot([Dot("a", 40, 70), Dot("far", 900, 50)], across, UP, label="x"))
    assert "far 900 % →" in names_and_heights(picture)


def test_names_over_linear_axes_are_only_text() -> None:
    axis = Axis(HOSTILE, lambda value: HOSTILE)
    drawn = value_plot([Line(HOSTILE, ((0, 1),))], axis, axis, label=HOSTILE, marks=[Mark(0, HOSTILE)], at=(HOSTILE, 0))
    drawn += dot_plot([Dot(HOSTILE, 0, 1)], axis, axis, label=HOSTILE)
    assert "<script" not in drawn
    assert HOSTILE in "".join(ElementTree.fromstring(f"<p>{drawn}</p>").itertext())


def test_no_values_and_no_dots_are_no_picture() -> None:
    assert value_plot([Line("a", ())], ACROSS, UP, label="x") == ""
    assert dot_plot([], ACROSS, UP, label="x") == ""
