"""What each explorer shows, as a function of its sliders; exact, by the modules of the chapters.

A figure's module in `explorers/` has a twin `compute` of each function here, from closed forms or
from tables; the tests hold the two against each other at a thousand settings of the sliders. What
has no value (an infinite capacity, a threshold where learning is gradual) is None.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtri, softmax

from needle.data.classifiers import attention, pooled
from needle.data.law import FeatureLaw
from needle.data.noise import sample_noise
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.learning.limit import all_solutions, learning_thresholds, state_evolution
from needle.learning.posterior import channel
from needle.learning.verdicts import bayes_error
from needle.oracle.limit import critical_theta
from needle.oracle.rules import OracleError
from needle.oracle.separation import oracle_error
from needle.readout.capacity import predict_capacity
from needle.readout.limit import learning_curve
from needle.steps.alignment import predict_alignment
from needle.steps.sign import sign_intercepts

from ..results import stored
from .again import EXPLORER as AGAIN
from .base import Explorer, Slider, integers, stops, uniform
from .exponents import EXPLORER as EXPONENTS
from .length import EXPLORER as LENGTH
from .lengths import EXPLORER as LENGTHS
from .numbers import EXPLORER as NUMBERS
from .onepass import EXPLORER as ONE_PASS

PLACES = 2**20  # streams of `uniform`: noise along ξ, noise across it, places of the needles
LEVEL = 0.9  # of the excess rule in `detection`, in units of √(2 log L)
ALPHAS = tuple(np.geomspace(0.1, 100, 31).tolist())  # of the curves of `steps`
SHARES = tuple(k / 20 for k in range(1, 20) if k != 10)  # of positives, of its boundary
HEIGHTS = tuple(float(x) for x in range(13))  # strengths of the curves of `detection`
MANY = (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 64.0)
BUDGETS = {  # samples per dimension of the curves of `curves`: closer where a classifier just fits
    "pooled": MANY,
    "vectorized": MANY,
    "attention": (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0, 16.0, 64.0),
}
COSINES = stops(0, 1, 9)  # of the curve of `capacity`
ROUNDS = 60  # of message passing, at most, on the map of `phase`


def number(x: float) -> float | None:
    """A number that can be sent: None where there is none.

    >>> number(2.0), number(math.inf)
    (2.0, None)
    """
    return float(x) if math.isfinite(x) else None


def needle(p: dict[str, Any]) -> dict[str, Any]:
    """One positive sample: projections on ξ, softmax weights, signal-to-noise ratios.

    With a = Σ_needles s_ℓ and r = |s| of s = softmax(T⟨x_ℓ, q̂⟩): δ = θR/√L under equal weights and
    θa/r under these.
    """
    model = SparseTokens(L=p["L"], R=min(p["R"], p["L"]), theta=p["theta"], pi=0.5)
    place, draw, cos = np.arange(model.L), p["draw"], p["cos"]
    needles = np.sort(np.argsort(uniform(draw, PLACES + place), kind="stable")[: model.R])
    height = ndtri(uniform(draw, 2 * place))
    height[needles] += model.theta
    across = ndtri(uniform(draw, 2 * place + 1))
    weight = softmax(p["T"] * (cos * height + np.sqrt(1 - cos**2) * across))
    share = float(weight[needles].sum())
    return {
        "height": height.tolist(),
        "weight": weight.tolist(),
        "needles": needles.tolist(),
        "share": share,
        "pooled": model.snr,
        "attended": model.theta * share / float(np.linalg.norm(weight)),
    }


def detection(p: dict[str, Any]) -> dict[str, Any]:
    """Test errors at the best threshold against the strength, and the boundaries of attention."""
    L, tau = p["L"], p["tau"]
    noise = sample_noise(L, 1, 2000, np.random.default_rng(0))

    def errors(theta: float) -> dict[str, float]:
        model = SparseTokens(L=L, R=1, theta=theta, pi=0.5)
        found: dict[str, OracleError] = {
            "pooled": oracle_error("pooled", model),
            "attention": oracle_error("attention", model, tau=tau, noise=noise),
            "largest": oracle_error("attention", model, tau=math.inf),
            "excess": oracle_error("excess", model, level=LEVEL * critical_theta(L)),
        }
        bayes = float(bayes_error(model, theta))
        return {**{kind: float(error) for kind, error in found.items()}, "bayes": bayes}

    rows = [errors(theta) for theta in HEIGHTS]
    return {
        **{kind: [row[kind] for row in rows] for kind in rows[0]},
        "here": errors(p["theta"]),
        "weight": critical_theta(L, tau),
        "error_vanishes": critical_theta(L, tau, criterion="error"),
        "limit": critical_theta(L),
        "how": "Attention: 2000 simulated bags; the other rules exact.",
    }


def steps(p: dict[str, Any]) -> dict[str, Any]:
    """Cosines after two steps against α₀, the parts of the query at one α₀, and where it turns.

    The boundary is the best intercept of `sign_intercepts` at each of `SHARES`, for α₀ = 0.1, the
    chosen one, and 100.
    """
    model = SparseTokens(L=p["L"], R=p["R"], theta=p["theta"], pi=p["pi"])
    how = {"lr_w": p["lr_w"], "balanced": bool(p["balanced"])}
    rates = {**how, "lr_b": p["lr_b"]}
    path = [predict_alignment(model, alpha0, **rates) for alpha0 in ALPHAS]
    here = predict_alignment(model, p["alpha0"], **rates)
    return {
        "query": [limit.query_cos for limit in path],
        "readout": [limit.readout_cos for limit in path],
        "query_cos": here.query_cos,
        "readout_cos": here.readout_cos,
        "norm": here.query_norm,
        "overlap": here.query_overlap,
        "signal": here.signal,
        "echo": here.echo,
        "noise": here.noise,
        "rate": number(math.inf if here.rate is None else here.rate),
        "intercept": float(sign_intercepts(model, p["alpha0"], [p["pi"]], **how)[0]),
        "boundary": [
            sign_intercepts(model, alpha0, SHARES, **how).tolist()
            for alpha0 in (0.1, p["alpha0"], 100.0)
        ],
    }


def curves(p: dict[str, Any]) -> dict[str, Any]:
    """Test error and training loss of the three trained classifiers against n/d, and their limits.

    Attention's query is given: its samples are not counted.
    """
    model = SparseTokens(L=10, R=1, theta=p["theta"], pi=p["pi"])
    law = attention(model, temperature=p["T"], cos=p["cos"])
    laws = {"pooled": pooled(model), "vectorized": vectorized(model), "attention": law}
    loss = ("logistic", "square")[p["loss"]]
    return {kind: trained(law, p["lam"], loss, BUDGETS[kind]) for kind, law in laws.items()}


def trained(
    law: FeatureLaw, lam: float, loss: str, budgets: tuple[float, ...]
) -> dict[str, list[float]]:
    """Errors and losses at the budgets, the last at infinite n/d."""
    path = learning_curve(law, [*budgets, math.inf], lam, loss=loss)
    return {"error": [r.test_error for r in path], "loss": [r.train_loss for r in path]}


def capacity(p: dict[str, Any]) -> dict[str, Any]:
    """Samples per dimension that can be separated, against the cosine and against sharpness."""
    model = SparseTokens(L=10, R=1, theta=p["theta"], pi=p["pi"])

    def of(T: float, cos: float) -> float | None:
        return number(predict_capacity(attention(model, temperature=T, cos=cos)))

    return {
        "by_cosine": [of(p["T"], cos) for cos in COSINES],
        "by_sharpness": [of(T, p["cos"]) for T in SHARPNESSES],
        "pooled": predict_capacity(pooled(model)),
        "vectorized": predict_capacity(vectorized(model)),
        **taught(p["theta"], p["T"], p["pi"]),
    }


def taught(theta: float, T: float, pi: float) -> dict[str, Any]:
    """Capacity behind a query that the same samples have taught (stored), and its cosine."""
    found = [stored("again-taught").only(theta=theta, temperature=t, pi=pi) for t in SHARPNESSES]
    here = found[SHARPNESSES.index(T)]
    return {
        "taught": [float(one["capacity"]) for one in found],
        "taught_cosine": float(here["cosine"]),
    }


def phase(p: dict[str, Any]) -> dict[str, Any]:
    """One round of message passing as a map, its fixed points, the rounds, and the thresholds."""
    model = SparseTokens(L=p["L"], R=1, theta=p["theta"], pi=p["pi"])
    m, bag = np.linspace(0, 1, 101), channel(model.L, 1)
    gain = p["alpha"] * model.pi * model.theta**2 * np.exp(bag.log_weight(model.theta**2 * m))
    fixed = [solution.cos**2 for solution in all_solutions(model, p["alpha"])]
    path = state_evolution(model, p["alpha"], ROUNDS) ** 2
    strengths = [SparseTokens(p["L"], 1, theta, p["pi"]) for theta in STRENGTHS]
    found = [learning_thresholds(other) for other in strengths]
    return {
        "map": (gain / (1 + gain)).tolist(),
        "fixed": fixed,
        "path": path.tolist(),
        "information": [number(t.information) for t in found],
        "algorithm": [number(t.algorithm) for t in found],
    }


SHARPNESSES = (0.5, 1.0, 2.0, 3.0, 5.0)
STRENGTHS = stops(2, 12, 21)
NEEDLE_SHARE = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
STRENGTH = "strength of the needle"

EXPLORERS: dict[str, Explorer] = {
    "needle": Explorer(
        title="Where does the weight go, and what is left of the noise?",
        sliders=(
            Slider("theta", "θ", "strength of a needle", stops(0, 10, 41)),
            Slider("L", "L", "tokens", integers(10, 1000)),
            Slider("R", "R", "needles", tuple(range(1, 11))),
            Slider("cos", "s_q", "cosine of query and signal", stops(-1, 1, 41)),
            Slider("T", "T", "sharpness of the softmax", stops(0, 8, 33)),
        ),
        start={"theta": 4.0, "L": 40, "R": 2, "cos": 0.8, "T": 2.0, "draw": 1},
        values=needle,
        again=True,
    ),
    "detection": Explorer(
        title="Who sees a needle of this strength in a haystack of this size?",
        sliders=(
            Slider("L", "L", "tokens", tuple(10**k for k in range(1, 13))),
            Slider("theta", "θ", STRENGTH, stops(0, 12, 25)),
            Slider("tau", "τ", "sharpness, right query", (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)),
        ),
        start={"L": 10**6, "theta": 6.0, "tau": 2.0},
        values=detection,
    ),
    "steps": Explorer(
        title="Where do two gradient steps turn the query?",
        sliders=(
            Slider("L", "L", "tokens", integers(10, 10_000)),
            Slider("R", "R", "needles", tuple(range(1, 10))),
            Slider("pi", "π", "share of positives", stops(0.05, 0.95, 19)),
            Slider("theta", "θ", "strength of a needle", stops(0.5, 20, 40)),
            Slider("lr_w", "η_w", "rate of the readout", stops(0.1, 10, 21, log=True)),
            Slider("lr_b", "η_b", "rate of the bias", stops(0, 6, 25)),
            Slider("alpha0", "α₀", "samples per dimension", stops(0.1, 100, 31, log=True)),
            Slider("balanced", "classes", "weights", (0, 1), ("equal", "balanced")),
        ),
        start={"L": 10, "R": 1, "pi": 0.2, "theta": 3.0, "lr_w": 0.5, "lr_b": 0.5}
        | {"alpha0": 5.0, "balanced": 0},
        values=steps,
    ),
    "curves": Explorer(
        title="How good is the trained classifier, and when does attention pay?",
        sliders=(
            Slider("theta", "θ", STRENGTH, (3.0, 5.0, 7.0)),
            Slider("cos", "s_q", "cosine of query and signal", (0.5, 0.8, 0.95)),
            Slider("T", "T", "sharpness of the softmax", (1.0, 2.0, 4.0)),
            Slider("lam", "λ", "ridge", (0.001, 0.03, 1.0)),
            Slider("pi", "π", "share of positives", (0.2, 0.5)),
            Slider("loss", "ℓ", "loss", (0, 1), ("logistic", "square")),
        ),
        start={"theta": 5.0, "cos": 0.8, "T": 2.0, "lam": 0.03, "pi": 0.5, "loss": 0},
        values=curves,
    ),
    "capacity": Explorer(
        title="How many samples can a readout separate, and what is a query worth?",
        sliders=(
            Slider("theta", "θ", STRENGTH, (2.0, 3.0, 4.0, 5.0, 6.0)),
            Slider("cos", "s_q", "cosine of query and signal", COSINES),
            Slider("T", "T", "sharpness of the softmax", SHARPNESSES),
            Slider("pi", "π", "share of positives", (0.1, 0.3, 0.5)),
        ),
        start={"theta": 5.0, "cos": 0.75, "T": 2.0, "pi": 0.5},
        values=capacity,
    ),
    "phase": Explorer(
        title="Impossible, hard or easy: where does message passing end?",
        sliders=(
            Slider("L", "L", "tokens", (10, 30, 100, 300, 1000, 3000, 10**4, 10**5, 10**6)),
            Slider("theta", "θ", STRENGTH, STRENGTHS),
            Slider("pi", "π", "share of positives", NEEDLE_SHARE),
            Slider("alpha", "α", "bags per dimension", stops(0.01, 1000, 61, log=True)),
        ),
        start={"L": 1000, "theta": 6.0, "pi": 0.5, "alpha": 0.68},
        values=phase,
    ),
    "lengths": LENGTHS,
    "descent": AGAIN,
    "onepass": ONE_PASS,
    "exponents": EXPONENTS,
    "length": LENGTH,
    "numbers": NUMBERS,
}
