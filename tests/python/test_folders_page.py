"""The page on folders of papers: its example prints what is shown."""

import re
from pathlib import Path

import pytest

from fairlane.cli.main import execute
from pages import ROOT
from pictures import assert_drawn
from small_study import Here

PAGE = "docs/reproduction/folders.md"
TEXT = (ROOT / PAGE).read_text("utf-8")


def test_the_smallest_folder_prints_what_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.papers.reproduce.open_pool", Here)
    folder = tmp_path / "taper"
    folder.mkdir()
    files = re.findall(r"^`taper/([\w.]+)`[^\n]*:\n\n```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    for name, text in files:
        (folder / name).write_text(text)
    assert len(files) == 3
    (figure,) = re.findall(r"^```toml\n(\[\[figure\]\].*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    (folder / "figures.toml").write_text(figure)
    assert execute(["reproduce", str(folder), "--out", str(tmp_path / "out")]) == 0
    (shown,) = re.findall(r"^\$ fairlane reproduce taper --out runs/taper\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(shown.splitlines()) == 10
    printed = "\n".join(map(str.rstrip, capsys.readouterr().out.splitlines()))
    assert shown in printed
    assert_drawn(tmp_path / "out" / "taper.png")
