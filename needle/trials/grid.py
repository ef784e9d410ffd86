"""A function over a grid and independent trials, on all cores or a cluster, bit for bit repeatable.

Every trial owns a random stream that depends on the seed, the point and the trial's number and on
nothing else. Executors, workers, their number, interruptions, the order of the axes and of their
values do not matter, and a grid that grows keeps the numbers it already has.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ..kit.checks import check_integer, check_is
from .execution import SweepError as SweepError
from .execution import SweepWarning as SweepWarning
from .execution import Trial, describe, gather
from .keys import HOME, digest, function_key, value_key
from .store import TrialStore

Point = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Sweep:
    """All results of a sweep; iterating gives pairs (point, list of its trials' results).

    Attributes
    ----------
    axes : the grid, name → values (for a grid given as a list of points: the points' numbers)
    points : the parameters of every point, last axis fastest
    results : for each point, the list of what its trials returned
    seconds : for each point, the CPU seconds of its trials
    """

    axes: dict[str, list[Any]]
    points: list[Point]
    results: list[list[Any]]
    seconds: list[list[float]] = dataclasses.field(default_factory=list, compare=False)

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
            raise ValueError(
                f"{describe(parameters)} is not allowed: it must be a point of the sweep"
            )
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
            f"field = {field!r} is not allowed: field must be in the results, for example "
            f"{result!r}"
        ) from None


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


def _stream(point: Point, place: tuple[int, ...]) -> tuple[int, ...]:
    """The name of a point among the children of a seed.

    A parameter is named by its content where that is plain (numbers, strings, tuples and records
    of them), and by its position along its axis otherwise (laws, functions, arrays).
    """
    names = sorted(
        f"{name}={_content(value) or f'#{k}'}"
        for (name, value), k in zip(point.items(), place, strict=True)
    )
    words = np.frombuffer(hashlib.sha256("\n".join(names).encode()).digest()[:16], "<u4")
    return tuple(map(int, words))


def _keys(seed: int, trials: list[Trial]) -> list[str]:
    """The name of every trial in a cache: its parameters by type and content, seed and stream."""
    known: dict[int, str] = {}  # of values that many points share, and of points
    keys = []
    for trial in trials:
        if (key := known.get(id(trial.point))) is None:
            for name, value in trial.point.items():
                if id(value) not in known:
                    known[id(value)] = value_key(name, value)
            named = sorted(f"{name}={known[id(x)]}" for name, x in trial.point.items())
            key = known[id(trial.point)] = digest(*named, str(seed), str(trial.stream[:-1]))
        keys.append(f"{key}-{trial.stream[-1]}")
    return keys


def _store(cache: str | os.PathLike, function: Callable) -> TrialStore:
    """Where the finished trials of this function live: a change in it or in needle starts anew."""
    core = function
    while isinstance(core, partial):
        core = core.func
    key = function_key(function, HOME)
    return TrialStore(Path(cache) / f"{core.__name__.strip('<>')}-{key}")


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Any] | Sequence[Point],
    *,
    trials: int,
    seed: int,
    n_jobs: int = -1,
    cache: str | os.PathLike | None = None,
    executor: Executor | None = None,
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
        in the source of `function`, of what it calls or of `needle` starts afresh. It keeps
        numbers, texts, arrays, lists, tuples, mappings and records
    executor : any `concurrent.futures.Executor` whose workers have this package, instead of
        processes on this machine; on a cluster
        `dask.distributed.Client(address).get_executor(pure=False)`

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
    check_is("executor", executor, Executor | None, "a concurrent.futures.Executor or None")
    axes, points, places = _expand(grid)
    tasks: list[Trial] = []
    for point, place in zip(points, places, strict=True):
        stream = _stream(point, place)
        tasks += [Trial(len(tasks) + k, point, seed, (*stream, k)) for k in range(trials)]
    done: dict[int, tuple[Any, float]] = {}
    store, keys = None, []
    if cache is not None:
        store = _store(check_is("cache", cache, str | os.PathLike, "a path or None"), function)
        keys = _keys(seed, tasks)
        kept = store.read(set(keys))
        done = {
            task.number: kept[key] for task, key in zip(tasks, keys, strict=True) if key in kept
        }
    todo = [task for task in tasks if task.number not in done]
    with tqdm(total=len(todo), unit="trial", disable=None) as progress:

        def keep(number: int, result: Any, seconds: float) -> None:
            if number not in done:
                if store:
                    store.keep(keys[number], result, seconds)
                done[number] = result, seconds
                progress.update()

        try:
            gather(function, todo, keep, n_jobs=n_jobs, executor=executor)
        finally:
            if store:
                store.close()
    rows = [[done[k + j] for j in range(trials)] for k in range(0, len(tasks), trials)]
    results = [[result for result, _ in row] for row in rows]
    return Sweep(axes, points, results, [[seconds for _, seconds in row] for row in rows])
