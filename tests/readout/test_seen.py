"""The law of samples that the two steps have seen, against tokens and on its own."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from needle.data.tokens import SparseTokens
from needle.readout import seen
from needle.readout.seen import training_law
from needle.steps.alignment import predict_alignment
from needle.steps.rule import two_steps
from utils.agreement import AgreementError, agree

WEAK = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)


FEW = SparseTokens(L=4, R=1, theta=4.0, pi=0.5)  # at α = 0.3: every term of eq-c-seen is large


def on_tokens(model, alpha, T, d, k):
    """Tokens along ŵ⁽¹⁾, q̂₂ and e, weights for each T, m and labels: seen samples, and new ones."""
    rng, n = np.random.default_rng([9, d, k]), round(alpha * d)
    parts = model.sample(n, d, rng), model.sample(4 * n, d, rng)
    w, b, q = two_steps(*parts[0][:2])
    frame = np.linalg.qr(np.column_stack([w, q, np.eye(d)[0]]))[0]
    frame *= np.sign([frame[:, 0] @ w, frame[:, 1] @ q, frame[0, 2]])
    size, found = predict_alignment(model, alpha).query_norm, []
    for X, y, _ in parts:
        along, scores = X @ w, X @ q / size
        mean = along.mean(axis=1)
        marks = (y * expit(-y * (mean + b)))[:, None] * (along - mean[:, None])
        found.append((X @ frame, [softmax(t * scores, axis=1) for t in T], marks, y))
    return found


@pytest.mark.slow
@pytest.mark.false_alarm(0.0002)
def test_points_of_the_training_law_have_the_means_of_tokens():
    """Label times score along ŵ⁽¹⁾, q̂₂ and e, on the samples that turned the query less on new
    ones: with equal weights, where one size will do and a fifth less is refused along each; and
    along ŵ⁽¹⁾ with a sharp query's."""
    sharpness = (1e-6, 2.0)

    def leak(d, k):
        means = [
            np.array([np.mean(y[:, None] * np.einsum("nl,nlk->nk", s, h), axis=0) for s in weights])
            for h, weights, _, y in on_tokens(WEAK, 1.0, sharpness, d, k)
        ]
        return means[0] - means[1]

    trials = [np.array([leak(d, k) for k in range(d)]) for d in (80, 160)]
    value = np.zeros((2, 3))
    for sign in (1, -1):
        for k, T in enumerate(sharpness):
            law, _ = training_law(WEAK, 1.0, temperature=T, seen=sign > 0)
            value[k] += sign * law.means @ (law.weight * law.y)
    agree(value[0], trials[1][:, 0], claim="leak-equal-weights")
    for k in range(3):
        with pytest.raises(AgreementError):
            agree(0.8 * value[0, k], trials[1][:, 0, k], claim="leak-equal-weights-corrupted")
    sharp = [found[:, 1, 0] for found in trials]
    agree(value[1, 0], sharp, sizes=(80, 160), claim="leak")
    with pytest.raises(AgreementError):
        agree(0.0, sharp, sizes=(80, 160), claim="no-leak")


@pytest.mark.slow
@pytest.mark.false_alarm(1e-5)
def test_what_the_query_took_shows_where_it_was_taken():
    """E[⟨s, m⟩⟨s, X⟩] along q̂₂ and e on tokens that were seen, at T = 2; 15 % off is refused."""
    T, sizes = 2.0, (100, 400)
    unit = predict_alignment(FEW, 0.3).noise * FEW.L * np.sqrt(0.3)

    def gathered(d, k):
        h, (s,), marks, _ = on_tokens(FEW, 0.3, (T,), d, k)[0]
        return np.mean((s * marks).sum(1)[:, None] * np.einsum("nl,nlk->nk", s, h), axis=0)[1:]

    trials = [np.array([gathered(d, k) for k in range(160)]) / unit for d in sizes]
    law, _ = training_law(FEW, 0.3, temperature=T)
    value = (law.means @ (law.weight * law.taken[0]))[1:]
    agree(value, trials, sizes=sizes, claim="gathered", false_alarm=1e-5)
    for k, off in ((0, 0.85), (0, 1.15), (1, 0.85), (1, 1.15)):
        one = [found[:, k] for found in trials]
        with pytest.raises(AgreementError):
            agree(off * value[k], one, sizes=sizes, claim="gathered-corrupted", false_alarm=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize(
    ("model", "alpha"), [(FEW, 0.3), (SparseTokens(L=6, R=2, theta=3.0, pi=0.3), 0.5)]
)
def test_the_training_law_keeps_the_two_sums(model, alpha, loss, monkeypatch):
    """E[γ_y X̄] has no part across w⁽¹⁾, and E[Xᵀm] is Lq: token by token, to the points' error."""
    limit, pull = predict_alignment(model, alpha, loss=loss), {"logistic": 0.5, "square": 1.0}[loss]
    forward, around = np.zeros(3), np.zeros(3)
    for place in range(model.L):

        def one_token(scores, axis, place=place):
            return np.eye(scores.shape[axis])[np.full(len(scores), place)]

        monkeypatch.setattr(seen, "softmax", one_token)
        law, plane = training_law(model, alpha, temperature=1.0, loss=loss)
        forward += law.means @ (law.weight * law.taken[1]) * pull / np.sqrt(model.L)
        around += law.means @ (law.weight * law.taken[0]) * limit.noise * np.sqrt(alpha)
    assert forward == pytest.approx(
        np.array([limit.readout_norm / 0.5, 0, 0]), abs=1e-4
    )  # 0.5: η_w
    assert around == pytest.approx(limit.query_norm * plane.query, abs=2e-3 * limit.query_norm)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_withheld_directions_have_length_one(alpha, monkeypatch):
    """One token of a bag where all are alike: what it shares with either has mean square 1/L."""

    def first_token(scores, axis):
        return np.eye(scores.shape[axis])[np.zeros(len(scores), dtype=int)]

    monkeypatch.setattr(seen, "softmax", first_token)
    law, _ = training_law(SparseTokens(4, 4, 1.0, 0.4), alpha, temperature=1.0)
    for shared in law.taken:
        assert 4 * law.weight @ shared**2 == pytest.approx(1, abs=1e-3)


def test_bad_input_is_named():
    for options, message in (({"seen": "no"}, "seen"), ({"alpha": 0.0}, "alpha")):
        with pytest.raises(ValueError, match=f"^{message} = "):
            training_law(**({"model": WEAK, "alpha": 1.0, "temperature": 1.0} | options))
