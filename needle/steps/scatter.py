"""How much the cosines of the two gradient steps scatter at a large but finite dimension.

By the exact draw of `needle.steps.alignment` the cosine of q⁽²⁾ is a smooth function of three
averages over the samples and of a few numbers of the first step. With γ the pull of a sample after
step one, cos φ = ω/ρ, ε ~ N(0, 1), χ² ~ χ²_{L−2}, p = ε + y₊ θ√R̄ cos φ,

    x₁ = mean of y₊ θ√R̄ γ p,    x₂ = mean of γ(εp + χ²),    x₃ = mean of γ²(p² + χ²),
    u = x₁ cos φ + x₂,   v = x₁ sin φ + G√(x₃/n₀),
    cos(q⁽²⁾, ξ) = (u cos φ + v sin φ) / √(u² + v² + x₃ χ²_{d−2}/n₀).

To first order its deviation is an average over the samples of some ψ(y, G, ε, χ²), plus independent
Gaussians; their variances add. Nothing is simulated here. Appendix B, prp-b-query-fluctuation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_real
from ..kit.losses import get_loss
from ..kit.nodes import gaussian_nodes

Array = np.ndarray
STEP = 1e-5


class Spread(NamedTuple):
    """Limits of d times the variance of cos(w⁽¹⁾, ξ) and of cos(q⁽²⁾, ξ)."""

    readout_cos: float
    query_cos: float


class _Draw:
    """The limit of the two steps, moved by small amounts in whatever fluctuates."""

    def __init__(self, model: SparseTokens, alpha0: float, loss: str, lr_w: float, lr_b: float):
        self.model, self.alpha0, self.lr_w, self.lr_b = model, alpha0, lr_w, lr_b
        self.slope = get_loss(loss).first
        self.start = -float(self.slope(0.0, 1))
        self.needle = model.theta * (model.R * (model.L - model.R) / model.L) ** 0.5
        self.G, self.weight = gaussian_nodes(0.0, 1.0)

    def first(self, positives: float = 0.0, along: float = 0.0, across: float = 0.0) -> Array:
        """(ω, ω_⊥) for a share of positives, a component and a relative length off their limits."""
        L, pull = self.model.L, self.lr_w * self.start
        signal = self.model.theta * self.model.R / L * (self.model.pi + positives)
        return pull * np.array([signal + along / L**0.5, (1 + across) / (self.alpha0 * L) ** 0.5])

    def pulls(
        self, y: int, positives: float = 0.0, along: float = 0.0, across: float = 0.0,
        tilt: float = 0.0,
    ) -> Array:  # fmt: skip
        """γ at the nodes G; `tilt` adds itself times the pull at the start to the scores."""
        L, first = self.model.L, self.first(positives, along, across)
        own = self.lr_w * self.start * (1 + across) ** 2 / (self.alpha0 * L)
        own += first[0] * along / L**0.5 + self.start * tilt
        bias = self.lr_b * self.start * (2 * (self.model.pi + positives) - 1)
        lifted = (y > 0) * self.model.theta * self.model.R * first[0] / L
        t = y * own + bias + lifted + np.hypot(*first) / L**0.5 * self.G
        return -self.slope(t, y)

    def means(self, y: int, **moved: float) -> Array:
        """x₁, x₂, x₃ of a class, given G (3, nodes)."""
        tilt = moved.pop("tilt", 0.0)
        first, gamma = self.first(**moved), self.pulls(y, tilt=tilt, **moved)
        p = (y > 0) * self.needle * first[0] / np.hypot(*first)
        rows = (y > 0) * self.needle * p, self.model.L - 1.0, gamma * (self.model.L - 1 + p * p)
        return np.array([row * gamma for row in rows])

    def cosine(
        self, step: Array | None = None, G: float = 0.0, chi: float = 0.0, **moved: float
    ) -> float:
        """The cosine of q⁽²⁾, its averages moved by `step`, the rest as in the module's formula."""
        pi = self.model.pi
        x = sum(
            share * self.means(y, **moved) @ self.weight for y, share in ((1, pi), (-1, 1 - pi))
        )
        x = np.asarray(x) if step is None else x + step
        moved.pop("tilt", None)
        along, across = self.first(**moved)
        cos, sin = along / np.hypot(along, across), across / np.hypot(along, across)
        u, v = x[0] * cos + x[1], x[0] * sin + x[2] ** 0.5 * G
        return float(u * cos + v * sin) / np.sqrt(u * u + v * v + x[2] / self.alpha0 * (1 + chi))


def predict_spread(
    model: SparseTokens,
    alpha0: float,
    *,
    loss: str = "logistic",
    lr_w: float = 0.5,
    lr_b: float = 0.5,
) -> Spread:
    """The limits of d·Var cos(w⁽¹⁾, ξ) and d·Var cos(q⁽²⁾, ξ) as d → ∞ with n₀ = alpha0·d.

    Arguments as in `needle.predict_alignment`, with θ > 0; around the limits given there
    the cosines are asymptotically normal with these variances divided by d.

    Examples
    --------
    >>> spread = predict_spread(SparseTokens(L=10, R=3, theta=6.0, pi=0.2), 2.0)
    >>> print(f"{spread.readout_cos:.3f} {spread.query_cos:.3f}")
    0.161 0.268
    """
    model = check_model(model)
    check_real("theta", model.theta, 0, open_low=True)
    alpha0 = check_real("alpha0", alpha0, 0, open_low=True)
    lr_w = check_real("lr_w", lr_w, 0, open_low=True)
    draw = _Draw(model, alpha0, loss, lr_w, check_real("lr_b", lr_b))
    L, pi = model.L, model.pi

    def slope(**moved: float) -> float:
        back = {name: -value for name, value in moved.items()}
        return (draw.cosine(None, **moved) - draw.cosine(None, **back)) / (2 * STEP)

    size = np.abs([draw.means(y) @ draw.weight for y in (1, -1)]).max(axis=0) + 1e-300
    steps = STEP * np.diag(size)
    x1, x2, x3 = ((draw.cosine(s) - draw.cosine(-s)) / (2 * s.max()) for s in steps)
    share = slope(positives=STEP)
    tilt = slope(tilt=STEP) * np.hypot(*draw.first()) / (draw.start * L**0.5)
    cos = draw.first()[0] / np.hypot(*draw.first())
    mean = square = 0.0
    for y, weight in (1, pi), (-1, 1 - pi):
        gamma, p = draw.pulls(y), (y > 0) * draw.needle * cos
        psi = np.array([x1, x2, x3]) @ draw.means(y) + share * (y > 0) - tilt * y * draw.G
        linear = x1 * (y > 0) * draw.needle * gamma + x2 * gamma * p + 2 * x3 * gamma**2 * p
        spread = linear**2 + 2 * (L - 1) * (x2 * gamma + x3 * gamma**2) ** 2
        mean += weight * float(draw.weight @ psi)
        square += weight * float(draw.weight @ (psi**2 + spread))
    across, chi = slope(across=STEP), slope(chi=STEP)
    total = square - mean**2 + slope(along=STEP) ** 2 + slope(G=STEP) ** 2
    query = total / alpha0 + across**2 / 2 + 2 * chi**2
    Q = L / (alpha0 * (pi * model.theta * model.R) ** 2)
    readout = Q**2 / (1 + Q) ** 3 * ((1 - pi) / (pi * alpha0) + Q + 0.5)
    return Spread(readout, float(query))
