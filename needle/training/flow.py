"""The drift of one-pass descent on query, readout and intercept: an expectation over one bag.

Write q̂ = q/|q| and let g be the noise of the tokens along q̂, s = softmax(Xq), r = |s|, v = Xw and
w_⊥² = |w|² − ⟨q̂,w⟩². Given g,

    ⟨s, v⟩ = t₀ + w_⊥ r e,   v_ℓ − ⟨s, v⟩ = o_ℓ + w_⊥((s_ℓ/r − r)e + ν_ℓ),   e ~ N(0, 1),

with o fixed by g and the needles, and ν independent of e with covariance I − ssᵀ/r². Every drift
is then the mean of a pull times a quadratic in e whose coefficients are sums Σ gʲsᵏ over all tokens
and over the needles. The mean over e is Gauss–Hermite where scores spread little, else the
trapezoid rule with nodes in proportion to their spread: both to 10⁻⁴. That over g is a cloud of
Sobol points. Tokens are exchangeable, so both groups are drawn from their largest value downwards:
in these coordinates softmax sums are nearly low-dimensional. A bag with needles and one without
have the same noise, so that what cancels between the classes does so at every point.
Chapter 10, thm-10-flow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri_exp

from ..data.tokens import SparseTokens
from ..kit.losses import SMOOTH, get_loss
from ..kit.nodes import sobol

Array = np.ndarray
POWERS = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2))
NARROW, WIDE = 1.2, 1.8  # sd of a score up to which 8 nodes, and 16, of Gauss–Hermite do
_BLOCK = 2**17  # entries of the largest array of pulls


class Cloud(NamedTuple):
    """Noise along q̂ of the needles (R, points) and of the straws (L − R, points)."""

    needles: Array
    straws: Array


class State(NamedTuple):
    """⟨q, ξ⟩, ⟨w, ξ⟩, |q|², |w|², ⟨q, w⟩ and b."""

    query: float
    readout: float
    query_square: float
    readout_square: float
    overlap: float
    bias: float


class Rates(NamedTuple):
    """η of the query, of the readout and of the intercept."""

    q: float
    w: float
    b: float


class Bag(NamedTuple):
    """Label, its probability, and Σ gʲsᵏ by (j, k): over the needles and over all tokens."""

    y: int
    share: float
    needles: dict[tuple[int, int], Array]
    all: dict[tuple[int, int], Array]


class Frame(NamedTuple):
    """|q|, ⟨w, q̂⟩, ⟨ξ, q̂⟩, w_⊥ and the part of ξ along w_⊥."""

    size: float
    along: float
    cos: float
    rest: float
    tilt: float


def falling_points(u: Array) -> Array:
    """Standard normals (count, points) from uniforms, sorted: each drawn given those above it."""
    share = np.arange(len(u), 0, -1)[:, None]
    return ndtri_exp(np.cumsum(np.log(u) / share, axis=0))


def sample_cloud(model: SparseTokens, bits: int, seed: int) -> Cloud:
    """2^bits scrambled Sobol points."""
    u = sobol(model.L, bits, np.random.default_rng(seed)).T
    return Cloud(falling_points(u[: model.R]), falling_points(u[model.R :]))


def frame_of(state: State) -> Frame:
    """Coordinates of w and ξ along q̂ and across; lengths are kept off zero."""
    size = math.sqrt(max(state.query_square, 1e-24))
    along, cos = state.overlap / size, state.query / size
    rest = math.sqrt(max(state.readout_square - along**2, 1e-24))
    return Frame(size, along, cos, rest, (state.readout - cos * along) / rest)


def _sums(g: Array, logits: Array, peak: Array) -> list[Array]:
    e = np.exp(logits - peak)
    ge, ee = g * e, e * e
    pairs = ((e, e), (ee, e), (ee, ee), (ge, e), (ge, ee), (ge, g), (ge, ge))
    e2, e3, e4, g1e2, g1e3, g2e1, g2e2 = (np.einsum("ln,ln->n", a, b) for a, b in pairs)
    return [e.sum(0), e2, e3, e4, ge.sum(0), g1e2, g1e3, g2e1, g2e2]


def bags(model: SparseTokens, cloud: Cloud, size: float, query: float) -> Iterator[Bag]:
    """Both classes at sharpness |q| = `size` and ⟨q, ξ⟩ = `query`."""
    logits = size * cloud.straws
    ground = logits.max(axis=0) if len(logits) else np.full(cloud.needles.shape[1], -np.inf)
    straws = _sums(cloud.straws, logits, ground)
    for y, share in ((1, model.pi), (-1, 1 - model.pi)):
        logits = size * cloud.needles + (model.theta * query if y > 0 else 0.0)
        peak = np.maximum(logits.max(axis=0), ground)
        needles, drop = _sums(cloud.needles, logits, peak), np.exp(ground - peak)
        total = needles[0] + drop * straws[0]
        own, both = {}, {}
        for (j, k), a, b in zip(POWERS, needles, straws, strict=True):
            own[j, k] = a / total**k
            both[j, k] = own[j, k] + b * (drop / total) ** k
        yield Bag(y, share, own, both)


def _score(bag: Bag, frame: Frame, height: float) -> tuple[Array, Array]:
    """Mean and spread of ⟨s, v⟩ given g; a needle adds `height` to its v."""
    mean = frame.along * bag.all[1, 1] + height * bag.needles[0, 1]
    return mean, frame.rest * np.sqrt(bag.all[0, 2])


def products(bag: Bag, frame: Frame, h: dict[str, float]) -> dict[str, tuple[Array, ...]]:
    """Coefficients of 1, e, e² in what the pull multiplies; a needle adds `h` along ξ, q and w."""
    N, M, c, w, a = bag.needles, bag.all, frame.along, frame.rest, h["w"]
    t0, r2 = c * M[1, 1] + a * N[0, 1], M[0, 2]
    r, third = np.sqrt(r2), M[0, 3] / r2
    so2 = c * c * M[2, 1] + 2 * c * a * N[1, 1] + a * a * N[0, 1] - t0**2
    s2o = c * M[1, 2] + a * N[0, 2] - t0 * r2
    s3o = c * M[1, 3] + a * N[0, 3] - t0 * M[0, 3]
    cross = c * M[1, 2] + a * N[0, 2]
    s2o2 = c * c * M[2, 2] + 2 * c * a * N[1, 2] + a * a * N[0, 2] - 2 * t0 * cross + t0**2 * r2

    def with_k(noise: float, needle: float) -> tuple[Array, Array]:
        """Σ k_ℓ x_ℓ for tokens x = noise·g + needle·v."""
        first, second = noise * M[1, 1] + needle * N[0, 1], noise * M[1, 2] + needle * N[0, 2]
        mixed = (noise * a + needle * c) * N[1, 1] + a * needle * N[0, 1]
        return noise * c * M[2, 1] + mixed - t0 * first, w * (second / r - r * first)

    kh, tilt = with_k(frame.cos, h["xi"]), frame.tilt
    return {
        "k·h": (
            kh[0] + tilt * w * (1 - third),
            kh[1] + tilt * s2o / r,
            tilt * w * (third - r2),
        ),
        "k·u": with_k(frame.size, h["q"]),
        "k·v": (so2 + w * w * (1 - third), 2 * w * s2o / r, w * w * (third - r2)),
        "k·k": (
            s2o2 + w * w * (r2 - M[0, 4] / r2),
            2 * w * (s3o / r - r * s2o),
            w * w * (M[0, 4] / r2 - 2 * M[0, 3] + r2 * r2),
        ),
        "s·k": (s2o, w * (M[0, 3] / r - r * r2)),
        "s·h": (frame.cos * M[1, 1] + h["xi"] * N[0, 1], tilt * r),
        "s·u": (frame.size * M[1, 1] + h["q"] * N[0, 1],),
        "s·v": (t0, w * r),
        "s·s": (r2,),
    }


@lru_cache(maxsize=8)
def _rule(order: int, even: bool) -> tuple[Array, Array]:
    """Nodes e, and weights of 1, e and e²; Gauss–Hermite or evenly spaced."""
    if even:
        e = np.linspace(-6.5, 6.5, order)
        weight = np.exp(-(e**2) / 2)
    else:
        e, weight = np.polynomial.hermite_e.hermegauss(order)
    return e, weight / weight.sum() * np.array([e**0, e, e**2])


def normal_rule(spread: float) -> tuple[Array, Array]:
    """Nodes for the mean over e ~ N(0, 1) of a pull at scores of standard deviation ≤ `spread`.

    ℓ'(m + spread·e) has poles at a distance π/spread from the real axis. There the trapezoid rule
    of step h errs by exp(−2π²/(h·spread)); Gauss–Hermite would need nodes like spread².
    """
    if spread < WIDE:
        return _rule(8 if spread < NARROW else 16, False)
    return _rule(2 ** math.ceil(math.log2(12 * spread)), True)


def _pulls(
    gradient: Callable[..., Array], y: int, mean: Array, spread: Array, widest: float
) -> tuple[Array, Array]:
    """Means over e of the pull times 1, e and e² (3, points), and of its square."""
    e, powers = normal_rule(widest)
    parts, size = [], max(1, _BLOCK // len(e))
    for k in range(0, len(mean), size):
        part = slice(k, k + size)
        pull = gradient(mean[part, None] + spread[part, None] * e, y)
        first, second = powers @ pull.T, powers @ (pull * pull).T
        parts.append((first, second))
    first, second = np.concatenate(parts, axis=2)
    return first, second


def drift(state: State, model: SparseTokens, cloud: Cloud, loss: str, rates: Rates) -> Array:
    """The time derivative of the state, time in samples per dimension."""
    frame, gradient = frame_of(state), get_loss(loss, SMOOTH).first
    moved = np.zeros(6)
    for bag in bags(model, cloud, frame.size, state.query):
        θ = model.theta * (bag.y > 0)
        height = {"xi": θ, "q": θ * state.query, "w": θ * state.readout}
        mean, spread = _score(bag, frame, height["w"])
        first, second = _pulls(gradient, bag.y, mean + state.bias, spread, frame.rest)
        steps = products(bag, frame, height)

        def mean_of(name: str, pulls: Array, steps: dict = steps) -> float:
            parts = zip(pulls, steps[name], strict=False)
            return sum(float(np.mean(p * x)) for p, x in parts)

        g = {name: mean_of(name, first) for name in ("k·h", "k·u", "k·v", "s·h", "s·u", "s·v")}
        gg = {name: mean_of(name, second) for name in ("k·k", "s·k", "s·s")}
        moved += bag.share * np.array([
            -rates.q * g["k·h"],
            -rates.w * g["s·h"],
            -2 * rates.q * g["k·u"] + rates.q**2 * gg["k·k"],
            -2 * rates.w * g["s·v"] + rates.w**2 * gg["s·s"],
            -rates.q * g["k·v"] - rates.w * g["s·u"] + rates.q * rates.w * gg["s·k"],
            -rates.b * float(first[0].mean()),
        ])  # fmt: skip
    return moved


def flow_error(state: State, model: SparseTokens, cloud: Cloud) -> float:
    """The probability of a wrong label on a fresh bag."""
    frame, error = frame_of(state), 0.0
    for bag in bags(model, cloud, frame.size, state.query):
        mean, spread = _score(bag, frame, model.theta * state.readout * (bag.y > 0))
        error += bag.share * float(np.mean(ndtr(-bag.y * (mean + state.bias) / spread)))
    return error
