"""Faults on purpose: kills, damaged files, registries that fail, full disks. `make faults`.

    python -m scripts.check.faults [beginnings of groups]

Each group of tests is counted, and the counts are kept in `benchmarks/faults.json` for the page of
the execution status. A test that tries several faults says how many (`record_property("tried")`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from scripts.book import process
from scripts.book.run_notebooks import ROOT

COUNTS = ROOT / "benchmarks" / "faults.json"
STORE, EXECUTION = "tests/trials/test_store.py", "tests/trials/test_execution.py"
GROUPS = {  # what, and the arguments of pytest
    "caches: damaged files, foreign contents, a full disk": [
        STORE, "-k", "damaged or elsewhere or read_back or full_disk",
    ],
    "sweeps: killed and resumed, two on one cache": [STORE, "-k", "killed or two_processes"],
    "workers that die, executors that go away, interrupts": [
        EXECUTION, "-k", "lost or kills or breaks or goes_away or interrupt or abroad or version",
    ],
    "Dask: killed workers and schedulers": ["tests/cluster"],
    "registries: gone, cut short, other bytes, errors, no home": ["tests/faults/test_fetching.py"],
    "builds: two at once, ended by signals, no room, read-only": ["tests/faults/test_machine.py"],
    "commands by habit": ["tests/book/test_conventions.py"],
}  # fmt: skip


class Count(NamedTuple):
    """One row of the table."""

    what: str
    tried: int
    survived: int
    lost: int


def counted(what: str, report: Path) -> Count:
    """A report of pytest as a row; what was skipped was not tried."""
    tried = lost = 0
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            continue
        told = [p.get("value") for p in case.iter("property") if p.get("name") == "tried"]
        number = int(told[0]) if told and told[0] else 1
        tried += number
        if case.find("failure") is not None or case.find("error") is not None:
            lost += 1
    return Count(what, tried, tried - lost, lost)


def table() -> str:
    """The counts of the last run, in Markdown; nothing where there was none."""
    if not COUNTS.exists():
        return ""
    kept = json.loads(COUNTS.read_text(encoding="utf-8"))
    rows = [Count(*row) for row in kept["rows"]]
    lines = [
        "## Faults on purpose",
        "",
        f"What `make faults` broke on {kept['when']}, and what survived it: the same numbers to "
        "the last bit, or a line that says what to do.",
        "",
        "| fault | tried | survived | lost |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {row.what} | {row.tried} | {row.survived} | {row.lost} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    process.end_together()
    reports = ROOT / "_build" / "reports"
    before = json.loads(COUNTS.read_text(encoding="utf-8"))["rows"] if COUNTS.exists() else []
    rows = {row[0]: Count(*row) for row in before if row[0] in GROUPS}
    for number, (what, words) in enumerate(GROUPS.items()):
        if not what.startswith(tuple(sys.argv[1:]) or ""):
            continue
        report = reports / f"faults-{number}.xml"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *words]
        subprocess.run(command, cwd=ROOT)
        rows[what] = counted(what, report) if report.exists() else Count(what, 1, 0, 1)
    ordered = [rows[what] for what in GROUPS if what in rows]
    kept = {"when": time.strftime("%Y-%m-%d", time.gmtime()), "rows": ordered}
    COUNTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table())
    return int(any(row.lost for row in ordered))


if __name__ == "__main__":
    sys.exit(main())
