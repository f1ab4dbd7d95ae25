"""Runs: how much jobs are slowed down, by whom and where in the fabric; latencies, iterations, calls and power."""

from collections.abc import Iterator, Mapping

from fairlane.core.wording import data_size, plural, seconds
from fairlane.results.culprit import HINT, LostTime, headline
from fairlane.results.notes import notes
from fairlane.results.run import Run
from fairlane.views.model import Chart, Custom, View, lines_of, remarks_of
from fairlane.views.run import (
    accelerators,
    classes,
    fabric,
    flows,
    interference,
    iterations,
    latency,
    ports,
    slowdown,
    usage,
)
from fairlane.views.run.series import Series

__all__ = ["PICTURES", "view"]

_CHARTS = (interference, slowdown, classes, latency, flows, iterations, usage, ports)
"""Sections with charts, in the order of a page."""
_TABLES = (slowdown, iterations, accelerators, latency, flows, usage, interference, classes)
"""Sections with tables."""
PICTURES: Mapping[str, str] = {name: words for section in _CHARTS for name, words in section.PICTURES.items()}
"""Its pictures, and what they show."""


def view(runs: Mapping[str, Run], *, charts: bool = True) -> View:
    """One run, or several in the same charts; of exactly two also the changes between them.

    Without ``charts``, as for a terminal, it has the tables only.
    """
    series = Series(runs)
    return View(
        title=", ".join(dict.fromkeys(run.meta.scenario for run in runs.values())),
        headline="\n".join(lines_of(runs, _headline)),
        facts=lines_of(runs, _facts),
        parts=[
            *(_charts(series) if charts else ()),
            *(table for section in _TABLES for table in section.tables(series)),
            *latency.by_kind(series),
        ],
        remarks=remarks_of(runs, _remarks),
        provenance={name: _provenance(run) for name, run in runs.items()},
    )


def _charts(series: Series) -> Iterator[Chart | Custom]:
    yield from fabric.parts(series)
    for section in _CHARTS:
        yield from section.charts(series)


def _headline(run: Run) -> str:
    """Who loses most because of whom, or else how many jobs are slowed down."""
    compared = run.jobs.drop_nulls("w")
    sentence = headline(run) or (slowdown.title(compared) if compared.height else None)
    return f"{sentence or 'No packet was delayed, and no job is compared with its isolated run'}."


def _facts(run: Run) -> str:
    meta = run.meta
    whole = f" of {seconds(meta.duration_ps * 1e-12)} (partial: interrupted)" if meta.partial else ""
    jobs, hops = plural(run.jobs.height, "job"), _hops(meta.packet_hops)
    return f"{meta.scenario}: {seconds(meta.simulated_s)}{whole} simulated, {jobs}, {hops}, seed {meta.seed}"


def _hops(hops: int) -> str:
    return plural(hops, "packet-hop") if hops < 100_000 else f"{hops / 1e6:,.1f} million packet-hops"


def _remarks(run: Run) -> Iterator[str]:
    """Yield notes on the run, and the weaknesses of its numbers."""
    yield from notes(run)
    if run.interference["queueing_s"].sum() > 0 and LostTime.of(run) is None and run.jobs.height > 1:
        yield HINT
    totals = run.meta.totals or {}
    marked, sent = totals.get("packets_marked", 0), totals.get("control_packets", 0)
    if marked or sent:
        notices = f"{plural(sent, 'acknowledgement or CNP', 'acknowledgements and CNPs')} sent"
        yield f"Congestion control: {plural(marked, 'packet')} marked by switches, {notices}."
    if discarded := totals.get("packets_discarded", 0):
        repeated = data_size(totals["bytes_retransmitted"])
        lost = plural(totals["packets_lost"], "packet")
        yield f"Go-back-N: {lost} lost, {discarded:,} after them discarded, {repeated} of payload sent again."
    yield from run.meta.notes


def _provenance(run: Run) -> dict[str, object]:
    meta = run.meta
    return {
        "folder": run.folder,
        "scenario": meta.scenario,
        "seed": meta.seed,
        "fairlane": meta.version,
        "started": meta.started,
        "digest of the results": meta.digest,
    }
