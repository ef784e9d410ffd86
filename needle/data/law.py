"""What every feature of a sample is: f = θ a ξ + c q̂ + r z, with the law of (y, a, c, r) left open.

Everything downstream (readouts, asymptotics, capacity) takes a `FeatureLaw` and knows nothing of
the classifiers in `needle.data.classifiers`, which say what (a, c, r) are. Chapter 1, prop-1-law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ..kit.checks import check_array, check_integer, check_real, check_rng

Array = np.ndarray
_BLOCK = 2**22  # entries of the largest array of tokens


class Nodes(NamedTuple):
    """A quadrature rule for the law of (y, a, c, r): five arrays (m,), the weights summing to 1."""

    y: Array
    a: Array
    c: Array
    r: Array
    weight: Array


class Features(NamedTuple):
    """A sample of the law: F (n, copies·d) and labels y (n,)."""

    F: Array
    y: Array


class Scores(NamedTuple):
    """Law of the score of a fixed readout: a mixture of N(mean, sd²) with label y."""

    y: Array
    mean: Array
    sd: Array
    weight: Array


def in_blocks(
    draw: Callable[[Array, np.random.Generator], Array],
    y: Array,
    L: int,
    rng: np.random.Generator | None,
) -> tuple[Array, Array, Array]:
    """a, c, r of samples of L tokens each with labels y, drawn in blocks of bounded memory."""
    rng, step = check_rng(rng), max(1, _BLOCK // L)
    parts = [draw(y[k : k + step], rng) for k in range(0, len(y), step)]
    a, c, r = np.concatenate(parts, axis=1)
    return a, c, r


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureLaw:
    """f = θ a ξ + c q̂ + r z with z ~ N(0, I) on the complement of q̂; y ∈ {−1, +1}, P(+1) = π.

    Attributes
    ----------
    name : the classifier this law belongs to
    theta, pi : signal strength and share of positives
    cos : s_q = ⟨ξ, q̂⟩ (0 where there is no query)
    query : whether there is a special direction q̂; without one c = 0 and z fills the whole space
    copies : feature dimension divided by the token dimension d (L for vectorized, otherwise 1)
    """

    name: str
    theta: float
    pi: float
    cos: float = 0.0
    query: bool = False
    copies: int = 1

    def coefficients(self, y: Array, rng: np.random.Generator | None) -> tuple[Array, Array, Array]:
        """Draw (a, c, r) exactly, one triple for each label in y."""
        raise NotImplementedError

    @cached_property
    def nodes(self) -> Nodes:
        """Deterministic quadrature nodes of (y, a, c, r)."""
        raise NotImplementedError

    @property
    def points(self) -> Nodes:
        """The finest rule there is, before points are merged into nodes."""
        return self.nodes

    def sample(self, n: int, d: int, rng: np.random.Generator) -> Features:
        """Draw n features at token dimension d; ξ = e₁ and q̂ = s_q e₁ + √(1−s_q²) e₂.

        Exact at every d, and O(d) a sample: no token is ever drawn in R^d.
        """
        n, d = check_integer("n", n, 1), check_integer("d", d, 2 if self.query else 1)
        rng = check_rng(rng)
        y = np.where(rng.random(n) < self.pi, 1, -1)
        a, c, r = self.coefficients(y, rng)
        F = rng.standard_normal((n, d))
        F *= r[:, None]
        if not self.query:
            F[:, 0] += self.theta * a
            return Features(F, y)
        cos, sine = self.cos, np.sqrt(1 - self.cos**2)
        along, across = c + self.theta * cos * a, F[:, 1] + self.theta * sine * a
        F[:, 0], F[:, 1] = cos * along + sine * across, sine * along - cos * across
        return Features(F, y)

    @property
    def draws(self) -> int:
        """How many (a, c, r) of each class `scores` draws; 1 where a class has only one."""
        return 4000

    def scores(self, w: Array, b: float, rng: np.random.Generator | None = None) -> Scores:
        """The law of ⟨f, w⟩ + b for a fixed readout w, at fresh coefficients of both classes.

        Given (a, c, r) the score is N(θa w₁ + c⟨w, q̂⟩ + b, r²|w|²), with |w|² reduced by ⟨w, q̂⟩²
        where there is a query. The `nodes` of the theory are not used: a simulation must not share
        them. `rng` is needed where (a, c, r) varies within a class.
        """
        w, b = check_array("w", w, "d"), check_real("b", b)
        if self.query and len(w) < 2:
            raise ValueError(f"w of shape {w.shape} is not allowed: w must have 2 entries or more")
        y = np.repeat([1, -1], self.draws)
        a, c, r = self.coefficients(y, rng)
        overlap = self.cos * w[0] + np.sqrt(1 - self.cos**2) * w[1] if self.query else 0.0
        spread = np.sqrt(max(w @ w - overlap**2, 0.0))
        weight = np.where(y > 0, self.pi, 1 - self.pi) / self.draws
        return Scores(y, self.theta * a * w[0] + c * overlap + b, r * spread, weight)

    def signal(self, w: Array) -> float:
        """⟨w, ξ⟩."""
        return float(w[0])

    def misread(
        self, signal: float, along: float, rest: float, bias: float, *, fine: bool = False
    ) -> float:
        """P(y(⟨f, w⟩ + b) ≤ 0); arguments as in `limit_scores`."""
        return float(misread_parts(self.limit_scores(signal, along, rest, bias, fine=fine)).sum())

    def limit_scores(
        self, signal: float, along: float, rest: float, bias: float, *, fine: bool = False
    ) -> Scores:
        """The law of ⟨f, w⟩ + b at the nodes (all points if `fine`) for w with given overlaps.

        ⟨w, ξ⟩ = signal and ⟨w, q̂⟩ = along; `rest` is the length of w across q̂.
        """
        y, a, c, r, weight = self.points if fine else self.nodes
        return Scores(y, self.theta * a * signal + c * along + bias, r * rest, weight)


def misread_parts(scores: Scores) -> Array:
    """What each Gaussian of a mixture of scores adds to the error; half a score of exactly 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.nan_to_num(-scores.y * scores.mean / scores.sd, nan=0.0)
    return scores.weight * ndtr(z)


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoGaussians(FeatureLaw):
    """(a, r) fixed by the label: one pair for positives, one for negatives."""

    positive: tuple[float, float]
    negative: tuple[float, float]

    @property
    def draws(self) -> int:
        return 1

    def coefficients(self, y: Array, rng: np.random.Generator | None) -> tuple[Array, Array, Array]:
        a, r = np.where(y[:, None] > 0, self.positive, self.negative).T
        return a, np.zeros(len(y)), r

    @cached_property
    def nodes(self) -> Nodes:
        a, r = np.array([self.positive, self.negative]).T
        return Nodes(np.array([1, -1]), a, np.zeros(2), r, np.array([self.pi, 1 - self.pi]))
