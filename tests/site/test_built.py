"""The built site: complete, linked, captioned, and free of anything loaded from another host."""

from __future__ import annotations

import functools
import gzip
import inspect
import re
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from PIL import Image

from scripts.book.api_pages import modules as api_modules
from scripts.book.build_book import HTML
from scripts.book.chapter import STATUSES
from scripts.book.executed import VERSIONS
from scripts.book.run_notebooks import ROOT, chapters
from scripts.book.statements import statements
from tests.site.conftest import CHAPTERS, PAGES

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
    listed = {tag["href"] for tag in soup(site / "api.html").select("article td a[href]")}
    for package, modules in api_modules().items():
        page = f"api/{package.rpartition('.')[2]}.html"
        assert page in listed
        documented = {t["id"] for t in soup(site / page).find_all(id=True)}
        public = [
            f"{module.__name__}.{name}"
            for module in map(import_module, modules)
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


BLOCKING = 80_000  # compressed bytes of scripts that delay the text


def test_little_stands_between_a_reader_and_the_text(page: Path) -> None:
    """What the whole page weighs is measured in a browser, see `test_pages.py`."""
    head = soup(page).find("head")
    total = 0
    for tag in head.find_all("script", src=True):
        if not (tag.has_attr("defer") or tag.has_attr("async") or tag.get("type") == "module"):
            path = page.parent / unquote(urlsplit(tag["src"]).path)
            total += len(gzip.compress(path.resolve().read_bytes()))
    assert total < BLOCKING
    assert "fontawesome" not in str(head)
    assert soup(page).select("[class*='fa-']:not(svg)") == []


def test_figures_load_when_near_in_room_kept_for_them(chapter: Path) -> None:
    for image in soup(chapter).select("figure img"):
        assert image["loading"] == "lazy"
        assert int(image["width"]) > 100
        assert int(image["height"]) > 100


def test_figures_have_a_palette(site: Path) -> None:
    for path in (site / "_images").glob("*.png"):
        with Image.open(path) as image:
            assert image.mode == "P", path.name


def test_the_theme_is_known_before_the_first_paint(page: Path) -> None:
    head = str(soup(page).find("head"))
    first = head.index("prefers-color-scheme")
    assert first < head.index('rel="stylesheet"')
    assert first < head.index("<script src")


def test_every_id_stands_once(page: Path) -> None:
    ids = [tag["id"] for tag in soup(page).find_all(id=True)]
    assert sorted({name for name in ids if ids.count(name) > 1}) == []


def test_the_title_of_a_solution_leads_nowhere(chapter: Path) -> None:
    titles = soup(chapter).select("div.solution > p.admonition-title")
    assert len(titles) == len(soup(chapter).select("div.solution"))
    assert [title.text for title in titles if title.find("a")] == []


def test_every_cell_of_a_chapter_is_on_its_page_in_order(chapter: Path) -> None:
    """In folds before the exercises, below them as they were; what a fold holds, it says."""
    notebook = nbformat.read(ROOT / "chapters" / f"{chapter.stem}.ipynb", as_version=4)
    written = [cell.source.strip() for cell in notebook.cells if cell.cell_type == "code"]
    shown = [code.get_text().strip() for code in soup(chapter).select("div.cell > .cell_input pre")]
    shown += [
        c.get_text().strip() for c in soup(chapter).select("details.folded > .cell_input pre")
    ]
    assert sorted(shown) == sorted(written)
    above = [c.get_text().strip() for c in soup(chapter).select("details.code .cell_input pre")]
    assert above == [source for source in written if source in above]
    for fold in soup(chapter).select("details.code"):
        checks = len(fold.select("details.agreement"))
        told = re.search(r"(\d+) checks?", fold.summary.get_text())
        assert (int(told[1]) if told else 0) == checks


def test_every_agreement_in_the_text_has_its_mark_and_its_card(chapter: Path) -> None:
    """All but those that follow no text, whose fold counts them."""
    page = soup(chapter)
    cards = {card["id"]: card for card in page.select(".card-of-check[popover]")}
    assert [b["popovertarget"] for b in page.select("button.check")] == list(cards)
    marked = {code.text for card in cards.values() for code in card.select(".claim code")}
    folded = {code.text for code in page.select("details.code details.agreement > summary > code")}
    assert marked <= folded
    assert len(folded - marked) <= 1 + len(folded) // 10


def test_page_describes_itself(page: Path) -> None:
    def content(**names: str) -> str:
        tag = soup(page).find("meta", attrs=names)
        return tag["content"] if tag else ""

    told = content(name="description")
    assert 20 <= len(told) <= 400
    assert not re.search(r"\\\\|\$|\.\.\.$|\ue000", told)
    assert content(property="og:description") == told
    assert content(name="twitter:card") == "summary_large_image"
    assert content(property="og:image").startswith("https://")
    assert soup(page).find("link", rel="canonical")["href"].endswith(f"/{page.name}")


def test_the_root_has_a_title_and_sends_on(site: Path) -> None:
    root = soup(site / "index.html")
    assert root.title.text == "Attention and the needle"
    assert root.find("meta", attrs={"name": "description"})["content"]
    assert root.find("link", rel="canonical")["href"].endswith("/intro.html")
    assert root.find("meta", attrs={"http-equiv": "refresh"})["content"] == "0; url=intro.html"


def test_the_page_for_lost_readers_stands_alone(site: Path) -> None:
    lost = soup(site / "404.html")
    assert "no such page" in lost.h1.text.lower()
    assert lost.find_all(["script", "link", "img"]) == []
    assert {urlsplit(link["href"]).scheme for link in lost.find_all("a")} == {"https"}


def test_readers_without_scripts_are_told(chapter: Path) -> None:
    assert "TeX" in soup(chapter).select_one("article noscript").text


def test_references_lead_to_the_paper_and_back_to_the_text(site: Path) -> None:
    entries = soup(site / "references.html").select("div.citation")
    assert len(entries) > 20
    recent = [e for e in entries if int(re.findall(r"\b(?:1[89]|20)\d\d\b", e.p.text)[-1]) >= 2000]
    address = re.compile(r"^https://(?:doi\.org|arxiv\.org|\w+\.)")  # some older papers have none
    assert [entry.text[:40] for entry in recent if not entry.find("a", href=address)] == []
    assert [e.text[:40] for e in entries if not e.find("a", href=re.compile(r"^\w[^:]*#"))] == []


def test_what_is_read_aloud_of_a_figure_is_a_sentence(chapter: Path) -> None:
    spoken = [image["alt"] for image in soup(chapter).select("figure img")]
    assert [text for text in spoken if not re.match(r"Figure \w+\.\d+\. \S", text)] == []
    assert [text for text in spoken if len(text) > 300] == []


def test_no_line_begins_with_a_comma(chapter: Path) -> None:
    formula = r'<span class="math notranslate nohighlight">[^<]*</span>'
    glued = rf'<span class="glued">[^<]*{formula}[^<]*</span>'
    text = re.sub(glued, "", chapter.read_text(encoding="utf-8"))
    assert re.findall(rf"{formula}[,.;:?!)]|[(\[]{formula}", text) == []


def test_every_mention_of_a_figure_is_a_link(page: Path) -> None:
    article = soup(page).find("article")
    unlinked = [
        text.strip()[:60]
        for text in article.find_all(string=re.compile(r"Figures? [A-Z0-9]\.\d"))
        if not text.find_parent(["a", "figcaption", "pre", "code", "h1", "h2", "h3"])
        and "admonition-title" not in text.parent.get("class", [])
    ]
    assert unlinked == []
