"""What a practitioner would try on bags: pooling, an instance classifier, a trained attention.

Each is fitted on whitened bags with a ridge λ, and tuned by the caller; scores are log-odds.

* **mean, max**: logistic regression on the mean, or the largest entry by entry, of the tokens.
* **noisy-or**: each token is a needle with probability σ(⟨w, x⟩ + b); a bag is positive unless none
  is, P = 1 − Π(1 − σ). Convex it is not; L-BFGS from small weights.
* **gated attention** (Ilse, Tomczak and Welling, 2018): weights softmax(uᵀ(tanh(Vx) ⊙ σ(Gx))) and a
  linear readout, trained end to end by Adam on all bags at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from .bags import Array, Bags
from .losses import get_loss
from .readout import fit_readout
from .validation import check_choice, check_integer, check_real, check_rng

POOLS: dict[str, Callable[[Bags], Array]] = {
    "mean": lambda bags: bags.means(),
    "max": lambda bags: np.maximum.reduceat(bags.tokens, bags.starts[:-1], axis=0),
}
Score = Callable[[Bags], Array]


def fit_pooling(bags: Bags, y: Array, lam: float, *, pool: str = "mean") -> Score:
    """Logistic regression on pooled tokens; returns the function that scores bags."""
    pooled = POOLS[check_choice("pool", pool, tuple(POOLS))]
    fit = fit_readout(pooled(bags), y, check_real("lam", lam, 0))
    return lambda unseen: pooled(unseen) @ fit.w + fit.b


def noisy_or(parameters: Array, bags: Bags, y: Array, lam: float) -> tuple[float, Array]:
    """Mean loss of the noisy-or with its ridge (λ/2)|w|², and its gradient; parameters (w, b)."""
    w, b = parameters[:-1], parameters[-1]
    score = bags.tokens @ w + b
    none = -bags.sums(np.logaddexp(0, score))  # log P(no token is a needle)
    some = np.log(-np.expm1(np.minimum(none, -1e-12)))
    positive = y > 0
    value = -np.where(positive, some, none).mean() + lam / 2 * w @ w
    odds = np.exp(np.minimum(none, -1e-12) - some)
    slope = np.where(positive, -odds, 1.0)[bags.owner] * expit(score) / len(bags)
    return float(value), np.concatenate([slope @ bags.tokens + lam * w, [slope.sum()]])


def fit_noisy_or(bags: Bags, y: Array, lam: float) -> Score:
    """Each token classified, a bag positive if any of its tokens is; the score is the log-odds."""
    lam = check_real("lam", lam, 0)
    d = bags.tokens.shape[1]
    start = bags.means()[y > 0].mean(axis=0) - bags.means()[y < 0].mean(axis=0)
    rare = -np.log(bags.sizes.mean() * 2)  # about half of the bags positive to begin with
    start = np.concatenate([0.1 * start, [rare]])
    found = minimize(
        noisy_or, start, (bags, y, lam), jac=True, method="L-BFGS-B", options={"maxiter": 300}
    )
    w, b = found.x[:d], found.x[d]

    def score(unseen: Bags) -> Array:
        none = np.minimum(-unseen.sums(np.logaddexp(0, unseen.tokens @ w + b)), -1e-12)
        return np.log(-np.expm1(none)) - none

    return score


class Gated(NamedTuple):
    """Parameters of gated attention: V, G (h, d), u (h,), w (d,), b (1,)."""

    V: Array
    G: Array
    u: Array
    w: Array
    b: Array

    def score(self, bags: Bags) -> Array:
        """The log-odds of each bag."""
        hidden = np.tanh(bags.tokens @ self.V.T) * expit(bags.tokens @ self.G.T)
        return bags.attended(hidden @ self.u) @ self.w + self.b[0]


def gated_gradient(model: Gated, bags: Bags, y: Array, lam: float) -> tuple[float, Gated]:
    """Mean logistic loss with the ridge (λ/2)(|V|² + |G|² + |u|² + |w|²), and its gradient."""
    loss, X = get_loss("logistic"), bags.tokens
    tanh, gate = np.tanh(X @ model.V.T), expit(X @ model.G.T)
    weight = bags.weights((tanh * gate) @ model.u)
    attended = bags.sums(weight[:, None] * X)
    score = attended @ model.w + model.b[0]
    pull = loss.first(score, y) / len(bags)
    along = X @ model.w
    # ∂score/∂height_ℓ = a_ℓ(⟨w, x_ℓ⟩ − ⟨w, attended⟩)
    height = pull[bags.owner] * weight * (along - (attended @ model.w)[bags.owner])
    back = height[:, None] * model.u
    gradient = Gated(
        (back * gate * (1 - tanh**2)).T @ X + lam * model.V,
        (back * tanh * gate * (1 - gate)).T @ X + lam * model.G,
        height @ (tanh * gate) + lam * model.u,
        pull @ attended + lam * model.w,
        np.array([pull.sum()]),
    )
    ridge = sum(float((part**2).sum()) for part in model[:4])
    return float(loss.value(score, y).mean() + lam / 2 * ridge), gradient


def fit_gated(
    bags: Bags, y: Array, lam: float, rng: np.random.Generator, *, hidden: int = 16,
    steps: int = 300, rate: float = 0.01,
) -> Score:  # fmt: skip
    """Gated attention trained end to end by `steps` of Adam on all bags."""
    lam, rng = check_real("lam", lam, 0), check_rng(rng)
    hidden, steps = check_integer("hidden", hidden, 1), check_integer("steps", steps, 1)
    d = bags.tokens.shape[1]
    shapes = ((hidden, d), (hidden, d), (hidden,), (d,))
    scales = (d**-0.5, d**-0.5, 0.01, 0.01)  # it begins as mean pooling, and not on a wrong token
    model = [scale * rng.normal(size=shape) for shape, scale in zip(shapes, scales, strict=True)]
    model.append(np.zeros(1))
    first, second = [[np.zeros_like(part) for part in model] for _ in range(2)]
    for step in range(1, steps + 1):
        _, gradient = gated_gradient(Gated(*model), bags, y, lam)
        for k, slope in enumerate(gradient):
            first[k] = 0.9 * first[k] + 0.1 * slope
            second[k] = 0.999 * second[k] + 0.001 * slope**2
            mean, square = first[k] / (1 - 0.9**step), second[k] / (1 - 0.999**step)
            model[k] = model[k] - rate * mean / (np.sqrt(square) + 1e-8)
    return Gated(*model).score
