"""The second step at the calibrated rate, for bags of unequal length: one query for all rooms.

w⁽¹⁾ = η_w Σᵢ γᵢ z̄ᵢ/n, and the query q⁽²⁾ = Σᵢ γᵢ′ Covᵢ w⁽¹⁾/n, with the covariance Covᵢ of the
tokens *within* bag i (eq-b-query for bags of unequal length). At the rate η_w → 0 the pulls are
y₊ − π̂ up to a factor; η_w is small and not 0, as in a plan.
"""

from __future__ import annotations

import numpy as np

from ..kit.losses import get_loss
from ..kit.threads import in_one_thread
from ..steps.rates import RATE_W, calibrated_rate
from .arrays import Array, Bags
from .units import Whitening


@in_one_thread
def query(
    bags: Bags,
    y: Array,
    white: Whitening | None = None,
    *,
    weight: Array | None = None,
    means: Array | None = None,
) -> Array:
    """The unit query in the coordinates of `white`, whose tokens are not made.

    Parameters
    ----------
    y : labels −1 or +1;  white : a whitening, by default none
    weight : (n,), how much each bag counts; 0 leaves it out
    means : `bags.means()`, where it is known

    >>> from needle.bags.arrays import as_bags
    >>> from needle.data.tokens import SparseTokens
    >>> from needle.steps.rule import two_steps
    >>> model = SparseTokens(L=8, R=2, theta=4.0, pi=0.5)
    >>> X, y, _ = model.sample(200, 12, np.random.default_rng(0))
    >>> pi = np.mean(y > 0)
    >>> q = two_steps(X, y, lr_w=RATE_W, lr_b=calibrated_rate(pi)).q
    >>> np.allclose(query(as_bags(list(X)), y), q / np.linalg.norm(q))
    True
    """
    gradient = get_loss("logistic").first
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    white = Whitening.identity(bags.tokens.shape[1]) if white is None else white
    centers = white.rows(bags.means() if means is None else means)
    slopes = share * gradient(np.zeros(len(y)), y)
    w = -RATE_W * (slopes @ centers)
    b = -calibrated_rate(float(share[y > 0].sum())) * slopes.sum()
    middle, along, of = centers @ w, white.pulled(w), bags.owner
    pulls = -share * gradient(middle + b, y) / bags.sizes
    # the weights of a bag add up to zero, so that its tokens need not be centered
    q = white.turned(bags.returned(along, pulls[of], middle[of] + float(white.mean @ along)))
    length = np.linalg.norm(q)
    return q / length if length > 0 else q
