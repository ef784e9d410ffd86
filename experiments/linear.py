"""The two linear classifiers of Chapter 2, trained."""

import numpy as np
from scipy import optimize, special

from needle.data.classifiers import pooled
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.kit.records import Readout
from needle.readout.fit import error_rate, fit_readout, simulate_readout

NEEDLE = SparseTokens(10, 1, 8.0, 0.5)
Numbers = dict[str, float]


def vectorized_readout(loss: str, alpha: float, d: int, rng: np.random.Generator) -> Readout:
    """The vectorized classifier on alpha·d samples, λ = 0.1."""
    return simulate_readout(vectorized(NEEDLE), d, alpha, 0.1, rng, loss=loss)


def twins(R: int, theta: float, pi: float, loss: str, d: int, rng: np.random.Generator) -> Numbers:
    """A vectorized classifier less its double on the same noise: 4 tokens, 8d samples, λ = 0.1."""
    task = SparseTokens(4, R, theta, pi)
    X, y, where = task.sample(8 * d, d, rng)
    even = X.copy()
    even[:, :, 0] += theta * (y > 0)[:, None] * (R / 4 - where)
    ours, double = _record(task, X, y, loss, False), _record(task, even, y, loss, True)
    return {name: ours[name] - double[name] for name in ours}


def _record(
    task: SparseTokens, X: np.ndarray, y: np.ndarray, loss: str, even: bool
) -> dict[str, float]:
    F = X.reshape(len(y), -1)
    fit = fit_readout(F, y, 0.1, loss=loss)
    margin = y * (F @ fit.w + fit.b)
    cost = np.logaddexp(0, -margin) if loss == "logistic" else (1 - margin) ** 2 / 2
    size, shift = np.linalg.norm(fit.w), task.theta * task.R / 4
    mean = shift * fit.w.reshape(4, -1)[:, 0].sum()
    hit, alarm = special.ndtr((mean + fit.b) / size), special.ndtr(fit.b / size)
    two = task.pi * (1 - hit) + (1 - task.pi) * alarm
    test = two if even else error_rate(vectorized(task), fit.w, fit.b)
    return {
        "test error": float(test),
        "training loss": float(cost.mean()),
        "training error": float((margin < 0).mean()),
    }


def bill(kind: str, d: int, rng: np.random.Generator) -> float:
    """Error of the difference of class means where theory puts it 5 % above the oracle."""
    half = NEEDLE.snr / 2
    oracle = special.ndtr(-half)

    def excess(ratio: float) -> float:
        return float(special.ndtr(-half / np.sqrt(1 + 1 / (ratio * half**2))) / oracle - 1.05)

    ratio = optimize.brentq(excess, 1, 300)
    law, dimension = (pooled(NEEDLE), 10 * d) if kind == "pooled" else (vectorized(NEEDLE), d)
    F, y = law.sample(round(10 * d * ratio), dimension, rng)
    w = F[y > 0].mean(axis=0) - F[y < 0].mean(axis=0)
    label, mean, _, weight = law.scores(w, 0.0)
    return error_rate(law, w, -(weight * mean)[label > 0].sum())
