"""Theory held against simulation: z-scores, and an error where the two part."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import stats

from needle.kit.checks import check_integer, check_real, refuse_mask

from .agreement_table import MIME as MIME
from .agreement_table import Agreement, Row

LEFT_OUT = ("converged", "iterations", "rounds")
Estimated = tuple[float, float, float, int | None]  # mean, standard error, freedom, trials


class AgreementError(AssertionError):
    """Theory and simulation part; `agreement` holds the table."""

    def __init__(self, agreement: Agreement) -> None:
        super().__init__(f"theory and simulation part\n{agreement!r}")
        self.agreement = agreement


def agree(
    theory: Any,
    simulations: Any,
    *,
    claim: str,
    fields: Iterable[str] | None = None,
    standard_error: Any = None,
    trials: int | None = None,
    sizes: Sequence[float] | None = None,
    false_alarm: float = 1e-4,
    exact: float | None = None,
) -> Agreement:
    """Hold theory against independent trials, or raise `AgreementError`.

    Each row compares one predicted number with the mean of its trials. The deviation divided by
    the standard error of that mean follows Student's t with trials − 1 degrees of freedom; its
    tail probability is stated as the z of a normal law. A row is refused when its two-sided
    probability falls below `false_alarm` divided by the number of rows, so a true claim is
    refused with probability at most `false_alarm` (exactly so for normal trials; a skew law
    needs more trials, as for any t-test).

    Parameters
    ----------
    theory : record, mapping, number or array of predictions
    simulations : one record or mapping for each trial; or an array (trials,) or (trials, …) with
        the shape of theory behind; or a mapping from names to arrays (trials,); or a record that
        carries its `standard_error` (like `OracleError`, or a stored `Estimate`, whose trials
        then count), or a mapping from names to such records
    claim : name of the claim in the ledger of the book, kebab-case
    fields : the names to compare (default: all that theory gives a number for, without
        `converged`, `iterations`, `rounds` and fields that are None)
    standard_error : when given, `simulations` is the mean itself and this its standard error, both
        of theory's form; compared under the normal law, or Student's with `trials` when given
    sizes : when given, `simulations` has one such set of trials (or one mapping to stored
        estimates) for each size d, and theory is held against their extrapolation value + k/d to
        d → ∞ (see `extrapolate`)
    false_alarm : family-wise probability of refusing a true claim
    exact : when given there are no statistics: the trial farthest from theory (or the mean, where
        that is given) must lie within exact·max(1, |theory|) of it; not together with `sizes`.
        Without it, this is so only where trials have no spread at all, and these must equal theory
        to 9 digits

    A theory that was itself measured (a record with its `standard_error`, or with fields that have
    one, like a predicted `Descent`) adds its own variance;
    degrees of freedom are then Welch and Satterthwaite's.

    Examples
    --------
    >>> trials = np.random.default_rng(0).normal(3.0, 1.0, size=400)
    >>> agree(3.0, trials, claim="mean-of-a-sample")
    mean-of-a-sample
    quantity  theory  simulation   s.e.     z  s.e./theory
    value      3.000       2.963  0.050  -0.7         1.7%
    agrees over 400 trials: max |z| 0.7 ≤ 3.9 in 1 row; false alarm: 1 in 10,000
    >>> agree(3.4, trials, claim="wrong-mean").holds
    Traceback (most recent call last):
    ...
    utils.agreement.AgreementError: theory and simulation part
    wrong-mean
    quantity  theory  simulation   s.e.     z  s.e./theory
    value      3.400       2.963  0.050  -8.4         1.5%
    DISAGREES over 400 trials: max |z| 8.4 > 3.9 in 1 row; false alarm: 1 in 10,000
    """
    if not isinstance(claim, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", claim):
        raise ValueError(f"claim = {claim!r} is not allowed: claim must be kebab-case, like a-b-2")
    check_real("false_alarm", false_alarm, 0, 1, open_low=True, open_high=True)
    if exact is not None:
        check_real("exact", exact, 0)
    if trials is not None:
        check_integer("trials", trials, 2)
    predicted = _numbers(theory, fields)
    names, shape = list(predicted), None if _is_named(theory) else np.shape(theory)
    given = _standard_errors(simulations) if standard_error is None else standard_error
    if exact is not None and sizes is not None:
        raise ValueError(f"exact = {exact!r} is not allowed: an extrapolation is never exact")
    if given is not None:
        mean, error = (_select(_numbers(x), names) for x in (simulations, given))
        counts = {name: trials or _count(simulations, name) for name in names}
        estimates = {
            name: (mean[name], error[name], _freedom(counts[name]), counts[name]) for name in names
        }
    elif sizes is not None:
        _check_iterable("simulations", simulations)
        groups = [_summary(group, names, shape) for group in simulations]
        estimates = {
            name: (
                *_extrapolate(sizes, [group[name] for group in groups]),
                min(group[name][2] for group in groups),
            )
            for name in names
        }
    else:
        samples = _trials(simulations, names, shape)
        estimates = {
            name: (np.mean(x), _error(x), len(x) - 1, len(x)) for name, x in samples.items()
        }
        if exact is not None:
            for name, x in samples.items():
                farthest = x[np.argmax(np.abs(x - predicted[name]))]
                estimates[name] = farthest, 0.0, len(x) - 1, len(x)
    for name in names if exact is None else ():
        estimates[name] = _joined(estimates[name], theory, name)
    rows = tuple(_row(name, predicted[name], *estimates[name], exact) for name in names)
    limit = float(stats.norm.isf(false_alarm / len(rows) / 2))
    agreement = Agreement(claim, rows, false_alarm, limit, 1 if sizes is None else len(groups))
    if not agreement.holds:
        raise AgreementError(agreement)
    return agreement


def extrapolate(sizes: Sequence[float], simulations: Sequence[Any]) -> tuple[float, float]:
    """Value and standard error at d → ∞ of the least-squares line value + k/d.

    The means weigh by trials·d, as if single trials had variance ∝ 1/d; the standard error is
    propagated from the spread of the trials, so it is right whatever their variance. Feed it to
    `agree` with `standard_error=`; or let `agree(…, sizes=…)` do both, which also
    accounts for the degrees of freedom when trials are few.

    >>> rng = np.random.default_rng(1)
    >>> sizes = [100, 200, 400]
    >>> trials = [2 + 5 / d + rng.normal(0, d**-0.5, size=50) for d in sizes]
    >>> value, error = extrapolate(sizes, trials)
    >>> round(value, 2), round(error, 3)
    (1.99, 0.01)
    """
    _check_iterable("simulations", simulations)
    groups = [_summary(group, ["value"], ())["value"] for group in simulations]
    value, error, _ = _extrapolate(sizes, groups)
    return value, error


def _summary(
    group: Any, names: list[str], shape: tuple[int, ...] | None
) -> dict[str, tuple[float, float, int]]:
    """Mean, standard error and number of trials by name, from trials or from stored estimates."""
    if (given := _standard_errors(group)) is None:
        found = _trials(group, names, shape)
        return {name: (float(x.mean()), _error(x), len(x)) for name, x in found.items()}
    mean, error = (_select(_numbers(x), names) for x in (group, given))
    return {name: (mean[name], error[name], _count(group, name) or 2) for name in names}


def _extrapolate(
    sizes: Sequence[float], groups: Sequence[tuple[float, float, int]]
) -> tuple[float, float, float]:
    """Value, standard error and Welch–Satterthwaite degrees of freedom."""
    _check_iterable("sizes", sizes)
    d = np.array([check_real("sizes", size, 0, open_low=True) for size in sizes])
    if len(d) != len(groups) or len(np.unique(d)) < 2:
        raise ValueError(
            f"sizes = {list(sizes)!r} is not allowed: one per set of trials, two apart"
        )
    mean, error, count = np.array(groups, dtype=float).T
    design = np.stack([np.ones_like(d), 1 / d], axis=1)
    share = np.linalg.pinv(np.sqrt(count * d)[:, None] * design)[0] * np.sqrt(count * d)
    variance = share**2 * error**2
    spread = (variance**2 / (count - 1)).sum()
    freedom = variance.sum() ** 2 / spread if spread else math.inf
    return float(share @ mean), math.sqrt(variance.sum()), freedom


def _row(
    name: str,
    theory: float,
    mean: float,
    error: float,
    freedom: float,
    trials: int | None,
    exact: float | None,
) -> Row:
    gap = float(mean) - theory
    if not all(map(math.isfinite, (theory, mean, error))) or error < 0:
        raise ValueError(
            f"{name} = {mean} ± {error} is not allowed: simulations must be finite, and theory, "
            f"{theory}, as well"
        )
    if freedom < 1:
        raise ValueError(f"{name} from {trials} trials is not allowed: at least 2 are needed")
    if error == 0 or exact is not None:
        allowed = 1e-9 * abs(theory) if exact is None else exact * max(1.0, abs(theory))
        z = 0.0 if abs(gap) <= allowed else math.copysign(math.inf, gap)
        return Row(name, theory, float(mean), 0.0, z, trials)
    tail = max(float(stats.t.sf(abs(gap) / error, freedom)), np.finfo(float).tiny)
    z = math.copysign(float(stats.norm.isf(tail)), gap)
    return Row(name, theory, float(mean), float(error), z, trials)


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


def _joined(estimate: Estimated, theory: Any, name: str) -> Estimated:
    """The deviation of an estimate from a theory that may itself have been measured."""
    other: Any = _mapping(theory).get(name) if _is_named(theory) else theory
    mean, error, freedom, trials = estimate
    if not _measured(other) or not other.standard_error:
        return estimate
    parts = np.array([error, other.standard_error]) ** 2
    spread = parts**2 @ (1 / np.array([freedom, _freedom(_count(other, name))]))
    freedom = parts.sum() ** 2 / spread if spread else math.inf
    return mean, math.copysign(math.sqrt(parts.sum()), error), freedom, trials


def _is_named(value: Any) -> bool:
    if _measured(value):
        return False
    return isinstance(value, Mapping) or is_dataclass(value) or hasattr(value, "_asdict")


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "_asdict"):
        return value._asdict()
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _numbers(value: Any, chosen: Iterable[str] | None = None) -> dict[str, float]:
    """Names and numbers of a record, mapping, number or array."""
    if not _is_named(value):
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
        _check_iterable("fields", chosen)
    else:
        usable = (name for name, x in named.items() if name not in LEFT_OUT and x is not None)
        chosen = [name for name in usable if not isinstance(named[name], str)]
    selected = _select(named, list(chosen))
    if not selected:
        raise ValueError(f"theory = {value!r} is not allowed: it holds no number to compare")
    return selected


def _check_iterable(name: str, value: Any) -> None:
    if not np.iterable(value) or isinstance(value, str):
        raise ValueError(f"{name} = {value!r} is not allowed: {name} must be a sequence")


def _select(named: Mapping[str, Any], names: list[str]) -> dict[str, float]:
    for name in names:
        if named.get(name) is None:
            raise ValueError(f"{name} is not allowed: {list(named)} hold no number of that name")
    return {name: float(named[name]) for name in names}


def _trials(simulations: Any, names: list[str], shape: tuple[int, ...] | None) -> dict[str, Any]:
    """Bring every form of simulations to arrays (trials,) by name."""
    _check_iterable("simulations", simulations)
    for part in simulations.values() if isinstance(simulations, Mapping) else (simulations,):
        refuse_mask("simulations", part)
    if isinstance(simulations, Mapping):
        samples = {name: np.asarray(simulations.get(name, ()), dtype=float) for name in names}
    elif not isinstance(simulations, np.ndarray) and all(map(_is_named, simulations)):
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
