"""Sweeps over the workers of Dask: the table is that of a local sweep, whatever happens to workers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ssdyno

distributed = pytest.importorskip("distributed")

PLAN = {
    "target": "sim:config-a",
    "workload": "randread",
    "vary": {"flash.channels": [2, 4, 8], "workload.depth": [1, 2, 4, 100_000_000_000]},
    "objectives": ["p99", "iops"],
    "requests": 2000,
}


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        yield client


def sweep(path, **keys):
    return ssdyno.sweep(**{**PLAN, **keys}, results=path, name="s", csv=True)


def same(first, second):
    assert first.to_dict() == second.to_dict()
    for name in ("sweep.parquet", "sweep.csv", "result.json"):
        one, other = (result.parquet.with_name(name).read_bytes() for result in (first, second))
        assert one == other, name


def test_workers_give_the_table_of_a_local_sweep(client, tmp_path):
    told = []
    spread = sweep(tmp_path / "workers", client=client, progress=told.append)
    same(sweep(tmp_path / "local"), spread)
    assert (spread.done, spread.impossible) == (9, 3)
    assert told[-1].done == told[-1].of == len(spread.designs) == 12
    assert not spread.parquet.with_name("sweep.jsonl").exists()


def test_a_lost_worker_is_a_repeated_run(client, tmp_path):
    killed = []

    def kill_one(snapshot):
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    spread = sweep(tmp_path / "workers", client=client, progress=kill_one, requests=20_000)
    same(sweep(tmp_path / "local", requests=20_000), spread)
    assert killed and spread.done == 9
    client.wait_for_workers(2, timeout=60)
    assert killed[0] not in client.run(os.getpid).values()


def test_a_worker_of_another_version_is_refused_by_name(client, tmp_path):
    def pretend(version):
        import ssdyno

        ssdyno.__version__ = version

    worker = next(iter(client.run(os.getpid)))
    client.run(pretend, "0.0.0", workers=[worker])
    try:
        with pytest.raises(ssdyno.UsageError) as caught:
            sweep(tmp_path, client=client)
        assert worker in str(caught.value) and "0.0.0" in str(caught.value)
        assert caught.value.key == "client"
        # A worker that comes later is not asked beforehand.
        late = client.submit(ssdyno._dask.run_designs, "{}", [0], "9.9", workers=[worker], pure=False)
        with pytest.raises(ssdyno.UsageError, match="0.0.0"):
            late.result(timeout=60)
    finally:
        client.run(pretend, ssdyno.__version__, workers=[worker])
    assert not (tmp_path / "s").exists()


def test_an_interrupt_keeps_what_is_done(client, tmp_path):
    def stop(snapshot):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        sweep(tmp_path, client=client, progress=stop)
    assert caught.value.result.partial and len(caught.value.result.designs) == 1


@pytest.mark.parametrize(("keys", "key"), [({"time": "1s"}, "time"), ({"client": object()}, "client")])
def test_what_workers_cannot_do_is_refused(client, tmp_path, keys, key):
    with pytest.raises(ssdyno.UsageError) as caught:
        sweep(tmp_path, **{"client": client, **keys})
    assert (caught.value.key, bool(caught.value.help)) == (key, True)


@pytest.fixture
def program(monkeypatch):
    """The command line, whose `python3` is the one of this test."""
    if not (path := os.environ.get("SSDYNO_PROGRAM")):
        pytest.skip("SSDYNO_PROGRAM does not say where ssdyno is")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

    def call(*args, code=0):
        done = subprocess.run([path, *map(str, args)], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == code, done.stderr
        return done

    return call


def test_the_command_line_gives_designs_to_workers(client, program, tmp_path):
    plan = ["sweep", "sim:config-a", "--workload", "randread", "--vary", "flash.channels=2,4,8"]
    plan += ["--vary", "workload.depth=1,2,4,100000000000", "--objective", "p99,iops", "--requests", 2000]
    plan += ["--results", tmp_path, "--csv"]
    program(*plan, "--name", "here")
    program(*plan, "--name", "there", "--dask", client.scheduler.address)
    for name in ("sweep.parquet", "sweep.csv", "result.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes(), name
    # No scheduler answers there: nothing is left behind.
    failed = program(*plan, "--name", "none", "--dask", "tcp://127.0.0.1:1", code=1)
    assert "no Dask scheduler answers" in failed.stderr
    assert not (tmp_path / "none").exists()
