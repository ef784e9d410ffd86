"""Every check returns a plain number or refuses, naming argument, value and what is allowed."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle.kit.checks import (
    check_array,
    check_choice,
    check_flag,
    check_integer,
    check_is,
    check_labels,
    check_real,
    check_rng,
    refuse_mask,
)

NO_NUMBER = [None, "3", True, np.True_, 1j, [1], np.array([1.0]), np.nan, object]


@given(st.integers(), st.integers(), st.integers())
def test_integers_pass_exactly_within_their_bounds(value, low, high):
    if low <= value <= high:
        assert check_integer("k", value, low, high) == value
    else:
        with pytest.raises(ValueError, match=r"^k = "):
            check_integer("k", value, low, high)


@given(st.floats(), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.booleans(), st.booleans())
def test_reals_pass_exactly_within_their_interval(value, low, high, open_low, open_high):
    above = value > low if open_low else value >= low
    below = value < high if open_high else value <= high
    if above and below:
        checked = check_real("x", value, low, high, open_low=open_low, open_high=open_high)
        assert checked == value
    else:
        with pytest.raises(ValueError, match=r"^x = "):
            check_real("x", value, low, high, open_low=open_low, open_high=open_high)


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.float32(3), np.uint64(3), Fraction(3)])
def test_numbers_of_every_kind_become_plain(value):
    assert type(check_integer("k", value, 0)) is int
    assert type(check_real("x", value)) is float
    assert check_integer("k", value, 0) == check_real("x", value) == 3


@pytest.mark.parametrize("value", NO_NUMBER)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match=r"k = .* is not allowed: k must be an integer ≥ 0"):
        check_integer("k", value, 0)
    with pytest.raises(ValueError, match=r"x = .* is not allowed: x must be a finite number"):
        check_real("x", value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 10**400, -(10**400)])
def test_infinite_and_overflowing_reals_are_refused(value):
    with pytest.raises(ValueError, match="finite number"):
        check_real("x", value)


def test_integers_of_any_size():
    assert check_integer("k", 10**400, 0) == 10**400
    for value in (2.5, math.inf, -math.inf, Fraction(1, 2)):
        with pytest.raises(ValueError, match="integer"):
            check_integer("k", value, 0)


def test_messages_say_what_is_allowed():
    with pytest.raises(ValueError, match=r"pi must be a finite number in \(0, 1\)"):
        check_real("pi", 1, 0, 1, open_low=True, open_high=True)
    with pytest.raises(ValueError, match=r"\(-inf, 2\]"):
        check_real("x", 3, high=2)
    with pytest.raises(ValueError, match=r"R must be an integer in \[1, 10\]"):
        check_integer("R", 11, 1, 10)


def said(check, *args, **options) -> str:
    with pytest.raises(ValueError, match="is not allowed") as refused:
        check(*args, **options)
    return str(refused.value)


def test_messages_in_full():
    """Name, value and what is allowed, to the letter: it is what a user reads."""
    assert said(check_real, "x", 3, 0, 1) == (
        "x = 3 is not allowed: x must be a finite number in [0, 1]"
    )
    assert said(check_rng, 0) == (
        "rng = 0 is not allowed: rng must be a numpy.random.Generator, for example "
        "numpy.random.default_rng(0)"
    )
    bare = "F must be finite numbers of shape"
    assert said(check_array, "F", [[1], [1, 2]], "n", 3) == (
        f"F = [[1], [1, 2]] is not allowed: {bare} (n, 3)"
    )
    assert said(check_array, "F", np.zeros(2), "n", 3) == (
        f"F of shape (2,) is not allowed: {bare} (n, 3)"
    )
    assert said(check_array, "w", None, 3) == (
        "w = None is not allowed: w must be finite numbers of shape (3,)"
    )
    assert said(check_labels, "y", [1, 0], 2) == (
        "y = [1, 0] is not allowed: y must be 2 labels -1 or +1"
    )
    assert said(check_labels, "y", np.zeros(3), "n") == (
        "y of shape (3,) is not allowed: y must be labels -1 or +1"
    )
    assert said(check_labels, "y", 2) == "y = 2 is not allowed: y must be labels -1 or +1"


def test_masks_are_refused():
    hidden = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    full = (
        "w with masked numbers is not allowed: w must be without a mask, for example .compressed()"
    )
    assert said(refuse_mask, "w", hidden) == said(check_array, "w", hidden, 2) == full
    refuse_mask("w", np.ma.masked_array([1.0, 2.0]))
    labels = np.ma.masked_array([1.0, -1.0], mask=[False, True])
    assert said(check_labels, "y", labels, 2).startswith("y of shape (2,) is not allowed")


def test_what_cannot_become_an_array_is_refused():
    class Elsewhere:
        def __array__(self, *_, **__):
            raise TypeError("on another device")

    assert said(check_array, "w", Elsewhere(), "n").endswith("numbers of shape (n,)")
    assert check_array("w", [3.0], "n").tolist() == [3.0]


def test_choices_and_generators():
    assert check_choice("loss", "square", {"square": 1, "logistic": 2}) == "square"
    for bad in ("hinge", None, 3, ["square"]):
        with pytest.raises(ValueError, match="loss must be one of 'square'"):
            check_choice("loss", bad, ["square"])
    rng = np.random.default_rng(0)
    assert check_rng(rng) is rng
    for bad in (None, 0, np.random, np.random.RandomState(0)):
        with pytest.raises(ValueError, match="default_rng"):
            check_rng(bad)


def test_arrays_of_a_shape():
    square = np.ones((2, 2), dtype=np.float32)
    assert check_array("F", square, "n", "p").dtype == float
    assert check_array("F", [[1, 2]], 1, 2).tolist() == [[1, 2]]
    bad = [None, "x", 1.0, [1, 2], [[1], [1, 2]], square * np.nan, square * np.inf, square * 1j]
    for value in (*bad, square[:0], square > 0, {}, object()):
        with pytest.raises(ValueError, match=r"(?s)^F.* is not allowed: F must be finite numbers"):
            check_array("F", value, "n", "p")
    with pytest.raises(ValueError, match=r"of shape \(3,\)$"):
        check_array("w", [1, 2], 3)


def test_labels():
    assert check_labels("y", np.array([1, -1], dtype=np.int8), 2).tolist() == [1, -1]
    for value in (None, [1, 0], [1], [[1, 1]], [1, np.nan], ["1", "1"], [True, True]):
        with pytest.raises(ValueError, match=r"^y.* is not allowed: y must be 2 labels -1 or \+1"):
            check_labels("y", value, 2)


def test_flags_and_instances():
    assert check_flag("intercept", np.True_) is True
    for value in (None, 1, "yes", [True]):
        with pytest.raises(ValueError, match="intercept must be True or False"):
            check_flag("intercept", value)
    assert check_is("k", 3, int | str) == 3
    with pytest.raises(ValueError, match="k = 'a' is not allowed: k must be a int"):
        check_is("k", "a", int)
