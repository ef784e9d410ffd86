"""The binned sampler against drawing every token; averaged posteriors against counted labels."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from benchmarks.clock import seconds
from needle.data.noise import sample_noise
from needle.data.tokens import SparseTokens
from needle.oracle.limit import critical_theta
from needle.oracle.separation import oracle_error


def attention_error(L: int, trials: int, method: str) -> float:
    """Error of attention at half the freezing τ, from noise drawn by `method`."""
    model = SparseTokens(L=L, R=1, theta=critical_theta(L), pi=0.5)
    noise = sample_noise(L, 1, trials, np.random.default_rng(0), method=method)
    return oracle_error("attention", model, tau=critical_theta(L) / 2, noise=noise).error


def counting_variance(model: SparseTokens, tau: float, threshold: float, samples: int) -> float:
    """Variance, for one bag of noise, of the plain estimate: the share of wrong labels."""
    rng = np.random.default_rng(1)
    h = rng.standard_normal((samples, model.L))
    y = model.sample_labels(samples, rng)
    h[:, 0] += model.theta * (y > 0)
    return float((((softmax(tau * h, axis=1) * h).sum(axis=1) > threshold) != (y > 0)).var())


def run() -> list[dict[str, object]]:
    """Rows (what, ours, other, ratio, required); times in seconds."""
    rows: list[dict[str, object]] = []

    def row(what: str, ours: float, other: float, required: float) -> None:
        ratio = other / ours
        rows.append(
            {"what": what, "ours": ours, "other": other, "ratio": ratio, "required": required}
        )

    for L, trials, required in ((10**4, 1000, 10), (10**6, 20, 200)):
        ours, other = (
            seconds(lambda m=m, L=L, n=trials: attention_error(L, n, m))
            for m in ("binned", "direct")
        )
        row(f"attention error, L = {L:.0e}, {trials} bags: binned / direct", ours, other, required)
    long, short = (seconds(lambda L=L: attention_error(L, 2000, "binned")) for L in (10**12, 10**4))
    row("binned, 2000 bags: L = 1e+12 / L = 1e+04", long, short, 0.3)
    model = SparseTokens(L=1000, R=1, theta=5.0, pi=0.5)
    result = oracle_error("attention", model, tau=2.0, rng=np.random.default_rng(2))
    ours = result.standard_error**2 * 10_000
    plain = counting_variance(model, 2.0, result.threshold, 20_000)
    row("variance for one bag: averaged posterior / counted labels", ours, plain, 10)
    model = SparseTokens(L=10**6, R=1, theta=critical_theta(1e6), pi=0.5)
    shared, separate = [], []
    for seed in range(10):
        bags = [sample_noise(10**6, 1, 4000, np.random.default_rng(2 * seed + k)) for k in range(2)]
        bayes = oracle_error("bayes", model, noise=bags[0]).error
        same, other = (oracle_error("attention", model, noise=bag).error for bag in bags)
        shared.append(same - bayes)
        separate.append(other - bayes)
    row(
        "spread of attention − Bayes, 4000 bags: same bags / separate bags",
        float(np.std(shared, ddof=1)),
        float(np.std(separate, ddof=1)),
        20,
    )
    return rows
