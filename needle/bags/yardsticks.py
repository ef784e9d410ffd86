"""What a practitioner would try on bags: pooling, an instance classifier, a trained attention.

Each is fitted on bags whose tokens were whitened or standardized, with a ridge λ; scores are
log-odds. `tune` chooses between the two and among ridges by validation, as it would for a client.

* **mean, max**: logistic regression on the mean, or the largest entry by entry, of the tokens.
* **noisy-or**: each token is a needle with probability σ(⟨w, x⟩ + b); a bag is positive unless none
  is, P = 1 − Π(1 − σ). Convex it is not; L-BFGS from small weights.
* **gated attention** (Ilse, Tomczak and Welling, 2018): weights softmax(uᵀ(tanh(Vx) ⊙ σ(Gx))) and a
  linear readout, trained end to end by Adam on small batches of bags.

They are held against the learner of Chapter 13, def-13-learner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

from ..kit.checks import check_choice, check_integer, check_real, check_rng
from ..kit.losses import get_loss
from ..kit.threads import in_one_thread
from ..readout.fit import fit_readout
from .arrays import Array, Bags
from .logistic import Line, readouts
from .units import Whitening, moments

POOLS: dict[str, Callable[[Bags], Array]] = {
    "mean": lambda bags: bags.means(),
    "max": lambda bags: np.maximum.reduceat(bags.tokens, bags.starts[:-1], axis=0),
}
Score = Callable[[Bags], Array]
HIDDEN, EPOCHS, BATCH, RATE = 16, 30, 16, 0.005  # of gated attention and its Adam


@in_one_thread
def fit_pooling(bags: Bags, y: Array, lam: float, *, pool: str = "mean") -> Score:
    """Logistic regression on pooled tokens; returns the function that scores bags."""
    pooled = POOLS[check_choice("pool", pool, tuple(POOLS))]
    if check_real("lam", lam, 0) > 0:  # entries may have any units: preconditioned
        [line] = readouts(pooled(bags), y, [lam], exact=False)
    else:
        fit = fit_readout(pooled(bags), y, lam)
        line = Line(fit.w, fit.b)
    return lambda unseen: line(pooled(unseen))


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


@in_one_thread
def fit_noisy_or(bags: Bags, y: Array, lam: float, *, rounds: int = 300) -> Score:
    """Each token classified, a bag positive if any of its tokens is; the score is the log-odds."""
    lam, rounds = check_real("lam", lam, 0), check_integer("rounds", rounds, 1)
    d = bags.tokens.shape[1]
    start = bags.means()[y > 0].mean(axis=0) - bags.means()[y < 0].mean(axis=0)
    rare = -np.log(bags.sizes.mean() * 2)  # about half of the bags positive to begin with
    start = np.concatenate([0.1 * start, [rare]])
    found = minimize(
        noisy_or, start, (bags, y, lam), jac=True, method="L-BFGS-B", options={"maxiter": rounds}
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


@in_one_thread
def fit_gated(bags: Bags, y: Array, lam: float, rng: np.random.Generator) -> Score:
    """Gated attention trained end to end by Adam, in small batches of bags."""
    lam, rng = check_real("lam", lam, 0), check_rng(rng)
    d = bags.tokens.shape[1]
    shapes = ((HIDDEN, d), (HIDDEN, d), (HIDDEN,), (d,))
    scales = (d**-0.5, d**-0.5, 0.01, 0.01)  # it begins as mean pooling, and not on a wrong token
    model = [scale * rng.normal(size=shape) for shape, scale in zip(shapes, scales, strict=True)]
    model.append(np.zeros(1))
    first, second = [[np.zeros_like(part) for part in model] for _ in range(2)]
    step, every = 0, np.arange(len(bags))
    for _ in range(EPOCHS):
        order = every if len(bags) <= BATCH else rng.permutation(every)
        for chosen in np.array_split(order, -(-len(bags) // BATCH)):
            step += 1
            some = bags if len(bags) <= BATCH else bags.take(chosen)
            _, gradient = gated_gradient(Gated(*model), some, y[chosen], lam)
            for k, slope in enumerate(gradient):
                first[k] = 0.9 * first[k] + 0.1 * slope
                second[k] = 0.999 * second[k] + 0.001 * slope**2
                mean, square = first[k] / (1 - 0.9**step), second[k] / (1 - 0.999**step)
                model[k] = model[k] - RATE * mean / (np.sqrt(square) + 1e-8)
    return Gated(*model).score


RIDGES: dict[str, tuple[float, ...]] = {
    "mean": (0.01, 0.1, 1.0),
    "max": (0.01, 0.1, 1.0),
    "noisy-or": (1e-3, 3e-2),
    "gated": (1e-3, 3e-2),
}
SCALES = (("common", None), ("common", 0.3), ("common", 1.0))
FOLDS = {"mean": 3, "max": 3, "noisy-or": 1, "gated": 1}


@in_one_thread
def tune(
    method: str, bags: Bags, y: Array, rng: np.random.Generator, *,
    scales: Sequence[tuple[str, float | None]] = SCALES,
) -> Score:  # fmt: skip
    """A yardstick with scaling and ridge chosen by validation within these bags.

    `scales` are the units and shrinkages of `needle.bags.units` to choose from, learned anew in
    each fold: from tokens whitened as Ledoit and Wolf say to tokens only centered and scaled.
    Pooling is validated on three thirds, noisy-or and gated attention on one.

    >>> from needle.bags.datasets import digit_bags
    >>> bags, y, _ = digit_bags(120, 5, 1, np.random.default_rng(0))
    >>> score = tune("noisy-or", bags, y, np.random.default_rng(1))
    >>> bool(np.mean((score(bags) > 0) == (y > 0)) > 0.9)
    True
    """
    check_choice("method", method, tuple(RIDGES))

    def train(chosen: Array, white: Whitening, lam: float) -> Score:
        seen = white(bags.take(chosen))
        if method == "gated":
            score = fit_gated(seen, y[chosen], lam, rng)
        elif method == "noisy-or":
            score = fit_noisy_or(seen, y[chosen], lam)
        else:
            score = fit_pooling(seen, y[chosen], lam, pool=method)
        return lambda unseen: score(white(unseen))

    def whites(chosen: Array) -> list[Whitening]:
        seen = bags.take(chosen)
        known = {units: moments(seen, y[chosen], units) for units, _ in scales}
        return [known[units].whitening(rho) for units, rho in scales]

    choices = [(k, lam) for k in range(len(scales)) for lam in RIDGES[method]]
    losses = np.zeros(len(choices))
    folds = StratifiedKFold(3, shuffle=True, random_state=int(rng.integers(2**31))).split(y, y)
    for inner, outer in islice(folds, FOLDS[method]):
        known = whites(inner)
        for place, (k, lam) in enumerate(choices):
            unseen = train(inner, known[k], lam)(bags.take(outer))
            losses[place] += np.logaddexp(0, -y[outer] * unseen).sum()
    every = np.arange(len(bags))
    k, lam = choices[int(np.argmin(losses))]
    return train(every, whites(every)[k], lam)
