"""State evolution, its solutions and thresholds: identities, asymptotics, edges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needle.data.tokens import SparseTokens
from needle.kit.records import ConvergenceError
from needle.learning import limit as learning
from needle.learning.amp import simulate_learning
from needle.learning.limit import (
    all_solutions,
    learning_thresholds,
    predict_learning,
    samples_for,
    state_evolution,
)
from needle.learning.posterior import channel, log_subsets
from needle.oracle.separation import oracle_error
from utils.agreement import agree

LONG = SparseTokens(1000, 1, 6.0, 0.5)


def residual(model: SparseTokens, alpha: float, cos: float) -> float:
    """ϱ of the estimate against what the bags give, in log."""
    m = cos**2
    gain = math.log(alpha * model.pi * model.R * model.theta**2)
    return (
        gain
        + float(channel(model.L, model.R).log_weight(model.theta**2 * m))
        - math.log(m / (1 - m))
    )


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.sampled_from([(10, 1), (10, 2), (1000, 1), (10**6, 1), (10**12, 1)]),
    st.floats(0.3, 40), st.floats(0.01, 0.99), st.floats(-4, 6),
)  # fmt: skip
def test_solutions_solve_and_are_ordered(shape, theta, pi, log_alpha):
    model, alpha = SparseTokens(*shape, theta, pi), 10**log_alpha
    found = all_solutions(model, alpha)
    assert len(found) % 2 == 1
    assert all(abs(residual(model, alpha, one.cos)) < 1e-5 for one in found if one.cos < 0.999999)
    assert [one.cos for one in found] == sorted(one.cos for one in found)
    assert predict_learning(model, alpha).cos == found[0].cos
    assert predict_learning(model, alpha, informed=True).cos == found[-1].cos


def test_no_solution_is_lost_on_a_fine_grid():
    cos = np.sqrt(1 / (1 + np.exp(-np.linspace(-12, 6, 40_001))))
    alphas = samples_for(LONG, cos)
    for alpha in (0.02, 0.0601, 0.0612, 0.07, 0.3, 0.586, 0.588, 3.0):
        crossings = int((np.diff(np.sign(alphas - alpha)) != 0).sum())
        assert len(all_solutions(LONG, alpha)) == crossings


@pytest.mark.parametrize("informed", [False, True])
@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.6, 5.0])
def test_iteration_ends_at_the_outer_solutions(alpha, informed):
    path = state_evolution(LONG, alpha, 400, informed=informed)
    steps = np.diff(path) * (-1 if informed else 1)
    assert (steps > -1e-9).all()
    best = predict_learning(LONG, alpha, informed=informed)
    assert path[-1] == pytest.approx(best.cos, abs=1e-4)
    assert abs(path[best.rounds - 1] - best.cos) <= 1e-3
    assert best.rounds == 1 or abs(path[best.rounds - 2] - best.cos) > 1e-3


def test_free_entropy_is_stationary_and_adds_up():
    """dF/dm = 0 at solutions, and F grows with α at the rate πΨ."""
    for alpha in (0.1, 0.3):
        for one in all_solutions(LONG, alpha):
            bag, m = channel(1000, 1), one.cos**2

            def free(m, alpha=alpha, bag=bag):
                return alpha / 2 * float(bag.free(36 * m)) + (m + math.log1p(-m)) / 2

            assert one.free_entropy == pytest.approx(free(m), abs=1e-9)
            step = 1e-4 * m
            assert abs(free(m + step) - free(m - step)) / (2 * step) < 1e-3
    low, high = (predict_learning(LONG, a, informed=True) for a in (0.3, 0.3003))
    slope = (high.free_entropy - low.free_entropy) / 0.0003
    assert slope == pytest.approx(0.5 * float(channel(1000, 1).free(36 * low.cos**2)), rel=1e-3)


@pytest.mark.parametrize(
    ("L", "R", "theta"), [(10**4, 1, 8.0), (10**6, 1, 10.0), (10**9, 1, 30.0), (10**12, 1, 12.0)]
)
def test_thresholds_against_their_asymptotics(L, R, theta):
    model = SparseTokens(L, R, theta, 0.3)
    found = learning_thresholds(model)
    fold = (1 - math.sqrt(1 - 4 / theta**2)) / 2  # m at the end of the branch, with W = e^x/L
    snr, x = fold / (1 - fold), theta**2 * fold
    expected = snr * L * math.exp(-x) / theta**2 * (1 + (math.e**2 - math.e) / L)
    assert found.algorithm * model.pi == pytest.approx(expected, rel=2e-4)
    snr = found.information * model.pi * theta**2
    if theta**2 > 4 * math.log(L):
        assert 1 - math.log1p(snr) / snr == pytest.approx(2 * math.log(L) / theta**2, rel=0.05)
    assert found.lower < found.information < found.algorithm


def test_many_needles_learn_with_their_square():
    found = learning_thresholds(SparseTokens(10**6, 3, 10.0, 0.5))
    assert found.algorithm * 0.5 == pytest.approx(10**6 / (math.e * 10**4 * 9), rel=0.02)
    snr = found.information * 0.5 * 300
    assert 1 - math.log1p(snr) / snr == pytest.approx(2 * log_subsets(10**6, 3) / 300, rel=0.02)


def test_thresholds_are_where_the_number_of_solutions_changes():
    found = learning_thresholds(LONG)
    counts = [
        len(all_solutions(LONG, x))
        for edge in (found.lower, found.algorithm)
        for x in (0.9999 * edge, 1.0001 * edge)
    ]
    assert counts == [1, 3, 3, 1]
    low, high = (
        predict_learning(LONG, found.information, informed=side).free_entropy
        for side in (False, True)
    )
    assert low == pytest.approx(high, abs=1e-7)


def test_gradual_learning_has_no_threshold():
    assert all(map(math.isnan, vars(learning_thresholds(SparseTokens(4, 1, 3.0, 0.5))).values()))
    assert all(map(math.isnan, vars(learning_thresholds(SparseTokens(5, 5, 3.0, 0.5))).values()))
    assert set(vars(learning_thresholds(SparseTokens(5, 1, 0.0, 0.5))).values()) == {math.inf}


def test_only_positive_bags_count():
    rare, common = SparseTokens(1000, 1, 6.0, 0.1), SparseTokens(1000, 1, 6.0, 0.8)
    assert predict_learning(rare, 8.0).cos == pytest.approx(predict_learning(common, 1.0).cos)
    thresholds = [learning_thresholds(model) for model in (rare, common)]
    assert thresholds[0].algorithm == pytest.approx(8 * thresholds[1].algorithm)


@pytest.mark.false_alarm(7e-6)
def test_everything_known_is_the_oracle():
    """And not the oracle of a needle 5 % weaker."""
    model = SparseTokens(10, 1, 5.0, 0.5)
    best, oracle = (
        predict_learning(model, 1e6),
        oracle_error("bayes", model, rng=np.random.default_rng(0)),
    )
    assert best.cos > 0.999999
    weaker = predict_learning(SparseTokens(10, 1, 4.75, 0.5), 1e6)
    assert abs(best.test_error - oracle.error) < 4.5 * oracle.standard_error
    assert abs(weaker.test_error - oracle.error) > 4.5 * oracle.standard_error


def test_known_places_are_a_gaussian_mean():
    """R = L: the needles are all tokens, and m = ϱ/(1 + ϱ) with ϱ = απLθ²."""
    best = predict_learning(SparseTokens(6, 6, 0.7, 0.4), 0.5)
    snr = 0.5 * 0.4 * 6 * 0.49
    assert best.cos == pytest.approx(math.sqrt(snr / (1 + snr)), rel=1e-6)


@pytest.mark.parametrize("theta", [0.0, 1e-200, 1e-8, 1e4])
@pytest.mark.parametrize("alpha", [1e-250, 1.0, 1e250])
def test_edges(theta, alpha):
    best = predict_learning(SparseTokens(10, 1, theta, 0.2), alpha)
    assert 0 <= best.cos <= 1
    assert 0 <= best.test_error <= 0.2
    assert math.isfinite(best.free_entropy)


def test_bad_cosines_are_refused():
    for cos in (0.0, 1.0, -0.3, [0.2, 1.5]):
        with pytest.raises(ValueError, match=r"^cos = .* is not allowed"):
            samples_for(LONG, cos)


def test_an_unsolved_equation_is_not_returned(monkeypatch):
    monkeypatch.setattr(learning._Curve, "solutions", lambda self, log_alpha: [0.0])
    with pytest.raises(ConvergenceError) as caught:
        predict_learning(LONG, 0.5)
    assert caught.value.estimate.cos == pytest.approx(math.sqrt(0.5))


@pytest.mark.slow
def test_a_curve_makes_its_tables_once():
    learning._curve.cache_clear()
    channel.cache_clear()
    model = SparseTokens(10**6, 1, 8.0, 0.5)
    curve = [predict_learning(model, alpha) for alpha in np.logspace(-1, 3, 100)]
    assert learning._curve.cache_info().misses == channel.cache_info().misses == 1
    assert (np.diff([one.cos for one in curve]) > 0).all()


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize(
    ("model", "alpha"),
    [
        (SparseTokens(10, 1, 3.0, 0.5), 2.0), (SparseTokens(10, 1, 5.0, 0.5), 0.3),
        (SparseTokens(20, 2, 4.0, 0.3), 0.8), (SparseTokens(200, 1, 6.0, 0.5), 1.0),
        (SparseTokens(30, 3, 2.5, 0.2), 3.0), (SparseTokens(6, 4, 1.0, 0.5), 2.0),
    ],
    ids=str,
)  # fmt: skip
def test_message_passing_meets_state_evolution(model, alpha):
    """Six settings, extrapolated in d; a needle a tenth higher is refused."""
    sizes, rng = (200, 400, 800), np.random.default_rng(model.L)
    trials = [
        [simulate_learning(model, d, alpha, rng, method="exact", fresh=200_000) for _ in range(30)]
        for d in sizes
    ]
    fields = ["cos", "test_error", "free_entropy"]
    agree(predict_learning(model, alpha), trials, sizes=sizes, fields=fields, claim="amp-meets-se")
    higher = predict_learning(replace(model, theta=1.1 * model.theta), alpha)
    with pytest.raises(AssertionError):
        agree(higher, trials, sizes=sizes, fields=fields, claim="amp-meets-se")
