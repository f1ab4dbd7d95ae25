"""What a reproduction leaves in its folder: tables, figures, the claims, what tasks took, and a page with all of it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from fairlane.reproduce.frames.paper import Keeping, Picture
from fairlane.reproduce.frames.report import HOLDS, Judged, Reproduction
from fairlane.results.manifest import seal, unseal
from fairlane.results.text import seconds

__all__ = ["PAGE", "RESULTS", "store"]

PAGE = "report.md"
"""The page: claims, what was measured, and the figures."""
RESULTS = "<!-- results -->"
"""Stands before all but the title, so that another page can include it."""
DIGITS = 6
"""Significant digits of numbers in tables."""


def store(found: Reproduction, folder: Path) -> None:
    """Writes everything."""
    unseal(folder)
    for name, table in found.measured.tables().items():
        table.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS)).write_csv(folder / f"{name}.csv")
    pictures = found.measured.draw(folder)
    _claims(found.judged).write_csv(folder / "claims.csv")
    _costs(found).write_csv(folder / "cells.csv", float_precision=1)
    if isinstance(found.measured, Keeping):
        found.measured.keep(folder)
    (folder / PAGE).write_text("\n".join(_page(found, pictures)), encoding="utf-8")
    tables = [path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet")]
    seal(folder, "reproduction", 1, tables)


def _claims(judged: Sequence[Judged]) -> pl.DataFrame:
    rows = [
        {
            "claim": one.claim.id,
            "where": one.claim.where,
            "paper": one.claim.claim,
            "measured": "; ".join(f"{words}: {'yes' if held else 'no'}" for words, held in one.findings),
            "missing": "; ".join(one.missing),
            "holds": {True: "yes", False: "no", None: "-"}[one.holds] + (" (scaled)" if one.scaled else ""),
        }
        for one in judged
    ]
    return pl.DataFrame(rows)


def _costs(found: Reproduction) -> pl.DataFrame:
    """What each task has taken, s."""
    rows = [
        {"cell": done.task.label, "wall_s": done.seconds, "cpu_s": done.cpu, "error": done.error}
        for done in found.done.values()
    ]
    schema = {"cell": pl.String, "wall_s": pl.Float64, "cpu_s": pl.Float64, "error": pl.String}
    return pl.DataFrame(rows, schema=schema)


def _page(found: Reproduction, pictures: Sequence[Picture]) -> Iterator[str]:
    quick = " (scaled: a try-out, not a judgement)" if found.plan.options.quick else ""
    yield f"# {found.plan.paper.title}{quick}\n"
    yield f"{RESULTS}\n"
    cpu = sum(done.cpu for done in found.done.values())
    yield f"{len(found.done)} simulations, {seconds(cpu)} of processor time.\n"
    for name, words in found.plan.left_out.items():
        yield f"- {name}: {words}"
    yield "\n| claim | paper | measured | in its band |\n|---|---|---|---|"
    for one in found.judged:
        yield from _rows(one)
    for picture in pictures:
        yield f"\n![{picture.title}]({picture.file})"
    yield ""


def _rows(one: Judged) -> Iterator[str]:
    """A row for each finding; the first has the claim."""
    verdict = HOLDS[one.holds] + (", scaled" if one.scaled and not one.missing else "")
    first = f"| `{one.claim.id}`, {one.claim.where} | {_cell(one.claim.claim)} |"
    for words, held in one.findings:
        yield f"{first} {_cell(words)} | {'yes' if held else 'no'} |"
        first = "| | |"
    words = f"missing: {', '.join(one.missing)}" if one.missing else ""
    yield f"{first} {_cell(words)} | **{verdict}** |"


def _cell(words: str) -> str:
    """Text that a table's cell can hold."""
    return words.replace("|", "\\|")
