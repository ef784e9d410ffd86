"""Recurrences: a gate with a normalizer is softmax, and what one without it reaches."""

import numpy as np
import pytest
from scipy.special import softmax

from needle.data.tokens import SparseTokens
from needle.oracle.recurrence import gated_weights, recurrence_error, softmax_gates
from needle.oracle.separation import oracle_error


def test_a_gate_with_a_normalizer_is_softmax():
    u = np.random.default_rng(13).normal(0, 30, size=(4, 9))
    np.testing.assert_allclose(gated_weights(softmax_gates(u)), softmax(u, axis=1), atol=1e-12)
    g = np.random.default_rng(14).random((3, 6))
    state = np.zeros(3)
    h = np.random.default_rng(15).normal(size=(3, 6))
    for k in range(6):
        state = (1 - g[:, k]) * state + g[:, k] * h[:, k]
    np.testing.assert_allclose((gated_weights(g) * h).sum(axis=1), state)
    with pytest.raises(ValueError, match="gates"):
        gated_weights([[1.5, 0.0]])


@pytest.mark.false_alarm(0.0001)
def test_recurrences_reach_the_largest_token_or_the_mean():
    """Within five standard errors of 2·2000 bags, plus the optimism of a threshold from half;
    a needle that is a fifth shorter is farther away."""
    model, rng = SparseTokens(L=200, R=1, theta=5.0, pi=0.5), np.random.default_rng(16)
    largest = float(oracle_error("attention", model, tau=np.inf))
    shorter = float(oracle_error("attention", SparseTokens(200, 1, 4.0, 0.5), tau=np.inf))
    spread = 5 * np.sqrt(largest / 4000)
    for gate, slope in (("softmax", 4.0), ("sigmoid", 10.0)):
        found = recurrence_error(model, gate, rng, slope=slope, trials=2000)
        assert found == pytest.approx(largest, abs=spread + 0.005)
        assert found != pytest.approx(shorter, abs=spread + 0.005)
    mean = float(oracle_error("pooled", model))
    assert recurrence_error(model, "linear", rng, trials=2000) == pytest.approx(mean, abs=0.05)
    with pytest.raises(ValueError, match="gate = 'lstm'"):
        recurrence_error(model, "lstm", rng)
