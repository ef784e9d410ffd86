"""Sweeps: the same bits whatever the workers and the order, errors that say where, resuming."""

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from needle.trials.grid import SweepError, sweep


@dataclass(frozen=True)
class Noisy:
    value: float
    size: int


def record(a, b, rng):
    return Noisy(a * b + rng.normal(), a)


def mapping(a, rng):
    return {"value": a + rng.normal(), "pair": rng.normal(size=2)}


def product(size, rng):
    F = rng.standard_normal((size, size))
    return float(np.linalg.norm(np.linalg.solve(F, F @ F.T)))


GRID = {"a": [1, 2, 3], "b": np.array([0.5, 2.0])}


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bits():
    grid = {"size": [3, 40, 150]}
    runs = [sweep(product, grid, trials=3, seed=7, n_jobs=k).values() for k in (1, 2, 3, -1)]
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0], other)


def threads(rng):
    return max(library["num_threads"] for library in threadpool_info())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_trial_computes_in_one_thread(n_jobs):
    with threadpool_limits(2):
        assert (sweep(threads, {}, trials=4, seed=0, n_jobs=n_jobs).values() == 1).all()


def test_order_and_growth_of_the_grid_keep_every_number():
    small = sweep(record, GRID, trials=2, seed=1, n_jobs=1).values("value")
    turned = {"b": [2, 0.5, 7.5], "a": [0, 3.0, 2, 1]}
    large = sweep(record, turned, trials=5, seed=1, n_jobs=2).values("value")
    np.testing.assert_array_equal(small, large[1::-1, :0:-1, :2].transpose(1, 0, 2))


@pytest.mark.false_alarm(3e-6)
def test_streams_differ_between_points_trials_and_seeds():
    def draw(a, rng):
        return rng.random()

    drawn = [sweep(draw, {"a": range(40)}, trials=10, seed=s, n_jobs=1).values() for s in (0, 1)]
    assert len(np.unique(drawn)) == 800
    uniform = np.sort(np.ravel(drawn))
    distance = np.abs(uniform - (np.arange(800) + 0.5) / 800).max()
    assert distance * np.sqrt(800) < 2.6  # Kolmogorov–Smirnov: false alarm 3e-6


def test_values_are_shaped_like_the_grid():
    result = sweep(record, GRID, trials=4, seed=0, n_jobs=1)
    assert result.values("value").shape == (3, 2, 4)
    np.testing.assert_array_equal(result.mean("size"), [[1, 1], [2, 2], [3, 3]])
    spread = np.std([r.value for r in result.at(a=2, b=0.5)], ddof=1) / 2
    assert result.standard_error("value")[1, 0] == pytest.approx(spread)
    assert len(result.at(a=2)) == 8
    assert [point for point, _ in result] == result.points


def test_mappings_numbers_and_lists_of_points():
    result = sweep(mapping, [{"a": 5}, {"a": 1}], trials=3, seed=0, n_jobs=1)
    assert result.mean("value").shape == (2,)
    assert result.mean("pair").shape == (2, 2)
    same = sweep(mapping, {"a": [1, 5]}, trials=3, seed=0, n_jobs=1)
    np.testing.assert_array_equal(result.mean("value"), same.mean("value")[::-1])
    assert sweep(lambda rng: 2.5, {}, trials=2, seed=0, n_jobs=1).mean() == 2.5


def test_objects_are_named_by_their_position():
    grid = {"shift": [object(), object()]}
    draw = sweep(lambda shift, rng: rng.random(), grid, trials=1, seed=0, n_jobs=1)
    again = sweep(lambda shift, rng: rng.random(), grid, trials=1, seed=0, n_jobs=1)
    np.testing.assert_array_equal(draw.values(), again.values())
    assert len(np.unique(draw.values())) == 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failing_point_reports_its_parameters(n_jobs):
    def fragile(a, b, rng):
        if a == 2:
            raise FloatingPointError("overflow")
        return a

    with pytest.raises(SweepError, match=r"a=2, b=0.5, trial 0: FloatingPointError: overflow"):
        sweep(fragile, {"a": [1, 2], "b": [0.5]}, trials=1, seed=0, n_jobs=n_jobs)


def test_an_interrupted_sweep_loses_nothing_finished(tmp_path):
    log, trap = tmp_path / "log", tmp_path / "trap"
    trap.touch()

    def slow(a, log, trap, rng):
        if a == 3 and trap.exists():
            raise KeyboardInterrupt
        with log.open("a") as handle:
            handle.write(f"{a}\n")
        return a + rng.normal()

    options = {"trials": 2, "seed": 0, "n_jobs": 1, "cache": tmp_path / "cache"}
    grid = {"a": [1, 2, 3], "log": [log], "trap": [trap]}
    with pytest.raises(KeyboardInterrupt):
        sweep(slow, grid, **options)
    assert log.read_text().split() == ["1", "1", "2", "2"]
    trap.unlink()
    resumed = sweep(slow, grid, **options)
    assert log.read_text().split() == ["1", "1", "2", "2", "3", "3"]
    options.pop("cache")
    np.testing.assert_array_equal(resumed.values(), sweep(slow, grid, **options).values())


def test_a_changed_function_does_not_read_old_results(tmp_path):
    def constant(number):
        return lambda rng: number

    for number in (1, 2, 1):
        result = sweep(constant(number), {}, trials=1, seed=0, n_jobs=1, cache=tmp_path)
        assert result.mean() == number
    assert len(list(tmp_path.iterdir())) == 2


def test_another_seed_does_not_read_old_results(tmp_path):
    options = {"grid": GRID, "trials": 2, "n_jobs": 1}
    for seed in (0, 1, 0):
        kept = sweep(record, **options, seed=seed, cache=tmp_path).values("value")
        np.testing.assert_array_equal(kept, sweep(record, **options, seed=seed).values("value"))


def test_a_changed_package_does_not_read_old_results(tmp_path, monkeypatch):
    """A change anywhere in `needle` starts afresh; the same sources again find the old results."""
    package = tmp_path / "package"
    package.mkdir()
    monkeypatch.setattr(sys.modules["needle.trials.grid"], "HOME", package)
    for text in ("x = 1", "x = 2", "x = 1"):
        (package / "model.py").write_text(text)
        sweep(record, GRID, trials=1, seed=0, n_jobs=1, cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.slow
def test_functions_of_a_main_program_reach_the_workers_and_nothing_is_printed(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
        from dataclasses import dataclass
        from needle.trials.grid import sweep
        @dataclass
        class Record:
            x: float
        offset = 3
        def helper(a):
            return Record(a + offset)
        def function(a, rng):
            return helper(a)
        if __name__ == "__main__":
            print(sweep(function, {"a": [1, 2]}, trials=2, seed=0, n_jobs=2).mean("x"))
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[4. 5.]\n", "")


@pytest.mark.slow
def test_a_terminal_shows_progress_and_the_time_left():
    termios = pytest.importorskip("termios")
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    program = "import time; from needle.trials.grid import sweep; "
    program += "sweep(lambda a, rng: time.sleep(0.2), {'a': range(4)}, trials=1, seed=0, n_jobs=1)"
    subprocess.run([sys.executable, "-c", program], stderr=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "4/4" in shown
    assert re.search(r"\[00:0\d<00:0\d", shown)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trials": 0}, "trials = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": None}, "seed = None"),
        ({"n_jobs": 0}, "n_jobs = 0"),
        ({"n_jobs": 1.5}, "n_jobs = 1.5"),
        ({"grid": {"a": []}}, "a"),
        ({"grid": {"a": "text"}}, "non-empty sequence"),
        ({"grid": {"a": 3}}, "non-empty sequence"),
        ({"grid": {"rng": [1]}}, "rng"),
        ({"grid": []}, "grid"),
    ],
)
def test_bad_input_is_refused(change, message):
    call = {"grid": {"a": [1]}, "trials": 1, "seed": 0} | change
    with pytest.raises(ValueError, match=message):
        sweep(mapping, **call)


def test_missing_fields_points_and_trials_are_refused():
    result = sweep(mapping, {"a": [1]}, trials=1, seed=0, n_jobs=1)
    with pytest.raises(
        ValueError, match="field = 'loss' is not allowed: field must be in the results"
    ):
        result.mean("loss")
    with pytest.raises(ValueError, match="a=2"):
        result.at(a=2)
    with pytest.raises(ValueError, match="trials = 1"):
        result.standard_error("value")
