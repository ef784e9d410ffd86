"""What the larger tests of this room leave open: refusals word by word, blocks, rare branches."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import ndtr

from needle.data import classifiers
from needle.data import law as law_of
from needle.data.classifiers import attention, gaussian_mixture, learned_attention, pooled
from needle.data.dense import dense_features
from needle.data.law import FeatureLaw
from needle.data.noise import one, sample_noise
from needle.data.sidebyside import vectorized
from needle.data.tall import excess, pooled_tokens
from needle.data.teachers import teacher
from needle.data.tokens import SparseTokens, check_model
from needle.kit.records import Alignment

MODEL = SparseTokens(6, 2, 2.0, 0.4)
ALIGNED = Alignment(0.5, 1.0, 0.8, 2.0, 1.6)


def laws() -> dict[str, FeatureLaw]:
    """Made anew by each test, which so is known to reach what makes them."""
    return {
        "pooled": pooled(MODEL),
        "vectorized": vectorized(MODEL),
        "attention": attention(MODEL, temperature=1.5, cos=0.6),
        "mixture": gaussian_mixture(var_pos=4.0, var_neg=1.0),
        "excess": excess(MODEL, level=1.5, cos=0.6),
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
    "n = 0 is": lambda: laws()["pooled"].sample(0, 2, rng()),
    "d = 0 is": lambda: laws()["pooled"].sample(2, 0, rng()),
    "d = 1": lambda: laws()["attention"].sample(2, 1, rng()),
    "rng = None": lambda: laws()["pooled"].sample(2, 2, None),
    "w = 'w'": lambda: laws()["pooled"].scores("w", 0.0),
    "b = 'b'": lambda: laws()["pooled"].scores(np.ones(2), "b"),
    "w of shape (1,)": lambda: laws()["attention"].scores(np.ones(1), 0.0, rng()),
    "w of shape (7,)": lambda: laws()["vectorized"].scores(np.ones(7), 0.0),
    "w = 'v'": lambda: laws()["vectorized"].scores("v", 0.0),
    "b = 'c'": lambda: laws()["vectorized"].scores(np.ones(6), "c"),
    "rng = 4": lambda: laws()["attention"].coefficients(np.ones(2), 4),
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
    "level = -1": lambda: excess(MODEL, level=-1, cos=0.5),
    "cos = 1.2": lambda: excess(MODEL, level=1, cos=1.2),
    "cos = -1.2": lambda: excess(MODEL, level=1, cos=-1.2),
    "resolution = 22": lambda: excess(MODEL, level=1, cos=0.5, resolution=22),
    "resolution = 16385": lambda: excess(MODEL, level=1, cos=0.5, resolution=2**14 + 1),
    "model = 4": lambda: excess(4, level=1, cos=0.5),
    "rng = 6": lambda: laws()["excess"].coefficients(np.ones(2), 6),
    "model = 5": lambda: together(model=5),
    "n = 0  ": lambda: together(n=0),
    "q = 'q'": lambda: together(q="q"),
    "temperature = -3": lambda: together(temperature=-3),
    "level = -2": lambda: together(level=-2),
    "rng = 7": lambda: together(rng=7),
}


def together(**changed):
    """Features of two rules from the same six bags."""
    given = {"model": MODEL, "n": 6, "q": np.array([1.0, 0.5, 0.0]), "rng": rng()}
    return pooled_tokens(**given | {"temperature": 1.0, "level": 1.5} | changed)


@pytest.mark.parametrize("start", REFUSED)
def test_refusals_begin_with_name_and_value(start):
    refused(REFUSED[start], start.rstrip())


def test_refusals_in_full():
    refused(REFUSED["w of shape (1,)"], "w of shape", "w must have 2 entries or more")
    refused(REFUSED["w of shape (7,)"], "w of shape", "w must have Ld entries, L = 6")
    refused(REFUSED["w = 'v'"], "w = 'v'", "of shape (Ld,)")
    refused(REFUSED["w = 'w'"], "w = 'w'", "of shape (d,)")
    refused(REFUSED["q = 'q'"], "q = 'q'", "of shape (d,)")
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
    assert laws()["attention"].sample(1, 2, rng()).F.shape == (1, 2)
    assert sample_noise(2, 2, 2, rng()).free.shape == (2, 4, 2)
    assert MODEL.sample(1, 1, rng()).X.shape == (1, 6, 1)
    assert excess(MODEL, level=0, cos=1, resolution=24).level == 0
    assert excess(MODEL, level=0.5, cos=-1, resolution=2**14).cos == -1
    soft, tall, y = together(n=1, temperature=0, level=0)
    assert soft.shape == tall.shape == (1, 3) and y.shape == (1,)


def test_laws_say_what_they_are():
    told = {name: (law.name, law.copies, law.query, law.cos) for name, law in laws().items()}
    assert told == {
        "pooled": ("pooled", 1, False, 0.0),
        "vectorized": ("vectorized", 6, False, 0.0),
        "attention": ("attention", 1, True, 0.6),
        "mixture": ("mixture", 1, False, 0.0),
        "excess": ("excess", 1, True, 0.6),
    }
    assert [law.theta for law in laws().values()] == [2.0, 2.0, 2.0, 1.0, 2.0]
    assert [law.pi for law in laws().values()] == [0.4, 0.4, 0.4, 0.5, 0.4]
    tall = laws()["excess"]
    assert (tall.model, tall.level, tall.resolution) == (MODEL, 1.5, 1024)
    assert laws()["vectorized"].model == MODEL
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
    plain = teacher()
    assert (plain.gamma, plain.offset, plain.link, plain.pi) == (1.0, 0.0, "logistic", 0.5)
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
    y, a, c, r, weight = gaussian_mixture(mean=3.0, var_pos=9.0, var_neg=16.0, pi=0.3).nodes
    assert y.tolist() == [1, -1] and a.tolist() == [1.0, -1.0] and c.tolist() == [0.0, 0.0]
    assert r.tolist() == [3.0, 4.0] and weight.tolist() == [0.3, 0.7]
    y, a, c, r, weight = vectorized(SparseTokens(9, 2, 2.0, 0.4)).nodes
    assert a.tolist() == [2 / 3, 0.0] and r.tolist() == [1.0, 1.0] and not c.any()
    for flat in (pooled(MODEL), attention(MODEL, temperature=0, cos=0.3)):
        y, a, c, r, weight = flat.nodes
        assert a.tolist() == [2 / 6, 0.0] and r.tolist() == [6**-0.5] * 2 and not c.any()


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
        law, stream = laws()[name], rng()
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


def test_scores_by_hand():
    law, w = pooled(MODEL), np.array([1.0, 2.0, -2.0])
    y, mean, sd, weight = law.scores(w, 0.5)
    assert y.tolist() == [1, -1] and weight.tolist() == [0.4, 0.6]
    assert mean == pytest.approx([2.0 * 2 / 6 + 0.5, 0.5]) and sd == pytest.approx(
        [3 * 6**-0.5] * 2
    )
    law = laws()["attention"]
    a, c, r = law.coefficients(np.repeat([1, -1], 4000), rng())
    for w in (np.array([1.0, 2.0]), np.array([1.0, 2.0, -2.0])):
        y, mean, sd, weight = law.scores(w, 0.5, rng())
        along = 0.6 * 1.0 + 0.8 * 2.0
        assert mean == pytest.approx(2.0 * a * 1.0 + c * along + 0.5, abs=1e-12)
        assert sd == pytest.approx(r * np.sqrt(w @ w - along**2), abs=1e-12)
        assert weight == pytest.approx(np.repeat([0.4 / 4000, 0.6 / 4000], 4000), rel=1e-12)
        assert law.signal(w) == 1.0


def test_a_model_keeps_plain_numbers():
    model = SparseTokens(np.int64(6), np.int8(2), np.float32(2), np.float32(0.5))
    assert [type(x) for x in (model.L, model.R, model.theta, model.pi)] == [int, int, float, float]


def test_vectorized_scores_by_hand():
    law, w = vectorized(SparseTokens(3, 2, 2.0, 0.4)), np.arange(6.0)
    y, mean, sd, weight = law.scores(w, 0.5)
    assert y.tolist() == [1, 1, 1, -1] and y.dtype.kind == "i"
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
    whole = laws()["attention"].coefficients(y, rng())
    steps = []
    plain = classifiers._Attention._block

    def watched(self, part, stream):
        steps.append(len(part))
        return plain(self, part, stream)

    monkeypatch.setattr(classifiers._Attention, "_block", watched)
    monkeypatch.setattr(law_of, "_BLOCK", 6 * 15)
    for ours, exact in zip(laws()["attention"].coefficients(y, rng()), whole, strict=True):
        assert np.array_equal(ours, exact)
    assert steps == [15, 15, 10]


def test_nearby_settings_keep_their_cells():
    """At the law's own settings the nodes are its own; a step away they move by that step."""
    law = attention(MODEL, temperature=1.5, cos=0.6, resolution=48, bits=8)
    for mine, same in zip(law.nodes, law.beside(1.5, 0.6).nodes, strict=True):
        assert np.array_equal(mine, same)
    near = law.beside(1.5 + 1e-6, 0.6 - 1e-6)
    assert (near.temperature, near.cos) == (1.5 + 1e-6, 0.6 - 1e-6)
    assert near.divided is law._cells
    assert len(near.nodes.y) == len(law.nodes.y)
    assert np.abs(np.array(near.nodes) - np.array(law.nodes)).max() < 1e-4
    whole = attention(MODEL, temperature=1.5, cos=0.6, resolution=None, bits=8).beside(1.4, 0.5)
    assert len(whole.nodes.y) == 512


def test_the_excess_rule_on_tokens_in_blocks(monkeypatch):
    """(a, c, r) of one stream, by hand; smaller blocks draw the same."""
    law, y = laws()["excess"], np.where(np.arange(40) % 3, 1, -1)
    a, c, r = law.coefficients(y, rng())
    g = rng().standard_normal((40, 6))
    h = g.copy()
    h[y > 0, :2] += 2.0 * 0.6
    phi = np.where(h > 1.5, h - 1.5**2 / h, 0.0)
    assert a == pytest.approx(np.where(y > 0, phi[:, 0] + phi[:, 1], 0.0), abs=1e-12)
    assert c == pytest.approx((phi * g).sum(axis=1), abs=1e-12)
    assert r == pytest.approx(np.sqrt((phi * phi).sum(axis=1)), abs=1e-12)
    monkeypatch.setattr("needle.data.tall._BLOCK", 6 * 15)
    for ours, exact in zip(law.coefficients(y, rng()), (a, c, r), strict=True):
        assert np.array_equal(ours, exact)


def test_two_rules_pool_the_same_tokens(monkeypatch):
    """Softmax and excess weights of literal tokens, block by block."""
    q = np.array([1.0, 0.5, 0.0])
    X, y, _ = MODEL.sample(6, 3, rng())
    h = X @ q / np.sqrt(1.25)
    s = np.exp(1.3 * h) / np.exp(1.3 * h).sum(axis=1, keepdims=True)
    phi = np.where(h > 0.7, h - 0.49 / h, 0.0)
    soft, tall, labels = together(temperature=1.3, level=0.7)
    assert np.array_equal(labels, y)
    assert soft == pytest.approx(np.einsum("nl,nld->nd", s, X), abs=1e-12)
    assert tall == pytest.approx(np.einsum("nl,nld->nd", phi, X), abs=1e-12)
    monkeypatch.setattr("needle.data.tall._BLOCK", 6 * 3 * 4)
    stream = rng()
    expected = np.concatenate([MODEL.sample(n, 3, stream).y for n in (4, 2)])
    parts = together(temperature=1.3, level=0.7)
    assert np.array_equal(parts[2], expected) and [len(part) for part in parts] == [6] * 3


def test_nodes_of_the_excess_rule():
    """No token above the level in most bags: those merge into one point of small r."""
    law = laws()["excess"]
    y, a, c, r, weight = law.points
    assert len(y) == 2**15 and weight.sum() == pytest.approx(1)
    assert weight[y > 0].sum() == pytest.approx(0.4) and r.min() > 0
    mean = law.coefficients(y, rng())[2].mean()
    assert r.min() == pytest.approx(mean / 100, rel=0.05)
    rule = law.nodes
    assert len(rule.y) < 1100 and rule.weight.sum() == pytest.approx(1)
    assert (rule.y > 0).sum() > (rule.y < 0).sum() / 4 and rule.r.min() >= r.min() / 2
    for label in (1, -1):
        mine, all_of = rule.y == label, y == label
        assert rule.weight[mine].sum() == pytest.approx(weight[all_of].sum())
        for ours, theirs in zip(rule[1:4], (a, c, r), strict=True):
            mean = weight[all_of] @ theirs[all_of]
            assert rule.weight[mine] @ ours[mine] == pytest.approx(mean, abs=2e-3)
    never = excess(MODEL, level=50.0, cos=0.6)
    assert never.points.r.tolist() == [1e-3] * 2**15 and len(never.nodes.y) == 2


@pytest.mark.parametrize("method", ["binned", "direct"])
def test_tilted_sums_have_their_means(method):
    """E Σ e^{τg} = (L−R) e^{τ²/2} and E Σ g e^{τg} = τ times that, to five standard errors."""
    L, trials, tau = 3000, 300, 0.8
    noise = sample_noise(L, 2, trials, rng(), method=method)
    scale, sums = noise.tilted(tau, lambda g: np.stack([np.ones_like(g), g]))
    total = np.exp(scale) * sums / (L - 2)
    assert total.shape == (2, trials)
    for found, expected in zip(total, (np.exp(tau**2 / 2), tau * np.exp(tau**2 / 2)), strict=True):
        se = found.std() / np.sqrt(trials)
        assert abs(found.mean() - expected) < 5 * se < 0.02 * expected
    again, _ = noise.tilted(tau, one)
    assert np.array_equal(scale, again) and np.all(scale > 2 * tau)
    assert (noise.L, noise.R, noise.trials, noise.free.shape) == (L, 2, trials, (trials, 4, 2))
    stratum = np.floor(4 * ndtr(noise.free)).astype(int)
    assert np.all(np.sort(stratum, axis=1) == np.arange(4)[:, None])


def test_ones_for_every_token():
    assert one(np.zeros((2, 3))).tolist() == [[[1.0] * 3] * 2]


def test_a_bag_without_noise_has_sums_of_nothing():
    noise = sample_noise(3, 3, 4, rng())
    scale, sums = noise.tilted(1.0, one)
    assert np.all(scale == -np.inf) and scale.shape == (4,)
    assert sums.shape == (1, 4) and not sums.any()
    assert (noise.L, noise.R, noise.trials) == (3, 3, 4)


@pytest.mark.false_alarm(3e-6)
@pytest.mark.parametrize(("theta", "sign"), [(6.4, 1), (7.1, 1), (6.4, -1)])
def test_rare_errors_are_those_of_many_bags(theta, sign):
    """From the cloud or a tail: against the mean of each bag's own error; twice as much is seen.

    Where w has no length across the query, the nodes say what there is to say.
    """
    law = attention(SparseTokens(10, 1, theta, 0.3), temperature=2.0, cos=0.9)
    place = (4.0, 0.0, 1.0, -2.0 * theta)
    rng, n = np.random.default_rng(5), 800_000
    y = np.repeat([1, -1], n)
    a, c, r = law.coefficients(y, rng)
    each = ndtr(-y * (theta * a * place[0] + c * place[1] + place[3]) / (r * place[2]))
    parts = each[:n] * law.pi, each[n:] * (1 - law.pi)
    error = math.sqrt(sum(part.var() / n for part in parts))
    told = law.misread(*place, fine=sign < 0)
    assert told < 3e-4
    assert told == law.misread(*place, fine=sign > 0)  # below that both are read alike
    found = sum(part.mean() for part in parts)
    assert abs(told - found) < 4.7 * error + 0.01 * told < told, (told, found, error)


def test_a_law_is_read_at_its_nodes_unless_all_points_are_asked_for():
    law = attention(SparseTokens(4, 1, 6.0, 0.3), temperature=2.0, cos=0.9)
    place = (1.0, 0.0, 0.0, -3.0)
    assert len(law.limit_scores(*place).y) == len(law.nodes.y) < len(law.points.y)
    assert len(law.limit_scores(*place, fine=True).y) == len(law.points.y)
    assert law.misread(*place, fine=True) == law.misread(*place)
