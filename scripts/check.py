"""Lint, types and the fast numerical tests; with names of modules, all tests of these instead.

A module `laws` is tested by `tests/utils/test_laws.py` and by the files that the list of mutants
names for it; one without such files by every file there that imports it, or else by those of the
modules that it is a part of.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def imported(text: str) -> set[str]:
    """The modules of utils that a source imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition("utils.")[2] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "utils":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("utils."):
            found.add(str(node.module).removeprefix("utils."))
    return found


def tests_of(name: str) -> list[str]:
    """The files that test a module, and the module itself if it has doctests."""
    module, folder = ROOT / "utils" / f"{name}.py", ROOT / "tests" / "utils"
    mutants = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    hints = [mutant["by"].split(" ")[0] for mutant in mutants.get(name, ()) if "by" in mutant]
    named = dict.fromkeys(folder / file for file in [f"test_{name}.py", *hints])
    files = [file for file in named if file.exists()]
    if not files and module.exists():
        every = sorted(folder.glob("test_*.py"))
        files = [file for file in every if name in imported(file.read_text(encoding="utf-8"))]
    if not files and module.exists():  # part of another module, whose tests are its own
        within = re.compile(rf"^from \.{name} import", re.M)
        users = [
            file.stem for file in (ROOT / "utils").glob("*.py") if within.search(file.read_text())
        ]
        files = [file for user in sorted(users) if (file := folder / f"test_{user}.py").exists()]
    if module.exists() and ">>> " in module.read_text(encoding="utf-8"):
        files.append(module)
    if not files:
        raise SystemExit(f"there is no module {name} in utils/ with tests or doctests")
    return [str(file.relative_to(ROOT)) for file in files]


def tests(names: list[str]) -> list[str]:
    """The arguments of pytest."""
    if not names:
        return ["-n", "2", "-m", "not slow", "tests/utils", "utils"]
    return list(dict.fromkeys(file for name in names for file in tests_of(name)))


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
