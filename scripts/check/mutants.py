"""Break the library in small ways, room by room: does a fast test or an example notice?

    python -m scripts.check.mutants [ROOM …] [--sample N] [--seed K] [--keep]

mutmut makes the changes in a copy under `_build/mutants`; `mutant_runner` runs the fast tests of
the room and its examples. Of `kit` and `data` (the default) every change is tried, of other
rooms a random sample of N = 200, and the rate has a standard error. Changes that change nothing, or
nothing that anyone may rely on, stand in `tests/equivalent.toml` by the line they make, with the
reason. `--keep` writes the rates to `benchmarks/mutants.json`, which the page on execution shows.
Exit code 1 if `kit` or `data` lets more than three in a hundred of the others live.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from scripts.check import mutant_runner

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "_build" / "mutants"
EQUIVALENT = ROOT / "tests" / "equivalent.toml"
RATES = ROOT / "benchmarks" / "mutants.json"
WHOLE = ("kit", "data")
WANTED = 0.97
SAMPLE = 200
SETTINGS = """
[tool.mutmut]
source_paths = ["needle"]
only_mutate = ["needle/{room}/*.py"]
also_copy = ["utils", "experiments", "benchmarks"]
"""
# mutmut multiplies every docstring by its mutants, so the examples are read from the sources
EXAMPLES = """
import ast, doctest, importlib, pathlib
import pytest

SOURCES = sorted(pathlib.Path({folder!r}).glob("*.py"))
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
KINDS = ast.FunctionDef, ast.ClassDef, ast.Module

def examples():
    for path in SOURCES:
        name = "needle.{room}" + "." * (path.stem != "__init__") + path.stem.replace("__init__", "")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, KINDS) and ">>>" in (ast.get_docstring(node) or ""):
                yield name, getattr(node, "name", "module"), ast.get_docstring(node)

FOUND = list(examples())

@pytest.mark.parametrize(
    ("module", "name", "text"), FOUND, ids=[module + "-" + name for module, name, _ in FOUND]
)
def test_example(module, name, text):
    names = dict(vars(importlib.import_module(module)))
    test = doctest.DocTestParser().get_doctest(text, names, name, module, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test)
    assert not runner.failures
"""
MAKE = """
import json, os, pathlib
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants, setup_source_paths
from mutmut.mutation.trampoline import set_mutant_under_test
set_mutant_under_test("mutant_generation")
os.makedirs("mutants")
copy_src_dir()
copy_also_copy_files()
setup_source_paths()
create_mutants(1)
found = [json.loads(file.read_text()) for file in pathlib.Path("mutants").rglob("*.meta")]
print("names:", *(name for file in found for name in file["exit_code_by_key"]))
"""
# what a mutant writes in place of what stood there
CHANGED = """
import json, sys
from mutmut.__main__ import find_mutant, get_diff_for_mutant
def lines(name):
    diff = get_diff_for_mutant(name, path=find_mutant(name).path).splitlines()
    return [line[1:].strip() for line in diff if line[:1] == "+" and line[:3] != "+++"]
print(json.dumps({name: " ".join(lines(name)) for name in sys.stdin.read().split()}))
"""


class Rate(NamedTuple):
    """Mutants of a room, how many were tried, how many of those are equivalent or live."""

    mutants: int
    tried: int
    equivalent: int
    living: int

    @property
    def killed(self) -> float:
        return 1 - self.living / max(1, self.tried - self.equivalent)

    @property
    def error(self) -> float:
        """Standard error of `killed`: zero where all were tried, not where none of some lived."""
        left = max(0.0, 1 - self.tried / self.mutants)
        share = (self.living + 0.5) / (self.tried + 1)
        return math.sqrt(share * (1 - share) * left / self.tried)


def copy(room: str) -> Path:
    """The library and the tests of a room, anew, where mutmut may change them."""
    folder = BUILD / room
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "book", "site", "results")
    for part in ("needle", "utils", "experiments", "tests", "benchmarks"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    text = EXAMPLES.format(folder=str(folder / "needle" / room), room=room)
    (folder / "tests" / room / "test_examples.py").write_text(text, encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(project + SETTINGS.format(room=room), encoding="utf-8")
    return folder


def made(folder: Path) -> list[str]:
    """Let mutmut write its mutants of the room, and name them."""
    said = subprocess.run(
        [sys.executable, "-c", MAKE], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    return sorted(said.rpartition("names:")[2].split())


def judged(folder: Path, room: str, names: list[str]) -> dict[str, str]:
    """What becomes of mutants: killed, survived, no tests, or the signal that ended them."""
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    log = folder / "run.log"
    with log.open("w", encoding="utf-8") as file:
        subprocess.run(
            [sys.executable, mutant_runner.__file__, f"tests/{room}"], cwd=folder / "mutants",
            check=False, stdout=file, stderr=file, text=True, input=" ".join(names),
            env=plain | {"PY_IGNORE_IMPORTMISMATCH": "1"},
        )  # fmt: skip
    return dict(mutant_runner.SAID.findall(log.read_text(encoding="utf-8")))


def tried(folder: Path, room: str, sample: int, seed: int) -> tuple[dict[str, str], int]:
    """What became of the mutants that were tried, and how many there are."""
    names = made(folder)
    few = sorted(random.Random(seed).sample(names, min(sample or len(names), len(names))))
    found = judged(folder, room, few)
    if len(found) < len(few):
        raise SystemExit(f"{room}: {len(few) - len(found)} not judged; see {folder / 'run.log'}")
    return found, len(names)


def changed(folder: Path, names: list[str]) -> dict[str, str]:
    """The line that each mutant writes."""
    said = subprocess.run(
        [sys.executable, "-c", CHANGED],
        cwd=folder, check=True, capture_output=True, text=True, input="\n".join(names),
    ).stdout  # fmt: skip
    lines: dict[str, str] = json.loads(said)
    return lines


def measure(room: str, sample: int, seed: int) -> Rate:
    """Try the mutants of a room, and print those that live."""
    folder = copy(room)
    found, total = tried(folder, room, sample, seed)
    alive = [name for name, what in found.items() if what in ("survived", "no tests")]
    known = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get(room, {})
    lines = changed(folder, alive)
    harmless = {line for group in known.values() for line in group}
    living = [name for name in alive if lines[name] not in harmless]
    for name in living:
        print(f"{name}: {lines[name]}")
    return Rate(total, len(found), len(alive) - len(living), len(living))


def keep(rates: dict[str, Rate]) -> None:
    kept = json.loads(RATES.read_text(encoding="utf-8")) if RATES.exists() else {}
    kept |= {room: rate._asdict() for room, rate in rates.items()}
    RATES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def table() -> str:
    """The rates that were kept, in Markdown; nothing where there are none."""
    if not RATES.exists():
        return ""
    lines = [
        "## Small changes",
        "",
        "Of small changes that mutmut made to a room (a sign, a constant, a condition, an "
        "argument left out), the share that a fast test of the room or an example noticed; those "
        "that change nothing are named in `tests/equivalent.toml` and do not count. Where not all "
        "were tried, they were drawn at random, and ± is one standard error.",
        "",
        "| room | changes | tried | of these equivalent | noticed |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for room, kept in json.loads(RATES.read_text(encoding="utf-8")).items():
        rate = Rate(**kept)
        off = f" ± {100 * rate.error:.1f}" if rate.error else ""
        count = f"{rate.mutants} | {rate.tried} | {rate.equivalent}"
        lines.append(f"| `{room}` | {count} | {100 * rate.killed:.1f}{off} % |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rooms", nargs="*", default=list(WHOLE))
    parser.add_argument("--sample", type=int, help="how many mutants of each room are tried")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="write the rates down")
    chosen = parser.parse_args()
    rates = {}
    for room in chosen.rooms:
        sample = (0 if room in WHOLE else SAMPLE) if chosen.sample is None else chosen.sample
        rate = rates[room] = measure(room, sample, chosen.seed)
        off = f" ± {rate.error:.1%}" if rate.error else ""
        print(
            f"{room}: {rate.tried} of {rate.mutants} mutants tried, {rate.equivalent} equivalent, "
            f"{rate.killed:.1%}{off} of the others noticed",
            flush=True,
        )
    if chosen.keep:
        keep(rates)
    return int(any(rates[room].killed < WANTED for room in WHOLE if room in rates))


if __name__ == "__main__":
    sys.exit(main())
