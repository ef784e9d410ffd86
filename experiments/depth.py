"""Small attention networks trained end to end, with gradients by hand.

    one layer    z = Σ_ℓ s_ℓ v_ℓ + b,   s = softmax(Xq),  v = Xw
    two heads    z = z(q, w) + z(q', w')
    two layers   Y = X + u A X,  A_ℓk = softmax_k(h_ℓ h_k),  h = Xq';   z = one layer on Y

Two layers with u = 0 are one layer. In the first layer every token attends to all tokens, the more
sharply the higher it stands along q'. Only projections of the tokens enter, so a pass costs
O(n(Ld + L²)). Chapter 11.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from needle.kit import (
    check_array,
    check_choice,
    check_integer,
    check_labels,
    check_real,
    check_rng,
    get_loss,
)
from needle.kit.losses import SMOOTH

Array = np.ndarray
KINDS = ("one layer", "two heads", "two layers")
_BLOCK = 2**21  # numbers looked at in one go


@dataclass(frozen=True)
class Network:
    """A trained network.

    Attributes
    ----------
    kind : "one layer", "two heads" or "two layers"
    parameters : the vector of all parameters; see `unpack`
    train_loss : mean loss over the training set, without the ridge
    iterations : steps of the optimizer
    """

    kind: str
    parameters: Array
    train_loss: float
    iterations: int


def size(kind: str, d: int) -> int:
    """The number of parameters."""
    return {"one layer": 2 * d + 1, "two heads": 4 * d + 1, "two layers": 3 * d + 2}[kind]


def unpack(kind: str, parameters: Array, d: int) -> tuple[Array, float, float]:
    """Vectors (…, d) (q, w and then q', w' or q'), the intercept b, u (0 but for two layers)."""
    extra = 2 if kind == "two layers" else 1
    u = float(parameters[-2]) if extra == 2 else 0.0
    return parameters[:-extra].reshape(-1, d), float(parameters[-1]), u


def _rows(dS: Array, s: Array) -> Array:
    """Backwards through a softmax over the last axis."""
    return s * (dS - (s * dS).sum(axis=-1, keepdims=True))


def _forward(kind: str, p: Array, X: Array) -> tuple[Array, list[Array]]:
    """Scores (n,), and what the way back needs."""
    vectors, b, u = unpack(kind, p, X.shape[2])
    k, v, *more = np.moveaxis(X @ vectors.T, 2, 0)
    if kind == "two layers":
        h = more[0]
        A = softmax(h[:, :, None] * h[:, None, :], axis=2)
        Ak, Av = (np.einsum("nlk,nk->nl", A, x, optimize=True) for x in (k, v))
        s = softmax(k + u * Ak, axis=1)
        return (s * (v + u * Av)).sum(axis=1) + b, [k, v, s, h, A, Ak, Av]
    s = softmax(k, axis=1)
    z, kept = (s * v).sum(axis=1) + b, [k, v, s]
    if kind == "two heads":
        other = softmax(more[0], axis=1)
        z, kept = z + (other * more[1]).sum(axis=1), [*kept, other, more[1]]
    return z, kept


def scores(kind: str, parameters: Array, X: Array) -> Array:
    """The scores z of bags X (n, L, d), in blocks of bounded memory."""
    check_choice("kind", kind, KINDS)
    d = check_array("X", X, "n", "L", "d").shape[2]
    parameters = check_array("parameters", parameters, size(kind, d))
    step = max(1, _BLOCK // (X.shape[1] * max(X.shape[1:])))
    return np.concatenate(
        [_forward(kind, parameters, X[k : k + step])[0] for k in range(0, len(X), step)]
    )


def objective(
    kind: str, parameters: Array, X: Array, y: Array, lam: float, loss: str = "logistic"
) -> tuple[float, Array]:
    """Mean loss + (λ/2)|all vectors and u|², and its gradient.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y, p = rng.normal(size=(5, 4, 3)), np.array([1, -1, 1, 1, -1]), rng.normal(size=11)
    >>> value, gradient = objective("two layers", p, X, y, 0.1)
    >>> step = 1e-6 * np.eye(11)[7]
    >>> up, down = (objective("two layers", p + side * step, X, y, 0.1)[0] for side in (1, -1))
    >>> bool(abs((up - down) / 2e-6 - gradient[7]) < 1e-8)
    True
    """
    check_choice("kind", kind, KINDS)
    X, lam = check_array("X", X, "n", "L", "d"), check_real("lam", lam, 0)
    y = check_labels("y", y, len(X))
    parameters = check_array("parameters", parameters, size(kind, X.shape[2]))
    return _objective(kind, parameters, X, y, lam, loss)


def _objective(
    kind: str, parameters: Array, X: Array, y: Array, lam: float, loss: str
) -> tuple[float, Array]:
    """`objective` of what has been checked."""
    rule = get_loss(loss, SMOOTH)
    z, kept = _forward(kind, parameters, X)
    g = rule.first(z, y)[:, None] / len(y)
    k, v, s, *more = kept
    du: list[float] = []
    if kind == "two layers":
        h, A, Ak, Av = more
        u = float(parameters[-2])
        dV, dt = g * s, _rows(g * (v + u * Av), s)
        dA = u * (dt[:, :, None] * k[:, None, :] + dV[:, :, None] * v[:, None, :])
        dE = _rows(dA, A)
        dh = np.einsum("nlk,nk->nl", dE, h) + np.einsum("nkl,nk->nl", dE, h)
        pulls = [x + u * np.einsum("nlk,nl->nk", A, x, optimize=True) for x in (dt, dV)]
        pulls, du = [*pulls, dh], [float((dt * Ak).sum() + (dV * Av).sum())]
    else:
        pulls = [_rows(g * v, s), g * s]
        if more:
            other, w = more
            pulls += [_rows(g * w, other), g * other]
    d = X.shape[2]
    grads = [pull.ravel() @ X.reshape(-1, d) for pull in pulls]
    gradient = np.concatenate([*grads, du, [g.sum()]])
    gradient[:-1] += lam * parameters[:-1]
    value = float(rule.value(z, y).mean()) + lam / 2 * float(parameters[:-1] @ parameters[:-1])
    return value, gradient


def train(
    kind: str,
    X: Array,
    y: Array,
    lam: float,
    rng: np.random.Generator,
    *,
    loss: str = "logistic",
    start: float = 0.3,
    starts: int = 3,
) -> Network:
    """Minimise the objective by L-BFGS from random starts; the lowest objective wins.

    Parameters
    ----------
    kind : "one layer", "two heads" or "two layers"
    X, y : bags (n, L, d) and labels
    lam : λ > 0
    start : length of each vector at the start; u starts at ½
    starts : how many starts

    Examples
    --------
    >>> from needle.data.tokens import SparseTokens
    >>> rng = np.random.default_rng(0)
    >>> X, y, _ = SparseTokens(L=10, R=1, theta=6.0, pi=0.5).sample(200, 20, rng)
    >>> found = train("two layers", X, y, 0.01, rng)
    >>> bool(np.mean((scores("two layers", found.parameters, X) > 0) == (y > 0)) > 0.95)
    True
    """
    check_choice("kind", kind, KINDS)
    X, rng = check_array("X", X, "n", "L", "d"), check_rng(rng)
    y, lam = check_labels("y", y, len(X)), check_real("lam", lam, 0, open_low=True)
    start = check_real("start", start, 0)
    d, best = X.shape[2], None
    for _ in range(check_integer("starts", starts, 1)):
        p = np.zeros(size(kind, d))
        vectors = unpack(kind, p, d)[0]
        vectors += rng.standard_normal(vectors.shape) * start / np.sqrt(d)
        if kind == "two layers":
            p[-2] = 0.5
        found = minimize(
            lambda p: _objective(kind, p, X, y, lam, loss), p, jac=True, method="L-BFGS-B",
            options={"maxiter": 2000, "maxfun": 4000, "gtol": 1e-6, "ftol": 1e-10},
        )  # fmt: skip
        if best is None or found.fun < best.fun:
            best = found
    assert best is not None
    value = get_loss(loss).value(scores(kind, best.x, X), y).mean()
    return Network(kind, best.x, float(value), int(best.nit))
