"""Chapter 8: the same data again. One trial each; what is run stands in `again.toml`."""

from __future__ import annotations

from typing import Any

import numpy as np

from needle.data.classifiers import attention
from needle.data.tokens import SparseTokens
from needle.readout.capacity import predict_capacity
from needle.readout.limit import predict_readout
from needle.readout.literal import simulate_reuse
from needle.readout.reuse import predict_reuse, reuse_path
from needle.readout.twice import predict_reused_capacity, simulate_reused_separable
from needle.steps.alignment import predict_alignment
from needle.training.batch import predict_descent, simulate_descent
from needle.training.heads import predict_two_heads, simulate_two_heads
from needle.training.rounds import predict_reused_rounds, predict_rounds_readout, simulate_rounds

Numbers = dict[str, float]
NAMES = (
    "train_loss", "train_error", "test_error", "query_cos", "query_norm", "readout_cos",
    "readout_norm", "bias",
)  # fmt: skip
TIMES = (*range(4, 41), 48, 60, 80, 120, 200, 300)


def setting(name: str) -> tuple[SparseTokens, float, list[int], dict[str, Any]]:
    """Model, alpha, steps and options of a setting in which tokens are held against the limit."""
    third = {"lr_q": 0.3, "lr_w": 0.6, "lr_b": 0.3}
    return {
        "plain": (SparseTokens(20, 1, 5.0, 0.5), 4.0, [5, 15, 60], {}),
        "decay": (SparseTokens(20, 1, 5.0, 0.5), 1.0, [10, 30, 100], {"decay": 0.1}),
        "rare": (SparseTokens(10, 2, 3.0, 0.3), 2.0, [5, 20, 60], {"decay": 0.05, "lr_b": 2.0}),
        "square": (
            SparseTokens(10, 1, 4.0, 0.5), 3.0, [5, 20, 60],
            {"loss": "square", "lr_q": 0.2, "lr_w": 0.2, "lr_b": 0.2},
        ),
        "square, decay": (
            SparseTokens(20, 2, 3.0, 0.2), 1.5, [5, 20, 60],
            {"loss": "square", "decay": 0.1} | third,
        ),
        "three needles": (SparseTokens(50, 3, 3.0, 0.4), 2.0, [10, 30, 60], {"decay": (0.1, 0.02)}),
        "few tokens": (
            SparseTokens(5, 1, 3.0, 0.2), 2.0, [3, 10, 40], {"lr_q": 2.0, "start": (1.0, 0.5)},
        ),
        "long": (SparseTokens(200, 2, 6.0, 0.5), 2.0, [5, 10, 20], {"decay": 0.05}),
    }[name]  # fmt: skip


def literal_descent(name: str, d: int, rng: np.random.Generator) -> Numbers:
    """Descent on literal tokens."""
    model, alpha, steps, options = setting(name)
    run = simulate_descent(model, d, alpha, steps, rng, **options)
    return {f"{field}@{one.step}": getattr(one, field) for one in run for field in NAMES}


def limit_descent(name: str, rng: np.random.Generator) -> Numbers:
    """The limit of `literal_descent`, from two populations of 2000 bags."""
    model, alpha, steps, options = setting(name)
    told: dict[str, Any] = {"populations": 2, "seed": int(rng.integers(2**31))}
    run = predict_descent(model, alpha, steps, **options, **told)
    return {f"{field}@{one.step}": float(getattr(one, field)) for one in run for field in NAMES}


def in_time(alpha: float, decay: float, rng: np.random.Generator, last: int = 300) -> Numbers:
    """The limit of descent at rates ½ in L = 20, θ = 5, π = ½, from four populations.

    At every step to 40, then at some; `last` ends it before.
    """
    model, rates = SparseTokens(20, 1, 5.0, 0.5), dict.fromkeys(("lr_q", "lr_w", "lr_b"), 0.5)
    told: dict[str, Any] = {"bags": 6000, "populations": 4, "seed": int(rng.integers(2**31))}
    times = [step for step in TIMES if step <= last]
    run = predict_descent(model, alpha, times, decay=decay, **rates, **told)
    kept = ("train_loss", "train_error", "test_error", "query_cos", "query_norm", "readout_norm")
    found = {f"{field}@{one.step}": float(getattr(one, field)) for one in run for field in kept}
    errors = [one.test_error for one in run]
    best = run[int(np.argmin(errors))]
    scatter = best.test_error.standard_error  # type: ignore[attr-defined]
    return found | {"least": float(min(errors)), "when": best.step / 2, "scatter": scatter}


def at_its_best(alpha: float, rng: np.random.Generator) -> Numbers:
    """Two steps, and ten rounds, each with a readout, all on the same bags; sharpness, ridge tuned.

    The setting of `in_time`. η_b = 4; the best of four sharpnesses and four ridges.
    """
    model, lams = SparseTokens(20, 1, 5.0, 0.5), [0.3, 0.1, 0.03, 0.01]
    steps, rounds = [], []
    for T in (2.0, 2.5, 3.0, 4.0):
        path = reuse_path(model, alpha, lams, temperature=T, lr_b=4.0)
        steps += [(run.test_error, T, lam) for (run, _), lam in zip(path, lams, strict=True)]
        for lam in lams:
            told: dict[str, Any] = {"temperature": T, "bags": 3000, "populations": 2}
            run = predict_rounds_readout(model, alpha, lam, 10, **told)
            rounds.append((float(run.test_error), T, lam))
    names = ("error", "sharpness", "ridge")
    return {
        f"{who} {name}": value
        for who, found in (("steps", steps), ("rounds", rounds))
        for name, value in zip(names, min(found), strict=True)
    }


def take_off(L: int, theta: float, alpha: float, rng: np.random.Generator) -> Numbers:
    """The largest cosine of the query in descent without decay, rates 1, in the limit."""
    last = int(min(30 + 0.8 * L, 120))
    told: dict[str, Any] = {"bags": 1500, "populations": 2, "seed": int(rng.integers(2**31))}
    run = predict_descent(SparseTokens(L, 1, theta, 0.5), alpha, range(5, last, 5), **told)
    best = max(run, key=lambda one: one.query_cos)
    scatter = best.query_cos.standard_error  # type: ignore[attr-defined]
    return {"peak": float(best.query_cos), "when": best.step, "scatter": scatter}


def take_off_tokens(
    L: int, theta: float, alpha: float, d: int, rng: np.random.Generator
) -> Numbers:
    """The same on literal tokens."""
    last, model = int(min(30 + 0.8 * L, 120)), SparseTokens(L, 1, theta, 0.5)
    run = simulate_descent(model, d, alpha, range(5, last, 5), rng)
    return {"peak": max(one.query_cos for one in run)}


def rounds(kind: str, L: int, theta: float, alpha: float, rng: np.random.Generator) -> Numbers:
    """Twenty rounds on the same bags, in the limit."""
    told: dict[str, Any] = {"bags": 1500, "populations": 2, "seed": int(rng.integers(2**31))}
    path = predict_reused_rounds(SparseTokens(L, 1, theta, 0.5), alpha, 20, kind=kind, **told)
    return {f"cos@{k}": float(path[k - 1]) for k in (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)}


def rounds_tokens(
    kind: str, L: int, theta: float, alpha: float, d: int, rng: np.random.Generator
) -> Numbers:
    """Ten rounds on literal tokens; lost means a cosine below ½ at the end."""
    path = simulate_rounds(SparseTokens(L, 1, theta, 0.5), d, alpha, 10, rng, kind=kind)
    found = {f"cos@{k}": float(path[k - 1]) for k in (1, 2, 3, 4, 5, 6, 8, 10)}
    return found | {"lost": float(path[-1] < 0.5)}


def separable(
    L: int, R: int, theta: float, pi: float, temperature: float, alpha: float, d: int,
    rng: np.random.Generator,
) -> Numbers:  # fmt: skip
    """Whether the bags of the query are separable behind it, and as many fresh ones."""
    model, seed = SparseTokens(L, R, theta, pi), rng.integers(2**32, size=2)
    return {
        name: float(
            simulate_reused_separable(
                model, d, alpha, np.random.default_rng(seed), temperature=temperature, fresh=fresh
            )
        )
        for name, fresh in (("reused", False), ("fresh", True))
    }


def taught(theta: float, temperature: float, pi: float, rng: np.random.Generator) -> Numbers:
    """How many samples are separable behind the query that they have taught, and its cosine."""
    del rng
    model = SparseTokens(10, 1, theta, pi)
    capacity = predict_reused_capacity(model, temperature=temperature)
    cos = predict_alignment(model, capacity).query_cos
    fresh = predict_capacity(attention(model, temperature=temperature, cos=cos))
    return {"capacity": capacity, "cosine": cos, "fresh": fresh}


def heads(alpha: float, rng: np.random.Generator) -> Numbers:
    """Two heads on two kinds of needles, in the limit: L = 20, θ = 5, decay 0.1, lean 0.1."""
    told: dict[str, Any] = {"bags": 1500, "populations": 2, "seed": int(rng.integers(2**31))}
    run = predict_two_heads(SparseTokens(20, 1, 5.0, 0.5), alpha, HEADS, decay=0.1, **told)
    return {f"{n}@{one.step}": float(getattr(one, n)) for one in run for n in ("own", "other")}


HEADS = (5, 10, 15, 20, 30, 40, 60, 80, 120)


def heads_tokens(alpha: float, d: int, rng: np.random.Generator) -> Numbers:
    """The same on literal tokens."""
    model = SparseTokens(20, 1, 5.0, 0.5)
    run = simulate_two_heads(model, d, alpha, HEADS, rng, decay=0.1)
    return {f"{n}@{one.step}": getattr(one, n) for one in run for n in ("own", "other")}


def box(index: int, rng: np.random.Generator) -> Numbers:
    """What reuse does to the test error at a random setting: reused over fresh, by theory.

    L, θ, α and λ are drawn on logarithmic scales; converged = 0 where Newton's steps did not end.
    """
    L = round(2 * 25 ** rng.random())
    R = int(rng.integers(1, min(L, 3) + 1))
    theta, pi = 1.5 * 5 ** rng.random(), rng.uniform(0.1, 0.9)
    alpha, lam = 0.5 * 8 ** rng.random(), 1e-3 * 100 ** rng.random()
    T, loss = float(rng.choice([1.0, 2.0, 3.0, 4.0])), str(rng.choice(["logistic", "square"]))
    lr_b = float(rng.choice([0.5, 4.0])) if loss == "logistic" else float(rng.choice([0.5, 1.0]))
    model, rates = SparseTokens(L, R, theta, pi), {"loss": loss, "lr_b": lr_b}
    found = {"L": L, "R": R, "theta": theta, "pi": pi, "alpha": alpha, "lam": lam, "T": T}
    found |= {"square": float(loss == "square"), "lr_b": lr_b}
    path = reuse_path(model, alpha, [lam], temperature=T, resolution=384, bits=13, **rates)
    run = path[0][0]
    cos = predict_alignment(model, alpha, **rates).query_cos
    law = attention(model, temperature=T, cos=cos, resolution=384, bits=13)
    fresh = predict_readout(law, alpha, lam, loss=loss)
    return found | {
        "ratio": run.test_error / fresh.test_error,
        "loss ratio": run.train_loss / fresh.train_loss,
        "error": fresh.test_error,
        "converged": float(run.converged),
    }


def odd(
    L: int, theta: float, pi: float, alpha: float, lam: float, temperature: float, d: int,
    rng: np.random.Generator,
) -> Numbers:  # fmt: skip
    """Test errors on the tokens of the query and on fresh ones; R = 1, η_b = 4, and the limit."""
    model, seed = SparseTokens(L, 1, theta, pi), rng.integers(2**32, size=2)
    told: dict[str, Any] = {"temperature": temperature, "lr_b": 4.0}
    reused, fresh = (
        simulate_reuse(model, d, alpha, lam, np.random.default_rng(seed), fresh=new, **told)
        for new in (False, True)
    )
    return {
        "reused": reused.test_error,
        "fresh": fresh.test_error,
        "gap": reused.test_error - fresh.test_error,
    }


def odd_limit(
    L: int, theta: float, pi: float, alpha: float, lam: float, temperature: float,
    rng: np.random.Generator,
) -> Numbers:  # fmt: skip
    """The limit of `odd`."""
    model = SparseTokens(L, 1, theta, pi)
    cos = predict_alignment(model, alpha, lr_b=4.0).query_cos
    fresh = predict_readout(attention(model, temperature=temperature, cos=cos), alpha, lam)
    reused = predict_reuse(model, alpha, lam, temperature=temperature, lr_b=4.0)
    return {"reused": reused.test_error, "fresh": fresh.test_error}
