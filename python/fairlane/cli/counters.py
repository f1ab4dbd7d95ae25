"""Port counters: counters export, counters import, and what analyze --counters shows."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option, write_folder, write_table
from fairlane.cli.options import RunFolder, fresh, quantity_of, refused, report
from fairlane.cluster.counters import export as counter_files
from fairlane.cluster.counters import shared
from fairlane.cluster.counters.base import PortCounters, since
from fairlane.cluster.counters.reader import Located, located, read_counters, table_of
from fairlane.cluster.counters.simulated import snapshots
from fairlane.core.wording import plural
from fairlane.model.fabric.congestion import mixed_speeds
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.wiring import Wiring
from fairlane.results.run import load_run
from fairlane.views.counters import view

_END = 2**32 - 1  # at which counters of 32 bits stop
_STOPPING = ("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortXmitWait")


def export(
    run: RunFolder,
    out: Annotated[Path, out_option("A new or empty folder for the files.", "DIR")],
    guids: Annotated[
        Path | None,
        Option(
            metavar="DUMP",
            help="Use its GUIDs and LIDs, not generated ones: output of ibnetdiscover, or fabric import's file.",
        ),
    ] = None,
    tick: Annotated[
        str | None,
        Option(help="A tick of PortXmitWait, e.g. '22 ns'; by default the time that the link takes for 4 bytes."),
    ] = None,
) -> Answer:
    """Write the port counters of a run as perfquery -x prints them and as Prometheus text.

    perfquery.txt and counters.prom are the counters at the end of the run. With observe.interval, intervals.om
    (OpenMetrics, times in simulated seconds) and intervals/ have them at the end of each interval.
    """
    fresh(out)
    length = None if tick is None else quantity_of("--tick", tick, positive=True)
    readings = snapshots(load_run(run), read_wiring(guids) if guids else None, length)
    if any(port.guid is None for port in readings[-1].ports):
        counted = "has no node for some ports of the run"
        raise refused("--guids", counted, str(guids), "a dump of the same fabric")
    files = counter_files(readings)
    write_folder(out, files, "--out")
    paths = [out / name for name in files]
    counted = f"{plural(len(readings[-1].ports), 'port')}, {plural(len(readings), 'time')}"
    return Answer(
        {"ports": len(readings[-1].ports), "times_ps": [reading.at_ps for reading in readings], "files": paths},
        [counted, *map(str, paths)],
        out,
    )


def import_(
    file: Annotated[
        Path, Argument(metavar="FILE", help="Output of perfquery or ibqueryerrors, Prometheus text, or files of sysfs.")
    ],
    before: Annotated[
        Path | None, Option(metavar="FILE", help="Counters read before, of the same format: use what was added since.")
    ] = None,
    fabric: Annotated[
        Path | None,
        Option("--fabric", metavar="FILE", help="The fabric, as fabric import reads it, e.g. of ibnetdiscover."),
    ] = None,
    out: Annotated[Path | None, out_option("Where to write the table: .parquet, or else CSV.")] = None,
) -> Answer:
    """Read port counters of a real cluster as a table with a row for each port.

    Takes the output of perfquery, of ibqueryerrors --counters and of grep . /sys/class/infiniband/*/ports/*/counters/*,
    and Prometheus text of node_exporter and of the InfiniBand exporters. With --fabric, ports have the names and
    numbers of the fabric. Data is in words of 4 bytes.
    """
    ports, places = _read(file, before, None if fabric is None else read_wiring(fabric))
    table = table_of(ports if places is None else places)
    if out is not None:
        write_table(table, out)
    text = table.write_csv().removesuffix("\n") if out is None else f"{plural(table.height, 'port')} in {out}"
    return Answer(table, [text], out)


def _read(file: Path, before: Path | None, wiring: Wiring | None) -> tuple[list[PortCounters], list[Located] | None]:
    """The counters of a file, or what was added to those of another, and their places if the fabric is known."""
    ports = _noted(file)
    if full := sum(any(port.values.get(name) == _END for name in _STOPPING) for port in ports):
        effect = "" if before is None else ", so increments are too small"
        message = f"counters of data, packets or waiting are at the end of 32 bits{effect}"
        report(f"{plural(full, 'port')}: {message}; perfquery -x has counters of 64 bits")
    if before is not None:
        ports = since(ports, _noted(before), file)
    if wiring is None:
        return ports, None
    places = located(ports, wiring, file)
    if left_out := len(ports) - len(places):
        report(f"{file}: {plural(left_out, 'port')} without a cable in the fabric left out")
    return ports, places


def _noted(file: Path) -> list[PortCounters]:
    """The counters of a file, with a note of what was skipped."""
    reading = read_counters(file)
    if reading.note:
        report(f"{file}: {reading.note}")
    return reading.ports


def hot_links(
    file: Path, fabric: Path | None, before: Path | None, allocation: Path | None, seconds: str | None
) -> Answer:
    """The hot links of a real cluster, for ``analyze --counters``."""
    if fabric is None:
        raise refused("--counters", "needs the fabric, for the links that ports send over", allowed="--fabric FILE")
    span = None if seconds is None else quantity_of("--over", seconds, positive=True) / 10**12
    if span is not None and before is None:
        note = "needs two readings: the counts of one are those since the counters were last cleared"
        raise refused("--over", note, seconds, "together with --before FILE")
    wiring = read_wiring(fabric)
    _, places = _read(file, before, wiring)
    built = wiring.fabric()
    jobs, remarks = ({}, []) if allocation is None else shared.read_allocation(allocation, built)
    report(*remarks)
    hot = shared.hot_links(places or (), built, jobs, span, shared.without_speed(wiring))
    if span and any(link.utilisation is None for link in hot):
        report(f"{fabric}: some cables have no speed, so there is no utilisation of their links")
    several = [link for link in hot if len(link.jobs) > 1]
    data: dict[str, Any] = {"links": [asdict(link) for link in hot], "shared": len(several)}
    roots = None if span is None else shared.roots(places or (), built, jobs, span)
    if roots is not None:
        data["roots"] = [asdict(root) for root in roots]
    rates, names = built.bandwidths_of_hosts(), built.host_names
    mixed = [mixed_speeds(name, job.hosts, rates, names) for name, job in jobs.items()]
    data["notes"] = [note for note in mixed if note]
    if jobs:
        data["links_without_job"] = sum(bool(link.sent_bytes) and not link.jobs for link in hot)
    return Answer(data, [view(hot, jobs, roots, data["notes"])])
