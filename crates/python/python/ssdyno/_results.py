"""What runs, comparisons, sweeps and profiles give."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _errors, _ssdyno
from ._figures import Figures, _shown, _table


class Result(Figures):
    """Figures, the rows behind them, and where they lie.

    ``rows`` is a table of Arrow: give it to ``pyarrow.table``, ``polars.DataFrame``, or to DuckDB by name;
    ``to_pandas()`` needs pyarrow. It is ``None`` where no rows were kept. ``results_directory`` is ``None`` where no
    files were asked for.
    """

    __slots__ = ("rows", "results_directory")

    def __init__(self, values: dict[str, Any], rows: Any = None, results_directory: str | None = None) -> None:
        super().__init__(values)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "results_directory", results_directory)

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``."""
        import pyarrow

        if self.rows is None:
            raise _errors.UsageError("there are no rows", key="keep", help='run with keep="all"')
        return pyarrow.table(self.rows)

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a ``polars.DataFrame``."""
        import polars

        if self.rows is None:
            raise _errors.UsageError("there are no rows", key="keep", help='run with keep="all"')
        return polars.DataFrame(self.rows)


class RunResult(Result):
    """The figures of a run: the keys of ``result.json``, see docs/schemas/run.json."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        values = self._values
        rows = [
            (key, _shown(values[key]))
            for key in ("target", "workload", "requests", "iops", "throughput_bytes_per_second", "errors")
            if values.get(key) is not None
        ]
        latency = values.get("latency_ns") or {}
        rows += [(f"latency_ns.{key}", _shown(value)) for key, value in latency.items() if _is_number(value)]
        return _table(rows)


class CompareResult(Result):
    """Results side by side: ``names``, ``results`` and ``comparisons``, see docs/schemas/compare.json."""

    __slots__ = ()


class SweepResult(Result):
    """Designs: ``rows`` is the table of Arrow with the columns of sweep.parquet; ``designs`` are the same rows as
    objects, see docs/schemas/sweep-result.json."""

    __slots__ = ()

    @property
    def designs(self) -> list[Figures]:
        """A row for each design."""
        return self["rows"]

    @property
    def parquet(self) -> Path | None:
        """Where sweep.parquet lies; ``None`` where no files were asked for."""
        return Path(self.results_directory) / "sweep.parquet" if self.results_directory else None

    @property
    def front(self) -> list[Figures]:
        """The designs that no other one beats."""
        return [row for row in self.designs if row.get("standing") == "front"]

    def _repr_html_(self) -> str:
        keys = [axis.split("=")[0] for axis in self._values["plan"]["vary"]]
        figures = [text.lstrip("-").split("=")[0] for text in self._values["plan"]["objectives"]]
        rows = []
        for row in self.front:
            values = [str(value) for value in row["values"]]
            found = row["figures"]
            rows.append((row.design, *values, *(_shown(found[f]["value"]) if f in found else "" for f in figures)))
        return _table(rows, ("design", *keys, *figures))


class ProfileResult(Result):
    """The sequential to random ratio of a target, see docs/schemas/profile.json."""

    __slots__ = ()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def concluded(outcome: Any, kind: type[Result]) -> Any:
    """The result of ``outcome``, or what went wrong, with the result in it."""
    result = None
    if outcome.json is not None:
        result = kind(json.loads(outcome.json), outcome.rows, outcome.place)
    if outcome.interrupt is not None:
        # Ctrl-C, or what the progress function raised: the figures until then go with it.
        outcome.interrupt.result = result
        raise outcome.interrupt
    if outcome.failure is not None:
        error = _errors.error_of(*outcome.failure)
        error.result = result
        raise error
    return result


def telling(progress: Callable[[Figures], Any] | None) -> Callable[[str], Any] | None:
    """``progress`` with snapshots as objects."""
    if progress is None:
        return None
    if not callable(progress):
        raise _errors.UsageError("`progress` is not a function", key="progress", help="give a function of a snapshot")
    return lambda text: progress(Figures(json.loads(text)))


__all__ = ["CompareResult", "ProfileResult", "Result", "RunResult", "SweepResult"]

# What the compiled half calls rows; for annotations.
Rows = _ssdyno.Rows
