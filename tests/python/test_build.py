"""Plug-in crates: what is built with them is found, checked, listed and recorded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlane.cli.command import ExitCode
from fairlane.cli.main import execute
from fairlane.core import extension
from fairlane.core.errors import ScenarioError
from fairlane.core.extension import ENVIRONMENT, Build, Conditions, Crate
from fairlane.inputs.crates import Tools
from fairlane.results.manifest import MANIFEST
from fairlane.study.tasks.closure import code_digest, sources

ROOT = Path(__file__).parents[2]
CRATE = ROOT / "examples" / "plugin-crate"
SCENARIO = """
duration = "1 ms"

[fabric]
bandwidth = "100 Gb/s"
{fabric}

[qos]
arbiter = "{arbiter}"

[placement]
name = "random"

[[jobs]]
name = "job"
count = 2
ranks = 8
workload = {{ name = "all_to_all", compute_share = 0.3 }}
"""
PLUGINS = 'topology = "leaf_spine"\nrouting = "spine_by_job"\nleaves = 4\nhosts_per_leaf = 4\nspines = 1'
BUILT_IN = 'topology = "fat_tree"\nrouting = "adaptive"\nhosts = 16\nlevels = 2\nleaf_down = 4\nleaf_up = 1'


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Build]:
    """A build that is in fact the package's own simulator, and is active."""
    folder = tmp_path / "build"
    folder.mkdir()
    (own,) = extension.files(Path(extension.__file__).parents[1])
    shutil.copyfile(own, folder / "_core-0.abi3.so")
    made = Build(folder, "_core-0.abi3.so", Conditions.here(), (Crate("mine", "1.2.3", "/no/such/mine"),))
    (folder / extension.RECORD).write_text(made.record())
    monkeypatch.setenv(ENVIRONMENT, str(folder))
    extension.active.cache_clear()
    yield made
    extension.active.cache_clear()


def in_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which loads the simulator anew."""
    command = [sys.executable, "-m", "fairlane", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_a_build_is_listed_and_recorded_and_makes_stored_answers_stale(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["build", "--list", "--json"]) == 0
    crate = {"name": "mine", "version": "1.2.3", "path": "/no/such/mine"}
    assert json.loads(capsys.readouterr().out)["crates"] == [crate]
    file, out = tmp_path / "scenario.toml", tmp_path / "run"
    file.write_text(SCENARIO.format(fabric=BUILT_IN, arbiter="vlarb"))
    assert execute(["run", str(file), "--no-isolated", "--quiet", "--out", str(out)]) == 0
    manifest = json.loads((out / MANIFEST).read_text())
    assert manifest["crates"] == ["mine 1.2.3"]
    assert len(manifest["simulator"]) == 64
    digests = []
    for _ in range(2):
        code_digest.cache_clear()
        digests.append(sources())
        with build.file.open("ab") as library:
            library.write(b"another crate")
    monkeypatch.delenv(ENVIRONMENT)
    extension.active.cache_clear()
    code_digest.cache_clear()
    digests.append(sources())
    code_digest.cache_clear()
    assert len(set(digests)) == 3


def test_a_build_of_another_fairlane_is_refused(build: Build) -> None:
    path, here = build.folder / extension.RECORD, build.conditions
    assert build.problem() is None
    assert in_process("list", "arbiters").returncode == 0
    for conditions, words in (
        (replace(here, fairlane="0.0.9"), f"was built for fairlane 0.0.9, and this is {here.fairlane}"),
        (replace(here, abi="abi3-linux-m68k"), f"was built for abi3-linux-m68k, and this is {here.abi}"),
        (replace(here, core="0" * 64), "was built for another compiled simulator than that in "),
    ):
        problem = str(replace(build, conditions=conditions).problem())
        assert problem.startswith(f"{path}: {words}")
        assert problem.endswith("build again: fairlane build")
    path.write_text(replace(build, conditions=replace(here, fairlane="0.0.9")).record())
    refused = in_process("list", "arbiters")
    assert refused.returncode == ExitCode.WRONG_INPUT
    assert "was built for fairlane 0.0.9" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "mine 1.2.3" in in_process("build", "--list").stdout, "to build again is possible all the same"
    build.file.unlink()
    assert "_core-0.abi3.so is missing; build again" in str(build.problem())
    path.write_text("{}")
    with pytest.raises(ScenarioError, match=r"build\.json: is no record of a build"):
        Build.read(build.folder)


def test_what_is_missing_is_an_error_that_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: object) -> str:
        assert execute(["build", *map(str, arguments)]) == ExitCode.WRONG_INPUT
        return capsys.readouterr().err

    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    extension.active.cache_clear()
    assert f'{ENVIRONMENT} = "{tmp_path}": there is no build.json' in refused("--list")
    monkeypatch.delenv(ENVIRONMENT)
    extension.active.cache_clear()
    assert "no crate is built in" in refused("--out", tmp_path)
    assert '--without = "mine": unknown crate' in refused("--without", "mine", "--out", tmp_path)
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "cargo is not on PATH; allowed: Rust 1.88 or later, from https://rustup.rs" in refused("--with", CRATE)
    cargo = tmp_path / "cargo"
    cargo.write_text(f"#!/bin/sh\necho '{json.dumps({'packages': []})}'\n")
    cargo.chmod(0o755)
    assert "pip download --no-deps --no-binary fairlane" in refused("--with", CRATE, "--sources", tmp_path)
    crate = ["--sources", ROOT, "--with", CRATE]
    assert "is no crate: it has no Cargo.toml" in refused(*crate[:3], tmp_path)
    assert "has no library in Rust" in refused(*crate)
    package = {"name": "mine", "version": "1.0.0", "manifest_path": str(CRATE / "Cargo.toml")}
    for dependencies, words in (
        ([], "does not depend on fairlane-core; allowed: fairlane-core = "),
        ([{"name": "fairlane-core", "path": str(tmp_path), "source": None}], f"depends on fairlane-core in {tmp_path}"),
    ):
        printed = {**package, "targets": [{"kind": ["lib"]}], "dependencies": dependencies}
        cargo.write_text(f"#!/bin/sh\necho '{json.dumps({'packages': [printed]})}'\n")
        assert words in refused(*crate)
    git = {"name": "fairlane-core", "source": "git+https://example.org/fairlane?tag=v0.1"}
    for source, key in ((git["source"], "https://example.org/fairlane"), ("registry+https://x", "crates-io")):
        printed = {**package, "targets": [{"kind": ["lib"]}], "dependencies": [{**git, "source": source}]}
        cargo.write_text(f"#!/bin/sh\necho '{json.dumps({'packages': [printed]})}'\n")
        assert Tools.find(ROOT).plugin(CRATE).core == key
    cargo.write_text("#!/bin/sh\necho broken >&2\nexit 101\n")
    assert f"{CRATE / 'Cargo.toml'}: broken" in refused(*crate)


@pytest.mark.long("inputs/crates", "core")
def test_scenarios_use_a_crate_that_is_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "build"
    done = in_process("build", "--with", CRATE, "--sources", ROOT, "--out", out)
    assert done.returncode == 0, done.stderr
    assert f"fairlane-example-plugin 0.1.0 ({CRATE})" in done.stdout
    monkeypatch.setenv(ENVIRONMENT, str(out))
    for kind, name in (("topologies", "leaf_spine"), ("collectives", "bcast chain")):
        listed = json.loads(in_process("list", kind, "--json").stdout)[kind]
        assert listed[name]["origin"] == "from crate fairlane-example-plugin 0.1.0"
    # With one spine and one lane there is but one path and one packet to choose: that of the built-in ones.
    digests = set()
    for number, (fabric, arbiter) in enumerate(((PLUGINS, "longest_wait"), (BUILT_IN, "vlarb"))):
        file, folder = tmp_path / f"{number}.toml", tmp_path / f"run-{number}"
        file.write_text(SCENARIO.format(fabric=fabric, arbiter=arbiter))
        done = in_process("run", file, "--no-isolated", "--quiet", "--out", folder)
        assert done.returncode == 0, done.stderr
        digests.add(json.loads((folder / "run.json").read_text())["digest"])
    assert len(digests) == 1
    assert in_process("build", "--without", "fairlane-example-plugin").returncode == 0
    assert not out.exists()
