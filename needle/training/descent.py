"""One step of descent on queries, readouts and intercept, of one head or several.

`descend` is written once, with the field and the pull of a world (`needle.training.worlds`): it
runs on tokens, and in the limit d → ∞. See `needle.training.batch` for the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.special import softmax

from ..data.tokens import SparseTokens
from ..kit.checks import check_array, check_integer, check_real
from ..kit.losses import Loss, get_loss
from ..kit.records import Measured
from .worlds import World

Array = np.ndarray
Record = TypeVar("Record", bound=Any)
_BLOCK = 2**22  # entries of the largest block of tokens drawn at once
_SINGLE = 2**21  # above as many numbers the tokens of a simulation are kept in single precision


class Rule(NamedTuple):
    """The loss, the rates of q, w and b, and the decays of q and w."""

    loss: Loss
    lr_q: float
    lr_w: float
    lr_b: float
    decay: Array


class State(NamedTuple):
    """Queries q and readouts w of all heads, (heads, D) each, and the intercept."""

    q: Array
    w: Array
    b: float


class Heard(NamedTuple):
    """What the bags show at a state: scores (n,), and marks (2·heads, n, L) still without g."""

    t: Array
    marks: Array


def scores(world: World, state: State) -> Heard:
    """⟨s, Xw⟩ + b, and the marks s∘(Xw − ⟨s, Xw⟩) and s of each head."""
    u, v = np.split(world.field(np.concatenate([state.q, state.w])), 2)
    s = softmax(u, axis=-1)
    means = np.einsum("hnl,hnl->hn", s, v)
    marks = np.concatenate([s * (v - means[..., None]), s])
    return Heard(means.sum(axis=0) + state.b, marks)


def slope(world: World, seen: Heard, loss: Loss) -> State:
    """The gradient of the mean loss."""
    g = loss.first(seen.t, world.y)
    q, w = np.split(world.pull(g.astype(seen.marks.dtype)[:, None] * seen.marks), 2)
    return State(q, w, float(world.weight @ g))


def descend(world: World, state: State, rule: Rule) -> Iterator[tuple[State, Heard]]:
    """The states of descent, each with its scores; a step is taken when the next one is asked."""
    keep_q, keep_w = 1 - np.array([rule.lr_q, rule.lr_w]) * rule.decay
    while True:
        seen = scores(world, state)
        yield state, seen
        move = slope(world, seen, rule.loss)
        state = State(
            keep_q * state.q - rule.lr_q * move.q,
            keep_w * state.w - rule.lr_w * move.w,
            state.b - rule.lr_b * move.b,
        )


def draw_tokens(
    model: SparseTokens, n: int, d: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """n bags, drawn in blocks; in single precision where they are many."""
    single = n * model.L * d > _SINGLE
    X = np.empty((n, model.L, d), dtype=np.float32 if single else float)
    y, size = np.empty(n), max(1, _BLOCK // (model.L * d))
    for first in range(0, n, size):
        block = model.sample(min(size, n - first), d, rng)
        X[first : first + size], y[first : first + size] = block.X, block.y
    return X, y


def check_steps(steps: Sequence[int]) -> list[int]:
    """Step counts, rising; ValueError for others."""
    counts = [check_integer("steps", x, 0) for x in check_array("steps", steps, "m").tolist()]
    if any(b <= a for a, b in pairwise(counts)):
        raise ValueError(f"steps = {steps!r} is not allowed: steps must rise")
    return counts


def check_rule(
    loss: str, lr_q: float, lr_w: float, lr_b: float, decay: float | tuple[float, float]
) -> Rule:
    """The rates, decays and loss of a descent; ValueError for what cannot be meant."""
    named = {"lr_q": lr_q, "lr_w": lr_w, "lr_b": lr_b}
    rate_q, rate_w, rate_b = (check_real(name, value, 0) for name, value in named.items())
    pair = np.full(2, decay) if np.ndim(decay) == 0 else decay
    for value in (both := check_array("decay", pair, 2)):
        check_real("decay", value, 0)
    return Rule(get_loss(loss), rate_q, rate_w, rate_b, both)


def in_populations(
    run: Callable[[np.random.Generator], list[Record]], populations: int, seed: int
) -> list[list[Record]]:
    """The records of at least two independent runs, each with a generator of its own."""
    count = check_integer("populations", populations, 2)
    return [run(np.random.default_rng([seed, k])) for k in range(count)]


def means_of(runs: list[list[Record]]) -> list[Record]:
    """Field by field the means over runs, each with its standard error, at each step."""
    names = [field.name for field in fields(runs[0][0]) if field.name != "step"]
    return [
        type(records[0])(
            step=records[0].step,
            **{name: Measured.of([getattr(one, name) for one in records]) for name in names},
        )
        for records in zip(*runs, strict=True)
    ]
