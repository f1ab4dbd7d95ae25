"""The output of a reproduction: tables, figures, claims, times of tasks, and a report page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from string import Formatter

import polars as pl

from fairlane.errors import Problem
from fairlane.inputs.problems import refusing
from fairlane.reproduce.earlier import CLAUSES, COLUMNS, VARIANT
from fairlane.reproduce.figures import figures_of
from fairlane.reproduce.folder import Derived, Text, file_name
from fairlane.reproduce.judging import Finding, Judged
from fairlane.reproduce.planning import Plan
from fairlane.reproduce.replicating import Replication
from fairlane.reproduce.running import Done, Outcome, made
from fairlane.reproduce.storing import band_of, meta_of, numbers, spread_of
from fairlane.reproduce.verdicts import ClaimVerdict, ClauseVerdict, Measured, Verdict
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
from fairlane.tasks.closure import sources
from fairlane.views.kinds import view_of, write_pictures
from fairlane.views.model import View
from fairlane.wording import plural, seconds, significant

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
    """What is wrong with figures and texts that could not be written."""

    @property
    def verdicts(self) -> Sequence[ClaimVerdict]:
        """The claims over all replicates."""
        return self.replication.verdicts

    @property
    def by_replicate(self) -> Mapping[int, Mapping[str, Done]]:
        """What came of the tasks of each replicate, of later ones without those of the first."""
        return {self.plan.options.replicate: self.outcome.done, **self.replication.done}

    @property
    def done(self) -> Sequence[Done]:
        """The answer of every task."""
        return [done for of in self.by_replicate.values() for done in of.values()]

    @property
    def failed(self) -> list[Done]:
        """Tasks without an answer."""
        return [one for one in self.done if one.error is not None]


def store(found: Reproduction, folder: Path) -> list[Problem]:
    """Writes everything; returns what is wrong with figures and texts that cannot be written.

    Raises ``ScenarioError`` if the name of a table's file, with the columns in it, is none.
    """
    unseal(folder)
    for one in found.plan.folder.paper.table:
        _keep(one, found.outcome.derived, folder)
    claims, clauses, costs = _claims(found.verdicts), _clauses(found.verdicts), _costs(found)
    claims.write_csv(folder / "claims.csv")
    clauses.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS)).write_csv(folder / CLAUSES)
    costs.write_csv(folder / "cells.csv", float_precision=1)
    wrong = [problem for text in found.plan.folder.paper.text for problem in _write(text, found, folder)]
    figures, problems = figures_of(found.plan, found.outcome)
    results = ReproductionResults(_meta(found), claims, clauses, costs, figures, folder=folder)
    view = view_of([results])
    failed = dict(_draw(view, folder))
    file = str(found.plan.folder.path / "figures.toml")
    problems += [Problem(f"figure {name}", f"cannot be drawn: {error}", file=file) for name, error in failed.items()]
    pictures = {name: charts[0].title for name, charts in view.pictures.items() if name not in failed}
    (folder / VERDICTS).write_text("\n".join(verdict_page(found.verdicts)) + "\n", encoding="utf-8")
    (folder / PAGE).write_text("\n".join(_page(found, pictures)), encoding="utf-8")
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


def _meta(found: Reproduction) -> ReproductionMeta:
    plan = found.plan
    notes = [*plan.notes, *replicate_lines(found), *repeat_lines(found)]
    left_out: dict[str, list[str]] = {}
    for name, words in plan.left_out.items():
        left_out.setdefault(words, []).append(name)
    notes += [f"{', '.join(names)}, not in full: {words}." for words, names in left_out.items()]
    notes += [f"{', '.join(names)}: {words}." for words, names in plan.differences.items()]
    facts = {"quick": plan.options.quick, "simulations": len(found.done), "cpu_s": sum(one.cpu for one in found.done)}
    return meta_of(plan.name, plan.folder.paper, found.verdicts, notes, **facts)


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
            with refusing(f"table {one.name}: {suffix}"):
                path = folder / f"{file_name(str(name).format(**row))}.{suffix}"
            if suffix == "csv":
                part.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS)).write_csv(path)
            else:
                part.write_parquet(path)


def _write(text: Text, found: Reproduction, folder: Path) -> Iterator[Problem]:
    """Writes a text file, if its data exist; yields what is wrong if it cannot be written."""
    if not made(found.plan, found.outcome, text):
        return
    try:
        row = found.outcome.tables.ask(text.sql).row(0, named=True)
        (folder / text.file).write_text(text.text.format(**row).lstrip(), encoding="utf-8")
    except (QueryError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        if not found.outcome.partial(found.plan):
            what = f"its query has no column {error}" if isinstance(error, KeyError) else str(error)
            file = str(found.plan.folder.path / "paper.toml")
            yield Problem(f"text {text.file}", f"cannot be written: {what}", file=file)


def _claims(verdicts: Sequence[ClaimVerdict]) -> pl.DataFrame:
    """A row for each claim: its numbers in the first replicate, over all replicates where there are several."""
    answers = {Verdict.HOLDS: "yes", Verdict.CONTRADICTED: "no", Verdict.NOT_RUN: "-"}
    rows = [
        {
            "claim": one.claim.id,
            "where": one.claim.where,
            "paper": one.claim.claim,
            "measured": "; ".join(_measured(it, one.complete) for _, it in numbers(one)),
            "missing": "; ".join(one.missing),
            "holds": answers.get(one.ending, str(one.ending)),
            "verdict": one.line,
        }
        for one in verdicts
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
    rows = [row for claim in verdicts for one in claim.settings for row in _clause_rows(one)]
    return pl.DataFrame(rows, schema, orient="row")


def _clause_rows(one: ClaimVerdict) -> Iterator[tuple[object, ...]]:
    this = sources()
    for clause, number in numbers(one):
        over = number.summary or (None, None, None)
        verdicts = (clause.held / clause.replicates, str(clause.verdict), str(one.verdict))
        for replicate, it in number.findings.items():
            value = None if isnan(it.value) else it.value
            place = (one.claim.id, clause.number + 1, number.label, replicate)
            judged = one.judged[replicate]
            made = (judged.scaled, judged.simulator or this, one.variant)
            yield (*place, value, it.low, it.high, it.holds, *made, *over, *verdicts)


def _costs(found: Reproduction) -> pl.DataFrame:
    """Time of each task, s."""
    rows = [
        {
            "cell": done.task.label
            if number == found.plan.options.replicate
            else f"replicate {number}: {done.task.label}",
            "wall_s": done.seconds,
            "cpu_s": done.cpu,
            "error": done.error,
        }
        for number, of in found.by_replicate.items()
        for done in of.values()
    ]
    schema = {"cell": pl.String, "wall_s": pl.Float64, "cpu_s": pl.Float64, "error": pl.String}
    return pl.DataFrame(rows, schema=schema)


def replicate_lines(found: Reproduction) -> Iterator[str]:
    """What differs between replicates, what they have taken, and what is left; nothing of a single one."""
    of = found.replication
    if not of.several:
        return
    table = found.plan.folder.paper.replicates
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


def repeat_lines(found: Reproduction) -> Iterator[str]:
    """Which points of studies, and which replicates of claims, have the same results as others."""
    of_studies = found.outcome.repeats.items()
    yield from by_name((name, words) for name, sentences in of_studies for words in sentences)
    yield from by_name(
        (one.claim.id, sentence(one.repeats, one.repeats + one.complete, ["seeds"], what="replicate"))
        for one in found.verdicts
        if one.repeats
    )


def _page(found: Reproduction, pictures: Mapping[str, str]) -> Iterator[str]:
    paper = found.plan.folder.paper
    quick = " (scaled: a try-out, not a judgement)" if found.plan.options.quick else ""
    yield f"# {paper.title}{quick}\n"
    yield f"{RESULTS}\n"
    yield f"{paper.citation}\n"
    if found.done:
        cpu = sum(done.cpu for done in found.done)
        yield f"{len(found.done)} simulations, {seconds(cpu)} of processor time.\n"
    yield from (f"{note}\n" for note in found.plan.notes)
    yield from (f"{line}\n" for line in (*replicate_lines(found), *repeat_lines(found)))
    for name, words in found.plan.left_out.items():
        yield f"- {name}, not in full: {words}"
    for words, names in found.plan.differences.items():
        yield f"- {', '.join(names)}: {words}"
    yield "\n## Claims\n"
    yield from _summary(found.verdicts)
    yield "\n## All numbers\n"
    yield from _every_number(found.verdicts)
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
    for one in verdicts:
        measured = "<br>".join(_cell(_nearest(clause)) for clause in one.deciding.clauses)
        verdict = one.numbered.replace(str(one.ending), f"**{one.ending}**", 1)
        why = "; ".join(filter(None, (one.reason, *one.elsewhere)))
        cells = [f"`{one.claim.id}`<br>{one.claim.where}", _cell(one.claim.claim), measured, verdict, _cell(why)]
        yield f"| {' | '.join(cells)} |"


def _nearest(clause: ClauseVerdict) -> str:
    """The number of a clause in its band in the fewest replicates; of these the farthest outside its band."""
    number = min(clause.numbers, key=lambda it: (it.held / len(it.findings), min(map(_margin, it.findings.values()))))
    value = spread_of(number)
    words = number.label.replace("…", value) if number.label.count("…") == 1 else f"{number.label}: {value}"
    held = sum(it.held == len(it.findings) for it in clause.numbers)
    share = ""
    if len(clause.numbers) > 1:
        medians = [it.summary[0] for it in clause.numbers if it.summary]
        between = f" ({significant(min(medians))} to {significant(max(medians))})" if medians else ""
        always = " in all replicates" if clause.replicates > 1 else ""
        share = f"; {held} of {len(clause.numbers)} numbers{between} in the band{always}"
    return f"{words}, asked {band_of(number, clause)}{share}"


def _margin(finding: Finding) -> float:
    """The distance from the edge of the band, inside positive, as a share of the value."""
    return finding.margin / abs(finding.value) if finding.value else finding.margin


def _every_number(verdicts: Sequence[ClaimVerdict]) -> Iterator[str]:
    """A table of every number of every claim under each of its variants."""
    every = [one for claim in verdicts for one in claim.settings]
    if all(one.complete <= 1 for one in every):
        yield "| claim | paper | measured | in its band |\n|---|---|---|---|"
        for one in every:
            yield from _rows(one)
        return
    yield "| claim | paper | measured | replicate 1 | median (range) | band | in the band | verdict |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in every:
        yield from _replicated_rows(one)


def _rows(one: ClaimVerdict) -> Iterator[str]:
    """A row for each finding; the first has the claim."""
    first = f"| `{one.claim.id}`, {_where(one)} | {_asked(one)} |"
    for clause, number in numbers(one):
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
    words = f"missing: {', '.join(one.missing)}" if one.missing else ""
    yield f"{first} {_cell(words)} | **{replace(one, under=()).words}** |"


def _replicated_rows(one: ClaimVerdict) -> Iterator[str]:
    """The same over several replicates: a clause has its verdict in the row of its first number."""
    first, last = f"| `{one.claim.id}`, {_where(one)} | {_asked(one)} |", None
    for clause, number in numbers(one):
        it = number.first
        reported = f"; paper: {it.reported}" if it.reported else ""
        verdict = "" if clause is last else _cell(clause.explained)
        value = "–" if isnan(it.value) else significant(it.value)
        share = f"{number.held} of {len(number.findings)}"
        cells = (_cell(number.label + reported), value, spread_of(number), _cell(band_of(number, clause)), share)
        yield f"{first} {' | '.join(cells)} | {verdict} |"
        first, last = "| | |", clause
    words = f"missing: {', '.join(one.missing)}" if one.missing else ""
    yield f"{first} {_cell(words)} | | | | | **{replace(one, under=()).words}** |"


def _asked(one: ClaimVerdict) -> str:
    """What the paper claims, and the condition by which it is judged."""
    return _cell(f"{one.claim.claim}<br>*judged by:* {one.claim.check}")


def _where(one: ClaimVerdict) -> str:
    return f"{one.claim.where}, {one.variant_title}" if one.variant else one.claim.where


def with_reported(finding: Finding) -> str:
    """A finding as text, with the paper's value."""
    return f"{finding.words}; paper: {finding.reported}" if finding.reported else finding.words


def _cell(words: str) -> str:
    """Text escaped for a table cell."""
    return words.replace("|", "\\|")
