"""Any executor gives the same bits; whatever goes wrong is named, and nothing finished is lost."""

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

import cloudpickle
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from needle.trials import execution as execute
from needle.trials import worker
from needle.trials.grid import SweepError, SweepWarning, sweep
from needle.trials.store import contents


@dataclass(frozen=True)
class Own:
    value: float


def draw(a, rng):
    return Own(a + rng.normal())


OPTIONS = {"grid": {"a": [1, 2, 3]}, "trials": 4, "seed": 0}
PLAIN = sweep(draw, **OPTIONS, n_jobs=1).values("value")


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
@pytest.mark.parametrize("workers", [1, 2])
def test_any_executor_gives_the_same_bits(pool, workers):
    with pool(workers) as executor:
        result = sweep(draw, **OPTIONS, executor=executor)
    np.testing.assert_array_equal(result.values("value"), PLAIN)
    assert all(type(r) is Own for trials in result.results for r in trials)


def test_functions_of_a_notebook_reach_any_executor():
    shift = 3.0
    with ProcessPoolExecutor(1) as executor:
        result = sweep(lambda rng: rng.normal() + shift, {}, trials=3, seed=0, executor=executor)
    plain = sweep(lambda rng: rng.normal() + shift, {}, trials=3, seed=0, n_jobs=1)
    np.testing.assert_array_equal(result.values(), plain.values())


def threads(rng):
    time.sleep(0.01)
    return max(library["num_threads"] for library in threadpool_info())


def test_a_function_and_what_it_imports_travel_to_where_their_modules_are_not(
    tmp_path, monkeypatch
):
    (tmp_path / "my_own").mkdir()
    (tmp_path / "my_own" / "parts.py").write_text("def twice(x):\n    return 2 * x\n")
    words = "from my_own.parts import twice\n\ndef trial(rng):\n    return twice(21)\n"
    (tmp_path / "my_own" / "trials.py").write_text(words)
    monkeypatch.syspath_prepend(tmp_path)
    packed = worker.pack(importlib.import_module("my_own.trials").trial)
    assert "my_own" not in cloudpickle.list_registry_pickle_by_value()
    there = "import pickle, sys; print(pickle.load(sys.stdin.buffer)(rng=None))"
    command = [sys.executable, "-c", there]
    assert subprocess.run(command, input=packed, capture_output=True).stdout == b"42\n"
    for name in [name for name in sys.modules if name.startswith("my_own")]:
        monkeypatch.delitem(sys.modules, name)


def test_trials_side_by_side_compute_in_one_thread_each():
    with threadpool_limits(2), ThreadPoolExecutor(3) as executor:
        assert (sweep(threads, {}, trials=12, seed=0, executor=executor).values() == 1).all()
        assert max(library["num_threads"] for library in threadpool_info()) == 2


class Lazy(Executor):
    """Does the work in `land`, in its own order, and counts how much is in flight."""

    def __init__(self, spoil=None):
        self.calls, self.most, self.done, self.spoil = [], 0, 0, spoil
        self.lock = threading.Lock()

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        with self.lock:
            self.calls.append((future, function))
            self.most = max(self.most, len(self.calls))
        threading.Timer(0.001, self.land).start()
        return future

    def land(self):
        with self.lock:
            future, function = self.calls.pop()
            self.done += 1
            number = self.done
        if self.spoil is None or not self.spoil(future, number):
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)


def test_a_bounded_number_is_in_flight_and_any_order_will_do(monkeypatch):
    monkeypatch.setattr(execute, "IN_FLIGHT", 3)
    monkeypatch.setattr(execute, "LARGEST_BATCH", 2)
    executor = Lazy()
    result = sweep(draw, **{**OPTIONS, "trials": 20}, executor=executor)
    assert executor.most <= 3
    np.testing.assert_array_equal(result.values("value")[:, :4], PLAIN)


def test_short_trials_travel_together_and_long_ones_alone(monkeypatch):
    short, long = Lazy(), Lazy()
    monkeypatch.setattr(execute, "IN_FLIGHT", 2)
    sweep(lambda rng: 1, {}, trials=300, seed=0, executor=short)
    assert short.done < 60
    monkeypatch.setattr(worker, "BRIEF", -1.0)  # every trial is long
    sweep(lambda rng: 1, {}, trials=50, seed=0, executor=long)
    assert long.done >= 50


class KilledWorker(Exception):
    """As Dask calls it."""


def test_a_lost_trial_is_tried_again_alone_when_the_others_are_done():
    """The first two batches go down with their worker; only one of them had killed it."""

    def spoil(future, number):
        if number <= 2:
            future.set_exception(KilledWorker("four workers died"))
        return number <= 2

    with pytest.warns(SweepWarning, match=r"KilledWorker: four workers died.*a=\d, trial \d"):
        result = sweep(draw, **OPTIONS, executor=Lazy(spoil))
    np.testing.assert_array_equal(result.values("value"), PLAIN)


def deadly(a, rng, log=None):
    if log is not None:
        with log.open("a") as file:
            file.write(f"{a}\n")
    if a == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return a + rng.normal()


@pytest.mark.slow
def test_a_trial_that_always_kills_its_worker_is_named_and_the_others_finish(tmp_path):
    log, kept = tmp_path / "starts", tmp_path / "kept"
    options = {"grid": {"a": range(6)}, "trials": 1, "seed": 0, "cache": kept}
    with (
        pytest.warns(SweepWarning, match="a=2, trial 0"),
        pytest.raises(SweepError, match=r"a=2, trial 0: its worker died each time.*all others"),
    ):
        sweep(partial(deadly, log=log), **options, n_jobs=2)
    starts = log.read_text().split()
    assert starts.count("2") <= 3 and len(starts) <= 12  # workers are not spent on it for ever
    assert sum(trials for trials, _ in contents(kept).values()) == 5


def test_a_pool_of_somebody_else_that_breaks_is_said_to_be_theirs(tmp_path):
    with ProcessPoolExecutor(1) as executor:
        options = {"grid": {"a": [0, 1, 2, 3]}, "trials": 1, "seed": 0, "cache": tmp_path}
        message = r"a=2, trial 0.*BrokenProcessPool.*Only who made this executor"
        with pytest.raises(SweepError, match=message):
            sweep(deadly, **options, executor=executor)
        with pytest.raises(SweepError, match=message):
            sweep(deadly, **options, executor=executor)
    assert sum(trials for trials, _ in contents(tmp_path).values()) == 2


@pytest.mark.parametrize("how", ["cancelled", "shut down"])
def test_an_executor_that_goes_away_raises_and_loses_nothing_finished(how, tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "IN_FLIGHT", 1)
    monkeypatch.setattr(execute, "LARGEST_BATCH", 1)

    def spoil(future, number):
        if number == 4 and how == "cancelled":
            future.cancel()
            future.set_running_or_notify_cancel()
        return number == 4 and how == "cancelled"

    class Closing(Lazy):
        def submit(self, *args):
            if self.done == 3 and how == "shut down":
                raise RuntimeError("cannot schedule new futures after shutdown")
            return super().submit(*args)

    with pytest.raises(SweepError, match=r"a=1, trial 3.*the executor was lost"):
        sweep(draw, **OPTIONS, cache=tmp_path, executor=Closing(spoil))
    assert sum(trials for trials, _ in contents(tmp_path).values()) == 3


def test_an_interrupt_keeps_all_that_has_landed(tmp_path, monkeypatch):
    """The interrupt comes while results wait that nobody has looked at yet."""

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *args):
            if len(seen) == 6:
                wait(seen)
                raise KeyboardInterrupt
            seen.append(super().submit(*args))
            return seen[-1]

    seen: list[Future] = []
    with Interrupted(1) as executor, pytest.raises(KeyboardInterrupt):
        sweep(draw, **OPTIONS, cache=tmp_path, executor=executor)
    assert sum(trials for trials, _ in contents(tmp_path).values()) == 6


def fragile(a, rng):
    if a == 2:
        raise FloatingPointError("overflow")
    return a


def test_a_failure_abroad_is_named_with_its_cause():
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(SweepError, match="a=2, trial 0: FloatingPointError: overflow") as caught,
    ):
        sweep(fragile, {"a": [1, 2]}, trials=1, seed=0, executor=executor)
    cause = caught.value.__cause__
    assert isinstance(cause, FloatingPointError)
    assert "in fragile" in cause.__notes__[0]


def test_a_result_that_cannot_travel_is_named():
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(SweepError, match=r"a=1, trial 0: TypeError: cannot pickle"),
    ):
        sweep(lambda a, rng: threading.Lock(), {"a": [1]}, trials=1, seed=0, executor=executor)


def test_a_worker_of_another_version_refuses():
    with pytest.raises(RuntimeError, match=r"worker has needle .*, and the caller needle 0, Py"):
        worker.work("needle 0, Python 3", b"", [])


def test_where_there_are_no_processes_one_does_all(monkeypatch):
    monkeypatch.setattr(sys, "platform", "emscripten")
    monkeypatch.setattr(execute, "_Flights", None)
    np.testing.assert_array_equal(sweep(draw, **OPTIONS, n_jobs=2).values("value"), PLAIN)


def test_what_is_no_executor_is_refused():
    with pytest.raises(ValueError, match="executor = 2 is not allowed"):
        sweep(draw, **OPTIONS, executor=2)
