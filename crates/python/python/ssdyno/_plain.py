"""From what Python programs give to what JSON has."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
from collections.abc import Mapping
from typing import Any

from ._errors import UsageError


def plain(value: Any, key: str) -> Any:
    """``value`` as JSON has it. What has no such form is refused with its key."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((f.metadata.get("key", f.name), getattr(value, f.name)) for f in dataclasses.fields(value))
        return {name: plain(inner, _below(key, name)) for name, inner in fields if inner is not None}
    if isinstance(value, Mapping):
        return {_name(name, key): plain(inner, _below(key, name)) for name, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [plain(inner, f"{key}[{at}]") for at, inner in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, datetime.timedelta):
        micros = value // datetime.timedelta(microseconds=1)
        return f"{micros}us"
    # Numbers and arrays of numpy have both; the array is a list then.
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return plain(value.tolist(), key)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(f"`{key}` is {value}, which is not a number", key=key, help="give a finite number")
        return float(value)
    kind = type(value).__name__
    raise UsageError(
        f"`{key}` cannot be a {kind}", key=key, help="give a number, a text, a bool, a list or a dict of those"
    )


def _below(key: str, name: Any) -> str:
    return f"{key}.{name}" if key else str(name)


def _name(name: Any, key: str) -> str:
    if isinstance(name, str):
        return name
    raise UsageError(f"a name in `{key}` is {name!r}, not a text", key=key, help="give names as texts")


def toml(value: Any, key: str) -> str:
    """``value`` as a value of TOML. Texts are always quoted: "16" is a text, 16 is a number."""
    value = plain(value, key)
    if value is None:
        raise UsageError(f"`{key}` has no value", key=key, help="leave the key out, or give it a value")
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(k, ensure_ascii=False)} = {toml(v, _below(key, k))}" for k, v in value.items())
        return "{ " + inner + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(inner, key) for inner in value) + "]"
    # The escapes of JSON are among those of TOML, but for DEL, which JSON does not escape.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def settings(values: Any, key: str = "set") -> list[str]:
    """``KEY=VALUE`` of a mapping, or of texts that are so already."""
    if values is None:
        return []
    if isinstance(values, str):
        return [values]
    if isinstance(values, Mapping):
        return [f"{_name(name, key)}={toml(value, str(name))}" for name, value in values.items()]
    if isinstance(values, (list, tuple)) and all(isinstance(value, str) for value in values):
        return list(values)
    raise UsageError(
        f"`{key}` cannot be a {type(values).__name__}", key=key, help='use {"flash.channels": 16}'
    )
