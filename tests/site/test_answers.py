"""The place for an answer, in a browser: judged by the real checks, kept, exported, by keyboard."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from exercises.places import label
from scripts.book.answers import below
from scripts.book.run_notebooks import ROOT

NAME = label("model", "missed")
RIGHT = "from scipy.special import ndtri\ndef f(limit, power):\n    return limit + ndtri(power)"
PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>answers</title><link rel="stylesheet" href="guide.css">
<button data-live="start">Run this page</button><main>{place}</main>
<script>
let started;
const ready = new Promise((resolve) => {{ started = resolve; }});
document.querySelector("[data-live]").onclick = (click) => {{
  click.target.hidden = true;
  started();
}};
window.book = {{ python: (code) => ready.then(() => window.run(code)) }};
</script><script src="guide.js"></script>"""


def run(code: str) -> str:
    """What the page's Python does with code, here."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    return printed.getvalue().strip()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page with one exercise, in a browser that may ask for nothing else."""
    place = below(NAME).partition("```{raw} html\n")[2].partition("\n```")[0]
    static = ROOT / "site" / "static"
    files = {"guide.css": "text/css", "guide.js": "text/javascript"}

    def answer(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        if name in files:
            body = (static / name).read_text(encoding="utf-8")
            route.fulfill(body=body, content_type=files[name])
        else:
            asked.append(route.request.url)
            route.fulfill(body=PAGE.format(place=place), content_type="text/html")

    asked: list[str] = []
    context = chromium.new_context(viewport={"width": 380, "height": 800}, accept_downloads=True)
    context.route("**/*", answer)
    page = context.new_page()
    page.expose_function("run", run)
    page.goto("http://book.test/")
    yield page
    assert set(asked) <= {"http://book.test/", "http://book.test/favicon.ico"}
    context.close()


def said(page: Any, state: str) -> str:
    page.wait_for_selector(f".exercise-answer[data-state={state}]")
    return str(page.inner_text(".exercise-words"))


def test_answers_are_judged_kept_and_exported(page: Any) -> None:
    page.fill("textarea", "lambda limit, power: limit")
    page.click("text=Check")
    assert "half of the time" in said(page, "wrong")
    page.fill("textarea", RIGHT)
    page.press("textarea", "Control+Enter")
    assert said(page, "right").startswith("✓")
    page.reload()
    assert page.input_value("textarea") == RIGHT
    assert "found before" in said(page, "right")
    with page.expect_download() as waiting:
        page.click("text=Export all my answers")
    kept = json.loads(waiting.value.path().read_text(encoding="utf-8"))
    assert kept == {NAME: {"source": RIGHT, "right": True}}


def test_it_works_by_keyboard_on_a_telephone(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    page.focus("textarea")
    page.keyboard.type("1 / 0")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Check"
    page.keyboard.press("Enter")
    assert "ZeroDivisionError" in said(page, "wrong")
    page.fill("textarea", "'</textarea><b>'")
    page.press("textarea", "Control+Enter")
    page.wait_for_function(
        "document.querySelector('.exercise-words').textContent.includes('asked')"
    )
    assert page.locator(".exercise-answer b").count() == 0
    assert page.evaluate("document.querySelector('label').htmlFor") == f"answer-{NAME}"
