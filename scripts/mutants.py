"""Break the code on purpose, one small change at a time: does some unit test notice?

The changes are listed in `tests/mutants.toml`, by module. Each is applied to a copy of the project;
there the tests that the list names (`by`), then the fast and last the slow tests of the module run
until one fails. Writes `benchmarks/MUTANTS.md`; fails if a mutant survives. Names of modules
restrict the run, and then nothing is written.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST, REPORT = ROOT / "tests" / "mutants.toml", ROOT / "benchmarks" / "MUTANTS.md"
COPIES, LIMIT = 2, 900
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


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


def copy_project(folder: Path) -> None:
    for name in ("utils", "tests"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "book")
        )
    shutil.copy(ROOT / "pyproject.toml", folder)


def killer(mutant: Mutant, folder: Path) -> str | None:
    """The first test that fails under the mutant, or None."""
    path = folder / "utils" / f"{mutant.module}.py"
    path.write_text(mutant.source(), encoding="utf-8")
    environment = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": str(folder)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        for words in mutant.attempts():
            command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *words]
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT
            )
            if done.returncode not in (0, 5):
                found = re.findall(r"^(?:FAILED|ERROR) \S*?([^/\s]*?)(?: - |$)", done.stdout, re.M)
                return found[0] if found else "the import"
        return None
    except subprocess.TimeoutExpired:
        return f"no end within {LIMIT} s"
    finally:
        shutil.copy(ROOT / "utils" / f"{mutant.module}.py", path)


def run(mutants: list[Mutant]) -> list[tuple[str | None, float]]:
    """The killer of each mutant and the seconds it took."""
    folders: queue.SimpleQueue[Path] = queue.SimpleQueue()

    def judge(mutant: Mutant) -> tuple[str | None, float]:
        folder, start = folders.get(), time.perf_counter()
        found = killer(mutant, folder)
        folders.put(folder)
        seconds = time.perf_counter() - start
        print(
            f"{seconds:5.1f} s  {mutant.module}: {mutant.new!r}: {found or 'SURVIVES'}", flush=True
        )
        return found, seconds

    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(COPIES) as workers:
        for k in range(COPIES):
            folder = Path(place) / str(k)
            folder.mkdir()
            copy_project(folder)
            folders.put(folder)
        return list(workers.map(judge, mutants))


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
