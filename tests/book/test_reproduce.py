"""The catalogue of experiments, what is stored of them, and the command that runs them."""

from __future__ import annotations

import copy
import math
import os
import re
import signal
import subprocess
import sys

import pytest
from scipy import stats

from needle.trials.grid import Sweep
from scripts.book.run_notebooks import ROOT
from scripts.check import calibration
from scripts.run import reproduce
from scripts.run.experiments import catalogue, chosen, differences, source_of
from utils.results import Stored, agreements, stored

EXPERIMENTS = catalogue()
FILES = sorted(file.stem for file in reproduce.RESULTS.glob("*.csv"))
GOOD = EXPERIMENTS["example"]


@pytest.mark.parametrize("name", FILES)
def test_what_is_stored_is_what_the_catalogue_asks_for(name: str) -> None:
    """Run `make reproduce ONLY=name` where this fails: its grid, trials, seed or code changed."""
    assert name in EXPERIMENTS, f"{name} is in no table of experiments"
    assert differences(EXPERIMENTS[name], stored(name)) == [], f"make reproduce ONLY={name}"


def test_all_that_is_stored_is_small() -> None:
    assert sum(file.stat().st_size for file in reproduce.RESULTS.iterdir()) <= 5e6


@pytest.mark.parametrize("name", FILES)
def test_a_stored_run_says_where_it_comes_from(name: str) -> None:
    assert {"about", "machine", "seconds", "date"} <= set(stored(name).facts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trials": 201}, "trials are [200], not 201"),
        ({"seed": 2}, "the seed is 1, not 2"),
        ({"grid": {"n": [100, 400, 900]}}, "1 points are missing, for example {'n': 900}"),
        ({"grid": {"n": [100]}}, "1 points are not asked for, like {'n': 400}"),
        ({"function": "scripts.run.experiments:source_of"}, ""),
    ],
)
def test_a_changed_definition_is_noticed(change: dict, message: str) -> None:
    entry = GOOD | change
    if "function" in change:
        entry["function"] = "experiments.learning:one_round"
        message = "the function was experiments.example:mean_of_normals"
    found = differences(entry, stored("example"))
    assert any(message in sentence for sentence in found), found


def test_changed_code_is_noticed_and_a_changed_comment_is_not(tmp_path, monkeypatch) -> None:
    base = 'def helper(x):\n    return x\ndef f(rng):\n    """Doc."""\n    return helper(1)\n'
    names = {}
    for number, (old, new) in enumerate(
        [("", ""), ("Doc", "Words"), ("return x", "return x  # x"), ("return x", "return -x")]
    ):
        (tmp_path / f"trial_{number}.py").write_text(base.replace(old, new))
        monkeypatch.syspath_prepend(tmp_path)
        names[new] = source_of(__import__(f"trial_{number}").f)
    assert names[""] == names["Words"] == names["return x  # x"] != names["return -x"]


ENTRY = """
[trial]
about = "a"
figure = "none"
function = "experiments.example:mean_of_normals"
seed = 1
trials = 2
grid = {n = [3]}
quick = {trials = 1}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 1\n", "", "trial: seed is missing"),
        ("seed = 1\n", 'seed = "1"\n', "seed = '1' must be of type int"),
        ("seed = 1\n", "seed = 1\nseeds = 2\n", "unknown keys ['seeds']"),
        ("grid = {n = [3]}\n", "", "either grid or points is needed, not neither"),
        (
            "grid =",
            "points = []\ngrid =",
            "either grid or points is needed, not ['grid', 'points']",
        ),
        ("{n = [3]}", "{n = 3}", "grid = {'n': 3} must hold lists"),
        ("{n = [3]}", "{n = []}", "grid has an empty part"),
        ("trials = 2", "trials = 0", "trials = 0 must be at least 1"),
        ("quick = {trials = 1}", "quick = {seed = 3}", "quick has unknown keys ['seed']"),
        ("mean_of_normals", "no_such", "has no attribute 'no_such'"),
        ("experiments.example:mean", "mean", "must be named module:function"),
        ("experiments.example:", "experiments.nowhere:", "No module named 'experiments.nowhere'"),
        ("experiments.example:mean_of_normals", "math:sqrt", "a plain function with an argument"),
        ("seed = 1", "seed = ", "experiments.toml: Invalid value"),
        ("quick = {trials = 1}", "quick = {trials = 1}\n[trial]\n", "experiments.toml: Cannot"),
    ],
)
def test_an_entry_that_is_none_is_refused(old: str, new: str, message: str, tmp_path) -> None:
    file = tmp_path / "experiments.toml"
    file.write_text(ENTRY)
    assert list(catalogue(tmp_path)) == ["trial"]
    file.write_text(ENTRY.replace(old, new))
    with pytest.raises(ValueError, match=re.escape(message)):
        catalogue(tmp_path)
    (tmp_path / "other.toml").write_text(ENTRY)
    file.write_text(ENTRY)
    with pytest.raises(ValueError, match="trial is defined twice"):
        catalogue(tmp_path)


def against(result: Sweep, entry: dict, kept: Stored) -> dict[str, float]:
    """z of every quick estimate whose point is stored: its trials are the first of the stored."""
    found = {}
    for row in reproduce.rows(result, entry["seed"]):
        point = {key: row[key] for key in row if key not in reproduce.QUANTITY}
        for where, estimates in zip(kept.points, kept.estimates, strict=True):
            shared = {key: value for key, value in where.items() if value != ""}
            if {k: str(v) for k, v in shared.items()} != {k: str(v) for k, v in point.items()}:
                continue
            whole, part = estimates[row["quantity"]], float(row["estimate"])
            gap, few = part - whole.estimate, row["trials"]
            spread = whole.standard_error * math.sqrt(whole.trials)
            scale = spread * math.sqrt(max(1 / few - 1 / whole.trials, 0.0))
            known = math.isnan(gap) or abs(gap) <= 1e-6 * max(abs(part), 1e-9)
            where_ = f"{point} {row['quantity']}"
            found[where_] = 0.0 if known else gap / scale if scale > 0 else math.inf
    return found


@pytest.fixture(scope="module")
def quick() -> dict[str, Sweep]:
    """All in this process: a pool for each would take longer to start than its trials take."""
    return {name: reproduce.run(entry, "quick", n_jobs=1) for name, entry in EXPERIMENTS.items()}


def test_the_quick_profile_runs_everything_within_a_minute(quick: dict[str, Sweep]) -> None:
    """On two cores, of which an experiment of one trial uses one: CPU seconds of its trials."""
    each = {name: [t for point in run.seconds for t in point] for name, run in quick.items()}
    spent = {name: max(*seconds, sum(seconds) / 2) for name, seconds in each.items()}
    assert sum(spent.values()) <= 60, sorted(spent.items(), key=lambda x: -x[1])[:5]


def test_quick_estimates_agree_with_the_stored_ones(quick: dict[str, Sweep]) -> None:
    """Refuses right code with probability 1e-4 or less where trials are nearly normal."""
    scores = {
        f"{name}: {where}": z
        for name, result in quick.items()
        if name in FILES and not EXPERIMENTS[name]["figure"].startswith("timing")
        for where, z in against(result, EXPERIMENTS[name], stored(name)).items()
    }
    assert len(scores) >= 20
    limit = stats.norm.isf(1e-4 / 2 / len(scores))
    assert {where: z for where, z in scores.items() if abs(z) > limit} == {}


def test_a_corrupted_estimate_is_refused() -> None:
    entry = copy.deepcopy(GOOD)
    entry["quick"] = {"trials": 20, "grid": {"n": [100]}}
    right = reproduce.run(entry, "quick", n_jobs=1)
    assert max(map(abs, against(right, entry, stored("example")).values())) < 4
    wrong = [[{**trial, "mean": trial["mean"] + 0.15} for trial in right.results[0]]]
    shifted = Sweep(right.axes, right.points, wrong, right.seconds)
    assert max(map(abs, against(shifted, entry, stored("example")).values())) > 5


@pytest.mark.parametrize(("wall", "words"), [(3.0, "3"), (0.4, "0, most trials kept")])
def test_a_run_that_was_resumed_says_so(wall: float, words: str) -> None:
    result = Sweep({}, [{}], [[0.0] * 4], [[1.0] * 4])
    said = reproduce.facts(GOOD, result, wall, "2 cores", 2)
    assert said["seconds"].startswith(words)
    assert said["seconds"].isdigit() == (wall == 3.0)
    assert said["cpu seconds"] == "4.0"


def command(*words: str, **options) -> subprocess.Popen:
    call = [sys.executable, "-m", "scripts.run.reproduce", *words]
    return subprocess.Popen(
        call, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


def test_the_command_says_what_it_does_and_refuses_what_it_does_not_know() -> None:
    good = command("example", "--profile", "quick")
    text, _ = good.communicate()
    assert good.returncode == 0
    assert re.search(r"1 of 1: example \(about .* left in all\)", text)
    assert "_build/quick/example.csv" in text
    for words, message in (
        (["no_such"], "unknown experiments ['no_such']"),
        (["example", "--executor", "tcp://127.0.0.1:9"], "no scheduler answers there"),
    ):
        bad = command(*words)
        assert message in bad.communicate()[1]
        assert bad.returncode != 0


def test_the_collected_scores_are_those_of_the_chapters() -> None:
    """Nine of ten at least: else run `python -m scripts.check.calibration`, then Appendix G."""
    now = {(r["claim"], r["quantity"]): r["z"] for r in calibration.collected()}
    kept = {(r["claim"], r["quantity"]): r["z"] for r in agreements()}
    names = {claim for claim, _ in now}
    assert "g-alignment" in names and "g-calibration" not in names  # the latter is made of all
    same = sum(kept.get(key) == z for key, z in now.items())
    assert same >= 0.9 * len(now), f"{len(now) - same} of {len(now)} have changed"


def test_quick_replaces_only_what_it_names() -> None:
    entry = {"grid": {"a": [1]}, "trials": 5, "quick": {"points": [{"a": 2}]}}
    assert chosen(entry, "full")["grid"] == {"a": [1]}
    assert chosen(entry, "quick") == {
        "points": [{"a": 2}],
        "trials": 5,
        "quick": entry["quick"],
    }
    assert "grid" not in chosen(entry, "quick")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")
def test_an_interrupted_run_says_so_and_goes_on(tmp_path) -> None:
    """Ctrl-C: the message, its exit code, and nothing computed twice."""
    script = tmp_path / "slow.py"
    script.write_text(
        "import sys, time\nfrom pathlib import Path\nfrom scripts.run import reproduce\n"
        "from experiments import example\nplain = example.mean_of_normals\n"
        "def mean_of_normals(n, rng):\n    time.sleep(0.1)\n    print('x', flush=True)\n"
        "    return {'mean': float(rng.normal(size=n).mean())}\n"
        "if __name__ == '__main__':\n"
        "    reproduce.CACHE = reproduce.RESULTS = reproduce.HERE = Path(sys.argv.pop(1))\n"
        "    reproduce.facts = lambda *_: {'cpu seconds': '0'}\n"
        "    run = reproduce.run\n"
        "    reproduce.run = lambda *a, **k: run(*a, **k | {'n_jobs': 1})\n"
        "    reproduce.function_of = lambda name: mean_of_normals\n"
        "    sys.exit(reproduce.main())\n"
    )
    call = [sys.executable, script, tmp_path, "example", "--profile", "quick"]
    options = {
        "cwd": ROOT,
        "text": True,
        "stdout": subprocess.PIPE,
        "env": {**os.environ, "PYTHONPATH": str(ROOT)},
        # whoever starts the tests in the background passes on that Ctrl-C is ignored
        "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    }
    first = subprocess.Popen(call, **options)
    lines = [first.stdout.readline() for _ in range(6)]
    first.send_signal(signal.SIGINT)
    rest = first.communicate()[0]
    assert first.returncode == 130
    assert "interrupted; all that had finished is kept" in rest
    computed = "".join([*lines, rest]).count("x\n")
    again = subprocess.run(call, **options, check=True).stdout
    assert computed - 1 <= 20 - again.count("x\n") <= computed < 20
