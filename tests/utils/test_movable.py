"""Movable figures hold what their cell computed, at every stop; the key holds every learner."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest

from utils import color_key, movable
from utils.figures import COLORS, LINES

ROOT = Path(__file__).parents[2]
XS = (0.5, 1.0, 2.0)


def curves(a, b):
    return {"attention": [a * x**b for x in XS], "edge": a, "one": ([1.0, 2.0], [a, np.nan])}


def made(**more):
    options = {
        "title": "How?",
        "sliders": [("a", "height", (1, 2)), ("b", "power", (1, 2, 3))],
        "x": ("place <x>", XS),
        "y": "it's a test error",
        "models": {"edge": "noise", "one": "one step"},
    }
    return movable("so", curves, **options | more)


def held(figure):
    return json.loads(html.unescape(re.search(r"data-family='([^']*)'", figure._repr_html_())[1]))


def test_a_page_gets_the_curves_of_every_stop():
    found = held(made(say=lambda a, b: f"{a} and {b}", start=(2, 3)))
    spec, data = found["spec"], found["data"]
    assert spec["start"] == {"s0": 2, "s1": 3}
    assert [s["stops"] for s in spec["sliders"]] == [[1, 2], [1, 2, 3]]
    assert [c["color"] for c in spec["curves"]] == ["attention", "noise", "attention"]
    assert [c["dash"] for c in spec["curves"]] == [None, None, "5 4"]
    points = [(a, b) for a in (1, 2) for b in (1, 2, 3)]
    assert data["said"] == [f"{a} and {b}" for a, b in points]
    for (a, b), row in zip(points, data["rows"], strict=True):
        assert row[0]["y"] == [float(f"{a * x**b:.4g}") for x in XS]
        assert row[1] == {"at": a}
        assert row[2] == {"y": [a, None], "x": [1, 2]}
    assert spec["axes"]["y"]["domain"][1] >= max(max(row[0]["y"]) for row in data["rows"])


def test_the_picture_shows_the_start():
    drawn = made(start=(2, 1), log="xy")._repr_html_()
    assert drawn.count("<path") == 4 and "Drawn at a = 2, b = 1." in drawn
    assert "place &lt;x&gt;" in drawn
    other = made(start=(1, 3), log="xy")._repr_html_()
    assert re.findall(r' d="([^"]*)"', drawn)[1] != re.findall(r' d="([^"]*)"', other)[1]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sliders": []}, "0 sliders"),
        ({"start": (3, 1)}, "start"),
        ({"models": {"edge": "cnn"}}, "cnn"),
        ({"x": ("x", (1, 2))}, "3 heights"),
        ({"sliders": [("a", "", range(1, 4000)), ("b", "", (1, 2))]}, "16000"),
    ],
)
def test_what_cannot_be_shown_is_refused(change, word):
    with pytest.raises(ValueError, match=word):
        made(**change)


def test_the_key_stands_once_in_the_book_and_names_every_learner():
    """In Chapter 1, as `color_key` makes it; each color in the variable of the page of its name."""
    shown = color_key()._repr_html_()
    for name, color in COLORS.items():
        assert name == "signal" or f", {color})" in shown
    assert shown.count('stroke-dasharray=""') == len(COLORS) - 1 - len(LINES)
    style = (ROOT / "utils/explorers/explore.css").read_text("utf-8")
    for variable, color in re.findall(r"var\(--c-(\w+), (#\w+)\)", shown):
        assert variable == "bayes" or f"--c-{variable}: {color};" in style
    places = [
        (path.name, "".join(output["data"]["text/html"]))
        for path in sorted((ROOT / "chapters").glob("*.ipynb"))
        for cell in json.loads(path.read_text("utf-8"))["cells"]
        for output in cell.get("outputs", [])
        if "color-key" in "".join(output.get("data", {}).get("text/html", ""))
    ]
    assert places == [("01_model.ipynb", shown)]


def test_numbers_on_maps_are_written_by_the_helper_that_picks_their_ink():
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and re.search(r"\bheat\(", source):
                assert not re.search(r"\.(?:annotate|text)\(", source), f"{path.name}: {source}"
