"""Finished trials on disk: kept whatever kills the process, never mixed up, nothing that runs."""

import importlib.util
import json
import multiprocessing
import os
import pickle
import random
import signal
import sys
import time
import warnings
from collections import namedtuple
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from needle.kit.records import Alignment
from needle.oracle.rules import OracleError
from needle.trials.grid import Sweep, sweep
from needle.trials.store import CacheWarning, TrialStore, contents, decode, encode


@dataclass(frozen=True)
class Own:
    x: float
    y: np.ndarray | None = None


Pair = namedtuple("Pair", "a b")
HERE = [
    *(None, True, 3, -0.0, 1e-320, float("inf"), "text é\n", 10**30, 1 + 2j),
    *(np.float64(0.1), np.float32(0.1), np.int64(7), np.bool_(True), np.str_("é")),
    *([1, (2.5, [3])], {"a": {"b": (1,)}, "tuple": 2}, Pair(1, 2.5)),
    Alignment(0.1, 0.2, 0.3, 0.4, 0.5, rate=None),
    OracleError(0.1, 0.01),
]
ARRAYS = [
    np.arange(6.0).reshape(2, 3).T,
    np.zeros((0, 3)),
    np.array(2.5),
    np.array(["a", "é"]),
    np.arange(3) + 1j,
    np.array([np.nan, -0.0]),
    np.array([1, 2], dtype=">i2"),
]


@pytest.mark.parametrize("value", HERE, ids=repr)
def test_a_result_comes_back_with_its_type_and_bits(value):
    back = decode(json.loads(json.dumps(encode(value))))
    assert type(back) is type(value)
    assert repr(back) == repr(value)


@pytest.mark.parametrize("value", ARRAYS, ids=repr)
def test_an_array_comes_back_with_its_type_and_bits(value):
    back = decode(json.loads(json.dumps(encode({"x": value}))))["x"]
    assert (back.dtype, back.shape) == (value.dtype, value.shape)
    assert back.tobytes() == value.tobytes()
    back[...] = back  # writable


class Plain:
    pass


def test_what_cannot_be_read_back_is_refused_by_name():
    @dataclass
    class Inside:
        x: int

    for value in (Plain(), {1, 2}, {1: 2}, Inside(3), np.array([None]), print):
        with pytest.raises(ValueError, match="is not allowed: a cache keeps numbers"):
            encode(value)
    with pytest.raises(ValueError, match="is not allowed: a cache keeps numbers"):
        encode([{"a": Plain()}])


class Trap:
    """Leaves a mark wherever it is unpickled, built or asked for an attribute."""

    marks: list[str] = []  # noqa: RUF012

    def __init__(self, *_, **__):
        self.marks.append("built")

    def __reduce__(self):
        return self.marks.append, ("unpickled",)


@dataclass
class Alarm:
    x: int

    def __post_init__(self):
        Trap.marks.append("built")


@pytest.mark.parametrize(
    "text",
    [
        {"record": ["os:system", {"command": "false"}]},
        {"record": [f"{__name__}:Trap", {}]},
        {"record": [f"{__name__}:Alarm", {"x": 1, "y": 2}]},
        {"record": [f"{__name__}:Alarm", {"__class__": 1}]},
        {"record": ["antigravity:fly", {}]},
        {"record": ["subprocess:Popen", {"args": "false"}]},
        {"array": ["|O", [1], "AAAAAAAAAAA="]},
        {"pickle": pickle.dumps(Trap()).hex()},
        {"tuple": 3},
        {"dict": {}, "tuple": []},
    ],
    ids=str,
)
def test_a_cache_from_elsewhere_runs_nothing(text, tmp_path):
    """Lines that pass their check, and ask for classes and functions that must not be called."""
    Trap.marks.clear()
    loaded = set(sys.modules)
    store = TrialStore(tmp_path)
    store.keep("a-0", 1.0, 0.0)
    (segment,) = tmp_path.iterdir()
    from needle.trials.store import _check

    line = f"b-0 0 {json.dumps(text)}".encode()
    segment.write_bytes(segment.read_bytes() + _check(line) + b" " + line + b"\n")
    with pytest.warns(CacheWarning, match="line 2"):
        assert store.read({"a-0", "b-0"}) == {"a-0": (1.0, 0.0)}
    assert not Trap.marks
    assert set(sys.modules) == loaded


def test_reading_builds_a_record_without_calling_its_class():
    Trap.marks.clear()
    back = decode(encode(Alarm(3)))
    assert (back.x, Trap.marks) == (3, ["built"])


def square(a, rng):
    return {"value": a**2 + rng.normal(), "draws": rng.random(3)}


OPTIONS = {"grid": {"a": [1, 2, 3]}, "trials": 4, "seed": 0, "n_jobs": 1}


def damage(data: bytes, kind: str) -> bytes:
    lines = data.splitlines(keepends=True)
    if kind == "a byte":
        lines[2] = lines[2][:40] + bytes([lines[2][40] ^ 1]) + lines[2][41:]
    elif kind == "cut short":
        lines[-1] = lines[-1][:-9]
    elif kind == "zeros":
        lines[1] = bytes(len(lines[1]))
    elif kind == "swapped keys":
        (_, b), (_, d) = (line.split(b" ", 2)[:2] for line in lines[:2])
        lines[0] = lines[0].replace(b, d)
    return b"".join(lines)


@pytest.mark.parametrize("kind", ["a byte", "cut short", "zeros", "swapped keys"])
def test_a_damaged_file_is_named_and_its_trials_computed_again(kind, tmp_path):
    whole = sweep(square, **OPTIONS, cache=tmp_path)
    (segment,) = tmp_path.glob("*/*")
    segment.write_bytes(damage(segment.read_bytes(), kind))
    with pytest.warns(CacheWarning, match=segment.name):
        again = sweep(square, **OPTIONS, cache=tmp_path)
    np.testing.assert_array_equal(whole.values("draws"), again.values("draws"))
    np.testing.assert_array_equal(whole.values("value"), again.values("value"))
    assert 1 <= sum(f.read_bytes().count(b"\n") for f in tmp_path.glob("*/*")) - 12 + 2 <= 14


def test_what_is_kept_can_be_counted(tmp_path):
    sweep(square, **OPTIONS, cache=tmp_path)
    ((name, (trials, size)),) = contents(tmp_path).items()
    assert name.startswith("square-")
    assert trials == 12
    assert size == sum(f.stat().st_size for f in tmp_path.glob("*/*"))


HELPERS = """
def inner(x):
    return x
def far(x):
    return inner(x)
def other(x):
    return x
"""
PROJECT = """
import helpers_of_the_test as helpers
from helpers_of_the_test import far
offset = 1
class Kind:
    def method(self):
        return 1
def near(x):
    return x + 1
def deep(x):
    return near(x)
def f(a, rng, k=1):
    here = sum([deep(x) for x in [a]])
    return float(here + far(a) + helpers.other(a) + Kind().method() + offset)
"""


def load(name, text, folder, monkeypatch):
    """A module of the reader's own, from a file."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def computed(folder, monkeypatch, cache, change=("", ""), **options) -> int:
    """How many trials had to be computed after a change of the source or of the call."""
    load("helpers_of_the_test", HELPERS.replace(*change), folder, monkeypatch)
    f = load("project_of_the_test", PROJECT.replace(*change), folder, monkeypatch).f
    call = {"grid": {"a": [1, 2]}, "trials": 2, "seed": 0, "n_jobs": 1, "cache": cache} | options
    f = partial(f, k=3) if call.pop("bound", False) else f
    before = sum(trials for trials, _ in contents(cache).values())
    sweep(f, **call)
    return sum(trials for trials, _ in contents(cache).values()) - before


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (("return x + 1", "return x + 2"), {}),
        (("offset = 1", "offset = 2"), {}),
        (("        return 1", "        return 2"), {}),
        (("k=1", "k=2"), {}),
        (("return inner(x)", "return inner(x) + 1"), {}),
        (("def inner(x):\n    return x", "def inner(x):\n    return 2 * x"), {}),
        (("def other(x):\n    return x", "def other(x):\n    return 2 * x"), {}),
        (("", ""), {"seed": 1}),
        (("", ""), {"grid": {"a": [3, 4]}}),
        (("", ""), {"grid": {"a": [1.0, 2.0]}}),
        (("", ""), {"grid": {"b": [1, 2]}}),
        (("", ""), {"bound": True}),
    ],
    ids=str,
)
def test_a_change_of_anything_that_counts_misses(change, options, tmp_path, monkeypatch):
    where = tmp_path, monkeypatch, tmp_path / "cache"
    if "b" in options.get("grid", {}):
        change = ("def f(a, rng", "def f(b, rng, a=1")
    assert computed(tmp_path / "0", *where[1:]) == 4
    assert computed(tmp_path / "1", *where[1:], change, **options) == 4
    assert computed(tmp_path / "2", *where[1:], change, **options) == 0
    assert computed(tmp_path / "3", *where[1:]) == 0


def test_a_function_among_the_arguments_is_keyed_by_its_source(tmp_path):
    def apply(g, rng):
        calls.write_text(calls.read_text() + "x")
        return float(g(1.0))

    calls = tmp_path / "calls"
    calls.write_text("")
    for _ in range(2):
        for g in (lambda x: x + 1, lambda x: x + 2):
            result = sweep(apply, {"g": [g]}, trials=1, seed=0, n_jobs=1, cache=tmp_path / "c")
            assert result.mean() == g(1.0)
    assert calls.read_text() == "xx"


def logged(a, log, rng):
    time.sleep(0.003)
    with log.open("a") as handle:
        handle.write("x")
    return {"value": float(a + rng.normal())}


def run(folder) -> Sweep:
    grid = {"a": range(20), "log": [folder / "log"]}
    return sweep(logged, grid, trials=10, seed=0, n_jobs=1, cache=folder / "cache")


def start(folder) -> multiprocessing.Process:
    running = multiprocessing.get_context("fork").Process(target=run, args=(folder,))
    running.start()
    return running


def count(folder) -> tuple[int, int]:
    """The trials that were computed, and those that are kept."""
    log = folder / "log"
    kept = sum(trials for trials, _ in contents(folder / "cache").values())
    return len(log.read_text()) if log.exists() else 0, kept


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_twenty_random_moments_it_loses_no_finished_trial(tmp_path):
    """Each run goes on where the last one was killed: only the trial under way is done again."""
    moments = random.Random(1)
    for kills in range(1, 21):
        goal = count(tmp_path)[0] + moments.randint(1, 9)
        running = start(tmp_path)
        while count(tmp_path)[0] < goal:
            time.sleep(0.001)
        time.sleep(moments.uniform(0.0, 0.005))
        os.kill(running.pid, signal.SIGKILL)
        running.join()
        computed, kept = count(tmp_path)
        assert computed - kills <= kept <= computed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(tmp_path).values("value")
    assert count(tmp_path)[0] <= 200 + 20
    plain = sweep(logged, {"a": range(20), "log": [tmp_path / "log"]}, trials=10, seed=0, n_jobs=1)
    np.testing.assert_array_equal(result, plain.values("value"))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_processes_on_one_cache_do_no_harm(tmp_path):
    both = [start(tmp_path) for _ in range(2)]
    for running in both:
        running.join()
        assert running.exitcode == 0
    computed, kept = count(tmp_path)
    assert 200 <= kept == computed <= 400
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(tmp_path)
    assert count(tmp_path) == (computed, kept)


@pytest.mark.slow
def test_a_finished_sweep_of_ten_thousand_trials_resumes_at_once(tmp_path):
    def draw(a, rng):
        return {"value": rng.random()}

    options = {"grid": {"a": range(100)}, "trials": 100, "seed": 0, "n_jobs": 1, "cache": tmp_path}
    start = time.process_time()
    first = sweep(draw, **options).values("value")
    at_first, seconds = time.process_time() - start, []
    for _ in range(3):
        start = time.process_time()
        again = sweep(draw, **options).values("value")
        seconds.append(time.process_time() - start)
        np.testing.assert_array_equal(first, again)
    assert 2 * min(seconds) < at_first  # a seventh, on a machine at rest


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    store = TrialStore(tmp_path)
    monkeypatch.setattr(os, "write", lambda file, line: len(line) - 3)
    with pytest.raises(OSError, match="bytes fit into"):
        store.keep("a-0", 1.0, 0.0)
