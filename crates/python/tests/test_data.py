"""Rows, presets, requests from arrays; comparisons, sweeps, profiles."""

import numpy
import pytest

import ssdyno


def small(target="sim:config-a", workload="randread", **keys):
    return ssdyno.run(target, workload, requests=2000, **keys)


def test_rows_are_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    result = small()
    first, second = pyarrow.table(result.rows), result.to_arrow()
    assert first.num_rows == len(result.rows) == 2000
    assert first.column_names[:4] == ["issue_ns", "latency_ns", "op", "offset_bytes"]
    # Readers share the memory.
    addresses = [t.column("latency_ns").chunk(0).buffers()[1].address for t in (first, second)]
    assert addresses[0] == addresses[1]
    latency = first.column("latency_ns").to_numpy()
    # Rows have whole nanoseconds.
    assert latency.max() == int(result.latency_ns.max)
    assert set(first.column("op").to_pylist()) == {"read"}
    assert small(keep="summary").rows is None


def test_rows_go_to_other_libraries():
    result = small()
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    assert len(result.to_pandas()) == 2000
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(result.rows).height == 2000
    duckdb = pytest.importorskip("duckdb")
    requests = result.to_arrow()
    assert duckdb.sql("select count(*) from requests").fetchall() == [(2000,)]
    assert len(requests) == 2000


def test_presets_change_by_attribute():
    device = ssdyno.preset("config-a")
    before = device.flash.channels
    device.flash.channels = before * 2
    assert device.flash.channels == device["flash.channels"] == before * 2
    assert device.changes == {"flash.channels": before * 2}
    assert ssdyno.preset("config-a").flash.channels == before
    assert small(device).spec.contents.device.flash.channels == before * 2
    with pytest.raises(ssdyno.KeyMissing) as caught:
        device.flash.chanels = 3
    assert (caught.value.key, "flash.channels" in caught.value.help) == ("flash.chanels", True)
    assert not hasattr(device.flash, "nonsense")
    with pytest.raises(ssdyno.UsageError):
        device.flash.channels = object()
    assert device.flash.channels == before * 2
    other = device.copy()
    other.flash.channels = before
    assert device.flash.channels == before * 2


def test_workloads_change_by_attribute():
    load = ssdyno.preset("randread")
    load.depth = 3
    result = small(workload=load)
    assert result.spec.contents.workload.depth == 3
    assert {"randread", "mixed"} <= {entry.name for entry in ssdyno.presets().workloads}


def test_requests_from_arrays_and_iterators():
    count = 500
    columns = {
        "time_ns": numpy.arange(count) * 10_000,
        "op": numpy.where(numpy.arange(count) % 5 == 0, "write", "read"),
        "offset_bytes": numpy.arange(count) * 4096,
        "length_bytes": numpy.full(count, 4096),
    }
    by_dict = ssdyno.run("sim:config-a", columns)
    rows = zip(*(column.tolist() for column in columns.values()))
    by_iterator = ssdyno.run("sim:config-a", rows)
    assert by_dict.requests == by_iterator.requests == count
    assert by_dict.latency_ns.mean == by_iterator.latency_ns.mean


@pytest.mark.parametrize(
    ("requests", "key"),
    [
        ([], "workload"),
        ([(0, "read", 0)], "workload[0]"),
        ([(0, "read", 0, 4096), (0, "raed", 0, 4096)], "workload[1].op"),
        ([(0, "read", -1, 4096)], "workload[0].offset_bytes"),
        ({"op": ["read"]}, "workload.time_ns"),
        (5, "workload"),
    ],
)
def test_requests_that_cannot_be_are_refused(requests, key):
    with pytest.raises(ssdyno.UsageError) as caught:
        ssdyno.run("sim:config-a", requests)
    assert caught.value.key == key


def test_compare():
    wide = ssdyno.preset("config-a")
    wide.flash.channels = wide.flash.channels * 2
    compared = ssdyno.compare("sim:config-a", wide, workload="randread", requests=2000)
    assert len(compared.results) == 2 and len(compared.comparisons) == 1
    assert len(ssdyno.compare(small(), small(seed=2)).results) == 2
    with pytest.raises(ssdyno.UsageError) as caught:
        ssdyno.compare("sim:config-a")
    assert caught.value.key == "sides"


def test_compare_with_runs():
    compared = ssdyno.compare("sim:config-a", "sim:config-a", workload="randread", requests=500, seed=3, runs=2)
    assert [[run.spec.seed for run in side.runs] for side in compared.repeated] == [[3, 4], [3, 4]]
    with pytest.raises(ssdyno.UsageError) as caught:
        ssdyno.compare("sim:config-a", "sim:config-a", requests=500, runs=1)
    assert caught.value.key == "runs"


def test_sweep(tmp_path):
    swept = ssdyno.sweep(
        "sim:config-a", "randread", vary={"flash.channels": [2, 4]}, requests=1000, results=tmp_path, name="s"
    )
    assert len(swept.designs) == len(swept.rows) == 2
    assert swept.front and "flash.channels" in swept._repr_html_()
    assert swept.parquet == tmp_path / "s" / "sweep.parquet" and swept.parquet.is_file()
    pytest.importorskip("pyarrow")
    assert swept.to_arrow().column("flash.channels").to_pylist() == [2.0, 4.0]


def test_profile():
    found = ssdyno.profile("sim:config-a", method="serra", ops=["read"], sizes=["8KiB..16KiB/8KiB"], time="2s")
    assert found.target.endswith("config-a")
    with pytest.raises(ssdyno.UsageError) as caught:
        ssdyno.profile("sim:config-a", metod="serra")
    assert caught.value.key == "metod"
