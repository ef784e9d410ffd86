"""The law of samples that the two steps have seen, against tokens and on its own."""

import numpy as np
import pytest
from scipy.special import softmax

from utils import seen
from utils.agreement import AgreementError, agree
from utils.alignment import predict_alignment
from utils.model import SparseTokens
from utils.seen import training_law
from utils.steps import two_steps

WEAK = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)


@pytest.mark.slow
@pytest.mark.false_alarm(0.0002)
def test_points_of_the_training_law_have_the_means_of_tokens():
    """Label times score along w⁽¹⁾, on the samples that turned the query less on new ones: with
    equal weights, where one size will do and a fifth less is refused, and with a sharp query's."""
    sharpness, limit = (1e-6, 2.0), predict_alignment(WEAK, 1.0)

    def mean_score(X, y, steps):
        scores, heights = X @ steps.q / limit.query_norm, X @ steps.w / limit.readout_norm
        weights = [softmax(T * scores, axis=1) for T in sharpness]
        return np.array([np.mean(y * (s * heights).sum(axis=1)) for s in weights])

    def leak(d, k):
        rng = np.random.default_rng([9, d, k])
        (X, y, _), (new, labels, _) = WEAK.sample(d, d, rng), WEAK.sample(4 * d, d, rng)
        steps = two_steps(X, y)
        return mean_score(X, y, steps) - mean_score(new, labels, steps)

    trials, value = [np.array([leak(d, k) for k in range(60)]) for d in (80, 160)], np.zeros(2)
    for sign in (1, -1):
        for k, T in enumerate(sharpness):
            law, _ = training_law(WEAK, 1.0, temperature=T, seen=sign > 0)
            value[k] += sign * law.weight @ (law.y * law.means[0])
    agree(value[0], trials[1][:, 0], claim="leak-equal-weights")
    with pytest.raises(AgreementError):
        agree(0.8 * value[0], trials[1][:, 0], claim="leak-equal-weights-corrupted")
    sharp = [found[:, 1] for found in trials]
    agree(value[1], sharp, sizes=(80, 160), claim="leak")
    with pytest.raises(AgreementError):
        agree(0.0, sharp, sizes=(80, 160), claim="no-leak")


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_withheld_directions_have_length_one(alpha, monkeypatch):
    """One token of a bag where all are alike: what it shares with either has mean square 1/L."""

    def first_token(scores, axis):
        return np.eye(scores.shape[axis])[np.zeros(len(scores), dtype=int)]

    monkeypatch.setattr(seen, "softmax", first_token)
    law, _ = training_law(SparseTokens(4, 4, 1.0, 0.4), alpha, temperature=1.0)
    for shared in (law.gathered, law.counted):
        assert 4 * law.weight @ shared**2 == pytest.approx(1, abs=1e-3)
