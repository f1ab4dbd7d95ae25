"""Studies on Dask: a real cluster of two worker processes, and jobs of a real Slurm on loopback."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import slurm
from fairlane.core.errors import RunError, ScenarioError
from fairlane.results.study import StudyResults
from fairlane.study.running import run
from fairlane.study.study import Study
from fairlane.study.tasks import cluster
from fairlane.study.tasks.store import Store
from possible import no_slurm
from small_study import CONTROLLED, SCENARIO, STUDY, Here

LOCAL = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0") as cluster:
        print(cluster.scheduler_address, flush=True)
        input()
"""
CLUSTER = """
[cluster]
jobs = 2
memory = "1 GiB"
interface = "lo"
skip = ["--mem"]
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    (tmp_path / "small.toml").write_text(SCENARIO)
    (tmp_path / "levels.toml").write_text(STUDY + CONTROLLED + CLUSTER)
    return Study.load(tmp_path / "levels.toml")


def alone(study: Study, folder: Path) -> StudyResults:
    """The study as this process alone computes it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("fairlane.study.tasks.pools.Processes", Here)
        return run(study, out=folder / "here", workers=1)


@contextmanager
def local_cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A scheduler with two workers: its address, and the process that they all end with."""
    (folder / "cluster.py").write_text(LOCAL)
    workers = subprocess.Popen(
        [sys.executable, folder / "cluster.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert workers.stdout is not None
    try:
        yield workers.stdout.readline().strip(), workers
    finally:
        workers.communicate("\n")


def test_dask_makes_the_same_tables(study: Study, tmp_path: Path) -> None:
    here = alone(study, tmp_path)
    with local_cluster(tmp_path) as (address, _):
        there = run(study, out=tmp_path / "there", dask=address)
    assert there.meta.profile["workers"] == 2
    assert there.meta.digest == here.meta.digest
    assert all(table.equals(there.tables()[name]) for name, table in here.tables().items())


@pytest.mark.live("study/tasks", absent=no_slurm)
def test_slurm_makes_the_same_tables(study: Study, tmp_path: Path) -> None:
    here = alone(study, tmp_path)
    (tmp_path / "slurm").mkdir()
    with slurm.slurm(tmp_path / "slurm") as environment:
        command = [
            sys.executable,
            "-c",
            "from fairlane.cli import main; main()",
            "study",
            str(tmp_path / "levels.toml"),
        ]
        subprocess.run([*command, "--out", str(tmp_path / "there")], env=environment, check=True)
        jobs = subprocess.run(
            ["scontrol", "show", "jobs", "--oneliner"], env=environment, capture_output=True, text=True, check=True
        ).stdout
    assert jobs.count("JobName=fairlane-levels") == 2
    there = StudyResults.load(tmp_path / "there")
    assert there.meta.digest == here.meta.digest


@pytest.mark.live("study/tasks", absent=no_slurm)
def test_jobs_that_slurm_does_not_take_are_wrong_input(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "levels.toml").write_text(study.text + 'queue = "nosuch"\n')
    (tmp_path / "slurm").mkdir()
    with slurm.slurm(tmp_path / "slurm") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(
            ScenarioError, match=r"levels.toml:\d+: cluster: Slurm .* invalid partition specified: nosuch"
        ):
            run(Study.load(tmp_path / "levels.toml"), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_slurm_its_program_is_named(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ScenarioError, match="cluster: Slurm does not take its jobs: sbatch: No such file or directory"):
        run(study, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_study_that_goes_on_keeps_its_answers_where_slurm_takes_no_jobs(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = alone(study, tmp_path)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ScenarioError, match="Slurm does not take its jobs"):
        run(study, out=tmp_path / "here", resume=True)
    assert len(list((tmp_path / "here" / "answers").iterdir())) == here.meta.simulations
    (tmp_path / "empty").mkdir()
    with pytest.raises(ScenarioError, match="Slurm does not take its jobs"):
        run(study, out=tmp_path / "empty")
    assert not list((tmp_path / "empty").iterdir()), "the user's own folder stays"


def test_ctrl_c_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    sys.modules.pop("dask_jobqueue", None)
    sys.modules.pop("dask_jobqueue.runner", None)
    assert cluster.import_extra("dask_jobqueue").SLURMCluster
    assert signal.getsignal(signal.SIGINT) is before


def test_a_scheduler_that_is_not_there_is_wrong_input(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "FIRST_WAIT_S", "1 s")
    with pytest.raises(ScenarioError, match="no scheduler answers"):
        run(study, out=tmp_path / "out", dask="tcp://127.0.0.1:9")


@pytest.mark.long("study/tasks", "study")
def test_a_scheduler_that_dies_leaves_what_was_found(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says how to go on, and the study does so with what there is."""
    keep, out = Store.keep, tmp_path / "out"
    with local_cluster(tmp_path) as (address, workers):

        def kill(self: Store, *found: Any) -> None:
            keep(self, *found)
            workers.kill()

        monkeypatch.setattr(Store, "keep", kill)
        with pytest.raises(RunError, match=r"the Dask scheduler is gone.*--resume"):
            run(study, out=out, dask=address)
    monkeypatch.setattr(Store, "keep", keep)
    assert Store(out).digests()
    resumed = run(study, out=out, resume=True, workers=1)
    assert resumed.meta.digest == alone(study, tmp_path).meta.digest


@pytest.mark.parametrize(
    "address", ["", "tcp://127.0.0.1:notaport", "127.0.0.1", "tcp://:8786", "127.0.0.1:0", "a:65536"]
)
def test_an_address_without_host_and_port_is_refused_at_once(study: Study, tmp_path: Path, address: str) -> None:
    with pytest.raises(ScenarioError, match="names no host and port; allowed: as tcp"):
        run(study, out=tmp_path / "out", dask=address)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("address", ["localhost:8786", "tls://[::1]:8786", "a.b:65535", "wss://host/path", "ws://host"])
def test_an_address_that_can_be_is_asked(
    study: Study, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def client(address: str, **_options: object) -> None:
        asked.append(address)
        raise OSError("nobody is there")

    listening = []

    def port(address: tuple[str, int], _wait: float) -> socket.socket:
        listening.append(address)
        return socket.socket()

    monkeypatch.setattr("distributed.Client", client)
    monkeypatch.setattr("socket.create_connection", port)
    with pytest.raises(ScenarioError, match="no scheduler answers: nobody is there"):
        run(study, out=tmp_path / "out", dask=address)
    assert asked == [address]
    host, _, number = address.rpartition("://")[2].rpartition(":")
    assert set(listening) == (set() if address.startswith("ws") else {(host.strip("[]"), int(number))})
