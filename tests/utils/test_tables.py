"""Small tables: the same numbers in HTML and in print."""

import re

import numpy as np
import pytest

from utils import small_table


def test_page_and_print_show_the_same():
    table = small_table(["L", "θ <needed>"], [[100, 5.234], [np.int64(10**6), np.float64(9.0)]])
    page = table._repr_html_()
    assert page.startswith('<div class="shown smalltable"><table>')
    cells = [re.sub(r"<[^>]+>", "", c) for c in re.findall(r"<t[hd]>.*?</t[hd]>", page)]
    assert cells == ["L", "θ &lt;needed&gt;", "100", "5.23", "1 000 000", "9"]
    assert repr(table).splitlines()[-1].split() == ["1", "000", "000", "9"]


def test_rows_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"rows = \[1\]"):
        small_table(["a", "b"], [[1]])
    with pytest.raises(ValueError, match="digits"):
        small_table(["a"], [[1]], digits=0)
