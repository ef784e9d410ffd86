"""What the fresh seeds of every week reach."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest

from scripts.check.false_alarms import PLACES


class Shared:
    """A plugin of pytest: what statistical tests use that is made for several tests at once."""

    def __init__(self) -> None:
        self.made: dict[str, Callable[[], object]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if item.get_closest_marker("false_alarm"):
                fixtures = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
                for name, (*_, last) in fixtures.items():
                    if last.baseid.startswith("tests/") and last.scope != "function":
                        self.made[f"{last.baseid}: {name}"] = last.func


def test_fresh_seeds_reach_whatever_a_statistical_test_draws(monkeypatch) -> None:
    """A fixture of a whole module is made before NEEDLE_SEED shifts the seeds of its test: it must
    not draw."""
    shared = Shared()
    with redirect_stdout(StringIO()):
        code = pytest.main(["--collect-only", *map(str, PLACES)], plugins=[shared])
    assert code == 0 and shared.made

    def refuse(*_: object) -> None:
        raise AssertionError("drawn before the seeds are shifted")

    monkeypatch.setattr(np.random, "default_rng", refuse)
    for make in shared.made.values():
        make()
