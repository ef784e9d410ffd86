"""Labels from one direction: the classical laws of generalized linear models as a `FeatureLaw`.

f ~ N(0, I) and P(y = +1 | f) = link(γ⟨f, q̂⟩ + offset). In the one law of this book that is a = 0,
c = ⟨f, q̂⟩ with the law of a normal number given its label, r = 1. The direction to be learned is
the query itself: ξ = q̂.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, ndtri_exp

from ..kit.checks import check_choice, check_real, check_rng
from ..kit.nodes import gaussian_nodes
from .law import FeatureLaw, Nodes

Array = np.ndarray
LINKS = {"logistic": expit, "probit": ndtr, "sign": lambda t: (t > 0) * 1.0}


@dataclass(frozen=True, eq=False, kw_only=True)
class _Teacher(FeatureLaw):
    gamma: float
    offset: float
    link: str

    @property
    def draws(self) -> int:
        return 20_000

    def coefficients(self, y: Array, rng: np.random.Generator | None) -> tuple[Array, Array, Array]:
        """c given y: truncated normals for "sign" and "probit", rejection for "logistic"."""
        rng, y = check_rng(rng), np.asarray(y, dtype=float)
        if self.link == "logistic":
            c = self._rejection(y, rng)
        else:  # y = sign of a normal number of mean `offset`, of which γc is a part
            total = math.hypot(self.gamma, self.link == "probit")
            shift = self.offset / total
            # y·(normal + shift) > 0: y·normal = g > −y·shift
            g = -ndtri_exp(np.log(rng.random(len(y))) + log_ndtr(y * shift))
            share = self.gamma / total
            c = share * y * g + math.sqrt(max(1 - share**2, 0.0)) * rng.standard_normal(len(y))
        return np.zeros(len(y)), c, np.ones(len(y))

    def _rejection(self, y: Array, rng: np.random.Generator) -> Array:
        """N(0, 1) is proposed and accepted with probability σ(u), u = y(γc + offset); or, where a
        label is rare, N(yγ, 1) with probability σ(−u), as φ(c)σ(u) ∝ φ(c − yγ)σ(−u)."""
        c, missing = np.empty(len(y)), np.arange(len(y))
        rare = y * self.offset + self.gamma**2 / 2 < 0
        while len(missing):
            label, tilted = y[missing], rare[missing]
            trial = rng.standard_normal(len(missing)) + tilted * label * self.gamma
            u = label * (self.gamma * trial + self.offset)
            good = rng.random(len(missing)) < expit(np.where(tilted, -u, u))
            c[missing[good]] = trial[good]
            missing = missing[~good]
        return c

    @cached_property
    def nodes(self) -> Nodes:
        c, weight = _places(self.gamma, self.offset)
        y = np.repeat([1, -1], len(c))
        share = LINKS[self.link](np.outer([1, -1], self.gamma * c + self.offset)).ravel()
        weight = np.tile(weight, 2) * share
        keep = weight > 1e-30
        y, c, weight = y[keep], np.tile(c, 2)[keep], weight[keep]
        return Nodes(y, np.zeros(len(y)), c, np.ones(len(y)), weight / weight.sum())


def _places(gamma: float, offset: float) -> tuple[Array, Array]:
    """Nodes of N(0, 1), dense where γc + offset changes sign."""
    if gamma == 0:
        return gaussian_nodes(0.0, 1.0)
    t, weight = gaussian_nodes(offset, gamma)
    return (t - offset) / gamma, weight


def teacher(gamma: float = 1.0, offset: float = 0.0, link: str = "logistic") -> FeatureLaw:
    """f ~ N(0, I) with P(y = +1 | f) = link(γ⟨f, q̂⟩ + offset): labels from one direction.

    Parameters
    ----------
    gamma : γ ≥ 0, above 0 for the link "sign"
    offset : any finite number
    link : "logistic", 1/(1+e^{−t}); "probit", Φ(t); "sign", 1 where t > 0

    Examples
    --------
    >>> law = teacher(2.0, 0.5)
    >>> y, _, c, _, weight = law.nodes
    >>> round(law.pi, 4), round(float(weight @ (y * c)), 4)  # share of positives and E[y c]
    (0.5752, 0.5945)
    >>> from needle.readout.capacity import predict_capacity
    >>> predict_capacity(teacher(2.0, link="sign"))
    inf
    """
    gamma, offset = check_real("gamma", gamma, 0), check_real("offset", offset)
    link = check_choice("link", link, LINKS)
    if link == "sign":
        check_real("gamma", gamma, 0, open_low=True)
    c, weight = _places(gamma, offset)
    pi = float(weight @ LINKS[link](gamma * c + offset))
    if not 1e-9 <= pi <= 1 - 1e-9:
        raise ValueError(
            f"offset = {offset!r} is not allowed: it leaves a share {pi:.1e} of positives; "
            "offset must leave both labels a share of 1e-9 or more"
        )
    return _Teacher(
        name="teacher", theta=0.0, pi=pi, cos=1.0, query=True, gamma=gamma, offset=offset, link=link
    )
