"""SSDyno: a benchmark and simulator of storage devices.

>>> import ssdyno
>>> result = ssdyno.run("sim:config-a", "randread", set={"flash.channels": 16}, requests=10_000)
>>> result.latency_ns.p99
"""

from . import specs
from ._ssdyno import version as _version
from ._errors import Error, KeyMissing, RunError, UsageError, WriteError
from ._figures import Figures
from ._presets import Preset, preset, presets
from ._results import CompareResult, ProfileResult, Result, RunResult, SweepResult
from ._run import compare, profile, run, sweep
from ._trace import Trace, trace

__version__ = _version()

__all__ = [
    "CompareResult",
    "Error",
    "Figures",
    "KeyMissing",
    "Preset",
    "ProfileResult",
    "Result",
    "RunError",
    "RunResult",
    "SweepResult",
    "Trace",
    "UsageError",
    "WriteError",
    "compare",
    "preset",
    "presets",
    "profile",
    "run",
    "specs",
    "sweep",
    "trace",
]
