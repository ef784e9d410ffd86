"""Runs cells in the reader's browser, as a notebook does: output, value, figures, errors.

`emit(kind, text)` receives what a cell leaves, in order: "stdout", "stderr", "progress" (a line
that replaces itself), "html", "text", "image" (PNG in base64), "error".
"""

from __future__ import annotations

import ast
import base64
import functools
import io
import linecache
import os
import pprint
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from concurrent import futures
from typing import Any

os.environ.setdefault("MPLBACKEND", "agg")
warnings.filterwarnings("ignore", "tqdm:disabling monitor")  # there are no threads here
warnings.filterwarnings("ignore", "JsProxy.as_object_map", module="threadpoolctl")

Emit = Callable[[str, str], None]
LARGEST_ARRAY, LARGEST = 32_000_000, 100_000_000  # bytes that are kept, of one variable and of all


class Stream(io.TextIOBase):
    """Standard output or error; a progress bar rewrites its line, and is told apart by that."""

    def __init__(self, kind: str, emit: Emit) -> None:
        self.kind, self.emit, self.within_progress = kind, emit, False

    def write(self, text: str) -> int:
        if "\r" in text:
            self.within_progress = True
            self.emit("progress", text.rsplit("\r", 1)[1].strip())
        elif self.within_progress and not text.strip():
            self.within_progress = "\n" not in text
        elif text:
            self.emit(self.kind, text)
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.kind == "stderr"  # where a progress bar looks before it shows itself


def show(value: Any, emit: Emit) -> None:
    """The value that a cell ends in, the way a notebook would show it."""
    if value is None:
        return
    if hasattr(value, "savefig"):
        emit("image", png(value))
    elif (bundle := mime_bundle(value)) and "text/html" in bundle:
        emit("html", bundle["text/html"])
    else:
        emit("text", bundle.get("text/plain") or in_text(value))


def mime_bundle(value: Any) -> dict[str, Any]:
    if hasattr(value, "_repr_mimebundle_"):
        bundle = value._repr_mimebundle_(include=None, exclude=None)
        return bundle[0] if isinstance(bundle, tuple) else bundle
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    return {"text/html": html} if html else {}


def in_text(value: Any) -> str:
    text = repr(value)
    plain = isinstance(value, dict | list | tuple | set) and len(text) > 79
    return pprint.pformat(value, width=79, sort_dicts=False) if plain else text


def png(figure: Any) -> str:
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi="figure", facecolor=figure.get_facecolor())
    return base64.b64encode(target.getvalue()).decode()


def show_figures(emit: Emit) -> None:
    """Every open figure, once, at the end of its cell."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        for number in pyplot.get_fignums():
            emit("image", png(pyplot.figure(number)))
        pyplot.close("all")


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


class Kernel:
    """The variables of a page and what can be done to them."""

    def __init__(self) -> None:
        self.module = types.ModuleType("__main__")
        sys.modules["__main__"] = self.module
        self.space: dict[str, Any] = self.module.__dict__
        self.own = {*self.space, "__builtins__"}

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
        sys.stdout, sys.stderr = Stream("stdout", emit), Stream("stderr", emit)
        try:
            value = self.evaluate(source, name)
            show(value, emit)
            show_figures(emit)
            return True
        except BaseException as error:
            show_figures(emit)
            emit("error", self.told(error))
            return False
        finally:
            sys.stdout, sys.stderr = streams

    def python(self, source: str) -> str:
        """The repr of the last expression, or what was printed."""
        printed: list[str] = []
        streams = sys.stdout, sys.stderr
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
        variables = {
            name: value
            for name, value in self.space.items()
            if name not in self.own and bytes_of(value) <= LARGEST_ARRAY
        }
        try:
            content = pickled(variables)
        except Exception:
            variables = {k: v for k, v in variables.items() if can_be_kept(v)}
            content = pickled(variables)
        if len(content) > LARGEST:
            return b"", sorted(set(self.space) - self.own)
        lost = set(self.space) - self.own - set(variables)
        return content, sorted(name for name in lost if not name.startswith("_"))

    def restore(self, content: bytes) -> None:
        """Bring variables back; functions see the variables of the page, as before."""
        import pickle

        for name, value in pickle.loads(content).items():
            self.space[name] = self.at_home(value)

    def at_home(self, value: Any) -> Any:
        """A function of the page, with the variables of the page as its globals."""
        if isinstance(value, types.FunctionType) and value.__module__ == "__main__":
            parts = value.__name__, value.__defaults__, value.__closure__
            ours = types.FunctionType(value.__code__, self.space, *parts)
            ours.__kwdefaults__, ours.__doc__ = value.__kwdefaults__, value.__doc__
            ours.__dict__.update(value.__dict__)
            return ours
        if isinstance(value, functools._lru_cache_wrapper):
            return remembering(self.at_home(value.__wrapped__), **value.cache_parameters())
        return value


def remembering(function: Callable, maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)


def pickled(value: Any) -> bytes:
    """Bytes of anything that a cell may define, functions, classes and closures included."""
    import cloudpickle

    class Pickler(cloudpickle.CloudPickler):
        def reducer_override(self, item: Any) -> Any:
            if isinstance(item, functools._lru_cache_wrapper) and item.__module__ == "__main__":
                return remembering, (item.__wrapped__, *item.cache_parameters().values())
            return super().reducer_override(item)

    target = io.BytesIO()
    Pickler(target, protocol=5).dump(value)
    return target.getvalue()


def bytes_of(value: Any) -> int:
    """Those of an array; others are small, or are found out when they are written."""
    count = getattr(value, "nbytes", 0)
    return count if isinstance(count, int) else 0


def can_be_kept(value: Any) -> bool:
    try:
        pickled(value)
        return True
    except Exception:
        return False
