"""The two gradient steps themselves, on tokens in memory or in blocks.

They start from w = b = q = 0 on n₀ samples. The first moves w and b (rates η_w, η_b), the second
moves q. The pull of a sample is γ = −ℓ'(t; y) at its score t, times the weight of its class if it
has one, and γ_y at the start. With X̄_i = X_iᵀ1/L, γ_i = −ℓ'(⟨X̄_i, w⁽¹⁾⟩ + b⁽¹⁾; y_i) and the
centering matrix P = I − 11ᵀ/L,

    w⁽¹⁾ = (η_w/n₀) Σ γ_{y_i} X̄_i,   b⁽¹⁾ = (η_b/n₀) Σ γ_{y_i},
    q⁽²⁾ = (1/(n₀L)) Σ γ_i X_iᵀ P X_i w⁽¹⁾

(at η_qβ = 1: other values only stretch q). Appendix B, def-b-steps and eq-b-query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from ..kit.checks import check_flag, check_labels, check_real
from ..kit.losses import get_loss
from ..kit.nodes import gaussian_nodes
from ..kit.threads import in_one_thread

Array = np.ndarray

BLOCK_ENTRIES = 2**21
Function = Callable[..., Any]
# ℓ' less its value at 0. Where the two classes' mean pulls cancel, their sum by ℓ' itself loses all
# digits: at π = ½ and θ = 100 the echo would be off by 7 % at L = 10⁹, and be rounding at 10¹².
SLOPES: dict[str, Function] = {
    "logistic": lambda t, y: 0.5 * np.tanh(0.5 * t),
    "square": lambda t, y: t,
    "hinge": lambda t, y: y * (y * t >= 1),
    "exponential": lambda t, y: -y * np.expm1(-y * t),
}


def _logistic(centre: float, sd: float, y: int) -> tuple[float, float, float]:
    t, weight = gaussian_nodes(centre, sd)
    pull = y * expit(-y * t)
    return float(weight @ pull), float(weight @ pull**2), float(weight @ np.tanh(t / 2)) / 2


def _square(centre: float, sd: float, y: int) -> tuple[float, float, float]:
    return y - centre, (y - centre) ** 2 + sd**2, centre


def _hinge(centre: float, sd: float, y: int) -> tuple[float, float, float]:
    gap = 1 - y * centre
    z = gap / sd if sd else math.copysign(math.inf, gap) if gap else -math.inf
    inside = float(ndtr(z))
    return y * inside, inside, y * float(ndtr(-z))


def _exponential(centre: float, sd: float, y: int) -> tuple[float, float, float]:
    power = sd**2 / 2 - y * centre
    try:
        return y * math.exp(power), math.exp(sd**2 + 2 * power), -y * math.expm1(power)
    except OverflowError:
        raise ValueError(
            "loss = 'exponential' is not allowed: here the pulls after the first step overflow; "
            "take smaller lr_w or lr_b"
        ) from None


# (E γ, E γ², E of the slope) of γ = −ℓ'(t; y) for t ~ N(centre, sd²)
MOMENTS: dict[str, Function] = {
    "logistic": _logistic, "square": _square, "hinge": _hinge, "exponential": _exponential
}  # fmt: skip


class StepOptions(TypedDict, total=False):
    """What may be said of the two steps: the loss, and the rates η_w > 0 and η_b of w and b.

    By default "logistic", 0.5 and 0.5. Where a function takes `**steps`, these are meant.
    """

    loss: str
    lr_w: float
    lr_b: float


class StepRule(NamedTuple):
    """A loss with weights κ_y of the two classes, {y: pull at the start κ_y γ_y}, and two rates."""

    loss: str
    weight: dict[int, float]
    start: dict[int, float]
    lr_w: float
    lr_b: float

    def gradient(self, t: ArrayLike, y: ArrayLike) -> Array:
        """κ_y ℓ'(t; y)."""
        slope = get_loss(self.loss).first(t, y)
        if self.weight[1] == self.weight[-1] == 1:
            return slope
        return slope * np.where(np.asarray(y) > 0, self.weight[1], self.weight[-1])

    def moments(self, y: int, centre: float, sd: float) -> tuple[float, float, float]:
        """E γ, E γ² and E[ℓ'(t; y) − ℓ'(0; y)] for t ~ N(centre, sd²), weighted."""
        weight = self.weight[y]
        first, second, slope = MOMENTS[self.loss](centre, sd, y)
        return weight * first, weight**2 * second, weight * slope

    def balance(self, share: dict[int, float]) -> float:
        """E γ_y, the mean pull at the start, for these shares of the classes."""
        mean = sum(share[y] * self.start[y] for y in share)
        return mean if abs(mean) > 1e-15 * abs(share[1] * self.start[1]) else 0.0


def step_rule(
    loss: str = "logistic", lr_w: float = 0.5, lr_b: float = 0.5, balanced: float | None = None
) -> StepRule:
    """The rule of a loss, its rates checked; weights ½/π, ½/(1−π) if π is given as `balanced`."""
    kind = get_loss(loss)
    weight = {1: 1.0, -1: 1.0}
    if balanced is not None:
        weight = {1: 0.5 / balanced, -1: 0.5 / (1 - balanced)}
    start = {y: -weight[y] * float(kind.first(0.0, y)) for y in weight}
    lr_w = check_real("lr_w", lr_w, 0, open_low=True)
    return StepRule(loss, weight, start, lr_w, check_real("lr_b", lr_b))


class Pulls(NamedTuple):
    """E γ and E γ² in each group of samples, and the mean of γ over all of them."""

    first: list[float]
    second: list[float]
    mean: float


def mean_pulls(
    rule: StepRule, groups: Sequence[tuple[int, float, float]], balance: float, sd: float
) -> Pulls:
    """The pulls γ = −ℓ'(t; y) of groups (y, share, centre) with scores t ~ N(centre, sd²).

    `balance` is E γ_y. The mean is a sum over the groups, or E γ_y less the slopes: what cancels
    least.

    >>> rule = step_rule("square", 0.5, 0.5)
    >>> mean_pulls(rule, [(1, 0.5, 1e-20), (-1, 0.5, 1e-20)], 0.0, 0.0).mean
    -1e-20
    """
    first, second, tilt, total = [], [], 0.0, 0.0
    classes = {1: 0.0, -1: 0.0}
    for y, share, centre in groups:
        pull, square, slope = rule.moments(y, centre, sd)
        first.append(pull)
        second.append(square)
        total += share * pull
        classes[y] += share * pull
        tilt += share * slope
    whole = max(map(abs, classes.values())) <= max(abs(balance), abs(tilt))
    return Pulls(first, second, total if whole else balance - tilt)


def block_length(L: int, d: int) -> int:
    """How many samples of L tokens in R^d make a block."""
    return max(1, BLOCK_ENTRIES // (L * d))


class TwoSteps(NamedTuple):
    """What the two steps leave: w⁽¹⁾ (d,), b⁽¹⁾ and q⁽²⁾ (d,) at η_qβ = 1."""

    w: Array
    b: float
    q: Array


@in_one_thread
def two_steps(
    X: ArrayLike | Callable[[], Iterable[tuple[Array, Array]]],
    y: ArrayLike | None = None,
    *,
    loss: str = "logistic",
    lr_w: float = 0.5,
    lr_b: float = 0.5,
    balanced: bool = False,
) -> TwoSteps:
    """The two gradient steps on given tokens, in memory that does not grow with their number.

    Appendix B, def-b-steps and eq-b-query.

    Parameters
    ----------
    X : tokens (n, L, d); or, where they are too many to keep, a function without arguments that
        returns an iterable of blocks (X, y), the same blocks each time it is called (it is called
        twice: once for w and b, once for q; and if `balanced` once before, for the labels)
    y : labels in {−1, +1} (n,), with an array X only
    loss, lr_w, lr_b : as in `predict_alignment`
    balanced : whether both classes of these data count one half each, whatever their sizes: b then
        stays at 0, and for small lr_w the query is aligned at every share of positives

    Examples
    --------
    >>> from needle.data.tokens import SparseTokens
    >>> model = SparseTokens(L=10, R=3, theta=6.0, pi=0.2)
    >>> X, y, _ = model.sample(400, 20, np.random.default_rng(0))
    >>> w, b, q = two_steps(X, y)
    >>> print(f"{q[0] / np.linalg.norm(q):.2f}")
    0.99
    >>> blocks = lambda: ((X[k : k + 100], y[k : k + 100]) for k in range(0, 400, 100))
    >>> np.allclose(two_steps(blocks).q, q)
    True
    >>> print(f"{abs(two_steps(X, y, balanced=True).b):.12f}")
    0.000000000000
    """
    step_rule(loss, lr_w, lr_b)
    check_flag("balanced", balanced)

    def rule(labels: Iterable[Array]) -> StepRule:
        return step_rule(loss, lr_w, lr_b, _share(labels) if balanced else None)

    if callable(X):
        if y is not None:
            raise ValueError("y is not allowed: the blocks that X() returns hold the labels")
        return take_steps(X, rule(block[1] for block in X()) if balanced else rule(()))
    tokens, shape = np.asarray(X), np.shape(X)
    if tokens.dtype.kind not in "iuf" or len(shape) != 3 or 0 in shape:
        raise ValueError(
            f"X of shape {shape} is not allowed: X must be real numbers of shape (n, L, d)"
        )
    labels = check_labels("y", y, shape[0])
    size = block_length(shape[1], shape[2])
    starts = range(0, shape[0], size)
    blocks = lambda: ((tokens[k : k + size], labels[k : k + size]) for k in starts)  # noqa: E731
    return take_steps(blocks, rule([labels]))


def _share(labels: Iterable[Array]) -> float:
    """The share of positives; both classes must be there."""
    positives, size = 0, 0
    for y in labels:
        positives, size = positives + int(np.sum(y > 0)), size + len(y)
    if not 0 < positives < size:
        raise ValueError("y is not allowed: to balance the classes, y must hold both labels")
    return positives / size


def take_steps(
    blocks: Callable[[], Iterable[Any]],
    rule: StepRule,
    watch: Callable[[Array, Any], None] | None = None,
) -> TwoSteps:
    """`two_steps` on blocks (X, y, …); `watch` sees the pull of each token on q, with its block."""
    n, w, b = 0, np.zeros(()), 0.0
    for X, y, *_ in blocks():
        slopes = rule.gradient(np.zeros(len(y)), y)
        w, b, n = (
            w - rule.lr_w * (slopes @ X.mean(axis=1)),
            b - rule.lr_b * slopes.sum(),
            n + len(y),
        )
    if not n:
        raise ValueError("X is not allowed: it holds no tokens")
    w, b = w / n, b / n
    if not np.isfinite(w).all():
        raise ValueError("X is not allowed: its tokens must be finite numbers")
    query, again = np.zeros(len(w)), 0
    for block in blocks():
        X, y = block[:2]
        again += len(y)
        scores = X @ w
        means = scores.mean(axis=1)
        pull = rule.gradient(means + b, y)[:, None] * (scores - means[:, None])
        pull /= -n * X.shape[1]
        query += pull.ravel() @ X.reshape(-1, len(w))
        if watch is not None:
            watch(pull, block)
    if again != n:
        raise ValueError(
            f"X is not allowed: it gave {n} samples and then {again}; X() must give the same "
            "blocks each time it is called"
        )
    return TwoSteps(w, b, query)
