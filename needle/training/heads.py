"""Two heads trained together where needles are of two kinds: do they split the work?

A positive bag holds R needles of one of two kinds, each as often: θξ₁ or θξ₂, with ξ₁ ⟂ ξ₂. The
score is the sum over two heads of ⟨softmax(Xq_h), Xw_h⟩, plus b; all five are trained by descent
on the same bags (`needle.training.descent.descend`). Started from directions that know nothing the
limit d → ∞ is symmetric under ξ₁ ↔ ξ₂ at every fixed step: a split grows out of the `lean` of the
starts, in R^d a cosine of size 1/√d. Chapter 8, thm-8-worlds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_integer, check_real, check_rng
from ..kit.threads import in_one_thread
from .descent import (
    Rule,
    State,
    check_rule,
    check_steps,
    descend,
    draw_tokens,
    in_populations,
    means_of,
)
from .worlds import Limit, TokenWorld, World

Array = np.ndarray


@dataclass(frozen=True)
class TwoHeads:
    """Two heads after `step` steps.

    Attributes
    ----------
    step, train_loss : steps taken, and the mean loss on the bags
    own : mean cosine of a head's query with the kind of needle on which it leaned at the start
    other : mean cosine with the other kind
    """

    step: int
    train_loss: float
    own: float
    other: float


@in_one_thread
def predict_two_heads(
    model: SparseTokens,
    alpha: float,
    steps: Sequence[int],
    *,
    loss: str = "logistic",
    lr: float = 1.0,
    decay: float = 0.0,
    start: float = 0.1,
    lean: float = 0.1,
    bags: int = 2000,
    populations: int = 4,
    seed: int = 0,
) -> list[TwoHeads]:
    """The limit d → ∞ of `simulate_two_heads`, with standard errors over the populations.

    Examples
    --------
    >>> model = SparseTokens(L=20, R=1, theta=5.0, pi=0.5)
    >>> for one in predict_two_heads(model, 4.0, [10, 60], decay=0.1, bags=500):
    ...     print(f"{one.own:.1f} {abs(one.other):.1f}")
    0.6 0.6
    0.9 0.0
    """
    model, alpha = check_model(model), check_real("alpha", alpha, 0, open_low=True)
    rule, counts = check_rule(loss, lr, lr, lr, decay), check_steps(steps)
    bags, seed = check_integer("bags", bags, 50), check_integer("seed", seed, 0)

    def run(rng: np.random.Generator) -> list[TwoHeads]:
        world = Limit(model, alpha, bags, rng, 6 + 4 * counts[-1], kinds=2)
        return _run(world, start, lean, rule, counts)

    return means_of(in_populations(run, populations, seed))


@in_one_thread
def simulate_two_heads(
    model: SparseTokens,
    d: int,
    alpha: float,
    steps: Sequence[int],
    rng: np.random.Generator,
    *,
    loss: str = "logistic",
    lr: float = 1.0,
    decay: float = 0.0,
    start: float = 0.1,
    lean: float = 0.1,
) -> list[TwoHeads]:
    """Descent on two heads and the intercept, on round(alpha·d) bags of literal tokens.

    Parameters
    ----------
    model : of a bag's needles, all of one kind: ξ₁ and ξ₂ are the first two axes
    d, alpha, steps, rng : as in `simulate_descent`
    loss, lr, decay : the loss, one rate for all five, and λ of queries and readouts
    start : length of queries and readouts
    lean : cosine of each query with a kind of its own at the start; else directions are random
    """
    model, d, rng = check_model(model), check_integer("d", d, 3), check_rng(rng)
    n = max(2, round(check_real("alpha", alpha, 0, open_low=True) * d))
    rule, counts = check_rule(loss, lr, lr, lr, decay), check_steps(steps)
    X, y = draw_tokens(model, n, d, rng)
    second = (y > 0) & (rng.random(n) < 0.5)
    X[second, :, :2] = X[second, :, 1::-1]  # the needle moves to the second axis
    return _run(TokenWorld(X, y, rng), start, lean, rule, counts)


def _run(world: World, start: float, lean: float, rule: Rule, counts: list[int]) -> list[TwoHeads]:
    start = check_real("start", start, 0, open_low=True)
    lean = check_real("lean", lean, 0, 1)
    cosines = np.zeros((4, 2))
    cosines[0, 0] = cosines[1, 1] = lean
    begin, records = world.start([start] * 4, cosines), list[TwoHeads]()
    states = descend(world, State(begin[:2], begin[2:], 0.0), rule)
    for step in range(counts[-1] + 1):
        state, seen = next(states)
        if step in counts:
            cos = state.q[:, :2] / np.linalg.norm(state.q, axis=1)[:, None]
            loss = float(world.weight @ rule.loss.value(seen.t, world.y))
            own, other = np.trace(cos) / 2, np.trace(cos[::-1]) / 2
            records.append(TwoHeads(step, loss, float(own), float(other)))
    return records
