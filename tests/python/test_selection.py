"""Which tests run is decided by what has changed: ``tests/selection.py``."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import selection

PACKAGE = selection.ROOT / "python" / "fairlane"


def folders() -> Iterator[tuple[str, str]]:
    """The folders of each marker, with the file that names them."""
    for file in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("pytest.mark.live", "pytest.mark.long"):
                yield from ((file.name, str(ast.literal_eval(folder))) for folder in node.args)


def test_folders_of_markers_exist() -> None:
    found = list(folders())
    assert len(found) > 50
    assert [one for one in found if not ((path := PACKAGE / one[1]).is_dir() or path.with_suffix(".py").exists())] == []


@pytest.mark.long("core/statistics")
@pytest.mark.parametrize(
    ("changed", "runs"),
    [
        ("python/fairlane/core/statistics/intervals.py", True),
        ("tests/python/test_selection.py", True),
        ("tests/selection.py", True),
        ("crates/fairlane-core/src/lib.rs", True),
        ("python/fairlane/study/plan.py", False),
        ("tests/slurm.py", False),
    ],
)
def test_a_long_test_runs_if_its_folder_its_file_or_a_helper_changed(
    changed: str, runs: bool, request: pytest.FixtureRequest
) -> None:
    assert selection.is_affected(request.node, [changed]) == runs
