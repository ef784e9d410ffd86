"""Finished trials on disk: one checked line each, and nothing in them that could run.

A folder holds segments, files to which one process appends a line for each trial it finishes:
check, key, CPU seconds and the result as JSON. Processes never write to each other's segments. A
line that fails its check is reported by file and number, and its trial computed again. Reading
builds numbers, texts, arrays, lists, tuples, mappings and records (dataclasses and named tuples);
it imports nothing but `needle`, and calls no constructor.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import importlib
import json
import os
import platform
import sys
import uuid
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

PLAIN = (bool, int, float, str)
KINDS = "biufcSU"  # of arrays: everything but objects and records
OURS = __name__.partition(".")[0]
HOME = Path(__file__).parents[1]
RECORDS = "kit.records"


class CacheWarning(UserWarning):
    """A damaged file of finished trials; the message names it."""


class TrialStore:
    """The finished trials of one function in one folder.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> TrialStore(folder).keep("a-0", {"error": 0.25}, seconds=1.5)
    >>> TrialStore(folder).read({"a-0", "a-1"})
    {'a-0': ({'error': 0.25}, 1.5)}
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file: int | None = None

    def read(self, wanted: Collection[str]) -> dict[str, tuple[Any, float]]:
        """The results and CPU seconds of those of the wanted trials that are here."""
        found: dict[str, tuple[Any, float]] = {}
        for segment in sorted(self.folder.glob("*.trials")):
            *lines, rest = segment.read_bytes().split(b"\n")
            damaged = []
            for number, line in enumerate(lines, 1):
                try:
                    key, seconds, text = _checked(line)
                    if key in wanted and key not in found:
                        found[key] = decode(json.loads(text)), seconds
                except Exception:  # whatever a damaged or foreign line may hold
                    damaged.append(str(number))
            if rest:
                damaged.append(f"{len(lines) + 1}, cut short")
            if damaged:
                _report(segment, damaged)
        return found

    def keep(self, key: str, value: Any, seconds: float) -> None:
        """Append one finished trial; once this returns, killing the process cannot lose it."""
        line = _line(key, value, seconds)
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            name = f"{platform.node() or 'here'}-{os.getpid()}-{uuid.uuid4().hex[:8]}.trials"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
            self._file = os.open(self.folder / name, flags, 0o644)
        written = os.write(self._file, line)
        if written != len(line):
            raise OSError(f"only {written} of {len(line)} bytes fit into {self.folder}")

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def contents(cache: str | os.PathLike) -> dict[str, tuple[int, int]]:
    """For each function that a cache holds trials of: how many, and in how many bytes."""
    found: dict[str, tuple[int, int]] = {}
    for segment in sorted(Path(cache).glob("*/*.trials")):
        trials, size = found.get(segment.parent.name, (0, 0))
        data = segment.read_bytes()
        found[segment.parent.name] = trials + data.count(b"\n"), size + len(data)
    return found


def _check(line: bytes) -> bytes:
    return hashlib.sha256(line).hexdigest()[:16].encode()


def _line(key: str, value: Any, seconds: float) -> bytes:
    text = json.dumps(encode(value), separators=(",", ":"), ensure_ascii=True)
    line = f"{key} {seconds:.4g} {text}".encode()
    return _check(line) + b" " + line + b"\n"


def _checked(line: bytes) -> tuple[str, float, bytes]:
    check, line = line.split(b" ", 1)
    if check != _check(line):
        raise ValueError("a damaged line")
    key, seconds, text = line.split(b" ", 2)
    return key.decode(), float(seconds), text


def _report(segment: Path, damaged: list[str]) -> None:
    more = f" and {len(damaged) - 5} more" if len(damaged) > 5 else ""
    where = f"line {'; '.join(damaged[:5])}{more}"
    message = f"{segment} is damaged at {where}: these trials are computed again"
    warnings.warn(message, CacheWarning, stacklevel=4)


def encode(value: Any) -> Any:
    """A result as JSON that `decode` turns back into the same types and bits.

    >>> decode(encode((1, 2.5, np.float32(0.1)))) == (1, 2.5, np.float32(0.1))
    True
    """
    if value is None or type(value) in PLAIN:
        return value
    if type(value) is list:
        return [encode(part) for part in value]
    if type(value) is tuple:
        return {"tuple": [encode(part) for part in value]}
    if type(value) is dict and all(type(key) is str for key in value):
        return {"dict": {key: encode(part) for key, part in value.items()}}
    if type(value) is complex:
        return {"complex": [value.real, value.imag]}
    if isinstance(value, np.generic) and value.dtype.kind in KINDS:
        return {"scalar": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}
    if type(value) is np.ndarray and value.dtype.kind in KINDS:
        data = base64.b64encode(value.tobytes()).decode()
        return {"array": [value.dtype.str, list(value.shape), data]}
    names = _fields(type(value))
    if names is not None and _known(type(value)):
        return {"record": [_name(type(value)), {n: encode(getattr(value, n)) for n in names}]}
    raise ValueError(
        f"the result {value!r} is not allowed: a cache keeps numbers, texts, arrays, lists, "
        "tuples, mappings from texts, and records (dataclasses or named tuples defined at the top "
        "of a module)"
    )


def decode(value: Any) -> Any:
    """What `encode` was given; ValueError or LookupError for anything it does not write."""
    if isinstance(value, list):
        return [decode(part) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, inside),) = value.items()
    if kind == "tuple":
        return tuple(decode(part) for part in inside)
    if kind == "dict":
        return {key: decode(part) for key, part in inside.items()}
    if kind == "complex":
        return complex(*inside)
    if kind == "scalar":
        return np.frombuffer(base64.b64decode(inside[1]), np.dtype(inside[0]))[0]
    if kind == "array":
        flat = np.frombuffer(base64.b64decode(inside[2]), np.dtype(inside[0]))
        return flat.reshape(inside[1]).copy()
    if kind == "record":
        return _record(_find(inside[0]), {key: decode(part) for key, part in inside[1].items()})
    raise ValueError(f"{kind!r} is no kind of result")


def _fields(kind: type) -> tuple[str, ...] | None:
    """The field names of a dataclass or named tuple; None for any other class."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None) if issubclass(kind, tuple) else None


def _name(kind: type) -> str:
    """A class by its name; one outside `kit.records` with its module, ours without `needle`."""
    module = kind.__module__.removeprefix(f"{OURS}.")
    return kind.__qualname__ if module == RECORDS else f"{module}:{kind.__qualname__}"


def _find(name: str) -> type:
    """The class of that name, in our package or in a module that is loaded anyway."""
    module, _, path = name.rpartition(":")
    module = module or RECORDS
    if (HOME / f"{module.replace('.', '/')}.py").is_file():
        place: Any = importlib.import_module(f"{OURS}.{module}")
    else:
        place = sys.modules[module]
    for part in path.split("."):
        place = vars(place)[part]
    if not isinstance(place, type) or _fields(place) is None:
        raise ValueError(f"{name} is no record")
    return place


def _known(kind: type) -> bool:
    """Whether `_find` leads back to a class, which it does not for one defined in a function."""
    try:
        return _find(_name(kind)) is kind
    except (LookupError, ValueError):
        return False


def _record(kind: type, values: dict[str, Any]) -> Any:
    """A record with these fields, put together without calling its class."""
    names = _fields(kind) or ()
    if set(names) != set(values):
        raise ValueError(f"{kind.__name__} has the fields {names}")
    if issubclass(kind, tuple):
        return tuple.__new__(kind, [values[name] for name in names])
    record = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(record, name, value)
    return record
