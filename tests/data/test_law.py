"""Samples of a feature law and the scores of a readout: equal in law for every classifier."""

import numpy as np
import pytest
from scipy.special import ndtr

from needle.data.classifiers import attention, gaussian_mixture, pooled
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens


@pytest.mark.false_alarm(4e-06)
@pytest.mark.parametrize(
    ("law", "label"),
    [(gaussian_mixture(mean=2.0, var_pos=4.0, var_neg=0.25, pi=0.3), s) for s in (1, -1)],
)
def test_mixture_sampling(law, label):
    F, y = law.sample(20_000, 3, np.random.default_rng(0))
    part, sd = F[y == label], 2.0 if label > 0 else 0.5
    assert np.all(np.abs(part.mean(axis=0) - [2.0 * label, 0, 0]) < 5 * sd / np.sqrt(len(part)))
    allowed = 5 / np.sqrt(2 * len(part))
    assert np.all(np.abs(part.std(axis=0) / sd - 1) < allowed)
    assert np.all(np.abs(part.std(axis=0) / sd - 1.1) > allowed)


@pytest.mark.false_alarm(6e-07)
@pytest.mark.parametrize(
    "make",
    [
        pooled,
        vectorized,
        lambda model: attention(model, temperature=1.5, cos=0.7),
        lambda model: gaussian_mixture(var_pos=2.0, var_neg=0.5),
    ],
)
def test_scores_give_the_error_of_a_fixed_readout(make):
    """Conditional error against counting on 40,000 draws, within 5 standard errors (alarm 6e-7)."""
    law, d, n = make(SparseTokens(6, 2, 2.0, 0.4)), 5, 40_000
    w, b = np.random.default_rng(8).standard_normal(d * law.copies), -0.5
    w[::d] += 1.0
    y, mean, sd, weight = law.scores(w, b, np.random.default_rng(10))
    error = weight @ ndtr(-y * mean / sd)
    F, labels = law.sample(n, d, np.random.default_rng(9))
    counted = np.mean(labels * (F @ w + b) <= 0)
    assert abs(weight.sum() - 1) < 1e-12
    assert abs(counted - error) < 5 * np.sqrt(error * (1 - error) / n)
    assert law.signal(w) == pytest.approx(
        w.reshape(law.copies, d)[:, 0].sum() / np.sqrt(law.copies)
    )


def test_scores_are_those_of_the_drawn_coefficients():
    law = attention(SparseTokens(6, 2, 2.0, 0.4), temperature=1.5, cos=0.6)
    w, b = np.array([0.7, -0.3, 0.5]), -0.2
    y, mean, sd, weight = law.scores(w, b, np.random.default_rng(1))
    a, c, r = law.coefficients(y, np.random.default_rng(1))
    overlap = 0.6 * 0.7 - 0.8 * 0.3
    np.testing.assert_allclose(mean, 2.0 * a * 0.7 + c * overlap + b, rtol=1e-12)
    np.testing.assert_allclose(sd, r * np.sqrt(w @ w - overlap**2), rtol=1e-12)
    assert weight[y > 0].sum() == pytest.approx(0.4)
    assert len(y) == 8000
