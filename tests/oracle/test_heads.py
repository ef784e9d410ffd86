"""The second moment without the negatives: the same needles in less noise."""

import math

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.oracle.heads import sample_signed, second_moment_cos, second_moment_query


def test_positives_alone_need_less():
    """Below (4L/α)^¼ but above (2L/α)^¼ only they see; values computed independently."""
    for theta, both, alone in ((2.5, 0.0, 0.32), (3.0, 0.41, 0.65)):
        model = SparseTokens(50, 1, theta, 0.5)
        assert second_moment_cos(model, 4.0) ** 2 == pytest.approx(both, abs=0.01)
        assert second_moment_cos(model, 4.0, positives=True) ** 2 == pytest.approx(alone, abs=0.01)
    for pi in (0.5, 0.2):  # for large L the edge is πα₀θ⁴R² = L
        edge = (10**6 / (pi * 4.0)) ** 0.25
        cosines = [
            second_moment_cos(SparseTokens(10**6, 1, k * edge, pi), 4.0, positives=True)
            for k in (0.98, 1.02)
        ]
        assert cosines[0] == 0 < cosines[1]


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_positives_alone_on_literal_tokens():
    model, found = SparseTokens(30, 1, 3.0, 0.5), []
    for seed in range(16):
        X, y, _ = sample_signed(model, 400, 100, np.random.default_rng(seed))
        found.append(second_moment_query(X, y, positives=True)[0] ** 2)
    claimed, other = (second_moment_cos(model, 4.0, positives=p) ** 2 for p in (True, False))
    se = np.std(found, ddof=1) / math.sqrt(16)
    assert abs(np.mean(found) - claimed) < 5.5 * se + 0.01
    assert abs(np.mean(found) - other) > 5.5 * se
