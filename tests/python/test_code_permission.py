"""Code that a scenario names runs only if that is permitted, and never from a folder of results."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import Scenario, ScenarioError, allow_code
from fairlane.cli.command import ExitCode
from fairlane.cli.main import execute
from fairlane.inputs.code import ENVIRONMENT, Code, asking, listing
from fairlane.study import Study
from fairlane.study.plan import plan

OWN = """
from pathlib import Path
from fairlane.workload import Rank, Workload

Path(__file__).with_name("ran").touch()


class Pairs(Workload):
    hops: int = 1

    def communicate(self, rank: Rank, iteration: int) -> None:
        rank.irecv(rank.index ^ 1)
        rank.isend(rank.index ^ 1, self.message_size)
        rank.wait_all()
"""
SCENARIO = """
duration = "200 us"
[fabric]
topology = "fat_tree"
hosts = 8
levels = 1
[[jobs]]
name = "own"
ranks = 4
workload = { name = "own.py:Pairs", hops = 2, compute = "5 us" }
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    (tmp_path / "own.py").write_text(OWN)
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    return file


def _ran(scenario: Path) -> bool:
    mark = scenario.with_name("ran")
    found = mark.exists()
    mark.unlink(missing_ok=True)
    return found


COMMANDS = [
    ["run", "{file}", "--out", "{out}"],
    ["place", "{file}"],
    ["control", "{file}", "--controller", "none", "--periods", "1", "--period", "50 us"],
    ["advise", "{file}", "--out", "{out}"],
    ["study", "{study}", "--out", "{out}"],
    ["slowdown", "fit", "{mix}", "--set", "sides=[4,2]", "-o", "{out}"],
    ["schedule", "nothing.swf", "--set", "sides=[4,2]", "--mix", "{mix}"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_no_command_runs_code_that_is_not_permitted(
    command: list[str], scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, mix, out = tmp_path / "study.toml", tmp_path / "mix.toml", tmp_path / "out"
    study.write_text('scenario = "scenario.toml"\n')
    mix.write_text(f'[[pattern]]\nkind = "hybrid"\nshare = 1\nunit = 2\nworkload = "{tmp_path}/own.py:Pairs"\n')
    given = [word.format(file=scenario, study=study, mix=mix, out=out) for word in command]
    assert execute(given) == ExitCode.WRONG_INPUT
    told = capsys.readouterr().err
    assert f"runs code, Pairs of {tmp_path}/own.py, which is not permitted; allowed: --allow-code" in told
    assert not _ran(scenario)
    assert not out.exists()


def test_permission_is_an_option_an_argument_a_context_or_the_environment(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert execute(["run", str(scenario), "--allow-code", "--quiet", "--out", str(tmp_path / "out")]) == ExitCode.DONE
    assert _ran(scenario)
    Scenario.load(scenario, allow_code=True)
    assert _ran(scenario)
    table = {"name": f"{tmp_path}/own.py:Pairs", "compute": "5 us"}
    fabric = {"topology": "fat_tree", "hosts": 8, "levels": 1}
    with pytest.raises(ScenarioError, match="which is not permitted"):
        Scenario(fabric=fabric, jobs=[{"ranks": 4, "workload": table}])
    assert not _ran(scenario)
    with allow_code():
        made = Scenario(fabric=fabric, jobs=[{"ranks": 4, "workload": table}])
    assert _ran(scenario)
    assert made.resolve().jobs[0].ranks == 4
    monkeypatch.setenv(ENVIRONMENT, "0")
    with pytest.raises(ScenarioError):
        Scenario.load(scenario)
    monkeypatch.setenv(ENVIRONMENT, "1")
    Scenario.load(scenario)
    assert _ran(scenario)


def test_check_lists_code_and_checks_everything_else(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["check", str(scenario)]) == ExitCode.DONE
    told = capsys.readouterr().out
    assert "own: 4 ranks of Pairs on " in told
    assert f"names code: Pairs of {scenario.with_name('own.py')}; it has not run" in told
    assert not _ran(scenario)
    scenario.write_text(SCENARIO.replace("hosts = 8", "hosts = 2"))
    assert execute(["check", str(scenario)]) == ExitCode.WRONG_INPUT
    assert not _ran(scenario)
    scenario.write_text(SCENARIO.replace("hops = 2", 'hops = "many"'))
    assert execute(["check", str(scenario)]) == ExitCode.DONE
    assert execute(["check", str(scenario), "--allow-code"]) == ExitCode.WRONG_INPUT
    assert "workload.hops" in capsys.readouterr().err
    scenario.write_text(SCENARIO)
    assert execute(["check", str(scenario), "--allow-code"]) == ExitCode.DONE
    assert f"runs code: workload Pairs of {scenario.with_name('own.py')}" in capsys.readouterr().out
    assert _ran(scenario)


def test_what_looks_at_the_fabric_only_runs_nothing(scenario: Path) -> None:
    assert execute(["fabric", "describe", str(scenario)]) == ExitCode.DONE
    assert not _ran(scenario)


def test_who_sits_at_a_terminal_is_asked_once_for_each_class(scenario: Path) -> None:
    asked: list[Code] = []

    def yes(code: Code) -> bool:
        asked.append(code)
        return True

    with asking(yes):
        Scenario.load(scenario)
    assert asked == [Code(scenario.with_name("own.py"), "Pairs")]
    assert _ran(scenario)
    with asking(lambda _code: False), pytest.raises(ScenarioError, match="not permitted"):
        Scenario.load(scenario)
    assert not _ran(scenario)
    with listing() as found, asking(yes):
        Scenario.load(scenario)
    assert found == asked
    assert not _ran(scenario)


@pytest.mark.skipif(shutil.which("script") is None, reason="needs a terminal")
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2)])
def test_the_prompt_names_file_and_class(scenario: Path, answer: str, code: int) -> None:
    command = f"{sys.executable} -m fairlane place {scenario} --slurm"
    asked = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        input=f"{answer}\n",
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key != ENVIRONMENT},
    )
    assert asked.returncode == code, asked.stdout
    assert f"The input runs code: Pairs of {scenario.with_name('own.py')}. Run it?" in asked.stdout.replace("\r\n", "")
    assert _ran(scenario) == (answer == "y")


def test_code_in_a_folder_of_results_never_runs(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert execute(["run", str(scenario), "--allow-code", "--quiet", "--out", str(folder)]) == ExitCode.DONE
    planted = folder / "deep" / "own.py"
    planted.parent.mkdir()
    for place in (folder, planted.parent):
        shutil.copy(scenario.with_name("own.py"), place)
    _ran(scenario)
    monkeypatch.setenv(ENVIRONMENT, "1")
    (tmp_path / "link.py").symlink_to(planted)
    for file in (f"{folder}/own.py", str(planted), f"{tmp_path}/link.py"):
        own = SCENARIO.replace("own.py", file)
        scenario.write_text(own)
        assert execute(["check", str(scenario), "--allow-code"]) == ExitCode.WRONG_INPUT
        assert f"is code in the folder of results '{folder}', where none runs" in capsys.readouterr().err
    assert execute(["check", str(folder / "scenario.toml"), "--allow-code"]) == ExitCode.WRONG_INPUT
    monkeypatch.chdir(folder)
    assert execute(["analyze", str(folder), "--allow-code"]) == ExitCode.WRONG_INPUT
    assert "where none runs" in capsys.readouterr().err
    assert execute(["plot", str(folder)]) == ExitCode.DONE
    assert not _ran(folder / "own.py")
    assert not _ran(planted)


def test_analyze_runs_code_from_elsewhere_and_with_permission_only(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out" / "run"
    assert execute(["run", str(scenario), "--allow-code", "--quiet", "--out", str(folder)]) == ExitCode.DONE
    _ran(scenario)
    analyze = ["analyze", str(folder), "--files", str(tmp_path), "--quiet"]
    assert execute(analyze) == ExitCode.WRONG_INPUT
    assert "not permitted" in capsys.readouterr().err
    assert not _ran(scenario)
    assert execute([*analyze, "--allow-code"]) == ExitCode.DONE
    assert _ran(scenario)


def test_a_study_keeps_its_permission_and_tells_the_workers(scenario: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('scenario = "scenario.toml"\nseeds = [1, 2]\n')
    with pytest.raises(ScenarioError, match="not permitted"):
        plan(Study.load(file))
    assert not _ran(scenario)
    command = ["study", str(file), "--allow-code", "--workers", "1", "--quiet", "--out", str(tmp_path / "out")]
    assert execute(command) == ExitCode.DONE
    assert _ran(scenario)
    assert not json.loads((tmp_path / "out" / "study.json").read_text())["failures"]


def test_shell_commands_of_a_study_are_code(scenario: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('scenario = "scenario.toml"\n[cluster]\nprologue = ["touch ran"]\n')
    with pytest.raises(ScenarioError, match=r"study.toml:3: cluster.prologue: runs commands of a shell, which is not"):
        Study.load(file).check_code()
    Study.load(file, allow_code=True).check_code()
    assert not _ran(scenario)


@pytest.mark.parametrize(
    "line",
    [
        'interface = "eth0; touch ran"',
        r'queue = "short\ntouch ran"',
        'account = "a b"',
        r'walltime = "01:00:00\ntouch ran"',
        r'directives = ["--exclusive\ntouch ran"]',
        'directives = ["touch ran"]',
    ],
)
def test_values_of_a_cluster_do_not_leave_their_place_in_the_script(scenario: Path, line: str) -> None:
    file = scenario.parent / "study.toml"
    file.write_text(f'scenario = "scenario.toml"\n[cluster]\n{line}\n')
    with pytest.raises(ScenarioError, match=f"study.toml:3: cluster.{line.partition(' ')[0]}"):
        Study.load(file, allow_code=True)


@pytest.mark.parametrize("option", ["--export=ALL,BASH_ENV=x", "-D /tmp", "--exclusive --wrap=x", "-o/tmp/x"])
def test_options_of_sbatch_that_change_what_runs_are_code(scenario: Path, option: str) -> None:
    file = scenario.parent / "study.toml"
    file.write_text(f'scenario = "scenario.toml"\n[cluster]\ndirectives = ["--qos=low -N 2", "{option}"]\n')
    assert execute(["study", str(file), "--out", str(scenario.parent / "out")]) == ExitCode.WRONG_INPUT
    assert not (scenario.parent / "out").exists()
    with pytest.raises(ScenarioError, match=r"cluster.directives\[1\]: runs a job with the option -"):
        Study.load(file).check_code()
    Study.load(file, allow_code=True).check_code()
