"""Published numbers met by ours, source by source, and who is right where two differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scripts.book import published

SOURCES = published.sources()


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source["title"])
def test_every_number_of_a_source_is_met(source: dict[str, Any]) -> None:
    found = list(published.numbers(source))
    worst = max(abs(number.difference) for number in found)
    assert worst < source["bound"]
    # a bound is not slack: it lies within a factor of three of what is found, or at rounding
    assert worst > source["bound"] / 10 or source["bound"] < 1e-8 or len(found) == 1
    wrong = [1.1 * number.ours / number.published - 1 for number in found]
    assert min(map(abs, wrong)) > source["bound"]


def test_there_are_many_numbers_and_each_says_where_it_is_from() -> None:
    assert sum(len(list(published.numbers(source))) for source in SOURCES) >= 100
    page = published.published_page()
    assert int(page.split()[4]) >= 40
    for source in SOURCES:
        assert source["cite"] and source["where"] and f"## {source['title']}" in page
    assert "nan" not in page


def test_a_third_computation_sides_with_ours() -> None:
    for source in SOURCES:
        if not source.get("off"):
            continue
        for number, row in zip(published.numbers(source), published._repeated(source), strict=True):
            offset = row[2] if source["given"] == 3 else 0.0
            third = published.by_quadrature(row[0], row[1] ** 0.5, offset)[number.quantity]
            assert abs(number.ours / third - 1) < 1e-6
            assert abs(number.published / third - 1) > 3e-4


@pytest.mark.parametrize("gamma", [0.0, 1.0, 9.0])
def test_the_transition_is_the_minimum_of_an_integral(gamma: float) -> None:
    ours = published.MODELS["transition"](gamma)["κ⋆"]
    assert ours == pytest.approx(published.transition_by_minimum(gamma), rel=1e-5)


@pytest.mark.slow
@pytest.mark.false_alarm(11 * 6e-5)
def test_the_bridges_hold() -> None:
    for name, theirs, error, ours in published.bridges():
        assert abs(theirs - ours) < (4 * error or 1e-8), name
        assert abs(theirs - 1.1 * ours) > 4 * error, name


def test_the_bayes_risk_of_two_tokens_by_an_integral() -> None:
    """L = 2: the posterior of the place is a logistic function of one normal number."""
    nu = 5.0
    z = np.linspace(-12, 12, 4001)
    w = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    weight = w @ (1 / (1 + np.exp(-(nu + np.sqrt(2 * nu) * z))))
    assert 1 - published.race(2, nu) == pytest.approx(1 - weight, rel=1e-6)
