"""Figures in the page: a drawing of Matplotlib as inline SVG, in the type and colours of the page.

Its text stays text, set in the page's own face. A colour of `utils.figures` becomes the variable
of the page that names the same learner, a tint of one a mixture with the page's ground; so a figure
is light or dark with its page. What holds pixels keeps them.
"""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree as Tree

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
SPACES = {"{http://www.w3.org/2000/svg}": "", "{http://www.w3.org/1999/xlink}": "xlink:"}
BELOW = re.compile(r"([A-Za-zα-ωΑ-Ω])_(\w)(?!\w)")
PLACES = re.compile(r"(-?\d+\.\d\d)\d+")  # of a coordinate: hundredths of a point will do
LOWERED, RAISED = {"class": "sub", "dy": ".25em"}, {"class": "sub", "dy": "-.4em"}
BACK = {"dy": "-.18em"}


def rgb(color: str) -> list[int]:
    return [int(color[k : k + 2], 16) for k in (1, 3, 5)]


def variable(color: str) -> str:
    """What a colour is called on the page; a tint becomes a mixture, all others stay.

    >>> variable("#007A58"), variable("#80bcab"), variable("#123456")
    ('var(--c-pooled)', 'color-mix(in srgb, var(--c-pooled) 50%, var(--ground))', '#123456')
    """
    if not color.startswith("#") or len(color) != 7:
        return color
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


def styles(element: Tree.Element) -> dict[str, str]:
    """What the style of an element says, by property."""
    parts = (part.partition(":") for part in element.get("style", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in parts if value}


def size(element: Tree.Element) -> float:
    """The size of a text, by its style."""
    said = styles(element)
    words = f"{said.get('font-size', '')} {said.get('font', '')}".replace("/", " ").split()
    return next((float(word[:-2]) for word in words if word.endswith("px")), 10.0)


def span(text: str, **attributes: str) -> Tree.Element:
    made = Tree.Element("tspan", attributes)
    made.text = text
    return made


def plain(label: str) -> tuple[str, list[Tree.Element]]:
    """A label with its subscripts below the line: η_w."""
    first, *rest = BELOW.split(label)
    spans: list[Tree.Element] = []
    told = first
    for letter, sub, after in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if spans:
            spans[-1].tail = (spans[-1].tail or "") + letter
        else:
            told += letter
        spans += [span(sub, **LOWERED), span("\u200b", **BACK)]
        spans[-1].tail = after
    return told, spans


def formula(element: Tree.Element) -> tuple[str, list[Tree.Element]]:
    """A formula of Matplotlib, whose letters have places of their own: in a line, with exponents.

    >>> parts = Tree.fromstring('<text><tspan x="0 7" y="-1" style="font: 11px x">10</tspan>'
    ...                         '<tspan x="15" y="-5" style="font: 7px x">6</tspan></text>')
    >>> told, spans = formula(parts)
    >>> told, Tree.tostring(spans[0], encoding="unicode")
    ('10', '<tspan class="sub" dy="-.4em">6</tspan>')
    """
    found = sorted(
        (*(float(part.get(axis, "0").split()[0]) for axis in "xy"), size(part), part.text or "")
        for part in element.iter("tspan")
    )
    largest = max(s for _, _, s, _ in found)
    line = max(y for _, y, s, _ in found if s == largest)
    told, spans = "", list[Tree.Element]()
    for _, y, s, text in found:
        if s < 0.9 * largest:
            raised = y < line - 0.1 * largest
            spans.append(span(text, **(RAISED if raised else LOWERED)))
        elif spans:
            spans[-1].tail = (spans[-1].tail or "") + text
        else:
            told += text
    return told, spans


def relabel(element: Tree.Element) -> None:
    """A text in the page's face: its place, how large it is, where it is anchored, its colour."""
    said, parts = styles(element), list(element.iter("tspan"))
    weight = said.get("font", "").removeprefix("italic ").split(" ")[0]
    style = [f"--fs: {max(map(size, parts or [element])):g}px"]
    style += [f"{name}: {said[name]}" for name in ("text-anchor", "fill") if name in said]
    style += ["stroke: var(--ink)"] * (said.get("fill", "").lower() in ("#ffffff", "white"))
    style += ["font-weight: 600"] * (weight in ("bold", "600", "700"))
    places = {name: element.get(name, "") for name in ("x", "y", "transform")}
    if places["transform"].startswith(("rotate(0 ", "rotate(-0 ")):
        del places["transform"]
    told, spans = formula(element) if parts else plain(element.text or "")
    tail = element.tail
    element.clear()
    element.attrib |= {name: value for name, value in places.items() if value}
    element.attrib["style"] = "; ".join(style)
    element.text, element.tail = told, tail
    element.extend(spans)


def rid(tree: Tree.Element) -> None:
    """Without what only Matplotlib needs, and without groups that hold nothing."""
    for parent in list(tree.iter()):
        for child in list(parent):
            style = child.tag == "defs" and child.find("style") is not None
            if child.tag == "metadata" or style:
                parent.remove(child)
        for child in list(parent):
            if child.tag == "g" and not len(child) and not child.attrib:
                parent.remove(child)


def settled(name: str, value: str, key: str) -> str:
    """An attribute with ids of its own, colours of the page, and coordinates in hundredths."""
    if name == "id":
        return f"{key}-{value}"
    if name == "xlink:href" and value.startswith("#"):
        return f"#{key}-{value[1:]}"
    value = value.replace("url(#", f"url(#{key}-")
    if name == "style":
        parts = [(part.split(": ", 1)) for part in value.split("; ")]
        value = "; ".join(": ".join([*head, variable(last)]) for *head, last in parts)
    else:
        value = variable(value)
    if name in ("d", "points", "x", "y", "transform", "width", "height"):
        value = PLACES.sub(r"\1", value).replace("\n", "")
    return value


def inline(drawing: str, key: str, spoken: str) -> str:
    """An SVG file as part of a page, its ids made its own by a key, with what is read aloud."""
    tree = Tree.fromstring(drawing)
    box = tree.get("viewBox", "").split()
    if len(box) != 4:
        raise ValueError(f"{key} is no drawing of Matplotlib: it has no viewBox")
    width, height = map(float, box[2:])
    for element in tree.iter():
        for space, prefix in SPACES.items():
            element.tag = element.tag.replace(space, prefix)
            element.attrib = {n.replace(space, prefix): v for n, v in element.attrib.items()}
    for element in list(tree.iter("text")):
        relabel(element)
    for element in tree.iter():
        if element.tag == "g" and not element.get("id", "clip").startswith(("clip", "image")):
            del element.attrib["id"]
        element.attrib = {n: settled(n, v, key) for n, v in element.attrib.items()}
        element.text = element.text if (element.text or "").strip() else None
        element.tail = element.tail if (element.tail or "").strip() else "\n"
    rid(tree)
    said = html.escape(spoken, quote=True)
    broad = " broad" if width > BROAD else ""
    head = (
        f'<svg class="plot{broad}" role="img" aria-label="{said}" '
        f'style="--w: {width * 4 / 3:.0f}px" '
        f'viewBox="0 0 {width:g} {height:g}" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return head + "".join(Tree.tostring(part, encoding="unicode") for part in tree) + "</svg>"
