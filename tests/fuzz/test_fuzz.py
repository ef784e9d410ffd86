"""Every public function that takes numbers, at the ends of what is allowed and beyond them.

An answer keeps its invariant (`cases`), a refusal names argument, value and what is allowed, a
solver that stops short says so with a ConvergenceError, and nothing takes longer than its budget.
The short form runs with the other tests; `FUZZ=150` tries 150 examples of each slow case and 1500
of each other one, some 20,000, and `NEEDLE_SEED` others.
"""

from __future__ import annotations

import math
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import needle
from needle import ConvergenceError

from .case import Case
from .cases import CASES, ELSEWHERE

pytestmark = pytest.mark.slow
LONG = int(os.environ.get("FUZZ", "0") or 0)
BUDGET = 30.0  # CPU seconds of one call
REFUSAL = re.compile(r"^[A-Za-z_]\w*\S* .*(is|are) not allowed", re.S)
NAN_IS_MEANT = {"threshold", "lower", "information", "algorithm"}


class TooLong(Exception):
    """A call used up its budget."""


@contextmanager
def budget() -> Iterator[None]:
    """Ends what computes for longer than BUDGET, however busy the machine is."""

    def ring(*_: Any) -> None:
        raise TooLong(f"no answer within {BUDGET} s of computing")

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, BUDGET)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def numbers(found: Any, name: str = "value") -> Iterator[tuple[str, float]]:
    """All numbers of a record, a sequence or an array, by the field that holds them."""
    if is_dataclass(found):
        for field in fields(found):
            yield from numbers(getattr(found, field.name), field.name)
    elif isinstance(found, dict):
        for key, part in found.items():
            yield from numbers(part, str(key))
    elif hasattr(found, "_asdict"):
        yield from numbers(found._asdict(), name)
    elif isinstance(found, list | tuple):
        for part in found:
            yield from numbers(part, name)
    elif isinstance(found, np.ndarray) and found.dtype.kind == "f":
        yield from ((name, float(x)) for x in found.ravel())
    elif isinstance(found, float):
        yield name, found


def attempt(case: Case, arguments: dict[str, Any]) -> Any:
    """The answer, or None where it was refused, or stopped short, in so many words."""
    with budget(), np.errstate(all="ignore"):
        try:
            return case(**arguments)
        except (ConvergenceError, ValueError) as said:
            if isinstance(said, ValueError) and not REFUSAL.match(str(said)):
                raise
    return None


@contextmanager
def second_calls() -> Iterator[None]:
    """An invariant may ask once more, at a place where there is no answer."""
    try:
        yield
    except ConvergenceError:
        pass
    except ValueError as said:
        if not REFUSAL.match(str(said)):
            raise


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers_keep_their_invariants_at_every_size(case, record_property):
    tries = LONG * (1 if case.slow else 10) or (3 if case.slow else 25)
    count: Counter[str] = Counter()

    @settings(max_examples=tries, suppress_health_check=list(HealthCheck))
    @given(st.fixed_dictionaries({name: domain.good for name, domain in case.domains.items()}))
    def explore(arguments):
        found = attempt(case, arguments)
        count["tried"] += 1
        count["refused"] += found is None
        if found is not None:
            wrong = [n for n, x in numbers(found) if math.isnan(x) and n not in NAN_IS_MEANT]
            assert not wrong, f"nan in {wrong}"
            with budget(), np.errstate(all="ignore"), second_calls():
                case.keeps(arguments, found)

    explore()
    for name in ("tried", "refused"):
        record_property(name, count[name])
    assert count["refused"] <= count["tried"] / 2, "most of what is allowed gets an answer"


@cache
def plain(case: Case) -> dict[str, Any]:
    """One set of arguments in the middle of their domains."""
    found: dict[str, Any] = {}

    @settings(max_examples=1, database=None, suppress_health_check=list(HealthCheck))
    @given(st.fixed_dictionaries({name: domain.good for name, domain in case.domains.items()}))
    def first(arguments):
        found.update(arguments)

    first()
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_lies_outside_is_refused_by_name_value_and_range(case):
    for name, domain in case.domains.items():
        refusal = re.compile(rf"{name}\b.*(is|are) not allowed: .*{name}", re.S)
        for bad in domain.bad:
            try:
                with budget():
                    found = case(**{**plain(case), name: bad})
            except ValueError as said:
                if refusal.match(str(said)):
                    continue
                raise
            pytest.fail(f"{name} = {bad!r} was taken, and gave {found!r}")


FORMS = [np.float64, np.float32, Fraction, np.float16]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_equal_numbers_give_equal_answers(case):
    arguments = plain(case)
    expected = attempt(case, arguments)
    for name, value in arguments.items():
        if not isinstance(value, float):
            continue
        for form in FORMS:
            if float(form(value)) == value:
                other = attempt(case, {**arguments, name: form(value)})
                assert other is None or list(numbers(other)) == list(numbers(expected)), name


def test_every_public_function_of_numbers_has_a_case():
    told = {case.name for case in CASES} | set(ELSEWHERE)
    assert {name for name in dir(needle) if not name.startswith("_")} - told == set()
