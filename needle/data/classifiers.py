"""Three classifiers, one feature law: f = θ a ξ + c q̂ + r z.

Pooled, vectorized and attention features differ only in the joint law of the label y and the
coefficients (a, c, r), and in how many copies of the token dimension the readout sees: each is a
`FeatureLaw`.

The attention law is a cloud of quasi-random points merged into few nodes (`needle.kit.nodes`).
With the default `resolution`, test errors differ from those of the whole cloud by about 2e-4 of
their size at most above 1 %, and 1e-3 at 0.1 % (`tests/data/test_classifiers.py`).
Chapter 1, prop-1-projection and prop-1-law.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, softmax

from ..kit.checks import check_integer, check_is, check_real
from ..kit.nodes import (
    CLOUD,
    cells,
    corners,
    falling_from,
    falling_sums,
    group_widths,
    softmax_sums,
)
from ..kit.records import Alignment, ConvergenceError
from ..kit.tails import rare_mean
from .law import FeatureLaw, Nodes, TwoGaussians, in_blocks, misread_parts
from .tokens import SparseTokens, check_model

Array = np.ndarray
_RARE = 3e-4  # an error that nodes may tell
_RESOLVED, _SHARED = 100.0, 50.0  # points that must share an error: of a whole cloud, of a tail


@dataclass(frozen=True, eq=False, kw_only=True)
class _Attention(FeatureLaw):
    """Coefficients of Xᵀ softmax(βXq) at sharpness T = β|q|."""

    model: SparseTokens = field(repr=False)
    temperature: float
    resolution: int | None
    bits: int = CLOUD
    divided: dict[int, Array] | None = field(default=None, repr=False)

    @property
    def draws(self) -> int:
        return max(500, min(4000, 2**20 // self.model.L))

    def coefficients(self, y: Array, rng: np.random.Generator | None) -> tuple[Array, Array, Array]:
        return in_blocks(self._block, y, self.model.L, rng)

    def _block(self, y: Array, rng: np.random.Generator) -> Array:
        R = self.model.R
        g = rng.standard_normal((len(y), self.model.L))
        s = self.temperature * g
        s[:, :R] += self.temperature * self.theta * self.cos * (y[:, None] > 0)
        s = softmax(s, axis=1)
        a = s[:, :R].sum(axis=1) * (y > 0)
        return np.array([a, np.einsum("ij,ij->i", s, g), np.sqrt(np.einsum("ij,ij->i", s, s))])

    def cloud(self, label: int) -> tuple[Array, Array]:
        """(a, c, r) of one class at 2^bits quasi-random points, shape (3, 2^bits), and weights."""
        m, T = self.model, self.temperature
        counts = (m.R, m.L - m.R) if label > 0 else (0, m.L)
        sums, weight = falling_sums(*counts, T, self.bits)
        return self._blend(*sums), weight

    def _blend(self, signal: tuple[Array, Array], noise: tuple[Array, Array]) -> Array:
        """(a, c, r) from the `softmax_sums` of both groups."""
        (peak, P), (ground, S) = signal, noise
        peak = peak + self.temperature * self.theta * self.cos
        high = np.maximum(peak, ground)
        p, s = np.exp(peak - high), np.exp(ground - high)
        total = p * P[0] + s * S[0]
        spread = np.sqrt(p * p * P[2] + s * s * S[2])
        return np.array([p * P[0], p * P[1] + s * S[1], spread]) / total

    def misread(
        self, signal: float, along: float, rest: float, bias: float, *, fine: bool = False
    ) -> float:
        """From the nodes; rare errors, or all if `fine`, from the cloud where it tells, or a tail.

        A cloud tells what enough of its points share. What is below 1e-16 is 0.
        """
        place = signal, along, rest, bias
        error = super().misread(*place)
        if (error > _RARE and not fine) or not rest > 0:
            return error
        parts, found = misread_parts(scores := self.limit_scores(*place, fine=True)), 0.0
        for label, share in (1, self.pi), (-1, 1 - self.pi):
            one = parts[scores.y == label]
            error, power = float(one.sum()), float(one @ one)
            told = error**2 > max(_RESOLVED * 2.0 ** (self.bits - CLOUD), 8) * power
            found += error if told else share * self._tail(label, *place)
        return found

    def _tail(self, label: int, signal: float, along: float, rest: float, bias: float) -> float:
        """The share of one class that is misread, however small."""
        m, T = self.model, self.temperature
        counts = (m.R, m.L - m.R) if label > 0 else (0, m.L)

        def log_misread(x: Array) -> Array:
            groups = falling_from(np.minimum(log_ndtr(x), -1e-306), x, *counts)  # below log 1
            sums = (softmax_sums(*part, k, T) for part, k in zip(groups, counts, strict=True))
            a, c, r = self._blend(*sums)
            mean = self.theta * a * signal + c * along + bias
            return log_ndtr(-label * mean / (r * rest))

        error, points = rare_mean(log_misread, sum(group_widths(*counts)))
        if points < _SHARED and not error <= 1e-16:
            raise ConvergenceError(
                f"an error rate of {self.name} near {error:.0e} cannot be told from its law", error
            )
        return error if error > 1e-16 else 0.0

    @property
    def points(self) -> Nodes:
        """Both clouds."""
        parts = []
        for label, share in (1, self.pi), (-1, 1 - self.pi):
            (a, c, r), weight = self.cloud(label)
            parts.append((np.full(len(r), label), a, c, r, share * weight))
        return Nodes(*map(np.concatenate, zip(*parts, strict=True)))

    @cached_property
    def nodes(self) -> Nodes:
        """Four points in each cell of the two clouds, two thirds of them for the positives."""
        if self.resolution is None:
            return self.points
        parts = []
        for label, share in (1, self.pi), (-1, 1 - self.pi):
            cloud, weight = self.cloud(label)
            (a, c, r), weight = corners(cloud, weight, self._cells[label])
            r = np.maximum(r, cloud[2].min() / 2)
            parts.append((np.full(len(a), label), a, c, r, share * weight))
        return Nodes(*map(np.concatenate, zip(*parts, strict=True)))

    @cached_property
    def _cells(self) -> dict[int, Array]:
        """The cell of each point, of both clouds."""
        if self.divided is not None:
            return self.divided
        scale, found = np.array([[self.theta], [1.0], [1.0]]), {}
        for label in (1, -1):
            cloud, weight = self.cloud(label)
            most = (self.resolution or 24) * (3 + label) // 24
            found[label] = cells(scale * cloud, weight, most)
        return found

    def beside(self, temperature: float, cos: float) -> FeatureLaw:
        """The law at settings nearby, each point in the cell it has here: smooth in both."""
        return replace(
            self, temperature=temperature, cos=cos, divided=self._cells if self.resolution else None
        )


def pooled(model: SparseTokens) -> FeatureLaw:
    """Mean-pooled features Xᵀ1/L: a = R/L for positives (0 for negatives), c = 0, r = 1/√L.

    Examples
    --------
    >>> law = pooled(SparseTokens(L=100, R=2, theta=3.0, pi=0.5))
    >>> law.nodes.a.tolist(), law.nodes.r.tolist()
    ([0.02, 0.0], [0.1, 0.1])
    >>> law.sample(5, 20, np.random.default_rng(0)).F.shape
    (5, 20)
    """
    m = check_model(model)
    r = m.L**-0.5
    return TwoGaussians(
        name="pooled", theta=m.theta, pi=m.pi, positive=(m.R / m.L, r), negative=(0.0, r)
    )


def gaussian_mixture(
    *, mean: float = 1.0, var_pos: float, var_neg: float, pi: float = 0.5
) -> FeatureLaw:
    """Two Gaussian classes at ±mean along ξ: a = y, c = 0, r² = var_pos or var_neg, θ = mean.

    Examples
    --------
    >>> gaussian_mixture(var_pos=4.0, var_neg=1.0).nodes.r.tolist()
    [2.0, 1.0]
    """
    mean = check_real("mean", mean, 0)
    var_pos = check_real("var_pos", var_pos, 0, open_low=True)
    var_neg = check_real("var_neg", var_neg, 0, open_low=True)
    pi = check_real("pi", pi, 0, 1, open_low=True, open_high=True)
    return TwoGaussians(
        name="mixture",
        theta=mean,
        pi=pi,
        positive=(1.0, var_pos**0.5),
        negative=(-1.0, var_neg**0.5),
    )


def attention(
    model: SparseTokens,
    *,
    temperature: float,
    cos: float,
    resolution: int | None = 1536,
    bits: int = CLOUD,
) -> FeatureLaw:
    """Attention features Xᵀ softmax(βXq), for a query q independent of the sample.

    With s = softmax(T(θ s_q v + g)), g ~ N(0, I_L): a = ⟨s, v⟩, c = ⟨s, g⟩, r = |s|.

    Parameters
    ----------
    temperature : T = β|q| ≥ 0; at 0 this is the pooled law, without a special direction
    cos : s_q = cosine of q with ξ, in [−1, 1]
    resolution : number of quadrature nodes, from 24 to 2¹⁵; None keeps all points of the cloud, the
        cheaper way if the law is used once, and with the square loss
    bits : log₂ of the points in the cloud, from 8 to 15. For a search: with 11 bits and 96 nodes
        a law costs a tenth, and errors differ by about half a per cent of their size

    Examples
    --------
    >>> law = attention(SparseTokens(L=10, R=1, theta=5.0, pi=0.5), temperature=2.0, cos=0.8)
    >>> y, a, c, r, weight = law.nodes
    >>> round(float(weight[y > 0] @ a[y > 0] / law.pi), 2)  # mean attention on the signal
    0.94
    >>> law.sample(5, 20, np.random.default_rng(0)).F.shape
    (5, 20)
    """
    m = check_model(model)
    T, cos = check_real("temperature", temperature, 0), check_real("cos", cos, -1, 1)
    if resolution is not None:
        resolution = check_integer("resolution", resolution, 24, 2**CLOUD)
    bits = check_integer("bits", bits, 8, CLOUD)
    r = m.L**-0.5
    if T == 0:
        return TwoGaussians(
            name="attention", theta=m.theta, pi=m.pi, positive=(m.R / m.L, r), negative=(0.0, r)
        )
    return _Attention(
        name="attention", theta=m.theta, pi=m.pi, cos=cos, query=True, model=m, temperature=T,
        resolution=resolution, bits=bits,
    )  # fmt: skip


def learned_attention(
    model: SparseTokens, alignment: Alignment, *, scale: float, resolution: int | None = 1536
) -> FeatureLaw:
    """The attention law of a learned query: sharpness T = β|q| and cosine of an `Alignment`.

    Parameters
    ----------
    alignment : predicted or simulated, of a query q independent of the samples to come
    scale : β ≥ 0, what multiplies the scores ⟨x, q⟩; for a chosen sharpness T instead, say
        `attention(model, temperature=T, cos=alignment.query_cos)`
    resolution : as in `attention`

    Examples
    --------
    >>> from needle.steps.alignment import predict_alignment
    >>> model = SparseTokens(L=10, R=1, theta=5.0, pi=0.5)
    >>> alignment = predict_alignment(model, 4.0)
    >>> law = learned_attention(model, alignment, scale=2 / alignment.query_norm)
    >>> round(law.temperature, 12), round(law.cos, 3)
    (2.0, 0.977)
    """
    alignment = check_is("alignment", alignment, Alignment, "an Alignment")
    T = check_real("scale", scale, 0) * alignment.query_norm
    return attention(model, temperature=T, cos=alignment.query_cos, resolution=resolution)
