"""One job of a run analysed whole: from the run's folder to everything that is printed and drawn."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from fairlane.core.errors import Problem, ResultsError, ScenarioError
from fairlane.results.run import Run, load_run
from fairlane.results.views import has_timed_parts
from fairlane.sim.analysis.again import Again, Isolated
from fairlane.sim.analysis.delays import first_exchange, message_delays, quiet_wait, wait_delays
from fairlane.sim.analysis.links import flits_against_waits, link_flits
from fairlane.sim.analysis.neighbours import neighbour_types
from fairlane.sim.analysis.record import Record, Span, View, extremes, most_delayed, rounds, spans, with_isolated
from fairlane.sim.analysis.result import Analysis, Stretch, breakdown, calls
from fairlane.sim.analysis.walk import longest_wait, walk


def analyze(
    folder: str | Path,
    *,
    job: str | None = None,
    iterations: tuple[int | None, int | None] | None = None,
    threshold_ps: int | None = None,
    between_collectives: bool = False,
    files: Path | None = None,
    progress: bool = False,
    allow_code: bool = False,
) -> Analysis:
    """Finds out why a job of a run was slow.

    What the run did not keep is found out by simulating it again, and kept in its folder, in ``analysis``.

    The iteration that is looked at is the one to which the other jobs have added most time, compared with the same
    iteration of the isolated run; if the job is the run's only one, the slowest, by itself.

    Args:
        folder: The run's folder.
        job: The job; None for the one that was recorded, or whose iterations were kept, or that was slowed down most.
        iterations: The first and the last iteration among which the most delayed is looked for; None for no bound.
        threshold_ps: Waits up to this are no delays, ps; None for what 99% of the waits in the same iteration of the
            isolated run stay below, or half of those in the iteration itself if that is less.
        between_collectives: Whether to look, within the iteration, only at the most delayed round from one collective
            to the next, and at the same round of the isolated run.
        files: What paths in the scenario are relative to, if that is neither the run's folder nor the current one.
        progress: Whether to show progress of simulations on standard error.
        allow_code: Whether code that the run's scenario names may run; code in a folder of results never does.

    Raises ``ResultsError`` if there is no whole run in ``folder``, or it cannot be simulated again, and
    ``ScenarioError`` if there is no such job, or it has no such iterations.
    """
    run = load_run(folder)
    if run.meta.partial:
        raise ResultsError(f"{folder}: the run was interrupted before its end; only whole runs can be simulated again")
    view = View.load(Path(folder))
    name = _job(run, view, job)
    again = Again(run, name, view, files, progress, allow_code)
    alone = Isolated(run, name, view, files, progress, allow_code) if len(view.names) > 1 else None
    recorded = again.own_record()
    table, chosen = _spans(again, alone, recorded, iterations)
    wide = alone.records(chosen[:-1]) if alone is not None and len(chosen) > 1 else []
    wide += again.records([_led(chosen[-1], table)]) if recorded is None else [recorded]
    records = [record.cut(span.from_ps, span.to_ps) for span, record in zip(chosen, wide, strict=True)]
    if between_collectives:
        chosen, records = _rounds(name, chosen, records)
    threshold = _threshold(records) if threshold_ps is None else threshold_ps
    stretches = [_stretch(span, cut, view, threshold) for span, cut in zip(chosen, records, strict=True)]
    return Analysis(
        run=run,
        job=name,
        view=view,
        breakdown=breakdown(run, name),
        calls=calls(run, name),
        iterations=table,
        stretches=tuple(stretches),
        threshold_ps=threshold,
        walk=walk(wide[-1], view.links, view.names, longest_wait(wide[-1], chosen[-1].from_ps, chosen[-1].to_ps)),
    )


def _led(span: Span, table: pl.DataFrame) -> Span:
    """The stretch with the iteration before it, for a walk that begins in the one and ends in the other."""
    if span.iteration is None:
        return span
    before = table.filter(pl.col("iteration") == span.iteration - 1)["from_ps"]
    return replace(span, from_ps=int(before[0]) if before.len() else 0)


def types_of(record: Record, view: View) -> pl.DataFrame:
    """The pairs of ranks that have messages in a record, and what neighbours they are (``neighbour_types``)."""
    pairs = record.messages.select("from_rank", "to_rank").unique(maintain_order=True)
    return neighbour_types(view.fabric, view.hosts[record.number], pairs)


def _stretch(span: Span, record: Record, view: View, threshold: int) -> Stretch:
    types = types_of(record, view)
    messages, flits = message_delays(record, types), link_flits(record, view.links)
    begun = pl.col("sent_at_ps") >= record.from_ps
    pairs = first_exchange(messages.filter(begun, ~pl.col("collective")))
    against = flits_against_waits(pairs, flits, view.fabric, view.hosts[record.number])
    return Stretch(span, record, wait_delays(record, types, threshold), messages, pairs, flits, against)


def _rounds(job: str, chosen: Sequence[Span], records: Sequence[Record]) -> tuple[list[Span], list[Record]]:
    """The most delayed round, after that of the isolated run, or the slowest; with what was recorded in them."""
    tables = [rounds(record) for record in records]
    if any(table.is_empty() for table in tables):
        message = "has no collective with point-to-point messages before it there, and so no rounds"
        raise ScenarioError(Problem("--between-collectives", f"{job} {message}"))
    both = most_delayed(with_isolated(tables[-1], tables[0])) if len(tables) > 1 else []
    within = both or extremes(tables[-1])[-1:]
    within_rounds, cut = [], []
    for inner, span, record in zip(within, chosen[-len(within) :], records[-len(within) :], strict=True):
        within_rounds.append(replace(inner, name=span.name, iteration=span.iteration, round=inner.iteration))
        cut.append(record.cut(inner.from_ps, inner.to_ps))
    return within_rounds, cut


def _threshold(records: Sequence[Record]) -> int:
    """Return a threshold for long waits: from the isolated run, unless that is no quieter."""
    usual = quiet_wait(records[-1], 0.5)
    return min(quiet_wait(records[0]), usual) if len(records) > 1 else usual


def _job(run: Run, view: View, wanted: str | None) -> str:
    """The job asked for, or that whose iterations were kept, or that was slowed down most."""
    if wanted is not None:
        if wanted not in view.names:
            raise ScenarioError(Problem.unknown("--job", "job", wanted, view.names, wanted))
        return wanted
    if run.iterations is not None and run.iterations.height:
        return str(run.iterations["name"][0])
    slowed = run.jobs.filter(pl.col("w").is_not_null()).sort("w", "job")
    return str(slowed["name"][0] if slowed.height else view.names[0])


def _spans(
    again: Again, alone: Isolated | None, recorded: Record | None, wanted: tuple[int | None, int | None] | None
) -> tuple[pl.DataFrame, list[Span]]:
    """The iterations, and the stretches to look at: that of the isolated run, if there is one, and that of the run."""
    none = pl.DataFrame(schema={"iteration": pl.Int64, "from_ps": pl.Int64, "to_ps": pl.Int64, "seconds": pl.Float64})
    kept = again.run.iterations is not None and again.job in again.run.iterations["name"]
    timed = has_timed_parts(again.run.completions, again.job)
    table = spans(again.iterations(), timed=timed) if recorded is None or kept else none
    if alone is not None and table.height:
        table = with_isolated(table, spans(alone.iterations(), timed=timed))
    inside = (
        table
        if recorded is None
        else table.filter(pl.col("from_ps") >= recorded.from_ps, pl.col("to_ps") <= recorded.to_ps)
    )
    if wanted is not None:
        inside = _within(inside, wanted)
    if alone is not None and inside.height and (both := most_delayed(inside)):
        return table, both
    extreme = extremes(inside.select(none.columns))
    if extreme:
        return table, extreme[-1:]
    span = (0, again.run.meta.simulated_ps) if recorded is None else (recorded.from_ps, recorded.to_ps)
    name = "whole run" if recorded is None else "recorded stretch"
    return table, [Span(name, None, *span, (span[1] - span[0]) * 1e-12)]


def _within(table: pl.DataFrame, wanted: tuple[int | None, int | None]) -> pl.DataFrame:
    numbers = table["iteration"].to_list()
    known = f"{numbers[0]} to {numbers[-1]}" if numbers else "none is complete"
    first, last = wanted
    number = pl.col("iteration")
    selected = table.filter(number >= (first or 0), number <= (last if last is not None else number.max()))
    if selected.is_empty():
        given = "..".join("" if bound is None else str(bound) for bound in wanted)
        raise ScenarioError(Problem("--iterations", "no such iteration is complete", given, known))
    return selected
