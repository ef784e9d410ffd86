"""A function over a grid and independent trials, on all cores, repeatable bit for bit.

Every trial owns a random stream that depends on the seed, the point and the trial's number and on
nothing else. Workers, their number, the order of the axes and of their values do not matter, and a
grid that grows keeps the numbers it already has.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import itertools
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController
from tqdm import tqdm

from .validation import check_integer, check_is

Point = dict[str, Any]


class SweepError(RuntimeError):
    """The function failed; the message names the parameters, the trial and the cause."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """All results of a sweep; iterating gives pairs (point, list of its trials' results).

    Attributes
    ----------
    axes : the grid, name → values (for a grid given as a list of points: the points' numbers)
    points : the parameters of every point, last axis fastest
    results : for each point, the list of what its trials returned
    """

    axes: dict[str, list[Any]]
    points: list[Point]
    results: list[list[Any]]

    def __iter__(self) -> Iterator[tuple[Point, list[Any]]]:
        return iter(zip(self.points, self.results, strict=True))

    def at(self, **parameters: Any) -> list[Any]:
        """The trials of all points with these parameters, one list."""
        found = [
            trials
            for point, trials in self
            if all(name in point and point[name] == value for name, value in parameters.items())
        ]
        if not found:
            raise ValueError(f"no point of the sweep has {_describe(parameters)}")
        return list(itertools.chain.from_iterable(found))

    def values(self, field: str | None = None) -> np.ndarray:
        """One field of every result, an array shaped like the grid with the trials as last axis."""
        shape = tuple(len(values) for values in self.axes.values())
        rows = [[_get(result, field) for result in trials] for trials in self.results]
        array = np.asarray(rows, dtype=float)
        return array.reshape(shape + array.shape[1:])

    def mean(self, field: str | None = None) -> np.ndarray:
        """The mean over trials, shaped like the grid."""
        return self.values(field).mean(axis=len(self.axes))

    def standard_error(self, field: str | None = None) -> np.ndarray:
        """The standard error of that mean; needs two trials or more."""
        trials = check_integer("trials", len(self.results[0]), 2)
        return self.values(field).std(axis=len(self.axes), ddof=1) / np.sqrt(trials)


def _get(result: Any, field: str | None) -> Any:
    """A field of a record or mapping; the result itself when no field is named."""
    if field is None:
        return result
    try:
        return result[field] if isinstance(result, Mapping) else getattr(result, field)
    except (KeyError, AttributeError):
        raise ValueError(
            f"field = {field!r} is not in the results, for example {result!r}"
        ) from None


def _describe(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in point.items())


def _content(value: Any) -> str | None:
    """A text that identifies plain data on every machine; None for anything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inside = _content([getattr(value, field.name) for field in dataclasses.fields(value)])
        return inside and f"{type(value).__name__}{inside}"
    if isinstance(value, (tuple, list)):
        parts = [_content(part) for part in value]
        return None if None in parts else f"({', '.join(filter(None, parts))})"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    plain = value is None or isinstance(value, (bool, int, float, str))
    return repr(value) if plain else None


def _expand(grid: Mapping[str, Any] | Sequence[Point]) -> tuple[dict[str, list], list[Point], list]:
    """The axes, all points, and for each point the indices its values have along their axes."""
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, str) or not np.iterable(values) or not len(list(values)):
                raise ValueError(
                    f"grid[{name!r}] = {values!r} is not allowed: an axis is a non-empty sequence"
                )
        axes = {
            str(name): [v.item() if isinstance(v, np.generic) else v for v in values]
            for name, values in grid.items()
        }
        places = list(itertools.product(*(range(len(values)) for values in axes.values())))
        points = [
            {name: axes[name][k] for name, k in zip(axes, place, strict=True)} for place in places
        ]
    else:
        points = []
        for point in check_is("grid", grid, Sequence, "a mapping or a list of mappings"):
            points.append(dict(check_is("grid", point, Mapping, "made of mappings")))
        axes = {"point": list(range(len(points)))}
        places = [(k,) * len(point) for k, point in enumerate(points)]
    if not points or any("rng" in point for point in points):
        raise ValueError(f"grid = {grid!r} is not allowed: it has points, and none sets rng")
    return axes, points, places


def _stream(seed: int, point: Point, place: tuple[int, ...], trial: int) -> np.random.SeedSequence:
    """The stream of one trial: the child of `seed` named by the point and the trial.

    A parameter is named by its content where that is plain (numbers, strings, tuples and records
    of them), and by its position along its axis otherwise (laws, functions, arrays).
    """
    names = sorted(
        f"{name}={_content(value) or f'#{k}'}"
        for (name, value), k in zip(point.items(), place, strict=True)
    )
    words = np.frombuffer(hashlib.sha256("\n".join(names).encode()).digest()[:16], "<u4")
    return np.random.SeedSequence(seed, spawn_key=(*map(int, words), trial))


def _fingerprint(function: Callable, seen: set[int]) -> list[str]:
    """The source of a function, of the functions beside it that it calls, and its outer data."""
    seen.add(id(function))
    outer = inspect.getclosurevars(function)
    parts = [inspect.getsource(function)]
    for _, value in sorted({**outer.globals, **outer.nonlocals}.items()):
        if inspect.isfunction(value) and value.__module__ == function.__module__:
            parts += _fingerprint(value, seen) if id(value) not in seen else []
        elif not (inspect.ismodule(value) or callable(value)):
            parts.append(str(joblib.hash(value)))
    return parts


def _cache_folder(cache: str | os.PathLike, function: Callable) -> Path:
    """Where the finished trials of this function live: a change in it or in utils starts anew."""
    core, parts = function, []
    while isinstance(core, partial):
        parts.append(str(joblib.hash((core.args, core.keywords))))
        core = core.func
    if not inspect.isfunction(core):
        raise ValueError(f"function = {function!r} is not allowed: a cache needs a plain function")
    parts += _fingerprint(core, set())
    parts += [path.read_text() for path in sorted(Path(__file__).parent.glob("*.py"))]
    folder = Path(cache) / f"{core.__name__}-{joblib.hash(parts)}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """All that computes in threads, looked up again when modules have been loaded."""
    return ThreadpoolController()


def _run(
    number: int, function: Callable, point: Point, stream: np.random.SeedSequence
) -> tuple[int, Any]:
    """One trial on one BLAS thread, with its number."""
    try:
        with _libraries(len(sys.modules)).limit(limits=1):
            return number, function(**point, rng=np.random.default_rng(stream))
    except Exception as error:
        where = ", ".join(filter(None, [_describe(point), f"trial {stream.spawn_key[-1]}"]))
        cause = f"{type(error).__name__}: {error}"
        raise SweepError(f"the sweep failed at {where}: {cause}") from error


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Any] | Sequence[Point],
    *,
    trials: int,
    seed: int,
    n_jobs: int = -1,
    cache: str | os.PathLike | None = None,
) -> Sweep:
    """Call `function(**point, rng=rng)` for every point of a grid and every trial.

    Parameters
    ----------
    function : returns a number, an array, a record or a mapping; may be defined in a notebook
    grid : name → values, meaning all combinations; or a list of points, each a mapping
    trials : independent repetitions of each point
    seed : the one seed; a trial's stream depends on (seed, point, trial) alone
    n_jobs : processes, each with one BLAS thread (−1: one for each core)
    cache : folder that keeps every finished trial, so that an interrupted sweep resumes; a change
        in the source of `function` or of `utils` starts afresh

    Examples
    --------
    >>> def noisy_mean(n, rng):
    ...     return rng.normal(1.0, size=n).mean()
    >>> result = sweep(noisy_mean, {"n": [100, 400]}, trials=50, seed=0, n_jobs=1)
    >>> bool((abs(result.mean() - 1) < 4 * result.standard_error()).all())
    True
    >>> result.values().shape
    (2, 50)
    """
    check_is("function", function, Callable, "a function")
    trials, seed = check_integer("trials", trials, 1), check_integer("seed", seed, 0)
    if check_integer("n_jobs", n_jobs, -1) == 0:
        raise ValueError("n_jobs = 0 is not allowed: n_jobs must be −1 or at least 1")
    axes, points, places = _expand(grid)
    tasks = [
        (function, point, _stream(seed, point, place, trial))
        for point, place in zip(points, places, strict=True)
        for trial in range(trials)
    ]
    files: list[Path] = []
    if cache is not None:
        check_is("cache", cache, str | os.PathLike, "a path or None")
        folder = _cache_folder(cache, function)
        files = [
            folder / f"{joblib.hash((point, seed, stream.spawn_key))}.pkl"
            for _, point, stream in tasks
        ]
    done = {k: pickle.loads(file.read_bytes()) for k, file in enumerate(files) if file.exists()}
    todo = [(k, *task) for k, task in enumerate(tasks) if k not in done]
    workers = joblib.Parallel(min(n_jobs, len(tasks)), return_as="generator_unordered")
    finished = workers(joblib.delayed(_run)(*task) for task in todo)
    for k, result in tqdm(finished, total=len(todo), unit="trial", disable=None):
        done[k] = result
        if files:
            unfinished = files[k].with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(pickle.dumps(result))
            unfinished.replace(files[k])
    flat = [done[k] for k in range(len(tasks))]
    return Sweep(axes, points, [flat[k : k + trials] for k in range(0, len(flat), trials)])
