"""A small testbed of network namespaces with Open MPI jobs, where this machine allows one."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from math import isfinite
from pathlib import Path

import polars as pl
import pytest

from fairlane.cli.main import execute
from fairlane.cluster.agent.backends.linux import Linux
from fairlane.cluster.agent.jobs import Setting
from fairlane.lab.testbed import machine
from fairlane.lab.testbed.machine import TestbedError as NotPossible
from fairlane.lab.testbed.plan import PREFIX
from possible import no_testbed, turn_of_testbed
from waiting import wait_for

SMALL = """
[fabric]
switches = [{ name = "left", hosts = "a[0-1]" }, { name = "right", hosts = "b[0-1]" }]
host_link = { rate = "5 Mb/s" }
trunks = [{ between = ["left", "right"], rate = "5 Mb/s" }]
window = "64 KiB"

[[jobs]]
name = "latency"
hosts = ["a0", "b0"]
workload = { name = "ping_pong", message_size = "64 B", compute = "10 ms" }

[[jobs]]
name = "bulk"
hosts = ["a1", "b1"]
workload = { name = "flood_pairs", message_size = "32 KiB", messages_per_iteration = 4, compute = "1 ms" }

[qos]
levels = [{ level = 0, share = 0.25 }, { level = 1, share = 0.75, dscp = 46 }]

[[qos.treatments]]
name = "latency-first"
levels = { latency = 1 }

[agent]
levels = [1]
max_loss = 0.5

[steer]
controller = { name = "process_prioritization", service_levels = 4, progress = "fractional", threshold = 0.5 }
period = "250 ms"
periods = 6
repetitions = 1

[measure]
repetitions = 3
warm_up = "200 ms"
duration = "1500 ms"
min_iterations = 3

[simulate]
replicates = 6
duration = "6 s"
"""

CLASS = re.compile(r"class htb (\S+) .*?\n Sent \d+ bytes (\d+) pkt")

pytestmark = pytest.mark.live("lab/testbed", absent=no_testbed)


@pytest.fixture(autouse=True)
def _turn() -> Iterator[None]:
    with turn_of_testbed():
        yield


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def links() -> list[str]:
    """The devices of the machine itself."""
    text = subprocess.run(["ip", "-json", "link"], capture_output=True, text=True, check=True).stdout
    return sorted(one["ifname"] for one in json.loads(text))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """Packets that each class of a trunk's device has sent, each time before levels are changed or taken back."""
    found: list[dict[str, int]] = []
    write = Linux.write

    def counted(backend: Linux, settings: Sequence[Setting]) -> None:
        for one in backend.devices:
            command = ["tc", "-n", one.namespace, "-s", "class", "show", "dev", one.device]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found.append({name: int(sent) for name, sent in CLASS.findall(text)})
        write(backend, settings)

    monkeypatch.setattr(Linux, "write", counted)
    return found


def test_a_testbed_is_measured_predicted_controlled_and_gone(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], served: list[dict[str, int]]
) -> None:
    before = links()
    assert execute(["testbed", "run", str(file), "--out", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert links() == before
    assert machine.present() == []
    # How much a job loses and gains depends on what else the machine does; that both are known, and that the packets
    # of a level are sent by its class, does not. Class 2 is that of level 1.
    for table in (found["w"], found["effects"]):
        assert [row["job"] for row in table] == ["latency", "bulk"]
        assert all(isfinite(row["measured"]) and isfinite(row["predicted"]) for row in table)
    treated = next(one for one in served if one)
    assert treated["fa1:1"] > 0
    assert treated["fa1:2"] > 0
    # What the agent decides depends on the fit, and so on the machine; that it decides, sets and takes back does not.
    levels = {row["job"]: row["level"] for row in found["agent"]}
    assert set(levels) == {"latency", "bulk"}
    assert found["decisions"]
    assert any(levels.values()) == any("withdrawn" in line for line in found["decisions"]), found["decisions"]
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files >= {"w.csv", "effects.csv", "agent.csv", "steered.csv", "testbed.json", "testbed.png"}
    # What a controller gains in six periods is chance; that it reads real progress and that levels are in force is not.
    assert [row["job"] for row in found["steered"]] == ["latency", "bulk", "(mean)"]
    assert all(row["measured"] is not None and row["predicted"] is not None for row in found["steered"])
    periods = pl.read_parquet(tmp_path / "out" / "periods.parquet")
    assert periods["period"].unique().sort().to_list() == list(range(6))
    assert periods.filter(pl.col("period") == 0)["weights"].to_list() == ["{}", "{}"], "the default run"
    assert periods.filter((pl.col("state") == "RUNNING") & (pl.col("weights") != "{}")).height > 0
    assert (periods["advance"] > 0).any()
    assert (periods["read_s"] > 0).all()
    assert any("a change, verified took" in line for line in found["costs"])
    _check_resumed(file, tmp_path / "out", capsys)
    for job, measured in found["isolated_measured_s"].items():
        assert found["isolated_simulated_s"][job] == pytest.approx(measured, rel=0.5)


def _check_resumed(file: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is stored is not measured again, and what is of another controller is refused."""
    file.write_text(SMALL.replace("[agent]\nlevels = [1]\nmax_loss = 0.5\n", ""), encoding="utf-8")
    resume = ["testbed", "run", str(file), "--out", str(out), "--resume", "--set"]
    stored = out / "steered" / "repetition-0000.parquet"
    before = stored.read_bytes()
    (out / "steered" / "repetition-0001.parquet").write_bytes(before)  # as of a run that was killed later
    (out / "steered" / "periods-0001.parquet").write_bytes((out / "steered" / "periods-0000.parquet").read_bytes())
    assert execute([*resume, "steer.repetitions=2"]) == 0
    printed = capsys.readouterr()
    assert "repetition" not in printed.err
    assert "Improvement by the controller" in printed.out
    assert stored.read_bytes() == before
    assert execute([*resume, "steer.controller.service_levels=3"]) == 2
    assert "has periods of another testbed or controller" in capsys.readouterr().err


def _is_set(host: str) -> bool:
    shown = ["sysctl", "-n", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_early_retrans"]
    # The namespace of a host is there a moment before commands can enter it.
    found = subprocess.run(machine.inside(host, shown), capture_output=True, text=True, check=False)
    return found.returncode == 0 and found.stdout.split() == ["reno", "0"]


def test_a_killed_testbed_leaves_no_process_and_is_removed_by_the_next_command(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-m", "fairlane", "testbed", "run", str(file), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    hosts = [f"{PREFIX}host-{name}" for name in ("a0", "a1", "b0", "b1")]
    wait_for(
        lambda: machine.present() and all(machine.processes(name) for name in hosts if name in machine.present()),
        "processes on all hosts",
        process,
    )
    for host in hosts:  # not what the machine has by default, which may pace packets
        wait_for(partial(_is_set, host), f"settings of {host}", process)
    with pytest.raises(NotPossible, match="another process of this machine has a testbed"), machine.only_one():
        pass
    assert execute(["testbed", "down"]) == 2
    assert "another process of this machine has a testbed" in capsys.readouterr().err
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(machine.processes(name) for name in machine.present()), "the end of all processes")
    assert machine.present(), "a killed command cannot remove them"
    assert execute(["testbed", "status"]) == 0
    assert f"{PREFIX}host-a0: 0 processes" in capsys.readouterr().out
    assert execute(["testbed", "down"]) == 0
    assert machine.present() == []
    assert not [path for path in Path("/sys/class/net").iterdir() if path.name.startswith(("trunk", "port", "ctl"))]
    assert machine.LOCK.exists()
