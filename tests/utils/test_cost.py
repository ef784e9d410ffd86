"""The cost model: its terms, rates found again from costs of that form, and sizes not fitted."""

import numpy as np
import pytest

from utils.cost import TASKS, Cost, fit_cost, passes
from utils.results import Estimate, Stored, stored

MEASURED, HELD_OUT = stored("cost"), stored("cost_held_out")


def sizes(point) -> dict[str, int]:
    return {name: int(point[name]) for name in "ndL"}


def test_rates_are_found_again_where_costs_have_the_form():
    rng = np.random.default_rng(0)
    true = {
        task: {
            name: rng.uniform(1, 2) / amount for name, amount in passes(task, 300, 200, 20).items()
        }
        for task in TASKS
    }
    points = [{"task": task, **sizes(p)} for task in TASKS for p in HELD_OUT.points[:8]]
    few = ((10, 10, 2), (3000, 10, 2), (10, 1000, 90), (500, 30, 300))
    points += [{"task": task, "n": n, "d": d, "L": L} for task in TASKS for n, d, L in few]
    exact = [Cost(true).seconds(p["task"], **sizes(p)) for p in points]
    run = Stored("x", {}, points, [{"seconds": Estimate(t, 0.0, 2)} for t in exact])
    found = fit_cost(run)
    for p, t in zip(points, exact, strict=True):
        assert found.seconds(p["task"], **sizes(p)) == pytest.approx(t, rel=1e-9)


@pytest.mark.parametrize("task", TASKS)
def test_costs_at_sizes_not_fitted_are_within_a_factor_of_one_and_a_half(task):
    cost = fit_cost(MEASURED)
    for point, estimates in HELD_OUT.at(task=task):
        assert sizes(point) not in [sizes(p) for p, _ in MEASURED.at(task=task)]
        ratio = cost.seconds(task, **sizes(point)) / float(estimates["seconds"])
        assert 1 / 1.5 <= ratio <= 1.5, (point, ratio)


def test_another_shape_of_the_cost_misses_by_more():
    """Corrupted: rates of the pooled model do not predict the vectorized one at equal n and d."""
    cost = fit_cost(MEASURED)
    ratios = [
        cost.seconds("pooled, square", **sizes(point)) / float(estimates["seconds"])
        for point, estimates in HELD_OUT.at(task="vectorized, square")
    ]
    assert min(ratios) < 1 / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [({"task": "pooled"}, "task = 'pooled'"), ({"n": 0}, "n = 0"), ({"d": 1.5}, "d = 1.5"),
     ({"L": 1}, "L = 1")],
)  # fmt: skip
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        passes(**{"task": "pooled, square", "n": 1, "d": 1, "L": 2} | change)


@pytest.mark.parametrize(
    ("task", "n", "terms"),
    [
        ("pooled, logistic", 7, {"features": 70}),
        ("pooled, square", 7, {"features": 70, "gram": 7 * 7 * 10}),  # as many as the samples
        ("pooled, square", 30, {"features": 300, "gram": 10 * 10 * 30}),
        ("vectorized, square", 30, {"features": 1200, "gram": 30 * 30 * 40}),
        ("attention, logistic", 7, {"features": 70, "test": 4, "softmax": 28}),
        ("alignment, exact", 7, {"n": 7, "d": 10}),
        ("alignment, literal", 7, {"tokens": 280}),
    ],
)
def test_the_terms_are_counted_as_the_formula_says(task, n, terms):
    assert passes(task, n=n, d=10, L=4) == {"start": 1} | terms
