"""Three classifiers, one feature law: f = θ a ξ + c q̂ + r z.

Pooled, vectorized and attention features differ only in the joint law of the label y and the
coefficients (a, c, r), and in how many copies of the token dimension the readout sees. Everything
downstream (readouts, asymptotics, capacity) takes a `FeatureLaw` and knows nothing of classifiers.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, softmax
from scipy.stats import qmc

from utils.model import SparseTokens
from utils.validation import check_real


class Nodes(NamedTuple):
    """A quadrature rule for the law of (y, a, c, r): five arrays (m,), the weights summing to 1."""

    y: np.ndarray
    a: np.ndarray
    c: np.ndarray
    r: np.ndarray
    weight: np.ndarray


class Features(NamedTuple):
    """A sample of the law: F (n, copies·d) and labels y (n,)."""

    F: np.ndarray
    y: np.ndarray


class Scores(NamedTuple):
    """Law of the score of a fixed readout: a mixture over nodes of N(mean, sd²) with label y."""

    y: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    weight: np.ndarray


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

    name: str = "law"
    query: bool = False
    cos: float = 0.0
    copies: int = 1

    def __init__(self, theta: float, pi: float) -> None:
        self.theta, self.pi = theta, pi

    def coefficients(
        self, y: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw (a, c, r), one triple for each label in y."""
        raise NotImplementedError

    @cached_property
    def nodes(self) -> Nodes:
        """Deterministic quadrature nodes of (y, a, c, r)."""
        raise NotImplementedError

    def sample(self, n: int, d: int, rng: np.random.Generator) -> Features:
        """Draw n features at token dimension d; ξ is the first basis vector, q̂ lies in the first two."""
        y = np.where(rng.random(n) < self.pi, 1, -1)
        a, c, r = self.coefficients(y, rng)
        F = rng.standard_normal((n, d)) * r[:, None]
        if not self.query:
            F[:, 0] += self.theta * a
            return Features(F, y)
        sine = np.sqrt(1 - self.cos**2)
        along = c + self.theta * self.cos * a
        across = F[:, 1] + self.theta * sine * a
        F[:, 0] = self.cos * along + sine * across
        F[:, 1] = sine * along - self.cos * across
        return Features(F, y)

    def scores(self, w: np.ndarray, b: float) -> Scores:
        """The law of ⟨f, w⟩ + b for a fixed readout, conditioned on the nodes."""
        y, a, c, r, weight = self.nodes
        overlap = 0.0
        if self.query:
            overlap = self.cos * w[0] + np.sqrt(1 - self.cos**2) * w[1]
        mean = self.theta * a * w[0] + c * overlap + b
        return Scores(y, mean, r * np.sqrt(w @ w - overlap**2), weight)


class _TwoGaussians(FeatureLaw):
    """Deterministic coefficients given the label."""

    def __init__(self, name, theta, pi, positive, negative, copies=1):  # (a, r) of each class
        super().__init__(theta, pi)
        self.name, self.copies = name, copies
        self._a = np.array([positive[0], negative[0]])
        self._r = np.array([positive[1], negative[1]])

    def coefficients(self, y, rng):
        index = (y < 0).astype(int)
        return self._a[index], np.zeros(len(y)), self._r[index]

    @cached_property
    def nodes(self) -> Nodes:
        weight = np.array([self.pi, 1 - self.pi])
        return Nodes(np.array([1, -1]), self._a, np.zeros(2), self._r, weight)


class _Attention(FeatureLaw):
    name, query = "attention", True

    def __init__(self, model: SparseTokens, temperature: float, cos: float) -> None:
        super().__init__(model.theta, model.pi)
        self.model, self.temperature, self.cos = model, temperature, cos

    def _reduce(self, y, g):
        m = self.model
        shift = np.zeros(m.L)
        shift[: m.R] = m.theta * self.cos
        s = softmax(self.temperature * (g + shift * (y[:, None] > 0)), axis=1)
        a = np.where(y > 0, s[:, : m.R].sum(axis=1), 0.0)
        return a, (s * g).sum(axis=1), np.sqrt((s * s).sum(axis=1))

    def coefficients(self, y, rng):
        return self._reduce(y, rng.standard_normal((len(y), self.model.L)))

    @cached_property
    def nodes(self) -> Nodes:
        g = ndtri(qmc.Sobol(self.model.L, seed=0).random(2**12))
        parts = []
        for label in (1, -1):
            y = np.full(len(g), label)
            share = self.pi if label > 0 else 1 - self.pi
            parts.append((y, *self._reduce(y, g), np.full(len(g), share / len(g))))
        return Nodes(*map(np.concatenate, zip(*parts, strict=True)))


def pooled(model: SparseTokens) -> FeatureLaw:
    """Mean-pooled features Xᵀ1/L: a = R/L for positives, r = 1/√L."""
    r = model.L**-0.5
    return _TwoGaussians("pooled", model.theta, model.pi, (model.R / model.L, r), (0.0, r))


def vectorized(model: SparseTokens) -> FeatureLaw:
    """All Ld entries of X; its nodes are the equivalent two Gaussians at distance δ."""
    a = model.R / np.sqrt(model.L)
    return _TwoGaussians("vectorized", model.theta, model.pi, (a, 1.0), (0.0, 1.0), copies=model.L)


def gaussian_mixture(
    *, mean: float = 1.0, var_pos: float, var_neg: float, pi: float = 0.5
) -> FeatureLaw:
    """Two Gaussian classes at ±mean along ξ with variances var_pos and var_neg."""
    return _TwoGaussians("mixture", mean, pi, (1.0, var_pos**0.5), (-1.0, var_neg**0.5))


def attention(model: SparseTokens, *, temperature: float, cos: float) -> FeatureLaw:
    """Attention features Xᵀ softmax(βXq) with T = β|q| and s_q = cos."""
    return _Attention(model, check_real("temperature", temperature, 0), check_real("cos", cos, -1, 1))
