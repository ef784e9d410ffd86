"""What the explorers of the built page need: their descriptions, and tables computed by `needle`.

    python -m scripts.book.explore_data [names]     fill the cache and say what it took

A table is kept under a hash of all modules behind it and of the lock of the book, so it is
computed again only when something it depends on has changed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from needle.data.classifiers import attention, pooled
from needle.data.law import Nodes
from needle.data.noise import sample_noise
from needle.data.sidebyside import vectorized
from needle.data.tokens import SparseTokens
from needle.learning.limit import learning_thresholds
from needle.learning.posterior import channel
from needle.learning.verdicts import bayes_error
from needle.oracle.limit import critical_theta
from needle.oracle.separation import oracle_error
from needle.readout.capacity import _optimum as capacity_of
from needle.readout.capacity import predict_capacity
from needle.readout.transfer import INTERCEPTS
from scripts.book import closure
from scripts.book.explore_surfaces import averages, channels, how, packed, steps
from scripts.book.process import leave_with_parent
from scripts.book.run_notebooks import ROOT, write
from utils.explorers import FOLDER, specification
from utils.explorers import exponents as by_height
from utils.explorers import lengths as travel
from utils.explorers.again import ALPHAS, DECAYS, FIELDS, course
from utils.explorers.numbers import BUDGET
from utils.explorers.onepass import RATES, SHARES, flow
from utils.explorers.values import (
    BUDGETS,
    COSINES,
    EXPLORERS,
    HEIGHTS,
    LEVEL,
    STRENGTHS,
    taught,
    trained,
)

CACHE = ROOT / "_build" / "explore"


def numbers() -> dict[str, Any]:
    """Surfaces through stored plans, and the channel of a bag for the best learner."""
    surfaces = {"steps": steps().packed(), "average": averages().packed()}
    tables = {name: packed(values, "float32") for name, values in channels().items()}
    return {"surfaces": surfaces, "budget": BUDGET, "how": how(), **tables}


def lengths() -> dict[str, Any]:
    """Errors of every rule for the sharpness at every stop, and the best sharpness: as stored."""
    sizes, strengths = slider("lengths", "L"), slider("lengths", "theta")
    axes = sizes, strengths, travel.SHARES, travel.TIMES, INTERCEPTS
    rows = [travel.at_stop(*stop) for stop in over(*axes)]
    shape = [len(axis) for axis in axes]
    errors = [[errors[rule] for rule in travel.RULES] for errors, _ in rows]
    return {
        "error": packed(np.reshape(errors, (*shape, len(travel.RULES))), "float32"),
        "best": packed(np.reshape([best for _, best in rows], shape), "float32"),
    }


def over(*axes: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Every point of a grid, the last axis fastest."""
    return itertools.product(*axes)


def slider(name: str, key: str) -> tuple[Any, ...]:
    """The stops of a slider."""
    return next(s.stops for s in EXPLORERS[name].sliders if s.name == key)


def detection() -> dict[str, Any]:
    """Normal quantiles of the errors: of attention from 600 bags, of the other rules exact."""
    sizes, taus, strengths = (slider("detection", key) for key in ("L", "tau", "theta"))
    attentive, largest, bayes, excess = [], [], [], []
    for L in sizes:
        noise = sample_noise(L, 1, 600, np.random.default_rng(0))
        models = [SparseTokens(L=L, R=1, theta=theta, pi=0.5) for theta in strengths]
        for model in models[::2]:
            errors = [oracle_error("attention", model, tau=tau, noise=noise) for tau in taus]
            attentive.append([error.error for error in errors])
        largest.append([oracle_error("attention", m, tau=math.inf).error for m in models])
        bayes.append(bayes_error(models[0], strengths))
        level = LEVEL * critical_theta(L)
        excess.append([oracle_error("excess", m, level=level).error for m in models])
    tables = {"attention": attentive, "largest": largest, "bayes": bayes, "excess": excess}
    quantiles = {name: ndtri(np.maximum(errors, 1e-12)) for name, errors in tables.items()}
    quantiles["attention"] = quantiles["attention"].reshape(len(sizes), len(HEIGHTS), len(taus))
    return {name: packed(values, "float32") for name, values in quantiles.items()}


def trained_at(theta: float) -> dict[str, list[Any]]:
    """Errors and losses of the three classifiers at one strength; attention's law by 192 nodes."""
    stops = {name: slider("curves", name) for name in ("cos", "T", "lam", "pi", "loss")}
    losses = [("logistic", "square")[k] for k in stops["loss"]]
    settings = list(over(stops["lam"], stops["pi"], losses))
    models = {pi: SparseTokens(L=10, R=1, theta=theta, pi=pi) for pi in stops["pi"]}
    found: dict[str, list[Any]] = {
        make.__name__: [
            trained(make(models[pi]), lam, loss, BUDGETS[make.__name__])
            for lam, pi, loss in settings
        ]
        for make in (pooled, vectorized)
    }
    found["attention"] = []
    for cos, T in over(stops["cos"], stops["T"]):
        laws = {
            pi: attention(model, temperature=T, cos=cos, resolution=192)
            for pi, model in models.items()
        }
        found["attention"] += [
            trained(laws[pi], lam, loss, BUDGETS["attention"]) for lam, pi, loss in settings
        ]
    return found


def curves(each: Callable[..., Iterable[Any]] = map) -> dict[str, Any]:
    """Logarithms of errors and losses at every stop, the strengths one by one or side by side."""
    names = ("theta", "cos", "T", "lam", "pi", "loss")
    stops = {name: slider("curves", name) for name in names}
    parts = list(each(trained_at, stops["theta"]))
    found = {kind: [row for part in parts for row in part[kind]] for kind in parts[0]}
    shapes = {kind: [len(stops[n]) for n in names if n not in ("cos", "T")] for kind in found}
    shapes["attention"] = [len(stops[n]) for n in names]
    return {
        f"{kind}_{what}": packed(
            np.log(np.maximum([row[what] for row in rows], 1e-12)).reshape(*shapes[kind], -1)
        )
        for kind, rows in found.items()
        for what in ("error", "loss")
    }


def capacity() -> dict[str, Any]:
    """Logarithms of capacities at every stop, each law of attention read for all shares."""
    strengths, sharpness = slider("capacity", "theta"), slider("capacity", "T")
    shares = slider("capacity", "pi")
    attentive, plain = [], []
    for theta in strengths:
        for pi in shares:
            plain.append(predict_capacity(pooled(SparseTokens(L=10, R=1, theta=theta, pi=pi))))
        for T, cos in over(sharpness, COSINES):
            half = SparseTokens(L=10, R=1, theta=theta, pi=0.5)
            law = attention(half, temperature=T, cos=cos)
            y, a, c, r, weight = law.points
            for pi in shares:
                points = Nodes(y, a, c, r, 2 * weight * np.where(y > 0, pi, 1 - pi))
                attentive.append(capacity_of(law, points, True)[0])
    all_of = (len(strengths), len(sharpness), len(COSINES), len(shares))
    attentive = np.where(np.isinf(attentive), np.nan, attentive)
    plain = np.log(plain).reshape(len(strengths), len(shares))
    known = [taught(t, T, pi) for t, pi, T in over(strengths, shares, sharpness)]
    shape = (len(strengths), len(shares), len(sharpness))
    own = np.log([one["taught"] for one in known[:: len(sharpness)]]).reshape(shape)
    cosines = np.array([one["taught_cosine"] for one in known]).reshape(shape)
    return {
        "attention": packed(np.log(attentive).reshape(all_of)),
        "pooled": packed(plain),
        "taught": packed(own),
        "cosine": packed(cosines),
    }


def phase() -> dict[str, Any]:
    """log W along √s, and the thresholds for all samples positive, on log axes."""
    sizes = slider("phase", "L")
    heights = np.linspace(0, max(STRENGTHS), 601)
    weights = [channel(L, 1).log_weight(heights**2) for L in sizes]
    found = [
        [learning_thresholds(SparseTokens(L=L, R=1, theta=theta, pi=0.5)) for theta in STRENGTHS]
        for L in sizes
    ]
    limits = {
        name: packed(np.log([[getattr(t, name) / 2 for t in row] for row in found]), "float32")
        for name in ("information", "algorithm")
    }
    return {"weight": packed(weights, "float32"), **limits}


def descent() -> dict[str, Any]:
    """The stored courses of descent: errors, cosine and length, by α, decay and time."""
    rows = [[course(alpha, decay) for decay in DECAYS] for alpha in ALPHAS]
    return {
        name: packed([[one[name] for one in row] for row in rows], "float32") for name in FIELDS
    }


def onepass() -> dict[str, Any]:
    """Flows of one pass by class balance and rate of the intercept."""
    rows = [[flow(pi, lr_b) for lr_b in RATES] for pi in SHARES]
    return {name: packed([[one[name] for one in row] for row in rows]) for name in rows[0][0]}


def exponents() -> dict[str, Any]:
    """−log(error/π)/log L at a million tokens, as it is stored."""
    places = over(*(slider("exponents", key) for key in ("needles", "gamma")))
    found = [by_height.rates(needles, gamma) for needles, gamma in places]
    shape = len(by_height.NEEDLES), len(by_height.RARITIES)
    return {
        rule: packed(np.reshape([row[rule] for row in found], (*shape, *inner)), "float32")
        for rule, inner in by_height.FINITE.items()
    }


TABLES: dict[str, Callable[..., dict[str, Any]]] = {
    "detection": detection,
    "curves": curves,
    "capacity": capacity,
    "phase": phase,
    "lengths": lengths,
    "descent": descent,
    "onepass": onepass,
    "exponents": exponents,
    "numbers": numbers,
}


@cache
def key() -> str:
    """What the tables depend on: the modules behind this one, stored plans, the pins."""
    files = sorted(closure.files(f"import {__spec__.name}"))
    results = ROOT / "experiments" / "results"
    for name in ("own_*", "length_rules", "again-*", "finite_errors"):
        files += sorted(results.glob(f"{name}.csv"))
    files.append(ROOT / "locks" / "book.txt")
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def data(name: str, **options: Any) -> Path:
    """The description of an explorer with its tables, from the cache or computed."""
    path = CACHE / f"{name}-{key()}.json"
    if not path.exists():
        start = time.perf_counter()
        tables = TABLES[name](**options) if name in TABLES else {}
        if tables:
            print(f"tables of the explorer {name}: {time.perf_counter() - start:.1f} s", flush=True)
        text = json.dumps(
            {"spec": specification(name), "data": tables},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        for old in CACHE.glob(f"{name}-*.json"):
            old.unlink()
        write(path, text)
    return path


def fill(names: Iterable[str]) -> None:
    """Compute the tables that are missing, two at a time; those of `curves` take the longest."""
    missing = {name for name in names if not (CACHE / f"{name}-{key()}.json").exists()}
    with ProcessPoolExecutor(2, initializer=leave_with_parent) as pool:
        others = [pool.submit(data, name) for name in sorted(missing - {"curves"})]
        if "curves" in missing:
            data("curves", each=pool.map)
        for other in others:
            other.result()


def stage_modules(static: Path) -> None:
    """Put the modules and the style of all explorers beside the other static files of the site."""
    target = static / "explorers"
    target.mkdir(parents=True, exist_ok=True)
    for path in [*FOLDER.glob("*.mjs"), *FOLDER.glob("*.css")]:
        shutil.copy(path, target)


def stage_tables(static: Path) -> None:
    """Put the data of all explorers beside their modules; computed, if need be."""
    fill(EXPLORERS)
    for name in EXPLORERS:
        shutil.copy(data(name), static / "explorers" / f"{name}.json")


if __name__ == "__main__":
    fill(sys.argv[1:] or EXPLORERS)
    for chosen in sys.argv[1:] or EXPLORERS:
        print(chosen, f"{data(chosen).stat().st_size / 1000:.0f} kB")
