"""Constants a few per cent off, one at a time: does some test notice?

    python -m scripts.check.physics [ROOM …]     default: all of `tests/physics.toml`

Generic mutants (`mutmut`) negate conditions and drop arguments; none makes a variance five per cent
too large, which is how mathematics goes wrong. Exit code 1 if a change is noticed by nothing.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "physics.toml"


def changes(rooms: list[str]) -> Iterator[dict[str, str]]:
    """What to change, in some rooms or in all."""
    for change in tomllib.loads(LIST.read_text(encoding="utf-8"))["change"]:
        if not rooms or change["file"].split("/")[1] in rooms:
            yield change


def changed(change: dict[str, str]) -> str:
    """The source with its change; SystemExit unless it applies exactly once."""
    text = (ROOT / change["file"]).read_text(encoding="utf-8")
    if text.count(change["old"]) != 1:
        times = text.count(change["old"])
        raise SystemExit(f"{change['file']}: {change['old']!r} occurs {times} times, not once")
    return text.replace(change["old"], change["new"])


def noticed(change: dict[str, str]) -> bool:
    """Whether the tests named fail in a copy of the project."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for part in ("needle", "utils", "tests", "experiments"):
            ignored = shutil.ignore_patterns("__pycache__", "book", "site")
            shutil.copytree(ROOT / part, folder / part, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", folder)
        (folder / change["file"]).write_text(changed(change), encoding="utf-8")
        words = ["-x", "-q", "-p", "no:cacheprovider", *shlex.split(change["by"])]
        environment = os.environ | {"PYTHONPATH": place, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", *words]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{shlex.join(words)}: pytest ends with {done.returncode}\n{done.stdout}")
    return done.returncode == 1


def main() -> int:
    wanted = list(changes(sys.argv[1:]))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(noticed, wanted))
    alive = [change for change, seen in zip(wanted, found, strict=True) if not seen]
    for change in alive:
        print(f"not noticed: {change['file']}: {change['old']!r} -> {change['new']!r}")
    print(f"{len(wanted)} constants changed, {len(wanted) - len(alive)} noticed")
    return bool(alive)


if __name__ == "__main__":
    sys.exit(main())
