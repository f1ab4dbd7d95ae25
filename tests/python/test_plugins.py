"""Plug-ins: what installed packages and users' files add, by name, in scenarios, studies and on the command line."""

from __future__ import annotations

import json
import pkgutil
import runpy
import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from types import ModuleType

import pytest
from jsonschema import Draft202012Validator
from matplotlib.figure import Figure

import fairlane
from fairlane import Scenario, ScenarioError
from fairlane.cli.command import ExitCode
from fairlane.cli.main import execute
from fairlane.inputs.code import ENVIRONMENT
from fairlane.inputs.registry import Named, Registry
from fairlane.model.placement import PLACEMENTS
from fairlane.model.placement.mapping import MAPPINGS
from fairlane.model.scenario import schema
from fairlane.model.workload import WORKLOADS
from fairlane.results.run import load_run
from fairlane.sim.controller import CONTROLLERS
from fairlane.study.plan import plan
from fairlane.study.study import Study
from fairlane.study.tasks.closure import code_digest, sources
from own_code import CODE, STUDY, scenario
from pictures import assert_drawn

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
LOG = Path(__file__).parents[1] / "data" / "jobs" / "nasa-ipsc-1993-first-400.swf.gz"
Install = Callable[[str, Mapping[str, Mapping[str, str]]], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution with entry points on the path, as an installer would."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)

    def package(name: str, groups: Mapping[str, Mapping[str, str]]) -> None:
        site = tmp_path / f"site-{name}"
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [
            f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in offers.items()) for group, offers in groups.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
        monkeypatch.syspath_prepend(str(site))

    return package


@pytest.fixture
def example(install: Install, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """The example package, installed; its entry points."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    groups: dict[str, dict[str, str]] = project["entry-points"]
    install(project["name"].replace("-", "_"), groups)
    return groups


def told(capsys: pytest.CaptureFixture[str], *arguments: object, code: ExitCode = ExitCode.DONE) -> str:
    """What a command prints, on standard error if it is to fail."""
    assert execute([str(argument) for argument in arguments]) == code
    out, err = capsys.readouterr()
    return err if code else out


def test_everything_of_the_package_is_listed_with_its_origin(
    example: dict[str, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    listed = json.loads(told(capsys, "list", "--json"))
    for group, offers in example.items():
        for name in offers:
            entry = listed[group.removeprefix("fairlane.")][name]
            assert entry["origin"] == "fairlane_example 1.0"
            assert len(entry["summary"]) > 10
    assert listed["workloads"]["ring"]["origin"] == "built-in"
    assert "stride" not in listed["allocators"], "it is listed as a placement"
    assert "stride" in told(capsys, "list", "allocators")
    shown = told(capsys, "list", "placements", "stride")
    assert "stride (fairlane_example 1.0): Every n-th free host." in shown
    assert "step: integer, at least 1, default 2" in shown
    assert (
        "message_size" in json.loads(told(capsys, "list", "workloads", "butterfly", "--json"))["schema"]["properties"]
    )


def test_a_scenario_uses_plug_ins_by_name(
    example: dict[str, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del example
    file, out = EXAMPLE / "scenario.toml", tmp_path / "run"
    resolved = Scenario.load(file).resolve()
    # Every second host for eight ranks; then every second of those that are left.
    assert [list(job.hosts) for job in resolved.jobs] == [[*range(0, 16, 2)], [1, 5, 9, 13]]
    assert resolved.tables["qos"]["arbiter"]["params"]["order"] == [1, 0], "the smaller job has priority"
    checked = told(capsys, "check", file)
    for what in ("workload butterfly", "placement stride", "strategy small_first"):
        assert f"runs code: {what} of fairlane_example 1.0" in checked
    assert {one["name"] for one in json.loads(told(capsys, "check", file, "--json"))["plugins"]} == {
        "butterfly",
        "stride",
        "small_first",
    }
    told(capsys, "run", file, "--no-isolated", "--quiet", "--out", out)
    drawn = told(capsys, "plot", out, "--figure", "iterations_by_job")
    assert drawn.strip() == str(out / "iterations_by_job.png")
    assert_drawn(out / "iterations_by_job.png")
    axes = Figure().subplots()
    assert load_run(out).plot("iterations_by_job", ax=axes) is axes
    assert 0 not in load_run(out).jobs["iterations"]
    validator = Draft202012Validator(schema())
    data = tomllib.loads(file.read_text())
    assert [error.message for error in validator.iter_errors(data)] == []
    assert not validator.is_valid({**data, "placement": {"name": "stride", "stpe": 2}})


def test_parameters_of_plug_ins_are_checked_before_a_run(
    example: dict[str, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    del example
    file = EXAMPLE / "scenario.toml"
    for assignment, words in (
        ("placement.step=0", "placement.step = 0: out of range; allowed: at least 1"),
        ("placement.stpe=2", 'did you mean "step"?'),
        ("placement.name=strides", 'did you mean "stride"?'),
        ("qos.strategy=small_frist", 'did you mean "small_first"?'),
        ("jobs[0].workload.name=buterfly", 'did you mean "butterfly"?'),
        ("jobs[0].ranks=6", "jobs[0].ranks = 6: does not fit the workload; allowed: a power of 2"),
    ):
        assert words in told(capsys, "check", file, "--set", assignment, code=ExitCode.WRONG_INPUT)


def test_controllers_and_allocators_of_a_package(
    example: dict[str, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del example
    scenario = tmp_path / "plain.toml"
    text = (EXAMPLE / "scenario.toml").read_text()
    scenario.write_text(text.replace('strategy = "small_first"', ""))
    own = ["--controller", "longest_wait", "--with", "service_levels=2"]
    shared = ["control", scenario, *own, "--period", "200 us", "--periods", "2", "--json"]
    rows = json.loads(told(capsys, *shared))["periods"]
    assert {row["job"] for row in rows} == {"transform", "flood"}
    wrong = told(capsys, *shared, "--with", "weight=99", code=ExitCode.WRONG_INPUT)
    assert "controller.weight = 99: out of range; allowed: at most 64" in wrong
    study = tmp_path / "study.toml"
    study.write_text(
        'scenario = "plain.toml"\n[treatments.waits]\ncontroller = { name = "longest_wait", service_levels = 2 }\n'
        'period = "200 us"\nperiods = 2\n'
    )
    told(capsys, "study", study, "--workers", "1", "--quiet", "--out", tmp_path / "study")
    assert not json.loads((tmp_path / "study" / "study.json").read_text())["failures"]
    log = ["schedule", LOG, "--set", "sides=[8,4]", "--jobs", "20", "--json"]
    found = json.loads(told(capsys, *log, "--allocator", "headroom:share=0.2", "--allocator", "linear"))
    assert list(found) == ["headroom:share=0.2", "linear"]
    wrong = told(capsys, *log, "--allocator", "headroom:share=2", code=ExitCode.WRONG_INPUT)
    assert "share = 2: out of range; allowed: below 1" in wrong
    # It suits queues of jobs only, and is no placement.
    assert "headroom" not in PLACEMENTS


def test_a_paper_of_a_package(
    example: dict[str, dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del example
    command = ["reproduce", "shared_receiver", "--out", tmp_path / "paper", "--workers", "1", "--json"]
    (claim,) = json.loads(told(capsys, *command))["claims"]
    # A packet of 4096 B has a header of 26 B, and each message a request before it: a little below the bandwidth.
    assert [0.9 < finding["value"] < 4096 / 4122 for finding in claim["findings"]] == [True] * 3
    assert claim["holds"]
    wrong = told(capsys, "reproduce", "shared_reciever", code=ExitCode.WRONG_INPUT)
    assert 'a folder with a paper.toml; did you mean "shared_receiver"?' in wrong


def test_two_packages_with_one_name_are_an_error_that_names_both(
    install: Install, example: dict[str, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    value = example["fairlane.workloads"]["butterfly"]
    install("other", {"fairlane.workloads": {"butterfly": value, "ring": value}})
    with pytest.raises(ScenarioError, match=r"that of other 1\.0 and that of fairlane_example 1\.0"):
        Scenario.load(EXAMPLE / "scenario.toml")
    with pytest.raises(ScenarioError, match=r"more than one workload .*: that of built-in and that of other 1\.0"):
        Scenario.load(EXAMPLE / "scenario.toml", set=["jobs[0].workload.name=ring"])
    assert "built-in and other 1.0" in told(capsys, "list", "workloads")


def test_a_package_that_is_broken_is_named_and_harms_nobody_else(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken_plugin.py").write_text("import no_such_module_anywhere\n")
    offers = {"gone": "broken_plugin:Gone", "number": "fairlane.core.seeds:LARGEST_SEED"}
    install("broken", {"fairlane.workloads": offers})
    file = EXAMPLE.parent / "quickstart.toml"
    assert "names code" not in told(capsys, "check", file)
    assert "broken_plugin:Gone of broken 1.0 cannot be imported: ModuleNotFoundError" in told(
        capsys, "list", "workloads"
    )
    wrong = told(capsys, "check", file, "--set", "jobs[0].workload.name=gone", code=ExitCode.WRONG_INPUT)
    assert 'workload.name = "gone": broken_plugin:Gone of broken 1.0 cannot be imported' in wrong
    wrong = told(capsys, "check", file, "--set", "jobs[0].workload.name=number", code=ExitCode.WRONG_INPUT)
    assert (
        "LARGEST_SEED of broken 1.0 is no workload; allowed: a class derived from fairlane.model.workload.Workload"
        in wrong
    )


def test_wrong_answers_and_errors_of_plug_ins_are_wrong_input(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    told(capsys, "run", own, "--no-isolated", "--quiet", "--out", folder, "--allow-code")
    run = ["check", own, "--allow-code", "--set"]
    wrong = told(capsys, *run, "placement.offset=3", code=ExitCode.WRONG_INPUT)
    assert "it allocates [7, 8, 9, 10] to a job of 4 hosts; allowed: free hosts" in wrong
    wrong = told(capsys, *run, 'placement.offset="many"', code=ExitCode.WRONG_INPUT)
    assert "placement.offset" in wrong
    line = next(number for number, text in enumerate(CODE.splitlines(), 1) if "KeyError" in text)
    wrong = told(capsys, *run, "jobs[0].count=2", "--set", "jobs[0].ranks=2", code=ExitCode.DONE)
    wrong = told(capsys, *run, "jobs[0].count=4", "--set", "jobs[0].ranks=2", code=ExitCode.WRONG_INPUT)
    assert f"own.py:{line}: qos.strategy: KeyError: 'too many'" in wrong
    own.with_name("own.py").write_text(CODE.replace("1 / run.jobs.height", "1 / 0"))
    picture = f"{own.with_name('own.py')}:picture"
    wrong = told(capsys, "plot", folder, "--figure", picture, "--allow-code", code=ExitCode.WRONG_INPUT)
    assert "ZeroDivisionError" in wrong
    wrong = told(capsys, "plot", folder, "--figure", "conditions", code=ExitCode.WRONG_INPUT)
    assert 'figure = "conditions": unknown figure; allowed: interference, slowdown, comparison, classes' in wrong
    wrong = told(capsys, "plot", folder, "--figure", "slow_down", code=ExitCode.WRONG_INPUT)
    assert 'did you mean "slowdown"?' in wrong


def test_a_study_notices_that_the_file_of_its_controller_has_changed(own: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    own.write_text(scenario())
    study.write_text(STUDY)

    def digests() -> set[str]:
        found = plan(Study.load(study, allow_code=True))
        for cell in found.cells:
            cell.decide([5_000_000], found.study.treatments)
        return {run.task.digest for cell in found.cells for run in cell.runs if run.treatment == "quiet"}

    before = digests()
    assert before
    assert digests() == before
    own.with_name("own.py").write_text(f"{CODE}\n")
    assert digests().isdisjoint(before)


def test_the_digest_of_the_code_is_another_with_another_plug_in(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def digest() -> str:
        code_digest.cache_clear()
        return sources()

    plain = digest()
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "moving_plugin.py"
    module.write_text("class Moving: ...\n")
    install("moving", {"fairlane.workloads": {"moving": "moving_plugin:Moving"}})
    first = digest()
    module.write_text("class Moving: pass\n")
    assert len({plain, first, digest()}) == 3


def test_set_up_and_programs_that_end() -> None:
    """The classes that the page shows: rows of four ranks, and one message."""
    known = runpy.run_path(str(EXAMPLE.parent / "own_workload.py"))
    jobs = [fairlane.Job(name=name, ranks=8, workload=known[name](compute="5 us")) for name in ("Rows", "Once")]
    fabric = {"topology": "fat_tree", "hosts": 16, "levels": 2}
    simulation = fairlane.Simulation(Scenario(fabric=fabric, jobs=jobs, placement="linear"))
    simulation.run_for("500 us")
    work = simulation.work()
    assert work["Once"] == 1
    assert work["Rows"] > 10


def test_a_registry_is_a_mapping_of_what_there_is() -> None:
    def one() -> None:
        """One."""

    made: Registry[Callable[[], None]] = Registry("thing", "fairlane.no_such_group", {"one": one}, unread=one)
    assert (dict(made), len(made)) == ({"one": one}, 1)
    assert made.entries()["one"].summary == "One."
    with pytest.raises(KeyError):
        made["two"]
    assert {name: kind.name for name, kind in WORKLOADS.items()} == {name: name for name in WORKLOADS}


@pytest.mark.parametrize(("package", "registry", "bases"), [
    (fairlane.model.workload, WORKLOADS, {"Workload", "GriddedWorkload", "SlicedWorkload", "Pencils", "Transformer"}),
    (fairlane.model.placement, PLACEMENTS, {"PlacementPolicy"}),
    (fairlane.model.placement.mapping, MAPPINGS, {"Mapping"}),
    (fairlane.sim.controller, CONTROLLERS, {"Controller"}),
])  # fmt: skip
def test_every_class_of_the_folder_is_in_its_table(
    package: ModuleType, registry: Registry[type[Named]], bases: set[str]
) -> None:
    root = next(kind for kind in next(iter(registry.builtin.values())).__mro__ if kind.__name__ in bases)
    inner = pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}.")
    modules = [package, *(import_module(found.name) for found in inner)]
    defined = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, root) and value.__module__ == module.__name__
    }
    concrete = {kind for kind in defined if kind.__name__ not in bases and not isabstract(kind)}
    assert {kind for kind in concrete if not kind.__name__.startswith("_")} == set(registry.builtin.values())
