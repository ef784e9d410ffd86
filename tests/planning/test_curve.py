"""The curve of a plan: what is drawn is what the rows say."""

from __future__ import annotations

import re
from itertools import pairwise
from types import SimpleNamespace

import pytest

from needle.planning import curve


def made(*errors: tuple[float, float, float | None, float]) -> SimpleNamespace:
    """A plan of strengths 4, 5, …, its rows from errors of averaging, split, twice, best."""
    rows = [
        SimpleNamespace(theta=4.0 + k, pooled=a, attention=s, twice=t, best_possible=b)
        for k, (a, s, t, b) in enumerate(errors)
    ]
    return SimpleNamespace(rows=rows, error=0.05)


ROWS = ((0.3, 0.2, 0.15, 0.045), (0.28, 0.03, None, 0.004), (0.25, 0.01, 0.02, 2e-4))


def test_the_drawing_has_the_errors_of_the_rows():
    """Attention by the better of its two ways; heights read back to a thousandth of the axis."""
    drawn = curve.drawing(made(*ROWS))
    lines = re.findall(r'<polyline points="([^"]+)"', drawn)
    ys = [[float(point.split(",")[1]) for point in line.split()] for line in lines]
    height = curve.HEIGHT - curve.BOTTOM - curve.ABOVE
    wanted = ([0.3, 0.28, 0.25], [0.15, 0.03, 0.01], [0.045, 0.004, 2e-4])
    for seen, errors in zip(ys, wanted, strict=True):
        for y, error in zip(seen, errors, strict=True):
            assert (y - curve.ABOVE) / height == pytest.approx(curve.down(error), abs=1e-3)
    assert all(name in drawn for name, *_ in curve.LEARNERS)


def test_words_at_the_ends_do_not_cover_each_other():
    drawn = curve.drawing(made((0.3, 0.3, 0.3, 0.3), *[(0.3, 0.3, 0.3, 0.3)] * 2))
    ends = re.findall(rf'x="{curve.RIGHT + 6:.1f}" y="([\d.]+)"', drawn)
    places = sorted(map(float, ends))
    assert len(places) == 3 and min(b - a for a, b in pairwise(places)) > 13.9


def test_in_letters_each_learner_stands_in_the_line_of_its_error():
    lines = curve.letters(made(*ROWS))
    assert max(map(len, lines)) <= 80
    field = [line[9:] for line in lines[1:-1]]
    line = lambda error: round((curve.LINES - 1) * curve.down(error))  # noqa: E731
    assert [field[line(e)][0] for e in (0.3, 0.15, 0.045)] == ["a", "t", "b"]
    assert field[line(2e-4)][curve.COLUMNS - 1] == "b"
    assert "-" in field[line(0.05)]


def test_two_strengths_are_no_curve_and_tiny_errors_end_it():
    assert curve.drawing(made(*ROWS[:2])) == "" and curve.letters(made(*ROWS[:2])) == []
    deep = curve.letters(made(*[(0.3, 1e-9, None, 1e-12)] * 3))
    assert not any("b" in line or "t" in line for line in (x[9:] for x in deep[1:-1]))
