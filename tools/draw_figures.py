"""Draws figures of the documentation whose numbers are stored in tables.

Without arguments the figures of ``docs/data/figures.toml`` go to ``docs/images``. With the name of a paper its figures
go to ``docs/reproduction/PAPER``, as far as the tables there have what they show. Other arguments name the only figures
that are drawn.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

import polars as pl
from PIL import Image

from fairlane.papers.figures import data_of, figures_of
from fairlane.papers.folder import FiguresTable
from fairlane.papers.reproduce import PAPERS, folder_of, plan
from fairlane.papers.running import Outcome, with_tables
from fairlane.results.reproduction import FigureData
from fairlane.study.sql import Database
from fairlane.views.kinds import write_pictures
from fairlane.views.model import View
from fairlane.views.reproduction import chart_of

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def of_documentation() -> Iterable[FigureData]:
    """The figures of ``docs/data/figures.toml``, whose queries see the tables of that folder and of ``benches``."""
    files = [*(DOCS / "data").glob("*.csv"), *(ROOT / "benches").glob("*.csv")]
    tables = Database({path.stem: pl.read_csv(path, infer_schema_length=None) for path in files})
    described = FiguresTable.model_validate(tomllib.loads((DOCS / "data" / "figures.toml").read_text()))
    for figure in described.figure:
        yield from data_of(figure, tables)


def of_paper(name: str) -> Iterable[FigureData]:
    """The figures of a paper that need only tables that are stored."""
    chosen, folder = plan(name), DOCS / "reproduction" / name
    files = {one.name: folder / f"{one.csv}.csv" for one in folder_of(name).paper.table if one.csv}
    stored = {name: pl.read_csv(file, infer_schema_length=None) for name, file in files.items() if file.is_file()}
    found, others = figures_of(chosen, with_tables(chosen, {}, Outcome(Database(stored), stored, {})))
    for problem in others:
        print(problem, file=sys.stderr)
    return found


def draw(figures: Iterable[FigureData], folder: Path) -> None:
    """Writes the files of figures, in 128 colours: enough for them, and a fifth as large."""
    charts = list(map(chart_of, figures))
    view = View("", "", (), charts)
    with tempfile.TemporaryDirectory() as scratch:
        for path in write_pictures(view, view.pictures, Path(scratch)):
            Image.open(path).convert("RGB").quantize(128).save(folder / path.name, optimize=True)
            print(folder / path.name)


def main(arguments: list[str]) -> None:
    """Draws what is asked for."""
    papers = [name for name in arguments if name in PAPERS]
    names = [name for name in arguments if name not in PAPERS]
    for paper in papers:
        draw((one for one in of_paper(paper) if not names or one.file in names), DOCS / "reproduction" / paper)
    if not papers:
        draw((one for one in of_documentation() if not names or one.file in names), DOCS / "images")


if __name__ == "__main__":
    main(sys.argv[1:])
