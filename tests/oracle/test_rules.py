"""Thresholds and errors of rules: closed forms; what one half chooses, the other half judges.

A statistical test compares at |z| < 4.5 (two-sided 7e-6) unless it says otherwise.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from needle.data.tokens import SparseTokens
from needle.oracle.rules import OracleError, best_threshold, pool
from needle.oracle.separation import oracle_error

Z = 4.5


@pytest.mark.parametrize(("L", "R"), [(2, 1), (3, 3), (40, 2)])
def test_the_largest_token_compared_with_a_threshold(L, R):
    model, t = SparseTokens(L=L, R=R, theta=1.2, pi=0.4), np.linspace(-6, 9, 150_001)
    miss = np.prod([ndtr(t - 1.2 * (k < R)) for k in range(L)], axis=0)
    brute = (0.4 * miss + 0.6 * (1 - ndtr(t) ** L)).min()
    assert oracle_error("attention", model, tau=math.inf).error == pytest.approx(brute, abs=1e-8)


@pytest.mark.false_alarm(2.1e-05)
def test_choosing_on_one_half_leaves_no_downward_bias():
    """In-sample minima are too small, cross-fitted errors are not: 300 small experiments."""
    model = SparseTokens(L=50, R=1, theta=10.0, pi=0.5)
    closed, generator = float(oracle_error("pooled", model)), np.random.default_rng(15)
    small = [
        oracle_error("attention", model, tau=0.0, rng=generator, trials=40) for _ in range(300)
    ]
    honest = np.array([r.error for r in small])
    greedy = honest - [r.optimism for r in small]
    error = honest.std() / math.sqrt(300)
    assert greedy.mean() < closed - Z * error
    assert honest.mean() > closed - Z * error
    assert honest.mean() - closed < 0.25 * (honest - greedy).mean() + Z * error


@pytest.mark.false_alarm(1e-5)
def test_a_statistic_with_equal_values_is_never_parted_between_them():
    """tanh(0·h) = 0: the statistic says nothing, so the best rule is the prior's."""
    for pi in (0.01, 0.5, 0.99):
        model = SparseTokens(L=20, R=1, theta=3.0, pi=pi)
        mute = oracle_error(
            "elementwise", model, tau=0.0, rng=np.random.default_rng(0), trials=4000
        )
        assert abs(mute.error - min(pi, 1 - pi)) <= 5 * mute.standard_error + 1e-9
    _, threshold = best_threshold(np.array([0.0, 1.0, 1.0, 2.0]), np.array([1.0, -3.0, 1.0, 1.0]))
    assert threshold == 1.5


def test_pooled_blocks_add_their_variances():
    parts = [OracleError(0.1, 0.03, optimism=0.01), OracleError(0.2, 0.04, optimism=0.02)]
    pooled = pool(parts, np.array([0.25, 0.75]))
    assert (pooled.error, pooled.optimism) == pytest.approx((0.175, 0.0175))
    assert pooled.standard_error == pytest.approx(math.hypot(0.25 * 0.03, 0.75 * 0.04))
