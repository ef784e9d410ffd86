"""The predicted scatter of both cosines against exact draws."""

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.steps.alignment import simulate_alignment
from needle.steps.scatter import predict_spread

CASES = [
    (SparseTokens(10, 3, 6.0, 0.2), 2.0, {}),
    (SparseTokens(10, 1, 3.0, 0.2), 5.0, {"lr_b": 3.0}),
    (SparseTokens(10, 3, 6.0, 0.2), 2.0, {"loss": "square", "lr_w": 2.0, "lr_b": 0.3}),
    (SparseTokens(5, 2, 2.0, 0.6), 0.5, {"lr_w": 5.0}),
    (SparseTokens(2, 2, 3.0, 0.5), 1.0, {}),
    (SparseTokens(4, 1, 5.0, 0.5), 2.0, {}),
]


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
@pytest.mark.parametrize(("model", "alpha0", "options"), CASES)
def test_the_spread_is_that_of_exact_draws(model, alpha0, options):
    """Within four standard errors and 1 % for what 1/d adds; a variance a fifth larger is not."""
    d, count, rng = 5000, 2500, np.random.default_rng(1)
    draws = [simulate_alignment(model, d, alpha0, rng, **options) for _ in range(count)]
    theory = predict_spread(model, alpha0, **options)._asdict()
    for corruption in (1.0, 1.2):
        scores = {}
        for name, predicted in theory.items():
            cosine = np.array([getattr(draw, name) for draw in draws])
            square, limit = d * (cosine - cosine.mean()) ** 2, corruption * predicted
            error = np.hypot(square.std() / count**0.5, 0.01 * limit)
            scores[name] = abs(square.mean() - limit) / error
        assert (max(scores.values()) > 4) == (corruption > 1), scores


def test_without_signal_there_is_nothing_to_scatter_about():
    with pytest.raises(ValueError, match="theta"):
        predict_spread(SparseTokens(10, 1, 0.0, 0.5), 1.0)
