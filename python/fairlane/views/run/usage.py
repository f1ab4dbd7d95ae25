"""Use of time and power by jobs: MPI calls, waits, power."""

from collections.abc import Iterator, Mapping

import altair
import polars as pl

from fairlane.core.tables import PS
from fairlane.core.wording import number, percent, plural
from fairlane.model.power import by_job
from fairlane.results.run import Run
from fairlane.views.charts import Axis, Layer, chart, described, drawing, layers, legend_of, picked
from fairlane.views.model import Chart, sentences_of, together
from fairlane.views.rows import Rows, bars, boxes, dots, stacked_rows, strips
from fairlane.views.run.series import JOB, WORKLOAD, Series, chosen, highlighted
from fairlane.views.tables import Column, Table, columns, fixed

PICTURES = {
    "calls": "shares of MPI calls and of waits in the time of each job",
    "power": "frequency and power of the sockets of each job",
}
"""Its pictures, and what they show."""
MOST_JOBS = 60
"""Jobs that have a row in these charts: those that compute least, or run slowest."""


def charts(series: Series) -> Iterator[Chart]:
    """The breakdown of time, and power."""
    yield from _calls(series)
    yield from _power(series)


def _calls(series: Series) -> Iterator[Chart]:
    known = series.having(lambda run: not run.calls.is_empty() and _times(run).height)
    if not known:
        return
    every = together(known, "run", lambda run: run.jobs.select("name", pl.col("compute_share").fill_null(0.0)))
    least = (
        every.group_by("name", maintain_order=True).agg(pl.col("compute_share").mean()).sort("compute_share", "name")
    )
    places = series.places(least["name"].head(MOST_JOBS).to_list())
    left = len(series.workloads) - len(places.names)
    few = f" The {plural(left, 'job')} that compute most are not shown." if left > 0 else ""
    told = [*series.run_column, JOB, WORKLOAD, Column("part", "part"), Column("share", "share", percent)]
    for by, title, shares, sentence in (
        ("calls", "MPI breakdown", _by_call, _most_time),
        ("waits", "Waits in MPI calls by cause", _by_wait, _waits),
    ):
        placed = [
            places.place(series.row(row["run"], row["name"]) | row, row["name"], series.number(row["run"]))
            for row in together(known, "run", shares).iter_rows(named=True)
            if row["name"] in places.names
        ]
        rows = stacked_rows(placed, "at", "share")
        parts = list(dict.fromkeys(row["part"] for row in rows))
        axis = Axis.over(rows, "end", "Share of the time of ranks", "share", also=[0.0, 1.0])
        shown, tooltip = described(rows, told)
        colour = altair.Color("part:N", scale=altair.Scale(domain=parts), legend=legend_of(parts))
        bar = bars(shown, axis, places, "begin", "end", color=colour, tooltip=tooltip, opacity=highlighted())
        yield Chart(
            by,
            title,
            layers(places.height, bar.add_params(chosen()), zoom=("x",)),
            sentences_of(known, sentence),
            f"Shares of the time of a job's ranks. MPI calls that were in progress at the end are in no share."
            f"{few}{series.below()}",
            picked(rows, "run job part share"),
            picture="calls",
        )


def _times(run: Run) -> pl.DataFrame:
    """The time of the ranks of each job, s, with its shares."""
    time = pl.col("ranks").cast(pl.Float64) * pl.col("span_ps").cast(pl.Float64) * PS
    shares = pl.col("compute_share", "communication_share").fill_null(0.0)
    return run.jobs.select("name", shares, time=time).filter(pl.col("time") > 0)


def _calls_by_time(run: Run) -> pl.DataFrame:
    calls = run.calls.group_by(part="call").agg(pl.col("time_s").sum()).filter(pl.col("time_s") > 0)
    return calls.sort("time_s", "part", descending=[True, False])


def _by_call(run: Run) -> pl.DataFrame:
    """The shares of each job's time: of compute, and of each call, the one with most time first."""
    times = _times(run)
    calls = times.join(_calls_by_time(run).select("part"), how="cross")
    spent = calls.join(run.calls.rename({"call": "part"}), on=["name", "part"], how="left", maintain_order="left")
    shares = spent.select("name", "part", share=pl.col("time_s").fill_null(0.0) / pl.col("time"))
    return pl.concat([times.select("name", pl.lit("compute").alias("part"), share="compute_share"), shares])


def _by_wait(run: Run) -> pl.DataFrame:
    """The shares of each job's time: of compute, of waits by cause, and the rest."""
    waits = run.ranks.group_by("name").agg(pl.col("late_partner_ps", "network_ps").sum().cast(pl.Float64) * PS)
    times = _times(run).join(waits, on="name", how="left", maintain_order="left")
    late, network = (pl.col(f"{cause}_ps").fill_null(0.0) / pl.col("time") for cause in ("late_partner", "network"))
    rest = (pl.col("communication_share") - late - network).clip(0.0)
    named = {"compute": "compute_share", "late sender or receiver": late, "network": network, "other MPI time": rest}
    return times.select("name", **named).unpivot(index="name", variable_name="part", value_name="share")  # type: ignore[arg-type]


def _most_time(run: Run) -> str:
    times, most = _times(run), _calls_by_time(run).row(0, named=True)
    compute = float((times["compute_share"] * times["time"]).sum()) / float(times["time"].sum())
    share = percent(most["time_s"] / float(times["time"].sum()))
    return f"Ranks compute for {percent(compute)} of their time; the MPI call with most time is {most['part']}: {share}"


def _waits(run: Run) -> str:
    total = float(_times(run)["time"].sum())
    late, network = (
        percent(float(run.ranks[f"{cause}_ps"].cast(pl.Float64).sum()) * PS / total)
        for cause in ("late_partner", "network")
    )
    return f"Ranks wait {late} of their time for late senders or receivers, {network} for the network"


def _sockets_of(run: Run) -> pl.DataFrame:
    assert run.power is not None, "invariant: it is known"
    return run.power


def _power(series: Series) -> Iterator[Chart]:
    known = series.having(lambda run: run.power is not None and run.power.height)
    if not known:
        return
    every = together(known, "run", lambda run: by_job(_sockets_of(run)))
    slowest = every.sort("least_frequency", maintain_order=True)["name"].unique(maintain_order=True).head(MOST_JOBS)
    names = series.places(slowest.to_list()).names
    caps = dict(every.select("name", "cap_w").iter_rows())
    labels = [[name, "no cap" if caps[name] is None else f"{caps[name]:g} W"] for name in names]
    places = Rows(names, len(series.runs), labels)
    rows = together(known, "run", _by_job).to_dicts()
    boxed = "A dot is a socket; boxes: quartiles and median, whiskers: the slowest and the fastest."
    capped = "Mean power of each socket. Red lines: the cap."
    for name, title, of, said, note in (
        ("power", "Frequency of sockets", "frequency_share", _slowest, boxed),
        ("power-drawn", "Power of sockets", "mean_w", _together, capped),
    ):
        made = drawing(places.height, _sockets(series, known, places, of), zoom=("x",))
        yield Chart(name, title, made, sentences_of(known, said), f"{note}{series.below()}", rows, picture="power")


def _by_job(run: Run) -> pl.DataFrame:
    return (
        _sockets_of(run)
        .group_by(job="name", maintain_order=True)
        .agg(
            pl.len().alias("sockets"),
            pl.col("mean_w").mean(),
            pl.col("mean_w").min().alias("min_w"),
            pl.col("mean_w").max().alias("max_w"),
            pl.col("cap_w").max(),
            pl.col("energy_j").sum(),
            pl.col("frequency_share").mean(),
            pl.col("frequency_share").min().alias("min_frequency_share"),
        )
    )


def _sockets(series: Series, runs: Mapping[str, Run], places: Rows, key: str) -> Iterator[Layer]:
    groups, caps = [], []
    for name, run in runs.items():
        for (job,), sockets in _sockets_of(run).group_by("name", maintain_order=True):
            if job not in places.names:
                continue
            at = (str(job), series.number(name))
            groups.append((series.row(name, str(job)), sockets[key].to_numpy(), *at))
            caps += [] if sockets["cap_w"][0] is None else [places.place({"cap": sockets["cap_w"][0]}, *at)]
    boxed, dotted = strips(groups, places)
    form, colour = percent, series.colour(dotted, named=True)
    if key == "mean_w":
        form = fixed(1, " W")  # type: ignore[assignment]
        also = [row["cap"] for row in caps]
        axis = Axis.over(dotted, "value", "Mean power of a socket [W]", scale="linear", also=also)
    else:
        full = "Frequency of a socket, as a share of the full one"
        axis = Axis.over(dotted, "value", full, "share", scale="linear", zero=False)
    shown, tooltip = described(dotted, [*series.run_column, JOB, Column("socket", "value", form)])
    yield boxes(boxed, axis, places, color=colour)
    if key == "mean_w" and caps:
        line = chart(caps).mark_rule(strokeWidth=2.4, color="#c91f16")
        yield line.encode(x=axis.x("cap"), **places.edges)
    dot = dots(shown, axis, places, "value", color=colour, tooltip=tooltip, opacity=highlighted(0.1, 0.8))
    yield dot.add_params(chosen())


def _slowest(run: Run) -> str:
    slowest = by_job(_sockets_of(run)).sort("least_frequency", "name").row(0, named=True)
    if (share := slowest["least_frequency"]) < 1:
        return f"{slowest['name']}: at {slowest['cap_w']:g} W its slowest socket runs at {share:.0%} of its frequency"
    return "No socket is slowed down by its cap"


def _together(run: Run) -> str:
    sockets = _sockets_of(run)
    return f"{plural(sockets.height, 'socket')} take {float(sockets['mean_w'].sum()):,.0f} W together"


def tables(series: Series) -> Iterator[Table]:
    """One row per job: its cap, how far that slows its sockets down, what a host draws, and the energy of all."""
    known = series.having(lambda run: run.power is not None)
    rows = together(known, "run", lambda run: by_job(_sockets_of(run))).to_dicts() if known else []
    if not rows:
        return
    shown = [
        *series.run_column,
        Column("job", "name", left=True),
        Column("hosts", "hosts"),
        Column("cap of a\nsocket", "cap_w", lambda cap: f"{cap:g} W"),
        *columns(percent, mean_frequency="frequency:\nmean", least_frequency="slowest\nsocket"),
        Column("power of\na host", "host_w", fixed(1, " W")),
        Column("energy", "energy_j", lambda joules: f"{number(joules)} J"),
    ]
    energy = number(sum(row["energy_j"] for row in rows))
    yield Table(shown, rows, "Power", sentence=f"{energy} J altogether.", note="–: no cap.")
