"""The longest token against draws, its logarithm, and its edges."""

import math
from itertools import pairwise

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.oracle.longest import longest_token_error


@pytest.mark.false_alarm(1e-5)
@pytest.mark.parametrize(("L", "R", "theta", "pi"), [(200, 1, 7.0, 0.5), (50, 3, 5.0, 0.2)])
def test_against_literal_tokens(L, R, theta, pi):
    """Its own threshold on tokens in R^30; and not the error of a strength 5 % lower."""
    model, d, n = SparseTokens(L, R, theta, pi), 30, 6000
    rule, rng = longest_token_error(model, d), np.random.default_rng(0)
    wrong = []
    for _ in range(12):
        X, y, _ = model.sample(n // 12, d, rng)
        wrong.append(((X**2).sum(axis=2).max(axis=1) > rule.threshold) != (y > 0))
    share = np.concatenate(wrong).mean()
    se = math.sqrt(share * (1 - share) / n)
    assert abs(share - rule.error) < 4.5 * se
    weaker = longest_token_error(SparseTokens(L, R, 0.9 * theta, pi), d)
    assert abs(share - weaker.error) > 4.5 * se


def test_published_values_and_edges():
    values = [
        float(longest_token_error(SparseTokens(L, 1, theta, 0.5), d))
        for L, theta, d in ((1000, 5.2, 100), (3000, 6.0, 60), (100, 6.53, 100))
    ]
    assert values == pytest.approx([0.478, 0.427, 0.326], abs=6e-4)
    assert float(longest_token_error(SparseTokens(100, 1, 0.0, 0.3), 10)) == pytest.approx(0.3)
    assert float(longest_token_error(SparseTokens(100, 1, 0.0, 0.8), 10)) == pytest.approx(0.2)
    assert 0 <= float(longest_token_error(SparseTokens(10**12, 1, 1e4, 0.5), 400)) < 1e-200
    falling = [float(longest_token_error(SparseTokens(50, 1, t, 0.5), 20)) for t in range(15)]
    assert all(a > b for a, b in pairwise(falling))


@pytest.mark.parametrize("d", [10**4, 10**6])
def test_the_boundary_of_norms(d):
    """At θ⁴ = 4d log L(1 ± ε) errors move towards 0 and ½ as L grows."""
    for factor, ahead in ((1.3, True), (0.75, False)):
        errors = [
            float(
                longest_token_error(
                    SparseTokens(L, 1, (4 * d * math.log(L) * factor**2) ** 0.25, 0.5), d
                )
            )
            for L in (10**3, 10**6, 10**9)
        ]
        assert (errors[0] > errors[1] > errors[2]) == ahead
