"""Each check against its solution, typical mistakes, and garbage."""

from __future__ import annotations

import contextlib
import inspect
import threading
from typing import Any

import nbformat
import numpy as np
import pytest

from exercises import check, hint, names
from exercises.desk import find
from exercises.places import label
from exercises.typed import reply
from scripts.book.chapter import boxes
from scripts.book.run_notebooks import chapters
from tests.answers.solutions import ANSWERS

CHECKED = {label(*key.split()): answers for key, answers in ANSWERS.items()}
GARBAGE: list[Any] = [None, "0.5", float("nan"), float("inf"), [], 1j, np.zeros((3, 3, 3)), {}]


def of_shape(name: str, body: Any) -> Any:
    """A function with as many arguments as the right answer has."""
    right = CHECKED[name][0]
    if not callable(right):
        return body
    try:
        count = len(
            [p for p in inspect.signature(right).parameters.values() if p.default is p.empty]
        )
    except ValueError:
        count = 1
    return {1: lambda a: body(), 2: lambda a, b: body(), 3: lambda a, b, c: body()}.get(
        count, lambda *a: body()
    )


HEAVY = {
    "real digit",
    "readout temperature",
    "linear ridgeless",
    "learning race",
    "model many-needles",
}
HEAVY |= {"alignment small", "training sharpness", "learning spinodal", "readout other-way"}


def marked(keys: Any) -> list[Any]:
    """The names of exercises; those whose check takes half a second are left to the slow tests."""
    return [
        pytest.param(label(*key.split()), marks=[pytest.mark.slow] * (key in HEAVY)) for key in keys
    ]


@pytest.mark.parametrize("name", marked(ANSWERS))
def test_a_solution_is_right_and_mistakes_are_not(name: str) -> None:
    right, *wrong = CHECKED[name]
    said = check(name, right)
    assert said, said
    assert len(wrong) >= 2
    for mistake in wrong:
        said = check(name, mistake)
        assert said.right is False, (name, said)
        assert len(said.words) > 20


@pytest.mark.parametrize("name", CHECKED)
def test_garbage_is_refused_with_a_sentence(name: str) -> None:
    def raises() -> float:
        raise KeyError("gone")

    calls = [raises, lambda: float("nan"), lambda: "x", lambda: None, lambda: np.zeros((7, 7))]
    for answer in GARBAGE + [of_shape(name, body) for body in calls] + [lambda *, only: 1.0]:
        said = check(name, answer)
        assert said.right is False, (name, answer, said)
        assert said.words.endswith((".", "?"))


def endless() -> float:
    total = 0
    while True:
        with contextlib.suppress(Exception):
            total += 1


def test_an_endless_loop_is_stopped() -> None:
    for name in ("rare", "places"):
        said = check(label("model", name), of_shape(label("model", name), endless), seconds=0.1)
        assert said.right is False and "stopped" in said.words


def test_an_endless_loop_is_stopped_where_there_are_no_timers() -> None:
    replies: list[Any] = []
    name = label("linear", "label-noise")
    thread = threading.Thread(
        target=lambda: replies.append(check(name, of_shape(name, endless), seconds=0.1))
    )
    thread.start()
    thread.join(20)
    assert replies and replies[0].right is False and "stopped" in replies[0].words


def test_every_exercise_has_hints_and_a_check_or_a_list() -> None:
    assert len(CHECKED) >= 70
    for name in names():
        exercise = find(name)
        hints = [hint(name, k) for k in (1, 2, 3)]
        assert len(set(hints)) == 3 and all(len(words) > 10 for words in hints)
        assert (name in CHECKED) == (exercise.judge is not None)
        assert exercise.judge or exercise.proof
        assert check(name).right is None
    assert set(CHECKED) <= set(names())


def test_every_exercise_of_the_book_is_known() -> None:
    found = {
        box.label
        for path in chapters()
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
        for box in boxes(cell.source)
        if box.kind == "exercise"
    }
    assert sorted(found) == sorted(names())


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(ValueError, match="near are"):
        check("ch1-longest-stra")
    with pytest.raises(ValueError, match="number"):
        hint(names()[0], 4)


def test_typed_answers_are_run_and_judged() -> None:
    name = label("model", "missed")
    typed = (
        "from scipy.special import ndtri\n\ndef f(limit, power):\n    return limit + ndtri(power)"
    )
    assert reply(name, typed)
    assert reply(name, "answer = " + "lambda limit, power: limit").right is False
    for source in ("", "1 / 0", "lambda", "while True: pass", "import numpy", "raise SystemExit"):
        found = reply(name, source, seconds=0.2)
        assert found.right is False and found.words.endswith((".", "?")), (source, found)
    found = reply(name, "while True:\n    pass\nx = 1", seconds=0.2)
    assert "stopped" in found.words


def test_replies_are_safe_html() -> None:
    said = check(label("model", "missed"), lambda a, b: "<script>")
    assert "<script>" not in said._repr_html_()
