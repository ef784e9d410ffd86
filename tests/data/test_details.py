"""What the larger tests of this room leave open: refusals word by word, blocks, rare branches."""

import dataclasses

import numpy as np
import pytest

from needle.data import classifiers
from needle.data.classifiers import (
    attention,
    dense_features,
    gaussian_mixture,
    learned_attention,
    pooled,
)
from needle.data.law import FeatureLaw
from needle.data.noise import one, sample_noise
from needle.data.sidebyside import vectorized
from needle.data.teachers import teacher
from needle.data.tokens import SparseTokens, check_model
from needle.kit.records import Alignment

MODEL = SparseTokens(6, 2, 2.0, 0.4)
ALIGNED = Alignment(0.5, 1.0, 0.8, 2.0, 1.6)
LAWS = {
    "pooled": pooled(MODEL),
    "vectorized": vectorized(MODEL),
    "attention": attention(MODEL, temperature=1.5, cos=0.6),
    "mixture": gaussian_mixture(var_pos=4.0, var_neg=1.0),
}


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def refused(call, start: str, end: str = "") -> None:
    with pytest.raises(ValueError, match="is not allowed") as found:
        call()
    said = str(found.value)
    assert said.startswith(start) and said.endswith(end), said


REFUSED = {
    "n = 0": lambda: MODEL.sample_labels(0, rng()),
    "rng = 3": lambda: MODEL.sample_labels(1, 3),
    "d = 0": lambda: MODEL.sample(1, 0, rng()),
    "model = 3": lambda: check_model(3),
    "n = 0 is": lambda: LAWS["pooled"].sample(0, 2, rng()),
    "d = 0 is": lambda: LAWS["pooled"].sample(2, 0, rng()),
    "d = 1": lambda: LAWS["attention"].sample(2, 1, rng()),
    "rng = None": lambda: LAWS["pooled"].sample(2, 2, None),
    "w = 'w'": lambda: LAWS["pooled"].scores("w", 0.0),
    "b = 'b'": lambda: LAWS["pooled"].scores(np.ones(2), "b"),
    "w of shape (1,)": lambda: LAWS["attention"].scores(np.ones(1), 0.0, rng()),
    "w of shape (7,)": lambda: LAWS["vectorized"].scores(np.ones(7), 0.0),
    "w = 'v'": lambda: LAWS["vectorized"].scores("v", 0.0),
    "b = 'c'": lambda: LAWS["vectorized"].scores(np.ones(6), "c"),
    "rng = 4": lambda: LAWS["attention"].coefficients(np.ones(2), 4),
    "mean = -1": lambda: gaussian_mixture(mean=-1, var_pos=1.0, var_neg=1.0),
    "var_pos = 0": lambda: gaussian_mixture(var_pos=0, var_neg=1.0),
    "var_neg = 0": lambda: gaussian_mixture(var_pos=1.0, var_neg=0),
    "pi = 0": lambda: gaussian_mixture(var_pos=1.0, var_neg=1.0, pi=0),
    "pi = 1": lambda: gaussian_mixture(var_pos=1.0, var_neg=1.0, pi=1),
    "temperature = -1": lambda: attention(MODEL, temperature=-1, cos=0.5),
    "cos = 1.1": lambda: attention(MODEL, temperature=1, cos=1.1),
    "cos = -1.1": lambda: attention(MODEL, temperature=1, cos=-1.1),
    "resolution = 23": lambda: attention(MODEL, temperature=1, cos=0.5, resolution=23),
    "resolution = 32769": lambda: attention(MODEL, temperature=1, cos=0.5, resolution=2**15 + 1),
    "bits = 7": lambda: attention(MODEL, temperature=1, cos=0.5, bits=7),
    "bits = 16": lambda: attention(MODEL, temperature=1, cos=0.5, bits=16),
    "alignment = 1": lambda: learned_attention(MODEL, 1, scale=1.0),
    "scale = -1": lambda: learned_attention(MODEL, ALIGNED, scale=-1),
    "resolution = 3": lambda: learned_attention(MODEL, ALIGNED, scale=1.0, resolution=3),
    "n = 0 ": lambda: dense_features(MODEL, 0, 2, rng(), temperature=1.0, cos=0.5),
    "d = 1 ": lambda: dense_features(MODEL, 2, 1, rng(), temperature=1.0, cos=0.5),
    "temperature = -2": lambda: dense_features(MODEL, 2, 2, rng(), temperature=-2, cos=0.5),
    "cos = 2": lambda: dense_features(MODEL, 2, 2, rng(), temperature=1.0, cos=2),
    "cos = -2": lambda: dense_features(MODEL, 2, 2, rng(), temperature=1.0, cos=-2),
    "L = 1": lambda: sample_noise(1, 1, 5, rng()),
    "R = 0": lambda: sample_noise(5, 0, 5, rng()),
    "R = 6": lambda: sample_noise(5, 6, 5, rng()),
    "trials = 1": lambda: sample_noise(5, 1, 1, rng()),
    "rng = 0": lambda: sample_noise(5, 1, 5, 0),
    "method = 'fast'": lambda: sample_noise(5, 1, 5, rng(), method="fast"),
    "gamma = -1": lambda: teacher(-1.0),
    "gamma = 0": lambda: teacher(0, link="sign"),
    "offset = nan": lambda: teacher(1.0, np.nan),
    "link = 'cubic'": lambda: teacher(1.0, 0.0, "cubic"),
    "rng = 5": lambda: teacher().coefficients(np.ones(2), 5),
}


@pytest.mark.parametrize("start", REFUSED)
def test_refusals_begin_with_name_and_value(start):
    refused(REFUSED[start], start)


def test_refusals_in_full():
    refused(REFUSED["w of shape (1,)"], "w of shape", "w must have 2 entries or more")
    refused(REFUSED["w of shape (7,)"], "w of shape", "w must have Ld entries, L = 6")
    refused(REFUSED["model = 3"], "model = 3", "model must be a SparseTokens")
    refused(REFUSED["alignment = 1"], "alignment = 1", "alignment must be an Alignment")
    refused(REFUSED["method = 'fast'"], "method", "must be one of 'binned', 'direct'")
    refused(
        lambda: teacher(1.0, 100.0),
        "offset = 100.0 is not allowed: it leaves a share 1.0e+00 of positives; offset must",
        "offset must leave both labels a share of 1e-9 or more",
    )


def test_what_is_just_allowed():
    assert gaussian_mixture(mean=0, var_pos=0.5, var_neg=1.0).theta == 0
    assert attention(MODEL, temperature=1, cos=-1, resolution=24, bits=8).resolution == 24
    assert attention(MODEL, temperature=1, cos=1, resolution=2**15, bits=15).bits == 15
    assert len(dense_features(MODEL, 1, 2, rng(), temperature=0, cos=1).y) == 1
    assert pooled(MODEL).sample(1, 1, rng()).F.shape == (1, 1)
    assert LAWS["attention"].sample(1, 2, rng()).F.shape == (1, 2)
    assert sample_noise(2, 2, 2, rng()).free.shape == (2, 4, 2)
    assert MODEL.sample(1, 1, rng()).X.shape == (1, 6, 1)


def test_laws_say_what_they_are():
    told = {name: (law.name, law.copies, law.query, law.cos) for name, law in LAWS.items()}
    assert told == {
        "pooled": ("pooled", 1, False, 0.0),
        "vectorized": ("vectorized", 6, False, 0.0),
        "attention": ("attention", 1, True, 0.6),
        "mixture": ("mixture", 1, False, 0.0),
    }
    assert [law.theta for law in LAWS.values()] == [2.0, 2.0, 2.0, 1.0]
    assert [law.pi for law in LAWS.values()] == [0.4, 0.4, 0.4, 0.5]
    flat = attention(MODEL, temperature=0, cos=0.3)
    assert (flat.name, flat.theta, flat.pi) == ("attention", 2.0, 0.4)
    law = attention(MODEL, temperature=1.5, cos=0.6)
    assert (law.temperature, law.resolution, law.bits, law.draws) == (1.5, 1536, 15, 4000)
    for length, draws in [(2**20 // 1000, 1000), (2**20, 500)]:
        long = attention(SparseTokens(length, 1, 1.0, 0.5), temperature=1.0, cos=0.5)
        assert long.draws == draws
    learned = learned_attention(MODEL, ALIGNED, scale=1.5, resolution=None)
    assert (learned.temperature, learned.cos, learned.resolution) == (3.0, 0.8, None)
    assert learned_attention(MODEL, ALIGNED, scale=1.5).resolution == 1536
    assert teacher().draws == 20_000
    told = dataclasses.asdict(teacher(2.0, 0.5, "probit"))
    assert (told["name"], told["theta"], told["cos"], told["query"]) == ("teacher", 0.0, 1.0, True)
    assert (told["gamma"], told["offset"], told["link"]) == (2.0, 0.5, "probit")


def test_a_law_without_coefficients_has_none():
    bare = FeatureLaw(name="bare", theta=1.0, pi=0.5)
    with pytest.raises(NotImplementedError):
        bare.coefficients(np.ones(1), rng())
    with pytest.raises(NotImplementedError):
        _ = bare.nodes


def test_nodes_of_two_gaussians_number_by_number():
    y, a, c, r, weight = gaussian_mixture(mean=3.0, var_pos=4.0, var_neg=9.0, pi=0.3).nodes
    assert y.tolist() == [1, -1] and a.tolist() == [1.0, -1.0] and c.tolist() == [0.0, 0.0]
    assert r.tolist() == [2.0, 3.0] and weight.tolist() == [0.3, 0.7]


def test_limit_scores_at_all_points_and_at_nodes():
    law = attention(MODEL, temperature=1.5, cos=0.6, resolution=48, bits=8)
    for fine, rule in [(False, law.nodes), (True, law.points)]:
        y, mean, sd, weight = law.limit_scores(0.5, -0.3, 2.0, 0.1, fine=fine)
        assert np.array_equal(y, rule.y) and np.array_equal(weight, rule.weight)
        assert mean == pytest.approx(2.0 * 0.5 * rule.a - 0.3 * rule.c + 0.1, rel=1e-14)
        assert sd == pytest.approx(2.0 * rule.r, rel=1e-14)
    assert len(law.points.y) == 512 and len(law.nodes.y) <= 48
    positives = (law.nodes.y > 0).sum()
    assert positives == 4 * (48 * 4 // 24) and (law.nodes.y < 0).sum() == 4 * (48 * 2 // 24)
    assert attention(MODEL, temperature=1.5, cos=0.6, resolution=None).nodes.y.size == 2**16


def test_features_are_put_together_as_the_docstring_says():
    """F = θ a ξ + c q̂ + r z with the very numbers that the generator gives."""
    for name in ("mixture", "attention"):
        law, stream = LAWS[name], rng()
        y = np.where(stream.random(50) < law.pi, 1, -1)
        a, c, r = law.coefficients(y, stream)
        z = r[:, None] * stream.standard_normal((50, 3))
        F, labels = law.sample(50, 3, rng())
        assert np.array_equal(labels, y)
        if law.query:
            cos, sine = 0.6, 0.8
            signal, query = np.array([1.0, 0, 0]), np.array([cos, sine, 0])
            across = np.array([sine, -cos, 0])
            z = np.outer(z[:, 1], across) + z * [0, 0, 1]
            expected = law.theta * np.outer(a, signal) + np.outer(c, query) + z
        else:
            expected = z + law.theta * np.outer(a, [1.0, 0, 0])
        assert pytest.approx(expected, abs=1e-12) == F


def test_vectorized_scores_by_hand():
    law, w = vectorized(SparseTokens(3, 2, 2.0, 0.4)), np.arange(6.0)
    y, mean, sd, weight = law.scores(w, 0.5)
    assert y.tolist() == [1, 1, 1, -1]
    assert mean.tolist() == [2 * (0 + 2) + 0.5, 2 * (0 + 4) + 0.5, 2 * (2 + 4) + 0.5, 0.5]
    assert sd == pytest.approx(np.full(4, np.sqrt(55)))
    assert weight == pytest.approx([0.4 / 3] * 3 + [0.6])
    assert law.signal(w) == pytest.approx(6 / np.sqrt(3))


def test_many_subsets_are_drawn_once_and_evenly():
    """C(40, 8) is too many: 5 pieces of 4,000 orderings of the positions, by a fixed seed."""
    law, w = vectorized(SparseTokens(40, 8, 1.0, 0.5)), rng().standard_normal(40)
    mean, again = law.scores(w, 0.0).mean[:-1], law.scores(w, 0.0).mean[:-1]
    assert len(mean) == 20_000 and np.array_equal(mean, again)
    assert mean.mean() == pytest.approx(8 * w.mean(), rel=1e-12)
    assert len(vectorized(SparseTokens(40, 7, 1.0, 0.5)).scores(w, 0.0).mean) == 20_001
    assert len(vectorized(SparseTokens(200, 2, 1.0, 0.5)).scores(np.ones(200), 0.0).mean) == 19_901
    assert len(vectorized(SparseTokens(201, 2, 1.0, 0.5)).scores(np.ones(201), 0.0).mean) == 20_001


def test_tokens_in_single_blocks_and_in_pieces(monkeypatch):
    y = np.where(np.arange(40) % 3, 1, -1)
    whole = LAWS["attention"].coefficients(y, rng())
    steps = []
    plain = classifiers._Attention._block

    def watched(self, part, stream):
        steps.append(len(part))
        return plain(self, part, stream)

    monkeypatch.setattr(classifiers._Attention, "_block", watched)
    monkeypatch.setattr(classifiers, "_BLOCK", 6 * 15)
    for ours, exact in zip(LAWS["attention"].coefficients(y, rng()), whole, strict=True):
        assert np.array_equal(ours, exact)
    assert steps == [15, 15, 10]


def test_ones_for_every_token():
    assert one(np.zeros((2, 3))).tolist() == [[[1.0] * 3] * 2]


def test_a_bag_without_noise_has_sums_of_nothing():
    noise = sample_noise(3, 3, 4, rng())
    scale, sums = noise.tilted(1.0, one)
    assert np.all(scale == -np.inf) and scale.shape == (4,)
    assert sums.shape == (1, 4) and not sums.any()
    assert (noise.L, noise.R, noise.trials) == (3, 3, 4)
