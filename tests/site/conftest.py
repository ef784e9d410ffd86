"""The built site, a browser on it, and pages that several tests look at, each opened once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scripts.book.build_book import HTML, toc_pages
from scripts.check.browser import WATCH, QuietHandler, launched, opened, serve
from tests.site.looks import resize
from tests.site.reader import SUB_PATH, Site
from tests.site.sliders import pages
from utils.explorers.values import EXPLORERS

PAGES = toc_pages()
OTHERS = ["search", "api/laws", "api/sweep"]  # not in the file of contents; two pages of modules
SEEN = [*PAGES, *(name for name in OTHERS if (HTML / f"{name}.html").exists())]
CHAPTERS = [page for page in PAGES if page.startswith("chapters/")]
DARK, LIGHT = (
    f"() => {{ document.documentElement.dataset.theme = '{theme}' }}" for theme in ("dark", "light")
)
LONG = ("pdf", "whole", "reader", "lab", "others", "guide")  # groups of half a minute or more


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long groups first, so that two workers end at about the same time."""

    def place(item: pytest.Item) -> int:
        mark = item.get_closest_marker("xdist_group")
        return LONG.index(mark.args[0]) if mark and mark.args[0] in LONG else len(LONG)

    items.sort(key=place)


def of_each(names: list[str]) -> list[Any]:
    """Names as parameters; all tests of one run on one worker, which opens its page once."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names]


@pytest.fixture(scope="session")
def site() -> Path:
    """The built site."""
    if not (HTML / "index.html").exists():
        pytest.fail("there is no built site: run `make book` first")
    return HTML


@pytest.fixture(scope="module")
def place(site: Path) -> dict[str, str]:
    """The page on which each explorer stands."""
    return pages(site)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as instance:
        yield instance


@pytest.fixture(scope="session")
def chromium(playwright: Any) -> Iterator[Any]:
    with launched(playwright) as instance:
        yield instance


@pytest.fixture(scope="module")
def live(site: Path, playwright: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site below a sub-path, and a browser of its own with an empty cache."""
    root = tmp_path_factory.mktemp("host")
    (root / SUB_PATH).parent.mkdir(parents=True)
    (root / SUB_PATH).symlink_to(site)
    handler = functools.partial(QuietHandler, directory=str(root))
    with launched(playwright) as instance, ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/{SUB_PATH}"
        context = instance.new_context(reduced_motion="reduce")
        context.add_init_script(WATCH)
        yield Site(address, context, server)
        context.close()
        server.shutdown()


@pytest.fixture(scope="session")
def host(site: Path) -> Iterator[str]:
    with serve(site) as address:
        yield address


@pytest.fixture
def explorer(chromium: Any, host: str, place: dict[str, str]) -> Callable[[str], Any]:
    """Opens the page of an explorer; the formulas around it, of which it has none, stay unset."""
    return lambda name: opened(chromium, f"{host}/{place[name]}.html", formulas=False)


@pytest.fixture(scope="module", params=of_each(sorted(EXPLORERS)))
def alone(
    request: pytest.FixtureRequest, chromium: Any, host: str, place: dict[str, str]
) -> Iterator[Any]:
    """The page of an explorer, opened once for all tests that take it; `page.name` says whose."""
    address = f"{host}/{place[request.param]}.html"
    with opened(chromium, address, formulas=False) as page:
        page.name = request.param
        yield page


@pytest.fixture
def played(alone: Any) -> Any:
    """The same page, its explorer as at first."""
    inside = f'[data-explorer="{alone.name}"]'
    alone.locator(f"{inside} button", has_text="Reset").click()
    return alone


@pytest.fixture(scope="module", params=of_each(SEEN))
def wide(request: pytest.FixtureRequest, chromium: Any, host: str) -> Iterator[Any]:
    """A page on a wide screen, in the light; `page.name` says which."""
    with opened(chromium, f"{host}/{request.param}.html") as page:
        page.name = request.param
        page.wait_for_load_state("networkidle")  # its requests are counted
        yield page


@pytest.fixture
def upright(wide: Any) -> Any:
    """The same page in the width of a telephone."""
    resize(wide, 380, 800)
    return wide


@pytest.fixture
def dark(wide: Any) -> Any:
    """The same page, wide again, once its reader has chosen the dark."""
    if wide.viewport_size["width"] != 1280:
        resize(wide, 1280, 900)
    wide.evaluate(DARK)
    return wide


@pytest.fixture(params=of_each(["intro", "your_numbers", "chapters/03_separation"]))
def phone(request: pytest.FixtureRequest, chromium: Any, host: str) -> Iterator[Any]:
    """A page that was opened on a telephone."""
    with opened(chromium, f"{host}/{request.param}.html", width=380, height=800) as page:
        page.name = request.param
        yield page
