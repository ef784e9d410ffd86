"""Sweeps on Dask: real schedulers and workers, killed on purpose. `make check` leaves these out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from needle.bags.reporting import report
from needle.trials.grid import Sweep, SweepError, SweepWarning, sweep
from needle.trials.store import contents

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.cluster]
ROOT = Path(__file__).resolve().parents[2]
DASK = Path(sys.executable).with_name("dask")
LIMIT = 600  # seconds after which a test that hangs fails


@pytest.fixture(autouse=True)
def _an_end() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"no end within {LIMIT} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextmanager
def process(*words: object, folder: Path) -> Iterator[subprocess.Popen]:
    """A process in a folder of its own, with its own home, in a group that is ended as a whole."""
    folder.mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
        "DASK_TEMPORARY_DIRECTORY": str(folder),
    }
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(
            [*map(str, words)], cwd=folder, env=environment, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield running
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


@contextmanager
def machines(folder: Path, workers: int):
    """`dask scheduler` and some `dask worker --nthreads 1`, each as if on a machine of its own."""
    folder.mkdir()
    address = folder / "scheduler.json"
    with ExitStack() as stack:
        plain = ["--no-dashboard", "--scheduler-file", address]
        call = [DASK, "scheduler", "--port", "0", "--host", "127.0.0.1", *plain]
        scheduler = stack.enter_context(process(*call, folder=folder / "scheduler"))
        while not address.exists():
            time.sleep(0.05)
        call = [DASK, "worker", "--nthreads", "1", "--host", "127.0.0.1", *plain]
        for k in range(workers):
            stack.enter_context(process(*call, folder=folder / f"worker-{k}"))
        where = json.loads(address.read_text())["address"]
        client = stack.enter_context(distributed.Client(where))
        client.wait_for_workers(workers)
        yield client, scheduler
        client.close(timeout=1)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory):
    with machines(tmp_path_factory.mktemp("dask") / "cluster", 2) as (client, _):
        yield client


def draw(a, size, rng):
    F = rng.standard_normal((size, size))
    time.sleep(0.01)
    return {"value": float(np.linalg.slogdet(F + a)[1]), "where": os.getcwd()}


GRID = {"a": [0.5, 1.5, 2.5], "size": [5, 60]}
OPTIONS = {"grid": GRID, "trials": 10, "seed": 3}


def same(result: Sweep) -> None:
    plain = sweep(draw, **OPTIONS, n_jobs=1)
    np.testing.assert_array_equal(result.values("value"), plain.values("value"))


def folders(result: Sweep) -> set[str]:
    return {Path(trial["where"]).name for trials in result.results for trial in trials}


def test_two_workers_in_two_folders_give_the_same_bits(client) -> None:
    result = sweep(draw, **OPTIONS, executor=client.get_executor(pure=False))
    same(result)
    assert folders(result) == {"worker-0", "worker-1"}


def test_a_local_cluster_gives_the_same_bits() -> None:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        same(sweep(draw, **OPTIONS, executor=client.get_executor(pure=False)))


def test_a_killed_worker_costs_time_only(client) -> None:
    pid = next(iter(client.run(os.getpid).values()))
    threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SweepWarning)
        same(sweep(draw, **OPTIONS, executor=client.get_executor(pure=False)))
    assert not Path(f"/proc/{pid}").exists() or not Path("/proc").exists()
    client.wait_for_workers(2)


def test_a_report_on_a_cluster_is_the_same_and_loses_nothing_with_a_worker(client) -> None:
    rng = np.random.default_rng(0)
    tokens, y = rng.normal(size=(60, 6, 5)), np.resize([1, -1], 60)
    tokens[y > 0, 0, 0] += 4
    plain = report(tokens, y)
    pid = next(iter(client.run(os.getpid).values()))
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SweepWarning)
        found = report(tokens, y, executor=client.get_executor(pure=False))
    assert not Path(f"/proc/{pid}").exists() or not Path("/proc").exists()
    for name, one in plain.measured.items():
        other = found.measured[name]
        assert (one.auc, one.error, one.interval) == (other.auc, other.error, other.interval)
    assert found.signal == plain.signal and found.needles == plain.needles
    assert found.differences == plain.differences and found.advice == plain.advice
    np.testing.assert_array_equal(found.model.scorer_.query, plain.model.scorer_.query)
    client.wait_for_workers(2)


def deadly(a, rng, log):
    with open(log, "a") as file:
        file.write(f"{a}\n")
    if a == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return float(a + rng.normal())


def test_a_trial_that_always_kills_its_worker_is_named_and_the_others_finish(
    client, tmp_path
) -> None:
    log, kept = tmp_path / "starts", tmp_path / "kept"
    with (
        pytest.warns(SweepWarning, match="a=3, trial 0"),
        pytest.raises(SweepError, match=r"a=3, trial 0: its worker died .*all others finished"),
    ):
        sweep(
            partial(deadly, log=str(log)), {"a": range(30)}, trials=1, seed=0, cache=kept,
            executor=client.get_executor(pure=False),
        )  # fmt: skip
    starts = log.read_text().split()
    assert starts.count("3") <= 8 and len(starts) <= 60  # workers are not spent on it for ever
    assert sum(trials for trials, _ in contents(kept).values()) == 29


def test_a_scheduler_that_goes_away_raises_and_another_goes_on(client, tmp_path) -> None:
    """Half on a first cluster, whose scheduler is killed; the rest on a second, of one cache."""
    cache = tmp_path / "cache"

    def kept() -> int:
        return sum(trials for trials, _ in contents(cache).values())

    with machines(tmp_path / "other", 1) as (other, scheduler):

        def kill() -> None:
            while kept() < 15:
                time.sleep(0.01)
            os.killpg(scheduler.pid, signal.SIGKILL)

        threading.Thread(target=kill).start()
        with pytest.raises(SweepError, match="the executor was lost"):
            sweep(draw, **OPTIONS, cache=cache, executor=other.get_executor(pure=False))
    found = kept()
    assert 15 <= found < 60
    result = sweep(draw, **OPTIONS, cache=cache, executor=client.get_executor(pure=False))
    same(result)
    assert kept() == 60
    assert folders(result) == {"worker-0", "worker-1"}
