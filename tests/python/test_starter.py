"""``fairlane init``: a first scenario of a real cluster, from its dump and from what Slurm prints."""

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.cluster.agent.config import AgentConfig
from fairlane.inputs.hosts import SlurmJob
from fairlane.model.fabric.view import Fabric

ROOT = Path(__file__).parents[2]
DUMP = ROOT / "tests" / "data" / "fabrics" / "x5.ibnetdiscover"
SQUEUE = """  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
     17     batch   my cfd      ada  R       0:07      4 n[10-13]
     18     batch   my cfd      bob  R       0:07      3 n[20-22]
     19        io     ckpt      bob  R       0:07      3 n[21,30-31]
     20     batch    small      bob  R       0:07      1 n40
     21     batch   onlogin     bob  R       0:07      2 n[01-02]
     22       gpu   train       bob  R       0:07      2 gpu[1-2]
     23     batch     wait      bob PD       0:00      4 (Priority)
"""


@pytest.fixture(scope="session")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster's fabric with names of hosts, as ``fabric import`` writes it."""
    found = tmp_path_factory.mktemp("fabric") / "named.json"
    names = ROOT / "examples" / "operating" / "names.map"
    assert execute(["fabric", "import", str(DUMP), "--node-name-map", str(names), "-o", str(found)]) == 0
    return found


def made(folder: Path, fabric: Path, *options: str, jobs: str | None = SQUEUE) -> tuple[Path, dict[str, Any]]:
    """The scenario that the command has written, and its data."""
    arguments = ["init", str(fabric)]
    if jobs is not None:
        (folder / "jobs").write_text(jobs)
        arguments.append(str(folder / "jobs"))
    out = folder / "cluster.toml"
    assert execute([*arguments, "-o", str(out), *options]) == 0
    return out, tomllib.loads(out.read_text(encoding="utf-8"))


def test_a_cluster_becomes_a_scenario_that_runs(
    tmp_path: Path, fabric: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, data = made(tmp_path, fabric, "--exclude", "n0[1-9]", "--workload", "*cfd=all_to_all")
    notes = capsys.readouterr().err
    assert [(job["name"], job["placement"]["hosts"]) for job in data["jobs"]] == [
        ("my_cfd", "n[10-13]"),
        ("my_cfd-18", "n[20-22]"),
        ("ckpt", "n[21,30-31]"),
    ]
    assert [
        job["workload"] if isinstance(job["workload"], str) else job["workload"]["name"] for job in data["jobs"]
    ] == [
        "all_to_all",
        "all_to_all",
        "nearest_neighbor",
    ]
    # Two jobs have n21, and say so; the first has its hosts for itself.
    assert ["shared" in job["placement"] for job in data["jobs"]] == [False, True, True]
    assert data["placement"]["among"] == "n[10-89]"
    for words in (
        "1 job has no nodes, or not any more: left out",
        "9 hosts without jobs: n[01-09]",
        "left out: 1 job on one host, which send nothing over the fabric: 20",
        "left out: 2 jobs on nodes that the fabric does not have, or that are excluded: 21 (n01), 22 (gpu1)",
    ):
        assert f"fairlane: {words}\n" in notes
    hosts = [job.hosts for job in Scenario.load(file).decide().jobs]
    names = json.loads((tmp_path / "cluster.fabric.json").read_text())["hosts"]
    assert [[names[host] for host in job] for job in hosts] == [
        ["n10", "n11", "n12", "n13"],
        ["n20", "n21", "n22"],
        ["n21", "n30", "n31"],
    ]
    assert execute(["check", str(file)]) == 0
    assert execute(["run", str(file), "--duration", "1 ms", "--no-isolated", "-q", "-o", str(tmp_path / "run")]) == 0


def test_options_choose_jobs_and_hosts(tmp_path: Path, fabric: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--partition", "batch", "--hosts", "n[05-60]", "--exclude", "n[05-06]", "--jobs", "1"]
    _, data = made(tmp_path, fabric, *options, "--ranks-per-host", "4")
    assert [job["name"] for job in data["jobs"]] == ["my_cfd"]
    assert data["placement"] == {"name": "random", "ranks_per_host": 4, "among": "n[07-60]"}
    resolved = Scenario.load(tmp_path / "cluster.toml").decide()
    assert [job.ranks for job in resolved.jobs] == [16]
    notes = capsys.readouterr().err
    assert "left out: 2 jobs in other partitions: 19, 22" in notes
    assert "left out: 1 job beyond the 1 largest (--jobs): 18" in notes


def test_the_output_of_ibnetdiscover_alone_makes_a_scenario(tmp_path: Path) -> None:
    dump = shutil.copy(DUMP, tmp_path / "x5.ibnetdiscover")
    file, data = made(tmp_path, Path(dump), jobs=None)
    assert [job["ranks"] for job in data["jobs"]] == [22, 22]  # a quarter of 89 hosts
    assert len({host for job in Scenario.load(file).decide().jobs for host in job.hosts}) == 44


@pytest.mark.parametrize(
    ("options", "jobs", "words"),
    [
        (["--exclude", "login*"], SQUEUE, '--exclude = "login*": matches no host of the fabric: n[01-89]'),
        (["--exclude", "*"], SQUEUE, "no host is left"),
        (["--hosts", "n[85-92]"], SQUEUE, '--hosts = "n90": the fabric has no such host'),
        (["--partition", "btch"], SQUEUE, '--partition = "btch": no job that runs is in this partition; allowed: '),
        (["--partition", "btch"], SQUEUE, 'did you mean "batch"?'),
        (["--workload", "cfd"], SQUEUE, '--workload = "cfd": names no workload'),
        (["--workload", "*=halo3"], SQUEUE, 'did you mean "halo3d"?'),
        (
            [],
            "17 gpu1,gpu2\n",
            "left out: 1 job on nodes that the fabric does not have, or that are excluded: 17 (gpu1)",
        ),
        ([], "17 (null)\n", "lists no running job"),
    ],
)
def test_what_makes_no_scenario_is_refused(
    options: list[str], jobs: str, words: str, tmp_path: Path, fabric: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jobs").write_text(jobs)
    out = tmp_path / "cluster.toml"
    assert execute(["init", str(fabric), str(tmp_path / "jobs"), "-o", str(out), *options]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()
    assert not out.with_name("cluster.fabric.json").exists()


def test_a_file_that_is_there_is_not_replaced(tmp_path: Path, fabric: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cluster.fabric.json").write_text("precious")
    assert execute(["init", str(fabric), "-o", str(tmp_path / "cluster.toml")]) == 2
    assert execute(["init", str(fabric), "-o", str(tmp_path / "other.toml"), "--partition", "batch"]) == 2
    assert "file exists" in capsys.readouterr().err
    assert (tmp_path / "cluster.fabric.json").read_text() == "precious"
    shutil.copy(fabric, tmp_path / "cluster.fabric.json")  # the fabric itself may be there already
    assert execute(["init", str(tmp_path / "cluster.fabric.json"), "-o", str(tmp_path / "cluster.toml")]) == 0


def test_an_agent_begins_with_a_profile_for_each_workload_and_one_for_all_others(
    tmp_path: Path, fabric: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agent.toml"
    options = ["--workload", "*cfd=all_to_all", "--ranks-per-host", "2", "--agent", str(file)]
    made(tmp_path, fabric, *options)
    assert f"fairlane agent --config {file} --once" in capsys.readouterr().out
    config = AgentConfig.from_file(file)
    cfd, other = (SlurmJob("17", ("n10", "n11"), name) for name in ("my cfd", "ckpt"))
    found = {job.name: next(one for one in config.profile if one.fits(job)) for job in (cfd, other)}
    names = {name: getattr(one.workload, "name", one.workload) for name, one in found.items()}
    assert (names["my cfd"], names["ckpt"]) == ("all_to_all", "nearest_neighbor")
    assert {one.ranks_per_host for one in config.profile} == {2}
    with config.reading():
        assert len(Fabric.build(config.fabric.spec).host_names) == 89
    assert execute(["init", str(fabric), "-o", str(tmp_path / "x.toml"), "--agent", str(file)]) == 2
    error = capsys.readouterr().err
    assert "--agent = " in error
    assert ": file exists" in error
    elsewhere = str(tmp_path / "other" / "agent.toml")
    assert execute(["init", str(fabric), "-o", str(tmp_path / "x.toml"), "--agent", elsewhere]) == 2
    assert "is in another folder" in capsys.readouterr().err
