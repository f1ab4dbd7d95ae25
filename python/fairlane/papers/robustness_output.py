"""Write a robustness map: tables, a figure and a page of one paper, and those of several papers together."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from math import isfinite
from pathlib import Path

import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import percent, plural, seconds
from fairlane.papers.folder import Folder
from fairlane.papers.output import RESULTS
from fairlane.papers.robustness import MOST_POINTS, TABLE, Mapped, run_points
from fairlane.papers.robustness import POINTS as DEFAULT_POINTS
from fairlane.papers.running import stored_as
from fairlane.papers.shares import summarised
from fairlane.papers.space import Parameter, space_of
from fairlane.results.manifest import check_listed, unseal
from fairlane.results.notes import by_name, sentence
from fairlane.results.parquet import rounded
from fairlane.results.reproduction import (
    DEPENDS,
    MAP_META,
    MAP_VERDICTS,
    MapMeta,
    RobustnessResults,
    seal_reproduction,
)
from fairlane.results.schemas import MAP, types
from fairlane.study.tasks.closure import sources
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.pools import open_pool
from fairlane.study.tasks.progress import TaskProgress
from fairlane.study.tasks.store import Store
from fairlane.views.kinds import view_of, write_pictures
from fairlane.views.robustness import papers

PAGE, PICTURE = "robustness.md", "robustness"
POINTS = TABLE
CLAUSES, INDICES, LEVELS = (f"robustness-{name}.csv" for name in ("clauses", "indices", "levels"))
"""Every number at every point; clauses; indices by clause and parameter; shares by level."""


def results_of(mapped: Mapped) -> RobustnessResults:
    """The tables of a map, as they are read from its folder."""
    every = mapped.points.join(mapped.found, on="point", how="left", maintain_order="left_right")
    tables = summarised(mapped)
    names = [pl.lit(mapped.folder.name).alias("paper"), pl.lit(mapped.title).alias("title")]
    tables["robustness-clauses"] = tables["robustness-clauses"].select(*names, pl.all())
    return RobustnessResults(_meta(mapped), {"robustness": every, **tables})


def check_points(points: int, cpu_hours: float | None) -> None:
    """Raises ``ScenarioError`` for a number of points or a limit of processor time that is out of range."""
    if not 1 <= points <= MOST_POINTS:
        raise ScenarioError(Problem("--points", "out of range", points, f"1 to {MOST_POINTS}"))
    if cpu_hours is not None and not (cpu_hours > 0 and isfinite(cpu_hours)):
        raise ScenarioError(Problem("--cpu-hours", "out of range", cpu_hours, "a number above 0"))


def map_robustness(
    paper: Folder,
    out: Path,
    watcher: TaskProgress,
    *,
    space: str | None = None,
    points: int = DEFAULT_POINTS,
    cpu_hours: float | None = None,
    earlier: Sequence[Path] = (),
    workers: int | None = None,
    dask: str | None = None,
) -> tuple[Mapped, RobustnessResults, Sequence[str]]:
    """Runs what is missing in ``out``, and stores tables, figure and page there.

    Args:
        paper: The paper's folder, which has a ``robustness.toml``.
        out: Of answers, which are found again, and of tables.
        watcher: Shows the progress of tasks.
        space: The name of a further space: ``models`` for ``robustness-models.toml``.
        points: How many points.
        cpu_hours: Processor time after which no point is begun, h; None for no limit.
        earlier: Tables of points that are taken from there: each a ``robustness.csv``, or a folder with one.
        workers: How many processes of this machine; None for all cores.
        dask: Address of a Dask scheduler whose workers to use instead.

    Returns:
        The map, its results, and the names of stored answers that had changed and were computed again.

    Raises:
        ScenarioError: A file or a number is wrong, or no point can be prepared.
    """
    check_points(points, cpu_hours)
    opened, kept = space_of(paper, space), Store(out, stored_as)
    limit_s = None if cpu_hours is None else cpu_hours * 3600
    with Executor(open_pool(workers, dask), kept, watcher, attempts=1) as executor:
        mapped = run_points(paper, opened, executor, points, limit_s=limit_s, earlier=earlier)
    return mapped, store(mapped, out), kept.damaged


def store(mapped: Mapped, folder: Path) -> RobustnessResults:
    """Writes everything into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    unseal(folder)
    results = results_of(mapped)
    for name, table in results.frames.items():
        rounded(table).write_csv(folder / f"{name}.csv")
    view = view_of([results])
    write_pictures(view, {name: charts for name, charts in view.pictures.items() if name == PICTURE}, folder)
    (folder / PAGE).write_text("\n".join(_page(mapped, results)), encoding="utf-8")
    (folder / MAP_META).write_text(results.meta.model_dump_json(indent=1) + "\n", encoding="utf-8")
    seal_reproduction(folder)
    return results


def _meta(mapped: Mapped) -> MapMeta:
    left_out = [f"{claim} is left out: {why}." for claim, why in mapped.space.left_out.items()]
    return MapMeta(
        version=version("fairlane"),
        paper=mapped.folder.name,
        title=mapped.title,
        simulator=sources(),
        lines=list(_headlines(mapped)),
        parameters=[dict(zip(_COLUMNS, _facts(parameter), strict=True)) for parameter in mapped.space.parameter],
        left_out=[*left_out, *(f"Not judged: {reason}" for reason in mapped.failed)],
    )


_COLUMNS = ("name", "title", "range", "default", "source")


def _facts(parameter: Parameter) -> tuple[str, ...]:
    """A parameter's name, meaning, range, default and source, as text."""
    over = (
        "; ".join(parameter.levels) if parameter.levels else " to ".join(parameter.shown(end) for end in parameter.ends)
    )
    scale = ", logarithmic" if parameter.scale == "log" and not parameter.levels else ""
    return parameter.name, parameter.title, f"{over}{scale}", str(parameter.shown(parameter.usual)), parameter.source


def _headlines(mapped: Mapped) -> Iterator[str]:
    """Yield sentences on the number of points, the studies, and the processor time."""
    numbers = [run.point.number for run in mapped.runs if not run.error]
    points, repeats = sum(number > 0 for number in numbers), sum(number < 1 for number in numbers)
    of = f" of {mapped.wanted:,}" if points < mapped.wanted else ""
    ran = f"{plural(points, 'point')}{of} and {plural(repeats, 'repeat')} of the defaults"
    yield f"{ran}, {seconds(mapped.cpu_s)} of processor time."
    yield f"System: {mapped.space.system}."
    yield from by_name((claim.id, line) for claim in mapped.claims for line in _repeats(mapped, claim.id))


def _repeats(mapped: Mapped, claim: str) -> Iterator[str]:
    """Name repeats of the defaults, and points, that have the same results as others."""
    kept, count = mapped.once(claim, defaults=True)
    if len(kept) < count:
        what, whats = "repeat of the defaults", "repeats of the defaults"
        yield sentence(count - len(kept), count, ["seeds"], what=what, whats=whats)
    kept, count = mapped.once(claim, defaults=False)
    if len(kept) < count:
        repeated = f"{count - len(kept)} of {plural(count, 'point')} have the same results as another, bit for bit"
        yield f"{repeated}: the parameters that differ change nothing there."


def _page(mapped: Mapped, results: RobustnessResults) -> Iterator[str]:
    yield f"# {mapped.title}: robustness\n"
    yield f"{RESULTS}\n"
    yield from (f"{line}\n" for line in results.meta.lines)
    yield from _clause_table(results.frames["robustness-clauses"])
    yield f"\n![share and indices of each clause]({PICTURE}.png)\n"
    yield from _levels_table(results.frames)
    yield "\nThe plausible space:\n"
    yield "| parameter | meaning | range | default | source |\n|---|---|---|---|---|"
    for name, *rest in (parameter.values() for parameter in results.meta.parameters):
        yield f"| `{name}` | {' | '.join(rest)} |"
    yield ""
    yield from (f"- `{claim}` is left out: {why}" for claim, why in mapped.space.left_out.items())
    yield from (f"- Left out: {reason}" for reason in mapped.failed)
    yield ""


def _clause_table(clauses: pl.DataFrame) -> Iterator[str]:
    yield "| claim | clause | holds at | 95% interval | at the defaults | verdict | margin depends on |"
    yield "|---|---|---|---|---|---|---|"
    for row in clauses.iter_rows(named=True):
        usual = f"{row['default_held']} of {row['default_points']}"
        held = f"{row['held']} of {row['points']} ({percent(row['share'])})"
        interval = f"{percent(row['share_low'])} to {percent(row['share_high'])}"
        verdict = f"{row['verdict']}, near certain" if row["near_certain"] else row["verdict"]
        cells = (f"`{row['claim']}`", row["says"], held, interval, usual, verdict, row["decided_by"] or "–")
        yield f"| {' | '.join(cells)} |"


def _levels_table(frames: Mapping[str, pl.DataFrame]) -> Iterator[str]:
    """Yield a table of clauses that depend: the share at the levels of the two parameters that decide most."""
    depends = frames["robustness-clauses"].filter(pl.col("verdict") == DEPENDS, pl.col("decided_by") != "")
    if not depends.height:
        return
    yield "What clauses that depend are decided by, at most two parameters each:\n"
    yield "| clause | parameter | index (95% interval) | holds at |\n|---|---|---|---|"
    for claim, clause, text, decided in depends.select("claim", "clause", "says", "decided_by").iter_rows():
        for name in decided.split(", ")[:2]:
            place = {"claim": claim, "clause": clause, "parameter": name}
            (index,) = frames["robustness-indices"].filter(**place).iter_rows(named=True)
            parts = [
                f"{row['level']}: {percent(row['share'])}"
                for row in frames["robustness-levels"].filter(**place).iter_rows(named=True)
            ]
            number = f"{index['index']:.2f} ({index['index_low']:.2f} to {index['index_high']:.2f})"
            yield f"| {text} | {name} | {number} | {'; '.join(parts)} |"


def read_clauses(folder: Path) -> pl.DataFrame:
    """The clauses of the map of a paper, from a folder.

    Raises ``ScenarioError`` if there is none, and ``ResultsError`` if it has changed since it was written.
    """
    path = folder / CLAUSES
    check_listed(path)
    try:
        table = pl.read_csv(path, schema_overrides=types(MAP["robustness-clauses"]))
        table.select("title").row(0)  # there is a clause
        clauses = table.with_columns(pl.col("decided_by").fill_null(""))
        unknown = [verdict for verdict in clauses["verdict"] if verdict not in MAP_VERDICTS]
    except FileNotFoundError:
        message = "no robustness map"
        raise ScenarioError(
            Problem("", message, allowed="a folder of fairlane reproduce --robustness", file=str(path))
        ) from None
    except (pl.exceptions.PolarsError, IndexError) as error:
        raise ScenarioError(Problem("", f"cannot be read: {error}", file=str(path))) from None
    if unknown:
        message, allowed = "is no verdict of this version", f"{', '.join(MAP_VERDICTS)}; map the paper again"
        raise ScenarioError(Problem("verdict", message, unknown[0], allowed, file=str(path)))
    return clauses


def combine(folders: Sequence[Path], out: Path) -> pl.DataFrame:
    """Draws the maps of several papers as one figure, and returns their clauses, which are stored next to it."""
    together = pl.concat(map(read_clauses, folders), how="diagonal_relaxed")
    out.mkdir(parents=True, exist_ok=True)
    rounded(together).write_csv(out / CLAUSES)
    view = papers(together)
    write_pictures(view, view.pictures, out)
    return together
