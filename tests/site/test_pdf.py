"""The whole book as one PDF, printed from the built site and opened again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2 as pdfium
import pytest
from pypdf import PdfReader
from pypdf.generic import IndirectObject

from scripts.book.pdf import TITLE, book, links
from tests.site.conftest import PAGES

pytestmark = pytest.mark.xdist_group("pdf")


PAPER, MARGINS = 297, (14, 20)  # millimetres, of A4: its height, what is free above and below
CAPTION = 10  # millimetres of two lines of a caption, which stay with their figure
BLANK, INK = 0.25, 240  # share of a page that may be left, grey value below which something stands
CURVE = 20  # segments of a path, above those of frames and rules


@pytest.fixture(scope="module")
def path(site: Path, chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return book(PAGES, tmp_path_factory.mktemp("pdf") / "book.pdf", chromium)


@pytest.fixture(scope="module")
def pdf(path: Path) -> PdfReader:
    return PdfReader(path)


def squeezed(text: str) -> str:
    return re.sub(r"\W+", "", unicodedata.normalize("NFKC", text))


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


def test_pages_are_numbered_throughout(path: Path) -> None:
    with pdfium.PdfDocument(path) as document:
        for number, page in enumerate(document, 1):
            text = page.get_textpage().get_text_range().strip()
            assert re.search(rf"\b{number}$", text), number


def test_references_tell_the_addresses_of_their_links(pdf: PdfReader) -> None:
    marks = {mark.title: mark for mark in pdf.outline if not isinstance(mark, list)}
    first = pdf.get_destination_page_number(marks["References"])
    told = "".join(page.extract_text() for page in pdf.pages[first:])
    told = re.sub(r"\s+", "", told)
    assert "(https://arxiv.org/abs/2509.25153)" in told
    assert told.count("(https://") > 30


def test_every_figure_is_printed_on_the_pages_of_its_chapter(
    path: Path, pdf: PdfReader, site: Path
) -> None:
    """Each waits on its page for a reader to come near, and the printer comes near none."""
    starts = [pdf.get_destination_page_number(m) for m in pdf.outline if not isinstance(m, list)]
    pictures = [pdfium.raw.FPDF_PAGEOBJ_IMAGE]
    with pdfium.PdfDocument(path) as document:
        for name, start, end in zip(PAGES, starts, [*starts[1:], len(document)], strict=True):
            pages = (document[number] for number in range(start, end))
            printed = sum(1 for page in pages for _ in page.get_objects(filter=pictures))
            shown = (site / f"{name}.html").read_text(encoding="utf-8").count("_images/")
            assert printed >= shown, name  # drawings hold clouds of points as pictures, too


def figures(page: pdfium.PdfPage) -> Iterator[float]:
    """The millimetres below the margin at which each picture or drawn curve ends."""
    kinds = [pdfium.raw.FPDF_PAGEOBJ_IMAGE, pdfium.raw.FPDF_PAGEOBJ_PATH]
    for thing in page.get_objects(filter=kinds):
        picture = thing.type == kinds[0]
        if picture or pdfium.raw.FPDFPath_CountSegments(thing.raw) > CURVE:
            yield (1 - thing.get_bounds()[1] / page.get_height()) * PAPER - MARGINS[0]


def test_no_page_is_a_quarter_blank_where_a_break_could_avoid_it(
    path: Path, pdf: PdfReader
) -> None:
    """Only a figure that opens the next page, with its caption higher than what was left, may.

    The last page of a chapter may end anywhere.
    """
    starts = {pdf.get_destination_page_number(m) for m in pdf.outline if not isinstance(m, list)}
    document = pdfium.PdfDocument(path)
    late = []
    for number in set(range(1, len(document) - 1)) - {start - 1 for start in starts}:
        seen = document[number].render(scale=0.5, grayscale=True).to_numpy()
        top, bottom = (round(len(seen) * share / PAPER) for share in MARGINS)
        body = (seen.reshape(len(seen), -1)[top : len(seen) - bottom] < INK).any(axis=1)
        blank = 1 - (np.flatnonzero(body)[-1] + 1) / len(body) if body.any() else 1.0
        left = blank * (PAPER - sum(MARGINS)) - CAPTION
        if blank > BLANK and not any(end > left for end in figures(document[number + 1])):
            late.append((number + 1, round(blank, 2)))
    assert sorted(late) == []
