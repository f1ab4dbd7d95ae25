"""The output of a reproduction: tables, figures, claims, times of tasks, and a report page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter

import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.reproduce.figures import Picture, draw_all
from fairlane.reproduce.folder import Derived, Text
from fairlane.reproduce.judging import HOLDS, Finding, Judged
from fairlane.reproduce.planning import Plan
from fairlane.reproduce.running import Done, Outcome, made
from fairlane.results.manifest import seal, unseal
from fairlane.study.sql import QueryError
from fairlane.wording import seconds

PAGE = "report.md"
"""The page: claims, what was measured, and the figures."""
RESULTS = "<!-- results -->"
"""Anchor below the title, so that another page can include the rest."""
DIGITS = 6
"""Significant digits of numbers in CSV files."""


@dataclass(frozen=True)
class Reproduction:
    """The outcome."""

    plan: Plan
    outcome: Outcome
    judged: Sequence[Judged]
    damaged: Sequence[str] = ()
    """Stored answers that had changed since they were stored, and so were computed again."""
    unused: int = 0
    """Stored answers of other settings, or computed by another version of the simulator."""

    @property
    def done(self) -> Sequence[Done]:
        """The answer of every task."""
        return list(self.outcome.done.values())

    @property
    def failed(self) -> list[Done]:
        """Tasks without an answer."""
        return [one for one in self.done if one.error is not None]


def store(found: Reproduction, folder: Path) -> None:
    """Writes everything."""
    unseal(folder)
    for one in found.plan.folder.paper.table:
        _keep(one, found.outcome.derived, folder)
    for text in found.plan.folder.paper.text:
        _write(text, found, folder)
    pictures = draw_all(found.plan, found.outcome, folder)
    _claims(found.judged).write_csv(folder / "claims.csv")
    _costs(found).write_csv(folder / "cells.csv", float_precision=1)
    (folder / PAGE).write_text("\n".join(_page(found, pictures)), encoding="utf-8")
    tables = [path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet")]
    seal(folder, "reproduction", 1, tables)


def _keep(one: Derived, derived: Mapping[str, pl.DataFrame], folder: Path) -> None:
    """Writes the files of a table, if it was computed."""
    table = derived.get(one.name)
    if table is None:
        return
    for name, suffix in ((one.csv, "csv"), (one.parquet, "parquet")):
        columns = [field for _, field, _, _ in Formatter().parse(name or "") if field]
        for row in (
            [{}] if name and not columns else table.select(columns).unique().iter_rows(named=True) if name else []
        ):
            part = table.filter(**row).drop(columns) if row else table
            path = folder / f"{str(name).format(**row)}.{suffix}"
            if suffix == "csv":
                part.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS)).write_csv(path)
            else:
                part.write_parquet(path)


def _write(text: Text, found: Reproduction, folder: Path) -> None:
    """Writes a text file, if its data exist."""
    if not made(found.plan, found.outcome, text):
        return
    try:
        row = found.outcome.tables.ask(text.sql).row(0, named=True)
        (folder / text.file).write_text(text.text.format(**row).lstrip(), encoding="utf-8")
    except (QueryError, KeyError, pl.exceptions.PolarsError) as error:
        if not found.outcome.partial(found.plan):
            file = str(found.plan.folder.path / "paper.toml")
            raise ScenarioError(Problem(f"text {text.file}", f"cannot be written: {error}", file=file)) from None


def _claims(judged: Sequence[Judged]) -> pl.DataFrame:
    rows = [
        {
            "claim": one.claim.id,
            "where": one.claim.where,
            "paper": one.claim.claim,
            "measured": "; ".join(f"{it.words}: {'yes' if it.holds else 'no'}" for it in one.findings),
            "missing": "; ".join(one.missing),
            "holds": {True: "yes", False: "no", None: "-"}[one.holds] + (" (scaled)" if one.scaled else ""),
        }
        for one in judged
    ]
    return pl.DataFrame(rows)


def _costs(found: Reproduction) -> pl.DataFrame:
    """Time of each task, s."""
    rows = [
        {"cell": done.task.label, "wall_s": done.seconds, "cpu_s": done.cpu, "error": done.error} for done in found.done
    ]
    schema = {"cell": pl.String, "wall_s": pl.Float64, "cpu_s": pl.Float64, "error": pl.String}
    return pl.DataFrame(rows, schema=schema)


def _page(found: Reproduction, pictures: Sequence[Picture]) -> Iterator[str]:
    paper = found.plan.folder.paper
    quick = " (scaled: a try-out, not a judgement)" if found.plan.options.quick else ""
    yield f"# {paper.title}{quick}\n"
    yield f"{RESULTS}\n"
    yield f"{paper.citation}\n"
    cpu = sum(done.cpu for done in found.done)
    yield f"{len(found.done)} simulations, {seconds(cpu)} of processor time.\n"
    yield from (f"{note}\n" for note in paper.notes)
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
    for finding in one.findings:
        yield f"{first} {_cell(with_reported(finding))} | {'yes' if finding.holds else 'no'} |"
        first = "| | |"
    words = f"missing: {', '.join(one.missing)}" if one.missing else ""
    yield f"{first} {_cell(words)} | **{verdict}** |"


def with_reported(finding: Finding) -> str:
    """A finding as text, with the paper's value."""
    return f"{finding.words}; paper: {finding.reported}" if finding.reported else finding.words


def _cell(words: str) -> str:
    """Text escaped for a table cell."""
    return words.replace("|", "\\|")
