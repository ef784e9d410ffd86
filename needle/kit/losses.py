"""Losses of the score: value, derivatives and proximal map, vectorised and exact.

The proximal map of a convex loss ℓ(·; y) answers u + step·ℓ'(u; y) = omega. It is the whole
effect of training on one sample in the high-dimensional limit: it must be exact for any omega and
step, and it must never iterate forever. Appendix C, eq-c-cavity and lem-c-cavity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, wrightomega

from .checks import check_choice

Array = np.ndarray


class Loss(Protocol):
    """A convex loss ℓ(z; y) of the score z and the label y ∈ {−1, +1}; derivatives are in z."""

    @property
    def name(self) -> str: ...
    def value(self, z: ArrayLike, y: ArrayLike) -> Array: ...
    def first(self, z: ArrayLike, y: ArrayLike) -> Array: ...
    def second(self, z: ArrayLike, y: ArrayLike) -> Array: ...
    def prox(self, omega: ArrayLike, step: ArrayLike, y: ArrayLike) -> Array: ...


def _checked(**values: ArrayLike) -> Iterator[Array]:
    """Every argument as floats: y in {−1, +1}, step finite and ≥ 0, omega finite or NaN, any z."""
    rules = {"y": "-1 or +1", "omega": "finite", "step": "finite and ≥ 0"}
    for name, value in values.items():
        array = np.asarray(value)
        if not (
            array.dtype.kind in "iuf"
            and (name != "y" or np.all(np.abs(array) == 1))
            and (name != "omega" or not np.isinf(array).any())
            and (name != "step" or np.all((array >= 0) & (array < np.inf)))
        ):
            allowed = rules.get(name, "real numbers")
            raise ValueError(f"{name} = {value!r} is not allowed: {name} must be {allowed}")
        yield np.asarray(array, dtype=float)


@dataclass(frozen=True)
class Logistic:
    """ℓ(z; y) = log(1 + e^{−yz})."""

    name: str = "logistic"

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """log(1 + e^{−yz}), without overflow."""
        z, y = _checked(z=z, y=y)
        return np.logaddexp(0, -y * z)

    def first(self, z: ArrayLike, y: ArrayLike) -> Array:
        """ℓ' = −y σ(−yz)."""
        z, y = _checked(z=z, y=y)
        return -y * expit(-y * z)

    def second(self, z: ArrayLike, y: ArrayLike) -> Array:
        """ℓ'' = σ(z) σ(−z), the same for both labels."""
        z, y = _checked(z=z, y=y)
        return expit(z) * expit(-z)

    def prox(self, omega: ArrayLike, step: ArrayLike, y: ArrayLike) -> Array:
        """The u with u − step·y·σ(−yu) = omega, to rounding, in three Halley steps.

        In margins v = yu, m = y·omega the equation v = m + step·σ(−v) keeps its form under
        (v, m) → (−v, −m − step), so v ≥ 0 may be assumed. There ½e^{−v} ≤ σ(−v) ≤ e^{−v}, and the
        equation with c·e^{−v} is solved by v = m + ω(log(c·step) − m), ω being Wright's function:
        c = ½ gives a start at most log 2 below the root. The number of steps is fixed and every
        step stays in that bracket, so nothing can cycle.
        """
        omega, step, y = _checked(omega=omega, step=step, y=y)
        m = y * omega
        mirrored = 2 * m + step < 0
        m = np.where(mirrored, -m - step, m)
        with np.errstate(divide="ignore"):
            low = m + wrightomega(np.log(step) - m - np.log(2))
        low = np.maximum(low, 0)
        v, high = low, low + 0.7
        for _ in range(3):
            p = expit(-v)
            curvature = step * p * (1 - p)
            slope = 1 + curvature
            newton = (v - m - step * p) / slope
            halley = newton / (1 + newton * curvature * (0.5 - p) / slope)
            v = np.clip(v - halley, 0, high)
        return y * np.where(mirrored, -v, v)


@dataclass(frozen=True)
class Square:
    """ℓ(z; y) = ½(y − z)²."""

    name: str = "square"

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """½(y − z)²."""
        z, y = _checked(z=z, y=y)
        return 0.5 * (y - z) ** 2

    def first(self, z: ArrayLike, y: ArrayLike) -> Array:
        """ℓ' = z − y."""
        z, y = _checked(z=z, y=y)
        return z - y

    def second(self, z: ArrayLike, y: ArrayLike) -> Array:
        """ℓ'' = 1."""
        z, y = _checked(z=z, y=y)
        return np.ones(np.broadcast_shapes(z.shape, y.shape))

    def prox(self, omega: ArrayLike, step: ArrayLike, y: ArrayLike) -> Array:
        """u = (omega + step·y)/(1 + step)."""
        omega, step, y = _checked(omega=omega, step=step, y=y)
        return (omega + step * y) / (1 + step)


@dataclass(frozen=True)
class Hinge:
    """ℓ(z; y) = max(0, 1 − yz), the loss of support vector machines; ℓ' is 0 at the kink."""

    name: str = "hinge"

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """max(0, 1 − yz)."""
        z, y = _checked(z=z, y=y)
        return np.maximum(1 - y * z, 0)

    def first(self, z: ArrayLike, y: ArrayLike) -> Array:
        """−y where yz < 1, and 0 elsewhere."""
        z, y = _checked(z=z, y=y)
        return np.where(np.isnan(z), z, np.where(y * z < 1, -y, 0.0))

    def second(self, z: ArrayLike, y: ArrayLike) -> Array:
        """ℓ'' = 0, on either side of the kink."""
        z, y = _checked(z=z, y=y)
        return np.zeros(np.broadcast_shapes(z.shape, y.shape))

    def prox(self, omega: ArrayLike, step: ArrayLike, y: ArrayLike) -> Array:
        """yu = max(m, min(m + step, 1)) at m = y·omega: a margin below 1 is moved, never past 1."""
        omega, step, y = _checked(omega=omega, step=step, y=y)
        m = y * omega
        return y * np.maximum(m, np.minimum(m + step, 1))


@dataclass(frozen=True)
class Exponential:
    """ℓ(z; y) = e^{−yz}, the loss of boosting; infinite once it overflows."""

    name: str = "exponential"

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """e^{−yz}."""
        z, y = _checked(z=z, y=y)
        with np.errstate(over="ignore"):
            return np.exp(-y * z)

    def first(self, z: ArrayLike, y: ArrayLike) -> Array:
        """ℓ' = −y e^{−yz}."""
        z, y = _checked(z=z, y=y)
        with np.errstate(over="ignore"):
            return -y * np.exp(-y * z)

    def second(self, z: ArrayLike, y: ArrayLike) -> Array:
        """ℓ'' = e^{−yz}."""
        return self.value(z, y)

    def prox(self, omega: ArrayLike, step: ArrayLike, y: ArrayLike) -> Array:
        """yu = m + W at m = y·omega, with W e^W = step·e^{−m}: Lambert's function.

        W = ω(log step − m) in Wright's form never overflows, and log W = log step − m − W gives
        yu = log step − log W, which loses no digit where W ≈ −m is large.
        """
        omega, step, y = _checked(omega=omega, step=step, y=y)
        m = y * omega
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.log(step)
            W = wrightomega(size - m)
            far = size - np.log(W)
        return y * np.where(W > 1, far, m + W)


SMOOTH = ("logistic", "square")  # the losses of most of the theory
_LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Logistic(), Square(), Hinge(), Exponential())
}


def get_loss(name: str, among: Collection[str] = tuple(_LOSSES)) -> Loss:
    """The loss called `name`, which must be one of `among`: by default any of the four.

    "logistic", log(1 + e^{−yz}); "square", ½(y − z)²; "hinge", max(0, 1 − yz); "exponential",
    e^{−yz}.

    Examples
    --------
    >>> loss = get_loss("logistic")
    >>> u = loss.prox(0.5, 1e6, 1)
    >>> float(round(u + 1e6 * loss.first(u, 1), 6))
    0.5
    >>> float(get_loss("square").prox(0.0, 1.0, 1))
    0.5
    >>> get_loss("hinge").prox([-1.0, 0.8, 2.0], 0.5, 1).tolist()
    [-0.5, 1.0, 2.0]
    """
    return _LOSSES[check_choice("loss", name, among)]
