"""Runs: figures, errors, Ctrl-C, consent."""

import signal
import threading
import time
import tomllib

import pytest

import ssdyno


def small(**keys):
    return ssdyno.run("sim:config-a", "randread", requests=2000, **keys)


def test_figures_are_attributes():
    result = small(set={"flash.channels": 16})
    assert result.requests == 2000
    assert result.latency_ns.p99 >= result.latency_ns.p50 > 0
    assert result["latency_ns"]["p99"] == result.latency_ns.p99
    assert result.spec.contents.device.flash.channels == 16
    with pytest.raises(AttributeError, match="no figure `iopss`"):
        result.iopss
    with pytest.raises(AttributeError):
        result.iops = 1


def test_why_says_what_latencies_consist_of():
    mean = small(why=True).latency_parts_ns.read.mean.to_dict()
    total = mean.pop("total")
    assert total > 0
    assert sum(mean.values()) == pytest.approx(total, rel=0.001)
    for plain in (small(), small(why=False)):
        assert plain.to_dict().get("latency_parts_ns") is None
    assert small(spec={"why": True}).latency_parts_ns


def test_seed_decides():
    first, again, other = (small(seed=seed).latency_ns.to_dict() for seed in (7, 7, 8))
    assert first == again != other


@pytest.mark.parametrize(
    ("keys", "key", "says"),
    [
        ({"set": {"flash.chanels": 16}}, "flash.chanels", "flash.channels"),
        ({"set": {"flash.channels": "16"}}, "flash.channels", "string"),
        ({"set": {"flash.channels": object()}}, "flash.channels", "object"),
        ({"set": {"flash.channels": float("nan")}}, "flash.channels", "nan"),
        ({"set": 5}, "set", "int"),
        ({"seed": "many"}, "seed", "string"),
        ({"duration": 3}, "for", ""),
        ({"host": {"coers": 1}}, "host.coers", "cores"),
        ({"keep": "some"}, "keep", "some"),
        ({"destroy": "S1"}, "write.allowed", "write=True"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(keys, key, says):
    with pytest.raises(ssdyno.UsageError) as caught:
        small(**keys)
    assert caught.value.key == key
    assert caught.value.help
    assert says in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_name_that_does_not_exist_has_help():
    with pytest.raises(ssdyno.UsageError, match="did you mean `sim:config-a`"):
        ssdyno.run("sim:config-q", requests=10)


def test_ctrl_c_keeps_what_was_measured():
    main = threading.main_thread().ident
    threading.Timer(1.0, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as caught:
        ssdyno.run("sim:config-a", "randread", duration="1h", keep="summary")
    assert time.monotonic() - began < 20
    assert caught.value.result.requests > 0
    assert caught.value.result.latency_ns.p50 > 0


def test_other_threads_go_on_during_a_run():
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.002):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    ssdyno.run("sim:config-a", "randread", requests=200_000, keep="summary")
    ended = time.monotonic()
    done.set()
    thread.join()
    # Without the lock being released the other thread would not get a single turn in the middle.
    middle = [t for t in ticks if began + (ended - began) / 4 < t < ended - (ended - began) / 4]
    assert len(middle) >= 5


def test_an_error_of_the_progress_function_stops_the_run():
    def progress(snapshot):
        if snapshot.phase == "loaded":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as caught:
        ssdyno.run("sim:config-a", "randread", duration="1h", keep="summary", progress=progress)
    assert caught.value.result.requests > 0


def test_a_real_target_is_written_to_with_consent_alone(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"mine" * (1 << 18))
    before = target.read_bytes()
    keys = {"requests": 16, "set": {"workload.depth": 1}}
    for consent in ({}, {"write": True}, {"spec": {"write": {"allowed": True, "overwrite": True}}}):
        with pytest.raises(ssdyno.Error):
            ssdyno.run(target, "randwrite", **keys, **consent)
        assert target.read_bytes() == before
    ssdyno.run(target, "randwrite", write=True, overwrite=True, **keys)
    assert target.read_bytes() != before


def test_results_are_written_where_that_is_asked_for(tmp_path):
    result = small(results=tmp_path / "runs", name="first", csv=True)
    files = {file.name for file in (tmp_path / "runs" / "first").iterdir()}
    assert {"result.json", "report.html", "requests.parquet", "requests.csv", "series.csv"} <= files
    assert result.results_directory == str(tmp_path / "runs" / "first")
    assert small().results_directory is None


def test_html_of_a_result():
    assert "latency_ns.p99" in small()._repr_html_()


def test_a_device_of_an_object():
    from ssdyno.specs import Config, EnergyConfig, FlashConfig, FtlConfig

    keys = tomllib.loads(ssdyno.preset("config-a").to_toml())
    named = ssdyno.run("sim:config-a", "randread", requests=2000, seed=7)
    assert ssdyno.run(keys, "randread", requests=2000, seed=7).latency_ns == named.latency_ns
    tables = {"flash": FlashConfig, "ftl": FtlConfig, "energy": EnergyConfig}
    device = Config(**{key: tables[key](**value) if key in tables else value for key, value in keys.items()})
    made = ssdyno.run(device, "randread", requests=2000, seed=7)
    assert made.latency_ns == named.latency_ns
    assert made.target == "sim:Config"
    # A sweep varies its keys; the result repeats it.
    table = ssdyno.sweep(device, "randread", vary={"flash.channels": [2, 4]}, requests=500)
    assert len(table.designs) == 2
    assert ssdyno.run(spec=made.spec).latency_ns == named.latency_ns
    device.flash.channels = "many"
    with pytest.raises(ssdyno.UsageError) as caught:
        ssdyno.run(device, "randread", requests=10)
    assert "channels" in caught.value.key


def test_a_spec_of_dataclasses():
    from ssdyno.specs import FileContents, HostSpec, RunSpec, WorkloadConfig

    spec = RunSpec(target="sim:config-a", workload="randread", requests=2000, seed=7, host=HostSpec(driver="nvme", cores=2))
    result = ssdyno.run(spec=spec)
    assert result.requests == 2000
    same = ssdyno.run("sim:config-a", "randread", requests=2000, seed=7, host={"driver": "nvme", "cores": 2})
    assert result.latency_ns == same.latency_ns
    # The key `for` is no name in Python. Arguments win over the spec.
    assert ssdyno.run(spec=RunSpec(target="sim:config-a", for_="1ms")).spec["for"] == "1ms"
    assert ssdyno.run(requests=10, spec=spec).requests == 10
    load = WorkloadConfig(depth=3, read_percent=100, block_size="8KiB")
    spec = RunSpec(target="sim:config-a", workload="mine", requests=100, contents=FileContents(workload=load))
    assert ssdyno.run(spec=spec).spec.contents.workload.depth == 3
    # Without a spec around it, too.
    assert ssdyno.run("sim:config-a", load, requests=100).spec.contents.workload.depth == 3
    with pytest.raises(ssdyno.UsageError) as caught:
        ssdyno.run("sim:config-a", WorkloadConfig)
    assert caught.value.key == "workload"
    with pytest.raises(ssdyno.UsageError) as caught:
        ssdyno.run(spec=RunSpec(target="sim:config-a", host=HostSpec(cores="two")))
    assert caught.value.key == "host.cores"
