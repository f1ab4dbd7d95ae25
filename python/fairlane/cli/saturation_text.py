"""What the terminal shows of a sweep of loads."""

from collections.abc import Iterator

from fairlane.cli.options import stored
from fairlane.cli.tables import Column, Part, Table, fixed, long, time_ps, with_interval
from fairlane.results.latency import BUCKET_WIDTH
from fairlane.saturation.results import ACCEPTED_IN_FULL, FEW, Saturation
from fairlane.statistics import COVERAGE, FEWEST
from fairlane.wording import plural


def saturation_parts(found: Saturation) -> Iterator[Part]:
    """A row for each load, and where saturation lies."""
    meta = found.meta
    measured, warm_up = time_ps(meta["duration_ps"] - meta["warm_up_ps"]), time_ps(meta["warm_up_ps"])
    what = f"{plural(found.points.height, 'load')} on {plural(len(meta['seeds']), 'seed')}"
    yield f"{what}, {measured} measured after {warm_up} of warm-up\n"
    latencies = [("mean", "latency: mean", 0), ("p50", "50%", 2), ("p99", "99%", 0), ("p999", "99.9%", 3)]
    shown = [
        Column("load", lambda row: f"{row['load']:g}", left=False),
        Column("offered", "offered", fixed(4), drop=1),
        Column("accepted", with_interval("accepted", fixed(4))),
        *(
            Column(heading, with_interval(f"message_{name}_ps", time_ps, resolution=_width(name)), drop=drop)
            for name, heading, drop in latencies
        ),
        Column("saturated", "saturated"),
    ]
    yield Table(shown, found.points.to_dicts())
    yield from (long(line, "dim") for line in _remarks(found))
    yield from stored(found.folder)


def _width(name: str) -> float:
    """The relative width of the buckets that a quantile is from; that of a mean is zero."""
    return 0.0 if name == "mean" else BUCKET_WIDTH


def _remarks(found: Saturation) -> Iterator[str]:
    """What the columns are, where saturation lies, and what is weak about the figures."""
    points = found.points
    yield (
        "Offered, accepted: shares of the injection bandwidth of the sending ranks, headers included. Latency: of "
        f"messages delivered after the warm-up, from generation to last byte. ±: {COVERAGE:.0%} over seeds; "
        f"none where all values are equal, nor of a quantile that fewer than {FEWEST} messages of a seed exceed."
    )
    yield (
        f"Saturated: the whole interval of accepted over offered is below {ACCEPTED_IN_FULL:.0%}; latencies there grow "
        "with the simulated time."
    )
    if points.height and points["accepted"].count():
        best = points.sort("accepted").row(-1, named=True)
        yield f"{found.headline()}. Highest accepted throughput: {best['accepted']:.3f} at load {best['load']:g}."
    yield from found.repeated()
    if len(found.meta["seeds"]) < 2:
        yield "One seed gives no confidence interval, so saturation is undecided: use --replicates 2 or more."
    few = [f"{row['load']:g}" for row in points.iter_rows(named=True) if (row["message_count"] or 0) < FEW]
    if few:
        yield f"Fewer than {FEW} messages at {', '.join(few)}: use a longer --duration."
    if found.meta["partial"]:
        yield "Interrupted: incomplete loads and seeds are left out."
