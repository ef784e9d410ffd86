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

from scripts.run_notebooks import ROOT, THREADS, chapters

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
    later = [
        f"--ignore=tests/book/test_{name}.py"
        for name in ("contract", "site", "browser", "explorers", "live")
    ]
    return pytest("unit", "-n", "2", *later)


def notebooks() -> Count:
    """nbval: every chapter runs again and its outputs are compared with the stored ones."""
    paths = [str(path.relative_to(ROOT)) for path in chapters()]
    if not paths:
        print("there are no chapters")
        return Count(failed=1)
    options = [
        "-o",
        "addopts=",
        "-q",
        "--nbval",
        "-p",
        "scripts.nbval_history",
        "-n",
        "2",
        "--dist",
        "loadscope",
    ]
    return pytest("notebooks", *options, *paths)


def browser() -> Count:
    if SKIP_BROWSER:
        print("left out: SKIP_BROWSER is set")
        return Count(skipped=1)
    found = command("python", "-m", "scripts.browser")  # here, not in two workers at once
    return found + pytest("browser", "-n", "2", *BROWSER)


BROWSER = [f"tests/book/test_{name}.py" for name in ("browser", "explorers")]


def live() -> Count:
    """Python in a browser; LIVE=0 leaves it out of the pages and of the tests."""
    if SKIP_BROWSER:
        print("left out: SKIP_BROWSER is set")
        return Count(skipped=1)
    return pytest("live", "tests/book/test_live.py")


WORKFLOWS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(".github/workflows/*.yml"))
STEPS: dict[str, Callable[[], Count]] = {
    "lint": lambda: command("ruff", "check", "."),
    "format": lambda: command("ruff", "format", "--check", "."),
    "types": lambda: command("mypy"),
    "workflow": lambda: (
        command("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
        + command("zizmor", "--offline", "--quiet", "--no-progress", *WORKFLOWS)
    ),
    "unit tests": unit,
    "contract": lambda: pytest("contract", "tests/book/test_contract.py"),
    "assets": lambda: (
        command("python", "-m", "scripts.browser_assets")
        + command("python", "-m", "scripts.live_assets")
    ),
    "book": lambda: command("python", "-m", "scripts.build_book"),
    "notebooks": notebooks,
    "site": lambda: pytest("site", "tests/book/test_site.py"),
    "browser": browser,
    "live": live,
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
        print(f"{name:<12} {seconds:6.1f} s  {count}")
    if SKIP_BROWSER:
        print("browser tests were left out: SKIP_BROWSER is set")
    total = sum((count for count, _ in results.values()), Count())
    print(f"\n{total}")
    return bool(total.failed)


if __name__ == "__main__":
    sys.exit(main())
