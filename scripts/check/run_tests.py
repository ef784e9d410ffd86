"""Run every check of the project, each even when an earlier one failed, and sum them up.

The last line reads 'N passed, N failed, N skipped'. SKIP_BROWSER=1 leaves the browser tests out and
says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from scripts.book.executed import executed_copies, keep
from scripts.book.run_notebooks import ROOT, THREADS, chapters

REPORTS = ROOT / "_build" / "reports"
BIN = Path(sys.executable).parent
SKIP_BROWSER = os.environ.get("SKIP_BROWSER", "") not in ("", "0")


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def command(*words: str) -> Count:
    """A command that passes or fails as a whole."""
    failed = subprocess.run([str(BIN / words[0]), *words[1:]], cwd=ROOT).returncode != 0
    return Count(failed=1) if failed else Count(passed=1)


def together(*commands: tuple[str, ...]) -> Count:
    """Commands side by side, what each says kept apart; each passes or fails as a whole."""
    running = [
        subprocess.Popen(
            [str(BIN / words[0]), *words[1:]],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for words in commands
    ]
    total = Count()
    for words, process in zip(commands, running, strict=True):
        said, _ = process.communicate()
        failed = process.returncode != 0
        print(f"{' '.join(words)}: {'FAILED' if failed else 'passed'}\n{said.rstrip()}", flush=True)
        total += Count(failed=1) if failed else Count(passed=1)
    return total


def pytest(name: str, *arguments: str) -> Count:
    """A run of pytest, counted from its own report; a run that breaks off counts as a failure."""
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    words = ["python", "-m", "pytest", f"--junitxml={report}", *arguments]
    code = subprocess.run([str(BIN / words[0]), *words[1:]], cwd=ROOT).returncode
    if not report.exists():
        return Count(failed=1)
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    total = Count()
    for suite in suites:
        tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        total += Count(max(0, tests - failed - skipped), failed, skipped)
    if code not in (0, 1) and not total.failed:
        total += Count(failed=1)
    return total


def unit() -> Count:
    """All tests that need no built site; the contract of the notebooks comes by itself."""
    later = ["--ignore=tests/book/test_contract.py", "--ignore=tests/site"]
    return pytest("unit", "-n", "2", "--dist", "worksteal", *later)


def notebooks() -> Count:
    """nbval: every chapter runs again and its outputs are compared with the stored ones.

    A chapter whose outputs are all confirmed has been executed: the site is built from it, and no
    chapter is executed twice.
    """
    paths = chapters()
    if not paths:
        print("there are no chapters")
        return Count(failed=1)
    options = ["-o", "addopts=", "-q", "--nbval"]
    options += ["-n", "2", "--dist", "loadscope"]
    count = pytest("notebooks", *options, *(str(path.relative_to(ROOT)) for path in paths))
    confirm(paths)
    return count


def confirm(paths: list[Path]) -> None:
    """Keep as executed the chapters of which nbval has run and confirmed every cell."""
    seconds: dict[str, list[float]] = {}
    broken = set()
    report = REPORTS / "notebooks.xml"
    for case in ElementTree.parse(report).getroot().iter("testcase") if report.exists() else ():
        name = case.get("classname", "").removeprefix("chapters.").removesuffix(".ipynb")
        seconds.setdefault(name, []).append(round(float(case.get("time", 0)), 2))
        if len(case):  # a failure, an error or a skip
            broken.add(name)
    for path, copy in executed_copies(paths).items():
        if path.stem in seconds and path.stem not in broken:
            each = seconds[path.stem]
            keep(copy, path.read_text(encoding="utf-8"), sum(each), each)


WITHOUT_BROWSER = "tests/site/test_built.py"


def browser() -> Count:
    """Pages in a browser, and Python in it; LIVE=0 leaves the latter out of pages and tests."""
    if SKIP_BROWSER:
        print("left out: SKIP_BROWSER is set")
        return Count(skipped=1)
    found = command("python", "-m", "scripts.check.browser")  # here, not in two workers at once
    side_by_side = ["-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder"]
    others = [f"--ignore={WITHOUT_BROWSER}", "tests/site"]
    return found + pytest("browser", *side_by_side, *others)


WORKFLOWS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(".github/workflows/*.yml"))
STEPS: dict[str, Callable[[], Count]] = {
    "style and data": lambda: together(
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("mypy",),
        ("lint-imports", "--no-logo"),
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS),
        ("zizmor", "--offline", "--quiet", "--no-progress", *WORKFLOWS),
        ("python", "-m", "scripts.book.browser_assets"),
        ("python", "-m", "scripts.book.live_assets"),
        ("python", "-m", "scripts.run.real_bags"),
    ),
    "unit tests": unit,
    "contract": lambda: pytest("contract", "tests/book/test_contract.py"),
    "notebooks": notebooks,
    "book": lambda: command("python", "-m", "scripts.book.build_book"),
    "site": lambda: pytest("site", "-n", "2", WITHOUT_BROWSER),
    "browser": browser,
}


def main() -> int:
    for name in THREADS:
        os.environ[name] = "1"
    REPORTS.mkdir(parents=True, exist_ok=True)
    results: dict[str, tuple[Count, float]] = {}
    for name, step in STEPS.items():
        print(f"\n== {name}", flush=True)
        start = time.perf_counter()
        count = step()
        results[name] = count, time.perf_counter() - start
    print("\n== summary")
    for name, (count, seconds) in results.items():
        print(f"{name:<14} {seconds:6.1f} s  {count}")
    if SKIP_BROWSER:
        print("browser tests were left out: SKIP_BROWSER is set")
    total = sum((count for count, _ in results.values()), Count())
    print(f"\n{total}")
    return bool(total.failed)


if __name__ == "__main__":
    sys.exit(main())
