"""Add up the declared rates of false alarm: of the unit suite and of the book.

The rate of a test is that of `@pytest.mark.false_alarm`, that of a claim the one `agree` has stored
in its chapter. By the union bound the sums bound the probability that a run with fresh seeds fails
although everything is right.
"""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO

import pytest

from scripts.book.run_notebooks import ROOT, chapters
from utils.agreement_table import MIME

ASIDE = ("book", "site", "cluster", "conftest.py", "__pycache__")
PLACES = [
    path
    for path in sorted((ROOT / "tests").iterdir())
    if path.name not in ASIDE and path.suffix != ".toml"
]


class Rates:
    """A plugin of pytest that keeps the declared rate of every collected case."""

    def __init__(self) -> None:
        self.found: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if marker := item.get_closest_marker("false_alarm"):
                self.found[item.nodeid] = marker.args[0]


def of_tests() -> dict[str, float]:
    """The declared rate of every case of a statistical unit test."""
    rates = Rates()
    with redirect_stdout(StringIO()):
        code = pytest.main(["--collect-only", *map(str, PLACES)], plugins=[rates])
    if code:
        raise SystemExit(f"the tests could not be collected: pytest ended with {code}")
    return rates.found


def of_book() -> dict[str, float]:
    """The rate of every claim stored in a chapter."""
    return {
        output["data"][MIME]["claim"]: output["data"][MIME]["false_alarm"]
        for path in chapters()
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", [])
        if MIME in output.get("data", {})
    }


def main() -> None:
    for name, rates in ("cases of unit tests", of_tests()), ("claims of the book", of_book()):
        print(f"{len(rates)} {name} declare a false-alarm rate of {sum(rates.values()):.1e} in all")


if __name__ == "__main__":
    main()
