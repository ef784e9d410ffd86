"""What every test starts from: declared rates of false alarm, and seeds that can be refreshed.

A statistical test declares with `@pytest.mark.false_alarm(rate)` how often it would refuse correct
code if its seed were drawn at random; `python -m scripts.check.false_alarms` adds the rates up.
Seeds are fixed, so a pass is repeatable. NEEDLE_SEED=k shifts the seeds of just these tests by k
and lets hypothesis explore anew.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

try:
    from hypothesis import settings
except ImportError:
    pytest.exit("the tests need more than the book: `make test` installs it", returncode=4)

SHIFT = int(os.environ.get("NEEDLE_SEED", "0") or 0)

settings.register_profile("book", deadline=None, derandomize=not SHIFT, max_examples=50)
settings.load_profile("book")


def pytest_report_header() -> str:
    return f"NEEDLE_SEED = {SHIFT}: seeds of statistical tests are " + ("new" if SHIFT else "fixed")


@pytest.fixture(autouse=True)
def _fresh_seeds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NEEDLE_SEED, every seed of a test that declares a rate becomes another one."""
    if not (SHIFT and request.node.get_closest_marker("false_alarm")):
        return
    plain = np.random.default_rng

    def shifted(seed: Any = None) -> np.random.Generator:
        if isinstance(seed, int | np.integer | list | tuple):
            seed = [*np.atleast_1d(seed), SHIFT]
        elif isinstance(seed, np.random.SeedSequence):  # of a sweep, in this process
            seed = np.random.SeedSequence(
                [*np.atleast_1d(seed.entropy), SHIFT], spawn_key=seed.spawn_key
            )
        return plain(seed)

    monkeypatch.setattr(np.random, "default_rng", shifted)


def pytest_collection_finish(session: pytest.Session) -> None:
    """With --dist loadgroup, tests that share a page or a file stay on one worker.

    pytest-xdist tells groups by names of tests, which pytest 9.2 no longer lets it alter (its issue
    1386): it would scatter them without a word, and each worker open every page.
    """
    if getattr(session.config.option, "loadgroup", False):
        grouped = (item for item in session.items if item.get_closest_marker("xdist_group"))
        for item in grouped:
            if "@" not in item.nodeid:
                raise pytest.UsageError(f"--dist loadgroup does not group {item.nodeid}")
