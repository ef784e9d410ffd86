"""Who wins: the limit against its parts, against literal tokens, and on both sides of borders."""

import math

import numpy as np
import pytest
from scipy import optimize

from needle.data.classifiers import attention, pooled
from needle.data.tokens import SparseTokens
from needle.readout.contest import Contest, predict_contest, simulate_contest
from needle.readout.crossing import predict_crossing
from needle.readout.limit import predict_readout
from needle.steps.alignment import predict_alignment


@pytest.mark.slow
def test_the_three_errors_are_those_of_the_five_equations():
    """At full resolution; the coarse law of the maps is right to half a per cent above 2 %."""
    rng = np.random.default_rng(1)
    for _ in range(3):
        L = int(rng.integers(5, 40))
        model = SparseTokens(L, int(rng.integers(1, L // 2 + 1)), rng.uniform(1, 4), 0.4)
        alpha0, alpha, T = rng.uniform(0.5, 6), rng.uniform(0.5, 6), rng.uniform(0.5, 2)
        found = predict_contest(model, alpha0, alpha, temperature=T, lam=0.05, lr_b=2.0)
        cos = predict_alignment(model, alpha0, lr_b=2.0).query_cos
        assert found.cos == cos
        for error, at in ((found.learned, cos), (found.perfect, 1.0)):
            law = attention(model, temperature=T, cos=at)
            exact = predict_readout(law, alpha, 0.05).test_error
            assert error == pytest.approx(exact, rel=5e-3 if exact > 0.02 else 0.1)
        plain = predict_readout(pooled(model), alpha0 + alpha, 0.05).test_error
        assert found.pooling == pytest.approx(plain, rel=1e-9)


def test_the_border_is_the_crossing():
    """A query given: where the winner changes, `predict_crossing` at equal samples puts s*."""
    model = SparseTokens(50, 2, 4.0, 0.5)
    crossing = predict_crossing(model, temperature=1.0, alpha=3.0, lam=0.2, loss="square")

    def gap(s):
        found = predict_contest(
            model, 0.0, 3.0, temperature=1.0, lam=0.2, loss="square", cos=s, resolution=None
        )
        return found.learned - found.pooling

    assert optimize.brentq(gap, 0.0, 1.0) == pytest.approx(crossing, rel=0.01)


def test_winners():
    assert Contest(0.3, 0.2, 0.1, 0.9).winner == "learned"
    assert Contest(0.3, 0.4, 0.1, 0.2).winner == "perfect"
    assert Contest(0.3, 0.5, 0.4, 0.2).winner == "pooling"
    found = {
        (R, theta): predict_contest(
            SparseTokens(20, R, theta, 0.5), 4.0, 4.0, temperature=1.0
        ).winner
        for R, theta in [(1, 1.31), (1, 2.99), (2, 1.31), (4, 0.82), (4, 1.86), (12, 1.31)]
    }
    assert list(found.values()) == [
        "perfect",
        "learned",
        "perfect",
        "pooling",
        "learned",
        "pooling",
    ]


def test_balanced_classes_change_the_query_and_nothing_else():
    model = SparseTokens(10, 1, 5.0, 0.05)
    plain, balanced = (
        predict_contest(model, 4.0, 4.0, lam=0.01, balanced=told) for told in (False, True)
    )
    assert plain.cos < 0 < 0.7 < balanced.cos
    assert (plain.pooling, plain.perfect) == (balanced.pooling, balanced.perfect)
    assert balanced.learned < 0.5 * plain.learned


@pytest.mark.slow
@pytest.mark.false_alarm(3e-5)
@pytest.mark.parametrize(
    ("model", "options"),
    [
        (SparseTokens(12, 3, 2.0, 0.5), {"temperature": 1.0}),
        (SparseTokens(10, 1, 5.0, 0.1), {"balanced": True, "lam": 0.01}),
        (SparseTokens(8, 6, 1.0, 0.4), {"loss": "square", "lam": 0.2}),
        (SparseTokens(10, 1, 4.0, 0.5), {"cos": 0.5}),
    ],
)
def test_tokens_agree(model, options):
    """Three errors and the cosine, two sizes extrapolated in 1/d."""
    rng, limit = np.random.default_rng(2), predict_contest(model, 3.0, 3.0, **options)
    runs = [
        np.array([simulate_contest(model, d, 3.0, 3.0, rng, **options) for _ in range(40)])
        for d in (40, 80)
    ]
    means, errors = ([f(run) for run in runs] for f in (lambda x: x.mean(0), lambda x: x.std(0)))
    found = 2 * means[1] - means[0]
    error = np.hypot(2 * errors[1], errors[0]) / math.sqrt(40)
    assert (abs(found - limit) < 4.8 * error + 0.02 * np.abs(limit)).all(), (found, limit, error)


@pytest.mark.parametrize("function", [predict_contest, simulate_contest])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("alpha0", {"alpha0": 0.0}), ("cos", {"cos": 1.5}), ("alpha0", {"alpha0": -1.0}),
        ("alpha", {"alpha": 0.0}), ("temperature", {"temperature": -1.0}), ("lam", {"lam": -1.0}),
        ("loss", {"loss": "cube"}), ("lr_w", {"lr_w": 0.0}), ("balanced", {"balanced": 1}),
        ("model", {"model": None}),
    ],
)  # fmt: skip
def test_bad_input_is_named(function, name, change):
    options = {"model": SparseTokens(5, 1, 3.0, 0.5), "alpha0": 2.0, "alpha": 2.0} | change
    if function is simulate_contest:
        options |= {"d": 6, "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=rf"^{name} = "):
        function(**options)
