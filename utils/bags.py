"""Bags of unequal length: one flat array of tokens and where each bag ends; and bags of digits.

A bag is a set of tokens with one label. All sums over the tokens of a bag are `reduceat` over the
flat array, so no bag is padded and memory is that of the tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .validation import check_array, check_choice, check_integer, check_real, check_rng

Array = np.ndarray


@dataclass(frozen=True)
class Bags:
    """Tokens (N, d) of n bags, one after the other; bag i is tokens[starts[i] : starts[i + 1]]."""

    tokens: Array
    starts: Array

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
        return self.sums(self.tokens) / self.sizes[:, None]

    def largest(self, values: Array) -> Array:
        """The largest value over each bag."""
        return np.maximum.reduceat(values, self.starts[:-1], axis=0)

    def weights(self, heights: Array) -> Array:
        """The softmax of heights (N,) within each bag."""
        weight = np.exp(heights - self.largest(heights)[self.owner])
        return weight / self.sums(weight)[self.owner]

    def attended(self, heights: Array) -> Array:
        """The softmax average of the tokens of each bag (n, d)."""
        return self.sums(self.weights(heights)[:, None] * self.tokens)

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
    bags = [check_array(f"{name}[{i}]", bag, "L", "d") for i, bag in enumerate(X)]
    widths = {bag.shape[1] for bag in bags}
    if len(widths) > 1:
        raise ValueError(
            f"{name} with tokens of {sorted(widths)} entries is not allowed: all tokens must have "
            "the same number"
        )
    starts = np.concatenate([[0], np.cumsum([len(bag) for bag in bags])])
    return Bags(np.concatenate(bags), starts)


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
    check_choice("name", name, ("musk1", "musk2", "elephant", "protein"))
    path = Path(__file__).resolve().parent.parent / "_vendor" / "bags" / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"the bags {name} are not here: `make bags` fetches them")
    with np.load(path) as data:
        return Bags(data["tokens"].astype(float), data["starts"]), data["y"]
