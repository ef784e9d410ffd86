"""The exact draw of the two gradient steps against taking them on token tensors."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.clock import seconds
from needle.data.tokens import SparseTokens
from needle.kit.losses import get_loss
from needle.steps.alignment import predict_alignment, simulate_alignment
from needle.steps.sign import sign_condition


def stored_tokens(model: SparseTokens, d: int, n: int, rng: np.random.Generator) -> float:
    """Both steps on one tensor kept in memory, nothing drawn twice: the fastest literal way."""
    X, y, _ = model.sample(n, d, rng)
    first = get_loss("logistic").first
    slopes, means = first(np.zeros(n), y), X.mean(axis=1)
    w, b = -0.5 / n * (slopes @ means), -0.5 * slopes.mean()
    scores = X.reshape(-1, d) @ w
    centred = scores.reshape(n, -1) - (means @ w)[:, None]
    pull = first(means @ w + b, y)[:, None] * centred / -(n * model.L)
    query = pull.ravel() @ X.reshape(-1, d)
    return float(query[0] / np.linalg.norm(query))


def megabytes(work: Callable[[], object]) -> float:
    """Peak of what one call allocates."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def limits(model: SparseTokens) -> list[tuple[str, float, float, float]]:
    """The limit of each loss, weights included, and the sign's threshold, against a millisecond."""
    rows = []
    for loss in ("logistic", "square", "hinge", "exponential"):
        for balanced in (False, True):
            call = partial(predict_alignment, model, 2.0, loss=loss, balanced=balanced)
            name = f"limit, {loss} loss{', balanced' * balanced}, against 1 ms"
            rows.append((name, seconds(call, 200), 1e-3, 1.0))
    sign = seconds(lambda: sign_condition(model, 2.0), 200)
    rows.append(("threshold of the sign, logistic loss, against 1 ms", sign, 1e-3, 1))
    return rows


def run() -> list[dict[str, object]]:
    """One row for each promise."""
    model, rng = SparseTokens(L=10, R=3, theta=6.0, pi=0.2), np.random.default_rng(0)
    long = SparseTokens(L=10**5, R=3, theta=6.0, pi=0.2)
    exact = seconds(lambda: simulate_alignment(model, 1000, 2.0, rng), 200)
    dense = seconds(lambda: simulate_alignment(model, 1000, 2.0, rng, method="dense"), 5)
    stored = seconds(lambda: stored_tokens(model, 1000, 2000, rng), 5)
    large = seconds(lambda: simulate_alignment(model, 10**6, 2.0, rng), 5)
    memory = megabytes(lambda: simulate_alignment(model, 10**6, 2.0, rng))
    short_time, long_time = (
        seconds(lambda m=m: simulate_alignment(m, 10**5, 2.0, rng), 21) for m in (model, long)
    )
    limit = seconds(lambda: predict_alignment(model, 2.0), 200)
    setting = "d = 1000, n₀ = 2000, L = 10"
    times = [
        (f"exact draw against literal steps in blocks, {setting}", exact, dense, 1000),
        (f"exact draw against literal steps on stored tokens, {setting}", exact, stored, 1000),
        ("exact draw at d = 10⁶, n₀ = 2·10⁶ against 1 s", large, 1.0, 1),
        ("exact draw at L = 10⁵ against L = 10, n₀ = 2·10⁵", long_time, short_time, 0.67),
        ("limit against one exact draw at n₀ = 2·10⁵", limit, short_time, 1),
        *limits(model),
    ]
    rows = [(what, f"{1e3 * a:.3g} ms", f"{1e3 * b:.3g} ms", b / a, r) for what, a, b, r in times]
    what = "peak memory of an exact draw at d = 10⁶, n₀ = 2·10⁶ against 400 MB"
    rows.append((what, f"{memory:.0f} MB", "400 MB", 400 / memory, 1))
    return [
        dict(zip(("what", "ours", "other", "ratio", "required"), row, strict=True)) for row in rows
    ]
