"""The predicted scatter of both cosines against exact draws."""

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.steps.alignment import predict_alignment, simulate_alignment
from needle.steps.scatter import predict_gap, predict_spread

CASES = [
    (SparseTokens(10, 3, 6.0, 0.2), 2.0, {}),
    (SparseTokens(10, 1, 3.0, 0.2), 5.0, {"lr_b": 3.0}),
    (SparseTokens(10, 3, 6.0, 0.2), 2.0, {"loss": "square", "lr_w": 2.0, "lr_b": 0.3}),
    (SparseTokens(5, 2, 2.0, 0.6), 0.5, {"lr_w": 5.0}),
    (SparseTokens(2, 2, 3.0, 0.5), 1.0, {}),
    (SparseTokens(4, 1, 5.0, 0.5), 2.0, {}),
    (SparseTokens(8, 2, 3.0, 0.2), 3.0, {"balanced": True}),
    (SparseTokens(8, 2, 3.0, 0.3), 3.0, {"loss": "hinge", "lr_w": 2.0}),
    (SparseTokens(8, 2, 3.0, 0.3), 3.0, {"loss": "exponential", "balanced": True}),
]


@pytest.mark.slow
@pytest.mark.false_alarm(9e-6)
@pytest.mark.parametrize(("model", "alpha0", "options"), CASES)
def test_the_spread_is_that_of_exact_draws(model, alpha0, options):
    """Within 4.6 standard errors and 1 % for what 1/d adds; a variance a fifth larger is not."""
    d, count, rng = 5000, 3400, np.random.default_rng(1)
    draws = [simulate_alignment(model, d, alpha0, rng, **options) for _ in range(count)]
    theory = predict_spread(model, alpha0, **options)._asdict()
    for corruption in (1.0, 1.2):
        scores = {}
        for name, predicted in theory.items():
            cosine = np.array([getattr(draw, name) for draw in draws])
            square, limit = d * (cosine - cosine.mean()) ** 2, corruption * predicted
            error = np.hypot(square.std() / count**0.5, 0.01 * limit)
            scores[name] = abs(square.mean() - limit) / error
        assert (max(scores.values()) > 4.6) == (corruption > 1), scores


@pytest.mark.false_alarm(1e-5)
@pytest.mark.parametrize("case", [0, 2, 7])
def test_a_few_hundred_draws_scatter_about_as_predicted(case):
    """Refuses a spread 1.5 times as large; the long test above is sharper by far."""
    model, alpha0, options = CASES[case]
    d, count, rng = 3000, 400, np.random.default_rng(2)
    draws = [simulate_alignment(model, d, alpha0, rng, **options) for _ in range(count)]
    for name, predicted in predict_spread(model, alpha0, **options)._asdict().items():
        square = d * np.var([getattr(draw, name) for draw in draws], ddof=1) / predicted
        limit = 4.9 * np.sqrt(2 / count)  # the square of a normal number has variance 2
        assert abs(np.log(square)) < limit < np.log(1.5), (name, square)


def test_without_signal_there_is_nothing_to_scatter_about():
    with pytest.raises(ValueError, match="theta"):
        predict_spread(SparseTokens(10, 1, 0.0, 0.5), 1.0)
    with pytest.raises(ValueError, match="theta"):
        predict_gap(SparseTokens(10, 1, 0.0, 0.5), 1.0)


def test_the_gap_of_the_readout_is_its_closed_form():
    for model, alpha0, options in CASES[:6]:
        Q = model.L / (alpha0 * (model.pi * model.theta * model.R) ** 2)
        bracket = 0.5 - Q / 4 - 1.5 * (1 - model.pi) / (model.pi * alpha0)
        found = predict_gap(model, alpha0, **options).readout_cos
        assert found == pytest.approx(Q * (1 + Q) ** -2.5 * bracket, rel=1e-5, abs=1e-6)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
@pytest.mark.parametrize(("model", "alpha0", "options"), [CASES[0], CASES[2], CASES[6], CASES[8]])
def test_the_gap_is_that_of_exact_draws_at_three_sizes(model, alpha0, options):
    """d·(mean − limit) at three sizes, a line in 1/d: its end is the gap. Without it: refused."""
    rng, limit = np.random.default_rng(3), predict_alignment(model, alpha0, **options)
    sizes, counts, found = np.array([100, 200, 400]), (8000, 6000, 4000), []
    for d, count in zip(sizes, counts, strict=True):
        cosines = np.array(
            [simulate_alignment(model, d, alpha0, rng, **options).query_cos for _ in range(count)]
        )
        found.append([d * (cosines.mean() - limit.query_cos), d * cosines.std() / count**0.5])
    value, error = np.array(found).T
    line = np.stack([np.ones(3), 1 / sizes], 1) / error[:, None]
    cov = np.linalg.inv(line.T @ line)
    (end, _), spread = cov @ line.T @ (value / error), cov[0, 0] ** 0.5
    gap = predict_gap(model, alpha0, **options).query_cos
    assert abs(end - gap) < 4 * spread, (end, gap, spread)
    assert abs(value[0]) > 4 * error[0]
