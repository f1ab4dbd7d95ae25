"""The output of a reproduction: tables, figures, claims, times of tasks, and a report page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain
from math import nan
from pathlib import Path
from string import Formatter

import polars as pl

from fairlane.core.errors import Problem
from fairlane.core.wording import plural, seconds, significant
from fairlane.inputs.problems import refusing
from fairlane.papers.figures import figures_of
from fairlane.papers.folder import Derived, Text, file_name
from fairlane.papers.judging import Judged, margin_of
from fairlane.papers.planning import Plan
from fairlane.papers.replicating import Replication
from fairlane.papers.running import Done, Outcome, made
from fairlane.papers.storing import CLAUSES, table_of
from fairlane.papers.verdicts import ClaimVerdict, Verdict
from fairlane.results.manifest import unseal
from fairlane.results.notes import by_name, sentence
from fairlane.results.parquet import rounded
from fairlane.results.reproduction import (
    FIGURES,
    META,
    TABLE,
    ReproductionMeta,
    ReproductionResults,
    Row,
    claims_of,
    clauses_of,
    explained,
    held_of,
    numbers_of,
    seal_reproduction,
    spread_of,
    write_figures,
)
from fairlane.study.sql import QueryError
from fairlane.study.tasks.closure import sources
from fairlane.views.kinds import view_of, write_pictures
from fairlane.views.model import View

PAGE = "report.md"
"""The page: claims, what was measured, and the figures."""
VERDICTS = "verdicts.md"
"""The claims with what decides them, and all numbers folded: for other pages to include."""
RESULTS = "<!-- results -->"
"""Anchor below the title, so that another page can include the rest."""


@dataclass(frozen=True)
class Reproduction:
    """The outcome."""

    plan: Plan
    outcome: Outcome
    judged: Sequence[Judged]
    """The claims in the first replicate."""
    damaged: Sequence[str] = ()
    """Stored answers that had changed since they were stored, and so were computed again."""
    unused: int = 0
    """Stored answers of other settings, or computed by another version of the simulator."""
    replication: Replication = field(default_factory=lambda: Replication(()))
    """All replicates, and the verdicts by them."""
    not_written: Sequence[Problem] = ()
    """Problems of figures and texts that could not be written."""

    @property
    def verdicts(self) -> Sequence[ClaimVerdict]:
        """The claims over all replicates."""
        return self.replication.verdicts

    @property
    def by_replicate(self) -> Mapping[int, Mapping[str, Done]]:
        """Return the performed tasks of each replicate, of later ones without those of the first."""
        return {self.plan.options.replicate: self.outcome.done, **self.replication.done}

    @property
    def done(self) -> Sequence[Done]:
        """The answer of every task."""
        return [done for of in self.by_replicate.values() for done in of.values()]

    @property
    def failed(self) -> list[Done]:
        """Tasks without an answer."""
        return [done for done in self.done if done.error is not None]


def store(reproduction: Reproduction, folder: Path) -> list[Problem]:
    """Writes everything; returns what is wrong with figures and texts that cannot be written.

    Raises ``ScenarioError`` if the name of a table's file, with the columns in it, is none.
    """
    unseal(folder)
    for table in reproduction.plan.folder.paper.table:
        _keep(table, reproduction.outcome.derived, folder)
    wrong = [problem for text in reproduction.plan.folder.paper.text for problem in _write(text, reproduction, folder)]
    figures, problems = figures_of(reproduction.plan, reproduction.outcome)
    verdicts = table_of(reproduction.verdicts)
    results = ReproductionResults(_meta(reproduction), verdicts, _costs(reproduction), figures, folder=folder)
    verdicts.write_parquet(folder / TABLE)
    results.claims.write_csv(folder / "claims.csv")
    rounded(results.clauses).write_csv(folder / CLAUSES)
    results.cells.write_csv(folder / "cells.csv", float_precision=1)
    view = view_of([results])
    failed = dict(_draw(view, folder))
    file = str(reproduction.plan.folder.path / "figures.toml")
    problems += [Problem(f"figure {name}", f"cannot be drawn: {error}", file=file) for name, error in failed.items()]
    pictures = {name: charts[0].title for name, charts in view.pictures.items() if name not in failed}
    (folder / VERDICTS).write_text("\n".join(verdict_page(verdicts)) + "\n", encoding="utf-8")
    (folder / PAGE).write_text("\n".join(_page(reproduction, verdicts, pictures)), encoding="utf-8")
    (folder / META).write_text(results.meta.model_dump_json(indent=1) + "\n", encoding="utf-8")
    write_figures(folder / FIGURES, figures)
    seal_reproduction(folder)
    return wrong + problems


def _draw(view: View, folder: Path) -> Iterator[tuple[str, str]]:
    """Draws every picture; yields the names of those that Vega cannot draw, and why."""
    for name, charts in view.pictures.items():
        try:
            write_pictures(view, {name: charts}, folder)
        except ValueError as error:
            yield name, str(error).splitlines()[0]


def _meta(reproduction: Reproduction) -> ReproductionMeta:
    plan = reproduction.plan
    notes = [*plan.notes, *replicate_lines(reproduction), *repeat_lines(reproduction)]
    left_out: dict[str, list[str]] = {}
    for name, reason in plan.left_out.items():
        left_out.setdefault(reason, []).append(name)
    notes += [f"{', '.join(names)}, not in full: {reason}." for reason, names in left_out.items()]
    notes += [f"{', '.join(names)}: {reason}." for reason, names in plan.differences.items()]
    return ReproductionMeta(
        version=version("fairlane"),
        paper=plan.name,
        title=plan.folder.paper.title,
        citation=plan.folder.paper.citation,
        quick=plan.options.quick,
        simulator=sources(),
        simulations=len(reproduction.done),
        cpu_s=sum(done.cpu for done in reproduction.done),
        notes=notes,
    )


def _keep(output: Derived, derived: Mapping[str, pl.DataFrame], folder: Path) -> None:
    """Writes the files of a table, if it was computed."""
    table = derived.get(output.name)
    if table is None:
        return
    for name, suffix in ((output.csv, "csv"), (output.parquet, "parquet")):
        columns = [field for _, field, _, _ in Formatter().parse(name or "") if field]
        for row in (
            [{}] if name and not columns else table.select(columns).unique().iter_rows(named=True) if name else []
        ):
            part = table.filter(**row).drop(columns) if row else table
            with refusing(f"table {output.name}: {suffix}"):
                path = folder / f"{file_name(str(name).format(**row))}.{suffix}"
            if suffix == "csv":
                rounded(part).write_csv(path)
            else:
                part.write_parquet(path)


def _write(text: Text, reproduction: Reproduction, folder: Path) -> Iterator[Problem]:
    """Writes a text file, if its data exist; yields what is wrong if it cannot be written."""
    if not made(reproduction.plan, reproduction.outcome, text):
        return
    try:
        row = reproduction.outcome.tables.ask(text.sql).row(0, named=True)
        (folder / text.file).write_text(text.text.format(**row).lstrip(), encoding="utf-8")
    except (QueryError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        if not reproduction.outcome.partial(reproduction.plan):
            what = f"its query has no column {error}" if isinstance(error, KeyError) else str(error)
            file = str(reproduction.plan.folder.path / "paper.toml")
            yield Problem(f"text {text.file}", f"cannot be written: {what}", file=file)


def _costs(reproduction: Reproduction) -> pl.DataFrame:
    """Time of each task, s."""
    rows = [
        {
            "cell": done.task.label
            if number == reproduction.plan.options.replicate
            else f"replicate {number}: {done.task.label}",
            "wall_s": done.seconds,
            "cpu_s": done.cpu,
            "error": done.error,
        }
        for number, of in reproduction.by_replicate.items()
        for done in of.values()
    ]
    schema = {"cell": pl.String, "wall_s": pl.Float64, "cpu_s": pl.Float64, "error": pl.String}
    return pl.DataFrame(rows, schema=schema)


def replicate_lines(reproduction: Reproduction) -> Iterator[str]:
    """Describe the replicates: differences, processor time, and what is left; nothing of a single one."""
    of = reproduction.replication
    if not of.several:
        return
    table = reproduction.plan.folder.paper.replicates
    fixed = f"; run once, as nothing is left to chance: {', '.join(table.fixed)}" if table.fixed else ""
    yield f"Replicates differ in {table.varies}{fixed}."
    if of.others:
        numbers = ", ".join(map(str, of.others))
        yield f"Replicates judged elsewhere by another version of the simulator: {numbers}."
    limit = "" if of.limit_s is None else f" of {of.limit_s / 3600:g} CPU hours"
    yield f"Replicates after the first took {seconds(of.spent_s)} of processor time{limit}."
    for claim, (count, cpu_s) in of.rest.items():
        cost = f"about {seconds(cpu_s)} of processor time" if cpu_s else "with the runs of those above"
        yield f"Not run: {plural(count, 'replicate')} of {claim}, {cost}."


def repeat_lines(reproduction: Reproduction) -> Iterator[str]:
    """Name points of studies, and replicates of claims, that have the same results as others."""
    of_studies = reproduction.outcome.repeats.items()
    yield from by_name((name, line) for name, sentences in of_studies for line in sentences)
    yield from by_name(
        (verdict.claim.id, sentence(verdict.repeats, verdict.repeats + verdict.complete, ["seeds"], what="replicate"))
        for verdict in reproduction.verdicts
        if verdict.repeats
    )


def _page(reproduction: Reproduction, verdicts: pl.DataFrame, pictures: Mapping[str, str]) -> Iterator[str]:
    paper = reproduction.plan.folder.paper
    quick = " (scaled: a try-out, not a judgement)" if reproduction.plan.options.quick else ""
    yield f"# {paper.title}{quick}\n"
    yield f"{RESULTS}\n"
    yield f"{paper.citation}\n"
    if reproduction.done:
        cpu = sum(done.cpu for done in reproduction.done)
        yield f"{len(reproduction.done)} simulations, {seconds(cpu)} of processor time.\n"
    yield from (f"{note}\n" for note in reproduction.plan.notes)
    yield from (f"{line}\n" for line in (*replicate_lines(reproduction), *repeat_lines(reproduction)))
    for name, reason in reproduction.plan.left_out.items():
        yield f"- {name}, not in full: {reason}"
    for reason, names in reproduction.plan.differences.items():
        yield f"- {', '.join(names)}: {reason}"
    yield "\n## Claims\n"
    yield from _summary(verdicts)
    yield "\n## All numbers\n"
    yield from _every_number(verdicts)
    yield from (f"\n![{title}]({name}.png)" for name, title in pictures.items())
    yield ""


def verdict_page(verdicts: pl.DataFrame) -> Iterator[str]:
    """Yield lines of Markdown: claims and reasons, titles of variants, and all numbers folded."""
    yield from _summary(verdicts)
    titles = verdicts.filter(pl.col("variant") != "").select("variant", "variant_title").unique(maintain_order=True)
    if titles.height:
        yield ""
        yield from (f"- *Variant {name}*: {title}." for name, title in titles.rows())
    yield "\n<details>\n<summary>All numbers</summary>\n"
    yield from _every_number(verdicts)
    yield "\n</details>"


def _summary(verdicts: pl.DataFrame) -> Iterator[str]:
    """A row for each claim: the number of each clause that is nearest to failing, the last word, and its reason."""
    yield "| claim | paper | measured: median (range), asked | verdict | why |"
    yield "|---|---|---|---|---|"
    for settings in claims_of(verdicts):
        (deciding,) = (setting for setting in settings if setting[0]["deciding"])
        row = deciding[0]
        measured = "<br>".join(_cell(_nearest(clause)) for clause in clauses_of(deciding))
        verdict = row["numbered"].replace(row["verdict"], f"**{row['verdict']}**", 1)
        cells = [f"`{row['claim']}`<br>{row['where']}", _cell(row["paper"]), measured, verdict, _cell(row["why"])]
        yield f"| {' | '.join(cells)} |"


def _nearest(clause: Sequence[Sequence[Row]]) -> str:
    """The number of a clause in its band in the fewest replicates; of these the farthest outside its band."""
    number = min(clause, key=lambda number_of: (held_of(number_of) / len(number_of), min(map(_margin, number_of))))
    row, value = number[0], spread_of(number)
    label = row["measured"].replace("…", value) if row["measured"].count("…") == 1 else f"{row['measured']}: {value}"
    share = ""
    if len(clause) > 1:
        held = sum(held_of(number_of) == len(number_of) for number_of in clause)
        medians = [first["median"] for first, *_ in clause if first["median"] is not None]
        between = f" ({significant(min(medians))} to {significant(max(medians))})" if medians else ""
        always = " in all replicates" if row["clause_replicates"] > 1 else ""
        share = f"; {held} of {len(clause)} numbers{between} in the band{always}"
    return f"{label}, asked {row['band']}{share}"


def _margin(row: Row) -> float:
    """The distance from the edge of the band, inside positive, as a share of the value."""
    value = nan if row["value"] is None else row["value"]
    margin = margin_of(value, row["low"], row["high"])
    return margin / abs(value) if value else margin


def _every_number(verdicts: pl.DataFrame) -> Iterator[str]:
    """A table of every number of every claim under each of its variants."""
    several = any(count > 1 for count in verdicts["replicates"])
    if several:
        yield "| claim | paper | measured | replicate 1 | median (range) | band | in the band | verdict |"
        yield "|---|---|---|---|---|---|---|---|"
    else:
        yield "| claim | paper | measured | in its band |\n|---|---|---|---|"
    for setting in chain.from_iterable(claims_of(verdicts)):
        row = setting[0]
        where = f"{row['where']}, {row['variant_title']}" if row["variant"] else row["where"]
        asked = _cell(f"{row['paper']}<br>*judged by:* {row['check']}")
        first = f"| `{row['claim']}`, {where} | {asked} |"
        for line in _replicated_rows(setting) if several else _rows(setting):
            yield f"{first} {line} |"
            first = "| | |"
        missing = f"missing: {', '.join(row['missing'])}" if row["missing"] else ""
        yield f"{first} {_cell(missing)} |{' | | | |' if several else ''} **{row['claim_words']}** |"


def _rows(setting: Sequence[Row]) -> Iterator[str]:
    """A row for each number, without its claim."""
    for row, *_ in numbers_of(setting):
        answer = "yes" if row["in_band"] else "no"
        if row["clause_verdict"] == Verdict.CALIBRATED:
            answer = explained(row)
        elif row["clause_why"]:
            answer += f", near certain: {row['clause_why']}" if row["near_certain"] else f", {explained(row)}"
        reported = f"; paper: {row['reported']}" if row["reported"] else ""
        yield f"{_cell(row['text'] + reported)} | {_cell(answer)}"


def _replicated_rows(setting: Sequence[Row]) -> Iterator[str]:
    """The same over several replicates: a clause has its verdict in the row of its first number."""
    for number in numbers_of(setting):
        row = number[0]
        reported = f"; paper: {row['reported']}" if row["reported"] else ""
        value = "–" if row["value"] is None else significant(row["value"])
        share = f"{held_of(number)} of {len(number)}"
        verdict = "" if row["number"] else _cell(explained(row))
        cells = (_cell(row["measured"] + reported), value, spread_of(number), _cell(row["band"]), share, verdict)
        yield " | ".join(cells)


def _cell(text: str) -> str:
    """Text escaped for a table cell."""
    return text.replace("|", "\\|")
