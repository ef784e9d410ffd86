"""Attention features drawn exactly against softmax pooling of tokens; accuracy of the nodes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from benchmarks.bench_alignment import megabytes
from benchmarks.clock import seconds
from needle.data.classifiers import attention
from needle.data.dense import dense_features
from needle.data.tokens import SparseTokens
from needle.readout.limit import predict_readout

SETTINGS = [  # L, R, theta, temperature, cos: short and long, cold and hot, aligned and not
    (10, 1, 5.0, 2.0, 0.8), (10, 1, 5.0, 2.0, 0.0), (10, 1, 4.0, 0.3, 0.9), (10, 2, 3.0, 5.0, 0.9),
    (2, 1, 3.0, 1.0, 0.9), (4, 4, 1.0, 1.0, 0.7), (100, 1, 6.0, 2.0, 0.9), (100, 3, 5.0, 0.5, 0.9),
    (10**4, 1, 6.0, 3.0, 0.95), (10**9, 1, 8.0, 5.0, 1.0),
]  # fmt: skip


def stored_features(model: SparseTokens, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """The literal way at its fastest: all tokens in memory, one batched product."""
    X, _, _ = model.sample(n, d, rng)
    weight = np.exp(2.0 * (0.8 * X[:, :, 0] + 0.6 * X[:, :, 1]))
    weight /= weight.sum(axis=1, keepdims=True)
    return (weight[:, None, :] @ X)[:, 0]


@lru_cache
def predictions(resolution: int | None) -> np.ndarray:
    """Test errors and training losses of three readouts in each setting, shape (30, 2)."""
    rows = []
    for L, R, theta, temperature, cos in SETTINGS:
        model = SparseTokens(L, R, theta, 0.5)
        law = attention(model, temperature=temperature, cos=cos, resolution=resolution)
        for alpha, lam, loss in ((3, 0.1, "logistic"), (30, 1e-3, "logistic"), (3, 0.01, "square")):
            readout = predict_readout(law, alpha, lam, loss=loss)
            rows.append((readout.test_error, readout.train_loss))
    return np.array(rows)


def deviations(resolution: int) -> list[float]:
    """Largest relative deviation of test error and training loss from all points."""
    return list(np.max(np.abs(predictions(resolution) / predictions(None) - 1), axis=0))


def run() -> list[dict[str, object]]:
    """One row for each promise; times in seconds unless the row says otherwise."""
    rng, rows = np.random.default_rng(0), []

    def row(what: str, ours: float, other: float, required: float) -> None:
        ratio = other / ours
        rows.append(
            {"what": what, "ours": ours, "other": other, "ratio": ratio, "required": required}
        )

    for L, n, d in ((10, 2000, 1000), (100, 1000, 400)):
        model, setting = SparseTokens(L, 1, 5.0, 0.5), f"L = {L}, n = {n}, d = {d}"
        law = attention(model, temperature=2.0, cos=0.8)
        ours = seconds(lambda law=law, n=n, d=d: law.sample(n, d, rng), 5)
        stored = seconds(lambda m=model, n=n, d=d: stored_features(m, n, d, rng), 5)
        blocks = seconds(
            lambda m=model, n=n, d=d: dense_features(m, n, d, rng, temperature=2.0, cos=0.8), 3
        )
        row(f"features against stored tokens, {setting}", ours, stored, L / 2)
        row(f"features against tokens in blocks, {setting}", ours, blocks, L / 2)
        ours = megabytes(lambda law=law, n=n, d=d: law.sample(n, d, rng))
        stored = megabytes(lambda m=model, n=n, d=d: stored_features(m, n, d, rng))
        row(f"features against stored tokens, {setting} (in MB)", ours, stored, L / 2)
    long, short = (
        seconds(
            lambda L=L: attention(SparseTokens(L, 1, 6.0, 0.5), temperature=2.0, cos=0.9).nodes, 3
        )
        for L in (10**9, 10)
    )
    row("nodes at L = 10⁹ against L = 10", long, short, 0.2)
    for resolution in (768, 1536):
        required = 1 if resolution == 1536 else 0
        for what, deviation in zip(("error", "loss"), deviations(resolution), strict=True):
            row(f"{resolution} nodes: relative deviation of {what}", deviation, 1e-3, required)
    return rows
