"""Runs the studies that the pages of examples and questions show, and stores their tables and figures in the pages.

A page has a pair of markers for each, ``<!-- study:start NAME -->`` and ``<!-- study:end -->``. NAME is the file of the
study in ``examples``, without its ending. Between them go a table with means and intervals, and the study's figure,
which is copied to ``docs/images``. With arguments, only studies whose names contain one of them are run. ``--keep``
names a folder in which results stay; a study that is complete there is not simulated again.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from PIL import Image

from fairlane.core.statistics import over_replicates
from fairlane.core.wording import percent, significant, with_half_width
from fairlane.results.study import StudyResults
from fairlane.study.conditions import CONDITION, varied, with_condition
from fairlane.study.replicates import over_points
from fairlane.study.running import run
from fairlane.study.study import Study

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [DOCS / "examples.md", *sorted((DOCS / "questions").glob("*.md"))]
MARKERS = re.compile(r"(<!-- study:start (\S+) -->\n).*?(<!-- study:end -->)", flags=re.DOTALL)
DEFAULT = "default"
NO_BREAK = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
POINT = ("placement", "seed", "point")  # columns that say which replicate a row is of


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines).replace(" ± ", NO_BREAK)


def effects(study: StudyResults) -> str:
    """W without treatment and the improvement by each, copies of a job together: a row for each condition and job."""
    work, conditions = with_condition(study.work)
    work = work.with_columns(base=pl.col("name").str.replace(r"-\d+$", ""))
    found = {
        (row[CONDITION], row["base"], row["treatment"]): row
        for row in over_points(work, [CONDITION, "base", "treatment"]).iter_rows(named=True)
    }
    treatments = [name for name in work["treatment"].unique(maintain_order=True) if name != DEFAULT]
    several = len(conditions) > 1
    rows = [
        [*([condition] if several else []), job, interval(row, "w")]
        + [interval(found[condition, job, name], "improvement") for name in treatments]
        for (condition, job, treatment), row in found.items()
        if treatment == DEFAULT
    ]
    gains = [f"improvement, {name}" for name in treatments]
    return table([*varied(study.work), "job", "W, default" if gains else "W", *gains], rows)


def interval(row: dict[str, Any], column: str) -> str:
    """A share with half the width of its interval."""
    return with_half_width(row[column], row[f"{column}_low"], row[f"{column}_high"], partial(percent, signed=True))


def measured(frame: pl.DataFrame) -> str:
    """The mean of each number over placements, by the columns of text."""
    frame = frame.select(column for column in frame if column.null_count() < frame.height)
    by = [name for name, kind in frame.schema.items() if kind == pl.String and name not in POINT]
    numbers = [name for name in frame.columns if name not in (*by, *POINT) and frame[name].dtype.is_numeric()]
    rows = []
    for key, group in frame.group_by(by, maintain_order=True):
        cells = [str(part) for part in key]
        for name in numbers:
            of = over_replicates([[value] for value in group[name].drop_nulls()])
            cells.append(
                "" if of is None else with_half_width(of.value, of.low, of.high, partial(significant, digits=3))
            )
        rows.append(cells)
    return table([name.replace("_us", " [µs]") for name in [*by, *numbers]], rows)


def shown(name: str, scratch: Path) -> Iterator[str]:
    """The table of a study, and its figure."""
    folder = scratch / name.replace("/", "-")
    if (folder / "manifest.json").exists():
        found = StudyResults.load(folder)
    else:
        found = run(Study.load(ROOT / "examples" / f"{name}.toml"), out=folder, resume=(folder / "spec.json").exists())
    assert found.folder is not None, "it was written"
    if found.measured is not None:
        yield from map(measured, found.measured.values())
        return
    yield effects(found)
    found.draw()
    figure = found.folder / ("conditions.png" if varied(found.work) else "work.png")
    stem = name.rpartition("/")[2]
    # 128 colours are enough for it, and make it a fifth as large.
    Image.open(figure).convert("RGB").quantize(128).save(DOCS / "images" / f"study-{stem}.png", optimize=True)
    yield f'```{{image}} {{images}}/study-{stem}.png\n:alt: "{found.headline()}"\n```'


def main() -> None:
    """Updates the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only studies whose names contain one of these")
    parser.add_argument("--keep", type=Path, help="the folder for results; by default a temporary one")
    arguments = parser.parse_args()
    names = arguments.names
    with tempfile.TemporaryDirectory() as temporary:
        scratch = arguments.keep or Path(temporary)
        for page in PAGES:
            images = "images" if page.parent == DOCS else "../images"

            def block(match: re.Match[str], images: str = images) -> str:
                if names and not any(name in match[2] for name in names):
                    return match[0]
                parts = [part.replace("{images}", images) for part in shown(match[2], scratch)]
                return match[1] + "\n" + "\n\n".join(parts) + "\n\n" + match[3]

            page.write_text(MARKERS.sub(block, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
