"""What goes wrong, as exceptions."""

from __future__ import annotations

import json
from typing import Any


class Error(Exception):
    """What is wrong, with the key that is to blame and what to do.

    ``result`` is what was measured until then, if anything was.
    """

    def __init__(
        self,
        message: str,
        *,
        key: str | None = None,
        help: str | None = None,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.key = key
        self.help = help
        self.file = file
        self.line = line
        self.column = column
        self.result: Any = None

    def __str__(self) -> str:
        text = self.message
        if self.key and self.key not in text:
            text = f"{self.key}: {text}"
        if self.file and self.line:
            text += f" ({self.file}:{self.line})"
        return f"{text}\nhelp: {self.help}" if self.help else text


class UsageError(Error, ValueError):
    """Arguments, configuration or input are wrong; nothing was run."""


class KeyMissing(UsageError, AttributeError):
    """A device or a workload has no such key."""


class RunError(Error, RuntimeError):
    """A run failed or is partial; ``result`` has its figures until then."""


class WriteError(Error, OSError):
    """Results could not be written; ``result`` has them."""

    # OSError has an own text, made of numbers.
    __str__ = Error.__str__


_KINDS = {
    "usage": UsageError,
    "failed": RunError,
    "unwritable": WriteError,
    "interrupted": RunError,
    "undecided": RunError,
}


def error_of(kind: str, body: str) -> Error:
    """The exception for a failure of the compiled half."""
    fields = json.loads(body)
    return _KINDS[kind](fields.pop("message"), **fields)
