"""Execute every chapter with one BLAS thread and with as many as there are, and compare.

    python -m scripts.check.threads [chapters]     `make threads`

Who opens a chapter in a plain Jupyter has set no variable. Fails where that takes more than 1.5
times as long as under `make` (chapters below five seconds are reported only).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scripts.book import process
from scripts.book.run_notebooks import ROOT, THREADS, chapters

MOST, BRIEF = 1.5, 5.0
TIME = (
    "import resource, sys; from pathlib import Path;"
    "from scripts.book.run_notebooks import execute;"
    "execute(Path(sys.argv[1])); used = resource.getrusage(resource.RUSAGE_CHILDREN);"
    "print(used.ru_utime + used.ru_stime)"
)


def seconds(path: Path, threads: dict[str, str]) -> float:
    """Seconds of computing, waiting threads included, of a chapter in a fresh kernel."""
    plain = {name: value for name, value in os.environ.items() if name not in THREADS}
    words = [sys.executable, "-c", TIME, str(path)]
    done = subprocess.run(
        words, cwd=ROOT, env=plain | threads, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def main() -> int:
    process.end_together()
    slow = []
    print("chapter                      one thread   as it comes   ratio", flush=True)
    for path in [Path(word).resolve() for word in sys.argv[1:]] or chapters():
        one, free = seconds(path, dict.fromkeys(THREADS, "1")), seconds(path, {})
        print(f"{path.stem:<28} {one:8.1f} s {free:11.1f} s {free / one:7.2f}", flush=True)
        if free > MOST * max(one, BRIEF):
            slow.append(path.stem)
    if slow:
        print(f"slower without a variable of the environment: {', '.join(slow)}")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
