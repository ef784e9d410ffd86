"""Measure our code beside its alternatives and write the report.

    python -m benchmarks              every module
    python -m benchmarks alignment    only benchmarks/bench_alignment.py

Each `bench_<module>.py` has a function `run()` that returns rows of (what, ours, other, ratio,
required): both times come from one run on one machine, so that only their ratio is claimed. The
report keeps the rows of modules that were not measured this time, each with its own date.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
REPORT, RESULTS = FOLDER / "REPORT.md", FOLDER / "results.json"
COLUMNS = ("what", "ours", "other", "ratio", "required")
PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")


def machine() -> str:
    """The processor, as its maker names it, and the number of cores."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        name = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), name)
    return f"{name}, {os.cpu_count()} cores, {platform.system()}"


def measure(module: str) -> dict[str, Any]:
    """Run one module's benchmarks."""
    rows = import_module(f"benchmarks.bench_{module}").run()
    return {
        "rows": [{column: row.get(column, "") for column in COLUMNS} for row in rows],
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine(),
        "versions": f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in PACKAGES),
    }


def shown(value: object) -> str:
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if value else "–"


def met(row: Mapping[str, Any]) -> bool:
    """Whether the measured ratio reaches the required one, where both are numbers."""
    ratio, required = row["ratio"], row["required"]
    return not all(isinstance(x, (int, float)) for x in (ratio, required)) or ratio >= required


def report(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The results as a page of Markdown."""
    lines = [
        "# Benchmarks",
        "",
        "Both columns of times were measured side by side in one run, in seconds unless said; the",
        "ratio is other / ours, and `required` is what is promised. Written by `make bench`.",
    ]
    for module, result in sorted(results.items()):
        lines += ["", f"## {module}", "", f"{result['date']}; {result['machine']}; "]
        lines[-1] += f"{result['versions']}."
        lines += ["", "| " + " | ".join(COLUMNS) + " |", "| --- | ---: | ---: | ---: | ---: |"]
        for row in result["rows"]:
            lines.append("| " + " | ".join(shown(row[column]) for column in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    known = sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))
    wanted = sys.argv[1:] or known
    if unknown := set(wanted) - set(known):
        print(f"no benchmark of {', '.join(unknown)}; there are: {', '.join(known)}")
        return 2
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = {module: result for module, result in results.items() if module in known}
    missed = []
    for module in wanted:
        print(f"== {module}", flush=True)
        results[module] = measure(module)
        for row in results[module]["rows"]:
            print("  ".join(f"{column} {shown(row[column])}" for column in COLUMNS), flush=True)
            if not met(row):
                missed.append(f"{module}: {row['what']}")
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    REPORT.write_text(report(results))
    print(f"written to {REPORT.relative_to(FOLDER.parent)}")
    for what in missed:
        print(f"below the required ratio: {what}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
