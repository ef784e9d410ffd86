"""Figures in the page: a drawing of Matplotlib as inline SVG, in the type and colours of the page.

Its text stays text, set in the page's own face. A colour of `utils.figures` becomes the variable
of the page that names the same learner, a tint of one a mixture with the page's ground; so a figure
is light or dark with its page. What holds pixels keeps them.
"""

from __future__ import annotations

import html
import re

NAMED = {
    "#0068a3": "--c-vectorized",
    "#007a58": "--c-pooled",
    "#c24f00": "--c-attention",
    "#4a35d4": "--c-message",
    "#6a1f70": "--c-elementwise",
    "#66727d": "--c-noise",
    "#1f2430": "--ink",
    "#57606a": "--muted",
    "#e3e6ea": "--rule",
    "#ffffff": "--ground",
}
BROAD = 400  # points; a drawing with panels side by side, whose type must grow on a telephone
DROPPED = re.compile(
    r"<metadata>.*?</metadata>|<defs>\s*<style[^>]*>.*?</style>\s*</defs>|<!--.*?-->", re.S
)
GROUPS = re.compile(r'(<g\b[^>]*?) id="(?!clip|image)[^"]*"')
TEXT = re.compile(r"<text\b([^>]*)>(.*?)</text>", re.S)
SPAN = re.compile(r"<tspan\b([^>]*)>(.*?)</tspan>", re.S)
BELOW = re.compile(r"([A-Za-zα-ωΑ-Ω])_(\w)(?!\w)")


def rgb(color: str) -> list[int]:
    return [int(color[k : k + 2], 16) for k in (1, 3, 5)]


def variable(color: str) -> str:
    """What a colour is called on the page; a tint becomes a mixture, all others stay.

    >>> variable("#007A58"), variable("#80bcab"), variable("#123456")
    ('var(--c-pooled)', 'color-mix(in srgb, var(--c-pooled) 50%, var(--ground))', '#123456')
    """
    color = color.lower()
    if color in NAMED:
        return f"var({NAMED[color]})"
    for full, name in NAMED.items():
        if name.startswith("--c-") or name == "--ink":
            pairs = zip(rgb(color), rgb(full), strict=True)
            shares = [(255 - tint) / (255 - whole) for tint, whole in pairs]
            if max(shares) - min(shares) < 0.03 and max(shares) <= 1:
                share = round(100 * sum(shares) / 3)
                return f"color-mix(in srgb, var({name}) {share}%, var(--ground))"
    return color


def attribute(name: str, text: str) -> str | None:
    found = re.search(rf'\b{name}="([^"]*)"', text) or re.search(rf"\b{name}: *([^;\"]+)", text)
    return found[1] if found else None


def size(attributes: str) -> float:
    """The size of a text, by its style."""
    found = re.search(r"font(?:-size)?:[^;\"]*?([\d.]+)px", attributes)
    return float(found[1]) if found else 10.0


def plain(inside: str) -> str:
    """A label with its subscripts below the line: η_w."""
    below = r'\1<tspan class="sub" dy=".25em">\2</tspan><tspan dy="-.18em">&#8203;</tspan>'
    return BELOW.sub(below, inside)


def formula(inside: str) -> str:
    """A formula of Matplotlib, whose letters have places of their own: in a line, with exponents.

    >>> formula('<tspan x="0 7" y="-1" style="font: 11px x">10</tspan>'
    ...         '<tspan x="15" y="-5" style="font: 7px x">6</tspan>')
    '10<tspan class="sub" dy="-.4em">6</tspan>'
    """
    spans = []
    for given, text in SPAN.findall(inside):
        x, y = (float((attribute(name, given) or "0").split()[0]) for name in "xy")
        spans.append((x, y, size(given), text))
    if not spans:
        return inside
    spans.sort()
    largest = max(s[2] for s in spans)
    line = max((y for _, y, s, _ in spans if s == largest), default=0.0)
    told = ""
    for _, y, s, text in spans:
        if s < 0.9 * largest:
            shift = "-.4em" if y < line - 0.1 * largest else ".25em"
            told += f'<tspan class="sub" dy="{shift}">{text}</tspan>'
        else:
            told += text
    return told


def text(match: re.Match[str]) -> str:
    given, inside = match.groups()
    anchor = re.search(r"text-anchor: *(\w+)", given)
    fill = re.search(r"fill: *([^;\"]+)", given)
    weight = re.search(r"font: *(?:italic )?(bold|[67]00)", given)
    sizes = [size(span) for span, _ in SPAN.findall(inside)] or [size(given)]
    style = f"--fs: {max(sizes):g}px"
    style += f"; text-anchor: {anchor[1]}" if anchor else ""
    style += f"; fill: {fill[1]}" if fill else ""
    style += "; stroke: var(--ink)" if fill and fill[1].lower() in ("#ffffff", "white") else ""
    style += "; font-weight: 600" if weight else ""
    place = "".join(
        f' {name}="{value}"'
        for name in ("x", "y", "transform")
        if (value := re.search(rf'\b{name}="([^"]*)"', given) and attribute(name, given))
    )
    place = re.sub(r' transform="rotate\(-?0 [^"]*"', "", place)
    label = formula(inside) if "<tspan" in inside else plain(inside)
    return f'<text{place} style="{style}">{label}</text>'


def inline(drawing: str, key: str, spoken: str) -> str:
    """An SVG file as part of a page, its ids made its own by a key, with what is read aloud."""
    drawing = DROPPED.sub("", drawing[drawing.index("<svg") :])
    opening = re.search(r'<svg[^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>', drawing)
    if opening is None:
        raise ValueError(f"{key} is no drawing of Matplotlib: it has no viewBox")
    width, height = map(float, opening.groups())
    drawing = GROUPS.sub(r"\1", drawing[opening.end() :])
    drawing = TEXT.sub(text, drawing)
    drawing = re.sub(r'\bid="([^"]+)"', rf'id="{key}-\1"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", drawing)
    drawing = re.sub(r'href="#([^"]+)"', rf'href="#{key}-\1"', drawing)
    drawing = re.sub(r"#[0-9a-fA-F]{6}\b(?!-)", lambda m: variable(m[0]), drawing)
    drawing = re.sub(r"(?<![\w#-])(-?\d+\.\d\d)\d+(?=[\s,\"LMCQz)])", r"\1", drawing)
    for pattern, new in ((r"<g>\s*</g>", ""), (r" ?\n(?=[LMCQz])", " "), (r"\n\s*", "\n")):
        drawing = re.sub(pattern, new, drawing)
    said = html.escape(spoken, quote=True)
    broad = " broad" if width > BROAD else ""
    head = (
        f'<svg class="plot{broad}" role="img" aria-label="{said}" '
        f'style="--w: {width * 4 / 3:.0f}px" '
        f'viewBox="0 0 {width:g} {height:g}" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return head + drawing.strip()
