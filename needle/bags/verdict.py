"""What a report is and how it speaks: a sentence, the warnings in order, then the table."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from .chance import Needles, Signal

LABELS = {
    "pooled": "averaging (mean pooling)",
    "needle": "two-step attention",
    "max": "largest entries (max pooling)",
    "noisy_or": "noisy-or of tokens",
    "gated": "gated attention",
    "size": "bag size alone",
}


Difference = tuple[float, tuple[float, float]]


@dataclass(frozen=True)
class Measured:
    """A learner on bags that it never saw.

    Attributes
    ----------
    auc, error : means over folds
    interval : of the error, 95 %, corrected for folds that share bags
    seconds : that measuring it took
    """

    auc: float
    error: float
    interval: tuple[float, float]
    seconds: float


@dataclass(frozen=True)
class Report:
    """What `report` returns; it prints as text and as HTML.

    Attributes
    ----------
    n, L, d, pi : bags, mean tokens of a bag, entries of a token, share of positives
    measured : learner → `Measured`, all on the same folds
    difference : error of attention less that of averaging, and its 95 % interval
    differences : (learner, other) → the same for every pair, on the folds both were judged on
    signal : permutation tests; `signal.pvalue` is familywise
    needles : how many needles, and whether more than chance says so
    independence : scatter of bags' means over that of their tokens, 1 for independent tokens
    promised : learner → error that held-out needles planted in held-out bags promise, or None
    withheld : why promises are None, or an empty text
    longer : how many times as long → error of averaging and of attention, where it can be said
    advice : what to do, in a sentence
    warnings : what to mind, the worst first; leaks begin with "leak: "
    model : the fitted classifier, tuned on all bags
    seconds : that the report took
    """

    n: int
    L: float
    d: int
    pi: float
    measured: Mapping[str, Measured]
    difference: Difference
    differences: Mapping[tuple[str, str], Difference]
    signal: Signal
    needles: Needles
    independence: float
    promised: Mapping[str, float | None]
    withheld: str
    longer: Mapping[int, tuple[float, float]]
    advice: str
    warnings: list[str]
    model: Any = field(repr=False)
    seconds: float = 0.0

    def __str__(self) -> str:
        return text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html(self)

    def figure(self) -> Any:
        """Errors with their intervals, the promises beside them, as a Matplotlib figure."""
        return figure(self)

    def page(self) -> str:
        """One HTML file that opens offline, the figure in it."""
        return page(self)


def _setting(found: Report) -> str:
    tokens = f"{found.L:,.0f}" if found.L >= 1000 else f"{found.L:.3g}"
    tokens += f" token{'s' * (found.L != 1)}"
    return (
        f"{found.n} bags of {tokens} on average, {found.d} entries each, {found.pi:.0%} positive."
    )


def _rows(found: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, one in sorted(found.measured.items(), key=lambda pair: pair[1].error):
        low, high = one.interval
        promise = found.promised.get(name)
        rows.append(
            (
                LABELS.get(name, name),
                f"{100 * one.error:.1f}",
                f"{100 * low:.1f} to {100 * high:.1f}",
                f"{one.auc:.3f}",
                "–" if promise is None else f"{100 * promise:.1f}",
                f"{one.seconds:.1f}",
            )
        )
    return rows


HEADER = ("learner", "error %", "95 % interval", "AUC", "promised", "seconds")


def _apart(found: Report) -> list[str]:
    """The other pairs whose interval of the difference leaves out zero, in one sentence."""
    sure = [
        f"{LABELS.get(one, one).partition(' (')[0]} {100 * gap:+.1f} to "
        f"{LABELS.get(other, other).partition(' (')[0]}"
        for (one, other), (gap, (_, high)) in found.differences.items()
        if high < 0 and "size" not in (one, other) and {one, other} != {"pooled", "needle"}
    ]
    return ["Other differences in points beyond doubt: " + "; ".join(sure) + "."] if sure else []


def _findings(found: Report) -> list[str]:
    gap, (low, high) = found.difference
    lines = [
        f"Attention less averaging: {100 * gap:+.1f} points of error, 95 % interval "
        f"{100 * low:+.1f} to {100 * high:+.1f}.",
        *_apart(found),
        f"Labels permuted: p = {found.signal.pvalue:.3f} for all statistics together ("
        + ", ".join(f"{name} {p:.3f}" for name, p in found.signal.each.items())
        + ").",
    ]
    count = found.needles.found
    how = f"{count.R} in a positive bag" if count.R else f"{count.share:.0%} of a positive bag"
    sure = "more than chance finds" if found.needles.told else "no more than chance finds"
    lines.append(
        f"Needles: {how}; log likelihood {count.gain:.1f} over none or all, {sure} "
        f"({found.needles.chance:.1f})."
    )
    lines.append(
        f"Independence: the mean of a bag scatters {found.independence:.2g} times as much as it "
        "would if tokens were independent."
    )
    for factor, (pooled, needle) in found.longer.items():
        lines.append(
            f"Bags {factor} times as long: averaging {100 * pooled:.1f} %, attention "
            f"{100 * needle:.1f} %."
        )
    if found.withheld:
        lines.append(f"Promises withheld: {found.withheld}.")
    return lines


def text(found: Report) -> str:
    """The report for a terminal of 80 columns."""
    wrap = lambda line: textwrap.wrap(line, 79, subsequent_indent="  ")  # noqa: E731
    lines = [*wrap(found.advice), *(x for told in found.warnings for x in wrap(f"! {told}"))]
    lines += ["", *wrap(_setting(found)), ""]
    table = [HEADER, *_rows(found)]
    widths = [max(len(row[k]) for row in table) for k in range(len(HEADER))]
    for row in table:
        cells = [row[0].ljust(widths[0])]
        cells += [x.rjust(w) for x, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines.append("")
    for told in _findings(found):
        lines += wrap(told)
    return "\n".join(lines)


def html(found: Report) -> str:
    """The same for a notebook."""
    pad = ' style="text-align:right;padding:0.2em 0.8em"'
    head = "".join(f"<th{pad}>{escape(x)}</th>" for x in HEADER)
    body = "".join(
        "<tr>" + "".join(f"<td{pad}>{escape(x)}</td>" for x in row) + "</tr>"
        for row in _rows(found)
    )
    warned = "".join(f"<li>{escape(x)}</li>" for x in found.warnings)
    told = "".join(f"<li>{escape(x)}</li>" for x in _findings(found))
    return (
        f'<div class="shown smalltable"><p><b>{escape(found.advice)}</b></p>'
        + (f"<ul>{warned}</ul>" if warned else "")
        + f"<p>{escape(_setting(found))}</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><ul>{told}</ul></div>"
    )  # fmt: skip


def figure(found: Report) -> Any:
    """Errors with intervals, best first; rings are promises, the dashed line always guessing."""
    from matplotlib.figure import Figure

    names = sorted(found.measured, key=lambda name: -found.measured[name].error)
    made = Figure(figsize=(6.4, 0.5 * len(names) + 1.2), layout="constrained")
    ax = made.subplots()
    for k, name in enumerate(names):
        one, promise = found.measured[name], found.promised.get(name)
        ax.plot([100 * x for x in one.interval], [k, k], color="#7a828c", lw=2)
        ax.plot(100 * one.error, k, "o", ms=7, color="#1f2430")
        if promise is not None:
            ax.plot(100 * promise, k, "o", ms=11, mfc="none", mec="#c2571a", mew=1.6)
    ax.axvline(100 * min(found.pi, 1 - found.pi), ls="--", color="#b3bac2", lw=1)
    ax.set_yticks(range(len(names)), [LABELS.get(name, name) for name in names])
    ax.set_xlabel("error on bags not seen, % (line: 95 % interval; ring: promised)")
    ax.set_xlim(left=0)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return made


def page(found: Report, title: str = "Does attention pay on these bags?") -> str:
    """A complete page without any address in it."""
    drawn = ""
    try:
        import io

        buffer = io.StringIO()
        figure(found).savefig(buffer, format="svg", metadata={"Date": None})
        drawn = buffer.getvalue()
        drawn = f"<figure>{drawn[drawn.index('<svg') :]}</figure>"
    except ImportError:
        drawn = "<p>(Install matplotlib for a figure.)</p>"
    code = found.model.scorer_.code()
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        "<style>body{font:16px/1.5 serif;max-width:48em;margin:2em auto;padding:0 1em}"
        "svg{max-width:100%;height:auto}</style>"
        f"<h1>{escape(title)}</h1>{html(found)}{drawn}"
        f"<h2>The model</h2><pre>{escape(code)}</pre></html>"
    )
