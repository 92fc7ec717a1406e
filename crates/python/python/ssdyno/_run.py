"""Runs, comparisons, sweeps and profiles."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import _dask, _ssdyno
from ._errors import UsageError
from ._figures import Figures
from ._plain import plain, settings, toml
from ._presets import Preset
from ._results import CompareResult, ProfileResult, RunResult, SweepResult, concluded, telling
from ._trace import Trace, trace

#: What ``progress`` is: a function that is called with a snapshot ten times a second.
Progress = Callable[[Figures], Any]


class _Spec:
    """A spec that is put together, and the files that must last until it has run."""

    def __init__(self, start: Any) -> None:
        self.values: dict[str, Any] = plain(start, "") if start is not None else {}
        if not isinstance(self.values, dict):
            raise UsageError(f"a spec cannot be a {type(start).__name__}", key="spec", help="give a dict of its keys")
        self.keep_alive: list[Any] = []

    def put(self, key: str, value: Any) -> None:
        """Sets a key, where there is a value."""
        if value is not None:
            self.values[key] = plain(value, key)

    def add_settings(self, more: list[str]) -> None:
        """Adds ``KEY=VALUE`` behind those that are there: later ones win."""
        if more:
            self.values["set"] = [*self.values.get("set", []), *more]

    def target(self, target: Any) -> None:
        """A name, a path, a preset, or the keys of a device."""
        if isinstance(target, Mapping) or dataclasses.is_dataclass(target):
            self.contents("device", target, "target")
            self.put("target", f"sim:{_kind(target)}")
        elif isinstance(target, Preset):
            if target.kind != "device":
                raise UsageError(f"{target!r} is not a device", key="target", help="give it as `workload`")
            self.put("target", target.name)
            self.add_settings(target._settings())
        else:
            help = "give a name, a path, a preset or an object of ssdyno.specs"
            self.put("target", _text(target, "target", help))

    def workload(self, workload: Any) -> None:
        """A name, a path, a preset, the keys of a workload, or requests."""
        if dataclasses.is_dataclass(workload):
            self.contents("workload", workload, "workload")
            self.put("workload", _kind(workload))
        elif isinstance(workload, Preset):
            if workload.kind != "workload":
                raise UsageError(f"{workload!r} is not a workload", key="workload", help="give it as the target")
            self.put("workload", workload.name)
            self.add_settings(workload._settings())
        elif workload is None or isinstance(workload, (str, os.PathLike)):
            self.put("workload", _text(workload, "workload"))
        else:
            made = workload if isinstance(workload, Trace) else trace(workload)
            self.keep_alive.append(made)
            self.put("workload", str(made.path))

    def contents(self, table: str, value: Any, key: str) -> None:
        """What a file would have, given as an object."""
        if isinstance(value, type):
            help = f"make one: {value.__name__}(...)"
            raise UsageError(f"`{key}` is a class, not an object", key=key, help=help)
        self.values["contents"] = {**(self.values.get("contents") or {}), table: plain(value, key)}

    def host(self, host: Any) -> None:
        """The name of a host, or the table of all that lies before the device."""
        self.put("host", {"name": host} if isinstance(host, str) else host)

    def write(self, write: Any, destroy: Any, overwrite: Any, size: Any) -> None:
        """Consent to write, which nothing else gives."""
        if not isinstance(write, bool) or not isinstance(overwrite, bool):
            raise UsageError("`write` and `overwrite` must be True or False", key="write.allowed")
        serials = [destroy] if isinstance(destroy, str) else list(destroy)
        if (serials or overwrite) and not write:
            raise UsageError("`destroy` and `overwrite` need `write=True`", key="write.allowed", help="add write=True")
        given = {"allowed": write, "destroy": serials, "overwrite": overwrite, "size": size}
        found = {key: value for key, value in given.items() if value}
        # A spec that was read from somewhere gives no consent: it may be that of another machine.
        self.values.pop("write", None)
        if found:
            self.put("write", found)


def _kind(value: Any) -> str:
    """What results call a device or a workload that has no name."""
    return "device" if isinstance(value, Mapping) else type(value).__name__


def _text(value: Any, key: str, help: str = "give a name or a path") -> Any:
    if value is None or isinstance(value, (str, os.PathLike)):
        return value
    raise UsageError(f"`{key}` cannot be a {type(value).__name__}", key=key, help=help)


def _folder(results: Any, name: Any) -> dict[str, Any]:
    if name is not None and results is None:
        raise UsageError("`name` is the name of a directory in `results`", key="name", help='add results="results"')
    return {"results": _text(results, "results"), "name": _text(name, "name")}


def _load(
    spec: Any, target: Any, workload: Any, set: Any, write: tuple[Any, ...], keys: Mapping[str, Any]
) -> _Spec:
    made = _Spec(spec)
    made.target(target)
    made.workload(workload)
    made.add_settings(settings(set))
    for key, value in keys.items():
        if key == "host" and value is not None:
            made.host(value)
        else:
            made.put(key, value)
    made.write(*write)
    return made


def run(
    target: Any = None,
    workload: Any = None,
    *,
    set: Any = None,
    requests: int | None = None,
    duration: Any = None,
    until: str | None = None,
    seed: int | None = None,
    keep: str | None = None,
    interval: Any = None,
    why: bool | None = None,
    fio: Any = None,
    trace: Any = None,
    host: Any = None,
    real: Any = None,
    spec: Any = None,
    write: bool = False,
    destroy: Any = (),
    overwrite: bool = False,
    size: str | None = None,
    results: Any = None,
    name: str | None = None,
    csv: bool = False,
    progress: Progress | None = None,
) -> RunResult:
    """Loads a target and gives the figures.

    The arguments are the keys of a spec (docs/schemas/spec.json); ``duration`` is its key ``for``. ``spec`` has keys
    that the others do not set. A real target is opened read-only unless ``write=True``; a device is written to only
    with its serial number in ``destroy``. ``why=True`` finds out what the latencies of a simulated SSD consist of:
    ``result.latency_parts_ns``. Files are written to a new directory in ``results``, if that is given.

    Ctrl-C stops the run in order: the ``KeyboardInterrupt`` has the figures until then in ``result``.
    """
    made = _load(
        spec,
        target,
        workload,
        set,
        (write, destroy, overwrite, size),
        {
            "requests": requests,
            "for": duration,
            "until": until,
            "seed": seed,
            "keep": keep,
            "interval": interval,
            "why": why,
            "fio": _text(fio, "fio"),
            "trace": trace,
            "host": host,
            "real": real,
        },
    )
    outcome = _ssdyno.task(
        "run", json.dumps(made.values), csv=csv, progress=telling(progress), **_folder(results, name)
    )
    return concluded(outcome, RunResult)


def compare(
    *sides: Any,
    workload: Any = None,
    set: Any = None,
    requests: int | None = None,
    duration: Any = None,
    seed: int | None = None,
    runs: int | None = None,
    host: Any = None,
    real: Any = None,
    spec: Any = None,
    write: bool = False,
    destroy: Any = (),
    overwrite: bool = False,
    results: Any = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> CompareResult:
    """Results and targets side by side; the others are compared with the first.

    A side is a result of ``run``, the directory of one, a preset, or a target, which is run. With ``runs`` each target runs that
    often, in turn, and the intervals are those of the spread between the runs; ``repeated`` has the runs of each side.
    """
    keys = {"requests": requests, "for": duration, "seed": seed, "host": host, "real": real}
    made = _load(spec, None, workload, set, (write, destroy, overwrite, None), keys)
    with tempfile.TemporaryDirectory(prefix="ssdyno-") as scratch:
        named = [_side(side, at, Path(scratch)) for at, side in enumerate(sides)]
        task: dict[str, Any] = {"sides": named, "run": made.values}
        if runs is not None:
            task["runs"] = plain(runs, "runs")
        outcome = _ssdyno.task(
            "compare", json.dumps(task), progress=telling(progress), **_folder(results, name)
        )
    return concluded(outcome, CompareResult)


def _side(side: Any, at: int, scratch: Path) -> str:
    """A side as the task takes it: what is in memory is written down for it."""
    if isinstance(side, Preset):
        path = scratch / str(at) / f"{Path(side.name.removeprefix('sim:')).stem}.toml"
        path.parent.mkdir()
        path.write_text(side.to_toml(), encoding="utf-8")
        return str(path)
    if isinstance(side, Figures):
        path = scratch / f"result-{at}" / "result.json"
        path.parent.mkdir()
        path.write_text(json.dumps(side.to_dict()), encoding="utf-8")
        return str(path.parent)
    return os.fsdecode(_text(side, f"sides[{at}]", "give a result, a preset, a name or a path"))


def sweep(
    target: Any = None,
    workload: Any = None,
    *,
    vary: Mapping[str, Any],
    objectives: Any = None,
    require: Any = None,
    sampling: str | None = None,
    designs: int | None = None,
    draw_seed: int | None = None,
    time: Any = None,
    run_hopeless: bool = False,
    cost: Any = None,
    set: Any = None,
    requests: int | None = None,
    duration: Any = None,
    seed: int | None = None,
    host: Any = None,
    spec: Any = None,
    results: Any = None,
    name: str | None = None,
    csv: bool = False,
    progress: Progress | None = None,
    client: Any = None,
) -> SweepResult:
    """Many designs as one table. ``vary`` has the values of each key, or a range such as ``"0.07..0.28/5"``.

    Designs that certainly break a bound of ``require`` are not run to their end, unless ``run_hopeless`` says so.

    ``client`` is a ``distributed.Client``: its workers run the designs, and the table is the same. Files that the arguments
    name must be at the same path on each worker.
    """
    keys = {"requests": requests, "for": duration, "seed": seed, "host": host}
    made = _load(spec, target, workload, set, (False, (), False, None), keys)
    if not isinstance(vary, Mapping):
        raise UsageError("`vary` is not a dict", key="vary", help='use {"flash.channels": [4, 8]}')
    task: dict[str, Any] = {"run": made.values, "vary": [_axis(key, values) for key, values in vary.items()]}
    plan = {
        "objectives": [objectives] if isinstance(objectives, str) else objectives,
        "require": [require] if isinstance(require, str) else require,
        "sampling": sampling,
        "designs": designs,
        "draw_seed": draw_seed,
        "time": time,
        "run_hopeless": run_hopeless or None,
        "cost": cost,
    }
    task |= {key: plain(value, key) for key, value in plan.items() if value is not None}
    folder = _folder(results, name)
    if client is not None:
        outcome = _dask.sweep(client, json.dumps(task), folder, csv, telling(progress))
    else:
        outcome = _ssdyno.task("sweep", json.dumps(task), csv=csv, progress=telling(progress), **folder)
    return concluded(outcome, SweepResult)


def _axis(key: Any, values: Any) -> str:
    values = plain(values, str(key))
    if isinstance(values, list):
        # Text without quotation marks where it has no comma: that is how an axis is shown again.
        texts = [v if isinstance(v, str) and "," not in v else toml(v, str(key)) for v in values]
        return f"{key}={','.join(texts)}"
    return f"{key}={values if isinstance(values, str) else toml(values, str(key))}"


def profile(
    target: Any,
    *,
    set: Any = None,
    write: bool = False,
    destroy: Any = (),
    overwrite: bool = False,
    results: Any = None,
    name: str | None = None,
    progress: Progress | None = None,
    **keys: Any,
) -> ProfileResult:
    """The sequential to random ratio of a target.

    ``keys`` are those of a profile (docs/schemas/task.json, ``ProfileTask``), such as ``method="serra"``,
    ``sizes=["8KiB..64KiB/8KiB"]``, ``ops=["read"]``, ``time="20s"``.
    """
    made = _Spec(keys)
    made.target(target)
    made.add_settings(settings(set))
    made.write(write, destroy, overwrite, None)
    outcome = _ssdyno.task(
        "profile", json.dumps(made.values), progress=telling(progress), **_folder(results, name)
    )
    return concluded(outcome, ProfileResult)
