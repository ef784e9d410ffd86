"""Needles of both signs, and a query from second moments."""

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.oracle.heads import sample_signed, second_moment_cos, second_moment_query, signed_error
from utils.agreement import AgreementError, agree

PAPER = SparseTokens(L=20, R=1, theta=5.0, pi=0.5)


def least_wrong(S, pi, cuts):
    """Whether each bag is misjudged at the best cut of S: positives, a share π, then negatives."""
    few = S[0, : round(S.shape[1] * pi / (1 - pi))]
    wrongs = [np.concatenate([few <= t, S[1] > t]).astype(float) for t in cuts]
    return min(wrongs, key=np.mean)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-5)
@pytest.mark.parametrize(
    ("model", "alpha"),
    [
        (SparseTokens(10, 1, 4.0, 0.5), 2.0),
        (SparseTokens(10, 1, 4.0, 0.5), 0.5),
        (SparseTokens(30, 1, 5.0, 0.3), 2.0),
    ],
)
def test_the_leading_eigenvector(model, alpha):
    rng, groups, runs = np.random.default_rng(7), [], round(110 / alpha)
    for d in (30, 60, 120):
        bags = (sample_signed(model, round(alpha * d), d, rng)[:2] for _ in range(runs))
        groups.append(np.array([second_moment_query(*bag)[0] ** 2 for bag in bags]))
    theory = second_moment_cos(model, alpha) ** 2
    agree(theory, groups, sizes=(30, 60, 120), claim="second-moment", false_alarm=1e-5)
    with pytest.raises(AgreementError):
        agree(1.2 * theory, groups, sizes=(30, 60, 120), claim="wrong", false_alarm=1e-5)


def test_the_second_moment_in_long_bags_and_below_its_threshold():
    model = SparseTokens(10**6, 2, 60.0, 0.2)
    large = 1 - 10**6 / (3.0 * (0.2 * 3600 * 2) ** 2)
    assert second_moment_cos(model, 3.0) ** 2 == pytest.approx(large, abs=0.01)
    assert second_moment_cos(SparseTokens(100, 1, 1.0, 0.5), 1.0) == 0
    assert second_moment_cos(SparseTokens(100, 1, 0.0, 0.5), 1.0) == 0
    rng = np.random.default_rng(8)
    X, y, _ = sample_signed(PAPER, 30, 6, rng)
    P = np.eye(20) - 1 / 20
    M = np.einsum("n,nla,lk,nkb->ab", y / 60, X, P, X)
    vector = np.linalg.eigh(M)[1][:, -1]
    assert abs(vector @ second_moment_query(X, y)) == pytest.approx(1, abs=1e-6)


@pytest.mark.false_alarm(2e-5)
@pytest.mark.parametrize("pi", [0.5, 0.2])
def test_needles_of_both_signs(pi):
    rng, L, theta = np.random.default_rng(9), 30, 4.5
    h = rng.standard_normal((2, 26_000, L))
    h[0, :, 0] += theta * rng.choice([-1, 1], 26_000)
    for heads, S in ((1, h.max(axis=2)), (2, np.abs(h).max(axis=2))):
        wrong = least_wrong(S, pi, np.linspace(1, 6, 300))
        theory = signed_error(L, theta, pi, heads=heads)
        agree(theory, wrong, claim="signs", false_alarm=1e-5)
        with pytest.raises(AgreementError):
            agree(1.2 * theory, wrong, claim="signs-corrupted", false_alarm=1e-5)
