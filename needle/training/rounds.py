"""More than two steps: rounds of gradient steps on readout and query, on fresh data or the same.

The literal recipe is unstable from the third step on, since the length of the query runs away.
Here a step only turns: the intercept is solved so that the pulls γ̄ = y₊ − n₊/n
add up to zero, as at the start, and the query is set back to sharpness T. A round is

- "readout": w = Σ γ̄_i X_iᵀ s_i with s = softmax(Xq), then q = T w/|w|; one step;
- "repeat": the same w, then q = T × the direction of Σ γ̄_i X_iᵀ (s_i∘(X_i w − ⟨s_i, X_i w⟩)); two.

The first round of "repeat" from q = 0 is the two steps of Chapter 4 with a calibrated intercept and
vanishing rates. With fresh bags in every step each direction is a mean in the span of ξ, q and w
plus noise, and its products follow from expectations over one bag (`needle.training.flow`).
Chapter 10, prop-10-rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from itertools import repeat

import numpy as np
from scipy.special import softmax

from ..data.tokens import SparseTokens, check_model
from ..kit.checks import check_choice, check_flag, check_integer, check_real, check_rng
from ..kit.losses import SMOOTH, Loss, get_loss
from ..kit.records import Measured, Readout
from ..kit.threads import in_one_thread
from ..readout.stationary import TOLERANCE, equations, solve_seen
from .batch import fresh_error
from .flow import Cloud, State, bags, frame_of, products, sample_cloud
from .worlds import Limit, TokenWorld, World

Array = np.ndarray
KINDS = ("readout", "repeat")
_BITS, _ENTRIES = 12, 2**22


def _direction(
    model: SparseTokens, cloud: Cloud, state: State, alpha: float, names: tuple[str, ...],
    square: str,
) -> tuple[Array, float]:  # fmt: skip
    """Products of a step with ξ, q and w (`names`), and its squared length, at mean pull 0."""
    frame, along, noise = frame_of(state), np.zeros(len(names)), 0.0
    for bag in bags(model, cloud, frame.size, state.query):
        θ, pull = model.theta * (bag.y > 0), (bag.y > 0) - model.pi
        height = {"xi": θ, "q": θ * state.query, "w": θ * state.readout}
        found = products(bag, frame, height)

        def mean(name: str, found: dict = found) -> float:
            constant, *rest = found[name]  # the means of 1, e and e² are 1, 0 and 1
            return float(np.mean(constant) + (np.mean(rest[1]) if len(rest) > 1 else 0.0))

        along += bag.share * pull * np.array([mean(name) for name in names])
        noise += bag.share * pull**2 * mean(square) / alpha
    gram = np.array([
        [1.0, state.query, state.readout],
        [state.query, state.query_square, state.overlap],
        [state.readout, state.overlap, state.readout_square],
    ])[: len(names), : len(names)]  # fmt: skip
    return along, float(along @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ along) + noise


@in_one_thread
def predict_rounds(
    model: SparseTokens, alpha: float, rounds: int, *, kind: str = "repeat", sharpness: float = 1.0
) -> Array:
    """The cosine of the query with ξ after each round, with alpha·d fresh bags in every step.

    Parameters
    ----------
    model, rounds : the tokens, and how many rounds
    alpha : bags of one step over d; a round is one step ("readout") or two ("repeat")
    kind, sharpness : the kind of round, and T > 0

    Examples
    --------
    >>> model = SparseTokens(L=50, R=1, theta=6.0, pi=0.5)
    >>> predict_rounds(model, 0.5, 4, kind="readout").round(2)
    array([0.29, 0.65, 0.91, 0.93])
    """
    model, T = check_model(model), check_real("sharpness", sharpness, 0, open_low=True)
    alpha = check_real("alpha", alpha, 0, open_low=True)
    rounds, kind = check_integer("rounds", rounds, 1), check_choice("kind", kind, KINDS)
    bits = min(_BITS, int(math.log2(_ENTRIES / model.L)))
    cloud, cos, path, size = sample_cloud(model, bits, 0), 0.0, [], 0.0
    for _ in range(rounds):
        state = State(size * cos, 0.0, size**2, 1.0, 0.0, 0.0)
        along, square = _direction(model, cloud, state, alpha, ("s·h", "s·u"), "s·s")
        along = along / math.sqrt(square)
        if kind == "repeat":
            state = State(size * cos, along[0], size**2, 1.0, along[1], 0.0)
            names = ("k·h", "k·u", "k·v")
            along, square = _direction(model, cloud, state, alpha, names, "k·k")
            along = along / math.sqrt(square)
        cos, size = float(along[0]), T
        path.append(cos)
    return np.array(path)


@in_one_thread
def simulate_rounds(
    model: SparseTokens,
    d: int,
    alpha: float,
    rounds: int,
    rng: np.random.Generator,
    *,
    kind: str = "repeat",
    sharpness: float = 1.0,
    fresh: bool = False,
) -> Array:
    """The cosine of the query with ξ after each round on literal tokens.

    Without `fresh` all steps read the same round(alpha·d) bags, held in memory; with it every step
    draws as many new ones.

    Examples
    --------
    >>> model, rng = SparseTokens(L=50, R=1, theta=6.0, pi=0.5), np.random.default_rng(0)
    >>> simulate_rounds(model, 200, 1.0, 4, rng, kind="readout").round(1)
    array([0.3, 0.8, 1. , 1. ])
    """
    model, rng, fresh = check_model(model), check_rng(rng), check_flag("fresh", fresh)
    rounds, d = check_integer("rounds", rounds, 1), check_integer("d", d, 2)
    n = max(2, round(check_real("alpha", alpha, 0, open_low=True) * d))

    def world() -> TokenWorld:
        X, y, _ = model.sample(n, d, rng)
        return TokenWorld(X, y.astype(float))

    worlds = (world() for _ in range(2 * rounds)) if fresh else repeat(world())
    return np.array([cosine(q) for q in _turns(worlds, rounds, kind, sharpness)])


@in_one_thread
def predict_reused_rounds(
    model: SparseTokens,
    alpha: float,
    rounds: int,
    *,
    kind: str = "repeat",
    sharpness: float = 1.0,
    bags: int = 4000,
    populations: int = 4,
    seed: int = 0,
) -> list[Measured]:
    """The cosine of the query with ξ after each round on the same alpha·d bags, as d → ∞.

    The rounds of `simulate_rounds`, run in the limit; numbers are means over `populations` of
    `bags` bags and carry their standard error.

    Examples
    --------
    >>> model = SparseTokens(L=50, R=1, theta=6.0, pi=0.5)
    >>> found = predict_reused_rounds(model, 0.5, 4, kind="readout", bags=1000)
    >>> [round(cos, 1) for cos in found]
    [0.3, 0.7, 0.9, 0.9]
    """
    worlds = _limits(model, alpha, rounds, kind, bags, populations, seed)
    paths = np.array([
        [cosine(q) for q in _turns(repeat(world), rounds, kind, sharpness)]
        for world in worlds
    ])  # fmt: skip
    return [Measured.of(cosines) for cosines in paths.T]


@in_one_thread
def predict_rounds_readout(
    model: SparseTokens,
    alpha: float,
    lam: float,
    rounds: int,
    *,
    kind: str = "readout",
    sharpness: float = 1.0,
    temperature: float | None = None,
    loss: str = "logistic",
    bags: int = 4000,
    populations: int = 4,
    seed: int = 0,
) -> Readout:
    """A readout with ridge lam > 0 behind the query of `rounds` rounds, all on the same bags.

    `temperature` is the sharpness behind which it is trained (None: that of the rounds).

    Examples
    --------
    >>> model = SparseTokens(L=20, R=1, theta=5.0, pi=0.5)
    >>> run = predict_rounds_readout(model, 2.0, 0.1, 3, temperature=2.5, bags=1000)
    >>> print(f"{run.test_error:.2f}")
    0.04
    """
    lam = check_real("lam", lam, 0, open_low=True)
    T = sharpness if temperature is None else temperature
    T, kernel = check_real("temperature", T, 0, open_low=True), get_loss(loss, SMOOTH)
    found = list[Readout]()
    for world in _limits(model, alpha, rounds, kind, bags, populations, seed):
        *_, q = _turns(repeat(world), rounds, kind, sharpness)
        q = T * q[0] / np.linalg.norm(q)
        found.append(readout_on(model, world, q, alpha, lam, kernel))
    names = [field.name for field in fields(Readout)[:6]]
    means = {name: Measured.of([getattr(one, name) for one in found]) for name in names}
    converged = all(one.converged for one in found)
    return Readout(**means, converged=converged, iterations=max(one.iterations for one in found))


def readout_on(
    model: SparseTokens, world: Limit, q: Array, alpha: float, lam: float, loss: Loss
) -> Readout:
    """The readout that the bags of a limit train behind softmax(Xq), whatever they did before."""
    seen = world.seen(q)
    x, residual, iterations = solve_seen(seen, alpha, lam, loss)
    D = len(seen.means)
    w = np.append(x[: D - 1], x[D])
    u = equations(seen, alpha, lam, loss, x)[2]
    return Readout(
        test_error=fresh_error(model, np.append(q[: D - 1], 0.0), w, float(x[D + 1])),
        train_loss=float(seen.weight @ loss.value(u, seen.y)),
        train_error=float(seen.weight @ (seen.y * u < 0)),
        signal=float(w[0]),
        norm=math.sqrt(w @ w),
        bias=float(x[D + 1]),
        converged=residual < TOLERANCE,
        iterations=iterations,
    )


def cosine(q: Array) -> float:
    """Of q (1, D) with the first axis; 0 for a vector of length 0."""
    size = math.sqrt(q[0] @ q[0])
    return float(q[0, 0]) / size if size else 0.0


def _limits(
    model: SparseTokens,
    alpha: float,
    rounds: int,
    kind: str,
    bags: int,
    populations: int,
    seed: int,
) -> Iterator[Limit]:
    model, alpha = check_model(model), check_real("alpha", alpha, 0, open_low=True)
    each = 1 + (check_choice("kind", kind, KINDS) == "repeat")
    pulls = each * check_integer("rounds", rounds, 1)
    bags, seed = check_integer("bags", bags, 50), check_integer("seed", seed, 0)
    for k in range(check_integer("populations", populations, 2)):
        yield Limit(model, alpha, bags, np.random.default_rng([seed, k]), 1 + pulls)


def _turns(worlds: Iterator[World], rounds: int, kind: str, sharpness: float) -> Iterator[Array]:
    """The query (1, D) after each round, from 0; every step asks for the next world."""
    T, q = check_real("sharpness", sharpness, 0, open_low=True), None
    kind = check_choice("kind", kind, KINDS)
    for _ in range(rounds):
        world = next(worlds)
        q = world.origin(1) if q is None else q
        w = world.pull(_centred(world) * softmax(world.field(q), axis=-1))
        w /= np.linalg.norm(w) or 1.0  # bags of one class teach nothing: cosine 0
        step = w
        if kind == "repeat":
            world = next(worlds)
            u, v = np.split(world.field(np.concatenate([q, w])), 2)
            s = softmax(u, axis=-1)
            step = world.pull(_centred(world) * s * (v - (s * v).sum(axis=-1, keepdims=True)))
        q = T * step / (np.linalg.norm(step) or 1.0)
        yield q


def _centred(world: World) -> Array:
    """γ̄ = y₊ − its mean, (n, 1)."""
    positive = world.y > 0
    return (positive - world.weight @ positive)[:, None]
