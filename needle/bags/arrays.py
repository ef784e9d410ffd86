"""Bags of unequal length: one flat array of tokens and where each bag ends; and real bags by name.

A bag is a set of tokens with one label. Sums over the tokens of a bag are `reduceat` over the flat
array, or products with a sparse matrix of weights: no bag is padded, nothing of the size of the
tokens is made, and tokens may be sparse themselves (CSR).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from ..kit.checks import check_array, check_choice, check_integer, check_real, check_rng

Array = np.ndarray
STORED = {"tokens": "<f4", "starts": "<i8", "y": "<i8"}
SHA256 = {  # of the numbers of each benchmark, one array after the other
    "musk1": "a2c15aff4a52347627487bd6c323b453c12192414842c9c29a8eee45c9f5cc25",
    "musk2": "b06c42936ec3b0b227aac8585d9f2d8e863e8da4dfc85430c6b0516131438cc0",
    "elephant": "336725dfbea3a1eb3766cf8d5604c5f621f20a179986731910d8909e89b4bcda",
    "protein": "428f1bbb10393cf5a5428f296aa292c1d7676935fc5232670c0053244eee02f9",
}


@dataclass(frozen=True)
class Bags:
    """Tokens (N, d) of n bags, one after the other; bag i is tokens[starts[i] : starts[i + 1]].

    Tokens are an array, or a sparse one by rows (`csr_array`). No bag is empty: `reduceat` would
    give it a token of the next.

    >>> Bags(np.zeros((3, 2)), np.array([0, 1, 1, 3]))
    Traceback (most recent call last):
    ...
    ValueError: starts = [0, 1, 1, 3] is not allowed: starts must be integers rising from 0 to 3
    """

    tokens: Array
    starts: Array

    def __post_init__(self) -> None:
        starts, N = np.asarray(self.starts), np.shape(self.tokens)[0]
        whole = starts.ndim == 1 and len(starts) > 0 and starts.dtype.kind in "iu"
        if not (whole and starts[0] == 0 and starts[-1] == N and (starts[1:] > starts[:-1]).all()):
            raise ValueError(
                f"starts = {np.array2string(starts, threshold=9, separator=', ')} is not allowed: "
                f"starts must be integers rising from 0 to {N}"
            )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Array:
        """The number of tokens of each bag."""
        return np.diff(self.starts)

    @property
    def owner(self) -> Array:
        """For each token the number of its bag."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def sums(self, values: Array) -> Array:
        """Sums over each bag of one value (N,) or row (N, p) a token."""
        return np.add.reduceat(values, self.starts[:-1], axis=0)

    def means(self) -> Array:
        """The mean token of each bag (n, d)."""
        return self.weighted(np.repeat(1 / self.sizes, self.sizes))

    def weighted(self, weights: Array) -> Array:
        """Sums of the tokens of each bag with one weight a token (n, d), dense."""
        rows = csr_array((weights, np.arange(len(weights)), self.starts), (len(self), len(weights)))
        return (rows @ self.tokens).toarray() if issparse(self.tokens) else rows @ self.tokens

    def largest(self, values: Array) -> Array:
        """The largest value over each bag."""
        return np.maximum.reduceat(values, self.starts[:-1], axis=0)

    def weights(self, heights: Array) -> Array:
        """The softmax of heights (N,) within each bag."""
        weight = np.exp(heights - self.largest(heights)[self.owner])
        return weight / self.sums(weight)[self.owner]

    def attended(self, heights: Array) -> Array:
        """The softmax average of the tokens of each bag (n, d)."""
        return self.weighted(self.weights(heights))

    def mapped(self, tokens: Array) -> Bags:
        """The same bags with other tokens."""
        return Bags(tokens, self.starts)

    def take(self, chosen: Array) -> Bags:
        """Some of the bags, by number or by a mask."""
        numbers = np.arange(len(self))[chosen]
        places = [np.arange(self.starts[k], self.starts[k + 1]) for k in numbers]
        sizes = self.sizes[numbers]
        return Bags(self.tokens[np.concatenate(places)], np.concatenate([[0], np.cumsum(sizes)]))


def as_bags(X: object, name: str = "X") -> Bags:
    """Bags from a list of arrays (L_i, d), an array (n, L, d), or a table (n, d) of lone tokens.

    The arrays of a list may be sparse; then the tokens stay so.

    >>> as_bags([np.zeros((2, 3)), np.zeros((5, 3))]).sizes.tolist()
    [2, 5]
    >>> as_bags(np.zeros((4, 3))).sizes.tolist()
    [1, 1, 1, 1]
    """
    if isinstance(X, Bags):
        return X
    if isinstance(X, np.ndarray) and X.ndim == 2:
        tokens = check_array(name, X, "n", "d")
        return Bags(tokens, np.arange(len(tokens) + 1))
    if not isinstance(X, Sequence | np.ndarray) or isinstance(X, str) or len(X) == 0:
        raise ValueError(
            f"{name} of type {type(X).__name__} is not allowed: {name} must be a list of arrays "
            "(L_i, d), an array (n, L, d) or a table (n, d)"
        )
    if all(issparse(bag) for bag in X):
        return _sparse_bags(list(X), name)
    bags = [check_array(f"{name}[{i}]", bag, "L", "d") for i, bag in enumerate(X)]
    return Bags(np.concatenate(_of_one_width(bags, name)), _starts(bags))


def _sparse_bags(bags: list, name: str) -> Bags:
    for i, bag in enumerate(bags):
        if bag.ndim != 2 or bag.shape[0] == 0 or not np.isfinite(bag.tocsr().data).all():
            raise ValueError(f"{name}[{i}] is not allowed: bags hold tokens (L, d), all finite")
    tokens = csr_array(vstack(_of_one_width(bags, name), format="csr"), dtype=float)
    return Bags(tokens, _starts(bags))


def _starts(bags: list) -> Array:
    return np.concatenate([[0], np.cumsum([bag.shape[0] for bag in bags])])


def _of_one_width(bags: list, name: str) -> list:
    widths = {bag.shape[1] for bag in bags}
    if len(widths) > 1:
        raise ValueError(
            f"{name} with tokens of {sorted(widths)} entries is not allowed: all tokens must have "
            "the same number"
        )
    return bags


def digits() -> tuple[Array, Array]:
    """scikit-learn's images of digits, (1797, 64) in units of full ink, and which digit each is."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.data / 16, data.target


def digit_bags(
    n: int,
    L: int,
    R: int,
    rng: np.random.Generator,
    *,
    needle: int = 0,
    pi: float = 0.5,
    rows: Array | None = None,
) -> tuple[Bags, Array, Array]:
    """Bags of handwritten digits: positives hide R images of one digit among L, negatives none.

    Images are drawn with replacement: bags share images, but no image carries a label.

    Parameters
    ----------
    n, L, R : bags, images a bag, needles a positive bag;  needle : the digit that is the needle
    pi : probability of a positive bag
    rows : the images to draw from (default: all 1797), so that training and test share none

    Returns
    -------
    bags, labels in {−1, +1} (n,), and for each token whether it is a needle (N,)

    Examples
    --------
    >>> bags, y, hidden = digit_bags(6, 20, 2, np.random.default_rng(0))
    >>> len(bags), bags.tokens.shape, bool((bags.sums(hidden * 1) == np.where(y > 0, 2, 0)).all())
    (6, (120, 64), True)
    """
    n, L = check_integer("n", n, 1), check_integer("L", L, 1)
    R = check_integer("R", R, 1, L)
    needle = check_integer("needle", needle, 0, 9)
    pi, rng = check_real("pi", pi, 0, 1), check_rng(rng)
    images, names = digits()
    rows = np.arange(len(images)) if rows is None else np.asarray(rows)
    straws, needles = rows[names[rows] != needle], rows[names[rows] == needle]
    y = np.where(rng.random(n) < pi, 1, -1)
    places = rng.choice(straws, size=(n, L))
    hidden = (np.argsort(rng.random((n, L)), axis=1) < R) & (y > 0)[:, None]
    places[hidden] = rng.choice(needles, size=int(hidden.sum()))
    return Bags(images[places].reshape(n * L, -1), np.arange(n + 1) * L), y, hidden.ravel()


def benchmark(name: str) -> tuple[Bags, Array]:
    """Bags and labels of "musk1", "musk2", "elephant" or "protein", fetched by `make bags`."""
    check_choice("name", name, tuple(SHA256))
    path = Path(__file__).resolve().parents[2] / "_vendor" / "bags" / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"the bags {name} are not here: `make bags` fetches them")
    with np.load(path) as data:
        parts = [data[part].astype(kind) for part, kind in STORED.items()]
    found = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    if found != SHA256[name]:
        raise ValueError(
            f"{path.name} with the sha256 {found} of its numbers is not allowed: delete it, and "
            "`make bags` fetches it again"
        )
    tokens, starts, y = parts
    return Bags(tokens.astype(float), starts.astype(np.intp)), y
