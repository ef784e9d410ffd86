"""Explorers: figures with sliders, alive in Jupyter and on the built page.

`explore("needle")` is the last line of a cell. With a kernel it is a widget whose numbers are
computed by `needle` at the sliders' values; on the built page the same drawing module takes them
from closed forms or from tables (`scripts/book/explore_data.py`) and says which. The drawing
modules stand beside this file, one a figure, beside those that they share; what a figure shows is a
function of its sliders in `utils.explorers.values` and `utils.explorers.numbers`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from needle.kit.checks import check_choice
from needle.kit.records import ConvergenceError

from .base import Explorer
from .values import EXPLORERS

FOLDER = Path(__file__).parent
IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.mjs)";\n', flags=re.M)


def specification(name: str) -> dict[str, Any]:
    """What a drawing module needs to know of an explorer: its title, sliders and start values.

    >>> specification("needle")["start"]["L"]
    40
    """
    found = EXPLORERS[check_choice("name", name, EXPLORERS)]
    sliders = [
        {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in slider._asdict().items()
            if value is not None
        }
        for slider in found.sliders
    ]
    return {
        "name": name,
        "title": found.title,
        "sliders": sliders,
        "start": found.start,
        "again": found.again,
    }


def values(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What an explorer shows at these parameters, computed by `needle`; a failed solver is said.

    >>> shown = values("needle", {"theta": 3.0, "L": 100, "R": 2})
    >>> round(shown["pooled"], 12)
    0.6
    """
    found = EXPLORERS[check_choice("name", name, EXPLORERS)]
    where = checked(found, parameters)
    try:
        result = found.values(where)
    except ConvergenceError as error:
        return {"of": where, "error": f"No number here: {error}"}
    return {"how": "Exact, computed by the kernel.", **result, "of": where}


def checked(found: Explorer, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of an explorer, those that are given and the start values of the others."""
    for key in parameters:
        check_choice("parameter", key, tuple(found.start))
    return {**found.start, **parameters}


def bundle(name: str) -> str:
    """One self-contained ES module, as a widget needs it: what it imports, then the figure's own.

    >>> bundle("needle").count("import ")
    0
    """
    parts = [(FOLDER / module).read_text("utf-8") for module in modules(name)]
    plain = re.sub(r"^export ", "", IMPORT.sub("", "\n".join(parts)), flags=re.M)
    return f"{plain}\nexport default {{ render }};\n"


def modules(name: str) -> list[str]:
    """The files of a figure, each after those that it imports.

    >>> modules("capacity")
    ['maths.mjs', 'axes.mjs', 'panel.mjs', 'frame.mjs', 'tables.mjs', 'capacity.mjs']
    """
    check_choice("name", name, EXPLORERS)
    found: list[str] = []

    def visit(module: str) -> None:
        for wanted in IMPORT.findall((FOLDER / module).read_text("utf-8")):
            if wanted not in found:
                visit(wanted)
        found.append(module)

    visit(f"{name}.mjs")
    return found


def placeholder(name: str, start: Mapping[str, Any]) -> str:
    """What stands in a stored notebook: the place where the built page draws the figure."""
    title = html.escape(EXPLORERS[name].title)
    given = f' data-start="{html.escape(json.dumps(dict(start)))}"' if start else ""
    return (
        f'<div class="explorer" data-explorer="{name}" id="explorer-{name}"{given}>'
        f"<p><strong>{title}</strong> A figure with sliders stands here when scripts may run; "
        "in Jupyter, once this cell has been executed.</p></div>"
    )


@cache
def _widget_class() -> Any:
    import anywidget
    import traitlets

    class ExplorerWidget(anywidget.AnyWidget):
        """The widget behind `explore`: parameters in, exact values out."""

        _css = (FOLDER / "explore.css").read_text("utf-8")
        spec = traitlets.Dict().tag(sync=True)
        params = traitlets.Dict().tag(sync=True)
        values = traitlets.Dict().tag(sync=True)

        def __init__(self, name: str, start: Mapping[str, Any]) -> None:
            self._name, self._given = name, dict(start)
            spec = specification(name)
            spec["start"] = checked(EXPLORERS[name], start)
            shown = values(name, start)
            super().__init__(_esm=bundle(name), spec=spec, params=spec["start"], values=shown)
            self.add_class("explorer")
            self.observe(self._answer, "params")

        def _answer(self, change: Any) -> None:
            self.values = values(self._name, change["new"])

        def __repr__(self) -> str:
            return f"explore({self._name!r})"

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            found: Any = super()._repr_mimebundle_(**kwargs)
            data, metadata = found if isinstance(found, tuple) else (found or {}, {})
            words = {"text/plain": repr(self), "text/html": placeholder(self._name, self._given)}
            return {**data, **words}, metadata

    return ExplorerWidget


def explore(name: str, **start: Any) -> Any:
    """The explorer of that name, as a widget; `start` sets sliders.

    Parameters
    ----------
    name : one of `EXPLORERS`
    start : values at which the sliders begin, also what "Reset" goes back to

    Examples
    --------
    >>> explore("needle", theta=4.0)
    explore('needle')
    """
    check_choice("name", name, EXPLORERS)
    checked(EXPLORERS[name], start)
    return _widget_class()(name, start)
