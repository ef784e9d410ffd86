"""The whole book as one PDF, printed from the built site and opened again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pypdf import PdfReader
from pypdf.generic import IndirectObject

from scripts.pdf import TITLE, book, links
from tests.site.conftest import PAGES

pytestmark = pytest.mark.xdist_group("pdf")


@pytest.fixture(scope="module")
def pdf(site: Path, tmp_path_factory: pytest.TempPathFactory) -> PdfReader:
    return PdfReader(book(PAGES, tmp_path_factory.mktemp("pdf") / "book.pdf"))


def squeezed(text: str) -> str:
    return re.sub(r"\W+", "", text)


def test_every_page_of_the_book_has_a_bookmark_where_it_begins(pdf: PdfReader) -> None:
    marks = [mark for mark in pdf.outline if not isinstance(mark, list)]
    assert len(marks) == len(PAGES)
    starts = [pdf.get_destination_page_number(mark) for mark in marks]
    assert starts == sorted(set(starts))
    for mark, start in zip(marks, starts, strict=True):
        head = squeezed(pdf.pages[start].extract_text())[:400]
        assert squeezed(re.sub(r"^\d+\. ", "", mark.title))[:20] in head, mark.title
    assert pdf.metadata is not None
    assert pdf.metadata.title == TITLE


def test_the_table_of_contents_tells_the_page_and_leads_there(pdf: PdfReader) -> None:
    numbers = {page.indirect_reference.idnum: k for k, page in enumerate(pdf.pages, 1)}
    first = next(pdf.get_destination_page_number(m) for m in pdf.outline if not isinstance(m, list))
    told, led = [], []
    for page in pdf.pages[:first]:
        told += [int(n) for n in re.findall(r" (\d+)$", page.extract_text(), re.M)][:-1]
        led += [numbers[note["/Dest"][0].idnum] for note in links(page)]
    assert len(led) > 100
    assert sorted(set(told)) == sorted(set(led))


def test_links_within_the_book_stay_in_the_file(pdf: PdfReader) -> None:
    inside = 0
    for page in pdf.pages:
        for note in links(page):
            if "/Dest" in note:
                assert isinstance(note["/Dest"][0], IndirectObject)
                inside += 1
            else:
                assert "127.0.0.1" not in str(note["/A"].get_object().get("/URI"))
    assert inside > 1000


def test_pages_are_numbered_throughout(pdf: PdfReader) -> None:
    for number, page in list(enumerate(pdf.pages, 1))[::9]:
        assert re.search(rf"\b{number}$", page.extract_text().strip()), number
