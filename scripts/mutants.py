"""Break the code on purpose, one small change at a time: does some unit test notice?

The changes are listed in `tests/mutants.toml`, by module. Each is applied to a copy of the project;
there the tests that the list names (`by`), then the fast and last the slow tests of the module run
until one fails. Writes `benchmarks/MUTANTS.md`; fails if a mutant survives. Names of modules
restrict the run, and then nothing is written. Two mutants are judged at a time; what they cost is
told in CPU minutes, which do not depend on what else the machine does.
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
from typing import NamedTuple

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


class Verdict(NamedTuple):
    """The first test that fails under a mutant, or None; and the CPU seconds that it took."""

    killer: str | None
    seconds: float


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


def judge(mutant: Mutant) -> Verdict:
    """Try the tests of a mutant, the likeliest killer first.

    Runs in a process of its own, forked after the libraries have been imported and `utils` has not.
    """
    killer = Killer()

    def verdict(name: str | None) -> Verdict:
        return Verdict(name, sum(os.times()[:4]))

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
                        return verdict(killer.name or "the import")
            except TimeoutError:
                return verdict(f"no end within {LIMIT} s")
            finally:
                signal.alarm(0)
                os.chdir(ROOT)
    return verdict(None)


def run(mutants: list[Mutant]) -> list[Verdict]:
    """What became of each mutant."""
    for name in LIBRARIES:
        import_module(name)
    found = []
    with get_context("fork").Pool(COPIES, maxtasksperchild=1) as pool:
        for mutant, answer in zip(mutants, pool.imap(judge, mutants, chunksize=1), strict=True):
            found.append(answer)
            said = f"{mutant.module}: {mutant.new!r}: {answer.killer or 'SURVIVES'}"
            print(f"{answer.seconds:5.1f} s  {said}", flush=True)
    return found


def report(mutants: list[Mutant], found: list[Verdict]) -> str:
    """The page of all mutants and what noticed them."""
    alive = sum(verdict.killer is None for verdict in found)
    minutes = sum(verdict.seconds for verdict in found) / 60
    lines = [
        "# Mutants",
        "",
        f"{len(mutants)} small changes of `utils`, one at a time: {len(mutants) - alive} noticed",
        f"by the unit tests, {alive} not, in {minutes:.0f} minutes of one core. {COPIES} are tried",
        "at a time. `make mutants` wrote this page from `tests/mutants.toml`.",
        "",
        "| module | the code | becomes | noticed by |",
        "| --- | --- | --- | --- |",
    ]

    def cell(text: str) -> str:
        joined = " ".join(text.split()).replace("|", "\\|")
        return f"`{joined}`"

    for mutant, (killer, _) in zip(mutants, found, strict=True):
        by = cell(killer) if killer else "**nothing**"
        lines.append(f"| {mutant.module} | {cell(mutant.old)} | {cell(mutant.new)} | {by} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    start, mutants = time.perf_counter(), listed(sys.argv[1:])
    for mutant in mutants:
        mutant.source()
    found = run(mutants)
    seconds = time.perf_counter() - start
    alive = [m for m, (killer, _) in zip(mutants, found, strict=True) if killer is None]
    if not sys.argv[1:]:
        REPORT.write_text(report(mutants, found), encoding="utf-8")
    for mutant in alive:
        print(f"survives in {mutant.module}: {mutant.old!r} -> {mutant.new!r}")
    print(f"{len(mutants)} mutants, {len(alive)} alive, {seconds:.0f} s")
    return bool(alive)


if __name__ == "__main__":
    sys.exit(main())
