"""Pages are changed tag by tag: what is named changes, all else stays to the letter."""

from __future__ import annotations

import sys

import pytest

from scripts.book.run_notebooks import ROOT

sys.path.insert(0, str(ROOT / "site" / "ext"))
pytest.importorskip("sphinx")

import needle_html
import needle_rewriting
import needle_svg
import needle_verdicts
from sphinx.errors import ExtensionError

MATH = '<span class="math notranslate nohighlight">{}</span>'
THEME = (
    '<!DOCTYPE html><html><head><script data-cfasync="false">old()</script>'
    '<link rel="stylesheet" href="_static/a.css"/>'
    + '<link href="_static/vendor/fontawesome/a.woff2"/>'
    * 4
    + '<script src="_static/vendor/fontawesome/6/js/all.min.js?digest=1"></script>'
    '<script src="_static/own.js"></script></head><body>'
    '<script>document.write(`<button class="btn search-button-field" aria-label="Search">'
    '<i class="fa-solid fa-magnifying-glass"></i></button>`);</script>'
    "<article><h1>T</h1>{}</article></body></html>"
)


class Louder(needle_html.Editor):
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "b":
            self.replace(self.here, self.behind, "<strong>")

    def handle_endtag(self, tag: str) -> None:
        if tag == "b":
            self.replace(self.here, self.after(), "</strong>")


@pytest.mark.parametrize(
    "rest", ["", "<br />", "&nbsp;&#8203;", "<clipPath>\n</clipPath >", "<!-- b -->"]
)
def test_what_is_not_named_stays_to_the_letter(rest: str) -> None:
    page = f"{rest}<p class='x'  id=y>a < b</p><script>'<b>'</script>\n{rest}"
    assert Louder(page).edited() == page
    assert Louder(f"{page}<b\n>c</b>{rest}").edited() == f"{page}<strong>c</strong>{rest}"


def finished(inside: str, theme: str = THEME) -> str:
    icons = needle_rewriting.Icons()
    return needle_rewriting.finish(theme.replace("{}", inside), "page", {"a.png": (3, 4)}, icons)


def test_a_page_is_changed_where_it_should_be() -> None:
    x, y = MATH.format("\\(x\\)"), MATH.format("\\(y\\)")
    page = finished(f'<h2>S</h2><p>({x}), “{y}” or {x} z</p><img alt="" src="_images/a.png"/>')
    assert f'<span class="glued">({x}),</span> <span class="glued">“{y}”</span> or {x} z' in page
    assert '<img loading="lazy" width="3" height="4" alt="" src="_images/a.png"/>' in page
    assert '<script defer src="_static/own.js">' in page
    assert "fontawesome" not in page and "old()" not in page and "aria-label=" not in page
    assert '`<button class="btn search-button-field"><svg class="icon fa-solid' in page


def test_a_theme_that_does_not_fit_stops_the_build() -> None:
    with pytest.raises(ExtensionError, match="page: 0 times instead of 1: theme"):
        finished("", THEME.replace("data-cfasync", "data-other"))
    with pytest.raises(ExtensionError, match="no icon nowhere"):
        finished('<i class="fa-solid fa-nowhere"></i>')


def test_a_drawing_takes_the_inks_and_the_ids_of_its_page() -> None:
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        ' viewBox="0 0 500 90"><metadata/><g id="axes"><path id="p1" d="M 1.2345 2"'
        ' style="fill: #007A58"/><use xlink:href="#p1"/></g>'
        '<text x="1" style="font-size: 11px; fill: #57606a">η_w</text></svg>'
    )
    told = needle_svg.inline(drawing, "f1", 'say "x"')
    assert 'aria-label="say &quot;x&quot;"' in told and 'class="plot broad"' in told
    assert '<g><path id="f1-p1" d="M 1.23 2" style="fill: var(--c-pooled)" />' in told
    assert '<use xlink:href="#f1-p1" />' in told and "metadata" not in told
    assert 'η<tspan class="sub" dy=".25em">w</tspan>' in told
    with pytest.raises(ValueError, match="no viewBox"):
        needle_svg.inline("<svg/>", "f1", "")


def test_a_verdict_tells_its_own_rate_of_false_alarm() -> None:
    said = "agrees over 20 trials: max |z| 0.8 ≤ 4.1 in 3 rows; false alarm: 1 in 10,000"
    assert needle_verdicts.sentence(said).endswith("(false alarm: 1 in 10,000)")
