"""How answers are judged: a number, an array, or a function at points the reader has not seen.

Nothing that an answer does can harm: what it raises, returns or never returns becomes a `Refused`
with a sentence for the reader. Typical mistakes are known by name: an answer that agrees with one
of them everywhere is told what it is, any other where it is right and by how much it is off.
"""

from __future__ import annotations

import inspect
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .reply import Reply

Array = np.ndarray
Point = Mapping[str, Any]
Truth = Callable[..., Any]
Mistake = tuple[Any, str]  # a wrong value or function, and what to say


class Refused(Exception):
    """An answer that cannot be judged, with a sentence for the reader."""


class _TooLong(BaseException):  # not an Exception: an answer that catches those must not keep it
    pass


_allowed = ContextVar("_allowed", default=20.0)


@contextmanager
def allowing(seconds: float) -> Iterator[None]:
    """How long each call of an answer may take inside this block."""
    token = _allowed.set(seconds)
    try:
        yield
    finally:
        _allowed.reset(token)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Stop what runs longer: by a timer of the system where there is one, else line by line."""
    began, long = time.monotonic(), f"It was stopped after {seconds:g} seconds: does it end?"

    def ring(*_: Any) -> None:
        raise _TooLong

    def line(frame: Any, event: str, arg: Any) -> Any:
        if time.monotonic() - began > seconds:
            raise _TooLong
        return line

    timer = hasattr(signal, "setitimer") and sys.platform != "emscripten"
    timer = timer and threading.current_thread() is threading.main_thread()
    before: Any = signal.signal(signal.SIGALRM, ring) if timer else sys.gettrace()
    if timer:
        signal.setitimer(signal.ITIMER_REAL, seconds)
    else:
        sys.settrace(line)
    try:
        yield
    except _TooLong:
        raise Refused(long) from None
    finally:
        if timer:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        else:
            sys.settrace(before)


def said(point: Point) -> str:
    """A point in words: "L = 10, π = 0.2"."""
    return ", ".join(
        name if isinstance(value, np.ndarray) else f"{name} = {value}"
        for name, value in point.items()
    )


def call(answer: Any, point: Point) -> Any:
    """The answer at a point, or a refusal that says what happened there."""
    if not callable(answer):
        given = type(answer).__name__
        raise Refused(f"A function of ({', '.join(point)}) is asked, not {given}.")
    try:
        inspect.signature(answer).bind(*point.values())
    except TypeError:
        raise Refused(
            f"The function must take {len(point)} arguments: {', '.join(point)}."
        ) from None
    except ValueError:  # builtins without a signature
        pass
    seconds = _allowed.get()
    values = [v.copy() if isinstance(v, np.ndarray) else v for v in point.values()]
    try:
        with np.errstate(all="ignore"), deadline(seconds):
            return answer(*values)
    except Refused:
        raise
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        raise Refused(f"At {said(point)} your function raises {what}.") from None


def numbers(value: Any, shape: tuple[int, ...], where: str = "") -> Array:
    """A finite array of the shape asked for, or a refusal."""
    place = f"At {where}: " if where else ""
    wanted = "a number" if shape == () else f"an array of shape {shape}"
    if isinstance(value, (str, bytes)) or value is None or callable(value):
        raise Refused(f"{place}{wanted} is asked, not {type(value).__name__}.")
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise TypeError
    except (TypeError, ValueError):
        raise Refused(f"{place}{wanted} is asked, of real numbers.") from None
    if array.shape != shape:
        raise Refused(f"{place}{wanted} is asked; yours has the shape {array.shape}.")
    if not np.isfinite(array).all():
        raise Refused(f"{place}your answer is not finite.")
    return array.astype(float)


def near(value: Array, truth: Array, rel: float, floor: float) -> bool:
    """Whether every entry is right to `rel`, entries below `floor` to rel·floor."""
    return bool(np.all(np.abs(value - truth) <= rel * np.maximum(np.abs(truth), floor)))


def off(value: Array, truth: Array, floor: float) -> str:
    """By how much the worst entry misses, in words."""
    worst = int(np.argmax(np.abs(value - truth) / np.maximum(np.abs(truth), floor)))
    a, b = float(value.flat[worst]), float(truth.flat[worst])
    entry = f" in entry {worst}" if value.size > 1 else ""
    if a * b < 0:
        return f"your sign is wrong{entry}"
    if abs(b) < floor:
        return f"you are off by {a - b:+.2g}{entry}"
    share = a / b - 1
    if a != 0 and not 1 / 3 < a / b < 3:
        times, size = (a / b, "large") if a / b > 1 else (b / a, "small")
        return f"you are {times:.3g} times too {size}{entry}"
    return f"you are {100 * abs(share):.2g} % too {'large' if share > 0 else 'small'}{entry}"


def value(
    answer: Any,
    truth: Any,
    *,
    rel: float = 0.01,
    floor: float = 1e-12,
    mistakes: Sequence[Mistake] = (),
    well: str = "Right.",
) -> Reply:
    """Judge a number or an array against the truth, which may be a function that computes it.

    >>> value(3.0, 2.0)
    ✗ Not yet: you are 50 % too large.
    """
    given = numbers(answer, () if callable(truth) else np.shape(truth))
    exact = np.asarray(truth() if callable(truth) else truth, dtype=float)
    if near(given, exact, rel, floor):
        return Reply(True, well)
    for wrong, words in mistakes:
        if near(given, np.asarray(wrong() if callable(wrong) else wrong, float), rel, floor):
            return Reply(False, words)
    return Reply(False, f"Not yet: {off(given, exact, floor)}.")


def function(
    answer: Any,
    truth: Truth,
    points: Sequence[Point],
    *,
    rel: float = 0.01,
    floor: float = 1e-12,
    mistakes: Sequence[tuple[Truth, str]] = (),
    draws: Callable[..., Array] | None = None,
    well: str = "Right",
) -> Reply:
    """Judge a function at hidden points; `draws` simulates the last of them, for a z-score.

    >>> function(lambda x: x, lambda x: x**2, [{"x": 1}, {"x": 2}])
    ✗ Right at x = 1; at x = 2 you are 50 % too small.
    """
    first = call(answer, points[0])
    shape = np.shape(truth(**points[0]))
    given = [numbers(first, shape, said(points[0]))]
    given += [numbers(call(answer, point), shape, said(point)) for point in points[1:]]
    exact = [np.asarray(truth(**point), dtype=float) for point in points]
    good = [near(a, b, rel, floor) for a, b in zip(given, exact, strict=True)]
    evidence = _simulated(given[-1], draws, points[-1]) if draws else ""
    if all(good):
        return Reply(True, f"{well}, at {len(points)} points that you have not seen.{evidence}")
    for wrong, words in mistakes:
        known = [np.asarray(wrong(**point), dtype=float) for point in points]
        if all(near(a, b, rel, floor) for a, b in zip(given, known, strict=True)):
            return Reply(False, words + evidence)
    miss = good.index(False)
    held = f"Right at {said(points[good.index(True)])}; at" if any(good) else "At"
    words = f"{held} {said(points[miss])} {off(given[miss], exact[miss], floor)}."
    return Reply(False, words + evidence)


def _simulated(given: Array, draws: Callable[..., Array], point: Point) -> str:
    """The z-score of an answer against a simulation at a point."""
    sample = np.asarray(draws(**point), dtype=float)
    error = sample.std(ddof=1) / np.sqrt(len(sample))
    z = (float(given) - sample.mean()) / error
    return f" Against {len(sample)} draws at {said(point)}: z = {z:+.1f}."
