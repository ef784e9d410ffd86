"""Rounds of gradient steps: prediction against tokens, and what the first round is."""

from __future__ import annotations

import numpy as np
import pytest

from utils.agreement import AgreementError, agree
from utils.alignment import predict_alignment
from utils.model import SparseTokens
from utils.training_rounds import predict_rounds, simulate_rounds


@pytest.mark.slow
@pytest.mark.false_alarm(2e-4)
@pytest.mark.parametrize("kind", ["readout", "repeat"])
def test_fresh_rounds_meet_their_prediction(kind):
    model, sizes = SparseTokens(20, 2, 3.0, 0.3), (100, 200)
    streams = [[np.random.default_rng([d, k]) for k in range(24)] for d in sizes]
    runs = [
        [simulate_rounds(model, d, 1.0, 3, rng, kind=kind, fresh=True) for rng in group]
        for d, group in zip(sizes, streams, strict=True)
    ]
    theory = predict_rounds(model, 1.0, 3, kind=kind)
    runs = [np.array(group) for group in runs]
    agree(theory, runs, sizes=sizes, claim="fresh-rounds")
    sharper = predict_rounds(model, 1.0, 3, kind=kind, sharpness=3.0)
    with pytest.raises(AgreementError):
        agree(sharper, runs, sizes=sizes, claim="fresh-rounds-corrupted")


def test_first_readout_is_pooling():
    """From q = 0, w = Σ γ̄ X̄: cos² = απ(1−π)θ²R²/L over 1 plus that."""
    model = SparseTokens(30, 3, 2.0, 0.2)
    gain = 0.7 * 0.2 * 0.8 * 4 * 9 / 30
    (cos,) = predict_rounds(model, 0.7, 1, kind="readout")
    assert cos**2 == pytest.approx(gain / (1 + gain), rel=2e-3)


def test_first_repeat_is_two_steps_for_small_rates():
    """On many data both have the calibrated two steps' cosine; one batch a step is no echo."""
    model = SparseTokens(10, 1, 4.0, 0.5)
    many = predict_alignment(model, 200.0, lr_w=1e-6, lr_b=1e-6).query_cos
    (ours,) = predict_rounds(model, 200.0, 1)
    assert ours == pytest.approx(many, abs=0.01)


def test_the_same_data_give_more_than_one_batch():
    model = SparseTokens(30, 1, 5.0, 0.5)
    for kind in ("readout", "repeat"):
        path = simulate_rounds(model, 150, 1.0, 8, np.random.default_rng(0), kind=kind)
        assert path[-1] > path[0] > 0
        again = simulate_rounds(model, 150, 1.0, 8, np.random.default_rng(0), kind=kind)
        assert (path == again).all()
        assert not (path == simulate_rounds(model, 150, 1.0, 8, np.random.default_rng(1))).any()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kind", {"kind": "both"}),
        ("rounds", {"rounds": 0}),
        ("alpha", {"alpha": -1.0}),
        ("sharpness", {"sharpness": 0.0}),
    ],
)
def test_bad_input_is_refused(name, options):
    arguments = {"alpha": 1.0, "rounds": 2, **options}
    alpha, rounds = arguments.pop("alpha"), arguments.pop("rounds")
    model = SparseTokens(6, 1, 2.0, 0.4)
    with pytest.raises(ValueError, match=rf"^{name}.* is not allowed"):
        predict_rounds(model, alpha, rounds, **arguments)
    with pytest.raises(ValueError, match=rf"^{name}.* is not allowed"):
        simulate_rounds(model, 10, alpha, rounds, np.random.default_rng(0), **arguments)
