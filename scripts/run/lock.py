"""Write the lock files: every package an installation takes, with the hashes it may have.

    make lock

requirements.txt says what the book wants, the dependency groups of pyproject.toml what tests, npm,
uv and JupyterLab take; locks/ holds what that resolves to on any system and Python 3.11 or later.
Versions already locked stay where they still fit; raise a pin, or delete a line of a lock, to move
on. No address of a registry is recorded.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from scripts.book.run_notebooks import ROOT

LOCKS = {
    "book": ("book",),
    "test": ("book", "test"),
    "node": ("node",),
    "uv": ("uv",),
    "lab": ("lab",),
}
OPTIONS = [
    "--quiet", "--universal", "--generate-hashes", "--no-header", "--no-annotate",
    "--no-emit-index-url", "--python-version", "3.11",
]  # fmt: skip


def wanted(*names: str) -> str:
    """The requirements of some groups; those of the book stand in requirements.txt."""
    book = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = groups["dependency-groups"] | {"book": [line for line in book if line[:1].isalnum()]}
    return "\n".join(line for name in names for line in groups[name]) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tool = Path(folder) / "tool"
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--target", str(tool)]
        pip += wanted("uv").split()
        subprocess.run(pip, check=True)
        for lock, names in LOCKS.items():
            source, target = Path(folder) / f"{lock}.in", Path(folder) / f"{lock}.txt"
            source.write_text(wanted(*names))
            path = ROOT / "locks" / f"{lock}.txt"
            if path.exists():
                shutil.copy(path, target)
            command = [str(tool / "bin" / "uv"), "pip", "compile", *OPTIONS]
            if lock in ("test", "lab"):  # these see the versions that the book uses
                command += ["--constraint", str(ROOT / "locks" / "book.txt")]
            subprocess.run([*command, "-o", str(target), str(source)], check=True, cwd=folder)
            path.parent.mkdir(exist_ok=True)
            shutil.copy(target, path)
            print(f"locks/{lock}.txt: {path.read_text().count('==')} lines")


if __name__ == "__main__":
    main()
