"""A campaign's scripts as they run: with a launcher that only notes its calls, under Slurm, and in namespaces."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import slurm
from fairlane.cli.main import execute
from fairlane.lab.testbed import machine
from fairlane.papers.campaign.reading import read
from fairlane.papers.campaign.script import Options, Wanted, campaign_of, write
from possible import no_slurm_with_mpi, no_testbed, turn_of_testbed
from waiting import wait_for

CELLS = ["--nodes=4", "--sizes=16 KiB"]
CAMPAIGN = """
title = "Small"
sources = ["namespaces"]
placement = "random"
where = { system = "small" }
measured = "measured.csv"
[victims."All-to-All"]
name = "all_posted"
[aggressors.Inc]
name = "incast"
messages_per_iteration = 1
message_size = "8 KiB"
"""
TESTBED = """
[fabric]
switches = [{ name = "left", hosts = "a[0-1]" }, { name = "right", hosts = "b[0-1]" }]
host_link = { rate = "10 Mb/s" }
trunks = [{ between = ["left", "right"], rate = "10 Mb/s" }]
window = "64 KiB"

[[jobs]]
name = "any"
hosts = ["a0", "b0"]
workload = { name = "ping_pong", message_size = "64 B", compute = "10 ms" }
"""
# In place of mpirun: notes its calls. A victim takes its time, and an aggressor does not end by itself.
LAUNCHER = """#!/bin/bash
[ "$1" = --version ] && { echo "mpirun (Open MPI) 4.1.4"; exit; }
echo "$*, level $UCX_IB_SL" >>"$CALLS"
hosts=${4//:1/}
while [ $# -gt 0 ]; do
    case $1 in
        --ready) ready=$2 ;;
        --output) output=$2 ;;
        --iterations) iterations=$2 ;;
    esac
    shift
done
if [ -n "$ready" ]; then
    trap 'echo "end of an aggressor" >>"$CALLS"; exit' TERM
    AGGRESSOR
    while :; do sleep 0.02; done
fi
VICTIM
{
    printf '# hosts: %s\\n# library: none\\niteration,seconds\\n' "${hosts//,/ }"
    for ((at = 0; at < iterations; at++)); do echo "$at,0.001"; done
} >"$output"
"""
READY = """printf '# hosts: %s\\n# library: none\\niteration,seconds\\n' "${hosts//,/ }" >"$ready\""""

ENDED = 'while kill -0 "$(cat pid)"; do sleep 0.02; done'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of scripts for four nodes."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "campaign.toml").write_text(CAMPAIGN)
    options = Options(launcher="mpirun", repetitions=2, iterations=3, victim_level=1, aggressor_level=2)
    write(campaign_of(tmp_path / "in", Wanted([4], [1024, 16384])), tmp_path / "out", options)
    (tmp_path / "out" / "measure").touch(mode=0o755)
    (tmp_path / "hosts").write_text("# the allocation\nn1\nn2 slots=4\n\nn3\nn4\nn5\n")
    return tmp_path / "out"


def started(folder: Path, aggressor: str = READY, victim: str = "") -> "subprocess.Popen[str]":
    """The script, in a session of its own, whose launcher does this."""
    here = folder.parent
    (here / "bin").mkdir()
    (here / "bin" / "mpirun").write_text(LAUNCHER.replace("AGGRESSOR", aggressor).replace("VICTIM", victim))
    (here / "bin" / "mpirun").chmod(0o755)
    own = {"PATH": f"{here / 'bin'}:{os.environ['PATH']}", "CALLS": str(here / "calls")}
    outside = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    return subprocess.Popen(
        ["bash", f"{folder.name}/nodes-4.sbatch", "hosts"],
        cwd=here,
        env=outside | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def calls(folder: Path) -> list[str]:
    """The calls of the launcher."""
    file = folder.parent / "calls"
    return file.read_text().splitlines() if file.exists() else []


def run(folder: Path, aggressor: str = READY, victim: str = "") -> tuple[int, str, list[str]]:
    """The exit code of the script, what it printed, and the calls of its launcher."""
    running = started(folder, aggressor, victim)
    printed, _ = running.communicate()
    return running.returncode, printed, calls(folder)


def test_cells_run_one_after_the_other_and_the_next_time_in_reverse_order(folder: Path) -> None:
    code, printed, made = run(folder)
    assert code == 0, printed
    program = f"{folder / 'measure'}"

    def called(hosts: str, level: int, words: str) -> str:
        return f"-np 2 --host {hosts} -x UCX_IB_SL {program} {words}, level {level}"

    runs = sorted((folder / "results").iterdir())
    wanted = []
    for number, order in enumerate([(1, 2, 3, 4), (4, 3, 2, 1)]):
        for cell in order:
            times = runs[number] / f"00{cell}"
            if cell % 2 == 0:
                wanted.append(called("n2:1,n4:1", 2, f"incast --bytes 8192 --endless --ready {times}.aggressor"))
            size = 1024 if cell < 3 else 16384
            words = f"all_posted --bytes {size} --iterations 3 --warm-up 5 --output {times}.csv"
            wanted += [called("n1:1,n3:1", 1, words)] + ["end of an aggressor"] * (cell % 2 == 0)
    assert made == wanted
    found = read(folder)
    assert found.left_out == []
    assert found.measured["system"].unique().to_list() == ["small"]
    assert found.measured.select("run", "msg_bytes", "aggressor").rows() == [
        (one.name, size, beside) for one in runs for size in (1024, 16384) for beside in ("none", "Inc")
    ]
    assert found.placements.select("job", "node").rows()[:4] == [
        *(("victim", "n1"), ("victim", "n3"), ("aggressor", "n2"), ("aggressor", "n4"))
    ]


@pytest.mark.parametrize(
    ("aggressor", "victim", "words"),
    [
        ("exit 1", "", "the aggressor did not start: see "),
        (f"{READY}; while [ ! -f go ]; do sleep 0.02; done; exit 1", f"touch go; {ENDED}", "the aggressor had ended"),
        (READY, '[ -z "$(tail -n 3 "$CALLS" | grep ready)" ] || exit 7', "the victim ended with code 7; see "),
    ],
)
def test_a_cell_that_fails_is_named_and_the_others_are_kept(
    aggressor: str, victim: str, words: str, folder: Path
) -> None:
    code, printed, made = run(folder, aggressor=f"echo $$ >pid; {aggressor}", victim=victim)
    assert code == 1
    assert printed.count(words) == 4, printed
    assert "4 cells failed" in printed
    assert sum("--output" in line for line in made) == (4 if "not start" in words else 8)
    found = read(folder)
    assert found.measured["aggressor"].to_list() == ["none"] * 4
    assert len(found.left_out) == 4
    assert all("beside Inc" in line for line in found.left_out)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_script_that_is_ended_leaves_no_aggressor(number: int, code: int, folder: Path) -> None:
    long = '[[ $output == *1.csv ]] || { touch "$CALLS.victim"; while :; do sleep 0.02; done; }'
    running = started(folder, victim=long)
    wait_for((folder.parent / "calls.victim").exists, "the victim beside an aggressor", running)
    os.killpg(running.pid, number)
    running.communicate()
    assert running.returncode == code
    *_, aggressor, victim, end = calls(folder)
    assert ["--ready" in aggressor, "002.csv" in victim, end] == [True, True, "end of an aggressor"]


def test_too_few_hosts_and_a_program_that_is_not_built_are_named(folder: Path) -> None:
    (folder.parent / "hosts").write_text("n1\nn2\nn3\n")
    code, printed, _ = run(folder)
    assert (code, printed) == (2, "run.bash: 3 hosts, and the cells need 4\n")
    (folder.parent / "hosts").write_text("n1\nn2\nn3\nn4\n")
    (folder / "measure").unlink()
    shutil.rmtree(folder.parent / "bin")
    code, printed, _ = run(folder)
    assert (code, printed) == (2, "run.bash: build the program first: make\n")
    assert not (folder / "results").exists()


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """That of a Slurm of four nodes. PMIx wants short paths, and a folder for each node.

    The nodes are one machine: ranks share no memory by files that two nodes would have under one name.
    """
    apart = {"PMIX_MCA_gds": "hash", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1"}
    with tempfile.TemporaryDirectory(prefix="fairlane-slurm-") as name:
        own = Path(name)
        for node in range(1, 5):
            (own / f"tmp-n{node}").mkdir()
        with slurm.slurm(own, more=f"TmpFS={own}/tmp-%n") as found:
            yield {**found, **apart}


@pytest.mark.live("papers/campaign", absent=no_slurm_with_mpi)
def test_a_batch_job_of_slurm_measures_every_cell(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    out = tmp_path / "out"
    own = [
        "--launcher-options=--mpi=pmix",
        "--iterations=20",
        "--repetitions=1",
        "--time=00:20:00",
        "--system=one",
        "--nodes=4",
        "--sizes=16 KiB",
    ]
    assert execute(["campaign", "script", str(tmp_path), "--out", str(out), *own]) == 0
    subprocess.run(["make", "-s"], cwd=out, check=True)
    done = subprocess.run(
        ["sbatch", "--wait", "nodes-4.sbatch"], cwd=out, env=environment, capture_output=True, text=True, check=False
    )
    printed = "".join(path.read_text() for path in (*out.glob("*.log"), *out.glob("results/*/*.log")))
    assert done.returncode == 0, done.stderr + printed
    found = read(out)
    assert found.left_out == []
    assert found.measured.select("system", "nodes", "aggressor", "msg_bytes", "n").rows() == [
        ("one", 4, beside, 16384, 20) for beside in ("none", "Inc")
    ]
    # The ranks were where the list said, in its order: read compares it with what each rank has reported.
    assert found.placements["node"].to_list() == ["n1", "n3", "n2", "n4"]


@pytest.mark.live("papers/campaign", "lab/testbed", absent=no_testbed)
def test_a_campaign_is_measured_in_namespaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    (tmp_path / "testbed.toml").write_text(TESTBED)
    out, own = (
        tmp_path / "out",
        [*CELLS, "--iterations=10", "--repetitions=1", f"--testbed={tmp_path / 'testbed.toml'}"],
    )
    with turn_of_testbed():
        assert execute(["campaign", "script", str(tmp_path), "--out", str(out), *own]) == 0, capsys.readouterr().err
    assert machine.present() == []
    assert execute(["campaign", "read", str(out), "--out", str(tmp_path / "tables")]) == 0
    found = read(out)
    assert found.left_out == []
    assert found.placements.select("job", "node").rows() == [
        *(("victim", "a0"), ("victim", "b0"), ("aggressor", "a1"), ("aggressor", "b1"))
    ]
    assert found.measured.select("aggressor", "msg_bytes", "n").rows() == [
        (beside, 16384, 10) for beside in ("none", "Inc")
    ]
    # A message crosses links of 10 Mb/s; they may send the first packets of it, but no more than that, at once.
    assert found.measured["median_s"].min() >= (16384 - 8 * 1500) * 8 / 10e6  # type: ignore[operator] # not empty


def test_a_testbed_with_too_few_hosts_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    (tmp_path / "testbed.toml").write_text(TESTBED)
    command = ["campaign", "script", str(tmp_path), "--nodes=4,6", "--sizes=1 B", "--out", str(tmp_path / "out")]
    assert execute([*command, "--testbed", str(tmp_path / "testbed.toml")]) == 2
    assert "has 4 hosts, and there are cells of 6 nodes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
