"""Long bags: norms count. The fixed point against its formula, rounds on literal tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.learning.amp import simulate_learning
from needle.learning.limit import (
    all_solutions,
    learning_thresholds,
    predict_learning,
    samples_for,
    state_evolution,
)
from needle.learning.norms import Factors, LongBags, error_with_norms, look_again, simulate_guessing
from needle.learning.posterior import channel
from needle.learning.verdicts import bayes_error

LONG = SparseTokens(1000, 1, 5.2, 0.5)


@pytest.mark.parametrize("d", [60, 200, 10**4])
def test_solutions_solve_and_wide_tokens_have_no_norms(d):
    model = SparseTokens(4000, 1, 5.3, 0.5)
    for alpha in (0.1, 0.5, 2.0):
        for one in all_solutions(model, alpha, d=d):
            m = one.cos**2
            x = model.theta**2 * m + model.theta**4 * (1 - m) ** 2 / (2 * d)
            snr = alpha * model.pi * model.theta**2 * math.exp(channel(4000, 1).log_weight(x))
            assert m / (1 - m) == pytest.approx(snr, rel=1e-6)
            assert one.test_error == pytest.approx(float(bayes_error(model, math.sqrt(x))))
            assert float(samples_for(model, one.cos, d=d)) == pytest.approx(alpha)
    wide, plain = (learning_thresholds(model, d=width) for width in (10**12, None))
    assert vars(wide) == pytest.approx(vars(plain), rel=1e-5)


@pytest.mark.parametrize(
    ("L", "d", "theta", "spinodal"),
    [(4000, 200, 5.3, 0.336), (10**4, 10**3, 7, 0.499), (10**9, 10**6, 50, 2.594)],
)
def test_norms_move_the_take_off(L, d, theta, spinodal):
    """Computed values, and L e^{−ν²}/(eθ⁴) where θ is large and ν² small against log L."""
    found = learning_thresholds(SparseTokens(L, 1, theta, 0.5), d=d)
    assert 0.5 * found.algorithm == pytest.approx(spinodal, abs=6e-4)
    formula = L / (math.e * theta**4) * math.exp(-(theta**4) / (2 * d))
    assert 0.5 * found.algorithm == pytest.approx(formula, rel=0.005 if theta > 20 else 0.3)
    low, high = (
        predict_learning(SparseTokens(L, 1, theta, 0.5), found.information, d=d, informed=side)
        for side in (False, True)
    )
    assert low.free_entropy == pytest.approx(high.free_entropy, abs=1e-6)


def test_where_norms_give_all_away_learning_is_gradual():
    assert all(
        map(math.isnan, vars(learning_thresholds(SparseTokens(20_000, 1, 9.0, 0.5), d=60)).values())
    )
    assert state_evolution(SparseTokens(20_000, 1, 9.0, 0.5), 0.8, 2, d=60)[1] > 0.97


@pytest.mark.false_alarm(6e-5)
@pytest.mark.parametrize(("d", "L", "theta"), [(100, 1000, 5.2), (60, 3000, 6.0)])
def test_rounds_on_tokens_follow_the_prediction(d, L, theta):
    """Cosine and error of literal tokens, and not those of a strength 5 % lower."""
    model, runs = SparseTokens(L, 1, theta, 0.5), []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        runs.append(simulate_learning(model, d, 1.0, rng, norms=True, fresh=500_000))
    limit = predict_learning(model, 1.0, d=d)
    weak = predict_learning(SparseTokens(L, 1, 0.95 * theta, 0.5), 1.0, d=d)
    for name, spare in (("cos", 0.002), ("test_error", 0.002)):  # of order 1/d
        values = np.array([getattr(run, name) for run in runs])
        se = values.std(ddof=1) / math.sqrt(len(values))
        assert abs(values.mean() - getattr(limit, name)) < 4.5 * se + spare, name
        if name == "test_error":
            assert abs(values.mean() - weak.test_error) > 4.5 * se + spare
    blind = simulate_learning(model, d, 1.0, np.random.default_rng(0), fresh=1000)
    assert abs(blind.cos) < 0.4


def test_a_round_is_the_exact_mean_and_spread_of_a_bag():
    """One bag of three tokens in two dimensions, against an integral over ξ on a grid."""
    model, d = SparseTokens(3, 1, 1.5, 0.5), 2
    bags = LongBags(1, model, d, np.random.default_rng(0))
    new, *_ = look_again(bags, Factors.nothing(bags))
    _, X, _ = next(bags.blocks())
    line = np.linspace(-8, 8, 801)
    xi = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    length = (xi**2).sum(axis=1)
    prior = np.exp(-d * length / 2)
    prior /= prior.sum()
    fit = prior * np.exp(1.5 * xi @ X[0].T.astype(float) - 1.125 * length[:, None]).mean(axis=1)
    mean, P = new.mean(d)
    assert mean[:, 0] == pytest.approx(fit @ xi / fit.sum(), abs=1e-5)
    square = float(mean[:, 0] @ mean[:, 0] + d / P[0])
    assert square == pytest.approx(fit @ length / fit.sum(), rel=1e-5)
    _, evidence, foretold = look_again(bags, new)
    assert [float(evidence[0]), float(foretold[0])] == pytest.approx(
        [math.log(fit.sum())] * 2, abs=1e-5
    )


def test_error_reads_norms():
    """With no direction at all the rule is that of norms alone, which do tell at θ⁴ > 4d log L."""
    model = SparseTokens(300, 1, 14.0, 0.5)
    rng = np.random.default_rng(0)
    assert error_with_norms(model, 60, np.zeros(60), 60.0, rng, 300_000) < 0.02
    known = np.eye(60)[0]
    error = error_with_norms(SparseTokens(300, 1, 4.5, 0.5), 60, known, 1e9, rng, 3_000_000)
    assert error == pytest.approx(float(bayes_error(SparseTokens(300, 1, 4.5, 0.5), 4.5)), rel=0.1)


def test_tokens_that_do_not_fit_are_drawn_again(monkeypatch):
    from needle.learning import norms

    monkeypatch.setattr(norms, "BLOCK", 10**5)
    kept = simulate_learning(LONG, 40, 1.0, np.random.default_rng(3), norms=True, fresh=1000)
    monkeypatch.setattr(norms, "KEPT", 0)
    again = simulate_learning(LONG, 40, 1.0, np.random.default_rng(3), norms=True, fresh=1000)
    assert kept == again


@pytest.mark.slow
def test_one_right_guess_finds_below_the_take_off():
    """At three quarters of it: an example of a data set on which needles are good starts."""
    model = SparseTokens(4000, 1, 5.3, 0.5)
    assert 0.76 * learning_thresholds(model, d=200).algorithm > 0.5
    bags = LongBags(50, model, 200, np.random.default_rng(0))
    _, X, _ = next(bags.blocks())
    starts = [Factors.guess(bags, 0, X[0, token : token + 1].astype(float)) for token in (0, 1, 2)]
    state = Factors(*(np.concatenate(parts, axis=-1) for parts in zip(*starts, strict=True)))
    for _ in range(12):
        state, *_ = look_again(bags, state)
    mean, _ = state.mean(200)
    cosines = mean[0] / np.linalg.norm(mean, axis=0)
    assert cosines[0] > 0.9
    assert max(cosines[1:]) < 0.3


@pytest.mark.slow
def test_guessing_ends_with_the_guess_that_foretells():
    model = SparseTokens(1000, 1, 5.0, 0.5)
    found = simulate_guessing(model, 100, 0.6, np.random.default_rng(0), fresh=1000)
    assert found.cos > 0.85


def test_refusals():
    rng = np.random.default_rng(0)
    two = SparseTokens(10, 2, 3.0, 0.5)
    for call in (
        lambda: predict_learning(two, 1.0, d=5),
        lambda: learning_thresholds(two, d=5),
        lambda: simulate_learning(two, 5, 1.0, rng, norms=True),
    ):
        with pytest.raises(ValueError, match=r"^R = 2 is not allowed: with (d|norms), R must be 1"):
            call()
    for option in ({"method": "exact"}, {"height": 1.0}):
        with pytest.raises(ValueError, match=r"^norms = True is not allowed"):
            simulate_learning(LONG, 5, 1.0, rng, norms=True, **option)
