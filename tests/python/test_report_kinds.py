"""Pages of results that have none, or whose folder is not complete."""

from pathlib import Path

import pytest

from fairlane.cli.main import execute


def test_results_of_other_kinds_and_folders_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", str(tmp_path / "none")]) == 2
    assert "none: " in capsys.readouterr().err
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "claims.csv").write_text("claim\n")
    assert execute(["report", str(tmp_path / "old")]) == 2
    assert "reproduction.json: is missing: an earlier version of fairlane" in capsys.readouterr().err
