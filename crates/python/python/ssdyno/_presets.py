"""Devices and workloads by name, which can be changed by attribute."""

from __future__ import annotations

import html
import json
from typing import Any

from . import _ssdyno
from ._errors import KeyMissing, UsageError
from ._figures import Figures
from ._plain import toml


class _Section:
    """A table of a preset. Its keys are attributes."""

    __slots__ = ("_preset", "_path")

    def __init__(self, preset: Preset, path: str) -> None:
        object.__setattr__(self, "_preset", preset)
        object.__setattr__(self, "_path", path)

    def _key(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._preset[self._key(name)]

    def __setattr__(self, name: str, value: Any) -> None:
        self._preset[self._key(name)] = value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._preset._names(self._path)]

    def __repr__(self) -> str:
        return f"<{self._path or 'keys'} of {self._preset.name}: {', '.join(self._preset._names(self._path))}>"


class Preset(_Section):
    """A device or a workload: what a file or a preset says, and what was set over it.

    ``p.flash.channels = 16`` and ``p["flash.channels"] = 16`` do the same. A key that does not exist is refused at
    once; whether a value can be is said when it is read or run.
    """

    __slots__ = ("kind", "name", "_set")

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(self, "")
        for slot, value in (("kind", kind), ("name", name), ("_set", {})):
            object.__setattr__(self, slot, value)
        # A name that does not exist is refused here.
        self._values()

    @property
    def changes(self) -> dict[str, Any]:
        """What was set, by key."""
        return dict(self._set)

    def copy(self) -> Preset:
        """Another one, which can be changed without changing this one."""
        other = Preset(self.name, self.kind)
        other._set.update(self._set)
        return other

    def to_toml(self) -> str:
        """The complete file."""
        return _ssdyno.resolved(self.kind, self.name, self._settings())[0]

    def __getitem__(self, key: str) -> Any:
        self._check(key)
        value: Any = self._values()
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if self._names(key):
            return _Section(self, key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        # A value without a form is refused before the old one goes.
        toml(value, key)
        self._check(key)
        below = key + "."
        for old in [old for old in self._set if old.startswith(below)]:
            del self._set[old]
        self._set.pop(key, None)
        self._set[key] = value

    def _check(self, key: str) -> None:
        try:
            _ssdyno.check_settings([f"{self._prefix}{key}=0"])
        except UsageError as error:
            raise KeyMissing(error.message, key=key, help=error.help) from None

    @property
    def _prefix(self) -> str:
        return "workload." if self.kind == "workload" else ""

    def _settings(self) -> list[str]:
        return [f"{self._prefix}{key}={toml(value, key)}" for key, value in self._set.items()]

    def _values(self) -> dict[str, Any]:
        return json.loads(_ssdyno.resolved(self.kind, self.name, self._settings())[1])

    def _names(self, path: str) -> list[str]:
        prefix = path + "." if path else ""
        keys = (key[len(prefix) :] for key in _ssdyno.keys(self.kind) if key.startswith(prefix))
        return sorted({key.split(".")[0] for key in keys})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Preset):
            return NotImplemented
        return (self.kind, self.name, self._set) == (other.kind, other.name, other._set)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        changes = "".join(f", {key}={value!r}" for key, value in self._set.items())
        return f"<{self.kind} {self.name}{changes}>"

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(repr(self)[1:-1])}</b><pre>{html.escape(self.to_toml())}</pre>"


def preset(name: str, kind: str | None = None) -> Preset:
    """The device or workload that is called ``name``, or is in the file ``name``.

    ``kind`` is ``device`` or ``workload``. It is needed for the file of a workload alone.
    """
    if not isinstance(name, str):
        raise UsageError(f"a preset is called by a text, not by a {type(name).__name__}", key="name")
    if kind not in (None, "device", "workload"):
        raise UsageError(f"there is no kind `{kind}`", key="kind", help="use `device` or `workload`")
    if kind is None:
        kind = "workload" if name in {entry.name for entry in presets().workloads} else "device"
    if kind == "device" and not name.startswith("sim:") and not name.endswith(".toml"):
        name = f"sim:{name}"
    return Preset(name, kind)


def presets() -> Figures:
    """All presets: ``devices``, ``hosts``, ``networks`` and ``workloads``, each with ``name`` and ``description``."""
    return Figures(
        {
            kind: [{"name": name, "description": description} for name, description in entries]
            for kind, entries in _ssdyno.presets()
        }
    )
