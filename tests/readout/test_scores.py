"""AUC and recall: against drawn scores, and Bayes' whole curve against its own identities."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from needle.data.classifiers import attention, pooled
from needle.data.law import Scores
from needle.data.tokens import SparseTokens
from needle.learning.verdicts import bayes_error, bayes_rates
from needle.readout.limit import order_parameters, predict_readout
from needle.readout.scores import judge, predicted_scores
from utils.agreement import AgreementError, agree

MODEL = SparseTokens(L=30, R=2, theta=3.0, pi=0.2)
LAW = attention(MODEL, temperature=2.0, cos=0.8)


def test_the_error_is_that_of_the_prediction():
    for law in (LAW, pooled(MODEL)):
        judged = judge(predicted_scores(law, order_parameters(law, 3.0, 0.1)))
        assert judged.error == pytest.approx(predict_readout(law, 3.0, 0.1).test_error, rel=1e-9)


@pytest.mark.false_alarm(0.0001)
def test_drawn_scores_have_this_auc_and_recall():
    """False alarm 10⁻⁴; scores whose spread is a tenth larger are refused."""
    scores = predicted_scores(LAW, order_parameters(LAW, 3.0, 0.1))
    rng, told = np.random.default_rng(0), judge(scores, 0.1)

    def draw(size, sign, stretch=1.0):
        of = scores.y == sign
        k = rng.choice(of.sum(), size, p=scores.weight[of] / scores.weight[of].sum())
        return scores.mean[of][k] + stretch * scores.sd[of][k] * rng.standard_normal(size)

    t = np.quantile(draw(2_000_000, -1), 0.9)

    def trial(stretch=1.0):
        yes, no = draw(2000, 1, stretch), draw(2000, -1, stretch)
        return {"auc": np.mean(yes[:, None] > no), "recall": np.mean(yes > t)}

    claim = {"auc": told.auc, "recall": told.recall}
    agree(claim, [trial() for _ in range(40)], claim="roc-of-drawn-scores")
    with pytest.raises(AgreementError):
        agree(claim, [trial(1.1) for _ in range(40)], claim="roc-of-drawn-scores")


def test_two_gaussians_have_the_textbook_curve():
    scores = Scores(np.array([1, -1]), np.array([2.0, 0.5]), np.ones(2), np.array([0.3, 0.7]))
    judged = judge(scores, 0.2)
    assert judged.auc == pytest.approx(ndtr(1.5 / np.sqrt(2)), abs=1e-12)
    assert judged.recall == pytest.approx(ndtr(1.5 - ndtri(0.8)), abs=1e-9)


@pytest.mark.parametrize("R", [1, 2, 30])
def test_bayes_rates_are_those_of_a_likelihood_ratio(R):
    """dP₊ = e^t dP₋: the slope of the curve is the threshold; the error is `bayes_error`
    to the accuracy of the net."""
    model = SparseTokens(L=30, R=R, theta=3.0, pi=0.2)
    t = np.linspace(-6, 6, 25)
    strength = 2.5 if R < 30 else 0.4
    missed, raised = bayes_rates(model, strength, t)
    positive, negative = np.diff(missed), -np.diff(raised)
    common = (negative > 0.01) & (positive > 0.01)
    assert common.sum() > 5
    ratio = positive[common] / negative[common]
    assert (ratio > np.exp(t[:-1][common]) * 0.97).all()
    assert (ratio < np.exp(t[1:][common]) * 1.03).all()
    odds = np.log(0.8 / 0.2)
    one, other = bayes_rates(model, strength, odds)
    told = 0.2 * one[0] + 0.8 * other[0]
    assert told == pytest.approx(float(bayes_error(model, strength)), rel=0.02)


def test_a_bad_rate_of_false_alarms_is_named():
    scores = predicted_scores(LAW, order_parameters(LAW, 3.0, 0.1))
    with pytest.raises(ValueError, match="false_alarms"):
        judge(scores, 0.0)
