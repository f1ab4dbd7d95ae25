"""What belongs to a release: versions that agree, the oldest Rust, checks before a build, packages, addresses."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest

from fairlane.lab.doctor.installation import PYTHON
from fairlane.results.manifest import _Manifest
from fairlane.results.reproduction import REPRODUCTION_SCHEMA_VERSION
from fairlane.results.schedule import SCHEDULE_SCHEMA_VERSION
from fairlane.study.shipped.advice import Advice
from fairlane.study.shipped.cables import Cables
from fairlane.study.shipped.gpcnet import Gpcnet
from fairlane.study.shipped.saturation import Saturation
from fairlane.study.tasks.store import SCHEMA_VERSION as ANSWERS_SCHEMA_VERSION

ROOT = Path(__file__).parent.parent.parent
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUST = WORKSPACE["rust-version"]
TEXTS = {".md", ".toml", ".cff", ".yml", ".py", ".rs", ""}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tracked() -> list[Path]:
    """The project's files, or all of the folder where there is no git."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("the files of the project are known from git only")
    return [ROOT / line for line in done.stdout.splitlines()]


def test_the_version_is_the_same_everywhere() -> None:
    version = WORKSPACE["version"]
    assert re.search(r"^version: (.*)$", read("CITATION.cff"), re.MULTILINE)[1] == version  # type: ignore[index]
    assert metadata.version("fairlane") == version
    locked = {package["name"]: package["version"] for package in tomllib.loads(read("Cargo.lock"))["package"]}
    own = {name for name in locked if name.startswith("fairlane-") and name != "fairlane-example-plugin"}
    assert own == {f"fairlane-{name}" for name in ("core", "trace", "bindings", "python")}
    assert {locked[name] for name in own} == {version}


def test_the_oldest_rust_and_python_are_named_everywhere() -> None:
    for page in ("README.md", "docs/quickstart.md", "docs/installation.md", "docs/versioning.md", "Makefile"):
        assert f"Rust {RUST}" in read(page) or f"Rust | {RUST}" in read(page), page
    assert f"ARG RUST={RUST}\n" in read("Dockerfile")
    plugin = tomllib.loads(read("examples/plugin-crate/Cargo.toml"))["package"]
    assert plugin["rust-version"] == RUST
    oldest = ".".join(map(str, PYTHON))
    assert PROJECT["requires-python"] == f">={oldest}"
    assert f"Python {oldest} or later" in read("README.md")


def test_the_page_on_versions_has_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| ([^|]+?) \| (\d+) \|$", read("docs/versioning.md"), re.MULTILINE))
    assert {name: int(version) for name, version in rows.items()} == {
        "load sweep (`saturate`)": Saturation.SCHEMA_VERSION,
        "advice (`advise`)": Advice.SCHEMA_VERSION,
        "congestion benchmark (`gpcnet`)": Gpcnet.SCHEMA_VERSION,
        "survey of failures (`cables`)": Cables.SCHEMA_VERSION,
        "schedule (`schedule --results`)": SCHEDULE_SCHEMA_VERSION,
        "reproduction": REPRODUCTION_SCHEMA_VERSION,
        "answers of a study, a sweep or a reproduction that `--resume` continues": ANSWERS_SCHEMA_VERSION,
        "manifest": _Manifest.model_fields["format"].default,
    }


def test_no_address_of_a_repository_that_does_not_exist() -> None:
    invented = "github.com/" + "fairlane"
    texts = [path for path in tracked() if path.suffix in TEXTS and path.is_file()]
    assert [path for path in texts if invented in path.read_text("utf-8", errors="replace")] == []


def test_links_of_the_pages_at_the_top_lead_to_files() -> None:
    for page in ("README.md", "SECURITY.md"):
        links = re.findall(r'\]\(([^)#]+)[^)]*\)|src="([^"]+)"', read(page))
        names = [name for pair in links for name in pair if name and not name.startswith("https://")]
        assert names
        assert [name for name in names if not (ROOT / name).exists()] == [], page


def test_a_bug_report_asks_for_what_repeats_it() -> None:
    for name in ("bug", "wrong-number"):
        form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert "`fairlane doctor --json`" in form
        assert {"doctor", "scenario", "seed", "digest"} <= set(re.findall(r"^    id: (\S+)$", form, re.MULTILINE))


def tools_in(folder: Path, **programs: str | None) -> dict[str, str]:
    """An environment whose PATH has only what shell scripts need, and these programs; None leaves one out."""
    folder.mkdir()
    needed = "bash cat command dirname env find grep head make mktemp printf rm sed sort cc as ld gcc tr expand"
    for name in needed.split():
        if (path := shutil.which(name)) and name not in programs:
            (folder / name).symlink_to(path)
    for name, text in programs.items():
        if text is not None:
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
    return {"PATH": str(folder), "HOME": str(folder), "LC_ALL": "C.UTF-8"}


GOOD = f"echo '1 {RUST}.0 (0123 2025-01-01)'"


@pytest.mark.parametrize(
    ("programs", "words"),
    [
        (
            {"cargo": "echo cargo 1.75.0", "rustc": GOOD},
            f"needs Rust {RUST} or later, and {{}}/cargo is 1.75.0: update it",
        ),
        (
            {"cargo": GOOD, "rustc": "echo rustc 1.9.0"},
            f"needs Rust {RUST} or later, and {{}}/rustc is 1.9.0: update it",
        ),
        ({"cargo": None, "rustc": None}, f"needs Rust {RUST} or later, and cargo is not on PATH: install Rust"),
        ({"cargo": "echo no toolchain >&2; exit 1", "rustc": GOOD}, "{}/cargo does not work: no toolchain; install"),
        ({"cargo": "echo hello", "rustc": GOOD}, "{}/cargo prints no version: hello"),
        ({"cargo": GOOD, "rustc": GOOD, "cc": None}, "needs a C compiler, and cc is not on PATH: install one"),
        (
            {"cargo": GOOD, "rustc": GOOD, "cc": "echo stdlib.h: not found >&2; exit 1"},
            "the C compiler cc cannot build a program: stdlib.h: not found; install one",
        ),
    ],
)
def test_a_toolchain_that_cannot_build_is_refused_in_words(
    programs: dict[str, str | None], words: str, tmp_path: Path
) -> None:
    environment = tools_in(tmp_path / "bin", **programs)
    done = subprocess.run(
        [ROOT / "tools/check-toolchain"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert words.format(tmp_path / "bin") in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("version", [f"{RUST}.0", "1.100.0", "2.0.0", f"{RUST}.0-nightly"])
def test_a_new_enough_rust_is_accepted(version: str, tmp_path: Path) -> None:
    printed = f"echo rustc {version}"
    environment = tools_in(tmp_path / "bin", cargo=printed, rustc=printed)
    done = subprocess.run(
        [ROOT / "tools/check-toolchain"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def source_tree(folder: Path) -> Path:
    """What ``make build`` reads before it builds anything."""
    for name in ("Makefile", "Cargo.toml", "Cargo.lock", "pyproject.toml", "tools", "requirements"):
        place = ROOT / name
        (shutil.copytree if place.is_dir() else shutil.copy)(place, folder / name)
    return folder


@pytest.mark.parametrize(
    ("programs", "options", "words"),
    [
        ({"cargo": "echo cargo 1.80.0", "rustc": "echo rustc 1.80.0"}, [], f"fairlane needs Rust {RUST} or later"),
        (
            {"cargo": GOOD, "rustc": GOOD, "python3": "[ $1 = --version ] && echo Python 3.9.18; exit 1"},
            [],
            "fairlane needs Python 3.11 or later with venv and ensurepip (on Debian: apt install python3-venv), "
            "and found none on PATH (python3: Python 3.9.18)",
        ),
        (
            {"cargo": GOOD, "rustc": GOOD, "old": "[ $1 = --version ] && echo Python 3.10.1; exit 1"},
            ["PYTHON=old"],
            "PYTHON=old cannot be used (Python 3.10.1): fairlane needs Python 3.11 or later",
        ),
    ],
)
def test_make_build_refuses_what_is_too_old_before_it_makes_anything(
    programs: dict[str, str | None], options: list[str], words: str, tmp_path: Path
) -> None:
    environment = tools_in(tmp_path / "bin", **programs)
    tree = source_tree(tmp_path)
    done = subprocess.run(
        ["make", "build", *options], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert words in done.stderr
    assert not (tree / ".venv").exists()


def packages(folder: Path, without: str = "") -> Path:
    """A wheel and a source distribution that have the names of all files, but for those that end so."""
    folder.mkdir()
    home = ROOT / "python" / "fairlane"
    files = {
        path.relative_to(ROOT / "python").as_posix() for path in home.rglob("*") if path.suffix not in (".pyc", ".so")
    }
    rust = {path.relative_to(ROOT).as_posix() for path in (ROOT / "crates").rglob("*.rs")}
    tops = {"Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "LICENSE"}
    with ZipFile(folder / "fairlane-0-cp311-abi3-manylinux_2_17_x86_64.whl", "w") as wheel:
        for name in {*files, "fairlane/_core.abi3.so", "fairlane-0.dist-info/licenses/LICENSE"}:
            if not (without and name.endswith(without)):
                wheel.writestr(name, "")
    with tarfile.open(folder / "fairlane-0.tar.gz", "w:gz") as archive:
        for name in {*tops, *rust, *(f"python/{name}" for name in files)}:
            if not (without and name.endswith(without)):
                archive.addfile(tarfile.TarInfo(f"fairlane-0/{name}"))
    return folder


@pytest.mark.parametrize("without", ["", "browser/page.html", "_core.abi3.so", "Cargo.lock", "LICENSE"])
def test_packages_without_a_file_are_refused(without: str, tmp_path: Path) -> None:
    folder = packages(tmp_path / "dist", without)
    done = subprocess.run(
        [sys.executable, ROOT / "tools/check_packages.py", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == (1 if without else 0), done.stderr
    assert without in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give one file: a wheel or a source distribution (0 given)"),
        (["none.whl"], "none.whl: is not a file; make wheel builds"),
        (["README.md"], "README.md: is neither a wheel (.whl) nor a source distribution (.tar.gz)"),
    ],
)
def test_the_test_of_a_wheel_refuses_what_is_none(arguments: list[str], words: str) -> None:
    done = subprocess.run(
        [ROOT / "tools/test-wheel", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert words in done.stderr
