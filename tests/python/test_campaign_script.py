"""What ``campaign script`` writes: lists of cells, batch scripts, and an MPI program that does what it says."""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.papers.campaign.script import Options, Wanted, campaign_of, cell_of, write
from possible import no_mpi
from waiting import LOOP_S

CAMPAIGN = """
title = "Two switches"
measured = "m.csv"
sources = ["two switches"]
scenario = "scenario.toml"
placement = "random"
[victims."All-to-All"]
name = "all_posted"
[victims."All-Gather"]
name = "ring_allgather"
[aggressors.A2A]
name = "all_posted"
barrier = false
message_size = "2 MiB"
[aggressors.Inc]
name = "incast"
messages_per_iteration = 1
message_size = "1 MiB"
"""
WANTED = Wanted([8, 4], [512, 32768], [(1e-3, 1e-5)])
needs_mpi = pytest.mark.live("papers/campaign", absent=no_mpi)


def campaign(folder: Path, text: str = CAMPAIGN) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "campaign.toml").write_text(text)
    return folder


def test_every_victim_runs_isolated_and_beside_every_aggressor(tmp_path: Path) -> None:
    found = campaign_of(campaign(tmp_path), WANTED)
    assert found.system == "two-switches"
    beside = [("none", None, None)] + [
        (name, *pauses) for name in ("A2A", "Inc") for pauses in ((None,) * 2, (1e-3, 1e-5))
    ]
    assert list(found.cells) == [
        cell_of(nodes, victim, size, *one)
        for nodes in (4, 8)
        for victim in ("All-to-All", "All-Gather")
        for size in (512, 32768)
        for one in beside
    ]


def test_without_sizes_the_cells_are_those_that_were_measured(tmp_path: Path) -> None:
    folder = campaign(tmp_path, 'where = { system = "one" }\n' + CAMPAIGN)
    (folder / "m.csv").write_text(
        "system,nodes,victim,aggressor,burst_s,pause_s,msg_bytes,n,median_s,mean_s,p99_s,run\n"
        "one,8,All-Gather,A2A,,,64,1000,,,,a\none,8,All-to-All,none,,,512,1000,,,,a\n"
        "one,8,All-Gather,none,,,64,1000,,,,a\none,8,All-Gather,none,,,64,1000,,,,b\n"
        "two,8,Other,none,,,64,1000,,,,a\none,16,All-Gather,Inc,0.1,1e-6,512,1000,,,,a\n"
    )
    pausing = cell_of(16, "All-Gather", 512, "Inc", 0.1, 1e-6)
    others = [cell_of(8, "All-to-All", 512), cell_of(8, "All-Gather", 64), cell_of(8, "All-Gather", 64, "A2A")]
    assert [cell.key for cell in campaign_of(folder).cells] == [cell.key for cell in (*others, pausing)]
    assert [cell.key for cell in campaign_of(folder, Wanted([16])).cells] == [pausing.key]
    with pytest.raises(ScenarioError, match=r"--nodes = 12: no cell has this number of nodes; allowed: 8, 16"):
        campaign_of(folder, Wanted([12]))


def test_a_folder_has_a_list_and_a_script_for_each_number_of_nodes(tmp_path: Path) -> None:
    options = Options(system="here", account="a1", partition="p1", directives=("--mem=0",), victim_level=1)
    scripts = write(campaign_of(campaign(tmp_path / "in"), WANTED), tmp_path / "out", options)
    assert [script.name for script in scripts] == ["nodes-4.sbatch", "nodes-8.sbatch"]
    text = scripts[0].read_text()
    for line in ("--nodes=4", "--ntasks-per-node=1", "--account=a1", "--partition=p1", "--mem=0"):
        assert f"#SBATCH {line}\n" in text
    assert "VICTIM_LEVEL=1\nAGGRESSOR_LEVEL=''\n" in text
    rows = [line.split(",") for line in (tmp_path / "out" / "nodes-4.csv").read_text().splitlines()]
    assert rows[0][-2:] == ["victim_command", "aggressor_command"]
    assert [row[-2:] for row in rows[1:6]] == [
        ["all_posted --bytes 512", aggressor]
        for aggressor in (
            "",
            "all_posted --bytes 2097152 --no-barrier",
            "all_posted --bytes 2097152 --no-barrier --burst 0.001 --pause 1e-05",
            "incast --bytes 1048576",
            "incast --bytes 1048576 --burst 0.001 --pause 1e-05",
        )
    ]
    assert len(rows) == 1 + 2 * 2 * 5


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"incast"', '"incest"', ["campaign.toml:16: aggressors.Inc.name", 'mean "incast"']),
        ('"incast"', '"ring"', ["campaign.toml:16: aggressors.Inc.name", "all_posted, ring_allgather, incast"]),
        ("barrier = false", 'compute = "1 us"', ["campaign.toml:13: aggressors.A2A.compute", "cannot be measured"]),
        ("barrier = false", "barier = false", ["campaign.toml:13: aggressors.A2A.barier", 'mean "barrier"']),
        ("barrier = false", 'burst = "1 ms"', ["aggressors.A2A.burst", "cells have it"]),
        ("iteration = 1", "iteration = 2", ["aggressors.Inc.messages_per_iteration = 2", "allowed: 1"]),
        ("messages_per_iteration = 1", "", ["aggressors.Inc.messages_per_iteration = 4", "allowed: 1"]),
        ('"2 MiB"', '"2 parsec"', ["aggressors.A2A.message_size", "2 parsec"]),
        ('"2 MiB"', '"2 GiB"', ["aggressors.A2A.message_size", "less than 2 GiB"]),
        ("aggressors.Inc", "aggressors.none", ["aggressors.none", "isolated runs"]),
        ('victims."All-Gather"', 'victims."a,b"', ["victims", "letters, digits"]),
        ('measured = "m.csv"', "", ["campaign.toml: measured", "missing"]),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_named(old: str, new: str, words: list[str], tmp_path: Path) -> None:
    text = CAMPAIGN
    assert old in text
    with pytest.raises(ScenarioError) as caught:
        campaign_of(campaign(tmp_path, text.replace(old, new)), WANTED)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        ("nodes,victim,aggressor,burst_s,pause_s,msg_kib", "", ["m.csv:1", "msg_kib", "allowed: msg_bytes"]),
        ("nodes,victim,aggressor,burst_s,pause_s,msg_bytes", "8,All-Gatter,none,,,8", ["m.csv:2", 'mean "All-Gather"']),
        ("nodes,victim,aggressor,burst_s,pause_s,msg_bytes", "8,All-Gather,Incast,,,8", ["m.csv:2", 'mean "Inc"']),
        ("nodes,victim,aggressor,burst_s,pause_s,msg_bytes", "8,All-Gather,Inc,1 s,,8", ["m.csv:2", "1 s"]),
        ("nodes,victim,aggressor,burst_s,pause_s,msg_bytes", "2,All-Gather,Inc,,,8", ["2 nodes: cannot be measured"]),
    ],
)
def test_a_wrong_measured_file_is_named(header: str, row: str, words: list[str], tmp_path: Path) -> None:
    folder = campaign(tmp_path)
    (folder / "m.csv").write_text(f"{header}\n{row}\n")
    with pytest.raises(ScenarioError) as caught:
        campaign_of(folder)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--system", "a b"], "--system"),
        (["--account", "a\n#SBATCH --uid=0"], "--account"),
        (["--sbatch", "--mem=0\nrm -r ."], "--sbatch"),
        (["--nodes", "8,x"], '--nodes = "8,x": cannot be used; allowed: numbers from 4'),
        (["--nodes", "2"], '--nodes = "2"'),
        (["--sizes", "2 MB,0 B"], '--sizes = "2 MB,0 B"'),
        (["--bursts", "1 ms"], '--bursts = "1 ms"'),
        (["--bursts", "1 ms:1 ms", "--sizes", ""], '--sizes = ""'),
        (["--launcher", "mpirum"], 'allowed: srun, mpirun; did you mean "mpirun"'),
    ],
)
def test_options_that_would_break_a_script_are_refused(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [] if "--nodes" in options or "--sizes" in options else ["--nodes=8", "--sizes=1 B"]
    folder = str(campaign(tmp_path / "in"))
    command = ["campaign", "script", folder, "--out", str(tmp_path / "out"), *cells, *options]
    assert execute(command) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_has_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results").write_text("kept")
    command = ["campaign", "script", str(campaign(tmp_path / "in")), "--nodes=8", "--sizes=1 KiB"]
    assert execute([*command, "--out", str(tmp_path / "out")]) == 2
    assert "choose another folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["results"]


# The program, with an MPI library whose calls are noted on their way: CALLS has a file for each rank.
NOTING = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static void note(const char *call, int count, MPI_Datatype type, int peer) {
    char path[4096];
    int rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Type_size(type, &size);
    snprintf(path, sizeof path, "%s/%d", getenv("CALLS"), rank);
    FILE *file = fopen(path, "a");
    fprintf(file, "%s %d %d\n", call, count * size, peer);
    fclose(file);
}
int MPI_Isend(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
    note("isend", n, t, to);
    return PMPI_Isend(b, n, t, to, tag, c, r);
}
int MPI_Irecv(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r) {
    note("irecv", n, t, from);
    return PMPI_Irecv(b, n, t, from, tag, c, r);
}
int MPI_Waitall(int n, MPI_Request r[], MPI_Status s[]) {
    note("wait", n, MPI_BYTE, -1);
    return PMPI_Waitall(n, r, s);
}
int MPI_Sendrecv(const void *b, int n, MPI_Datatype t, int to, int tag, void *d, int m, MPI_Datatype u, int from,
                 int other, MPI_Comm c, MPI_Status *s) {
    note("send", n, t, to);
    note("receive", m, u, from);
    return PMPI_Sendrecv(b, n, t, to, tag, d, m, u, from, other, c, s);
}
int MPI_Barrier(MPI_Comm c) {
    note("barrier", 0, MPI_BYTE, -1);
    return PMPI_Barrier(c);
}
int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c) {
    int status = PMPI_Bcast(b, n, t, root, c);
    note(*(int *)b ? "goes-on" : "pauses", n, t, root);
    return status;
}
"""
RANKS = 3


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled program, as its Makefile compiles it, whose calls are noted."""
    folder = tmp_path_factory.mktemp("measure")
    out = folder / "out"
    write(campaign_of(campaign(folder / "in"), WANTED), out, Options())
    (folder / "noting.c").write_text(NOTING)
    flags = next(line for line in (out / "Makefile").read_text().splitlines() if line.startswith("CFLAGS")).split()[2:]
    strict = ("-Werror", "-pedantic")
    subprocess.run(["mpicc", *flags, *strict, "-c", "-o", folder / "m.o", out / "measure.c"], check=True)
    subprocess.run(["mpicc", "-o", folder / "measure", folder / "m.o", folder / "noting.c"], check=True)
    return folder / "measure"


def started(measure: Path, folder: Path, *words: str) -> "subprocess.Popen[str]":
    (folder / "calls").mkdir(exist_ok=True)
    own = {"CALLS": str(folder / "calls"), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    options = ("--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
    command = ["mpirun", *options, "-np", str(RANKS), str(measure), *words]
    return subprocess.Popen(command, cwd=folder, env=os.environ | own, stderr=subprocess.PIPE, text=True)


def calls(folder: Path, rank: int) -> list[tuple[str, int, int]]:
    lines = [line.split() for line in (folder / "calls" / str(rank)).read_text().splitlines()]
    return [(call, int(size), int(peer)) for call, size, peer in lines]


def exchange(rank: int) -> list[tuple[str, int, int]]:
    """The calls of an iteration of ``all_posted`` with messages of 1000 B."""
    peers = [peer for peer in range(RANKS) if peer != rank]
    return [(call, 1000, peer) for peer in peers for call in ("isend", "irecv")] + [("wait", 2 * len(peers), -1)]


def ring(rank: int) -> list[tuple[str, int, int]]:
    step = [("send", 1000 // RANKS, (rank + 1) % RANKS), ("receive", 1000 // RANKS, (rank - 1) % RANKS)]
    return step * (RANKS - 1)


def incast(rank: int) -> list[tuple[str, int, int]]:
    if rank:
        return [("isend", 1000, 0), ("wait", 1, -1)]
    return [*(("irecv", 1000, peer) for peer in range(1, RANKS)), ("wait", RANKS - 1, -1)]


@needs_mpi
@pytest.mark.parametrize(
    ("words", "iteration", "waits"),
    [
        (["all_posted"], exchange, True),
        (["all_posted", "--no-barrier"], exchange, False),
        (["ring_allgather"], ring, True),
        (["incast"], incast, False),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_the_program_makes_these_calls(
    words: list[str], iteration: object, waits: bool, measure: Path, tmp_path: Path
) -> None:
    output = ("--iterations", "4", "--warm-up", "2", "--output", "times.csv")
    done = started(measure, tmp_path, *words, "--bytes", "1000", *output)
    _, complaints = done.communicate()
    assert done.returncode == 0, complaints
    for rank in range(RANKS):
        once = [("barrier", 0, -1)] * waits + iteration(rank)  # type: ignore[operator]
        assert calls(tmp_path, rank) == once * 6
    hosts, library, header, *times = (tmp_path / "times.csv").read_text().splitlines()
    assert len(hosts.removeprefix("# hosts:").split()) == RANKS
    assert library.startswith("# library: ")
    assert header == "iteration,seconds"
    assert [line.split(",")[0] for line in times] == ["0", "1", "2", "3"]
    assert all(0 < float(line.split(",")[1]) < 60 for line in times)


@needs_mpi
def test_an_aggressor_pauses_after_each_burst_and_ends_by_sigterm(measure: Path, tmp_path: Path) -> None:
    words = ("all_posted", "--no-barrier", "--bytes", "1000", "--warm-up", "1", "--endless", "--ready", "ready")
    running = started(measure, tmp_path, *words, "--burst", "0.002", "--pause", "0.01")
    counts: Counter[str] = Counter()
    while counts["pauses"] < 3 and running.poll() is None:
        counts = Counter(call for call, *_ in calls(tmp_path, 0)) if (tmp_path / "calls" / "0").exists() else counts
    running.terminate()
    _, complaints = running.communicate()
    assert counts["pauses"] >= 3, complaints
    assert (tmp_path / "ready").read_text().startswith("# hosts: ")
    for rank in range(RANKS):
        found = calls(tmp_path, rank)
        length = len(exchange(rank))
        assert found[:length] == exchange(rank), "warm-up"
        rounds = [found[at : at + length + 1] for at in range(length, len(found), length + 1)]
        for one in rounds[:-1]:  # the last may have been ended
            assert one[:-1] == exchange(rank)
            assert one[-1] in [("goes-on", 4, 0), ("pauses", 4, 0)]


@needs_mpi
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["all_to_all", "--bytes", "1"], "no pattern; allowed: all_posted, ring_allgather, incast"),
        (["incast", "--bytes", "2 MiB", "--output", "x"], "--bytes 2 MiB: not a whole number from 1 to"),
        (["incast", "--output", "x"], "--bytes is missing"),
        (["incast", "--bytes", "1"], "--output is missing"),
        (["incast", "--bytes", "1", "--endless"], "--endless needs --ready"),
        (["incast", "--bytes", "1", "--output", "x", "--burst", "1"], "need --endless"),
        (["incast", "--bytes", "1", "--output", "no/such/x", "--iterations", "1"], "no/such/x.part: cannot be written"),
    ],
)
def test_the_program_names_what_is_wrong(words: list[str], complaint: str, measure: Path, tmp_path: Path) -> None:
    done = started(measure, tmp_path, *words)
    try:
        _, complaints = done.communicate(timeout=LOOP_S)
    except subprocess.TimeoutExpired:  # mpirun sometimes misses that all its processes have ended: once more
        done.kill()
        done.communicate()
        done = started(measure, tmp_path, *words)
        _, complaints = done.communicate()
    assert complaint in complaints
    assert done.returncode == 2
