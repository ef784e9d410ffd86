"""A readout carried to other lengths."""

import numpy as np
import pytest

from needle.data.classifiers import attention, pooled
from needle.data.dense import dense_features
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.readout.fit import fit_readout
from needle.readout.lengths import recipes, rescaled
from needle.readout.limit import predict_readout
from needle.readout.transfer import predict_transfer, simulate_transfer, transferred
from utils.agreement import AgreementError, agree

PAPER = SparseTokens(L=20, R=1, theta=5.0, pi=0.5)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-5)
@pytest.mark.parametrize(
    ("intercept", "loss"),
    [("keep", "logistic"), ("rate", "logistic"), ("best", "logistic"), ("keep", "square")],
)
def test_a_readout_on_another_length(intercept, loss):
    law = attention(PAPER, temperature=2.0, cos=0.8)
    test = attention(SparseTokens(60, 1, 5.0, 0.5), temperature=2.5, cos=0.8)
    rng = np.random.default_rng(2)
    found = [
        simulate_transfer(law, test, 80, 3.0, 0.05, rng, loss=loss, intercept=intercept)
        for _ in range(32)
    ]
    theory = predict_transfer(law, test, 3.0, 0.05, loss=loss, intercept=intercept)
    agree(
        theory,
        found,
        fields=["test_error", "misses", "false_alarms"],
        claim="transfer",
        false_alarm=1e-5,
    )
    if intercept == "keep":
        wrong = predict_readout(law, 3.0, 0.05, loss=loss).test_error
        with pytest.raises(AgreementError):
            agree(wrong, [run.test_error for run in found], claim="no-transfer", false_alarm=1e-5)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-5)
def test_transfer_on_literal_tokens():
    model, long, rng = PAPER, SparseTokens(100, 1, 5.0, 0.5), np.random.default_rng(3)
    errors = []
    for _ in range(40):
        fit = fit_readout(*dense_features(model, 180, 60, rng, temperature=2.0, cos=0.9), 0.05)
        F, y = dense_features(long, 800, 60, rng, temperature=2.0, cos=0.9)
        errors.append(np.mean((F @ fit.w + fit.b > 0) != (y > 0)))
    laws = [attention(m, temperature=2.0, cos=0.9) for m in (model, long)]
    theory = predict_transfer(*laws, 3.0, 0.05).test_error
    agree(theory, errors, claim="literal", false_alarm=1e-5)
    with pytest.raises(AgreementError):
        agree(1.2 * theory, errors, claim="literal-corrupted", false_alarm=0.05)


def test_transfer_to_itself_and_the_moved_intercepts():
    law = attention(PAPER, temperature=2.0, cos=0.8)
    same = predict_transfer(law, law, 3.0, 0.05)
    readout = predict_readout(law, 3.0, 0.05)
    assert same.test_error == pytest.approx(readout.test_error, rel=1e-9)
    assert same.bias == pytest.approx(readout.bias)
    best = predict_transfer(law, law, 3.0, 0.05, intercept="best")
    rate = predict_transfer(law, law, 3.0, 0.05, intercept="rate")
    assert best.test_error <= min(same.test_error, rate.test_error)
    assert rate.misses == pytest.approx(rate.false_alarms, abs=1e-9)  # P(yes) = π
    assert rescaled(1.5, 9, 81) == pytest.approx(1.5 * np.sqrt(2))
    found = recipes(PAPER, 200, 2.0, 0.9, 4.0, 0.01)
    assert found["both"] < found["sharpness"] < found["nothing"]


def test_transfer_refuses():
    law = attention(PAPER, temperature=2.0, cos=0.8)
    for other in (attention(PAPER, temperature=2.0, cos=0.7), pooled(PAPER)):
        with pytest.raises(ValueError, match="query of law"):
            predict_transfer(law, other, 1.0, 0.1)
    for law_, test, name in (
        (vectorized(PAPER), pooled(PAPER), "law = 'vectorized'"),
        (pooled(PAPER), vectorized(PAPER), "test = 'vectorized'"),
    ):
        with pytest.raises(ValueError, match=f"^{name} .* must not be vectorized"):
            predict_transfer(law_, test, 1.0, 0.1)
    with pytest.raises(ValueError, match="intercept = 'no'"):
        transferred(law.scores(np.ones(3), 0.0, np.random.default_rng(0)), 0.0, "no", 0.5)
