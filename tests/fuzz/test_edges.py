"""What once gave nonsense, nan or no answer at an edge, and must not again."""

from __future__ import annotations

import math

import numpy as np
import pytest

import needle
from needle import ConvergenceError, SparseTokens, predict_learning, required_theta
from needle.data.noise import sample_noise
from needle.learning import posterior
from needle.learning.posterior import Handful
from needle.learning.verdicts import bayes_error
from needle.planning.planner import plan
from needle.steps.colored import sample_bags
from utils.agreement import agree


def test_a_strength_is_refused_where_every_strength_is_enough():
    """The limit for R = 10 of 10 tokens undercuts guessing at θ = 0 already."""
    floor = needle.predict_error("bayes", SparseTokens(10, 10, 0.0, 0.5)).error
    assert floor < 0.45
    with pytest.raises(ConvergenceError, match=r"at most 0\.45 at every θ"):
        required_theta("bayes", 10, R=10, error=0.45)
    theta, uncertain = required_theta("bayes", 10, R=10, error=0.40)
    assert theta > 0
    assert uncertain == 0


def test_a_simulated_strength_needs_no_limit_to_begin_with():
    noise = sample_noise(10, 10, 2000, np.random.default_rng(0))
    theta, uncertain = required_theta("bayes", 10, R=10, error=0.45, noise=noise)
    task = SparseTokens(10, 10, theta, 0.5)
    error = needle.oracle_error("bayes", task, noise=noise)
    assert abs(error.error - 0.45) < 1e-3
    # the mean of all ten tokens is sufficient, with error Φ(−θ√10/2)
    assert abs(theta - 0.0795) < 4 * uncertain + 1e-3


@pytest.mark.parametrize(
    "R", [2, 3, 7, *(pytest.param(R, marks=pytest.mark.slow) for R in (40, 41))]
)
@pytest.mark.parametrize("theta", [30.0, 300.0, 1e6, 1e100])
def test_bayes_error_vanishes_without_nan_far_above_the_straws(R, theta):
    """At 40 needles of strength 30 it is said to be below what can be told, and is next to 0."""
    try:
        found = float(bayes_error(SparseTokens(1000, R, 1.0, 0.3), theta))
    except ConvergenceError as stopped:
        assert R > 12
        found = float(stopped.estimate)
    assert 0 <= found <= 1e-20


@pytest.mark.parametrize(("straws", "needles", "R"), [(993, 6, 7), (20, 2, 3), (8, 39, 40)])
def test_symmetric_sums_agree_in_numbers_and_in_logarithms(straws, needles, R, monkeypatch):
    bags, r = Handful(straws, needles), 9.0
    plain = bags.log_e(r, R)
    monkeypatch.setattr(posterior, "FAR", 0.0)
    for one, other in zip(plain, bags.log_e(r, R), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("R", [1, 3, 7])
def test_learning_is_perfect_and_not_nan_where_needles_tower(R):
    best = predict_learning(SparseTokens(10, R, 300.0, 0.5), 1.0)
    assert best.cos > 0.999
    assert best.test_error == 0


@pytest.mark.slow
def test_a_plan_has_numbers_in_every_row():
    for row in plan(L=10**9, R=7, d=10, n=50, pi=0.9, theta=[140.0, 180.0], loss="square").rows:
        assert row.best_possible < 1e-4
        assert all(0 <= value <= 1 for value in (*row.auc.values(), *row.recall.values()))


def test_a_plan_for_four_bags_in_a_million_dimensions_leaves_out_what_is_no_number():
    row = plan(L=2, R=2, d=10**6, n=4, pi=0.3, theta=1.0).rows[0]
    assert row.twice is None
    with pytest.raises(ConvergenceError, match="take a smaller lr_w"):
        needle.predict_reuse(SparseTokens(2, 2, 1.0, 0.3), 4e-6, 0.1, temperature=1.0)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_precision_of_a_rate_is_not_that_of_the_answer(kind):
    model = SparseTokens(10, 1, 3.0, 0.5)
    rates = {"lr_w": 0.375, "lr_b": 0.25}  # which all three can hold
    expected = needle.predict_reuse(model, 1.0, 0.01, temperature=2.0, **rates)
    given = {name: kind(rate) for name, rate in rates.items()}
    assert needle.predict_reuse(model, 1.0, 0.01, temperature=2.0, **given) == expected


def test_hidden_numbers_are_refused_and_not_uncovered():
    masked = np.ma.masked_greater(np.random.default_rng(0).standard_normal(200), 1)
    for theory, trials in ((0.0, masked), ({"a": 0.0}, {"a": masked}), (masked, [[0.0]])):
        with pytest.raises(ValueError, match=r"masked numbers (is|are) not allowed"):
            agree(theory, trials, claim="a-mean")
    with pytest.raises(ValueError, match="F with masked numbers is not allowed"):
        needle.fit_readout(np.ma.masked_greater(np.eye(3), 0.5), [1, -1, 1], 0.1)
    with pytest.raises(ValueError, match="simulations of shape"):
        agree([1.0, 2.0], np.empty((0, 3)), claim="no-trials")


def test_a_whole_number_may_be_a_float():
    model = SparseTokens(10, 1, 3.0, 0.5)
    X = sample_bags(model, 4.0, 3, np.random.default_rng(0)).X
    assert X.shape == (4, 10, 3)


class TestPortrait:
    """Bags that no model would draw."""

    def bags(self) -> tuple[np.ndarray, np.ndarray]:
        tokens = SparseTokens(40, 2, 5.0, 0.4).sample(100, 10, np.random.default_rng(0))
        return tokens.X, tokens.y

    @pytest.mark.parametrize("label", [-1, 1])
    @pytest.mark.parametrize("size", [1e9, 1e20])
    def test_one_wild_token_costs_no_memory(self, label, size):
        X, y = self.bags()
        X[np.flatnonzero(y == label)[0], 3, 3] = size
        found = needle.estimate(X, y)
        assert 0 <= found.auc <= 1
        assert all(map(math.isfinite, found.delta_interval))

    def test_what_is_too_large_to_square_is_refused(self):
        X, y = self.bags()
        X[0, 3, 3] = 1e200
        with pytest.raises(ValueError, match=r"bags\S* with an entry of size 1e\+200"):
            needle.estimate(X, y)

    def test_lone_tokens_tell_no_needles_apart(self):
        X, y = self.bags()
        found = needle.estimate(X[:, :1], y)
        assert not found.separated
        assert all(map(math.isfinite, (found.auc, found.needle_auc, *found.delta_interval)))

    def test_twelve_bags_have_an_interval(self):
        X, _ = self.bags()
        found = needle.estimate(X[:12], [1, -1] * 6)
        low, high = found.delta_interval
        assert 0 <= low <= found.delta <= high

    def test_equal_bags_are_described_without_a_warning(self, recwarn):
        X, y = self.bags()
        needle.estimate(np.repeat(X[:1], 100, axis=0), y)
        assert not [w for w in recwarn if w.category is RuntimeWarning]


@pytest.mark.parametrize("pi", [1e-12, 1e-6, 0.2499, 0.2501, 0.7501])
def test_the_calibrated_rate_keeps_its_digits_at_rare_labels(pi):
    """Against log(π/(1−π))/(π−½) in exact decimals."""
    from decimal import Decimal, getcontext

    getcontext().prec = 40
    p = Decimal(pi)
    exact = (p / (1 - p)).ln() / (p - Decimal("0.5"))
    assert abs(Decimal(needle.calibrated_rate(pi)) / exact - 1) < Decimal("1e-14")


@pytest.mark.parametrize(("theta", "pi"), [(1e-12, 1e-12), (1e-6, 1e-12), (0.3, 1e-12)])
def test_bayes_error_is_that_of_guessing_where_no_evidence_can_reach(theta, pi):
    """And no nan at a faint needle among rare positives."""
    model = SparseTokens(100, 1, theta, pi)
    found = needle.oracle_error("bayes", model, rng=np.random.default_rng(0), trials=200)
    assert (found.error, found.standard_error) == (pi, 0.0)
    assert needle.one_needle_bayes_error(100, theta, pi) == pytest.approx(pi, rel=1e-9)


def test_an_alignment_whose_squares_vanish_has_an_infinite_rate():
    model = SparseTokens(2, 1, 1e6, 1e-5)
    found = needle.predict_alignment(model, 1e-3, lr_w=1.0, lr_b=1000.0)
    assert found.rate == math.inf
    assert -1 <= found.query_cos <= 1


@pytest.mark.parametrize("L", [10, 10**6, 10**9])
def test_needles_of_no_strength_are_guessed_to_the_last_digit(L):
    """NumPy's complex log1p lost half of its digits over 10⁹ tokens: errors of 4e-9."""
    found = needle.oracle_error(
        "attention", SparseTokens(L, 3, 0.0, 0.75), trials=200, rng=np.random.default_rng(0)
    )
    assert found.error == pytest.approx(0.25, rel=1e-12)


def test_a_plan_begins_again_where_a_search_finds_no_place():
    for pi, L, R, n, d in ((0.5, 2, 2, 4, 2), (0.614, 10**9, 1, 10**7, 2)):
        for row in plan(L=L, R=R, d=d, n=n, pi=pi, theta=[1e6]).rows:
            assert 0 <= row.best_possible <= row.silent


def test_bags_of_needles_alone_have_an_error():
    found = needle.oracle_error(
        "attention", SparseTokens(2, 2, 0.0, 0.01), trials=200, rng=np.random.default_rng(0)
    )
    assert found.error == pytest.approx(0.01, abs=5 * found.standard_error + 1e-9)
