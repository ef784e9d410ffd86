"""Small products are as fast with many BLAS threads as with one, in seconds of computing."""

from __future__ import annotations

import threading
import time

import cloudpickle
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import needle
from needle.bags.datasets import digit_bags
from needle.kit import threads as module
from needle.kit.threads import _OneThread, in_one_thread, in_one_thread_below, one_thread

MODEL = needle.SparseTokens(10, 1, 3.0, 0.5)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_one_thread_inside_and_what_was_before_after():
    before = threads()

    @in_one_thread
    def inside() -> set[int]:
        with one_thread():
            assert threads() == {1}
        return threads()

    with threadpool_limits(2):
        assert inside() == {1}
        assert threads() == {2}
    assert threads() == before


class Library:
    """A library that counts threads for the process: it remembers what was set last."""

    now = 8

    def limit(self, limits):
        found, self.now = self.now, limits
        return type(
            "Limit", (), {"restore_original_limits": lambda _: setattr(self, "now", found)}
        )()


def test_callers_that_overlap_leave_what_the_first_one_found(monkeypatch):
    library = Library()
    monkeypatch.setattr(module, "_libraries", lambda modules: library)
    alone, first, second = _OneThread(), None, None
    first, second = alone(), alone()
    first.__enter__()
    second.__enter__()
    assert library.now == 1
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)  # sets back what it found, 1; then what the first one found
    assert library.now == 8


def test_only_small_arrays_take_one_thread(monkeypatch):
    library = Library()
    monkeypatch.setattr(module, "_libraries", lambda modules: library)

    @in_one_thread_below(4)
    def seen(array, more, *, last=0):
        return library.now, more, last

    assert seen(np.zeros(3), 5, last=6) == (1, 5, 6)
    assert seen(np.zeros(4), 5, last=6) == (8, 5, 6)
    assert library.now == 8


def test_an_error_and_another_thread_leave_it_as_it_was():
    @in_one_thread
    def broken() -> None:
        raise KeyError("a")

    with threadpool_limits(2):
        with pytest.raises(KeyError):
            broken()
        inside, leave = threading.Event(), threading.Event()

        def other() -> None:
            with one_thread():
                inside.set()
                leave.wait(60)

        helper = threading.Thread(target=other)
        with one_thread():
            helper.start()
            assert inside.wait(60)
        leave.set()
        helper.join()
        assert threads() == {2}


def test_a_function_on_one_thread_travels_to_a_worker():
    assert cloudpickle.loads(cloudpickle.dumps(needle.fit_readout))
    copy = cloudpickle.loads(cloudpickle.dumps(one_thread))
    with copy():
        assert threads() == {1}


def jobs() -> dict:
    bags, labels, _ = digit_bags(100, 8, 1, rng())
    law = needle.attention(MODEL, temperature=2.0, cos=0.8, resolution=96)
    F, y = law.sample(400, 100, rng())
    X, z, _ = MODEL.sample(200, 20, rng())
    return {
        "NeedleClassifier": lambda: needle.NeedleClassifier(cv=2, sharpness=[0, 2]).fit(
            bags, labels
        ),
        "fit_readout": lambda: [needle.fit_readout(F, y, lam) for lam in (0.01, 0.1)],
        "fit_readout, square": lambda: [
            needle.fit_readout(F, y, 10.0**-k, loss="square") for k in range(9)
        ],
        "estimate": lambda: needle.estimate(X, z),
        "predict_reuse": lambda: needle.predict_reuse(MODEL, 1.0, 0.01, temperature=2.0),
        "simulate_reuse": lambda: needle.simulate_reuse(
            MODEL, 60, 1.0, 0.01, rng(), temperature=2.0
        ),
    }


@pytest.mark.slow
def test_more_threads_make_nothing_slower():
    """Ten times as slow it was, on an idle machine; computing time does not see a busy one."""
    spent = {}
    for name, job in jobs().items():
        seconds = []
        for count in (1, 2):
            with threadpool_limits(count):
                job()
                start = time.process_time()
                for _ in range(3):
                    job()
                seconds.append(time.process_time() - start)
        spent[name] = seconds
    slower = {name: both for name, both in spent.items() if both[1] > 1.5 * both[0] + 0.05}
    assert not slower
