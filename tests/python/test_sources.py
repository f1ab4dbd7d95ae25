"""The digest of the code that makes answers: all that is imported belongs to it, and nothing else."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlane.papers.planning import PAPERS
from fairlane.study.tasks import closure
from fairlane.study.tasks.closure import DRAWING, STUDY, Code, code_digest, sources
from fairlane.study.tasks.task import files_of

HOME = Path(closure.__file__).parents[2]
MEASURES = [
    f"fairlane.study.shipped.{name}.study" for name in ("saturation", "gpcnet", "cables", "advice", "slowdowns")
]
ENTRIES = [*STUDY, *MEASURES]
SMITH = HOME / "papers" / "published" / "smith2018" / "method.py"
UNRELATED = ("cluster", "views", "cli", "lab")
Digest = Callable[..., str]


@pytest.fixture(scope="module")
def files() -> dict[str, set[str]]:
    found = Code(HOME)
    return {entry: {it.relative_to(HOME).as_posix() for it in found.files([entry])} for entry in ENTRIES}


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Digest]]:
    """A copy of fairlane, and the digest of entries in it."""
    home = tmp_path / "fairlane"
    shutil.copytree(HOME, home, ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.js", "vendor"))

    def digest(*entries: str | Path, controller: str | None = None) -> str:
        monkeypatch.setattr("fairlane.study.tasks.closure.code", lambda: Code(home))
        code_digest.cache_clear()
        return sources(*entries, controller=controller)

    yield home, digest
    code_digest.cache_clear()


def edited(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\n# edited\n")


def test_modules_that_an_import_loads_are_in_the_closure(files: dict[str, set[str]]) -> None:
    """Python itself says which: those that an import adds, in a process of its own."""
    words = "import sys, importlib\nfor name in sys.argv[1:]:\n    importlib.import_module(name)"
    words += "\nprint(*(it.__file__ for name, it in sys.modules.items() if name.startswith('fairlane')))"
    done = subprocess.run([sys.executable, "-c", words, *ENTRIES], check=True, capture_output=True, text=True)
    loaded = done.stdout.split()
    names = {Path(it).relative_to(HOME).as_posix() for it in loaded}
    assert "core/errors.py" in names
    assert any(name.startswith("_core.") for name in names)
    assert names <= set().union(*files.values())


@pytest.mark.parametrize("entry", [*STUDY, *MEASURES])
def test_what_draws_reports_or_runs_a_cluster_is_not_in_it(entry: str, files: dict[str, set[str]]) -> None:
    assert not {name for name in files[entry] if name.split("/")[0].removesuffix(".py") in UNRELATED}


def test_nothing_imports_what_draws() -> None:
    """So the package that is left out by name makes no answer."""
    trees = [ast.parse(file.read_text()) for file in Code(HOME).files(ENTRIES) if file.suffix == ".py"]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [node.module for node in imports if (node.module or "").startswith(DRAWING)]


def test_an_edit_of_any_file_that_is_imported_makes_another_digest(copied: tuple[Path, Digest]) -> None:
    home, digest = copied
    before = digest()
    assert digest() == before
    for name in (
        "__init__.py",
        "model/workload/synthetic.py",
        "sim/controller/loop.py",
        "results/milestones.py",
        "study/sql.py",
    ):
        edited(home / name)
        after = digest()
        assert after != before, name
        before = after
    for name in ("study/comparison", *UNRELATED):
        edited(home / name / "__init__.py" if (home / name).is_dir() else home / f"{name}.py")
    assert digest() == before


def test_a_paper_whose_method_uses_an_analysis_notices_an_edit_of_it(copied: tuple[Path, Digest]) -> None:
    home, digest = copied
    method = home / SMITH.relative_to(HOME)
    before = digest(method), digest()
    edited(home / "sim" / "analysis" / "delays.py")
    assert digest(method) != before[0]
    assert digest() == before[1]
    before = digest(method), digest()
    edited(method)
    assert digest(method) != before[0]
    edited(method.with_name("claims.toml"))
    assert digest() == before[1]


def test_data_files_that_are_read_belong_to_it(copied: tuple[Path, Digest]) -> None:
    home, digest = copied
    pairs, cures = "fairlane.learn.scheduler.slowdown.pairs", home / "papers" / "published" / "cures" / "method.py"
    before = digest(pairs), digest(cures), digest()
    edited(home / "learn" / "scheduler" / "slowdown" / "pairs.toml")
    edited(home / "papers" / "published" / "savoie2020" / "small.toml")  # cures reads the systems of another paper
    after = digest(pairs), digest(cures), digest()
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, False, True]


def test_a_controller_depends_on_its_own_source_and_on_what_all_share(copied: tuple[Path, Digest]) -> None:
    home, digest = copied
    names = (None, "none", "process_prioritization", "slack")

    def digests() -> dict[str | None, str]:
        return {name: digest(controller=name) for name in names}

    before = digests()
    assert len(set(before.values())) == 4
    edited(next((home / "sim" / "controller" / "slack").glob("[a-z]*.py")))
    after = digests()
    assert {name for name in names if before[name] != after[name]} == {None, "slack"}
    edited(home / "sim" / "controller" / "base.py")
    assert set(digests().values()).isdisjoint(after.values())


def test_imports_inside_functions_of_names_on_first_use_and_by_text_count(tmp_path: Path) -> None:
    home = tmp_path / "fairlane"
    texts = {
        "__init__.py": 'from typing import Any\n_HOME = {"Late": "fairlane.late"}\n'
        "def __getattr__(name: str) -> Any: ...\n",
        "late.py": "",
        "a/__init__.py": "",
        "a/one.py": "from typing import TYPE_CHECKING\nfrom . import two\n"
        "if TYPE_CHECKING:\n    import fairlane.typed\n"
        "else:\n    import fairlane.real\ndef f():\n    try:\n        from fairlane import Late\n"
        '    except OSError:\n        return "fairlane.named:g"\n',
        "a/two.py": "from ..b.three import x\n",
        "b/__init__.py": "",
        "b/three.py": "import fairlane.loop\n",
        "loop.py": "import fairlane.a.one\n",
        **dict.fromkeys(("typed.py", "real.py", "named.py", "other.py"), ""),
    }
    for name, text in texts.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    found = {file.relative_to(home).as_posix() for file in Code(home).files(["fairlane.a.one"])}
    assert found == {*texts} - {"typed.py", "other.py"}


def test_a_plug_in_depends_on_files_beside_it_and_on_what_it_uses(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import helper\nfrom fairlane.sim.analysis import View\n")
    (tmp_path / "helper.py").write_text("SIZE = 1\n")
    scenario = {"workload": {"name": "own.py:Ring"}}
    found = {Path(name).name for name, *_ in files_of(scenario, tmp_path)}
    assert {"own.py", "helper.py", sources(tmp_path / "own.py")} == found
    assert sources(tmp_path / "own.py") != sources(HOME / "core" / "errors.py")


def test_every_paper_with_a_method_has_a_closure() -> None:
    for folder in (HOME / "papers" / "published").iterdir():
        if (folder / "method.py").is_file():
            names = {file.name for file in Code(HOME).files([folder / "method.py"])}
            assert {"method.py", "errors.py"} <= names
    assert len(PAPERS) > 1
