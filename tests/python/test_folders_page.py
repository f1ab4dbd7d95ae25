"""The page on folders of papers: its example prints what is shown, and its tables have the keys of each file."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from fairlane.cli.main import execute
from fairlane.reproduce.folder import Claim, Clause, Conditional, Figure, Panel, PaperTable
from pages import ROOT, names, table
from small_study import Here

PAGE = "docs/reproduction/folders.md"
TEXT = (ROOT / PAGE).read_text("utf-8")


def test_the_smallest_folder_prints_what_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.reproduce.open_pool", Here)
    folder = tmp_path / "taper"
    folder.mkdir()
    files = re.findall(r"^`taper/([\w.]+)`[^\n]*:\n\n```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    for name, text in files:
        (folder / name).write_text(text)
    assert len(files) == 3
    assert execute(["reproduce", str(folder), "--out", str(tmp_path / "out")]) == 0
    (shown,) = re.findall(r"^\$ fairlane reproduce taper --out runs/taper\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(shown.splitlines()) == 4
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "model", "elsewhere"),
    [
        ("claim", Claim, {"clause"}),
        ("clause", Clause, set()),
        ("figure", Figure, {"panel", *Conditional.model_fields}),
        ("panel", Panel, set()),
    ],
)
def test_tables_of_keys_have_all(kind: str, model: type[BaseModel], elsewhere: set[str]) -> None:
    listed = [key for row in table(PAGE, f"key of a {kind}") for key in names(row[f"key of a {kind}"])]
    assert sorted([*listed, *elsewhere]) == sorted(model.model_fields)


def test_the_table_of_paper_toml_has_all_keys() -> None:
    listed = {key for row in table(PAGE, "key", "meaning") for key in re.findall(r"`\[*(\w+)", row["key"])}
    assert listed - {"differs"} == set(PaperTable.model_fields)
