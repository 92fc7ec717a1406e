"""JSON as objects with attributes."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Figures(value)
    if isinstance(value, list):
        return [_wrapped(item) for item in value]
    return value


class Figures(Mapping):
    """An object of ``result.json``: its keys are attributes, and keys of a mapping.

    docs/schemas has their meaning and units. A key that is no name in Python, such as ``for``, is in brackets only:
    ``result.spec["for"]``.
    """

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Any]) -> None:
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return _wrapped(self._values[name])
        except KeyError:
            known = ", ".join(self._values)
            raise AttributeError(f"there is no figure `{name}`; there are {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"`{name}` cannot be set: figures are what was measured")

    def __getitem__(self, name: str) -> Any:
        return _wrapped(self._values[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self._values if key.isidentifier())]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values!r})"

    # Mapping has an equality, and so no hash.
    def __reduce__(self) -> Any:
        return (Figures, (self._values,))

    def to_dict(self) -> dict[str, Any]:
        """A copy as plain dictionaries and lists."""
        return json.loads(json.dumps(self._values))

    def _repr_html_(self) -> str:
        return _table(_leaves("", self._values))


def _leaves(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{prefix}.{key}" if prefix else key, inner)
    elif isinstance(value, list):
        yield prefix, f"[{len(value)}]"
    elif value is not None:
        yield prefix, _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _table(rows: Any, head: tuple[str, ...] = ()) -> str:
    cells = lambda kind, row: "".join(f"<{kind}>{html.escape(str(cell))}</{kind}>" for cell in row)
    lines = [f"<tr>{cells('th', head)}</tr>"] if head else []
    lines += [f"<tr>{cells('td', row)}</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"
