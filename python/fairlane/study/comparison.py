"""Two results compared job by job: runs, studies, or treatments of a study.

The change is that of throughput, ``B`` against ``A``: +0.1 means that a job does 10% more in the same time under ``B``.

- Two runs are compared over the iterations that a job completed in both, in pairs, as W is. The interval says what
  other iterations on the same hosts would give.
- Two studies, or treatments, are compared at the points that they have in common, in pairs; the interval is that over
  placements, or over seeds where there is one placement. With fewer than three of them there is none.

A job without iterations is compared by the mean latency of its messages in two runs; then a positive change means that
latency is lower under ``B``. Which changes are beyond noise is decided over all jobs together: the expected share of
false ones among them is at most 5% (see ``statistics.beyond_noise``).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.statistics import FALSE_DISCOVERIES, Estimate, beyond_noise, half_width, over_replicates, p_value
from fairlane.core.tables import PS
from fairlane.core.wording import plural
from fairlane.inputs.files import parse_toml
from fairlane.results.latency import BATCHES
from fairlane.results.milestones import Common, Milestones, common
from fairlane.results.run import SCENARIO, Run, file_of_run
from fairlane.results.study import StudyResults
from fairlane.study.conditions import condition_of
from fairlane.study.folders import load
from fairlane.study.replicates import outer_unit

__all__ = ["Comparison", "Side", "compare", "side_of"]


DEFAULT = "default"
"""The treatment of runs without one."""


@dataclass(frozen=True)
class Side:
    """One of two results that are compared: a run or a study, and the treatment of the study, if one was chosen."""

    name: str
    """Its name in tables."""
    results: Run | StudyResults
    treatment: str | None = None


def side_of(given: str | Path | Run | StudyResults, option: str = "A") -> Side:
    """A side from results, a folder, or ``FOLDER:TREATMENT``.

    Raises ``ResultsError`` if the folder has no results, ``ScenarioError`` for what cannot be compared.
    """
    if isinstance(given, Run | StudyResults):
        return Side(given.headline(), given)
    folder, treatment = _split(str(given))
    results = load(folder)
    if not isinstance(results, Run | StudyResults):
        raise ScenarioError(Problem(option, "cannot be compared", str(given), "the folder of a run or a study"))
    if isinstance(results, StudyResults) and results.measured is not None:
        message = "is a study that measures tables of its own and compares nothing"
        raise ScenarioError(Problem(option, message, str(given), "a run, or a study whose runs are compared"))
    if treatment is None:
        return Side(str(given), results)
    if isinstance(results, Run):
        raise ScenarioError(Problem(option, "a run has no treatments", str(given), f"{folder}"))
    known = [DEFAULT, *results.meta.treatments]
    if treatment not in known:
        raise ScenarioError(Problem.unknown(option, f"treatment of {folder}", treatment, known, treatment))
    return Side(str(given), results, treatment)


def _split(given: str) -> tuple[str, str | None]:
    """Folder and treatment; a folder whose name has a colon is itself."""
    folder, colon, treatment = given.rpartition(":")
    return (folder, treatment) if colon and not Path(given).exists() else (given, None)


def differing(first: Run, second: Run) -> list[str]:
    """The dotted keys with another value, or in one scenario only, jobs by their name; without the scenarios' names."""
    before, after = (dict(_values(_scenario(run))) for run in (first, second))
    return [key for key in dict.fromkeys([*before, *after]) if key != "name" and before.get(key) != after.get(key)]


def _scenario(run: Run) -> Mapping[str, Any]:
    """The scenario as it is stored; empty where there is none, as of a simulation that still runs."""
    if run.source is not None:
        return parse_toml(run.source.scenario)
    if run.folder is not None:
        return parse_toml(file_of_run(run.folder, SCENARIO).read_text("utf-8"))
    return {}


def _values(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _values(value, f"{path}.{key}" if path else key)
    elif isinstance(data, list) and data and all(isinstance(item, Mapping) for item in data):
        for number, value in enumerate(data):
            yield from _values(value, f"{path}[{value.get('name', number)}]")
    else:
        yield path, data


THROUGHPUT, LATENCY = "throughput", "latency"
_MANY = {"iterations": "iterations", "placement": "placements", "seed": "seeds", "": "replicates"}
"""Names of what intervals are over, in the plural."""
_SCHEMA: dict[str, Any] = {
    "treatment": pl.String,
    "condition": pl.String,
    "name": pl.String,
    "workload": pl.String,
    "of": pl.String,
    "before": pl.Float64,
    "after": pl.Float64,
    "change": pl.Float64,
    "change_low": pl.Float64,
    "change_high": pl.Float64,
    "p": pl.Float64,
    "beyond_noise": pl.Boolean,
}


@dataclass(frozen=True)
class Comparison:
    """Two sides compared."""

    first: Side
    second: Side
    table: pl.DataFrame
    """One row per job (and treatment and condition of studies).

    ``before`` and ``after``, s, the ``change`` with its 95% interval, its ``p`` value, and whether it is
    ``beyond_noise``. ``of`` says what of: ``throughput``, by times per iteration, or ``latency``, the mean of messages.
    """
    replicates: str
    """Unit of the intervals: ``iterations``, ``placement`` or ``seed``."""
    overall: Estimate | None = None
    """The mean change over all jobs and conditions of two studies, with its interval; None of runs."""
    only_in_one: Sequence[str] = ()
    """Jobs that only one of the sides has."""
    failed: Sequence[str] = ()
    """Jobs that failed in one of two runs, which are not compared."""
    moved: Sequence[str] = ()
    """Jobs of two runs whose ranks are on other hosts in the second: intervals do not cover other placements."""
    differs: Sequence[str] = ()
    """Keys of the scenarios of two runs that have another value in the second."""
    without: Sequence[str] = ()
    """Jobs of both sides that have no iteration, nor messages of one kind, in common."""
    points: tuple[int, int, int] | None = None
    """Points that two studies have in common, and how many each of them has; None of runs."""


def compare(
    first: str | Path | Run | StudyResults | Side, second: str | Path | Run | StudyResults | Side
) -> Comparison:
    """Compares two runs, studies or treatments (``FOLDER:TREATMENT``) by job.

    Raises ``ResultsError`` if a folder has no results, ``ScenarioError`` if the two have nothing in common.
    """
    first_side, second_side = (
        given if isinstance(given, Side) else side_of(given, option) for given, option in ((first, "A"), (second, "B"))
    )
    failed, moved, differs, points = set[str](), list[str](), list[str](), None
    if isinstance(first_side.results, Run) and isinstance(second_side.results, Run):
        failed = _failed(first_side.results) | _failed(second_side.results)
        moved = _moved(first_side.results, second_side.results)
        differs = differing(first_side.results, second_side.results)
        rows = list(_runs(first_side.results, second_side.results, failed))
        names = [set(side.jobs["name"]) for side in (first_side.results, second_side.results)]
        replicates, overall = "iterations", None
    elif isinstance(first_side.results, StudyResults) and isinstance(second_side.results, StudyResults):
        matched, points = _matched(first_side, second_side, first_side.results, second_side.results)
        rows = list(_studies(matched))
        names = [set(side.work["name"]) for side in (first_side.results, second_side.results)]
        replicates, overall = outer_unit(matched) if matched.height else "", _over(matched)
    else:
        message = "is not of the same kind as A"
        raise ScenarioError(Problem("B", message, second_side.name, "two runs, or two studies or their treatments"))
    if not rows and not failed:
        message = f"has no job in common with {first_side.name} that could be compared"
        raise ScenarioError(Problem("B", message, second_side.name, "results with jobs, and points, of the same names"))
    compared = {row["name"] for row, _ in rows}
    return Comparison(
        first_side,
        second_side,
        _with_verdicts(rows),
        replicates,
        overall,
        only_in_one=sorted(names[0] ^ names[1]),
        failed=sorted(failed),
        moved=moved,
        differs=differs,
        without=sorted((names[0] & names[1]) - compared - failed),
        points=points,
    )


_Row = tuple[dict[str, Any], Estimate]


def _with_verdicts(rows: Sequence[_Row]) -> pl.DataFrame:
    estimates = [estimate for _, estimate in rows]
    judged = []
    for (row, estimate), verdict in zip(rows, beyond_noise(estimates), strict=True):
        p = p_value(estimate)
        change = {"change": estimate.value, "change_low": estimate.low, "change_high": estimate.high}
        judged.append({**row, **change, "p": None if verdict is None else p, "beyond_noise": verdict})
    return pl.DataFrame(judged, schema=_SCHEMA)


def _failed(run: Run) -> set[str]:
    """The jobs that failed in the co-run."""
    return set() if run.failures is None else set(run.failures.filter(~pl.col("isolated"))["name"])


def _moved(first: Run, second: Run) -> list[str]:
    """The jobs of both runs whose ranks are not on the same hosts."""
    hosts = [run.ranks.group_by("name", maintain_order=True).agg("host") for run in (first, second)]
    both = hosts[0].join(hosts[1], on="name", suffix="_after", maintain_order="left")
    return both.filter(pl.col("host") != pl.col("host_after"))["name"].to_list()


def _runs(first: Run, second: Run, failed: Collection[str]) -> Iterator[_Row]:
    others = {row["name"]: row for row in second.jobs.iter_rows(named=True)}
    for job in first.jobs.iter_rows(named=True):
        other = others.get(job["name"])
        if other is None or job["name"] in failed:
            continue
        row = {"name": job["name"], "workload": job["workload"]}
        marks = [
            run.completions.filter(pl.col("job") == number)
            for run, number in ((first, job["job"]), (second, other["job"]))
        ]
        stride = max((int(of["iteration"][0]) for of in marks if of.height), default=1)
        reference, run = (_reached(of, stride) for of in marks)
        shared = common(run, reference)
        if shared is not None and shared.estimate is not None:
            both = (("before", reference, shared.reference_at), ("after", run, shared.at))
            times = {name: _per_iteration(of, shared, spent) for name, of, spent in both}
            yield {**row, "of": THROUGHPUT, **times}, shared.estimate
        elif not any(of.height for of in marks):
            yield from _latencies(row, first, second)


def _reached(marks: pl.DataFrame, stride: int) -> Milestones:
    """Return the iterations of a job after the first one that was kept, whose begin is not known."""
    rows = marks.filter(pl.col("iteration") % stride == 0)
    at, elapsed = rows["at_ps"].to_list(), rows["elapsed_ps"].to_list()[1:] if rows["timed"].any() else None
    return Milestones(stride, [time - at[0] for time in at[1:]], stride * max(0, len(at) - 1), elapsed=elapsed)


def _per_iteration(of: Milestones, shared: Common, spent: int) -> float:
    """The time per iteration in those that are compared, which took ``spent``, s; of timed parts if there are some."""
    if of.elapsed is None:
        return spent * PS / shared.iterations
    first, stride = shared.warm_up // of.stride, of.stride
    parts = of.elapsed[first : first + shared.iterations // stride]
    return sum(parts) * PS / len(parts)


def _latencies(row: dict[str, Any], first: Run, second: Run) -> Iterator[_Row]:
    """The mean message latency of a job with one kind of messages, where both runs have it.

    The error of the ratio is that of two independent means, to first order.
    """
    latency_rows = []
    for run in (first, second):
        rows = [] if run.latency is None else run.latency.filter(of="message", name=row["name"]).to_dicts()
        if len(rows) != 1:
            return
        latency_rows.append(rows[0])
    before, after = (latency["mean_ps"] for latency in latency_rows)
    estimate = Estimate(before / after - 1)
    if all(latency["mean_low_ps"] is not None for latency in latency_rows):
        one_error = 2 * half_width(1.0, BATCHES - 1)
        shares = [
            (latency["mean_high_ps"] - latency["mean_low_ps"]) / one_error / latency["mean_ps"]
            for latency in latency_rows
        ]
        error = before / after * sum(share**2 for share in shares) ** 0.5
        estimate = Estimate.student(estimate.value, error, BATCHES - 1)
    yield {**row, "of": LATENCY, "before": before * PS, "after": after * PS}, estimate


def _matched(
    side_a: Side, side_b: Side, first: StudyResults, second: StudyResults
) -> tuple[pl.DataFrame, tuple[int, int, int]]:
    """The rows of both studies at the same points: of the chosen treatments, or of those that both have.

    Also how many points these are, and how many each study has. Placements are the same if they have the same name and
    seed, whatever their number.

    Runs with a controller in episodes have default runs in episodes, so a study may have several default runs at a
    point, which its column ``baseline`` tells apart. Only runs that have the same are compared.
    """
    varied = first.work.columns[1 : first.work.columns.index("seed") + 1]
    missing = [name for name in varied if name not in second.work.columns]
    if missing:
        message = f"has no {missing[0]} by which its points could be matched with those of {side_a.name}"
        raise ScenarioError(Problem("B", message, side_b.name, "studies with the same parameters"))
    _check_chosen(side_a, side_b, first, second)
    keys = [*varied, "baseline", "name"]
    sides = [
        _compared(side, work).unique([*keys, "treatment"], keep="first", maintain_order=True)
        for side, work in ((side_a, first.work), (side_b, _renumbered(second, first)))
    ]
    if side_a.treatment is None and side_b.treatment is None:
        keys.append("treatment")
    kept = [
        "workload",
        "seconds_per_iteration",
        "iterations_per_second",
        "same_as",
        *([] if "treatment" in keys else ["treatment"]),
    ]
    before, after = (side.select(*keys, *kept) for side in sides)
    kinds = [list(dict.fromkeys(side["baseline"])) for side in sides]
    if all(kinds) and not {*kinds[0]} & {*kinds[1]}:
        shown = ["; ".join(kind or "whole runs" for kind in of) for of in kinds]
        message = f"is compared with other default runs ({shown[1]}) than {side_a.name} ({shown[0]})"
        raise ScenarioError(Problem("B", message, side_b.name, "treatments with default runs of one kind"))
    matched = before.join(after, on=keys, how="inner", nulls_equal=True, suffix="_after", maintain_order="left")
    common, *unmatched = (
        part.select(varied).n_unique() for part in (matched, sides[0], _compared(side_b, second.work))
    )
    # Points that repeat another one on both sides are one replicate.
    repeated = ["same_as", "same_as_after", *(key for key in keys if key not in ("placement", "seed"))]
    matched = matched.unique(repeated, keep="first", maintain_order=True).drop("same_as", "same_as_after")
    return matched, (common if matched.height else 0, unmatched[0], unmatched[1])


def _compared(side: Side, work: pl.DataFrame) -> pl.DataFrame:
    """The rows of a side that have a throughput, of its treatment if it is one."""
    rows = work.filter(pl.col("iterations_per_second").is_not_null())
    return rows if side.treatment is None else rows.filter(pl.col("treatment") == side.treatment)


def _check_chosen(side_a: Side, side_b: Side, first: StudyResults, second: StudyResults) -> None:
    """Raises ``ScenarioError`` if one side names a treatment and the other has several and names none."""
    if (side_a.treatment is None) == (side_b.treatment is None):
        return
    option, side, study = ("A", side_a, first) if side_a.treatment is None else ("B", side_b, second)
    known = study.work["treatment"].unique(maintain_order=True).to_list()
    if len(known) > 1:
        message = f"has several treatments, and {'B' if option == 'A' else 'A'} is one"
        raise ScenarioError(Problem(option, message, side.name, ", ".join(f"{side.name}:{name}" for name in known)))


def _renumbered(study: StudyResults, other: StudyResults) -> pl.DataFrame:
    """The table ``work`` with the placements that the other study has, too, by their number there."""
    names, there = study.meta.placements, other.meta.placements
    if names == there or not names or not there:
        return study.work
    numbers = {number: there.index(name) for number, name in enumerate(names) if name in there}
    known = study.work.filter(pl.col("placement").is_in([*numbers]))
    return known.with_columns(pl.col("placement").replace(numbers))


def _studies(matched: pl.DataFrame) -> Iterator[_Row]:
    """Each job's change under each condition, over placements and seeds."""
    if matched.is_empty():
        return
    places = matched.columns.index("placement")
    varied = [name for name in (*matched.columns[:places], "baseline") if matched[name].n_unique() > 1]
    by = [*varied, "treatment", "name"]
    unit = outer_unit(matched)
    for key, rows in matched.group_by(by, maintain_order=True):
        values = dict(zip(by, key, strict=True))
        estimate = _over(rows, unit)
        assert estimate is not None, "a group has rows"
        times = rows.select(pl.col("seconds_per_iteration", "seconds_per_iteration_after").mean()).row(0)
        row = {
            "treatment": None if "treatment_after" in rows.columns else values["treatment"],
            "condition": condition_of({name: values[name] for name in varied}) or None,
            "name": values["name"],
            "workload": rows["workload"][0],
            "of": THROUGHPUT,
            "before": times[0],
            "after": times[1],
        }
        yield row, estimate


def _over(matched: pl.DataFrame, unit: str | None = None) -> Estimate | None:
    """The mean change over placements, or seeds; None without any row."""
    change = pl.col("iterations_per_second_after") / pl.col("iterations_per_second") - 1
    by_unit = matched.group_by(unit or outer_unit(matched), maintain_order=True).agg(change=change)
    return over_replicates(by_unit["change"].to_list())


def summary(comparison: Comparison) -> str:
    """One sentence: how many jobs changed beyond noise."""
    known = comparison.table.filter(pl.col("beyond_noise").is_not_null())
    beyond = known.filter("beyond_noise")
    better, worse = (beyond.filter(sign).height for sign in (pl.col("change") > 0, pl.col("change") < 0))
    unknown = comparison.table.height - known.height
    message = f"{beyond.height} of {known.height} differences are beyond noise: {better} faster, {worse} slower"
    few = f"{plural(unknown, 'has', 'have')} too few {_MANY[comparison.replicates]} to say"
    more = f"; {few}" if unknown else ""
    return f"{message} (at most {FALSE_DISCOVERIES:.0%} of such findings are expected to be false){more}."
