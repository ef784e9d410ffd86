"""The page "From bags to a decision": its lines run, and print what stands below them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "site" / "from_bags.md"


def block(kind: str) -> str:
    [found] = re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return found


def test_it_is_about_twenty_lines() -> None:
    assert len([line for line in block("python").splitlines() if line]) <= 20


@pytest.mark.slow
def test_the_lines_print_what_the_page_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block("python")], cwd=tmp_path, capture_output=True, text=True,
        check=True, env={"PYTHONPATH": str(PAGE.parents[1]), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.stdout == block("text")
    assert (tmp_path / "model.npz").stat().st_size < 5000


def test_the_commands_are_those_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    from needle.__main__ import parser

    for line in block("bash").splitlines():
        parser().parse_args(line.split()[1:])
