"""``fairlane doctor``: what it finds in a good installation, and in broken ones."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from fairlane.cli.main import execute
from fairlane.cluster.opensm.check import simulated as subnet
from fairlane.lab.doctor import Check, Section, Status, installation, is_good, machine
from fairlane.lab.testbed import machine as testbed
from fairlane.model.scenario import estimate

GOOD_CORE = {
    "version": metadata.version("fairlane"),
    "target": "x86_64-unknown-linux-gnu",
    "compiler": "rustc 1.88.0 (6b00bc388 2025-06-23)",
    "opt_level": "3",
    "debug_assertions": False,
    "cpu_features": ["sse2"],
    "file": "_core.abi3.so",
}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No processes of its own: the core answers as a good one."""
    answers = {
        "build_info": GOOD_CORE,
        "simulate": {"digest": installation.expected_digest(), "packet_hops": 48_746, "seconds": 0.01},
    }
    monkeypatch.setattr(installation, "ask", answers.__getitem__)


def test_the_core_simulates_what_is_stored() -> None:
    """A digest that changes is a change of numbers: docs/versioning.md says what has to be written then."""
    found = installation.ask("simulate")
    assert found["digest"] == installation.expected_digest(), "see docs/versioning.md, and doctor/expected.toml"
    assert found["packet_hops"] > 10_000


def test_the_core_knows_how_it_was_built() -> None:
    found = installation.ask("build_info")
    assert found["version"] == metadata.version("fairlane")
    assert found["compiler"].startswith("rustc 1.")
    assert platform.machine() in found["target"]
    assert set(found) == set(GOOD_CORE)


@pytest.mark.usefixtures("quick")
def test_a_good_installation_has_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["good"] is True
    titles = ["Installation", "Machine", "Programs that some commands start"]
    assert list(found["sections"]) == titles
    checks = {check["name"]: check for checks in found["sections"].values() for check in checks}
    assert checks["simulation"]["data"]["digest"] == installation.expected_digest()
    assert checks["libraries"]["data"]["polars"] == metadata.version("polars")
    assert {"Python", "core", "extra dask", "cores", "memory", "opensm", "squeue", "otf2"} <= set(checks)
    assert execute(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "All that is required works." in printed
    assert all(title in printed for title in titles)


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({}, Status.OK, "release build"),
        ({"opt_level": "1", "debug_assertions": True}, Status.WARNING, "debug build"),
        ({"version": "0.0.1"}, Status.BROKEN, "0.0.1"),
        ({"cpu_features": ["sse2", "avx9000"]}, Status.BROKEN, "avx9000"),
    ],
)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="CPU features of x86-64")
def test_builds_of_the_core(
    changed: Mapping[str, Any], status: Status, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "ask", lambda _: {**GOOD_CORE, **changed})
    found = installation.core()
    assert found.status is status
    assert words in found.found
    assert bool(found.todo) == (status is not Status.OK)


def test_the_cpu_has_what_the_core_was_built_for() -> None:
    """The names of the compiler and of the kernel for the same feature are known."""
    known = installation.cpu_features()
    assert set(installation.ask("build_info")["cpu_features"]) <= known or not known


def test_a_core_that_crashes_is_found_and_what_needs_it_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    monkeypatch.setattr(installation, "_CHILD", f"{crash} # {{function}}")
    assert execute(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["good"] is False
    assert list(found["sections"]) == ["Installation"]
    core = next(check for check in found["sections"]["Installation"] if check["name"] == "core")
    assert (core["status"], core["found"]) == ("broken", "cannot be loaded: the process was ended by SIGILL")
    assert execute(["doctor"]) == 1
    assert "Broken: core." in capsys.readouterr().out
    monkeypatch.setattr(installation, "_CHILD", "import nothing_of_this_name # {function}")
    assert "No module named 'nothing_of_this_name'" in installation.core().found
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert "cannot be started" in installation.core().found


def test_other_results_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"digest": "0" * 64, "packet_hops": 1, "seconds": 0.0}
    monkeypatch.setattr(installation, "ask", lambda _: answer)
    found = installation.simulation()
    assert found.status is Status.BROKEN
    assert "0000000000000000, expected " in found.found


def test_old_and_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: ["numpy>=99", "no-such-library>=2", "polars>=1", "???"])
    found = list(installation.libraries())
    assert [check.status for check in found] == [Status.BROKEN] * 3
    assert found[0].found == f"{metadata.version('numpy')}; needed: >=99"
    assert found[1].todo == 'pip install "no-such-library>=2"'
    assert found[2].found == "1 of 3 as required"


def test_a_missing_extra_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["no-such-library>=2; extra == 'predict'", "polars>=1; extra == 'schedule'", "numpy>=99; extra == 'dask'"]
    monkeypatch.setattr(metadata, "requires", lambda _: lines)
    found = list(installation.extras())
    assert [check.status for check in found] == [Status.MISSING, Status.OK, Status.MISSING, Status.OK, Status.OK]
    assert "fairlane[predict]" in found[0].todo
    assert "too old" in found[2].found
    assert is_good([Section("", tuple(found))])


def test_a_wrong_backend_of_matplotlib_is_found() -> None:
    code = "from fairlane.lab.doctor.installation import figures; print(figures().status, figures().found)"
    environment = os.environ | {"MPLBACKEND": "nothing"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("broken Matplotlib does not draw")
    assert "nothing" in done.stdout


@pytest.mark.long("lab/doctor")
def test_a_missing_library_does_not_stop_the_report(tmp_path: Path) -> None:
    """Without polars, nothing that has tables can be imported."""
    code = """
import sys
sys.modules["polars"] = None
from importlib import metadata
found = metadata.version
def version(name):
    if name == "polars":
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.version = version
from fairlane.cli.main import execute
sys.exit(execute(["doctor", "--json"]))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    checks = json.loads(done.stdout)["sections"]["Installation"]
    polars = next(check for check in checks if check["name"] == "polars")
    assert (polars["status"], polars["found"].partition(";")[0]) == ("broken", "not installed")
    assert polars["todo"].startswith('pip install "polars>=')


def test_programs_are_found_with_their_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = {
        "good": "echo good, version 1.2.3, built today",
        "odd": "echo no configuration 9.9 >&2; exit 1",
        "usage": "echo Usage >&2; echo $0 0.10 >&2; exit 255",
    }
    for name, line in lines.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program = machine.Program("some-package", "some command")
    good, odd, usage, none = (machine.check(name, program) for name in ("good", "odd", "usage", "none"))
    assert (good.status, good.found) == (Status.OK, f"1.2.3, {tmp_path / 'good'}")
    assert odd.status is Status.WARNING
    assert odd.found == f"{tmp_path / 'odd'}: ends with code 1: no configuration 9.9"
    assert (usage.status, usage.found) == (Status.OK, f"0.10, {tmp_path / 'usage'}")
    assert (none.status, none.todo) == (Status.MISSING, "on Debian: apt install some-package")


def test_a_machine_without_a_slurm_cluster_is_said_to_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What squeue 22.05 prints without a slurm.conf, whatever it is asked for.
    lines = [
        "error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host",
        "error: fetch_config: DNS SRV lookup failed",
        "error: _establish_config_source: failed to fetch config",
        "fatal: Could not establish a configuration source",
    ]
    script = "".join(f"echo 'squeue: {line}' >&2\n" for line in lines)
    (tmp_path / "squeue").write_text(f"#!/bin/sh\n{script}exit 1\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setattr("fairlane.cluster.opensm.check.simulated.search_path", lambda: str(tmp_path))
    found = machine.check("squeue", machine.PROGRAMS["squeue"])
    assert found.status is Status.MISSING
    assert found.found == f"{tmp_path / 'squeue'}: no Slurm cluster is configured on this machine"
    assert "SLURM_CONF" in found.todo


def test_every_program_that_another_module_needs_is_looked_for() -> None:
    assert {*subnet.PACKAGES, *testbed.PACKAGES, "squeue", "sbatch"} <= set(machine.PROGRAMS)


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    cache = next(machine.folders())
    assert (cache.name, cache.status) == ("cache", Status.WARNING)
    assert "XDG_CACHE_HOME" in cache.todo


def test_little_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "machine_memory", lambda: 2**28)
    assert machine.memory().status is Status.WARNING


def test_limits_of_control_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 2: half a core and 1 GiB for the outer group, more for the inner one."""
    monkeypatch.setattr(estimate, "_GROUPS", tmp_path)
    read = Path.read_text

    def shown(path: Path, *arguments: Any, **options: Any) -> str:
        return "0::/outer/inner\n" if path == Path("/proc/self/cgroup") else read(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", shown)
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    whole = estimate.machine_cores()
    (tmp_path / "outer" / "cpu.max").write_text("max 100000\n")
    assert estimate.machine_cores() == whole
    (tmp_path / "outer" / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "outer" / "inner" / "cpu.max").write_text("6400000 100000\n")
    (tmp_path / "outer" / "memory.max").write_text(f"{2**30}\n")
    assert estimate.machine_cores() == 1
    assert estimate.machine_memory() <= 2**30
    assert "affinity or control group" in machine.cores().found or whole == 1


@pytest.mark.usefixtures("quick")
def test_a_folder_of_results(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert execute(["run", small, "--out", str(folder), "--quiet", "--seed", "5"]) == 0
    capsys.readouterr()
    assert execute(["doctor", str(folder), "--json"]) == 0
    *_, checks = json.loads(capsys.readouterr().out)["sections"].values()
    run = next(check for check in checks if check["name"] == "run")
    meta = json.loads((folder / "run.json").read_text())
    assert run["data"] == {"scenario": meta["scenario"], "seed": 5, "digest": meta["digest"], "partial": False}
    with (folder / "jobs.parquet").open("ab") as file:
        file.write(b"x")
    assert execute(["doctor", str(folder)]) == 1
    assert "jobs.parquet: has changed since it was written" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("quick")
def test_a_folder_without_results_is_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, words in ((tmp_path, "is no folder of results"), (tmp_path / "none", "there is no such folder")):
        assert execute(["doctor", str(folder)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert f"{folder}: {words}" in err


def test_only_what_is_broken_is_bad() -> None:
    def of(status: Status) -> bool:
        return is_good([Section("", (Check("one", Status.OK, ""), Check("other", status, "")))])

    assert [of(status) for status in Status] == [True, True, True, False]
