"""The desk: checks by name, what they ask, their hints, and the one call that readers make."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .judging import Refused, allowing
from .places import PREFIX, label
from .reply import Reply

Judge = Callable[[Any], Reply]
SECONDS = 20.0
_NOTHING = object()


@dataclass(frozen=True)
class Exercise:
    """A check: what it asks for, three hints, and for proofs the points of a self-check."""

    name: str
    asks: str
    hints: tuple[str, str, str]
    proof: tuple[str, ...] = field(default=())
    judge: Judge | None = None


class Sheet:
    """The exercises of a file, filled by its decorators.

    >>> sheet = Sheet("model")
    >>> @sheet.exercise("two", "the number two", hints=("", "", ""))
    ... def two(answer):
    ...     return Reply(answer == 2, "")
    >>> list(sheet.exercises)
    ['ch1-two']
    """

    def __init__(self, file: str) -> None:
        self.file, self.exercises = file, dict[str, Exercise]()

    def add(
        self,
        slug: str,
        asks: str,
        *,
        hints: tuple[str, str, str],
        proof: tuple[str, ...] = (),
        judge: Judge | None = None,
    ) -> None:
        """Put an exercise on the sheet; without a judge it has a self-check list only."""
        name = label(self.file, slug)
        self.exercises[name] = Exercise(name, asks, hints, proof, judge)

    def exercise(
        self, slug: str, asks: str, *, hints: tuple[str, str, str], proof: tuple[str, ...] = ()
    ) -> Callable[[Judge], Judge]:
        """The same as a decorator of the judge."""

        def put(judge: Judge) -> Judge:
            self.add(slug, asks, hints=hints, proof=proof, judge=judge)
            return judge

        return put


def _sheet(file: str) -> Sheet:
    found: Sheet = importlib.import_module(f"{__package__}.{file}").SHEET
    return found


def names() -> list[str]:
    """The names of all exercises, in the order of the book."""
    return [name for file in PREFIX for name in _sheet(file).exercises]


def find(name: str) -> Exercise:
    """An exercise by its name; a name that does not exist is answered with the nearest ones."""
    if isinstance(name, str):
        prefix = name.partition("-")[0]
        for file in sorted(PREFIX, key=lambda file: PREFIX[file] != prefix):  # the likely one first
            if name in (exercises := _sheet(file).exercises):
                return exercises[name]
    near = difflib.get_close_matches(str(name), names(), 3, 0.4)
    raise ValueError(f"name = {name!r} is not allowed: no exercise has it; near are {near}")


def check(name: str, answer: Any = _NOTHING, *, seconds: float = SECONDS) -> Reply:
    """Say whether an answer to an exercise is right, or what is wrong with it.

    Parameters
    ----------
    name : the label of the exercise, for example "ch1-rare"
    answer : a number, a function or an array, as the exercise asks; without one the reply says
        what is asked, and for a proof lists what a complete one contains
    seconds : how long each call of a function may take

    Examples
    --------
    >>> bool(check("ch4-critical-share", lambda L, R, theta: 0.5))
    False
    """
    exercise = find(name)
    if answer is _NOTHING or exercise.judge is None:
        asked = f"Asked: {exercise.asks}" if exercise.judge else exercise.asks
        return Reply(None, asked, exercise.proof)
    try:
        with allowing(seconds):
            reply = exercise.judge(answer)
    except Refused as refusal:
        return Reply(False, str(refusal))
    items = exercise.proof if reply.right else ()
    return Reply(reply.right, reply.words, (*reply.items, *items))


def hint(name: str, number: int = 1) -> str:
    """One of the three hints of an exercise; the first is a nudge, the third nearly all of it."""
    exercise = find(name)
    if number not in (1, 2, 3):
        raise ValueError(f"number = {number!r} is not allowed: number must be 1, 2 or 3")
    return exercise.hints[number - 1]
