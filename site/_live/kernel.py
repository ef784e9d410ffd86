"""Runs cells in the reader's browser, as a notebook does."""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from concurrent import futures
from typing import Any

from _live import memory
from _live.screen import Emit, Screen, Stream, show, show_figures

os.environ.setdefault("MPLBACKEND", "agg")
warnings.filterwarnings("ignore", "tqdm:disabling monitor")  # there are no threads here
warnings.filterwarnings("ignore", "JsProxy.as_object_map", module="threadpoolctl")


def stand_in() -> None:
    """Widgets without a kernel behind them: the page draws their placeholders itself."""

    class AnyWidget:
        def __init__(self, **traits: Any) -> None:
            self.__dict__.update(traits)

        def add_class(self, name: str) -> None: ...

        def observe(self, handler: Callable, names: Any = None) -> None: ...

        def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
            return {}

    class Trait:
        def __init__(self, *values: Any, **options: Any) -> None: ...

        def tag(self, **options: Any) -> Trait:
            return self

    anywidget, traitlets = types.ModuleType("anywidget"), types.ModuleType("traitlets")
    anywidget.AnyWidget = AnyWidget  # type: ignore[attr-defined]
    traitlets.__getattr__ = lambda name: Trait  # type: ignore[method-assign]
    for module in (anywidget, traitlets):
        sys.modules.setdefault(module.__name__, module)


class AtOnce(futures.Executor):
    """In place of pools: there is one thread and one process, so work is done when it is given."""

    def __init__(self, *arguments: Any, **options: Any) -> None: ...

    def submit(self, function: Callable, /, *arguments: Any, **options: Any) -> futures.Future:
        future: futures.Future = futures.Future()
        try:
            future.set_result(function(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        return future


if sys.platform == "emscripten":
    stand_in()
    futures.ThreadPoolExecutor = futures.ProcessPoolExecutor = AtOnce  # type: ignore[misc,assignment]


def no_input(prompt: Any = "") -> str:
    """In place of `input`: nobody can answer while a cell runs."""
    raise RuntimeError("a cell cannot ask while it runs: write the answer into the cell itself")


class Kernel:
    """The variables of a page and what can be done to them."""

    def __init__(self) -> None:
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module
        self.space: dict[str, Any] = self.module.__dict__
        self.space.update(__builtins__=builtins, display=self.display, input=no_input)
        self.own = dict(self.space)
        self.screen = Screen(lambda kind, text: None)

    def display(self, *values: Any) -> None:
        """What a notebook's display does: show values before the end of the cell."""
        for value in values:
            show(value, self.screen)

    def evaluate(self, source: str, name: str) -> Any:
        """Execute a cell and return its value; None where it ends in no expression or in ';'."""
        lines = source.splitlines(keepends=True)
        linecache.cache[name] = (len(source), None, lines, name)
        tree = ast.parse(source, name)
        last = tree.body[-1] if tree.body else None
        value = isinstance(last, ast.Expr) and not source.rstrip().endswith(";")
        body = tree.body[:-1] if value else tree.body
        exec(compile(ast.Module(body, []), name, "exec"), self.space)
        if not value:
            return None
        return eval(compile(ast.Expression(last.value), name, "eval"), self.space)  # type: ignore[union-attr]

    def run(self, source: str, name: str, emit: Emit) -> bool:
        """Run a cell; whether it went well."""
        streams = sys.stdout, sys.stderr
        self.screen = screen = Screen(emit)
        sys.stdout, sys.stderr = Stream("stdout", screen), Stream("stderr", screen)
        try:
            show(self.evaluate(source, name), screen)
            show_figures(screen)
            return True
        except BaseException as error:
            show_figures(screen)
            screen("error", self.told(error))
            return False
        finally:
            screen.send()
            sys.stdout, sys.stderr = streams

    def python(self, source: str) -> str:
        """The repr of the last expression, or what was printed."""
        printed: list[str] = []
        streams = sys.stdout, sys.stderr
        self.screen = Screen(lambda kind, text: None)
        sys.stdout = Stream("stdout", lambda kind, text: printed.append(text))
        try:
            value = self.evaluate(source, "<python>")
        finally:
            sys.stdout, sys.stderr = streams
        return "".join(printed).rstrip("\n") if value is None else repr(value)

    @staticmethod
    def told(error: BaseException) -> str:
        """A traceback that begins in the reader's cell."""
        if isinstance(error, SyntaxError):
            return "".join(traceback.format_exception_only(error))
        frames = traceback.TracebackException.from_exception(error)
        while frames.stack and frames.stack[0].filename == __file__:
            frames.stack.pop(0)
        return "".join(frames.format())

    def snapshot(self) -> tuple[bytes, list[str]]:
        """All variables as bytes, and the names of those that cannot be kept."""
        return memory.snapshot(self.space, self.own)

    def restore(self, content: bytes) -> None:
        memory.restore(self.space, content)
