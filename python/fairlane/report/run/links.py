"""The fabric of a run as a page shows it: places, links with what their ports measured, lanes, samples.

Links have the numbers of the tables. Shares are shares of the simulated time; the queue of a link is the mean number of
packets that wait for it, which is the queueing delay divided by the time.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.fabric.view import Fabric
from fairlane.plot.fabric.places import places_of
from fairlane.report.packing import pack, smallest
from fairlane.results.run import Run
from fairlane.results.views import by_link

Floats = npt.NDArray[np.float64]

MOST_CELLS = 120_000
"""Rows of ``port_interference`` in a page; of more, those with the greatest delay."""
MOST_SAMPLES = 450_000
"""Intervals times links in a page; of more, successive intervals are merged."""
MOST_INTERVALS = 400
METRICS = {"active": "port_active_share", "stalled": "port_stalled_share", "queue": "mean_queue"}
"""What links are coloured by, and the columns of the tables."""


def fabric_of(fabric: Fabric) -> dict[str, Any]:
    """Places and names of hosts and switches, and the ends of all links.

    Ends are vertices: hosts by their numbers, and switches after them.
    """
    places = places_of(fabric)
    links = fabric.links
    ends = {
        side: np.where(links[f"{side}_host"] >= 0, links[f"{side}_host"], fabric.hosts + links[f"{side}_switch"])
        for side in ("from", "to")
    }
    vertices = smallest(fabric.hosts + fabric.switches)
    roles, role = np.unique(links["role"], return_inverse=True)
    rates, rate = np.unique(links["bandwidth"], return_inverse=True)
    return {
        "kind": places.kind,
        "hosts": fabric.host_names,
        "switches": fabric.switch_names,
        "places": pack(np.concatenate([places.hosts, places.switches]), "f32"),
        "links": {
            **{side: pack(at, vertices) for side, at in ends.items()},
            **{f"{side}_port": pack(links[f"{side}_port"], "u16") for side in ("from", "to")},
            "class": pack(links["class"], "u8"),
            "role": pack(role, "u8"),
            "bandwidth": pack(rate, smallest(len(rates))),
        },
        "classes": fabric.classes,
        "roles": roles.tolist(),
        "bandwidths": rates.tolist(),
    }


def measured(run: Run, links: int) -> dict[str, Any] | None:
    """What each link's port measured over the whole run, and each lane of it; None if ports were not counted."""
    if run.ports.is_empty():
        return None
    whole = by_link(run.ports)
    lanes = run.ports.filter(pl.col("packets") > 0).sort("link", "lane")
    time = max(run.meta.simulated_ps, 1)
    return {
        **{name: pack(_spread(whole, column, links), "f32") for name, column in METRICS.items()},
        "bytes": pack(_spread(whole, "bytes", links), "f32"),
        "packets": pack(_spread(whole, "packets", links), "f32"),
        "lanes": {
            "link": pack(lanes["link"], smallest(links)),
            "lane": pack(lanes["lane"], "u8"),
            "bytes": pack(lanes["bytes"], "f32"),
            "packets": pack(lanes["packets"], "f32"),
            "queue": pack(lanes["mean_queue"], "f32"),
            "stalled": pack(lanes["stalled_ps"] / time, "f32"),
            "max_queue": pack(lanes["max_queue"], "u32"),
        },
    }


def _spread(table: pl.DataFrame, column: str, links: int) -> Floats:
    """A column by link; 0 for links without a row."""
    found = np.zeros(links)
    found[table["link"].to_numpy()] = table[column].to_numpy()
    return found


def by_jobs(run: Run, links: int) -> dict[str, Any] | None:
    """Queueing delay by link, victim and aggressor, s; None without ``observe.interference_by_port``.

    ``kept`` is the share of the delay that is in the rows, below 1 if there are too many.
    """
    table = run.port_interference
    if table is None:
        return None
    number = {name: index for index, name in enumerate(run.jobs["name"])}
    rows = table.filter(pl.col("queueing_ps") > 0)
    total = int(rows["queueing_ps"].sum())
    rows = rows.sort("queueing_ps", descending=True).head(MOST_CELLS).sort("link")
    jobs = smallest(len(number))
    return {
        "link": pack(rows["link"], smallest(links)),
        **{
            side: pack(rows[side].replace_strict(number, return_dtype=pl.UInt32), jobs)
            for side in ("victim", "aggressor")
        },
        "queueing_s": pack(rows["queueing_s"], "f32"),
        "kept": int(rows["queueing_ps"].sum()) / total if total else 1.0,
    }


def over_time(run: Run, links: int) -> dict[str, Any] | None:
    """What each link measured in each interval, or in some successive ones together; None without samples.

    Values are stored with 8 bits as the square root of the share of the largest, so that small ones stay visible: at
    most 0.4% of the largest off.
    """
    if run.samples is None or run.samples.is_empty():
        return None
    intervals = run.samples.select("from_ps", "to_ps").unique().sort("from_ps")
    most = max(1, min(MOST_INTERVALS, MOST_SAMPLES // max(links, 1)))
    together = -(-intervals.height // most)
    length = (intervals["to_ps"] - intervals["from_ps"]).to_numpy().astype(float)
    group = np.arange(intervals.height) // together
    count = int(group[-1]) + 1
    index = intervals.with_row_index("at").select("from_ps", "at")
    rows = (
        run.samples.group_by("from_ps", "link")
        .agg(pl.col("port_active_share", "port_stalled_share").first(), pl.col("mean_queue").sum())
        .join(index, on="from_ps")
    )
    at, link = rows["at"].to_numpy(), rows["link"].to_numpy()
    whole = np.bincount(group, length)
    found: dict[str, Any] = {
        "from_s": (intervals["from_ps"].to_numpy()[::together] * 1e-12).tolist(),
        "to_s": [float(intervals["to_ps"].to_numpy()[group == part][-1]) * 1e-12 for part in range(count)],
        "together": together,
    }
    for name, column in METRICS.items():
        sums = np.zeros((count, links))
        np.add.at(sums, (group[at], link), rows[column].to_numpy() * length[at])
        values = sums / whole[:, np.newaxis]
        largest = float(values.max(initial=0.0))
        scaled = np.rint(255 * np.sqrt(values / largest)) if largest else values
        found[name] = {"max": largest, "roots": pack(scaled, "u8")}
    return found
