"""The output of a reproduction: tables, figures, claims, times of tasks, and a report page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from string import Formatter

import polars as pl

from fairlane.core.errors import Problem
from fairlane.core.wording import plural, seconds, significant
from fairlane.inputs.problems import refusing
from fairlane.papers.figures import figures_of
from fairlane.papers.folder import Derived, Text, file_name
from fairlane.papers.judging import Finding, Judged
from fairlane.papers.planning import Plan
from fairlane.papers.replicating import Replication
from fairlane.papers.running import Done, Outcome, made
from fairlane.papers.storing import CLAUSES, COLUMNS, VARIANT, band_of, meta_of, numbers, spread_of
from fairlane.papers.verdicts import ClaimVerdict, ClauseVerdict, Measured, Verdict
from fairlane.results.manifest import unseal
from fairlane.results.notes import by_name, sentence
from fairlane.results.reproduction import (
    FIGURES,
    META,
    ReproductionMeta,
    ReproductionResults,
    seal_reproduction,
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
DIGITS = 6
"""Significant digits of numbers in CSV files."""


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
    claims, clauses, costs = _claims(reproduction.verdicts), _clauses(reproduction.verdicts), _costs(reproduction)
    claims.write_csv(folder / "claims.csv")
    clauses.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS)).write_csv(folder / CLAUSES)
    costs.write_csv(folder / "cells.csv", float_precision=1)
    wrong = [problem for text in reproduction.plan.folder.paper.text for problem in _write(text, reproduction, folder)]
    figures, problems = figures_of(reproduction.plan, reproduction.outcome)
    results = ReproductionResults(_meta(reproduction), claims, clauses, costs, figures, folder=folder)
    view = view_of([results])
    failed = dict(_draw(view, folder))
    file = str(reproduction.plan.folder.path / "figures.toml")
    problems += [Problem(f"figure {name}", f"cannot be drawn: {error}", file=file) for name, error in failed.items()]
    pictures = {name: charts[0].title for name, charts in view.pictures.items() if name not in failed}
    (folder / VERDICTS).write_text("\n".join(verdict_page(reproduction.verdicts)) + "\n", encoding="utf-8")
    (folder / PAGE).write_text("\n".join(_page(reproduction, pictures)), encoding="utf-8")
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
    facts = {
        "quick": plan.options.quick,
        "simulations": len(reproduction.done),
        "cpu_s": sum(done.cpu for done in reproduction.done),
    }
    return meta_of(plan.name, plan.folder.paper, reproduction.verdicts, notes, **facts)


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
                part.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS)).write_csv(path)
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


def _claims(verdicts: Sequence[ClaimVerdict]) -> pl.DataFrame:
    """A row for each claim: its numbers in the first replicate, over all replicates where there are several."""
    answers = {Verdict.HOLDS: "yes", Verdict.CONTRADICTED: "no", Verdict.NOT_RUN: "-"}
    rows = [
        {
            "claim": verdict.claim.id,
            "where": verdict.claim.where,
            "paper": verdict.claim.claim,
            "measured": "; ".join(_measured(number, verdict.complete) for _, number in numbers(verdict)),
            "missing": "; ".join(verdict.missing),
            "holds": answers.get(verdict.ending, str(verdict.ending)),
            "verdict": verdict.line,
        }
        for verdict in verdicts
    ]
    return pl.DataFrame(rows)


def _measured(number: Measured, replicates: int) -> str:
    """A number in words: that of the first replicate, and over several their median and range."""
    if replicates <= 1 or number.summary is None:
        return f"{number.first.words}: {'yes' if number.first.holds else 'no'}"
    over = f"over {len(number.findings)} replicates {spread_of(number)}"
    return f"{number.first.words}; {over}: {number.held} of {len(number.findings)} in the band"


def _clauses(verdicts: Sequence[ClaimVerdict]) -> pl.DataFrame:
    """A row for each number of each clause and replicate."""
    schema = {
        **COLUMNS,
        VARIANT: pl.String,
        "median": pl.Float64,
        "min": pl.Float64,
        "max": pl.Float64,
        "share": pl.Float64,
        "clause_verdict": pl.String,
        "claim_verdict": pl.String,
    }
    rows = [row for claim in verdicts for setting in claim.settings for row in _clause_rows(setting)]
    return pl.DataFrame(rows, schema, orient="row")


def _clause_rows(verdict: ClaimVerdict) -> Iterator[tuple[object, ...]]:
    this = sources()
    for clause, number in numbers(verdict):
        over = number.summary or (None, None, None)
        verdicts = (clause.held / clause.replicates, str(clause.verdict), str(verdict.verdict))
        for replicate, finding in number.findings.items():
            value = None if isnan(finding.value) else finding.value
            place = (verdict.claim.id, clause.number + 1, number.label, replicate)
            judged = verdict.judged[replicate]
            made = (judged.scaled, judged.simulator or this, verdict.variant)
            yield (*place, value, finding.low, finding.high, finding.holds, *made, *over, *verdicts)


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


def _page(reproduction: Reproduction, pictures: Mapping[str, str]) -> Iterator[str]:
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
    yield from _summary(reproduction.verdicts)
    yield "\n## All numbers\n"
    yield from _every_number(reproduction.verdicts)
    yield from (f"\n![{title}]({name}.png)" for name, title in pictures.items())
    yield ""


def verdict_page(verdicts: Sequence[ClaimVerdict]) -> Iterator[str]:
    """The claims with what decides them, and all numbers folded, as lines of Markdown."""
    yield from _summary(verdicts)
    yield "\n<details>\n<summary>All numbers</summary>\n"
    yield from _every_number(verdicts)
    yield "\n</details>"


def _summary(verdicts: Sequence[ClaimVerdict]) -> Iterator[str]:
    """A row for each claim: the number of each clause that is nearest to failing, the last word, and its reason."""
    yield "| claim | paper | measured: median (range), asked | verdict | why |"
    yield "|---|---|---|---|---|"
    for claim in verdicts:
        measured = "<br>".join(_cell(_nearest(clause)) for clause in claim.deciding.clauses)
        verdict = claim.numbered.replace(str(claim.ending), f"**{claim.ending}**", 1)
        why = "; ".join(filter(None, (claim.reason, *claim.elsewhere)))
        cells = [f"`{claim.claim.id}`<br>{claim.claim.where}", _cell(claim.claim.claim), measured, verdict, _cell(why)]
        yield f"| {' | '.join(cells)} |"


def _nearest(clause: ClauseVerdict) -> str:
    """The number of a clause in its band in the fewest replicates; of these the farthest outside its band."""
    number = min(
        clause.numbers,
        key=lambda number_of: (
            number_of.held / len(number_of.findings),
            min(map(_margin, number_of.findings.values())),
        ),
    )
    value = spread_of(number)
    label = number.label.replace("…", value) if number.label.count("…") == 1 else f"{number.label}: {value}"
    held = sum(number_of.held == len(number_of.findings) for number_of in clause.numbers)
    share = ""
    if len(clause.numbers) > 1:
        medians = [number_of.summary[0] for number_of in clause.numbers if number_of.summary]
        between = f" ({significant(min(medians))} to {significant(max(medians))})" if medians else ""
        always = " in all replicates" if clause.replicates > 1 else ""
        share = f"; {held} of {len(clause.numbers)} numbers{between} in the band{always}"
    return f"{label}, asked {band_of(number, clause)}{share}"


def _margin(finding: Finding) -> float:
    """The distance from the edge of the band, inside positive, as a share of the value."""
    return finding.margin / abs(finding.value) if finding.value else finding.margin


def _every_number(verdicts: Sequence[ClaimVerdict]) -> Iterator[str]:
    """A table of every number of every claim under each of its variants."""
    every = [setting for claim in verdicts for setting in claim.settings]
    if all(setting.complete <= 1 for setting in every):
        yield "| claim | paper | measured | in its band |\n|---|---|---|---|"
        for setting in every:
            yield from _rows(setting)
        return
    yield "| claim | paper | measured | replicate 1 | median (range) | band | in the band | verdict |"
    yield "|---|---|---|---|---|---|---|---|"
    for setting in every:
        yield from _replicated_rows(setting)


def _rows(verdict: ClaimVerdict) -> Iterator[str]:
    """A row for each finding; the first has the claim."""
    first = f"| `{verdict.claim.id}`, {_where(verdict)} | {_asked(verdict)} |"
    for clause, number in numbers(verdict):
        finding = number.first
        answer = "yes" if finding.holds else "no"
        if clause.clause.calibrated:
            answer = clause.explained
        elif clause.clause.near_certain:
            answer += f", near certain: {clause.clause.near_certain}"
        elif clause.clause.chance:
            answer += f", {clause.explained}"
        yield f"{first} {_cell(with_reported(finding))} | {_cell(answer)} |"
        first = "| | |"
    missing = f"missing: {', '.join(verdict.missing)}" if verdict.missing else ""
    yield f"{first} {_cell(missing)} | **{replace(verdict, under=()).words}** |"


def _replicated_rows(claim: ClaimVerdict) -> Iterator[str]:
    """The same over several replicates: a clause has its verdict in the row of its first number."""
    first, last = f"| `{claim.claim.id}`, {_where(claim)} | {_asked(claim)} |", None
    for clause, number in numbers(claim):
        finding = number.first
        reported = f"; paper: {finding.reported}" if finding.reported else ""
        verdict = "" if clause is last else _cell(clause.explained)
        value = "–" if isnan(finding.value) else significant(finding.value)
        share = f"{number.held} of {len(number.findings)}"
        cells = (_cell(number.label + reported), value, spread_of(number), _cell(band_of(number, clause)), share)
        yield f"{first} {' | '.join(cells)} | {verdict} |"
        first, last = "| | |", clause
    missing = f"missing: {', '.join(claim.missing)}" if claim.missing else ""
    yield f"{first} {_cell(missing)} | | | | | **{replace(claim, under=()).words}** |"


def _asked(verdict: ClaimVerdict) -> str:
    """Return the paper's claim, and the condition by which it is judged."""
    return _cell(f"{verdict.claim.claim}<br>*judged by:* {verdict.claim.check}")


def _where(verdict: ClaimVerdict) -> str:
    return f"{verdict.claim.where}, {verdict.variant_title}" if verdict.variant else verdict.claim.where


def with_reported(finding: Finding) -> str:
    """A finding as text, with the paper's value."""
    return f"{finding.words}; paper: {finding.reported}" if finding.reported else finding.words


def _cell(text: str) -> str:
    """Text escaped for a table cell."""
    return text.replace("|", "\\|")
