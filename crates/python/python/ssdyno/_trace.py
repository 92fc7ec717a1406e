"""Requests from arrays and iterators."""

from __future__ import annotations

import csv
import os
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ._errors import UsageError

_COLUMNS = ("time_ns", "op", "offset_bytes", "length_bytes")
_HELP = "give time_ns, op, offset_bytes and length_bytes"


class Trace:
    """Requests in a file of their own, which goes when this object does."""

    def __init__(self, path: Path, requests: int) -> None:
        self.path = path
        self.requests = requests
        self._end = weakref.finalize(self, _remove, str(path))

    def __len__(self) -> int:
        return self.requests

    def __repr__(self) -> str:
        return f"<{self.requests} requests>"


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        pass


def trace(requests: Any) -> Trace:
    """A workload of requests: a structured array, a dict or a data frame with columns ``time_ns``, ``op``,
    ``offset_bytes`` and ``length_bytes``; or any iterable of such four. ``op`` is read, write, trim or flush."""
    rows = _rows(requests)
    handle, path = tempfile.mkstemp(prefix="ssdyno-", suffix=".csv")
    made = Trace(Path(path), 0)
    with os.fdopen(handle, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for number, row in enumerate(rows):
            writer.writerow(_checked(row, number))
            made.requests += 1
    if not made.requests:
        raise UsageError("there are no requests", key="workload", help="give one request or more")
    return made


def _rows(requests: Any) -> Iterable[Any]:
    names = getattr(getattr(requests, "dtype", None), "names", None)
    if names is None and isinstance(requests, Mapping):
        names = tuple(requests)
    elif names is None and hasattr(requests, "columns"):
        names = tuple(requests.columns)
    if names is not None:
        missing = [column for column in _COLUMNS if column not in names]
        if missing:
            raise UsageError(f"requests have no column `{missing[0]}`", key=f"workload.{missing[0]}", help=_HELP)
        columns = [requests[column] for column in _COLUMNS]
        lists = [column.tolist() if hasattr(column, "tolist") else list(column) for column in columns]
        if len({len(column) for column in lists}) > 1:
            raise UsageError("the columns of requests differ in length", key="workload", help=_HELP)
        return zip(*lists)
    if isinstance(requests, (bytes, bytearray)) or not isinstance(requests, Iterable):
        raise UsageError(f"a workload cannot be a {type(requests).__name__}", key="workload", help=_HELP)
    return requests


def _checked(row: Any, number: int) -> tuple[int, str, int, int]:
    key = f"workload[{number}]"
    try:
        time_ns, op, offset_bytes, length_bytes = row
    except (TypeError, ValueError):
        raise UsageError(f"`{key}` is not a request: {row!r}", key=key, help=_HELP) from None
    numbers = []
    for name, value in zip(("time_ns", "offset_bytes", "length_bytes"), (time_ns, offset_bytes, length_bytes)):
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UsageError(
                f"`{key}.{name}` is {value!r}", key=f"{key}.{name}", help="give a whole number that is not negative"
            )
        numbers.append(value)
    op = op.decode() if isinstance(op, bytes) else op
    if op not in ("read", "write", "trim", "flush"):
        raise UsageError(f"`{key}.op` is {op!r}", key=f"{key}.op", help="use read, write, trim or flush")
    return numbers[0], str(op), numbers[1], numbers[2]
