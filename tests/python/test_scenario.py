"""Scenarios: what is read, what is refused with which words, and what they resolve to."""

import pickle
import tomllib
from pathlib import Path

import pytest

from fairlane import Scenario, ScenarioError
from fairlane.core.errors import Problem
from fairlane.inputs.document import Document

GOOD = """
seed = 7
duration = "20 ms"

[fabric]
topology = "fat_tree"
hosts = 64
levels = 2
bandwidth = "3.2 GB/s"

[qos]
service_levels = 2
arbiter = { name = "weighted_round_robin", weights = [2, 7] }

[[jobs]]
name = "flood"
count = 2
ranks = 8
workload = { name = "flood_pairs", compute = "1 ms" }

[[jobs]]
name = "ring"
ranks = 9
workload = { name = "uniform_random", compute = "1 ms" }
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "scenario.toml"
    file.write_text(text)
    return file


def problems(folder: Path, text: str, *assignments: str) -> tuple[Problem, ...]:
    with pytest.raises(ScenarioError) as raised:
        Scenario.load(write(folder, text), set=assignments).resolve()
    return raised.value.problems


def test_a_good_scenario_resolves_to_whole_numbers(tmp_path: Path) -> None:
    scenario = Scenario.load(write(tmp_path, GOOD))
    spec = scenario.resolve().spec
    assert scenario.name == "scenario"
    assert scenario.duration == 20 * 10**9
    assert spec["fabric"]["params"] == {"hosts": 64, "levels": 2, "bandwidth": 25_600_000_000}
    assert spec["qos"]["sl2vl"] == [0, 1] + [0] * 14
    assert spec["qos"]["arbiter"]["params"] == {"weights": [2, 7]}
    assert [job["name"] for job in spec["jobs"]] == ["flood-0", "flood-1", "ring"]
    hosts = [host for job in spec["jobs"] for host in job["hosts"]]
    assert len(hosts) == len(set(hosts)) == 8 + 8 + 9
    assert set(hosts) <= set(range(64))


def test_the_same_scenario_resolves_alike_and_another_seed_does_not(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    first, again, other = (Scenario.load(file, seed=seed).resolve().spec for seed in (7, 7, 8))
    assert first == again
    assert [job["hosts"] for job in first["jobs"]] != [job["hosts"] for job in other["jobs"]]


def test_a_job_more_leaves_the_others_where_they_were(tmp_path: Path) -> None:
    before = Scenario.load(write(tmp_path, GOOD)).resolve().spec["jobs"]
    more = GOOD + '[[jobs]]\nranks = 2\nworkload = "ping_pong"\n'
    after = Scenario.load(write(tmp_path, more)).resolve().spec["jobs"]
    assert after[:-1] == before


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("seed = 7", "sed = 7", "sed", 'did you mean "seed"?'),
        ("seed = 7", "seed = -7", "seed", "out of range; allowed: at least 0"),
        ('"20 ms"', "20", "duration", "its unit in a string"),
        ('"fat_tree"', '"fat_treee"', "fabric.topology", 'did you mean "fat_tree"?'),
        ("levels = 2", "level = 2", "fabric.level", 'did you mean "levels"?'),
        ("hosts = 64", 'hosts = "many"', "fabric.hosts", "of another type; allowed: a whole number"),
        ('"3.2 GB/s"', '"3.2 GB"', "fabric.bandwidth", "not a unit of bandwidth"),
        ('"3.2 GB/s"', "3", "fabric.bandwidth", "in a string"),
        ("levels = 2", 'levels = 2\nrouting = "d_mod"', "fabric.routing.name", 'did you mean "d_mod_k"?'),
        ("service_levels = 2", "servce_levels = 2", "qos.servce_levels", 'did you mean "service_levels"?'),
        ("weights = [2, 7]", "wieghts = [2, 7]", "qos.arbiter.wieghts", 'did you mean "weights"?'),
        ("weighted_round_robin", "weighted_robin", "qos.arbiter.name", 'did you mean "weighted_round_robin"?'),
        ("service_levels = 2", "service_levels = 2\nlanes = 1", "qos.lanes", "more service levels than lanes"),
        (
            "service_levels = 2",
            "service_levels = 2\ndefault = 2",
            "qos.default",
            "service level without a virtual lane",
        ),
        ("weights = [2, 7]", "weights = [2, 7, 1]", "qos.arbiter.weights", "[2, 7, 1]"),
        ('name = "flood_pairs"', 'name = "flod_pairs"', "jobs[0].workload.name", 'did you mean "flood_pairs"?'),
        ('compute = "1 ms" }\n\n', 'computes = "1 ms" }\n\n', "jobs[0].workload.computes", 'did you mean "compute"?'),
        ("ranks = 8", "ranks = 7", "jobs[0].ranks", "an even number of ranks"),
        ("ranks = 8", "", "jobs[0].ranks", "missing"),
        (
            "[qos]",
            '[mpi]\nsend_overheads = [{ size = "4 KiB", time = "1 us" }, { size = "4 KiB", time = "2 us" }]\n[qos]',
            "mpi.send_overheads[1].size",
            "sizes in ascending order: more than 4 KiB",
        ),
        ("ranks = 9", "ranks = 49", "jobs[1].ranks", "more ranks than hosts: at one time the jobs need 65"),
        ('"ring"', '"flood-1"', "jobs[1].name", "duplicate job name"),
        ("ranks = 9", 'ranks = 9\nplacement = "paked"', "jobs[1].placement.name", 'did you mean "packed"?'),
        ("ranks = 9", "ranks = 9\nservice_level = 5", "jobs[1].service_level", "0 to 1"),
        ("ranks = 9", "ranks = 9\nservice_level = 16", "jobs[1].service_level", "allowed: at most 15"),
        ("ranks = 9", 'ranks = 9\ntrace = "none"', "jobs[1].trace.path", "there is no"),
        (
            "ranks = 9",
            'ranks = 2\nplacement = { name = "list", hosts = [3, 3] }',
            "jobs[1].placement.hosts",
            "host 3 is listed twice",
        ),
        (
            "ranks = 9",
            'ranks = 2\nplacement = { name = "list", hosts = [3] }',
            "jobs[1].placement.hosts",
            "exactly 2 hosts",
        ),
        (
            "ranks = 9",
            'ranks = 2\nplacement = { name = "list", hosts = [3, 64] }',
            "jobs[1].placement.hosts",
            "there is no host 64",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, old: str, new: str, key: str, words: str) -> None:
    assert old in GOOD
    (problem,) = problems(tmp_path, GOOD.replace(old, new, 1))
    assert problem.key == key
    assert words in str(problem)
    assert str(problem).startswith(f"{tmp_path / 'scenario.toml'}")


def test_all_mistakes_are_told_at_once_each_with_its_line(tmp_path: Path) -> None:
    text = """
sed = 7  # wrong
[fabric]
topology = "fat_tre"  # wrong
[network]
mtu = "4 KB"  # wrong
buffer = [
  1,
]
switching = "cut"  # wrong
[[jobs]]
workload = "ping_pong"
ranks = 2
[[jobs]]
ranks = 8
[jobs.workload]
name = "flood_pairs"
jiter = 0.1  # wrong
"""
    wrong = [number for number, line in enumerate(text.splitlines(), 1) if "wrong" in line or "buffer" in line]
    assert [problem.line for problem in problems(tmp_path, text)] == wrong


def test_broken_toml_and_missing_files_are_told(tmp_path: Path) -> None:
    (broken,) = problems(tmp_path, "a = 1\nb = = 2\n")
    assert (broken.line, "not valid TOML" in broken.message) == (2, True)
    with pytest.raises(ScenarioError, match="cannot be read"):
        Scenario.load(tmp_path / "none.toml")


def test_service_levels_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "levels.txt").write_text("# rank level\n0 1\n\n3 0 # three\ndefault 1\n")
    text = GOOD.replace("ranks = 9", 'ranks = 9\nservice_levels = "levels.txt"')
    job = Scenario.load(write(tmp_path, text)).resolve().spec["jobs"][2]
    assert (job["service_level"], job["ranks"]) == (1, {"0": 1, "3": 0})


def test_every_wrong_line_of_a_service_level_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "levels.txt").write_text("0 1\nx 3\n2 77\ndefault 1\n0 0\n4\n")
    found = problems(tmp_path, GOOD.replace("ranks = 9", 'ranks = 9\nservice_levels = "levels.txt"'))
    assert [(Path(problem.file or "").name, problem.line) for problem in found] == [
        ("levels.txt", line) for line in (2, 3, 5, 6)
    ]


def test_a_rank_that_the_job_has_not_gets_no_level(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, GOOD.replace("ranks = 9", "ranks = 9\nservice_levels = { ranks = { 9 = 1 } }"))
    assert "rank 9 is not in the job" in str(problem)


def test_assignments_replace_values_and_are_named_in_errors(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    changed = Scenario.load(file, set=["jobs.0.count=1", "network.mtu=2 KiB", "fabric.levels=3"], duration="1 us")
    assert (changed.jobs[0].count, changed.network.mtu, changed.duration) == (1, 2048, 10**6)
    assert changed.fabric.parameters["levels"] == 3
    assert tomllib.loads(changed.text)["network"] == {"mtu": "2 KiB"}
    (problem,) = problems(tmp_path, GOOD, "network.mtu=2 KB")
    assert str(problem).startswith("--set network.mtu=2 KB: network.mtu")
    for assignment in ("nothing", "jobs.7.count=2", "seed.x=1"):
        with pytest.raises(ScenarioError, match="--set"):
            Scenario.load(file, set=[assignment])


def test_a_scenario_in_python_is_the_same_as_in_toml(tmp_path: Path) -> None:
    read = Scenario.load(write(tmp_path, GOOD))
    built = Scenario(**tomllib.loads(GOOD), name="scenario")
    assert built.resolve().spec == read.resolve().spec
    assert read.text == GOOD
    assert Scenario(**tomllib.loads(built.text)).resolve().spec == read.resolve().spec


def test_the_text_of_a_changed_copy_is_that_of_its_own_values(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(GOOD)
    read = Scenario.load(tmp_path / "scenario.toml")
    copy = read.model_copy(update={"seed": 77}).model_copy(update={"duration": 10**9})
    again = Scenario(**tomllib.loads(copy.text))
    assert (again.seed, again.duration) == (77, 10**9)
    assert again.resolve().spec == copy.resolve().spec
    assert read.model_copy().text == GOOD


def test_mistakes_in_python_have_a_key_and_no_file() -> None:
    with pytest.raises(ScenarioError) as raised:
        Scenario(fabric={"topology": "fat_tree", "hosts": 4}, jobs=[{"workload": "ping_png", "ranks": 2}])
    (problem,) = raised.value.problems
    assert (problem.file, problem.line, problem.key) == (None, None, "jobs[0].workload")
    assert problem.nearest == "ping_pong"


def test_each_key_has_its_line(tmp_path: Path) -> None:
    text = 'a.b = 1\nlist = [\n 1,\n]\n[t]\nm = """\n[no]\nk = 1\n"""\n[[t.x]]\ny = { z = 1 }\n[[t.x]]\ny = 2\n'
    lines = Document.read(write(tmp_path, text)).lines
    assert lines[("a", "b")] == 1
    assert lines[("list",)] == 2
    assert lines[("t", "m")] == 6
    assert ("no",) not in lines
    assert lines[("t", "x")] == lines[("t", "x", 0)] == 10
    assert lines[("t", "x", 0, "y", "z")] == 11
    assert lines[("t", "x", 1, "y")] == 13


def test_an_error_keeps_its_problems_on_the_way_to_another_process() -> None:
    error = ScenarioError([Problem("a.b", "wrong", 3, "4", "c", "file.toml", 7), Problem("d", "missing")])
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.problems, str(again)) == (ScenarioError, error.problems, str(error))
