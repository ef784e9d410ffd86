"""Features of the excess rule: tokens pooled with the weights (h − t²/h)₊ of their scores h.

Along a query q̂ the score of a token is h = ⟨x, q̂⟩, and f = Σ φ(h_ℓ) x_ℓ with φ(h) = h − t²/h above
the level t and 0 below. Tokens below t are not read at all. What is across q̂ knows nothing of h but
through needles, so f follows the same law as the features of attention,

    f = θ a ξ + c q̂ + r z,   a = Σ_needles φ,   c = Σ φ g,   r² = Σ φ²,

g the noise along q̂, and ⟨f, q̂⟩ = Σ(h² − t²), the statistic of `oracle_error("excess")`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import softmax

from ..kit.checks import check_array, check_integer, check_real, check_rng
from ..kit.nodes import merge
from .law import FeatureLaw, Nodes, in_blocks
from .tokens import SparseTokens, check_model

Array = np.ndarray
_BLOCK = 2**22  # entries of the largest array of tokens
CLOUD = 2**14  # bags of each class behind the nodes


@dataclass(frozen=True, eq=False, kw_only=True)
class _Excess(FeatureLaw):
    """Coefficients of Σ(h − t²/h)₊ x."""

    model: SparseTokens = field(repr=False)
    level: float
    resolution: int

    def coefficients(self, y: Array, rng: np.random.Generator | None) -> tuple[Array, Array, Array]:
        return in_blocks(self._block, y, self.model.L, rng)

    def _block(self, y: Array, rng: np.random.Generator) -> Array:
        R = self.model.R
        g = rng.standard_normal((len(y), self.model.L))
        h = g.copy()
        h[:, :R] += self.theta * self.cos * (y[:, None] > 0)
        weight = excess_weight(h, self.level)
        a = weight[:, :R].sum(axis=1) * (y > 0)
        return np.array([a, (weight * g).sum(axis=1), np.sqrt((weight**2).sum(axis=1))])

    @cached_property
    def points(self) -> Nodes:
        """Bags drawn with a fixed seed; where no token is above the level, r is a small number."""
        y = np.repeat([1, -1], CLOUD)
        a, c, r = self.coefficients(y, np.random.default_rng(0))
        share = np.where(y > 0, self.pi, 1 - self.pi) / CLOUD
        least = 1e-2 * float(r.mean()) or 1e-3
        return Nodes(y, a, c, np.maximum(r, least), share)

    @cached_property
    def nodes(self) -> Nodes:
        """The points of each class, merged."""
        y, a, c, r, weight = self.points
        parts = []
        for label in (1, -1):
            mine = y == label
            scale, least = np.array([self.theta, 1, 1]), float(r.min()) / 2
            cloud, at = np.unique([a[mine], c[mine], r[mine]], axis=1, return_inverse=True)
            mass = np.bincount(at.ravel(), weight[mine])
            if len(mass) > self.resolution:
                cloud, mass = merge(cloud, mass, scale, self.resolution // 8)
            p, q, s = cloud
            parts.append((np.full(len(p), label), p, q, np.maximum(s, least), mass))
        return Nodes(*map(np.concatenate, zip(*parts, strict=True)))


def excess_weight(h: Array, level: float) -> Array:
    """φ(h) = h − t²/h above the level t ≥ 0, and 0 below.

    >>> excess_weight(np.array([-3.0, 1.0, 2.0, 4.0]), 2.0)
    array([0., 0., 0., 3.])
    """
    above = h > level
    return np.where(above, h - level**2 / np.where(above, h, 1.0), 0.0)


def excess(model: SparseTokens, *, level: float, cos: float, resolution: int = 1024) -> FeatureLaw:
    """Features Σ(h − t²/h)₊ x of the excess rule, h = ⟨x, q̂⟩, for an independent query.

    Parameters
    ----------
    level : t ≥ 0, in units of the noise along q̂
    cos : s_q = cosine of q with ξ, in [−1, 1]
    resolution : number of quadrature nodes, about

    Examples
    --------
    >>> law = excess(SparseTokens(L=100, R=4, theta=5.0, pi=0.5), level=2.0, cos=0.8)
    >>> y, a, c, r, weight = law.nodes
    >>> round(float(weight[y > 0] @ a[y > 0] / law.pi), 1)  # four needles at a height of about 4
    11.8
    >>> law.sample(5, 20, np.random.default_rng(0)).F.shape
    (5, 20)
    """
    m = check_model(model)
    level, cos = check_real("level", level, 0), check_real("cos", cos, -1, 1)
    resolution = check_integer("resolution", resolution, 24, CLOUD)
    return _Excess(
        name="excess", theta=m.theta, pi=m.pi, cos=cos, query=True, model=m, level=level,
        resolution=resolution,
    )  # fmt: skip


def pooled_tokens(
    model: SparseTokens,
    n: int,
    q: Array,
    rng: np.random.Generator,
    *,
    temperature: float,
    level: float,
) -> tuple[Array, Array, Array]:
    """Features of the softmax and of the excess rule from the same literal tokens, and labels.

    `q` (d,) is the query, ξ = e₁; T = `temperature` multiplies the scores ⟨x, q̂⟩, t is the `level`.

    >>> q, rng = np.array([1.0, 0.5, 0.0]), np.random.default_rng(0)
    >>> model = SparseTokens(L=10, R=1, theta=3.0, pi=0.5)
    >>> soft, tall, y = pooled_tokens(model, 6, q, rng, temperature=1.0, level=1.5)
    >>> soft.shape, tall.shape, y.shape
    ((6, 3), (6, 3), (6,))
    """
    m, n, q = check_model(model), check_integer("n", n, 1), check_array("q", q, "d")
    T, t, d = check_real("temperature", temperature, 0), check_real("level", level, 0), len(q)
    rng, step, blocks = check_rng(rng), max(1, _BLOCK // (m.L * d)), []
    for start in range(0, n, step):
        X, y, _ = m.sample(min(step, n - start), d, rng)
        h = X @ (q / np.linalg.norm(q))
        pair = (
            np.einsum("nl,nld->nd", s, X) for s in (softmax(T * h, axis=1), excess_weight(h, t))
        )
        blocks.append((*pair, y))
    soft, tall, labels = map(np.concatenate, zip(*blocks, strict=True))
    return soft, tall, labels
