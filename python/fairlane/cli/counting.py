"""Port counters: counters export, counters import, and what analyze --counters shows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option, write_table
from fairlane.cli.exchanging import write_folder
from fairlane.cli.options import RunFolder, duration_of, fresh, refused, report
from fairlane.wording import percent, plural

if TYPE_CHECKING:
    from fairlane.cli.terminal import Part
    from fairlane.counters import Allocation, HotLink, Located, PortCounters
    from fairlane.fabric import Fabric, Wiring

Before = Annotated[
    Path | None, Option(metavar="FILE", help="Counters read before, of the same format: use what was added since.")
]
Dump = Annotated[
    Path | None,
    Option("--fabric", metavar="FILE", help="The fabric, as fabric import reads it, e.g. of ibnetdiscover."),
]
_END = 2**32 - 1  # at which counters of 32 bits stop
_STOPPING = ("PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts", "PortXmitWait")
_SHOWN = 20  # links that are listed


def export_counters(
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
    from fairlane.counters import export, snapshots
    from fairlane.fabric import read_wiring
    from fairlane.results.store import load_run

    fresh(out)
    length = None if tick is None else duration_of("--tick", tick)
    if length == 0:
        raise refused("--tick", "out of range", tick, "above 0")
    found = snapshots(load_run(run), read_wiring(guids) if guids else None, length)
    if any(port.guid is None for port in found[-1].ports):
        words = "has no node for some ports of the run"
        raise refused("--guids", words, str(guids), "a dump of the same fabric")
    files = export(found)
    write_folder(out, files, "--out")
    paths = [out / name for name in files]
    words = f"{plural(len(found[-1].ports), 'port')}, {plural(len(found), 'time')}"
    return Answer(
        {"ports": len(found[-1].ports), "times_ps": [one.at_ps for one in found], "files": paths},
        [words, *map(str, paths)],
        out,
    )


def import_counters(
    file: Annotated[
        Path, Argument(metavar="FILE", help="Output of perfquery or ibqueryerrors, Prometheus text, or files of sysfs.")
    ],
    before: Before = None,
    fabric: Dump = None,
    out: Annotated[Path | None, out_option("Where to write the table: .parquet, or else CSV.")] = None,
) -> Answer:
    """Read port counters of a real cluster as a table with a row for each port.

    Takes the output of perfquery, of ibqueryerrors --counters and of grep . /sys/class/infiniband/*/ports/*/counters/*,
    and Prometheus text of node_exporter and of the InfiniBand exporters. With --fabric, ports have the names and
    numbers of the fabric. Data is in words of 4 bytes.
    """
    from fairlane.counters import table_of
    from fairlane.fabric import read_wiring

    ports, places = _read(file, before, None if fabric is None else read_wiring(fabric))
    table = table_of(ports if places is None else places)
    if out is not None:
        write_table(table, out)
    text = table.write_csv().removesuffix("\n") if out is None else f"{plural(table.height, 'port')} in {out}"
    return Answer(table, [text], out)


def _read(
    file: Path, before: Path | None, wiring: "Wiring | None"
) -> "tuple[list[PortCounters], list[Located] | None]":
    from fairlane.counters import located, since

    ports = _noted(file)
    if full := sum(any(port.values.get(name) == _END for name in _STOPPING) for port in ports):
        effect = "" if before is None else ", so increments are too small"
        words = f"counters of data, packets or waiting are at the end of 32 bits{effect}"
        report(f"{plural(full, 'port')}: {words}; perfquery -x has counters of 64 bits")
    if before is not None:
        ports = since(ports, _noted(before), file)
    if wiring is None:
        return ports, None
    places = located(ports, wiring, file)
    if left_out := len(ports) - len(places):
        report(f"{file}: {plural(left_out, 'port')} without a cable in the fabric left out")
    return ports, places


def _noted(file: Path) -> "list[PortCounters]":
    """The counters of a file, with a note of what was skipped."""
    from fairlane.counters import read_counters

    reading = read_counters(file)
    if reading.note:
        report(f"{file}: {reading.note}")
    return reading.ports


def analyze_counters(
    file: Path, fabric: Path | None, before: Path | None, allocation: Path | None, seconds: str | None
) -> Answer:
    """The hot links of a real cluster, for ``analyze --counters``."""
    from fairlane.counters import hot_links, roots, without_speed
    from fairlane.fabric import read_wiring
    from fairlane.fabric.speeds import mixed_speeds
    from fairlane.views.congestion import UNSATURATED, roots_table

    if fabric is None:
        raise refused("--counters", "needs the fabric, for the links that ports send over", allowed="--fabric FILE")
    span = None if seconds is None else duration_of("--over", seconds) / 10**12
    if span is not None and before is None:
        words = "needs two readings: the counts of one are those since the counters were last cleared"
        raise refused("--over", words, seconds, "together with --before FILE")
    if span == 0:
        raise refused("--over", "out of range", seconds, "above 0")
    wiring = read_wiring(fabric)
    _, places = _read(file, before, wiring)
    built = wiring.fabric()
    jobs = {} if allocation is None else _jobs(allocation, built)
    found = hot_links(places or (), built, jobs, span, without_speed(wiring))
    if span and any(link.utilisation is None for link in found):
        report(f"{fabric}: some cables have no speed, so there is no utilisation of their links")
    shared = [link for link in found if len(link.jobs) > 1]
    data: dict[str, Any] = {"links": [asdict(link) for link in found], "shared": len(shared)}
    causes: list[Part] = []
    if span is not None:
        busy = roots(places or (), built, jobs, span)
        data["roots"] = [asdict(root) for root in busy]
        causes.append(roots_table(busy, _SHOWN) if busy else UNSATURATED)
    rates, names = built.bandwidths_of_hosts(), built.host_names
    mixed = [mixed_speeds(name, job.hosts, rates, names) for name, job in jobs.items()]
    data["notes"] = [words for words in mixed if words]
    if jobs:
        data["links_without_job"] = len(_without_job(found))
    return Answer(data, [*_text(found, jobs), *causes, *(f"Note: {note}" for note in data["notes"])])


def _text(found: "list[HotLink]", jobs: Mapping[str, Any]) -> "Iterator[Part]":
    from fairlane.views.tables import Column, Table, fixed
    from fairlane.wording import data_size

    columns = [
        Column("link", "link"),
        Column("role", "role", left=True),
        Column("sent", "sent_bytes", data_size),
        Column("PortXmitWait,\nticks", "wait_ticks"),
        Column("ticks\nper word", "wait_per_word", fixed(3)),
        Column("utilisation", "utilisation", percent),
        Column("jobs", "jobs", left=True, width=40),
    ]
    rows = [{**asdict(link), "jobs": ", ".join(link.jobs)} for link in found[:_SHOWN]]
    shown = [column for column in columns if any(row[str(column.value)] not in (None, "") for row in rows)]
    yield Table(shown or columns[:1], rows)
    if len(found) > _SHOWN:
        yield f"{len(found) - _SHOWN} more links; --json has all."
    if jobs:
        shared = [link for link in found if len(link.jobs) > 1 and link.role != "host"]
        words = f"{plural(len(shared), 'link')} between switches with counters are on routes of several jobs"
        yield f"{words}; routes are those of the fabric's tables, or up/down."
        used = sum(link.sent_bytes > 0 for link in found)
        yield f"Links with traffic that none of these jobs can cause: {len(_without_job(found)):,} of {used:,}."


def _without_job(links: "Iterable[HotLink]") -> "list[HotLink]":
    """Links with traffic and without a job."""
    return [link for link in links if link.sent_bytes and not link.jobs]


def _jobs(file: Path, fabric: "Fabric") -> "dict[str, Allocation]":
    """The jobs of a scenario with their rail policies, or those that Slurm lists."""
    from fairlane import Scenario
    from fairlane.counters import Allocation, read_allocation
    from fairlane.fabric import Fabric

    if file.suffix != ".toml":
        found, notes = read_allocation(file, fabric)
        for note in notes:
            report(note)
        return found
    resolved = Scenario.load(file).decide()
    names = Fabric.build(resolved.tables["fabric"]).host_names
    return {
        job.name: Allocation(fabric.host_numbers([names[host] for host in job.hosts]), job.rails)
        for job in resolved.jobs
    }
