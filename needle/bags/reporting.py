"""Does attention pay on my bags, or is the mean enough, and how sure is that?

`report(bags, y)` measures pooling, attention, their rivals and bag size alone on the same folds,
everything learned inside; says by permutation whether there is anything; counts needles; looks for
leaks; and promises only what planted needles on held-out bags bear out. Chapter 13.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import Executor
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from ..kit.checks import check_integer, check_is
from ..kit.threads import in_one_thread
from .arrays import Array, Bags, as_bags
from .assumptions import Assumption, independence, tails
from .chance import Needles, Signal
from .classifier import NeedleClassifier
from .folds import blocks, checked_groups
from .labels import as_signs
from .leaks import MUCH, shared_tokens
from .measuring import RIVALS, Work
from .nesting import FOLDS, RIDGES, SCALES, TAUS, Repetition
from .planting import longer_error, needle_chances, planted_error
from .units import moments
from .verdict import LABELS, Measured, Report

REPETITIONS, LEAST = 3, 6
MARGIN = 0.02  # of error: a gain below it is not worth a query
SURE = 0.01  # p-value up to which something is there: of twenty sets of pure noise one may pass
DEPENDENT = 1.5  # independence from which on a promise is withheld
LARGE = 2e7  # numbers in all tokens, beyond which slow rivals are left out


@in_one_thread
def report(
    bags: Any, y: Any, *, groups: Any = None, random_state: int = 0, verbose: bool = False,
    executor: Executor | None = None,
) -> Report:  # fmt: skip
    """An honest answer on one's own bags.

    Parameters
    ----------
    bags : whatever `as_bags` takes: a list of arrays (L_i, d), an array (n, L, d), sparse bags
    y : two labels, at least six bags of each; the later one in order is the positive
    groups : one for each bag, such as the patient: no group is on both sides of a fold
    random_state : seed of all folds and permutations: the same seed gives the same report
    verbose : whether progress is shown
    executor : of `concurrent.futures`, for example that of a Dask cluster,
        `dask.distributed.Client(address).get_executor(pure=False)`: folds, rivals and permutations
        run there, and a worker that dies costs time only; the report is the same

    Examples
    --------
    >>> from needle.bags.datasets import digit_bags
    >>> bags, y, _ = digit_bags(120, 10, 1, np.random.default_rng(0))
    >>> found = report(bags, y)
    >>> found.advice
    'Attention pays: ...'
    """
    start, found = time.perf_counter(), as_bags(bags, "bags")
    check_is("executor", executor, Executor | None, "a concurrent.futures.Executor or None")
    signs, _ = as_signs(y, len(found), "y", least=LEAST)
    of = checked_groups(groups, len(found))
    rng = np.random.default_rng(check_integer("random_state", random_state, 0))
    count = FOLDS if of is None else min(FOLDS, int(of.max()) + 1)
    if count < 3:
        raise ValueError("groups are not allowed: groups must name at least three groups")
    cuts = [blocks(signs, count, rng, of) for _ in range(REPETITIONS)]
    work = Work(found, signs, cuts, of, int(random_state), _rivals(found))
    with tqdm(total=len(work.tasks) + 2, disable=not verbose, file=sys.stderr, leave=False) as bar:
        done = work.done(executor, bar.update)
        measured, runs, (signal, needles) = work.measured(done), work.runs(done), done["evidence"]
        factor = _independence(found, signs)
        last = np.random.default_rng([int(random_state), len(work.tasks)])
        promised, withheld, longer = _promises(found, signs, runs[0], needles, factor, last)
        bar.update()
        model = _model(runs, int(random_state)).fit(found, signs if y is None else np.asarray(y))
        bar.update()
    gaps = work.differences(done)
    gap = gaps["needle", "pooled"]
    shared = shared_tokens(found, of)
    warned = _warnings(
        found, signs, measured, signal, factor, shared, _tails(found, signs, runs[0])
    )
    return Report(
        len(found), float(found.sizes.mean()), found.tokens.shape[1], float(np.mean(signs > 0)),
        measured, gap, gaps, signal, needles, factor, promised, withheld, longer,
        _advice(found, signs, measured, gap, signal, shared), warned, model,
        time.perf_counter() - start,
    )  # fmt: skip


def _rivals(bags: Bags) -> tuple[str, ...]:
    """Who is measured beside the two; the slow ones not on large bags."""
    return () if bags.tokens.shape[0] * bags.tokens.shape[1] > LARGE else tuple(RIVALS)


def _independence(bags: Bags, y: Array) -> float:
    found = moments(bags, y)
    if not found.level > 0:
        return 1.0
    return independence(bags, y, found.whitening(), found.value).value


def _tails(bags: Bags, y: Array, run: Repetition) -> Assumption:
    """How far out the negatives' tokens stand, along queries that never saw them."""
    parts = []
    for k, model in enumerate(run.models["attend"]):
        heights = bags.along(model.query)[((run.block == k) & (y < 0))[bags.owner]]
        spread = heights.std() if len(heights) else 0.0
        parts.append((heights - heights.mean()) / spread if spread > 0 else heights[:0])
    together = np.concatenate(parts)
    return tails(together if len(together) > 1 else np.array([-1.0, 1.0]))


def _promises(
    bags: Bags, y: Array, run: Repetition, needles: Needles, factor: float,
    rng: np.random.Generator,
) -> tuple[dict[str, float | None], str, dict[int, tuple[float, float]]]:  # fmt: skip
    """Errors of planted needles, or why there are none; and errors on longer bags."""
    names, why = ("pooled", "needle"), []
    if not needles.told:
        why.append("the number of needles is no clearer than with shuffled labels")
    if factor > DEPENDENT:
        why.append(f"tokens of a bag belong together (independence {factor:.2g} > {DEPENDENT:g})")
    promised: dict[str, float | None] = dict.fromkeys(names)
    if not why:
        chances = needle_chances(bags, y, run.block, run.models["attend"], needles.found)
        for name in names:
            promised[name] = planted_error(
                bags, y, run.block, run.models[name], chances, needles.found, rng
            )
    longer = {}
    if factor <= DEPENDENT and bags.sizes.max() > 1:
        for times in (2, 4):
            pair = [longer_error(bags, y, run.block, run.models[k], times, rng) for k in names]
            if pair[0] is not None and pair[1] is not None:
                longer[times] = pair[0], pair[1]
    return promised, " and ".join(why), longer


def _model(runs: list[Repetition], seed: int) -> NeedleClassifier:
    """The choice that validated best over all inner folds, to be learned from all bags."""
    losses = np.sum([run.losses for run in runs], axis=0)
    r, i, j = np.unravel_index(int(np.argmin(losses)), losses.shape)
    units, rho = SCALES[r]
    return NeedleClassifier(
        sharpness=TAUS[i], ridge=RIDGES[j], shrinkage=rho, units=units, random_state=seed
    )


def _warnings(
    bags: Bags, y: Array, measured: dict[str, Measured], signal: Signal, factor: float,
    shared: float, tailed: Assumption,
) -> list[str]:  # fmt: skip
    """The worst first."""
    told = []
    if shared > MUCH:
        told.append(
            f"leak: {shared:.0%} of the tokens stand in several bags, so that bags held out are "
            "not new: every number here is too good; make folds by what the bags share (groups)"
        )
    size = measured["size"].auc
    if size > 0.65:
        told.append(
            f"leak: the size of a bag alone has an AUC of {size:.2f}; ask whether it will in use"
        )
    if signal.each["attention"] > 0.98 and signal.auc["attention"] < 0.5:
        told.append(
            f"attention alone has an AUC of {signal.auc['attention']:.2f}, below what chance "
            "gives: the query points away from the positives"
        )
    if factor > DEPENDENT:
        told.append(
            f"the tokens of a bag belong together: its mean scatters {factor:.2g} times as much as "
            "that of independent tokens; the book's theory does not hold here"
        )
    if not tailed.holds:
        told.append(tailed.words)
    silent, d = int(bags.sizes[y < 0].sum()), bags.tokens.shape[1]
    if silent < 10 * d:
        told.append(f"only {silent} tokens of negatives in {d} dimensions: whitening is rough")
    if min((y > 0).sum(), (y < 0).sum()) < 20:
        told.append(
            f"only {min((y > 0).sum(), (y < 0).sum())} bags of the rarer label: expect scatter"
        )
    share = float(np.mean(y > 0))
    if min(share, 1 - share) < 0.15:
        told.append("the labels are far from even: judge by AUC, the error is near the base rate")
    if "gated" not in measured:
        told.append("the bags are large: max pooling, noisy-or and gated attention were left out")
    return told


def _yet(y: Array, measured: dict[str, Measured]) -> str:
    """What speaks against it: a learner that is better than the commoner answer beyond doubt."""
    name = min(measured, key=lambda key: measured[key].interval[1])
    one, share = measured[name], float(np.mean(y > 0))
    if one.interval[1] >= min(share, 1 - share):
        return ""
    return f"; yet {LABELS[name]} errs on {100 * one.error:.1f} % of bags that it never saw"


def _advice(
    bags: Bags, y: Array, measured: dict[str, Measured],
    gap: tuple[float, tuple[float, float]], signal: Signal, shared: float,
) -> str:  # fmt: skip
    """One sentence."""
    pooled, needle, size = (measured[name] for name in ("pooled", "needle", "size"))
    if size.interval[1] < min(pooled.error, needle.error):
        return (
            f"Bag size alone tells more than the tokens: its error is {100 * size.error:.1f} %, "
            f"that of averaging {100 * pooled.error:.1f} % and of attention "
            f"{100 * needle.error:.1f} %; find out why sizes differ, before any classifier."
        )
    if signal.pvalue > SURE:
        often, sure = "", ""
        if signal.pvalue <= 0.05:
            often, sure = f" once in {1 / signal.pvalue:.0f} draws", " beyond doubt"
        return (
            f"Nothing found{sure}: permuted labels do as well as these{often} "
            f"(p = {signal.pvalue:.2g}); get more bags, or better tokens, before any classifier"
            + _yet(y, measured)
            + "."
        )
    if bags.sizes.max() == 1:
        return (
            "A bag is one token here, so that there is nothing to attend to: a readout of the "
            f"tokens has an error of {100 * pooled.error:.1f} %."
        )
    low, high = gap[1]
    if high < 0:
        said = (
            f"Attention pays: its error is {100 * needle.error:.1f} % against "
            f"{100 * pooled.error:.1f} % of averaging, {-100 * high:.1f} to {-100 * low:.1f} "
            "points less"
        )
    elif low > -MARGIN:
        said = (
            f"The mean is enough: averaging has an error of {100 * pooled.error:.1f} %, and "
            f"attention takes off less than {100 * MARGIN:.0f} points"
        )
    else:
        said = (
            f"Cannot tell: averaging has an error of {100 * pooled.error:.1f} %, attention "
            f"{100 * needle.error:.1f} %, and the difference may be anything from "
            f"{100 * low:+.1f} to {100 * high:+.1f} points"
        )
    others = {
        name: one for name, one in measured.items() if name not in ("pooled", "needle", "size")
    }
    if others:
        name = min(others, key=lambda key: others[key].interval[1])
        if others[name].interval[1] < min(pooled.interval[0], needle.interval[0]):
            said += f"; {name.replace('_', '-')} does better still"
    if shared > MUCH:
        said += "; but bags share tokens, so trust none of this before folds keep them apart"
    return said + "."
