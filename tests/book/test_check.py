"""What runs the unit tests: `make check`, and the fresh seeds of every week."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest

from scripts import check
from scripts.run_notebooks import ROOT


def test_every_module_is_checked_by_tests_and_not_by_doctests_alone() -> None:
    assert check.tests_of("laws") == ["tests/utils/test_laws.py", "utils/laws.py"]
    assert "tests/utils/test_beyond.py" in check.tests_of("transfer")
    assert "tests/utils/test_steps.py" in check.tests_of("alignment")  # where mutants send it
    assert check.tests_of("agreement_table")[0] == "tests/utils/test_agreement.py"
    first = {path.stem: check.tests_of(path.stem)[0] for path in (ROOT / "utils").glob("[!_]*.py")}
    without = {name for name, file in first.items() if not file.startswith("tests/")}
    assert without == {"explore_numbers"}  # the tests of the site hold it against its twin
    with pytest.raises(SystemExit, match="no module lawz"):
        check.tests(["lawz"])


def test_imports_are_found_in_every_form() -> None:
    text = "import utils.a\nfrom utils.b import c\nfrom utils import d, e\nfrom other import f\n"
    assert check.imported(text) >= {"a", "b", "d", "e"}
    assert not check.imported(text) & {"c", "f"}


class Shared:
    """A plugin of pytest: what statistical tests use that is made for several tests at once."""

    def __init__(self) -> None:
        self.made: dict[str, Callable[[], object]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if item.get_closest_marker("false_alarm"):
                fixtures = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
                for name, (*_, last) in fixtures.items():
                    if last.baseid.startswith("tests/utils") and last.scope != "function":
                        self.made[f"{last.baseid}: {name}"] = last.func


def test_fresh_seeds_reach_whatever_a_statistical_test_draws(monkeypatch) -> None:
    """A fixture of a whole module is made before NEEDLE_SEED shifts the seeds of its test: it must
    not draw."""
    shared = Shared()
    with redirect_stdout(StringIO()):
        code = pytest.main(["--collect-only", str(ROOT / "tests" / "utils")], plugins=[shared])
    assert code == 0 and shared.made

    def refuse(*_: object) -> None:
        raise AssertionError("drawn before the seeds are shifted")

    monkeypatch.setattr(np.random, "default_rng", refuse)
    for make in shared.made.values():
        make()
