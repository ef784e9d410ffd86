"""Trained at one length, used at another: rules, the best sharpness, lost needles."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from needle.data.classifiers import attention
from needle.data.tokens import SparseTokens
from needle.readout.fit import fit_readout
from needle.readout.lengths import RULES, dials, rescaled, sharpened
from needle.readout.limit import predict_readout
from needle.readout.subsampling import subsampled
from needle.readout.transfer import predict_transfer, simulate_transfer

HEAD = SparseTokens(100, 1, 6.0, 0.5)


def test_rules_by_hand():
    T, L, new = 1.5, 50, 1700
    s = new / L
    hand = {
        "none": T,
        "root": T * math.sqrt(math.log(new) / math.log(L)),
        "log": T * math.log(new) / math.log(L),
        "yarn": T * (1 + 0.1 * math.log(s)) ** 2,
        "llama4": T * (1 + 0.1 * math.log(34 + 1)),
    }
    for rule, value in hand.items():
        assert rescaled(T, L, new, rule=rule) == pytest.approx(value)
    longrope = math.sqrt(1 + math.log(s) / math.log(L))  # scales q and k alike
    assert T * longrope**2 == pytest.approx(hand["log"])


@pytest.mark.parametrize("T", [0.4, 1.0, 2.0, 2.7])
def test_capture_keeps_the_height_of_half_attention(T):
    """At (L′, T′) a token of height h weighs as much as all straws, below freezing at both."""
    L, new = 50, 400
    h, found = math.log(L) / T + T / 2, rescaled(T, L, new, rule="capture")
    if h * h > 2 * math.log(new):
        assert found * h == pytest.approx(math.log(new) + found**2 / 2)
    assert found <= math.sqrt(2 * math.log(new)) + 1e-12
    assert rescaled(T, L, L, rule="capture") == pytest.approx(T)
    frozen = math.sqrt(2 * math.log(L)) + 1
    assert rescaled(frozen, L, new, rule="capture") == max(frozen, math.sqrt(2 * math.log(new)))
    assert rescaled(0.0, L, new, rule="capture") == 0
    tiny = rescaled(1e-3, L, new, rule="capture")
    assert tiny == pytest.approx(rescaled(1e-3, L, new, rule="log"), rel=1e-4)


def test_no_rule_beats_the_best():
    for intercept in ("keep", "rate"):
        found = sharpened(HEAD, 1600, 1.37, 0.9, 4.0, 0.01, intercept=intercept)
        errors = {name: one.test_error for name, one in found.items()}
        assert all(errors["best"] <= errors[rule] * (1 + 1e-6) for rule in RULES)
    best, _ = dials(HEAD, 1600, 1.37, 0.9, 4.0, 0.01, "keep")["best"]
    assert best == pytest.approx(2.28, abs=0.05)  # computed independently
    law, test = (
        attention(SparseTokens(L, 1, 6.0, 0.5), temperature=T, cos=0.9)
        for L, T in ((100, 1.37), (1600, best))
    )
    fine = predict_transfer(law, test, 4.0, 0.01).test_error
    assert fine == pytest.approx(0.0443, rel=0.01)


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
def test_rules_on_literal_tokens():
    """Softmax of tokens in R^80, readout trained at 20 tokens, judged at 200 under three rules."""
    short, long, d = SparseTokens(20, 1, 5.0, 0.5), SparseTokens(200, 1, 5.0, 0.5), 80
    q, rng = np.zeros(d), np.random.default_rng(0)
    q[:2] = 0.9, math.sqrt(0.19)

    def attend(X, T):
        return np.einsum("nl,nld->nd", softmax(T * (X @ q), axis=1), X)

    rules, wrong = ("none", "root", "log", "capture"), []
    for _ in range(16):
        X, y, _ = short.sample(4 * d, d, rng)
        fit = fit_readout(attend(X, 1.2), y, 0.01)
        X, y, _ = long.sample(500, d, rng)
        scores = {r: attend(X, rescaled(1.2, 20, 200, rule=r)) @ fit.w + fit.b for r in rules}
        wrong.append([np.mean((z > 0) != (y > 0)) for z in scores.values()])
    law = sharpened(short, 200, 1.2, 0.9, 4.0, 0.01, resolution=384, bits=13)
    mean, se = np.mean(wrong, axis=0), np.std(wrong, axis=0, ddof=1) / 4
    for rule, seen, error in zip(rules, mean, se, strict=True):
        assert abs(seen - law[rule].test_error) < 5 * error + 0.004, rule  # of order 1/d
    assert mean[2] < mean[1] < mean[0]


@pytest.mark.parametrize(("L", "R", "kept"), [(12, 1, 6), (12, 3, 4), (10, 2, 9), (10, 8, 9)])
def test_subsampled_coefficients_are_those_of_chosen_tokens(L, R, kept):
    model = SparseTokens(L, R, 3.0, 0.5)
    law = subsampled(model, kept, temperature=1.5, cos=0.8)
    rng = np.random.default_rng(0)
    y = np.ones(20_000)
    a, c, r = law.coefficients(y, rng)
    g, marks = rng.standard_normal((20_000, L)), np.arange(L) < R
    chosen = np.argsort(rng.random((20_000, L)), axis=1)[:, :kept]
    g, v = np.take_along_axis(g, chosen, axis=1), marks[chosen]
    s = softmax(1.5 * (3.0 * 0.8 * v + g), axis=1)
    literal = (s * v).sum(axis=1), (s * g).sum(axis=1), np.sqrt((s**2).sum(axis=1))
    nodes = law.nodes
    plus = nodes.y > 0
    for mine, theirs, node in zip((a, c, r), literal, (nodes.a, nodes.c, nodes.r), strict=True):
        se = math.hypot(mine.std(), theirs.std()) / math.sqrt(20_000)
        assert abs(mine.mean() - theirs.mean()) < 4.5 * se
        assert abs(nodes.weight[plus] @ node[plus] / 0.5 - theirs.mean()) < 4.5 * se + 1e-3
    assert nodes.weight.sum() == pytest.approx(1)


def test_all_tokens_kept_is_attention_itself():
    model = SparseTokens(30, 2, 4.0, 0.3)
    whole = predict_readout(attention(model, temperature=1.5, cos=0.8), 2.0, 0.1)
    kept = predict_readout(subsampled(model, 30, temperature=1.5, cos=0.8), 2.0, 0.1)
    assert vars(kept) == pytest.approx(vars(whole), rel=1e-3)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-4)
def test_trained_on_part_of_a_bag_judged_on_all():
    model = SparseTokens(40, 1, 6.0, 0.5)
    law = subsampled(model, 20, temperature=2.0, cos=0.9)
    test = attention(model, temperature=2.0, cos=0.9)
    found = [
        simulate_transfer(law, test, 120, 4.0, 0.1, np.random.default_rng(s)).test_error
        for s in range(12)
    ]
    claimed = predict_transfer(law, test, 4.0, 0.1).test_error
    se = np.std(found, ddof=1) / math.sqrt(12)
    assert abs(np.mean(found) - claimed) < 5.5 * se
    assert abs(np.mean(found) - predict_transfer(test, test, 4.0, 0.1).test_error) > 5.5 * se
