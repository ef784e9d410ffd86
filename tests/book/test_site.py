"""The built site: complete, linked, captioned, and free of anything loaded from another host."""

from __future__ import annotations

import functools
import inspect
import re
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup

from scripts.build_book import HTML, VERSIONS, toc_pages
from scripts.contract import STATUSES
from scripts.run_notebooks import ROOT, chapters
from scripts.statements import statements

PAGES = toc_pages()
CHAPTERS = [page for page in PAGES if page.startswith("chapters/")]
REPOSITORY = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]


@functools.cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, site: Path) -> Path:
    return site / f"{request.param}.html"


@pytest.fixture(params=CHAPTERS)
def chapter(request: pytest.FixtureRequest, site: Path) -> Path:
    return site / f"{request.param}.html"


def test_every_chapter_is_in_the_table_of_contents() -> None:
    assert {f"chapters/{path.stem}" for path in chapters()} == set(CHAPTERS)


def test_page_exists_and_has_a_title(page: Path) -> None:
    assert soup(page).find("h1")


def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for tag in soup(page).find_all(["a", "img", "link", "script", "source"]):
        address = urlsplit(tag.get("href") or tag.get("src") or "")
        if address.scheme or address.netloc or not (address.path or address.fragment):
            continue
        target = (page.parent / unquote(address.path)).resolve() if address.path else page
        if not target.exists():
            broken.append(tag.get("href") or tag.get("src"))
        elif address.fragment and target.suffix == ".html":
            fragment = unquote(address.fragment)
            if not soup(target).find(id=fragment) and not soup(target).find(
                attrs={"name": fragment}
            ):
                broken.append(tag.get("href"))
    assert broken == []


def test_page_names_no_resource_of_another_host(page: Path) -> None:
    loaded = [tag.get("src") for tag in soup(page).find_all(src=True)]
    loaded += [
        tag["href"]
        for tag in soup(page).find_all("link", href=True)
        if set(tag.get("rel", [])) & {"stylesheet", "preload", "icon", "preconnect", "prefetch"}
    ]
    assert [url for url in loaded if re.match(r"(?:https?:)?//", url)] == []


def test_style_sheets_load_nothing_from_another_host(site: Path) -> None:
    foreign = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//")
    assert [s.name for s in site.rglob("*.css") if foreign.search(s.read_text())] == []


def test_every_image_says_what_it_shows(page: Path) -> None:
    article = soup(page).find("article")
    images = article.find_all("img")
    assert [i["src"] for i in images if re.search(r"^$|\.(png|svg)$", i.get("alt", ""))] == []


def test_every_figure_of_a_chapter_has_its_caption(chapter: Path) -> None:
    article = soup(chapter).find("article")
    assert [i["src"] for i in article.find_all("img") if not i.find_parent("figure")] == []
    assert all(figure.find("figcaption") for figure in article.find_all("figure"))


def test_every_solution_is_folded_around_its_cells(chapter: Path) -> None:
    for solution in soup(chapter).select("div.solution"):
        assert "dropdown" in solution["class"]
        assert solution.select("div.cell")


def test_chapter_can_be_downloaded_and_launched(chapter: Path, site: Path) -> None:
    name = f"chapters/{chapter.stem}.ipynb"
    addresses = {tag["href"] for tag in soup(chapter).find_all("a", href=True)}
    repository = REPOSITORY.removeprefix("https://github.com/")
    assert f"../_sources/{name}" in addresses
    assert (site / "_sources" / name).exists()
    assert f"https://colab.research.google.com/github/{repository}/blob/main/{name}" in addresses
    binder = f"https://mybinder.org/v2/gh/{repository}/main?urlpath=lab/tree/{name}"
    assert binder in addresses


def test_execution_page_lists_chapters_and_versions(site: Path) -> None:
    tables = soup(site / "execution.html").find_all("table")
    links = [link["href"] for link in tables[0].find_all("a")]
    assert links == [f"{page}.html" for page in CHAPTERS]
    assert set(VERSIONS) <= {cell.text for cell in tables[1].find_all("td")}


def test_api_page_documents_every_public_name(site: Path) -> None:
    documented = {tag["id"] for tag in soup(site / "api.html").find_all(id=True)}
    for path in (ROOT / "utils").glob("[!_]*.py"):
        module = import_module(f"utils.{path.stem}")
        public = [
            f"{module.__name__}.{name}"
            for name, value in vars(module).items()
            if (inspect.isclass(value) or inspect.isfunction(value))
            and value.__module__ == module.__name__
            and not name.startswith("_")
        ]
        assert [name for name in public if name not in documented] == []


def test_no_page_is_left_over() -> None:
    built = {str(p.relative_to(HTML).with_suffix("")) for p in (HTML / "chapters").glob("*.html")}
    assert built == set(CHAPTERS)


def test_statements_page_holds_every_statement_with_its_number(site: Path) -> None:
    article = soup(site / "statements.html").find("article")
    count, *tables = article.find_all("table")
    rows = [row.find_all("td") for table in tables for row in table.find_all("tr")[1:]]
    expected = [found for path in chapters() for found in statements(path)]
    assert len(rows) == len(expected) > 0
    for cells, statement in zip(rows, expected, strict=True):
        links = [cell.find("a")["href"] for cell in cells[:2]]
        assert links[0] == links[1]
        assert links[0].endswith(f"#{statement.label}")
        assert re.fullmatch(r"[A-Z][a-z]+ [\dA-Z]+\.\d+", cells[0].get_text(strip=True))
        assert cells[2].get_text(strip=True) == (statement.status or "not yet said")
    numbers = [cells[0].get_text(strip=True) for cells in rows]
    assert len(set(numbers)) == len(numbers)
    counts = {row("td")[0].text: int(row("td")[1].text) for row in count("tr")[1:]}
    assert counts == {name: sum(s.status == name for s in expected) for name in STATUSES}


def test_landing_page_links_to_the_statements(site: Path) -> None:
    assert soup(site / "intro.html").select("article a[href^='statements.html']")
