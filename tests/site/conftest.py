"""The built site, a browser on it, and pages that several tests look at, each opened once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.browser import browser, opened, serve
from scripts.build_book import HTML, toc_pages

PAGES = toc_pages()
CHAPTERS = [page for page in PAGES if page.startswith("chapters/")]


@pytest.fixture(scope="session")
def site() -> Path:
    """The built site."""
    if not (HTML / "index.html").exists():
        pytest.fail("there is no built site: run `make book` first")
    return HTML


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with browser() as instance:
        yield instance


@pytest.fixture(scope="session")
def host(site: Path) -> Iterator[str]:
    with serve(site) as address:
        yield address


def of_each(names: list[str]) -> list[Any]:
    """Pages as parameters; all tests of a page run on one worker, which opens it once."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]


@pytest.fixture(scope="module", params=of_each(PAGES))
def wide(request: pytest.FixtureRequest, chromium: Any, host: str) -> Iterator[Any]:
    """A page on a wide screen, in the light; `page.name` says which."""
    with opened(chromium, f"{host}/{request.param}.html") as page:
        page.name = request.param
        yield page


@pytest.fixture(scope="module", params=of_each(PAGES))
def dark(request: pytest.FixtureRequest, chromium: Any, host: str) -> Iterator[Any]:
    """A page on a wide screen, in the dark."""
    with opened(chromium, f"{host}/{request.param}.html", theme="dark") as page:
        page.name = request.param
        yield page


@pytest.fixture(scope="module", params=of_each(PAGES))
def phone(request: pytest.FixtureRequest, chromium: Any, host: str) -> Iterator[Any]:
    """A page on a telephone."""
    with opened(chromium, f"{host}/{request.param}.html", width=380, height=800) as page:
        page.name = request.param
        yield page
