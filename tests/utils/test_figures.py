"""The grammar of figures: what is drawn is what was given, in the model's color, every time."""

import io
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import rgb_to_hsv, to_rgb

from utils import figures, maps
from utils.results import Estimate

mpl.use("agg")
MODELS = ["vectorized", "pooled", "attention", "message", "bayes", "elementwise"]


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def contrast(color, other):
    """WCAG contrast ratio of two colors."""

    def luminance(name):
        rgb = np.array(to_rgb(name))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    dark, light = sorted([luminance(color), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("model", figures.COLORS)
def test_colors_can_be_read_on_white(model):
    assert contrast(figures.COLORS[model], "white") > 3


@pytest.mark.parametrize("severity", ["protan", "deutan", "full"])
def test_colors_differ_for_all_eyes(severity):
    """Pairwise distance after the linear simulation of Viénot, Brettel and Mollon (1999)."""
    confuse = {
        "full": np.eye(3),
        "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
        "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
    }[severity]
    seen = [np.asarray(confuse) @ np.array(to_rgb(figures.COLORS[m])) ** 2.2 for m in MODELS]
    seen = [np.clip(color, 0, 1) ** (1 / 2.2) for color in seen]
    distance = [np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(distance) > 0.18


def test_theory_is_a_line_in_the_color_of_its_model():
    _, ax = figures.panels()
    figures.theory(ax, [1, 2, 3], [4, 5, 6], model="pooled", label="pooled")
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(line.get_xydata(), [[1, 4], [2, 5], [3, 6]])
    assert line.get_color() == figures.COLORS["pooled"]
    assert line.get_linestyle() == "-"


def test_learners_of_one_color_differ_in_their_lines():
    """What a line looks like follows from its model, unless the caller says otherwise."""
    _, ax = figures.panels()
    for model in figures.COLORS:
        figures.theory(ax, [1, 2], [1, 2], model=model)
    looks = [(line.get_color(), line.get_linestyle()) for line in ax.get_lines()]
    assert len(set(looks)) == len(figures.COLORS) - 1  # signal is what attention looks for
    figures.theory(ax, [1, 2], [1, 2], model="one step", ls="-")
    assert ax.get_lines()[-1].get_linestyle() == "-"


def test_clouds_of_points_are_pictures_and_curves_are_lines():
    fig, ax = figures.panels()
    x = np.linspace(0, 1, 2 * figures.MANY)
    ax.plot(x, x, "o")
    ax.plot(x, x)
    ax.scatter(x, x)
    ax.scatter(x[:9], x[:9])
    stream = io.StringIO()
    fig.savefig(stream, format="svg")
    assert stream.getvalue().count("<image") == 2
    assert [bool(a.get_rasterized()) for a in (*ax.get_lines(), *ax.collections)] == [
        True, False, True, False,
    ]  # fmt: skip


def test_pages_and_explorers_use_the_same_colors():
    """In the light, to the digit; in the dark they are others, and of all learners too."""
    root = Path(__file__).parents[2]
    text = (root / "utils/explorers/explore.css").read_text(encoding="utf-8")
    assert "--c-pooled:" not in (root / "site/static/type.css").read_text(encoding="utf-8")
    light, dark = re.split(r'data-theme="dark"\]', text, maxsplit=1)
    for model in (*MODELS, "noise"):
        if model != "bayes":  # that of the text
            assert re.search(rf"--c-{model}: (#\w+);", light)[1] == figures.COLORS[model]
            assert re.search(rf"--c-{model}: (#\w+);", dark)[1] != figures.COLORS[model]
    assert re.search(r"--ink: (#\w+);", light)[1] == figures.COLORS["bayes"]


def test_simulation_shows_means_and_standard_errors():
    _, ax = figures.panels()
    figures.simulation(ax, [10, 20], [[1.0, 3.0], [5.0, 5.0, 8.0]], model="attention")
    points, _, (bars,) = ax.containers[0].lines
    np.testing.assert_allclose(points.get_ydata(), [2, 6])
    ends = [segment[:, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(ends, [[1, 3], [5, 7]])
    assert points.get_linestyle() == "None"
    figures.simulation(ax, [10], [2.0], error=[0.5])
    np.testing.assert_allclose(ax.containers[1].lines[2][0].get_segments()[0][:, 1], [1.5, 2.5])


def test_stored_estimates_are_drawn_as_they_are():
    kept = [Estimate(1.0, 0.5, 9), Estimate(3.0, 0.25, 9)]
    mean, error = figures.mean_and_error(kept)
    assert mean.tolist() == [1.0, 3.0]
    assert error.tolist() == [0.5, 0.25]


def test_single_trials_have_no_error():
    _, ax = figures.panels()
    for values in ([[1.0], [2.0, 3.0]], [1.0, 2.0]):
        with pytest.raises(ValueError, match="2 trials"):
            figures.simulation(ax, [1, 2], values)


def test_unknown_models_are_refused():
    _, ax = figures.panels()
    with pytest.raises(ValueError, match="model = 'cnn'"):
        figures.theory(ax, [1], [1], model="cnn")
    with pytest.raises(ValueError, match="cols"):
        figures.panels(1, 4)


def test_heat_keeps_orientation_scale_and_contours():
    _, ax = figures.panels()
    z = np.arange(6.0).reshape(2, 3)
    maps.heat(ax, [1, 2, 3], [10, 20], z, levels=[2.5], label="error")
    mesh = ax.collections[0]
    np.testing.assert_array_equal(mesh.get_array(), z)
    assert mesh.get_clim() == (0, 5)
    assert ax.texts or len(ax.collections) > 1
    _, ax = figures.panels()
    maps.heat(ax, [1, 2, 3], [10, 20], z, center=1.0)
    assert ax.collections[0].get_clim() == (-3, 5)


def test_numbers_on_a_map_can_be_read_where_it_is_dark_and_where_it_is_light():
    """On every color of the maps of the book the chosen letters are at least 3.9:1."""
    z = np.linspace(-1, 1, 81)
    for options in ({"center": 0.0}, {}, {"cmap": "viridis"}):
        _, ax = figures.panels()
        maps.heat(ax, np.arange(81), [1.0, 2.0], np.tile(z, (2, 1)), **options)
        for k in range(81):
            maps.number(ax, f"{k}", k, 2.0)
        grounds = [maps.below(ax, k, 2.0) for k in range(81)]
        written = [text.get_color() for text in ax.texts]
        assert set(written) == {figures.COLORS["bayes"], "white"}
        assert min(map(contrast, written, grounds)) >= 3.9
        other = {"white": figures.COLORS["bayes"], figures.COLORS["bayes"]: "white"}
        assert min(contrast(other[w], g) for w, g in zip(written, grounds, strict=True)) < 2
    _, ax = figures.panels()
    maps.number(ax, "no map", 0, 0)
    assert ax.texts[0].get_color() == figures.COLORS["bayes"]


def test_marks_follow_their_axis():
    _, ax = figures.panels()
    figures.mark(ax, "here", x=2.0)
    figures.mark(ax, "there", y=3.0)
    assert [text.get_text() for text in ax.texts] == ["here", "there"]
    assert list(ax.get_lines()[0].get_xdata()) == [2, 2]
    assert list(ax.get_lines()[1].get_ydata()) == [3, 3]


def test_finish_names_scales_and_legend():
    _, (ax, below) = figures.panels(2, share="x")
    figures.theory(ax, [1, 10], [1, 2], label="curve")
    figures.finish(ax, x="α", y="error", log="xy", title="title", ylim=(0.5, 4))
    figures.finish(below, x="α", y="error")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), below.get_xlabel()) == ("", "α")
    assert ax.get_ylim() == (0.5, 4)
    assert ax.get_legend().get_texts()[0].get_text() == "curve"
    assert below.get_legend() is None


def test_direct_labels_stand_at_line_ends_and_apart():
    _, ax = figures.panels()
    for i, model in enumerate(MODELS):
        figures.theory(ax, [1, 2, 3], [0, 1, 1 + i / 1000], model=model, label=model)
    figures.finish(ax, legend="direct")
    offsets = [1000 * text.xy[1] for text in ax.texts]
    assert [text.get_text() for text in ax.texts] == MODELS
    assert len(set(np.round(offsets, 6))) == len(MODELS)
    shifts = np.array([text.xyann[1] for text in ax.texts])
    assert np.all(np.diff(shifts) > 10)


def test_shades_end_in_the_full_color():
    tones = figures.shades("attention", 4)
    np.testing.assert_allclose(tones[-1], to_rgb(figures.COLORS["attention"]))
    saturation = [rgb_to_hsv(tone)[1] for tone in tones]
    assert np.all(np.diff(saturation) > 0)
    np.testing.assert_allclose(figures.shades(None, 1)[0], to_rgb(figures.COLORS["bayes"]))


def test_the_same_figure_is_the_same_bytes():
    def draw(kind):
        fig, ax = figures.panels()
        figures.theory(ax, [1, 2], [1, 2], model="attention", label="a")
        figures.mark(ax, "m", x=1.5)
        figures.finish(ax, x="x", y="y", legend="direct")
        stream = io.BytesIO()
        fig.savefig(stream, format=kind, metadata={"Date": None} if kind == "svg" else None)
        return stream.getvalue()

    assert draw("png") == draw("png")
    assert draw("svg") == draw("svg")


def test_type_stays_legible_on_a_telephone():
    """A figure shrunk to 340 pixels keeps type of 8 pixels or more."""
    for rows, cols in [(1, 1), (2, 1), (1, 2), (2, 2)]:
        fig, _ = figures.panels(rows, cols)
        shrink = 340 / (fig.get_size_inches()[0] * fig.dpi)
        smallest = min(mpl.rcParams[key] for key in ("font.size", "legend.fontsize"))
        assert smallest / 72 * fig.dpi * shrink > 7.5
