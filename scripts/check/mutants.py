"""Break the library in small ways, room by room: does some fast test of the room notice?

    python -m scripts.check.mutants [ROOM …]     default: kit and data

mutmut makes the changes and runs the tests, in a copy under `_build/mutants`. Changes that change
nothing, or nothing that anyone may rely on, stand in `tests/equivalent.toml` with the reason.
Exit code 1 if `kit` or `data` lets more than three in a hundred of the others live.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "_build" / "mutants"
EQUIVALENT = ROOT / "tests" / "equivalent.toml"
WANTED = {"kit": 0.97, "data": 0.97}
SETTINGS = """
[tool.mutmut]
source_paths = ["needle"]
only_mutate = ["needle/{room}/*.py"]
also_copy = ["utils", "experiments"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:randomly", "-m", "not slow", "-x"]
pytest_add_cli_args_test_selection = ["tests/{room}"]
"""


def copy(room: str) -> Path:
    """The library and the tests of a room where mutmut may change them; its cache is kept."""
    folder = BUILD / room
    ignored = shutil.ignore_patterns("__pycache__", "book", "site", "results")
    for part in ("needle", "utils", "experiments", "tests"):
        shutil.rmtree(folder / part, ignore_errors=True)
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(project + SETTINGS.format(room=room), encoding="utf-8")
    return folder


def survivors(folder: Path) -> tuple[list[str], int]:
    """The names of the mutants that live, and how many there were."""
    mutmut = [sys.executable, "-m", "mutmut"]
    subprocess.run([*mutmut, "run", "--max-children", "2"], cwd=folder, check=False)
    subprocess.run([*mutmut, "export-cicd-stats"], cwd=folder, check=True, capture_output=True)
    counts = json.loads((folder / "mutants" / "mutmut-cicd-stats.json").read_text())
    said = subprocess.run(
        [*mutmut, "results"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    lines = (line.strip().partition(": ") for line in said.splitlines() if ": " in line)
    return [name for name, _, what in lines if what in ("survived", "no tests")], counts["total"]


def main() -> int:
    known = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else {}
    failed = False
    for room in sys.argv[1:] or list(WANTED):
        alive, total = survivors(copy(room))
        equivalent = set(known.get(room, {}))
        living = [name for name in alive if name not in equivalent]
        total -= len(equivalent & set(alive))
        killed = 1 - len(living) / max(total, 1)
        print("\n".join(living))
        print(f"{room}: {total - len(living)} of {total} mutants noticed, {killed:.1%}")
        failed |= killed < WANTED.get(room, 0)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
