"""Bags in files: CSV, NPZ and, where pyarrow is installed, Parquet; a row is a token.

A CSV or Parquet file has a column that names the bag, one with the label of the bag (the same in
all its rows), perhaps one with a group, and features in all other columns, or in those asked for.
Rows of a bag stand together, so that a file of any size is read a piece at a time. An NPZ file
holds `tokens` (N, d) and `starts` (n + 1,), or `X` (n, L, d), with `y` and `groups` where known.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import Array, Bags, as_bags

PIECE = 20_000  # rows read at a time


@dataclass(frozen=True)
class Columns:
    """Names of columns; features None means all others."""

    bag: str = "bag"
    label: str | None = "label"
    group: str | None = None
    features: Sequence[str] | None = None
    ignored: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """Bags of a file with their names, and labels and groups where there are any."""

    bags: Bags
    names: list[str]
    y: Array | None
    groups: Array | None


def read(path: str | Path, columns: Columns | None = None) -> Table:
    """All bags of a file."""
    tables = list(pieces(path, columns))
    if len(tables) == 1:
        return tables[0]
    tokens = np.concatenate([one.bags.tokens for one in tables])
    sizes = np.concatenate([one.bags.sizes for one in tables])
    y, groups = _joined([one.y for one in tables]), _joined([one.groups for one in tables])
    names = [name for one in tables for name in one.names]
    return Table(Bags(tokens, np.concatenate([[0], np.cumsum(sizes)])), names, y, groups)


def _joined(parts: list[Array | None]) -> Array | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def pieces(path: str | Path, columns: Columns | None = None) -> Iterator[Table]:
    """The bags of a file a piece at a time, no bag in two pieces."""
    path, columns = Path(path), columns or Columns()
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    kind = path.suffix.lower()
    if kind == ".npz":
        yield _npz(path)
        return
    if kind == ".csv":
        rows: Iterator[tuple[list[str], list[list[Any]]]] = _csv(path)
    elif kind in (".parquet", ".pq"):
        rows = _parquet(path)
    else:
        raise ValueError(f"{path}: files end in .csv, .npz or .parquet")
    yield from _grouped(path, columns, rows)


def _csv(path: Path) -> Iterator[tuple[list[str], list[list[Any]]]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        try:
            header = next(reader, None)
            if not header:
                raise ValueError(f"{path}: row 1 must name the columns")
            while rows := list(islice(reader, PIECE)):
                yield header, rows
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(
                f"{path}: near row {reader.line_num + 1}: not CSV in UTF-8 ({error})"
            ) from error


def _parquet(path: Path) -> Iterator[tuple[list[str], list[list[Any]]]]:
    try:
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{path}: Parquet needs the package pyarrow (pip install pyarrow); or save as .csv"
        ) from error
    try:
        file = ParquetFile(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: not a Parquet file ({error})") from error
    kept = [name for name in file.schema_arrow.names if not name.startswith("__index_level_")]
    for batch in file.iter_batches(batch_size=PIECE, columns=kept):  # not the row names of pandas
        yield kept, [list(row) for row in zip(*batch.to_pydict().values(), strict=True)]


def _npz(path: Path) -> Table:
    try:
        with np.load(path, allow_pickle=False) as data:
            parts = {name: data[name] for name in data.files}
    except Exception as error:
        raise ValueError(f"{path}: not an NPZ file of plain arrays ({error})") from error
    if "tokens" in parts and "starts" in parts:
        try:
            bags = Bags(np.asarray(parts["tokens"]), parts["starts"])
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        as_bags([bags.tokens], f"{path}: tokens")
    elif "X" in parts:
        bags = as_bags(parts["X"], f"{path}: X")
    else:
        raise ValueError(
            f"{path}: holds {', '.join(sorted(parts)) or 'nothing'}; it must hold tokens and "
            "starts, or X"
        )
    for name in ("y", "groups"):
        if name in parts and parts[name].shape != (len(bags),):
            raise ValueError(f"{path}: {name} of shape {parts[name].shape}, for {len(bags)} bags")
    return Table(bags, [str(k) for k in range(len(bags))], parts.get("y"), parts.get("groups"))


class _Layout:
    """Where in a row the bag, the label, the group and the features stand."""

    def __init__(self, path: Path, columns: Columns, header: list[str]) -> None:
        self.path, self.header, self.columns = path, header, columns
        self.bag = self._place(columns.bag)
        self.label = None if columns.label is None else self._place(columns.label)
        self.group = None if columns.group is None else self._place(columns.group)
        taken = {self.bag, self.label, self.group, *map(self._place, columns.ignored)}
        if columns.features is None:
            self.features = [k for k in range(len(header)) if k not in taken]
        else:
            self.features = [self._place(name) for name in columns.features]
        if not self.features:
            raise ValueError(f"{path}: no columns are left for features")

    def _place(self, name: str) -> int:
        if name not in self.header:
            shown = ", ".join(self.header[:8]) + ", …" * (len(self.header) > 8)
            raise ValueError(f"{self.path}: no column {name!r} among {shown}")
        return self.header.index(name)

    def numbers(self, rows: list[list[Any]], first: int) -> Array:
        """Features (rows, d); `first` is the number of the first row in the file."""
        for k, row in enumerate(rows):
            if len(row) != len(self.header):
                raise ValueError(
                    f"{self.path}: row {first + k} has {len(row)} fields, the first row "
                    f"{len(self.header)}"
                )
        try:
            found = np.array([[row[k] for k in self.features] for row in rows], dtype=float)
            if np.isfinite(found).all():
                return found
        except (ValueError, TypeError):
            pass
        for number, row in enumerate(rows, first):  # which one is it?
            for k in self.features:
                if not _finite(row[k]):
                    raise ValueError(
                        f"{self.path}: row {number}, column {self.header[k]!r}: {row[k]!r} is not "
                        "a finite number; a column that is no feature must be named as such"
                    )
        raise ValueError(f"{self.path}: features must be finite numbers")


def _finite(field: Any) -> bool:
    try:
        return bool(np.isfinite(float(field)))
    except (TypeError, ValueError):
        return False


def _grouped(
    path: Path, columns: Columns, rows: Iterator[tuple[list[str], list[list[Any]]]]
) -> Iterator[Table]:
    """Whole bags of each piece; the last, which may go on, waits for the next."""
    waiting: list[list[Any]] = []
    tokens = np.empty((0, 0))
    layout, number, seen = None, 2, set[str]()
    for header, some in rows:
        layout = layout or _Layout(path, columns, header)
        numbers = layout.numbers(some, number)
        tokens = np.concatenate([tokens, numbers]) if waiting else numbers
        waiting += some
        number += len(some)
        last = str(waiting[-1][layout.bag])
        cut = len(waiting)
        while cut and str(waiting[cut - 1][layout.bag]) == last:
            cut -= 1
        if cut:
            yield _bags(layout, waiting[:cut], tokens[:cut], number - len(waiting), seen)
            waiting, tokens = waiting[cut:], tokens[cut:]
    if layout is None or not waiting:
        raise ValueError(f"{path}: there are no rows below the names of the columns")
    yield _bags(layout, waiting, tokens, number - len(waiting), seen)


def _bags(
    layout: _Layout, rows: list[list[Any]], tokens: Array, first: int, seen: set[str]
) -> Table:
    names: list[str] = []
    starts = [0]
    labels: list[Any] = []
    groups: list[Any] = []
    for k, row in enumerate(rows):
        name = str(row[layout.bag])
        if not names or name != names[-1]:
            if name in seen:
                raise ValueError(
                    f"{layout.path}: row {first + k}: bag {name!r} was complete before; the rows "
                    "of a bag must stand together"
                )
            seen.add(name)
            if names:
                starts.append(k)
            names.append(name)
            for place, kept in ((layout.label, labels), (layout.group, groups)):
                if place is not None:
                    kept.append(row[place])
            continue
        for place, kept in ((layout.label, labels), (layout.group, groups)):
            if place is not None and row[place] != kept[-1]:
                raise ValueError(
                    f"{layout.path}: row {first + k}, column {layout.header[place]!r}: "
                    f"{row[place]!r}, but {kept[-1]!r} before in the same bag {name!r}"
                )
    y = np.array(labels) if layout.label is not None else None
    of = np.array(groups) if layout.group is not None else None
    return Table(Bags(tokens, np.array([*starts, len(rows)])), names, y, of)
