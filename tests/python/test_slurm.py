"""What Slurm reads: lists of hosts both ways, and topology.conf of a real cluster beside its own."""

import re
from pathlib import Path

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.cluster.counters.shared import read_allocation
from fairlane.core.errors import ScenarioError
from fairlane.inputs.hosts import SlurmJob, can_hold, compress, expand, in_order
from fairlane.inputs.slurm_jobs import read_job_list
from fairlane.model.fabric.export import FORMATS
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.wiring import Wiring

DATA = Path(__file__).parents[1] / "data" / "fabrics"
NAMES = st.from_regex(r"[a-z.-]{0,3}[0-9]{0,4}[a-z]?[0-9]{0,20}", fullmatch=True).filter(bool)


@given(names=st.lists(NAMES, max_size=40))
def test_lists_hold_each_name_once(names: list[str]) -> None:
    text = compress(names)
    found = expand(text)
    assert sorted(found) == sorted(set(names))
    assert compress(found) == text


@given(numbers=st.sets(st.integers(0, 300), min_size=1), width=st.integers(0, 4))
def test_numbers_of_one_prefix_stand_in_ranges(numbers: set[int], width: int) -> None:
    names = [f"rack{number:0{width}d}" for number in numbers]
    text = compress(names)
    assert sorted(expand(text)) == sorted(names)
    stretches = sum(number - 1 not in numbers for number in numbers)
    # Widths differ only where numbers outgrow theirs: one more range for each such step at most.
    assert text.count(",") + 1 <= stretches + 3


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a1", "a2", "a3", "a7"], "a[1-3,7]"),
        (["a08", "a09", "a10"], "a[08-10]"),
        (["a9", "a10"], "a[9-10]"),
        (["a1", "a01"], "a[1,01]"),
        (["login", "a1"], "login,a1"),
        (["a", "a2"], "a,a2"),
        (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
        ([], ""),
    ],
)
def test_lists_as_slurm_writes_them(names: list[str], text: str) -> None:
    assert compress(names) == text
    assert sorted(expand(text)) == sorted(names)


@given(names=st.lists(NAMES, max_size=20, unique=True))
def test_lists_in_order_keep_it(names: list[str]) -> None:
    assert expand(in_order(names)) == names
    assert in_order([f"n{at}" for at in range(3)]) == "n[0-2]"


@pytest.mark.parametrize("text", ["a[1-3", "a[3-1]", "a[x]", "a]", "a,,b", "a[1]b", "a[0-9999999]"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError):
        expand(text)
    with pytest.raises(ScenarioError, match="cannot be in a list"):
        compress(["a[1]"])


def of_wiring(wiring: Wiring, *, merged: bool) -> str:
    return FORMATS["topology-conf"].write(wiring, merged=merged).text


def parsed(text: str) -> dict[str, tuple[str, list[str]]]:
    """By switch: "Nodes" or "Switches", and which."""
    rows = (re.fullmatch(r"SwitchName=(\S+) (Nodes|Switches)=(\S+)", line) for line in text.splitlines())
    return {row[1]: (row[2], expand(row[3])) for row in rows if row}


def test_a_real_cluster_is_written_as_its_own_file_has_it() -> None:
    wiring = read_wiring(DATA / "x5.ibnetdiscover")
    found = parsed(of_wiring(wiring, merged=False))
    theirs = parsed((DATA / "x5.slurm-topology.conf").read_text(encoding="utf-8"))
    assert found.keys() == theirs.keys()
    switch_level = {f"S-{guid:016x}": name for guid, name in wiring.guids.items()}
    levels = dict(zip(wiring.switches, wiring.fabric("up_down").levels, strict=True))
    for name, (kind, members) in theirs.items():
        assert found[name][0] == kind
        if kind == "Nodes":  # the dump knows adapters, the file machines
            assert len(found[name][1]) == len(members)
        else:  # the file lists all switches that are joined, also those above
            below = {one for one in members if levels[switch_level[one]] < levels[switch_level[name]]}
            assert set(found[name][1]) == below


def is_strict_tree(text: str, hosts: list[str]) -> None:
    """Every host and every switch but one is below exactly one switch."""
    found = parsed(text)
    members = [one for _, below in found.values() for one in below]
    assert len(members) == len(set(members))
    assert set(hosts) <= set(members)
    assert len(set(found) - set(members)) == 1


def test_merged_switches_make_a_strict_tree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wiring = read_wiring(DATA / "x5.ibnetdiscover")
    is_strict_tree(of_wiring(wiring, merged=True), list(wiring.hosts))
    for options, hosts in (
        (["fat_tree", "--set", "hosts=32"], 32),
        (["torus", "--set", "sides=[4,2]"], 8),
        (
            [
                "dragonfly",
                "--set",
                "groups=5",
                "--set",
                "switches_per_group=4",
                "--set",
                "global_links=1",
                "--set",
                "hosts_per_switch=2",
            ],
            40,
        ),
    ):
        status = execute(["fabric", "export", "--topology", *options, "--topology-conf", "--merged"])
        text = capsys.readouterr()
        assert status == 0, text.err
        is_strict_tree(text.out, [f"host{at}" for at in range(hosts)])
    target = tmp_path / "topology.conf"
    dump = str(DATA / "x5.ibnetdiscover")
    assert execute(["fabric", "export", dump, "--topology-conf", "-o", str(target)]) == 0
    assert target.read_text(encoding="utf-8") == of_wiring(wiring, merged=False)
    assert execute(["fabric", "export", dump, "--topology-conf", "-o", str(tmp_path / "no" / "file")]) == 2
    assert execute(["fabric", "export", "--topology-conf"]) == 2


def test_place_prints_node_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "torus.toml"
    scenario.write_text(
        '[fabric]\ntopology = "torus"\nsides = [4, 4]\n[placement]\nname = "box"\nshape = [2, 2]\n'
        '[[jobs]]\nworkload = "all_to_all"\nranks = 4\n',
        encoding="utf-8",
    )
    assert execute(["place", str(scenario), "--slurm"]) == 0
    assert capsys.readouterr().out == "all_to_all host[0-1,4-5]\n"


def test_node_lists_that_are_printed_are_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [{"name": name, "workload": "ring", "ranks": ranks} for name, ranks in (("a job", 3), ("other", 5))]
    made = Scenario.read({"duration": "1 ms", "fabric": {"topology": "fat_tree", "hosts": 16}, "jobs": jobs}).decide()
    scenario = tmp_path / "two.toml"
    scenario.write_text(
        tomlkit.dumps({"duration": "1 ms", "fabric": {"topology": "fat_tree", "hosts": 16}, "jobs": jobs})
    )
    assert execute(["place", str(scenario), "--slurm"]) == 0
    (tmp_path / "jobs").write_text(capsys.readouterr().out)
    found, notes = read_allocation(tmp_path / "jobs", made.fabric)
    assert {job: set(of.hosts) for job, of in found.items()} == {job.name: set(job.hosts) for job in made.jobs}
    assert notes == []


def test_names_that_a_list_cannot_hold_are_known() -> None:
    assert can_hold("rack1-h7.domain")
    assert not any(map(can_hold, ("a b", "a,b", "a[1]", "", "a=b", "a#b")))


TWO_JOBS = (SlurmJob("17", ("n1", "n2")), SlurmJob("18_3", ("n4",)))
NAMED = (
    SlurmJob("17", ("n1", "n2"), "my job", "phys", "batch", "ada"),
    SlurmJob("18_3", ("n4",), "io", "bio", "batch", "bob"),
)
LISTS = {
    "without titles": (TWO_JOBS, 4, "17 n[1-2]\n18_3\tn4\n19 (null)\n20\n21 (Priority)\n22 None assigned\n"),
    "two columns": (TWO_JOBS, 1, "JOBID NODELIST\n17 n1\n17 n2\n18_3 n4\n20\n"),
    "squeue": (
        tuple(SlurmJob(job.id, job.nodes, job.name, "", job.partition, job.user) for job in NAMED),
        3,
        """             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
                17     batch   my job      ada  R       0:07      2 n[1-2]
              18_3     batch       io      bob  S       0:07      1 n4
        19_[4-5%1]     batch     wait      bob PD       0:00      1 (Nodes required for job are DOWN (or reserved))
                20     batch     done      bob CG       0:00      1 n5
                21     batch   wait 2      bob PD       0:00      1 (null)
""",
    ),
    "sacct": (
        NAMED,
        2,
        """JobID|JobName|Account|Partition|User|State|NodeList
17|my job|phys|batch|ada|RUNNING|n[1-2]
17.batch|batch|phys|||RUNNING|n1
18_3|io|bio|batch|bob|RUNNING|n4
19|old|bio|batch|bob|CANCELLED by 1000|n4
20|new|bio|batch|bob|PENDING|None assigned
""",
    ),
    "pasted": (
        NAMED,
        1,
        """ada@login1:~$ date; squeue -t all
Sat Nov 28 12:01:02 CET 2026
Sat Nov 28 12:01:02 2026
 JOBID PARTITION ACCOUNT NAME USER ST NODELIST(REASON)
    17 batch phys my job ada R n[1-2]
  18_3 batch bio io bob R n4
    20 batch bio C# 2 bob PD (Priority)
ada@login1:~$
""",
    ),
    "sacct with a rule": (TWO_JOBS, 0, "JobID        NodeList\n------------ --------\n17  n[1-2]\n18_3  n4\n"),
    "without titles, pasted": (TWO_JOBS, 0, "[ada@login1 ~]$ squeue -h -o '%i %N'\n17 n[1-2]\n18_3 n4\n"),
    "sacct -p": (TWO_JOBS, 0, "JobID|NodeList|\n17|n[1-2]|\n18_3|n4|\n"),
}


@pytest.mark.parametrize("kind", LISTS)
def test_jobs_are_read_from_what_slurm_prints(kind: str, tmp_path: Path) -> None:
    jobs, waiting, text = LISTS[kind]
    (tmp_path / "jobs").write_text(text)
    found = read_job_list(tmp_path / "jobs")
    assert found.jobs == jobs
    assert found.waiting == waiting
    assert bool(found.notes) == bool(waiting) or "pasted" in kind


def test_lines_around_a_table_of_jobs_are_counted(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text(LISTS["pasted"][2])
    skipped, waiting = read_job_list(tmp_path / "jobs").notes
    assert skipped == "4 lines skipped (first: line 1): 2 shell prompt, 2 time stamp"
    assert waiting.startswith("1 job has no nodes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("17 n1\n18 n[1\n", 'jobs:2: nodes = "n[1": no list of hosts'),
        ("JOBID NAME STATE\n17 x R n1\n", 'jobs:1: line = "JOBID NAME STATE": has titles, and none of a node list'),
        ("JOBID USER NODELIST\n17 ada bob n1\n", 'jobs:2: line = "17 ada bob n1": 4 values for 3 columns'),
        ('{"job": []}', "jobs: JSON without a list `jobs`; allowed: the output of squeue --json"),
        ('{"jobs": [}', "jobs:1:"),
    ],
)
def test_what_is_no_list_of_jobs_is_refused_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text(text)
    with pytest.raises(ScenarioError) as raised:
        read_job_list(tmp_path / "jobs")
    assert words in str(raised.value)
