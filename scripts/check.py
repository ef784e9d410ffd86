"""Lint, types and the fast numerical tests; with names of modules, all tests of these instead."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def tests(names: list[str]) -> list[str]:
    """The arguments of pytest."""
    if not names:
        return ["-n", "2", "-m", "not slow", "tests/utils", "utils"]
    files = []
    for name in names:
        found = [f"tests/utils/test_{name}.py", f"utils/{name}.py"]
        found = [file for file in found if (ROOT / file).exists()]
        if not found:
            raise SystemExit(f"there is no module {name} in utils/ and no tests of it")
        files += found
    return files


def main() -> int:
    start = time.perf_counter()
    types = subprocess.Popen([BIN / "mypy"], cwd=ROOT)
    commands = [[BIN / "ruff", "check", "."], [BIN / "ruff", "format", "--check", "--quiet", "."]]
    commands.append([sys.executable, "-m", "pytest", *tests(sys.argv[1:])])
    failed = [subprocess.run(command, cwd=ROOT).returncode for command in commands]
    failed.append(types.wait())
    print(f"{'all is well' if not any(failed) else 'FAILED'}, {time.perf_counter() - start:.0f} s")
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
