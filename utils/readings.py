"""What may be held against each other, brought to numbers by name.

Simulations come in two forms: trials (records, an array, or arrays by name), and numbers with their
standard errors. Of both `summaries` makes the same: mean, standard error, degrees of freedom and
number of trials of each name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from needle.kit.checks import refuse_mask

LEFT_OUT = ("converged", "iterations", "rounds")
Estimated = tuple[float, float, float, int | None]  # mean, standard error, freedom, trials


def summaries(
    simulations: Any,
    names: list[str],
    shape: tuple[int, ...] | None,
    standard_error: Any = None,
    trials: int | None = None,
    towards: Mapping[str, float] | None = None,
) -> dict[str, Estimated]:
    """Of trials, or of means with standard errors (their own, or those that are given).

    With `towards` a name is summed up by its trial that lies farthest from that number.
    """
    given = _standard_errors(simulations) if standard_error is None else standard_error
    if given is not None:
        mean, error = (_select(numbers(x), names) for x in (simulations, given))
        counts = {name: trials or _count(simulations, name) for name in names}
        return {
            name: (mean[name], error[name], _freedom(counts[name]), counts[name]) for name in names
        }
    samples = _trials(simulations, names, shape)
    if towards is None:
        return {name: (np.mean(x), _error(x), len(x) - 1, len(x)) for name, x in samples.items()}
    farthest = {name: x[np.argmax(np.abs(x - towards[name]))] for name, x in samples.items()}
    return {name: (farthest[name], 0.0, len(x) - 1, len(x)) for name, x in samples.items()}


def _error(trials: np.ndarray) -> float:
    """Of the mean; exactly 0 where all trials are equal, whatever the rounding of their mean."""
    if np.ptp(trials) == 0:
        return 0.0
    return float(np.std(trials, ddof=1)) / math.sqrt(len(trials))


def _measured(value: Any) -> bool:
    """Whether a record is one number with its standard error."""
    return hasattr(value, "standard_error") and hasattr(value, "__float__")


def _standard_errors(value: Any) -> Any:
    """The standard errors of a record that carries one or of a mapping to such records, or None."""
    if isinstance(value, Mapping):
        found = {name: _standard_errors(x) for name, x in value.items()}
        return found if found and None not in found.values() else None
    return value.standard_error if _measured(value) else None


def _count(value: Any, name: str) -> int | None:
    """The number of trials behind a record that carries one."""
    record = value.get(name) if isinstance(value, Mapping) else value
    return getattr(record, "trials", None)


def _freedom(trials: int | None) -> float:
    return math.inf if trials is None else trials - 1


def joined(estimate: Estimated, theory: Any, name: str) -> Estimated:
    """The deviation of an estimate from a theory that may itself have been measured."""
    other: Any = _mapping(theory).get(name) if is_named(theory) else theory
    mean, error, freedom, trials = estimate
    if not _measured(other) or not other.standard_error:
        return estimate
    parts = np.array([error, other.standard_error]) ** 2
    spread = parts**2 @ (1 / np.array([freedom, _freedom(_count(other, name))]))
    freedom = parts.sum() ** 2 / spread if spread else math.inf
    return mean, math.copysign(math.sqrt(parts.sum()), error), freedom, trials


def is_named(value: Any) -> bool:
    """Whether a reading has quantities with names, and is no number with a standard error."""
    if _measured(value):
        return False
    return isinstance(value, Mapping) or is_dataclass(value) or hasattr(value, "_asdict")


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "_asdict"):
        return value._asdict()
    return {field.name: getattr(value, field.name) for field in fields(value)}


def numbers(value: Any, chosen: Iterable[str] | None = None) -> dict[str, float]:
    """Names and numbers of a record, mapping, number or array."""
    if not is_named(value):
        refuse_mask("theory", value)
        flat = np.asarray(float(value) if _measured(value) else value)
        if flat.dtype.kind not in "biuf":
            raise ValueError(f"theory = {value!r} is not allowed: it must hold real numbers")
        names = (
            ["value"] if flat.ndim == 0 else [str(list(i))[1:-1] for i in np.ndindex(flat.shape)]
        )
        value = dict(zip(names, flat.ravel(), strict=True))
    named = _mapping(value)
    if chosen is not None:
        check_iterable("fields", chosen)
    else:
        usable = (name for name, x in named.items() if name not in LEFT_OUT and x is not None)
        chosen = [name for name in usable if not isinstance(named[name], str)]
    selected = _select(named, list(chosen))
    if not selected:
        raise ValueError(f"theory = {value!r} is not allowed: it holds no number to compare")
    return selected


def check_iterable(name: str, value: Any) -> None:
    """Refuses what holds no readings."""
    if not np.iterable(value) or isinstance(value, str):
        raise ValueError(f"{name} = {value!r} is not allowed: {name} must be a sequence")


def _select(named: Mapping[str, Any], names: list[str]) -> dict[str, float]:
    for name in names:
        if named.get(name) is None:
            raise ValueError(f"{name} is not allowed: {list(named)} hold no number of that name")
    return {name: float(named[name]) for name in names}


def _trials(simulations: Any, names: list[str], shape: tuple[int, ...] | None) -> dict[str, Any]:
    """Bring every form of simulations to arrays (trials,) by name."""
    check_iterable("simulations", simulations)
    for part in simulations.values() if isinstance(simulations, Mapping) else (simulations,):
        refuse_mask("simulations", part)
    if isinstance(simulations, Mapping):
        samples = {name: np.asarray(simulations.get(name, ()), dtype=float) for name in names}
    elif not isinstance(simulations, np.ndarray) and all(map(is_named, simulations)):
        records = [_mapping(trial) for trial in simulations]
        if not all(record.get("converged", True) for record in records):
            raise ValueError(
                "simulations are not allowed: simulations must all have converged to be evidence"
            )
        rows = [list(_select(record, names).values()) for record in records]
        samples = dict(zip(names, np.array(rows).T, strict=False))
    else:
        array = np.asarray(simulations, dtype=float)
        expected = (len(names),) if shape is None else shape
        if array.shape[1:] != expected or not len(array):
            raise ValueError(
                f"simulations of shape {array.shape} are not allowed: "
                f"theory asks for (trials, …) with {expected} behind"
            )
        samples = dict(zip(names, array.reshape(len(array), -1).T, strict=True))
    for name in names:
        count = np.shape(samples.get(name, ()))
        if len(count) != 1 or count[0] < 2 or not np.isfinite(samples[name]).all():
            raise ValueError(
                f"{name} of shape {count} is not allowed: simulations must be at least 2 trials, "
                "all finite numbers"
            )
    return samples
