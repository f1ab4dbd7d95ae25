"""Code that a scenario names runs only if that is permitted, and never from a folder of results."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import own_code
from fairlane import Scenario, ScenarioError, allow_code
from fairlane.cli.command import ExitCode
from fairlane.cli.main import execute
from fairlane.inputs.code import ENVIRONMENT, Code, asking, listing
from fairlane.study.plan import plan
from fairlane.study.study import Study
from own_code import ran
from pictures import assert_drawn

LOG = Path(__file__).parents[1] / "data" / "jobs" / "nasa-ipsc-1993-first-400.swf.gz"


@pytest.fixture
def scenario(own: Path) -> Path:
    """A scenario that names a workload of the file beside it."""
    own.write_text(own_code.scenario("Pairs"))
    return own


@pytest.mark.parametrize("name", own_code.NAMES)
def test_code_of_every_kind_runs_with_permission_only(
    name: str, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own.write_text(own_code.scenario(name))
    command = ["run", str(own), "--no-isolated", "--quiet", "--out", str(tmp_path / "out")]
    assert execute(command) == ExitCode.WRONG_INPUT
    words = f"runs code, {name} of {tmp_path}/own.py, which is not permitted; allowed: --allow-code"
    assert words in capsys.readouterr().err
    assert not ran(own)
    assert not (tmp_path / "out").exists()
    assert execute([*command, "--allow-code"]) == ExitCode.DONE
    assert ran(own)


COMMANDS = [
    ["place", "{file}"],
    ["control", "{plain}", "--controller", "{code}:Quiet", "--with", "service_levels=2", "--periods", "1"],
    ["study", "{study}", "--workers", "1", "--quiet", "--out", "{out}"],
    ["schedule", str(LOG), "--set", "sides=[8,4]", "--jobs", "5", "--allocator", "{code}:Last"],
    ["plot", "{run}", "--figure", "{code}:picture"],
    ["list", "mappings", "{code}:Backwards"],
]
LONG_COMMANDS = [
    ["advise", "{file}", "--out", "{out}"],
    ["slowdown", "fit", "{mix}", "--set", "sides=[4,2]", "-o", "{out}"],
    ["schedule", "nothing.swf", "--set", "sides=[4,2]", "--mix", "{mix}"],
]
"""Commands that are only refused: with permission they would take long."""


@pytest.mark.parametrize("command", [*COMMANDS, *LONG_COMMANDS], ids=lambda command: " ".join(command[:2]))
def test_no_command_runs_code_that_is_not_permitted(
    command: list[str], scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, mix, study, run, out = (tmp_path / name for name in ("plain.toml", "mix.toml", "study.toml", "run", "out"))
    plain.write_text(own_code.scenario())
    study.write_text(own_code.STUDY.replace("scenario.toml", "plain.toml"))
    mix.write_text(f'[[pattern]]\nkind = "hybrid"\nshare = 1\nunit = 2\nworkload = "{tmp_path}/own.py:Pairs"\n')
    if command[0] == "plot":
        assert execute(["run", str(plain), "--no-isolated", "--quiet", "--out", str(run)]) == ExitCode.DONE
    code = scenario.with_name("own.py")
    paths = {"file": scenario, "code": code, "plain": plain, "mix": mix, "study": study, "run": run, "out": out}
    given = [word.format(**paths) for word in command]
    assert execute(given) == ExitCode.WRONG_INPUT
    assert "which is not permitted; allowed: --allow-code" in capsys.readouterr().err
    assert not ran(scenario)
    assert not out.exists()
    if command in LONG_COMMANDS:
        return
    assert execute([*given, "--allow-code"]) == ExitCode.DONE
    assert ran(scenario)
    if command[0] == "study":
        assert not json.loads((out / "study.json").read_text())["failures"]
    if command[0] == "plot":
        assert_drawn(run / "picture.png")


def test_permission_is_an_option_an_argument_a_context_or_the_environment(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert execute(["run", str(scenario), "--allow-code", "--quiet", "--out", str(tmp_path / "out")]) == ExitCode.DONE
    assert ran(scenario)
    Scenario.load(scenario, allow_code=True)
    assert ran(scenario)
    table = {"name": f"{tmp_path}/own.py:Pairs", "compute": "5 us"}
    fabric = {"topology": "fat_tree", "hosts": 8, "levels": 1}
    with pytest.raises(ScenarioError, match="which is not permitted"):
        Scenario(fabric=fabric, jobs=[{"ranks": 4, "workload": table}])
    assert not ran(scenario)
    with allow_code():
        made = Scenario(fabric=fabric, jobs=[{"ranks": 4, "workload": table}])
    assert ran(scenario)
    assert made.resolve().jobs[0].ranks == 4
    monkeypatch.setenv(ENVIRONMENT, "0")
    with pytest.raises(ScenarioError):
        Scenario.load(scenario)
    monkeypatch.setenv(ENVIRONMENT, "1")
    Scenario.load(scenario)
    assert ran(scenario)


def test_check_lists_code_and_checks_everything_else(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = own.with_name("own.py")
    assert execute(["check", str(own)]) == ExitCode.DONE
    printed = capsys.readouterr().out
    for name in own_code.NAMES:
        assert f"names code: {name} of {code}; it has not run" in printed
    assert execute(["check", str(own), "--set", "jobs[0].ranks=9"]) == ExitCode.WRONG_INPUT
    assert "jobs[0].ranks = 9" in capsys.readouterr().err
    wrong = own.read_text().replace("hops = 2", 'hops = "many"')
    own.write_text(wrong)
    assert execute(["check", str(own)]) == ExitCode.DONE
    assert not ran(own)
    assert execute(["check", str(own), "--allow-code"]) == ExitCode.WRONG_INPUT
    assert "workload.hops" in capsys.readouterr().err
    own.write_text(own_code.scenario(*own_code.NAMES))
    assert execute(["check", str(own), "--allow-code"]) == ExitCode.DONE
    printed = capsys.readouterr().out
    for what in ("workload Pairs", "placement Last", "mapping Backwards", "strategy one_lane"):
        assert f"runs code: {what} of {code}" in printed
    assert ran(own)
    assert list(Scenario.load(own, allow_code=True).resolve().jobs[0].hosts) == [7, 6, 5, 4]


def test_check_takes_any_parameters_of_code_that_has_not_run(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imbalance = 'compute = "5 us", imbalance = { kind = "own.py:Late", steps = 3 }'
    own.write_text(own_code.scenario().replace('compute = "5 us"', imbalance))
    assert execute(["check", str(own)]) == ExitCode.DONE
    assert "names code: Late of" in capsys.readouterr().out


def test_what_looks_at_the_fabric_only_runs_nothing(scenario: Path) -> None:
    assert execute(["fabric", "describe", str(scenario)]) == ExitCode.DONE
    assert not ran(scenario)


def test_who_sits_at_a_terminal_is_asked_once_for_each_class(scenario: Path) -> None:
    asked: list[Code] = []

    def yes(code: Code) -> bool:
        asked.append(code)
        return True

    with asking(yes):
        Scenario.load(scenario)
    assert asked == [Code(scenario.with_name("own.py"), "Pairs")]
    assert ran(scenario)
    with asking(lambda _code: False), pytest.raises(ScenarioError, match="not permitted"):
        Scenario.load(scenario)
    assert not ran(scenario)
    with listing() as found, asking(yes):
        Scenario.load(scenario)
    assert found == asked
    assert not ran(scenario)


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
    assert ran(scenario) == (answer == "y")


def test_code_in_a_folder_of_results_never_runs(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert execute(["run", str(scenario), "--allow-code", "--quiet", "--out", str(folder)]) == ExitCode.DONE
    planted = folder / "deep" / "own.py"
    planted.parent.mkdir()
    for place in (folder, planted.parent):
        shutil.copy(scenario.with_name("own.py"), place)
    ran(scenario)
    monkeypatch.setenv(ENVIRONMENT, "1")
    (tmp_path / "link.py").symlink_to(planted)
    for file in (f"{folder}/own.py", str(planted), f"{tmp_path}/link.py"):
        scenario.write_text(own_code.scenario("Pairs").replace("own.py", file))
        assert execute(["check", str(scenario), "--allow-code"]) == ExitCode.WRONG_INPUT
        assert f"is code in the folder of results '{folder}', where none runs" in capsys.readouterr().err
    assert execute(["check", str(folder / "scenario.toml"), "--allow-code"]) == ExitCode.WRONG_INPUT
    capsys.readouterr()
    (tmp_path / "plain.toml").write_text(own_code.scenario())
    for command in (
        ["plot", str(folder), "--figure", f"{folder}/own.py:picture"],
        ["list", "placements", f"{folder}/own.py:Last"],
        ["control", str(tmp_path / "plain.toml"), "--controller", f"{folder}/own.py:Quiet"],
    ):
        assert execute([*command, "--allow-code"]) == ExitCode.WRONG_INPUT
        assert "where none runs" in capsys.readouterr().err
    monkeypatch.chdir(folder)
    assert execute(["analyze", str(folder), "--allow-code"]) == ExitCode.WRONG_INPUT
    assert "where none runs" in capsys.readouterr().err
    assert execute(["plot", str(folder)]) == ExitCode.DONE
    assert not ran(folder / "own.py")
    assert not ran(planted)


def test_analyze_runs_code_from_elsewhere_and_with_permission_only(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out" / "run"
    assert execute(["run", str(scenario), "--allow-code", "--quiet", "--out", str(folder)]) == ExitCode.DONE
    ran(scenario)
    analyze = ["analyze", str(folder), "--files", str(tmp_path), "--quiet"]
    assert execute(analyze) == ExitCode.WRONG_INPUT
    assert "not permitted" in capsys.readouterr().err
    assert not ran(scenario)
    assert execute([*analyze, "--allow-code"]) == ExitCode.DONE
    assert ran(scenario)


def test_a_study_keeps_its_permission_and_tells_the_workers(scenario: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('scenario = "scenario.toml"\nseeds = [1, 2]\n')
    with pytest.raises(ScenarioError, match="not permitted"):
        plan(Study.load(file))
    assert not ran(scenario)
    command = ["study", str(file), "--allow-code", "--workers", "1", "--quiet", "--out", str(tmp_path / "out")]
    assert execute(command) == ExitCode.DONE
    assert ran(scenario)
    assert not json.loads((tmp_path / "out" / "study.json").read_text())["failures"]


def test_shell_commands_of_a_study_are_code(scenario: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('scenario = "scenario.toml"\n[cluster]\nprologue = ["touch ran"]\n')
    with pytest.raises(ScenarioError, match=r"study.toml:3: cluster.prologue: runs commands of a shell, which is not"):
        Study.load(file).check_code()
    Study.load(file, allow_code=True).check_code()
    assert not ran(scenario)


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
