"""Real bags by name: digits of scikit-learn, and benchmarks that `make bags` fetches."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from ..kit.checks import check_choice, check_integer, check_real, check_rng
from .arrays import Array, Bags

STORED = {"tokens": "<f4", "starts": "<i8", "y": "<i8"}
SHA256 = {  # of the numbers of each benchmark, one array after the other
    "musk1": "a2c15aff4a52347627487bd6c323b453c12192414842c9c29a8eee45c9f5cc25",
    "musk2": "b06c42936ec3b0b227aac8585d9f2d8e863e8da4dfc85430c6b0516131438cc0",
    "elephant": "336725dfbea3a1eb3766cf8d5604c5f621f20a179986731910d8909e89b4bcda",
    "protein": "428f1bbb10393cf5a5428f296aa292c1d7676935fc5232670c0053244eee02f9",
    "birds": "e4b51d5533927bf410c58ecb93f7faa3d2690a476c77eebdba7866d30dac1250",
    "ucsb": "8b7d897aec38ae64c5dc7d77fe2e6d087dcb3410efc8e6884136e663676770c1",
    "corel": "bef38a6a41d2cf9bea9e7c00a6935d1e0dc78f8f9ebff4de3e7d40d6004b14c0",
}


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
