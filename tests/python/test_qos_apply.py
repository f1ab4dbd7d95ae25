"""Exported scripts for Slurm, and what keeps the levels of running jobs in OpenSM's policy."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import tomlkit

import agents
import slurm
from agents import OPERATOR
from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.cluster.agent.apply import Applier, ApplyConfig
from fairlane.cluster.agent.system import BackendError
from fairlane.cluster.opensm.export import export
from fairlane.cluster.opensm.policy import read_policy
from fairlane.core.errors import ScenarioError
from fairlane.inputs.hosts import expand, slurm_names
from fairlane.model.fabric.reader import read_wiring
from possible import no_slurm
from waiting import wait_for

X5 = Path(__file__).parents[1] / "data" / "fabrics" / "x5.ibnetdiscover"
GRANTS = ("solver=account:phys", "io=qos:low,partition:batch")


def exported(folder: Path, grants: Sequence[str] = GRANTS, **options: Any) -> tuple[str, ...]:
    """The files for two jobs on a fat-tree of 16 hosts; returns the notes."""
    jobs = [
        {"name": "solver", "ranks": 4, "workload": "ping_pong", "service_level": 2},
        {"name": "io", "ranks": 2, "workload": "all_to_all", "service_level": 1},
    ]
    fabric = {"topology": "fat_tree", "hosts": 16}
    table = {"name": "two", "duration": "1 ms", "fabric": fabric, "qos": {"sl2vl": [0, 1, 2]}, "jobs": jobs}
    found = export(Scenario.read(table).decide(), grants=grants, **options)
    for name, text in found.files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    return found.notes


@contextmanager
def applying(folder: Path, **more: Any) -> Iterator[tuple[Applier, list[str], list[float]]]:
    """An applier of exported files with an OpenSM that reads its policy, its reports, and its clock."""
    exported(folder / "qos")
    with agents.opensm(folder, OPERATOR) as backend:
        data = tomlkit.parse((folder / "qos" / "apply.toml").read_text()).unwrap() | more
        data["backend"] = {**data["backend"], **backend, "timeout": "300 ms"}
        del data["backend"]["conf"]
        (folder / "qos" / "apply.toml").write_text(tomlkit.dumps(data))
        lines: list[str] = []
        now = [0.0]
        config = ApplyConfig.from_file(folder / "qos" / "apply.toml")
        applier = Applier(config, report=lines.append, clock=lambda: now[0])
        applier.start()
        yield applier, lines, now


def record(folder: Path, job: int, level: int, nodes: str) -> None:
    """What prolog.sh writes for a job."""
    (folder / "qos" / "running" / str(job)).write_text(f"{job}\t{level}\t{nodes}\n")


def answered(folder: Path) -> set[str]:
    """The jobs whose records were considered."""
    return {line.split("\t")[0] for line in (folder / "qos" / "running" / ".answered").read_text().splitlines()}


def test_the_operators_policy_stays_and_jobs_come_and_go(tmp_path: Path) -> None:
    policy = tmp_path / "qos-policy.conf"
    with applying(tmp_path) as (applier, lines, now):
        assert applier.look() == 0
        assert policy.read_text() == OPERATOR
        assert lines == [], "no job, no change, no signal"
        record(tmp_path, 7, 2, "host[1-2]")
        assert applier.look() == 0
        found = read_policy(tmp_path / "loaded.conf")
        assert {group.name: group.names for group in found.groups} == {
            "storage": ("nfs1/P1", "nfs2/P1"),
            "fairlane-job-7": ("host1/P1", "host2/P1"),
        }
        assert [(rule.source, found.levels[rule.level]) for rule in found.rules] == [
            ("fairlane-job-7", 2),
            ("storage", 3),
        ]
        assert answered(tmp_path) == {"7"}
        (tmp_path / "qos" / "running" / "7").unlink()
        now[0] = 100
        assert applier.look() == 0
        assert (tmp_path / "loaded.conf").read_text() == OPERATOR == policy.read_text()
        assert lines == ["in force: job 7 level 2", "in force: no job has a level"]


def signals(folder: Path) -> int:
    """How often OpenSM has read its policy, with its start."""
    return (folder / "osm.log").read_text().count("SUBNET UP")


def test_many_short_jobs_are_one_change_in_each_interval(tmp_path: Path) -> None:
    with applying(tmp_path, interval="10 s") as (applier, _, now):
        before = signals(tmp_path)
        running = tmp_path / "qos" / "running"
        for second in range(40):  # a job begins every second, on a node of its own, and ends two seconds later
            now[0] = float(second)
            record(tmp_path, 100 + second, 1, f"host{second % 16}")
            (running / str(98 + second)).unlink(missing_ok=True)
            wait = applier.look()
            assert wait == (0 if second % 10 == 0 else 10 - second % 10)
            # A job whose level waits is not answered, so its prolog waits as well.
            assert (str(100 + second) in answered(tmp_path)) == (wait == 0)
        assert signals(tmp_path) - before == 4  # at 0, 10, 20 and 30 s


def test_a_policy_that_opensm_refuses_is_taken_back_and_tried_again_later(tmp_path: Path) -> None:
    with applying(tmp_path, interval="10 s") as (applier, lines, now):
        (tmp_path / "refuses").touch()
        record(tmp_path, 7, 2, "host[1-2]")
        assert applier.look() == 20  # twice the interval after a failure
        assert (tmp_path / "qos-policy.conf").read_text() == OPERATOR
        assert "not in force: job 7 level 2: OpenSM refuses the policy" in lines[0]
        assert "7" not in answered(tmp_path)
        count = signals(tmp_path)
        now[0] = 19
        assert applier.look() == 1
        assert signals(tmp_path) == count
        (tmp_path / "refuses").unlink()
        now[0] = 20
        assert applier.look() == 0
        assert answered(tmp_path) == {"7"}
        # What somebody else takes out of the policy comes back.
        (tmp_path / "qos-policy.conf").write_text(OPERATOR)
        now[0] = 100
        applier.look()
        assert "fairlane-job-7" in (tmp_path / "loaded.conf").read_text()
        applier.withdraw()
        assert (tmp_path / "loaded.conf").read_text() == OPERATOR


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "8\t2\thots3\n",
            'node = "hots3": no host of the fabric; allowed: the hosts of apply.toml; did you mean "host3"',
        ),
        ("8\t7\thost3\n", "level = 7: has no lane; allowed: 0, 1, 2"),
        ("8\t2\thost[3\n", "no list of hosts"),
        ("9\t2\thost3\n", "record = "),
        ("garbage\n", "record = "),
        ("8\t2\thost[2-3]\n", "2 jobs share host host2, and a level applies to a whole host: 7, 8"),
    ],
)
def test_a_record_that_is_wrong_costs_its_job_the_level_and_no_other(line: str, words: str, tmp_path: Path) -> None:
    with applying(tmp_path) as (applier, lines, _):
        record(tmp_path, 5, 1, "host[10-11]")
        record(tmp_path, 7, 2, "host[1-2]")
        (tmp_path / "qos" / "running" / "8").write_text(line)
        assert applier.look() == 0
        assert any(one.startswith("job 8 gets no level: ") and words in one for one in lines)
        shared = "share host" in words
        assert lines[-1] == ("in force: job 5 level 1" if shared else "in force: job 5 level 1, job 7 level 2")
        assert {"5", "7"} <= answered(tmp_path)
        count = len(lines)
        applier.look()
        assert len(lines) == count, "reported once"


def test_a_wrong_machine_or_user_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with applying(tmp_path) as (applier, _, _), monkeypatch.context() as patch:
        patch.setattr("os.access", lambda *_: False)
        with pytest.raises(BackendError, match=r"user \S+ may not replace it"):
            applier.start()
    with pytest.raises(BackendError, match="does not run on this machine"):
        applier.start()
    command = ["qos", "apply", str(tmp_path / "qos"), "--once"]
    assert execute(command) == 2
    (tmp_path / "qos" / "apply.toml").write_text("running = 3\n")
    assert execute(command) == 2


def test_every_host_of_the_fabric_is_known(tmp_path: Path) -> None:
    exported(tmp_path / "names")
    config = ApplyConfig.from_file(tmp_path / "names" / "apply.toml")
    assert config.names == tuple(f"host{number}" for number in range(16))
    dump = read_wiring(X5)
    dump.save(tmp_path / "x5.json")
    jobs = [{"name": "solver", "ranks": 4, "workload": "ping_pong"}]
    table = {"duration": "1 ms", "fabric": {"topology": "imported", "file": str(tmp_path / "x5.json")}, "jobs": jobs}
    found = export(Scenario.read(table).decide(), dump=dump)
    lines = [line.split() for line in found.files["guids.txt"].splitlines()[1:]]
    names = dict(zip(slurm_names(dump.hosts), dump.hosts, strict=True))
    assert {names[node]: {int(guid, 16) for guid in guids} for node, *guids in lines} == {
        host: {port.guid for node in dump.nodes if node.owner == host and not node.is_switch for port in node.ports}
        for host in dump.hosts
    }
    assert set(expand(tomlkit.parse(found.files["apply.toml"])["hosts"])) == set(names)
    assert any("gives no job of Slurm a level" in note for note in found.notes)


@pytest.mark.parametrize(
    ("grant", "words"),
    [
        ("solver=name:x", '--for = "solver=name:x": unknown property of a job; allowed: account, qos, partition'),
        ("solvr=account:x", 'did you mean "solver"'),
        ("solver", "grants nothing"),
        ("solver=account", "grants nothing"),
        ("solver=account:a b", "is no name that Slurm takes"),
    ],
)
def test_a_grant_that_is_wrong_is_refused(grant: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=re.escape(words)):
        exported(tmp_path, [grant])


def run(script: Path, job: Mapping[str, str], wait: int = 0, path: str = "") -> subprocess.CompletedProcess[str]:
    """A script as Slurm runs it, with more folders of programs in front."""
    environment = {"PATH": path + os.environ["PATH"], "QOS_WAIT": str(wait), "SLURM_JOB_ID": "7"}
    environment |= {f"SLURM_JOB_{key}": value for key, value in job.items()}
    return subprocess.run([script], env=environment, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("job", "level"),
    [
        ({"ACCOUNT": "phys", "PARTITION": "batch"}, "2"),
        ({"ACCOUNT": "phys", "PARTITION": "batch", "QOS": "low"}, "2"),  # the first line that fits
        ({"ACCOUNT": "bio", "PARTITION": "batch", "QOS": "low"}, "1"),
        ({"ACCOUNT": "bio", "PARTITION": "other", "QOS": "low"}, ""),
        ({"ACCOUNT": "physics"}, ""),
        ({"ACCOUNT": "bio", "NAME": "solver", "USER": "phys"}, ""),  # a name that anybody may choose
    ],
)
def test_levels_go_by_account_qos_and_partition(job: dict[str, str], level: str, tmp_path: Path) -> None:
    exported(tmp_path)
    done = run(tmp_path / "task-prolog.sh", job)
    names = ("UCX_IB_SL", "NCCL_IB_SL", "MV2_DEFAULT_SERVICE_LEVEL", "OMPI_MCA_btl_openib_ib_service_level")
    assert done.stdout == "".join(f"export {name}={level}\n" for name in names if level)
    assert run(tmp_path / "prolog.sh", {**job, "NODELIST": "host[1-2]"}).returncode == 0
    path = tmp_path / "running" / "7"
    assert (path.read_text() if path.exists() else "") == (f"7\t{level}\thost[1-2]\n" if level else "")
    assert run(tmp_path / "epilog.sh", job).returncode == 0
    assert not path.exists()


@pytest.mark.parametrize(("grant", "level"), [("io=qos:low", "1"), ("io=account:phys", "")])
def test_a_qos_that_slurm_does_not_pass_on_is_asked_for(grant: str, level: str, tmp_path: Path) -> None:
    exported(tmp_path, [grant])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "squeue").write_text(f'#!/bin/sh\ntouch {tmp_path}/asked\n[ "$3" = 7 ] && echo low\n')
    (tmp_path / "bin" / "squeue").chmod(0o755)
    assert run(tmp_path / "prolog.sh", {"NODELIST": "host1"}, path=f"{tmp_path / 'bin'}:").returncode == 0
    record = tmp_path / "running" / "7"
    assert (record.read_text() if record.exists() else "") == (f"7\t{level}\thost1\n" if level else "")
    assert (tmp_path / "asked").exists() == bool(level), "no command of Slurm where no line has a QOS"


def test_names_are_compared_as_text(tmp_path: Path) -> None:
    exported(tmp_path, ["solver=account:01", "io=account:1"])
    levels = {"01": "2", "1": "1", "1.0": "", "+1": ""}
    for account, level in levels.items():
        done = run(tmp_path / "task-prolog.sh", {"ACCOUNT": account})
        assert done.stdout.partition("\n")[0] == (f"export UCX_IB_SL={level}" if level else "")


def test_a_prolog_waits_until_the_level_is_in_force(tmp_path: Path) -> None:
    with applying(tmp_path) as (applier, _, _):
        applier.look()
        environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", "SLURM_JOB_ACCOUNT": "phys"}
        environment |= {"SLURM_JOB_NODELIST": "host[1-2]"}
        prolog = subprocess.Popen([tmp_path / "qos" / "prolog.sh"], env=environment)
        wait_for((tmp_path / "qos" / "running" / "7").exists, "the record of the job", prolog)
        assert prolog.poll() is None
        applier.look()
        assert prolog.wait() == 0
        assert "fairlane-job-7" in (tmp_path / "loaded.conf").read_text()


def test_a_job_is_not_held_up_where_nobody_applies_levels(tmp_path: Path) -> None:
    exported(tmp_path)
    job = {"ACCOUNT": "phys", "NODELIST": "host1"}
    done = run(tmp_path / "prolog.sh", job, wait=60)
    assert done.returncode == 0
    assert "starts without service level 2: fairlane qos apply is not running on OpenSM's machine" in done.stderr
    answers = tmp_path / "running" / ".answered"
    answers.write_text("")
    done = run(tmp_path / "prolog.sh", job, wait=1)
    assert (done.returncode, done.stderr) == (0, "job 7 starts before its service level 2 is in force\n")
    os.utime(answers, (0, 0))
    assert "is not running" in run(tmp_path / "prolog.sh", job, wait=60).stderr
    (tmp_path / "running" / "7").unlink()
    (tmp_path / "running").rename(tmp_path / "elsewhere")
    done = run(tmp_path / "prolog.sh", job, wait=60)
    assert done.returncode == 0
    assert f"{tmp_path}/running cannot be written by" in done.stderr
    (tmp_path / "levels.tsv").unlink()
    assert "cannot be read by" in run(tmp_path / "prolog.sh", job, wait=60).stderr


@pytest.mark.live("cluster/opensm", "inputs", absent=no_slurm)
def test_a_real_slurm_starts_a_job_when_its_level_is_in_force(tmp_path: Path) -> None:
    with applying(tmp_path, hosts="n[1-2]", interval="1 ms") as (_, _, _):
        folder, seen, qos = tmp_path / "slurm", tmp_path / "seen", tmp_path / "qos"
        folder.mkdir()
        (qos / "levels.tsv").write_text("2\t*\t*\turgent\n")
        more = f"PrologSlurmctld={qos}/prolog.sh\nEpilogSlurmctld={qos}/epilog.sh\nTaskProlog={qos}/task-prolog.sh\n"
        more += "PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP"
        command = [sys.executable, "-m", "fairlane", "qos", "apply", str(qos)]
        with slurm.slurm(folder, 2, more) as environment:
            service = subprocess.Popen(command)
            try:
                wait_for((qos / "running" / ".answered").exists, "the service", service)
                for partition, name, level in (("urgent", "any", True), ("all", "solver", False)):
                    seen.unlink(missing_ok=True)
                    work = f"cp {tmp_path}/loaded.conf {seen}.new; mv {seen}.new {seen}"
                    submit = ["sbatch", "-W", "-N2", "-p", partition, "-J", name, "-o", "/dev/null", "--wrap", work]
                    subprocess.run(submit, env=environment, check=True, capture_output=True)
                    policy = read_policy(seen)
                    groups = {group.names for group in policy.groups if group.name.startswith("fairlane-job-")}
                    assert groups == ({("n1/P1", "n2/P1")} if level else set())
                    if level:  # the epilog takes it back
                        wait_for(
                            lambda: (tmp_path / "loaded.conf").read_text() == OPERATOR, "the operator's policy", service
                        )
            finally:
                service.terminate()
                service.wait()
