"""Smooth functions through stored plans, for the page "Your own numbers", and how good they are.

A surface is Σ w_c |x − c|³ + a plane, solved for in coordinates that are scaled so that a step
matters about equally in each; a little smoothing takes the steps out of what a search on a lattice
found. `numbers.mjs` has the same formulas.
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from needle.data.tokens import SparseTokens
from needle.steps.rates import calibrated_cosine
from utils.explorers.numbers import NEEDLES, SHARES, TOKENS, edge, heights, place
from utils.results import stored

Array = np.ndarray
DEEP = 9.0  # log(always-no/error) from which on errors, below 1e-4, are not told apart
STEPS_SCALE, AVERAGES_SCALE = (2.0, 1.0, 1.0, 2.5, 0.5), (1.0, 2.0, 1.0)
SMOOTHING, AVERAGES_SMOOTHING = 0.05, 0.01


def packed(values: Any, kind: str = "uint16") -> dict[str, Any]:
    """An array as the browser reads it: numbers of four or eight bytes, or 16-bit steps.

    Steps go from its least to its greatest value; the last one stands for no value.
    """
    array = np.asarray(values, dtype=float)
    low, high = float(np.nanmin(array)), float(np.nanmax(array))
    if kind == "uint16":
        steps = np.rint((array - low) / ((high - low) or 1.0) * 65534)
        data = np.where(np.isnan(array), 65535, steps).astype("<u2")
    else:
        data = array.astype({"float32": "<f4", "float64": "<f8"}[kind])
    text = base64.b64encode(data.tobytes()).decode()
    return {"kind": kind, "shape": list(array.shape), "low": low, "high": high, "data": text}


class Surface:
    """A smooth function through values (n, k) at points (n, m)."""

    def __init__(self, points: Array, values: Array, scale: Sequence[float], smoothing: float):
        self.middle, self.scale = points.mean(axis=0), np.asarray(scale, dtype=float)
        self.centers = (points - self.middle) / self.scale
        n, m = self.centers.shape
        plane = np.column_stack([np.ones(n), self.centers])
        system = np.zeros((n + m + 1, n + m + 1))
        system[:n, :n] = self.far(self.centers) + smoothing * np.eye(n)
        system[:n, n:], system[n:, :n] = plane, plane.T
        wanted = np.concatenate([values, np.zeros((m + 1, values.shape[1]))])
        self.weights = np.linalg.solve(system, wanted)

    def far(self, x: Array) -> Array:
        """|x − c|³ for every centre c."""
        square = ((x[:, None] - self.centers) ** 2).sum(axis=2)
        return square * np.sqrt(square)

    def __call__(self, points: Array) -> Array:
        x = (np.asarray(points, dtype=float) - self.middle) / self.scale
        basis = np.column_stack([self.far(x), np.ones(len(x)), x])
        return basis @ self.weights

    def packed(self) -> dict[str, Any]:
        """What `surface.mjs` reads."""
        return {
            "centers": packed(self.centers, "float32"),
            "weights": packed(self.weights, "float64"),
            "middle": self.middle.tolist(),
            "scale": self.scale.tolist(),
        }


def lifted(error: Any, silent: Any) -> Array:
    """How far an error lies below that of always no, on a scale where curves are smooth."""
    v = np.log(np.maximum(silent / np.maximum(error, 1e-12) - 1, np.exp(-6.0)))
    return np.where(v < DEEP, v, DEEP + np.log1p(np.maximum(v - DEEP, 0)))


@cache
def plans() -> dict[str, Array]:
    """All rows of the stored plans as columns; `plan` says which belong together."""
    rows = []
    made = [*stored("own_plans").estimates, *stored("own_usual").estimates]
    for number, found in enumerate(made):
        setting = {key: float(found[key]) for key in ("L", "R", "pi", "d", "n")}
        keys = {key.partition("/")[0] for key in found if "/" in key}
        for k in range(sum(key.startswith("theta/") for key in found)):
            row = {key: float(found[f"{key}/{k}"]) for key in keys}
            if math.isfinite(row["twice"]):
                rows.append(setting | row | {"plan": float(number)})
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def logit(share: Array) -> Array:
    return np.log(share / (1 - share))


def coordinates(p: dict[str, Array]) -> Array:
    """Where rows of plans lie: log L, log R, logit π, log n/d, and the place of θ."""
    alpha, settings = p["n"] / p["d"], zip(p["L"], p["R"], p["pi"], p["n"] / p["d"], strict=True)
    edges = [edge(int(L), int(R), float(pi), float(a)) for L, R, pi, a in settings]
    w = [place(e, float(theta)) for e, theta in zip(edges, p["theta"], strict=True)]
    return np.column_stack(
        [np.log(p["L"]), np.log(p["R"]), logit(p["pi"]), np.log(alpha), np.array(w)]
    )


def cubic(row: Array, at: float) -> float:
    """A row of numbers between its places, by the cubic through four neighbours."""
    k = int(min(max(math.floor(at) - 1, 0), len(row) - 4))
    t = at - k - 1
    weights = (
        -t * (t - 1) * (t - 2) / 6,
        (t + 1) * (t - 1) * (t - 2) / 2,
        -(t + 1) * t * (t - 2) / 2,
        (t + 1) * t * (t - 1) / 6,
    )
    return float(np.dot(weights, row[k : k + 4]))


def bound(p: dict[str, Array]) -> Array:
    """The error of the best rule along the query of two steps on all data, as it is lifted.

    No readout behind that query can do better: what is stored is how far plans stay behind it.
    """
    tables, found = channels()["bayes"], []
    for L, R, pi, alpha, theta in zip(
        p["L"], p["R"], p["pi"], p["n"] / p["d"], p["theta"], strict=True
    ):
        place = TOKENS.index(int(L)), NEEDLES.index(int(R)), SHARES.index(round(pi, 2))
        row, nodes = tables[place], heights(int(L)).bayes
        height = theta * calibrated_cosine(SparseTokens(int(L), int(R), theta, pi), alpha)
        at = min(height / nodes[-1] * (len(nodes) - 1), len(nodes) - 1)
        found.append(lifted(min(pi, float(ndtr(cubic(row, at)))), pi))
    return np.array(found)


def steps(keep: Array | slice = slice(None)) -> Surface:
    """Errors, ranking and settings of two gradient steps, from some or all plans."""
    p = plans()
    silent, best = np.minimum(p["pi"], 1 - p["pi"]), bound(p)
    values = [
        lifted(p["split"], silent) - best,
        lifted(p["twice"], silent) - best,
        ndtri(np.clip(p["auc_steps"], 0.5, 1 - 1e-7)),
        logit(p["share"]),
        *(np.log(p[key]) for key in ("split_T", "split_ridge", "twice_T", "twice_ridge")),
    ]
    return Surface(coordinates(p)[keep], np.column_stack(values)[keep], STEPS_SCALE, SMOOTHING)


def plain(delta: Array, alpha: Array, pi: Array) -> Array:
    """The lifted error along the difference of the two class means, the infinite ridge.

    Averages are two Gaussians at distance δ; along that difference they are δ²/√(δ² + 1/(απ(1−π)))
    apart, and at π = ½ no ridge does better.
    """
    apart = delta**2 / np.sqrt(delta**2 + 1 / (alpha * pi * (1 - pi)))
    odds = np.log((1 - pi) / pi)
    missed, raised = ndtr(-apart / 2 + odds / apart), ndtr(-apart / 2 - odds / apart)
    return lifted(pi * missed + (1 - pi) * raised, pi)


def averages() -> Surface:
    """How far the error of averaging lies from `plain`, and its ranking."""
    rows = stored("own_averages").estimates
    p = {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}
    points = np.column_stack([np.log(p["delta"]), np.log(p["alpha"]), logit(p["pi"])])
    ahead = lifted(p["error"], p["pi"]) - plain(p["delta"], p["alpha"], p["pi"])
    ranked = ndtri(np.clip(p["auc"], 0.5, 1 - 1e-7))
    return Surface(points, np.column_stack([ahead, ranked]), AVERAGES_SCALE, AVERAGES_SMOOTHING)


@cache
def channels() -> dict[str, Array]:
    """log W, normal quantiles of Bayes' errors and of its AUC, for every L and R."""
    run = stored("own_channels")
    tables: dict[str, list[Any]] = {"weight": [], "bayes": [], "auc": []}
    for L, R in itertools.product(TOKENS, NEEDLES):
        found, places = run.only(L=L, R=R), heights(L)
        count = range(1, len(places.bayes))
        tables["weight"].append([float(found[f"weight/{k}"]) for k in range(len(places.weight))])
        errors = [[pi, *(float(found[f"bayes/{pi}/{k}"]) for k in count)] for pi in SHARES]
        tables["bayes"].append(ndtri(np.maximum(errors, 1e-12)))
        aucs = [0.5, *(float(found[f"auc/{k}"]) for k in count)]
        tables["auc"].append(ndtri(np.minimum(aucs, 1 - 1e-12)))
    shape = (len(TOKENS), len(NEEDLES))
    return {name: np.reshape(rows, (*shape, *np.shape(rows)[1:])) for name, rows in tables.items()}


def read(p: dict[str, Array], surface: Surface) -> dict[str, Array]:
    """Errors of averaging and of two steps, read off the surfaces."""
    silent, best = np.minimum(p["pi"], 1 - p["pi"]), bound(p)
    delta, alpha = p["theta"] * p["R"] / np.sqrt(p["L"]), p["n"] / p["d"]
    points = np.column_stack([np.log(delta), np.log(alpha), logit(p["pi"])])
    pooled = plain(delta, alpha, p["pi"]) + averages()(points)[:, 0]
    split, twice, *_ = surface(coordinates(p)).T
    lifts = {"pooled": pooled, "split": best + split, "twice": best + twice}
    return {learner: silent / (1 + np.exp(v)) for learner, v in lifts.items()}


@cache
def left_out() -> dict[str, Array]:
    """The errors of every plan, read off surfaces that were made without it: ten parts in turn."""
    p = plans()
    found = {learner: np.zeros(len(p["theta"])) for learner in ("pooled", "split", "twice")}
    for part in range(10):
        out = p["plan"] % 10 == part
        some = {key: values[out] for key, values in p.items()}
        for learner, errors in read(some, steps(~out)).items():
            found[learner][out] = errors
    return found


def off(learner: str) -> Array:
    """Factors between the errors of `left_out` and the plans', where these are above 1e-4.

    The figure shows no smaller ones.
    """
    known = plans()[learner] > 1e-4
    return np.exp(np.abs(np.log(left_out()[learner][known] / plans()[learner][known])))


def how() -> str:
    """What the figure says of itself: how far it is off, as measured."""
    factors = np.concatenate([off("split"), off("twice")])
    usual, worst = np.quantile(factors, [0.5, 0.9])
    return (
        "Cosine and capacity of averages: exact. Best possible: from tables, nine of ten to an "
        "eighth. Errors of attention: read between stored plans; "
        f"at {len(factors)} that were left out, off by a factor of {usual:.2f} in half the cases "
        f"and by more than {worst:.1f} in one of ten."
    )
