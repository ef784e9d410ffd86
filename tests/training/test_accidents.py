"""Where the limit of descent cannot be trusted: accidents of a data set in R^d."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from experiments.again import setting
from needle.training import accidents
from needle.training.batch import predict_descent
from utils.results import stored

ROBUST = [("plain", 100), ("three needles", 240), ("square", 200), ("rare", 200)]


def said(name, d, **options):
    """What the prediction says of this dimension."""
    model, alpha, steps, rest = setting(name)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        predict_descent(model, alpha, steps, bags=500, populations=2, d=d, **rest, **options)
    return " ".join(str(one.message) for one in found if f"d = {d}" in str(one.message))


def gap(name, d):
    """How far the mean over tokens is from the limit in test error, at most, and its error."""
    there, limit = (
        stored("again-tokens").only(name=name, d=d),
        stored("again-limit").only(name=name),
    )
    keys = [key for key in limit if key.startswith("test_error")]
    gaps = {abs(float(there[key]) - float(limit[key])): there[key].standard_error for key in keys}
    return max(gaps), gaps[max(gaps)]


@pytest.mark.slow
def test_it_speaks_where_tokens_stray_and_is_silent_where_they_do_not():
    """By stored runs: at L = 200 tokens at d = 100 err on a quarter fewer bags than the limit."""
    strayed, error = gap("long", 100)
    assert strayed > 0.1 and strayed > 3.5 * error
    assert "move the mean test_error by" in said("long", 100)
    for name, d in ROBUST:
        strayed, error = gap(name, d)
        assert strayed < accidents.MOST["test_error"] + 2 * error
        assert said(name, d) == ""


@pytest.mark.slow
def test_in_a_million_dimensions_nothing_is_by_accident():
    assert said("long", 10**8) == ""


def test_the_answer_does_not_depend_on_the_doubt():
    model, alpha, steps, rest = setting("rare")
    told = {"bags": 100, "populations": 2, **rest}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, doubted = (predict_descent(model, alpha, steps[:1], d=d, **told) for d in (None, 20))
    assert plain == doubted


def test_accidents_shrink_like_the_root_of_the_dimension():
    model, *_ = setting("rare")
    sizes = []
    for d in (100, 400):
        (low, lean), (high, _) = accidents.with_accidents(model, 2.0, d, np.zeros((2, 1)))
        assert low.pi < model.pi < high.pi
        sizes.append([high.pi - low.pi, abs(lean[0, 0])])
    assert np.allclose(np.divide(*sizes), 2)
    assert np.allclose(sizes[0], [2 * (0.3 * 0.7 / 200) ** 0.5, 0.1])


def test_a_few_bags_keep_both_classes():
    """One standard deviation may be more than all positives."""
    model, *_ = setting("rare")
    (low, _), (high, _) = accidents.with_accidents(model, 0.001, 10, np.zeros((2, 1)))
    assert 0 < low.pi < high.pi < 1
