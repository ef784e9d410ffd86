"""Features of the excess rule: their law against literal tokens, and readouts trained on them."""

from __future__ import annotations

import numpy as np
import pytest

from needle.data.classifiers import attention
from needle.data.dense import dense_features
from needle.data.tall import excess, excess_weight, pooled_tokens
from needle.data.tokens import SparseTokens
from needle.readout.fit import error_rate, fit_readout
from needle.readout.limit import predict_readout

MODEL = SparseTokens(L=60, R=3, theta=3.5, pi=0.4)
COS, LEVEL = 0.8, 1.8


def moments(F: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Bag by bag what two laws of features are compared by: along ξ and q̂, and lengths across."""
    along = F[:, 0], COS * F[:, 0] + np.sqrt(1 - COS**2) * F[:, 1]
    across = (F[:, 2:] ** 2).sum(axis=1)
    parts = [along[0], along[1], along[1] ** 2, across, along[0] * across]
    return np.array([part * (y == label) for part in parts for label in (1, -1)])


@pytest.mark.false_alarm(4e-5)
def test_the_law_is_that_of_literal_tokens() -> None:
    """Ten moments with z below 4.8; for a level ten per cent off, one far above."""
    q, n = np.zeros(12), 9000
    q[:2] = 2 * COS, 2 * np.sqrt(1 - COS**2)  # of any length
    rng = np.random.default_rng(1)
    soft, tall, y = pooled_tokens(MODEL, n, q, rng, temperature=1.3, level=LEVEL)
    options = {"temperature": 1.3, "cos": COS}
    laws = {
        "tall": excess(MODEL, level=LEVEL, cos=COS).sample(n, 12, rng),
        "off": excess(MODEL, level=1.1 * LEVEL, cos=COS).sample(n, 12, rng),
        "soft": dense_features(MODEL, n, 12, rng, **options),
    }
    for name, (F, labels) in laws.items():
        ours, theirs = moments(soft if name == "soft" else tall, y), moments(F, labels)
        spread = np.sqrt((ours.var(axis=1) + theirs.var(axis=1)) / n)
        z = np.abs(ours.mean(axis=1) - theirs.mean(axis=1)) / spread
        assert z.max() > 6 if name == "off" else z.max() < 4.8, name


@pytest.mark.slow
@pytest.mark.false_alarm(2e-5)
def test_trained_readouts_err_as_predicted_and_less_than_behind_a_softmax() -> None:
    """Literal tokens, d = 100, four samples per dimension, both with a ridge of their own."""
    model, d, alpha = SparseTokens(L=300, R=4, theta=4.0, pi=0.5), 100, 4.0
    q = np.zeros(d)
    q[:2] = 0.86, np.sqrt(1 - 0.86**2)
    laws = {
        "softmax": (attention(model, temperature=1.1, cos=0.86), 1e-3),
        "excess": (excess(model, level=2.0, cos=0.86), 0.3),
    }
    errors: dict[str, list[float]] = {name: [] for name in laws}
    for k in range(12):
        rng = np.random.default_rng([2, k])
        soft, tall, y = pooled_tokens(model, 400, q, rng, temperature=1.1, level=2.0)
        for (name, (law, lam)), F in zip(laws.items(), (soft, tall), strict=True):
            fit = fit_readout(F, y, lam)
            errors[name].append(error_rate(law, fit.w, fit.b, rng))
    for name, (law, lam) in laws.items():
        found, expected = np.array(errors[name]), predict_readout(law, alpha, lam).test_error
        spread = np.hypot(found.std(ddof=1) / np.sqrt(12), 0.015 * expected)  # of 2¹⁴ bags, of 1/d
        assert abs(found.mean() - expected) < 4.4 * spread < 0.3 * expected, name
    assert np.mean(errors["excess"]) < 0.95 * np.mean(errors["softmax"])


def test_nothing_below_the_level_is_read() -> None:
    assert excess_weight(np.array([0.5, 1.999]), 2.0).tolist() == [0.0, 0.0]
    assert excess_weight(np.array([2.5]), 0.0).tolist() == [2.5]
    high = excess(SparseTokens(L=5, R=1, theta=1.0, pi=0.5), level=6.0, cos=1.0)
    assert np.isfinite(high.nodes.r).all()


@pytest.mark.parametrize(("options", "name"), [({"level": -1.0}, "level"), ({"cos": 1.5}, "cos")])
def test_bad_arguments_are_named(options: dict[str, float], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        excess(MODEL, **{"level": 1.0, "cos": 0.5, **options})
