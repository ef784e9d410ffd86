"""Linear separability of a data set, decided and proved.

Data (f_i, y_i) are separable if some (w, b) has y_i(⟨w, f_i⟩ + b) > 0 for every i. Gordan's
theorem: either that is so, or there are multipliers c ≥ 0, c ≠ 0, with Σ c_i y_i (f_i, 1) = 0.
Appendix D, thm-d-gordan and prp-d-nnls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, lstsq, solve_triangular, svd
from scipy.optimize import nnls

from ..kit.checks import check_array, check_flag, check_labels
from ..kit.records import ConvergenceError
from ..kit.threads import in_one_thread

_EPS = np.finfo(float).eps


class Separability(NamedTuple):
    """An answer with its proof.

    Attributes
    ----------
    separable : whether some hyperplane has every row strictly on the side of its label
    certificate : if so, that hyperplane, (w, b) in one array (d+1,), or w (d,) without intercept;
        if not, the multipliers (n,) of Gordan's theorem, non-negative and with sum 1
    """

    separable: bool
    certificate: np.ndarray


@in_one_thread
def separability(F: ArrayLike, y: ArrayLike, *, intercept: bool = True) -> Separability:
    """Decide whether a hyperplane separates the rows of F by their labels, and prove it.

    The point nearest the origin in the convex hull of the rows A_i = y_i(f_i, 1) decides. If it is
    not the origin it is itself the normal of a separating hyperplane; if it is, its coefficients
    are the multipliers. Non-negative least squares finds it, in whitened coordinates and among a
    growing set of those rows that are hardest to classify.

    Either proof is verified before it is returned, on the rows with both sides of the matrix scaled
    by exact powers of two so that its largest entries are near 1: every margin exceeds its rounding
    error, or Σ c_i A_i is below 1e-12 Σ c_i in every component, so that no larger margin can exist.
    If both fail, `ConvergenceError` carries the best guess.

    Parameters
    ----------
    F : features (n, d)
    y : labels in {−1, +1}, (n,)
    intercept : whether the hyperplane may miss the origin

    Examples
    --------
    >>> corners = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])
    >>> separability(corners, [1, 1, 1, -1]).separable
    True
    >>> exclusive_or = separability(corners, [-1, -1, 1, 1])
    >>> exclusive_or.separable, exclusive_or.certificate.round(3).tolist()
    (False, [0.25, 0.25, 0.25, 0.25])
    """
    return prepared(signed_rows(F, y, intercept)).decide()


class _Rows(NamedTuple):
    """Rows A with both sides scaled, and the same in whitened coordinates at unit length."""

    A: np.ndarray
    row: np.ndarray
    column: np.ndarray
    whitener: np.ndarray
    Q: np.ndarray
    length: np.ndarray

    def first(self, n: int) -> _Rows:
        """The first n rows, in the coordinates of all."""
        A, row, column, whitener, Q, length = self
        return _Rows(A[:n], row[:n], column, whitener, Q[:n], length[:n])

    def decide(self) -> Separability:
        A, row, column, whitener, Q, length = self
        zero = length == 0
        if zero.any():  # a row of zeros has margin zero, whatever the hyperplane
            return Separability(False, np.where(zero, 1 / np.count_nonzero(zero), 0.0))
        p = Q.shape[1]
        w = length @ Q  # where all rows are whitened, the least-squares solution of A w = 1
        fresh = working = np.argsort(Q @ w)[: 3 * p]
        while not _separates(A, whitener @ w):
            if not fresh.size:
                margin = (Q @ w).min() / np.linalg.norm(w)
                raise ConvergenceError(
                    "neither proof holds beyond rounding; the best relative margin is "
                    f"{margin:.1e}: remove nearly dependent features",
                    Separability(bool(margin > 0), whitener @ w / column),
                )
            try:
                c = _nearest_in_hull(Q[working])
            except RuntimeError as error:
                raise ConvergenceError(
                    f"non-negative least squares: {error}; remove nearly dependent features",
                    Separability(False, whitener @ w / column),
                ) from error
            multipliers = np.zeros(len(A))
            multipliers[working] = c / length[working]
            multipliers *= multipliers > _EPS * multipliers.max()
            if _balances(A, multipliers):
                multipliers /= row
                return Separability(False, multipliers / multipliers.sum())
            w = c @ Q[working]
            margins = Q @ w
            hard = max(2 * np.count_nonzero(margins <= 0), p // 2)
            fresh = np.setdiff1d(np.argsort(margins)[:hard], working)
            if not (fresh.size or _separates(A, whitener @ w)):  # equal margins on the support
                w = lstsq(Q[working][c > 0], np.ones(np.count_nonzero(c)))[0]
            working = np.append(working, fresh)
        return Separability(True, whitener @ w / column)


def prepared(A: np.ndarray) -> _Rows:
    """Rows in balanced units and orthonormal columns, each of length 1 (or 0)."""
    A, row, column = _equilibrate(A)
    whitener = _whitener(A)
    Q = A @ whitener
    length = np.where(A.any(axis=1), np.maximum(np.linalg.norm(Q, axis=1), _EPS), 0)
    return _Rows(A, row, column, whitener, Q / np.where(length, length, 1)[:, None], length)


def signed_rows(F: ArrayLike, y: ArrayLike, intercept: bool) -> np.ndarray:
    """The rows A_i = y_i(f_i, 1), or y_i f_i without intercept, of checked data."""
    F = check_array("F", F, "n", "d")
    y = check_labels("y", y, len(F))
    A = np.column_stack([F, np.ones(len(F))]) if check_flag("intercept", intercept) else F
    return A * y[:, None]


def _equilibrate(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A with rows and columns divided by powers of two, so largest entries near 1; and those."""
    scales = [np.ones((1, A.shape[1])), np.ones((len(A), 1))]
    for axis in (0, 1, 0, 1, 0):
        size = np.maximum(A.max(axis=axis, keepdims=True), -A.min(axis=axis, keepdims=True))
        power = np.exp2(np.round(np.log2(np.where(size, size, 1))))
        if (power != 1).any():
            A, scales[axis] = A / power, scales[axis] * power
    return A, scales[1][:, 0], scales[0][0]


def _whitener(A: np.ndarray) -> np.ndarray:
    """M (p, rank) such that the columns of A M are orthonormal."""
    try:
        R = cholesky(A.T @ A)
        if np.diag(R).min() < 1e-5 * np.diag(R).max():
            raise LinAlgError
        return solve_triangular(R, np.eye(len(R)))
    except LinAlgError:
        _, s, V = svd(A, full_matrices=False)
        keep = s > s[0] * max(A.shape) * _EPS
        return V[keep].T / s[keep]


def _nearest_in_hull(Q: np.ndarray) -> np.ndarray:
    """Coefficients c ≥ 0, up to a factor, of the point of the hull of the rows nearest the origin.

    They minimise |Qᵀc|² + (1 − Σc)²; at the minimum every row has ⟨Q_i, Qᵀc⟩ ≥ 1 − Σc ≥ 0.
    """
    n, p = Q.shape
    return nnls(np.vstack([Q.T, np.ones(n)]), np.eye(p + 1)[p], maxiter=30 * (n + p))[0]


def _separates(A: np.ndarray, w: np.ndarray) -> bool:
    """Whether every margin exceeds its rounding error."""
    return bool((A @ w > 2 * (len(w) + 1) * _EPS * (np.abs(A) @ np.abs(w))).all())


def _balances(A: np.ndarray, c: np.ndarray) -> bool:
    """Whether Σ c_i A_i vanishes to rounding, c ≥ 0."""
    return bool(c.min() >= 0 and (np.abs(c @ A) <= 1e-12 * c.sum()).all())
