"""The predicted scatter of both cosines against exact draws; false alarms below 1e-4 each."""

import numpy as np
import pytest

from utils.alignment import simulate_alignment
from utils.fluctuations import predict_spread
from utils.model import SparseTokens

CASES = [
    (SparseTokens(10, 3, 6.0, 0.2), 2.0, {}),
    (SparseTokens(10, 1, 3.0, 0.2), 5.0, {"lr_b": 3.0}),
    (SparseTokens(10, 3, 6.0, 0.2), 2.0, {"loss": "square", "lr_w": 2.0, "lr_b": 0.3}),
    (SparseTokens(5, 2, 2.0, 0.6), 0.5, {"lr_w": 5.0}),
    (SparseTokens(2, 2, 3.0, 0.5), 1.0, {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "alpha0", "options"), CASES)
def test_the_spread_is_that_of_exact_draws(model, alpha0, options):
    d, count, rng = 10_000, 600, np.random.default_rng(1)
    draws = [simulate_alignment(model, d, alpha0, rng, **options) for _ in range(count)]
    for name, predicted in predict_spread(model, alpha0, **options)._asdict().items():
        cosine = np.array([getattr(draw, name) for draw in draws])
        square = d * (cosine - cosine.mean()) ** 2
        error = np.hypot(square.std() / count**0.5, 0.02 * predicted)  # 2 % for what 1/d adds
        assert abs(square.mean() - predicted) < 4 * error, name


def test_without_signal_there_is_nothing_to_scatter_about():
    with pytest.raises(ValueError, match="theta"):
        predict_spread(SparseTokens(10, 1, 0.0, 0.5), 1.0)
