"""Trials on any executor: kept as they finish, none lost, every failure named.

On this machine the executor is a pool of processes, each with one BLAS thread; a worker that dies
is replaced. Anyone else's executor is used as it is: what it loses is reported.
"""

from __future__ import annotations

import queue
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import joblib

from ..kit.threads import one_thread
from .keys import environment
from .worker import Reply, pack, timed, work

IN_FLIGHT = 2000  # futures that a foreign executor is given at once
LARGEST_BATCH = 64
GIVE_UP = 5  # trials that kill their worker, after which a sweep ends

Keep = Callable[[int, Any, float], None]


class SweepError(RuntimeError):
    """The function failed; the message names the parameters, the trial and the cause."""


class SweepWarning(UserWarning):
    """A worker died; the message names the trials that it may have died of."""


class Trial(NamedTuple):
    """One call of the function: its number in the sweep, its parameters and its stream."""

    number: int
    point: Mapping[str, Any]
    seed: int
    stream: tuple[int, ...]

    def __str__(self) -> str:
        return ", ".join(filter(None, [describe(self.point), f"trial {self.stream[-1]}"]))


def describe(point: Mapping[str, Any]) -> str:
    """The parameters of a trial in words, as messages name them."""
    return ", ".join(f"{name}={value!r}" for name, value in point.items())


def gather(
    function: Callable, trials: list[Trial], keep: Keep, *, n_jobs: int, executor: Executor | None
) -> None:
    """Run trials and call `keep(number, result, CPU seconds)` for each as soon as it is done.

    Raises SweepError; whatever had finished by then, or before an interrupt, has been kept.
    """
    jobs = min(joblib.cpu_count() if n_jobs < 0 else n_jobs, len(trials))
    if executor is not None:
        with one_thread():  # an executor of threads computes here
            _Flights(function, keep, executor).run(trials)
    elif jobs > 1 and sys.platform != "emscripten":  # a browser has no processes
        _Flights(function, keep, None, jobs).run(trials)
    else:
        for trial in trials:
            try:
                result = timed(function, trial.point, trial.seed, trial.stream)
            except Exception as error:
                raise _failed(trial, error) from error
            keep(trial.number, *result)


def _failed(trial: Trial, cause: object) -> SweepError:
    return SweepError(f"the sweep failed at {trial}: {_named(cause)}")


def _named(cause: object) -> str:
    """What went wrong, in a line."""
    text = str(cause).partition("\n")[0]
    return f"{type(cause).__name__}: {text}" if isinstance(cause, BaseException) else text


_pools: dict[int, Executor] = {}


def _pool(jobs: int) -> Executor:
    """The processes of this machine, kept for the next sweep; idle ones end after five minutes."""
    from joblib.externals.loky import ProcessPoolExecutor

    if jobs not in _pools:
        threads = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1"
        )
        _pools[jobs] = ProcessPoolExecutor(jobs, timeout=300, env=threads)
    return _pools[jobs]


def _drop(jobs: int) -> None:
    if jobs in _pools:
        _pools.pop(jobs).shutdown(wait=False, kill_workers=True)  # type: ignore[call-arg]


class _Flights:
    """Batches of trials that an executor works on, and what becomes of them."""

    def __init__(
        self, function: Callable, keep: Keep, executor: Executor | None, jobs: int = 0
    ) -> None:
        self.packed, self.keep, self.jobs = pack(function), keep, jobs
        self.foreign = executor
        self.limit = IN_FLIGHT if executor else 2 * jobs
        self.flying: dict[Future, tuple[list[Trial], Executor]] = {}
        self.landed: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.waiting: deque[Trial] = deque()
        self.suspects: list[Trial] = []
        self.dead: list[tuple[Trial, BaseException]] = []
        self.size, self.alone = 1, False
        self._points: dict[int, bytes] = {}

    def run(self, trials: Iterable[Trial]) -> None:
        """All trials; those that went down with a worker once more at the end, one by one."""
        try:
            self.waiting.extend(trials)
            self._fly()
            self.size, self.limit, self.alone = 1, 1, True
            self.waiting.extend(self.suspects)
            self._fly()
        except BaseException:
            self._save()
            raise
        if self.dead:
            self._raise_dead()

    def _fly(self) -> None:
        while self.waiting or self.flying:
            while self.waiting and len(self.flying) < self.limit:
                count = min(self.size, len(self.waiting))
                self._launch([self.waiting.popleft() for _ in range(count)])
            future = self.landed.get()
            self._land(future, *self.flying[future])
            del self.flying[future]

    def _launch(self, batch: list[Trial]) -> None:
        message = [(self._point(trial), trial.seed, trial.stream) for trial in batch]
        call = partial(work, environment(), self.packed, message)
        executor = self.foreign or _pool(self.jobs)
        try:
            future = executor.submit(call)
        except BrokenExecutor as error:
            if self.foreign:
                raise self._gone(error, batch) from error
            _drop(self.jobs)
            executor = _pool(self.jobs)
            future = executor.submit(call)
        except RuntimeError as error:  # it was shut down
            raise self._gone(error, batch) from error
        self.flying[future] = batch, executor
        future.add_done_callback(self.landed.put)

    def _point(self, trial: Trial) -> bytes:
        """The parameters by value, packed once for all trials of a point."""
        import cloudpickle

        if id(trial.point) not in self._points:
            self._points = {id(trial.point): cloudpickle.dumps(dict(trial.point))}
        return self._points[id(trial.point)]

    def _land(self, future: Future, batch: list[Trial], executor: Executor) -> None:
        """Keep what came back; say what did not."""
        if future.cancelled():
            raise self._gone("it cancelled them", batch)
        error = future.exception()
        if error is None:
            self._keep(batch, future.result())
        elif isinstance(error, BrokenExecutor) and self.foreign:
            raise self._gone(error, batch) from error
        elif isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
            if not self.foreign and _pools.get(self.jobs) is executor:
                _drop(self.jobs)
            self._suspect(batch, error)
        elif self.foreign and isinstance(error, ValueError) and "unpack" in str(error):
            # a result that was lost with its worker, which Dask's executor reads as an error
            self.waiting.extendleft(reversed(batch))
        elif isinstance(error, Exception):
            raise _failed(batch[0], error) from error
        else:
            raise error

    def _keep(self, batch: list[Trial], reply: Reply) -> None:
        import cloudpickle

        done, failure = reply
        for trial, (result, seconds) in zip(batch, done, strict=False):
            self.keep(trial.number, cloudpickle.loads(result), seconds)
        if failure:
            text, packed = failure
            cause = cloudpickle.loads(packed) if packed else None
            raise _failed(batch[len(done)], text) from cause
        left = batch[len(done) :]
        self.waiting.extendleft(reversed(left))
        if not self.alone:
            self.size = max(1, len(done)) if left else min(2 * len(batch), LARGEST_BATCH)

    def _suspect(self, batch: list[Trial], error: BaseException) -> None:
        if self.alone:
            self.dead += [(trial, error) for trial in batch]
            if len(self.dead) >= GIVE_UP:
                self._raise_dead()
        else:
            self.suspects += batch
            message = f"a worker died ({_named(error)}) with {_few(batch)}: "
            message += "tried once more, alone, when the others are done"
            warnings.warn(message, SweepWarning, stacklevel=6)

    def _raise_dead(self) -> None:
        trial, error = self.dead[0]
        more = f"; so did {_few([t for t, _ in self.dead[1:]])}" if self.dead[1:] else ""
        text = f"its worker died each time ({_named(error)}){more}"
        others = f"{len(self.waiting)} trials were not tried again" if self.waiting else ""
        raise _failed(trial, f"{text}; {others or 'all others finished'}") from error

    def _gone(self, cause: object, batch: list[Trial]) -> SweepError:
        """A foreign executor that takes no more work, or gave up what it had."""
        lost = [trial for flight, _ in self.flying.values() for trial in flight] or batch
        return SweepError(
            f"the sweep failed at {_few(lost)}: the executor was lost on the way "
            f"({_named(cause)}), perhaps by the first of these. All that had finished is kept "
            "where there is a cache. Only who made this executor can make a new one: do so, and "
            "call sweep again"
        )

    def _save(self) -> None:
        """Before an error goes on its way: keep what has landed, call off the rest."""
        for future, (batch, _) in self.flying.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                with suppress(SweepError):
                    self._keep(batch, future.result())
        for future in self.flying:
            future.cancel()
        if not self.foreign:
            _drop(self.jobs)


def _few(trials: list[Trial]) -> str:
    shown = "; ".join(map(str, trials[:5]))
    return f"{shown}; and {len(trials) - 5} more" if len(trials) > 5 else shown
