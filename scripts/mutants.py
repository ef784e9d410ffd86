"""Break the code on purpose, one small change at a time: does some unit test notice?

The changes are listed in `tests/mutants.toml`, by module. Each is applied to a copy of the project;
there the tests that the list names (`by`), then the fast and last the slow tests of the module run
until one fails. Writes `benchmarks/MUTANTS.md`; fails if a mutant survives. Names of modules
restrict the run, and then nothing is written.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import current_process, get_context
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIST, REPORT = ROOT / "tests" / "mutants.toml", ROOT / "benchmarks" / "MUTANTS.md"
COPIES, LIMIT = 2, 900
LIBRARIES = (  # imported once, before any process is forked
    *("hypothesis", "joblib", "numpy", "scipy.integrate", "scipy.optimize", "scipy.special"),
    *("scipy.stats", "sklearn.linear_model", "threadpoolctl", "tqdm"),
)


@dataclass(frozen=True)
class Mutant:
    """One change: `old`, which occurs once in the module, becomes `new`."""

    module: str
    old: str
    new: str
    by: str = ""

    def source(self) -> str:
        """The changed text of the module."""
        text = (ROOT / "utils" / f"{self.module}.py").read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise SystemExit(
                f"{self.module}: {self.old!r} occurs {text.count(self.old)} times, not once"
            )
        return text.replace(self.old, self.new)

    def attempts(self) -> list[list[str]]:
        """Arguments of pytest, the likeliest killer first."""
        files = [f"tests/utils/test_{self.module}.py"]
        also = self.by.split(" ")[0]
        hint = [[f"tests/utils/{also}", *self.by.split(" ", 1)[1:]]] if self.by else []
        hint = [[words[0], *(["-k", words[1]] if words[1:] else [])] for words in hint]
        files = [file for file in files if (ROOT / file).exists()] or [words[0] for words in hint]
        return [*hint, [*files, "-m", "not slow"], [*files, "-m", "slow"]]


def listed(names: list[str]) -> list[Mutant]:
    """The mutants of the list, of some modules only where names are given."""
    table = tomllib.loads(LIST.read_text(encoding="utf-8"))
    unknown = set(names) - set(table)
    if unknown:
        raise SystemExit(f"no mutants are listed for {', '.join(sorted(unknown))}")
    chosen = names or list(table)
    return [Mutant(module, **entry) for module in chosen for entry in table[module]]


class Killer:
    """A plugin of pytest that keeps the first failure."""

    def __init__(self) -> None:
        self.name: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.name = self.name or report.nodeid.rsplit("/", 1)[-1]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.name = self.name or "the import"


def out_of_time(*_: object) -> None:
    raise TimeoutError


def judge(mutant: Mutant) -> tuple[str | None, float]:
    """The first test that fails under the mutant, or None; and the seconds it took.

    Runs in a process of its own, forked after the libraries have been imported and `utils` has not.
    """
    start, killer = time.perf_counter(), Killer()
    current_process()._config["daemon"] = False  # or no test could start a process
    signal.signal(signal.SIGALRM, out_of_time)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("utils", "tests"):
            ignored = shutil.ignore_patterns("__pycache__", "book")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", folder)
        (folder / "utils" / f"{mutant.module}.py").write_text(mutant.source(), encoding="utf-8")
        os.chdir(folder)
        os.environ["PYTHONPATH"] = sys.path[0] = place
        sys.dont_write_bytecode = True
        with (folder / "output").open("w") as output:
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            signal.alarm(LIMIT)
            try:
                for words in mutant.attempts():
                    options = ["-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
                    code = pytest.main([*options, *words], plugins=[killer])
                    if code not in (0, 5):
                        return killer.name or "the import", time.perf_counter() - start
            except TimeoutError:
                return f"no end within {LIMIT} s", time.perf_counter() - start
            finally:
                signal.alarm(0)
                os.chdir(ROOT)
    return None, time.perf_counter() - start


def run(mutants: list[Mutant]) -> list[tuple[str | None, float]]:
    """The killer of each mutant and the seconds it took."""
    for name in LIBRARIES:
        import_module(name)
    found = []
    with get_context("fork").Pool(COPIES, maxtasksperchild=1) as pool:
        for mutant, answer in zip(mutants, pool.imap(judge, mutants, chunksize=1), strict=True):
            found.append(answer)
            print(f"{answer[1]:5.1f} s  {mutant.module}: {mutant.new!r}: {answer[0] or 'SURVIVES'}")
    return found


def report(mutants: list[Mutant], found: list[tuple[str | None, float]], seconds: float) -> str:
    alive = sum(killer is None for killer, _ in found)
    lines = [
        "# Mutants",
        "",
        f"{len(mutants)} small changes of `utils`, one at a time: {len(mutants) - alive} noticed",
        f"by the unit tests, {alive} not, in {seconds / 60:.0f} minutes. `make mutants` wrote this",
        "page from `tests/mutants.toml`.",
        "",
        "| module | the code | becomes | noticed by |",
        "| --- | --- | --- | --- |",
    ]

    def cell(text: str) -> str:
        joined = " ".join(text.split()).replace("|", "\\|")
        return f"`{joined}`"

    for mutant, (name, _) in zip(mutants, found, strict=True):
        judge = cell(name) if name else "**nothing**"
        lines.append(f"| {mutant.module} | {cell(mutant.old)} | {cell(mutant.new)} | {judge} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    start, mutants = time.perf_counter(), listed(sys.argv[1:])
    for mutant in mutants:
        mutant.source()
    found = run(mutants)
    seconds = time.perf_counter() - start
    alive = [m for m, (name, _) in zip(mutants, found, strict=True) if name is None]
    if not sys.argv[1:]:
        REPORT.write_text(report(mutants, found, seconds), encoding="utf-8")
    for mutant in alive:
        print(f"survives in {mutant.module}: {mutant.old!r} -> {mutant.new!r}")
    print(f"{len(mutants)} mutants, {len(alive)} alive, {seconds:.0f} s")
    return bool(alive)


if __name__ == "__main__":
    sys.exit(main())
