"""What a cell leaves, on its way to the page: streams, values, figures.

`emit(kind, text)` receives it in order: "stdout", "stderr", "progress" (a line that replaces
itself), "html", "text", "image" (PNG in base64), "error".
"""

from __future__ import annotations

import base64
import io
import pprint
import sys
import time
from collections.abc import Callable
from typing import Any

Emit = Callable[[str, str], None]
LONGEST = 100_000  # characters of text that a cell shows
OFTEN = 10  # messages of a cell in a tenth of a second


class Screen:
    """What a cell shows: text that can be read, and messages that a page can take."""

    def __init__(self, emit: Emit) -> None:
        self.emit, self.left = emit, LONGEST
        self.kind, self.parts = "", [""]
        self.since, self.sent = 0.0, 0

    def __call__(self, kind: str, text: str) -> None:
        if kind == "progress":
            if self.in_time():
                self.emit(kind, text)
            return
        if kind != self.kind:
            self.send()
        self.kind = kind
        if kind in ("stdout", "stderr"):
            self.parts += [text] if self.left > 0 else []
            if self.in_time():
                self.send()
        else:
            end = LONGEST if kind in ("text", "error") else len(text)
            cut = "" if len(text) <= end else f"\n… and {len(text) - end} characters more"
            self.emit(kind, (text[-end:] if kind == "error" else text[:end]) + cut)

    def in_time(self) -> bool:
        if (now := time.monotonic()) - self.since > 0.1:
            self.since, self.sent = now, 0
        self.sent += 1
        return self.sent <= OFTEN

    def send(self) -> None:
        """Show what was printed since the last message."""
        text, self.parts = "".join(self.parts), []
        if text:
            self.emit(self.kind, text[: self.left])
            if len(text) > self.left:
                self.emit("stderr", f"\n… {LONGEST} characters are shown, the rest is not\n")
            self.left -= len(text)


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
    plain = isinstance(value, dict | list | tuple | set) and 79 < len(text) < LONGEST
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
