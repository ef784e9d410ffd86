"""The key of colors and lines that all figures and explorers share, to be shown once."""

from __future__ import annotations

from .figures import COLORS, LINES

LEARNERS = {  # a name in `utils.figures`: what it is called in the text
    "vectorized": "vectorized: a weight for every place",
    "pooled": "averaging (pooled)",
    "attention": "attention, after two gradient steps",
    "one step": "attention, after one step",
    "query given": "attention, its query given",
    "elementwise": "element-wise attention, or the largest token",
    "message": "message passing",
    "bayes": "the best possible",
    "noise": "noise: tokens and samples without a needle",
}
DASHES = {"--": "6 4", ":": "1.5 4"}


class ColorKey:
    """What `color_key` returns: the last line of a cell shows it."""

    def __repr__(self) -> str:
        return "\n".join(f"{COLORS[name]}  {words}" for name, words in LEARNERS.items())

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{swatch(name)} {words}</li>" for name, words in LEARNERS.items())
        marks = "line: theory · dot: simulation · diamond: stored runs · bar: one standard error"
        return (
            '<div class="shown color-key"><p><strong>The same in every figure</strong></p>'
            f'<ul style="list-style: none">{rows}</ul><p>{marks}</p></div>'
        )


def swatch(name: str) -> str:
    """A piece of the line of a learner, in the color that the theme of the page gives it."""
    variable = "attention" if COLORS[name] == COLORS["attention"] else name
    dash = DASHES.get(LINES.get(name, ""), "")
    style = f"stroke: var(--c-{variable}, {COLORS[name]})"
    line = f'<path d="M1,6H39" style="{style}" stroke-width="3" stroke-dasharray="{dash}"/>'
    return f'<svg width="40" height="12" aria-hidden="true">{line}</svg>'


def color_key() -> ColorKey:
    """The colors and lines of all learners, with their names.

    >>> print(repr(color_key()).splitlines()[0])
    #0068a3  vectorized: a weight for every place
    """
    return ColorKey()
