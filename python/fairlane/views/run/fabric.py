"""The fabric of a run and its interference matrix, which modules of a page draw, so that both can be explored.

Links have the numbers of the tables, jobs those of the run. Shares are shares of the simulated time; the queue of a
link is the mean number of packets that wait for it, which is the queueing delay divided by the time.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.core.tables import PS
from fairlane.model.fabric.places import places_of
from fairlane.model.fabric.view import Fabric
from fairlane.results.run import Run, resolved
from fairlane.results.views import Interference, by_link
from fairlane.views.heat import HEAT
from fairlane.views.model import Custom
from fairlane.views.page import pack, smallest
from fairlane.views.run.interference import sentence as about
from fairlane.views.run.ports import busiest, stalled
from fairlane.views.run.series import Series
from fairlane.views.style import DECADES, FEW_LARGE

Floats = npt.NDArray[np.float64]

MOST_CELLS = 120_000
"""Rows of ``port_interference`` in a page; of more, those with the greatest delay."""
MOST_SAMPLES = 450_000
"""Intervals times links in a page; of more, successive intervals are merged."""
MOST_INTERVALS = 400
MOST_CLUSTERED = 600
"""Jobs up to which the matrix is put in order by similarity."""
METRICS = {"active": "port_active_share", "stalled": "port_stalled_share", "queue": "mean_queue"}
"""Measures that colour links, and the columns of the tables."""


_SCALE = {"few_large": FEW_LARGE, "decades": DECADES}
_MARKS = (
    "Squares: switches. Circles: hosts of the victim. Triangles: hosts of the aggressor. Drag to move, turn the wheel "
    "to zoom; keys: arrows, +, −, 0 for the whole, Escape for no choice."
)
_CELLS = (
    "A cell is the queueing delay of the victim's packets that the aggressor's packets caused, as a share of the "
    "victim's rank time; packets queue concurrently, so it can exceed 100%. Grey: a job's own packets. A click on a "
    "cell shows its links."
)


def parts(series: Series) -> Iterator[Custom]:
    """The fabric of the first run, and its matrix; of two runs both have the differences to the second."""
    (first, run), *others = series.runs.items()
    scenario = resolved(run)
    if not scenario or "fabric" not in scenario:
        return
    what = f" of {first}" if series.several else ""
    second = others[0] if len(others) == 1 else None
    yield Custom(
        "fabric",
        f"Fabric{what}",
        "fabric",
        partial(_fabric, run, scenario["fabric"], second),
        _links(run),
        _MARKS + _rails(run),
    )
    if run.interference["queueing_s"].sum() > 0:
        yield Custom(
            "matrix", f"Interference matrix{what}", "matrix", partial(_matrix, run, second), about(run), _CELLS
        )


def _fabric(run: Run, spec: dict[str, Any], second: tuple[str, Run] | None) -> dict[str, Any]:
    fabric = Fabric.build(spec)
    count = len(fabric.links["link"])
    compare = None
    if second is not None and (other := _matched(run, second[1])) is not None:
        compare = {"name": second[0], "apart": count - other.ports["link"].n_unique(), **_of_links(other, count)}
    details = {"jobs": jobs_of(run), "samples": over_time(run, count), **_of_links(run, count)}
    return {"fabric": fabric_of(fabric), **details, "compare": compare, "scale": _SCALE}


def _of_links(run: Run, count: int) -> dict[str, Any]:
    return {"measured": measured(run, count), "by_jobs": by_jobs(run, count)}


def _matrix(run: Run, second: tuple[str, Run] | None) -> dict[str, Any]:
    other = None if second is None else _matched(run, second[1])
    compare = None if other is None or second is None else {"name": second[0], **matrix_of(other)}
    return {"jobs": jobs_of(run), "scale": _SCALE, "ramp": HEAT, "own": matrix_of(run), "compare": compare}


def _links(run: Run) -> str:
    if not run.ports.height or not run.ports["packets"].sum():
        return "No port transmitted anything, or the run did not count it (observe.counters = false)."
    return f"{busiest(by_link(run.ports))}. {stalled(run)}."


def _rails(run: Run) -> str:
    """Say that hosts have several adapters."""
    most = run.ports["rail"].max() if run.ports.height else None
    rails = most + 1 if isinstance(most, int) else 1
    return f" Hosts have up to {rails} adapters; Rail colours their links." if rails > 1 else ""


def _matched(run: Run, other: Run) -> Run | None:
    """``other`` with the links and jobs of ``run``, without those that ``run`` does not have; None if it has none."""
    jobs = set(run.jobs["name"])
    if not run.ports.height or not other.ports.height or jobs.isdisjoint(other.jobs["name"]):
        return None
    numbers = run.ports.select("link_name", "link").unique()
    ports = other.ports.drop("link").join(numbers, on="link_name")
    if ports.is_empty():
        return None
    both = pl.col("victim").is_in(jobs) & pl.col("aggressor").is_in(jobs)
    table = other.port_interference
    matched = None if table is None else table.filter(both).drop("link").join(numbers, on="link_name")
    cells = other.interference.filter(both)
    return replace(other, jobs=run.jobs, ports=ports, interference=cells, port_interference=matched)


def jobs_of(run: Run) -> dict[str, Any]:
    """By job: name, workload, hosts, rank-seconds, and whether it is one of the background."""
    hosts = run.ranks.group_by("job").agg(hosts=pl.col("host").unique().sort())
    table = run.jobs.join(hosts, on="job", how="left", maintain_order="left").select(
        "name",
        "workload",
        pl.col("hosts").fill_null([]),
        background=pl.col("name").str.contains(r"^background-\d+$"),
        rank_time_s=pl.col("ranks").cast(pl.Float64) * pl.col("span_ps") * PS,
    )
    return table.to_dict(as_series=False)


def matrix_of(run: Run) -> dict[str, Any]:
    """The interference matrix: cells with queueing delay, s, and an order in which similar jobs are neighbours."""
    matrix = Interference.of(run)
    whole = matrix.others + np.diag(matrix.own)
    victim, aggressor = np.nonzero(whole)
    jobs = smallest(len(matrix.labels))
    return {
        "victim": pack(victim, jobs),
        "aggressor": pack(aggressor, jobs),
        "queueing_s": pack(whole[victim, aggressor], "f32"),
        "order": order_of(matrix.others),
    }


def order_of(seconds: Floats) -> list[int]:
    """Rows of a matrix in an order in which those with similar rows and columns are near each other.

    By average linkage of the square roots, with leaves in the best order (Bar-Joseph et al. 2001).
    """
    count = len(seconds)
    if count < 3 or count > MOST_CLUSTERED or not seconds.any():
        return list(range(count))
    from scipy.cluster.hierarchy import leaves_list, linkage

    features = np.sqrt(np.concatenate([seconds, seconds.T], axis=1))
    leaves: list[int] = leaves_list(linkage(features, "average", optimal_ordering=True)).tolist()
    return leaves


def fabric_of(fabric: Fabric) -> dict[str, Any]:
    """Places and names of hosts and switches, and the ends of all links.

    Ends are vertices: hosts by their numbers, and switches after them.
    """
    layout = places_of(fabric)
    places = np.concatenate([layout.hosts, layout.switches])
    links = fabric.links
    ends = [
        np.where(links[f"{side}_host"] >= 0, links[f"{side}_host"], fabric.hosts + links[f"{side}_switch"]).astype(
            np.int64
        )
        for side in ("from", "to")
    ]
    roles, role = np.unique(links["role"], return_inverse=True)
    rates, rate = np.unique(links["bandwidth"], return_inverse=True)
    segments = _segments(places, *ends)
    return {
        "hosts": fabric.host_names,
        "switches": fabric.switch_names,
        "places": pack(places, "f32"),
        "links": {
            **{side: pack(at, smallest(len(places))) for side, at in zip(("from", "to"), ends, strict=True)},
            **{f"{side}_port": pack(links[f"{side}_port"], "u16") for side in ("from", "to")},
            "segments": pack(segments, "f32"),
            "bent": pack(_bent(segments, layout.kind), "u8"),
            "class": pack(links["class"], "u8"),
            "role": pack(role, "u8"),
            "bandwidth": pack(rate, smallest(len(rates))),
            "rail": pack(_rail_of_links(fabric), "u8") if fabric.rails > 1 else None,
        },
        "classes": fabric.classes,
        "roles": roles.tolist(),
        "bandwidths": rates.tolist(),
    }


def _segments(places: Floats, begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> Floats:
    """The ends of each link, shape (links, 4): x, y, x, y. Links between the same two vertices are side by side."""
    low, high = np.minimum(begin, end), np.maximum(begin, end)
    _, pair, counts = np.unique(low * len(places) + high, return_inverse=True, return_counts=True)
    number = np.empty(len(pair))
    number[np.argsort(pair, kind="stable")] = np.concatenate([np.arange(count) for count in counts])
    along = places[high] - places[low]
    gap = 0.005 * np.ptp(places, axis=0).max() * min(1.0, 10 / len(places) ** 0.5)
    length = np.hypot(*along.T)
    offset = gap * (number - (counts[pair] - 1) / 2) / np.where(length > 0, length, 1.0)
    across = np.column_stack([-along[:, 1], along[:, 0]]) * offset[:, np.newaxis]
    return np.hstack([places[begin] + across, places[end] + across])


def _bent(segments: Floats, kind: str) -> npt.NDArray[np.bool_]:
    """Return links that would lead through other switches if they were straight: along a row or column of a plan."""
    across, up = np.abs(segments[:, 2:] - segments[:, :2]).T
    if kind == "grid":  # neighbours are 1 apart
        return np.asarray((np.minimum(across, up) < 0.1) & (np.maximum(across, up) > 1.1))
    return np.asarray((up < 0.01 * across) & (kind == "tree"))


def _rail_of_links(fabric: Fabric) -> npt.NDArray[np.int64]:
    """The number of the adapter of each link from or to a host; 255 for links between switches."""
    rails = np.full(len(fabric.links["link"]), 255)
    for side in ("from_host", "to_host"):
        seen: dict[int, int] = {}
        for link, host in enumerate(fabric.links[side].tolist()):
            if host >= 0:
                rails[link] = seen[host] = seen.get(host, -1) + 1
    return rails


def measured(run: Run, links: int) -> dict[str, Any] | None:
    """Return the measurements of each link's port over the whole run, and of its lanes; None without counters."""
    if run.ports.is_empty():
        return None
    whole = by_link(run.ports)
    lanes = run.ports.filter(pl.col("packets") > 0).sort("link", "lane")
    stalled_share = lanes["stalled_ps"] / max(run.meta.simulated_ps, 1)
    known = {**METRICS, "bytes": "bytes", "packets": "packets"}
    return {
        **{name: pack(_spread(whole, column, links), "f32") for name, column in known.items()},
        "lanes": {
            "link": pack(lanes["link"], smallest(links)),
            "lane": pack(lanes["lane"], "u8"),
            **{name: pack(lanes[name], "f32") for name in ("bytes", "packets")},
            "queue": pack(lanes["mean_queue"], "f32"),
            "stalled": pack(stalled_share, "f32"),
            "max_queue": pack(lanes["max_queue"], "u32"),
        },
    }


def _spread(table: pl.DataFrame, column: str, links: int) -> Floats:
    """A column by link; 0 for links without a row."""
    values = np.zeros(links)
    values[table["link"].to_numpy()] = table[column].to_numpy()
    return values


def by_jobs(run: Run, links: int) -> dict[str, Any] | None:
    """Queueing delay by link, victim and aggressor, s; None without ``observe.interference_by_port``.

    ``kept`` is the share of the delay that is in the rows, below 1 if there are too many.
    """
    table = run.port_interference
    if table is None:
        return None
    number = {name: index for index, name in enumerate(run.jobs["name"])}
    delayed = table.filter(pl.col("queueing_ps") > 0)
    total = int(delayed["queueing_ps"].sum())
    rows = delayed.sort("queueing_ps", descending=True).head(MOST_CELLS).sort("link")
    ends = {side: rows[side].replace_strict(number, return_dtype=pl.UInt32) for side in ("victim", "aggressor")}
    return {
        "link": pack(rows["link"], smallest(links)),
        **{side: pack(of, smallest(len(number))) for side, of in ends.items()},
        "queueing_s": pack(rows["queueing_s"], "f32"),
        "kept": int(rows["queueing_ps"].sum()) / total if total else 1.0,
    }


def over_time(run: Run, links: int) -> dict[str, Any] | None:
    """Return the measurements of each link in each interval, or in some successive ones; None without samples.

    Values are stored with 8 bits as the square root of the share of the largest, so that small ones stay visible: at
    most 0.4% of the largest off.
    """
    if run.samples is None or run.samples.is_empty():
        return None
    intervals = run.samples.select("from_ps", "to_ps").unique().sort("from_ps")
    together = -(-intervals.height // max(1, min(MOST_INTERVALS, MOST_SAMPLES // max(links, 1))))
    length = (pl.col("to_ps") - pl.col("from_ps")).cast(pl.Float64)
    grouped = intervals.with_columns(length=length, group=pl.int_range(pl.len()) // together)
    groups = grouped.group_by("group").agg(pl.col("from_ps").first(), pl.col("to_ps").last(), pl.col("length").sum())
    groups = groups.sort("group")
    rows = (
        run.samples.group_by("from_ps", "link")
        .agg(pl.col("port_active_share", "port_stalled_share").first(), pl.col("mean_queue").sum())
        .join(grouped, on="from_ps")
    )
    at = rows["group"].to_numpy(), rows["link"].to_numpy()
    ends = {f"{end}_s": (groups[f"{end}_ps"].cast(pl.Float64) * PS).to_list() for end in ("from", "to")}
    samples: dict[str, Any] = {**ends, "together": together}
    for name, column in METRICS.items():
        sums = np.zeros((groups.height, links))
        np.add.at(sums, at, (rows[column] * rows["length"]).to_numpy())
        values = sums / groups["length"].to_numpy()[:, np.newaxis]
        largest = float(values.max(initial=0.0))
        scaled = np.rint(255 * np.sqrt(values / largest)) if largest else values
        samples[name] = {"max": largest, "roots": pack(scaled, "u8")}
    return samples
