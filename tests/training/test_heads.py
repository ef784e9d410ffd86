"""Two heads: the split in the limit and on tokens, and what one kind of needle must give."""

from __future__ import annotations

import numpy as np
import pytest

from needle.data.tokens import SparseTokens
from needle.training.batch import predict_descent, simulate_descent
from needle.training.heads import predict_two_heads, simulate_two_heads
from utils.agreement import AgreementError, agree

TASK = SparseTokens(10, 1, 5.0, 0.5)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_tokens_split_as_the_limit_does():
    """False alarm 10⁻⁴; half the lean is refused."""
    steps, sizes, told = [5, 15, 40], (80, 160, 320), {"decay": 0.1, "lean": 0.3}
    runs = [
        [simulate_two_heads(TASK, d, 1.5, steps, np.random.default_rng([d, k]), **told)
         for k in range(12)]
        for d in sizes
    ]  # fmt: skip
    limit = predict_two_heads(TASK, 1.5, steps, **told)
    compare = {"sizes": sizes, "fields": ["train_loss", "own", "other"]}
    for k in range(3):
        agree(limit[k], [[run[k] for run in group] for group in runs], claim="heads", **compare)
    first = [[run[0] for run in group] for group in runs]
    less = predict_two_heads(TASK, 1.5, [5], decay=0.1, lean=0.15)[0]
    with pytest.raises(AgreementError):
        agree(less, first, claim="heads-refused", **compare)


def test_without_a_lean_nothing_splits():
    for one in predict_two_heads(TASK, 4.0, [5, 30], lean=0.0, bags=1000, decay=0.1):
        assert one.own == pytest.approx(one.other, abs=8 * one.own.standard_error + 0.02)


def test_heads_begin_where_they_are_told():
    run = simulate_two_heads(TASK, 30, 2.0, [0], np.random.default_rng(0), lean=0.4)[0]
    assert (run.own, run.other) == (pytest.approx(0.4), pytest.approx(0.0))
    limit = predict_two_heads(TASK, 2.0, [0], lean=0.4, bags=200)[0]
    assert (limit.own, limit.other) == (pytest.approx(0.4), pytest.approx(0.0))


def test_a_single_needle_is_the_lean_of_descent():
    """`lean` of `predict_descent` is what random starts of that cosine do on tokens."""
    told = {"lean": (0.5, 0.0), "decay": 0.1}
    (limit,) = predict_descent(TASK, 2.0, [0], bags=200, **told)
    (run,) = simulate_descent(TASK, 40, 2.0, [0], np.random.default_rng(0), **told)
    assert limit.query_cos == pytest.approx(0.5)
    assert run.query_cos == pytest.approx(0.5)
    assert run.readout_cos == limit.readout_cos == 0.0


@pytest.mark.parametrize("name", ["lr", "decay", "start", "lean", "alpha", "loss"])
def test_bad_input_is_refused(name):
    told = {"alpha": 1.0, name: "no" if name == "loss" else -1.0}
    alpha = told.pop("alpha")
    message = rf"^{'lr_q' if name == 'lr' else name}.* is not allowed"
    with pytest.raises(ValueError, match=message):
        predict_two_heads(TASK, alpha, [1], **told)
    with pytest.raises(ValueError, match=message):
        simulate_two_heads(TASK, 10, alpha, [1], np.random.default_rng(0), **told)
