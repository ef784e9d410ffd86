"""Theory held against simulation: z-scores, and an error where the two part."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from needle.kit.checks import check_integer, check_real

from .agreement_table import MIME as MIME
from .agreement_table import Agreement, Row
from .readings import Estimated, check_iterable, is_named, joined, numbers, summaries


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
    simulations : trials, which are one record or mapping for each, or an array (trials, …) with the
        shape of theory behind, or a mapping from names to arrays (trials,); or numbers with their
        standard errors, which are a record that carries one (like `OracleError`, or a stored
        `Estimate`, whose trials then count), or a mapping from names to such records
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
    if sizes is not None and (exact is not None or standard_error is not None):
        told = f"exact = {exact!r}" if exact is not None else "standard_error"
        raise ValueError(f"{told} is not allowed: an extrapolation is made of trials at each size")
    predicted = numbers(theory, fields)
    names, shape = list(predicted), None if is_named(theory) else np.shape(theory)
    if sizes is None:
        towards = None if exact is None else predicted
        estimates = summaries(simulations, names, shape, standard_error, trials, towards)
    else:
        check_iterable("simulations", simulations)
        groups = [summaries(group, names, shape) for group in simulations]
        estimates = {
            name: _extrapolated(sizes, [group[name] for group in groups]) for name in names
        }
    for name in names if exact is None else ():
        estimates[name] = joined(estimates[name], theory, name)
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
    check_iterable("simulations", simulations)
    groups = [summaries(group, ["value"], ())["value"] for group in simulations]
    value, error, *_ = _extrapolated(sizes, groups)
    return value, error


def _extrapolated(sizes: Sequence[float], groups: Sequence[Estimated]) -> Estimated:
    """Value and standard error at d → ∞, Welch and Satterthwaite's freedom, fewest trials."""
    check_iterable("sizes", sizes)
    d = np.array([check_real("sizes", size, 0, open_low=True) for size in sizes])
    if len(d) != len(groups) or len(np.unique(d)) < 2:
        raise ValueError(
            f"sizes = {list(sizes)!r} is not allowed: one per set of trials, two apart"
        )
    mean, error = (np.array([group[k] for group in groups], dtype=float) for k in (0, 1))
    count = np.array([group[3] or 2 for group in groups], dtype=float)
    design = np.stack([np.ones_like(d), 1 / d], axis=1)
    share = np.linalg.pinv(np.sqrt(count * d)[:, None] * design)[0] * np.sqrt(count * d)
    variance = share**2 * error**2
    spread = (variance**2 / (count - 1)).sum()
    freedom = variance.sum() ** 2 / spread if spread else math.inf
    return float(share @ mean), math.sqrt(variance.sum()), freedom, int(count.min())


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
