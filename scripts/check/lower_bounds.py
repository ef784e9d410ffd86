"""Run the tests of needle on the oldest versions that pyproject.toml allows, in .venv-lower.

make lower-bounds    or on the newest that there are: make upper-bounds
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from scripts.book.api_pages import ROOMS
from scripts.book.run_notebooks import ROOT
from scripts.run.lock import wanted

FOLDER = ROOT / ".venv-lower"
TOOLS = ("pytest", "pytest-xdist", "hypothesis")


def oldest() -> list[str]:
    """The lower bound of every dependency of the package and of its notebooks, as a pin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["figures"] + extras["bags"] + extras["book"]
    wanted = [line for line in wanted if not line.startswith(project["name"])]
    bounds = [re.fullmatch(r"([\w-]+)>=([\d.]+)", line) for line in wanted]
    if not all(bounds):
        raise SystemExit(f"every dependency needs one lower bound, name>=version: {wanted}")
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


def tools() -> list[str]:
    """The pinned tools of the tests."""
    text = wanted("book", "test")
    return re.findall(rf"^(?:{'|'.join(TOOLS)})==\S+$", text, re.M)


def main() -> int:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
    python = str(Path(FOLDER, "bin", "python"))
    newest = "newest" in sys.argv[1:]
    found = [pin.partition("==")[0] for pin in oldest()] if newest else oldest()
    pins = [*found, *tools()]
    print("installing", *pins, flush=True)
    subprocess.run([python, "-m", "pip", "install", "-qq", ".", *pins], check=True, cwd=ROOT)
    subprocess.run([python, "-c", "import needle.readout, needle.trials"], check=True)
    report = f"--junitxml={ROOT / '_build' / 'reports' / 'lower-bounds.xml'}"
    run = [
        python,
        "-m",
        "pytest",
        "-n",
        "2",
        report,
        *(f"tests/{room}" for room in ROOMS),
        "needle",
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(run, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
