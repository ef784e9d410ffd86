"""Logistic fits against scikit-learn at the same objective; the large vectorized problem."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.bench_alignment import megabytes
from benchmarks.clock import now
from needle.data.classifiers import attention
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.readout.fit import fit_readout

LAW = attention(SparseTokens(10, 1, 5.0, 0.5), temperature=2.0, cos=0.8)


def fastest(works: list, repeats: int) -> list[float]:
    """Shortest time of each of several works, taken in turns so that all see the same machine."""
    times = np.full((repeats, len(works)), np.inf)
    for k in range(repeats):
        for j, work in enumerate(works):
            start = now()
            work()
            times[k, j] = now() - start
    return list(times.min(axis=0))


def objective(F: np.ndarray, y: np.ndarray, lam: float, w: np.ndarray, b: float) -> float:
    return float(np.logaddexp(0, -y * (F @ w + b)).mean() + lam / 2 * w @ w)


def row(what: str, ours: float, other: float) -> dict[str, object]:
    return {"what": what, "ours": ours, "other": other, "ratio": other / ours, "required": 1}


def run() -> list[dict[str, object]]:
    """One row for each promise; times in seconds unless the row says otherwise."""
    rows = []
    for n, d, lam in ((400, 200, 1e-2), (2000, 1000, 1e-1), (2000, 1000, 1e-2), (5000, 1000, 1e-3)):
        F, y = LAW.sample(n, d, np.random.default_rng(0))
        theirs = [
            LogisticRegression(C=1 / (n * lam), solver=solver, tol=1e-8, max_iter=10_000)
            for solver in ("lbfgs", "newton-cholesky")
        ]
        works = [lambda: fit_readout(F, y, lam), *(lambda m=m: m.fit(F, y) for m in theirs)]  # noqa: B023
        ours, *others = fastest(works, 7)
        fit = fit_readout(F, y, lam)
        best = objective(F, y, lam, fit.w, fit.b)
        for model, other in zip(theirs, others, strict=True):
            gap = objective(F, y, lam, model.coef_[0], model.intercept_[0]) - best
            what = f"logistic fit against {model.solver}, n = {n}, d = {d}, λ = {lam:g}"
            what += f" (its objective minus ours {gap:+.0e})"
            rows.append(
                {"what": what, "ours": ours, "other": other, "ratio": other / ours, "required": 1}
            )
    law = vectorized(SparseTokens(10, 1, 5.0, 0.5))
    for loss in ("square", "logistic"):
        start = now()

        def work(loss: str = loss) -> None:
            F, y = law.sample(5000, 1000, np.random.default_rng(0))
            fit_readout(F, y, 0.1, loss=loss)

        memory = megabytes(work)
        took = now() - start
        what = f"{loss} loss, 5000 × 10⁴ vectorized, with its data: MB against 2 GB"
        rows.append(
            {"what": what, "ours": memory, "other": 2000.0, "ratio": 2000 / memory, "required": 1}
        )
        rows.append({"what": f"{loss} loss, 5000 × 10⁴ vectorized: seconds", "ours": took})
    return rows
