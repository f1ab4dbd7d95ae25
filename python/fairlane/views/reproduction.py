"""Reproductions of papers: claims with their verdicts, numbers against bands, figures, times of simulations."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import polars as pl

from fairlane.core.wording import listed, percent, plural, seconds, significant, some
from fairlane.results.reproduction import (
    FigureData,
    ReproductionResults,
    claims_of,
    clause_words,
    explained,
    held_of,
    numbers_of,
    spread_of,
)
from fairlane.views import robustness
from fairlane.views.bands import band_chart
from fairlane.views.model import Chart, View, lines_of, remarks_of
from fairlane.views.tables import Bad, Column, Row, Table, naming
from fairlane.views.vegalite import completed, fields_of, has_boxes

PICTURES = {"claims": "numbers of the claims against their bands"}
"""Its pictures, and what they show."""
ORDER = ("holds", "holds under stated conditions", "contradicted", "undecided", "calibrated", "scaled", "not run")
"""Verdicts in the order in which they are counted."""
_WHERE = ("facet", "row", "column", "y", "x", "color")
"""Channels that say where a value is."""
_NUMBERS = ("quantitative", "temporal")
_BAD = ("does not hold", "contradicted")


def view(every: Mapping[str, ReproductionResults]) -> View:
    """One reproduction, or several against each other."""
    rows = [row for name, reproduction in every.items() for row in _numbers(name, reproduction)]
    numbers = [row for row in rows if row["number"] is not None]
    maps = {
        name: reproduction.robustness for name, reproduction in every.items() if reproduction.robustness is not None
    }
    verdicts = lines_of(every, _verdicts)
    return View(
        title=", ".join(dict.fromkeys(reproduction.meta.title for reproduction in every.values())),
        headline="\n".join(verdicts),
        facts=lines_of(every, _facts),
        parts=[
            _claims(every),
            *band_chart(every, rows, "; ".join(verdicts), _held(numbers)),
            _table(every, numbers),
            *_figures(every),
            *(robustness.parts(maps) if maps else []),
            _simulations(every),
        ],
        remarks=[_EXPLAINED, *remarks_of(every, _remarks)],
        provenance={name: _provenance(reproduction) for name, reproduction in every.items()},
    )


_EXPLAINED = (
    "A clause holds if its numbers are in their bands in at least 90% of the replicates, does not hold at 10% or "
    "fewer, and is undecided between. Calibrated: an input was chosen by the number."
)


def _verdicts(reproduction: ReproductionResults) -> str:
    counts = Counter(settings[0][0]["verdict"] for settings in claims_of(reproduction.verdicts))
    known = [verdict for verdict in (*ORDER, *counts) if counts[verdict]]
    counted = [f"{counts[name]} {name.replace('holds', 'hold', counts[name] > 1)}" for name in dict.fromkeys(known)]
    return f"{reproduction.headline()}: {listed(counted, 7)}"


def _facts(reproduction: ReproductionResults) -> str:
    meta = reproduction.meta
    replicates = reproduction.verdicts["replicate"].drop_nulls().n_unique()
    scaled = ["scaled: a trial, not a verdict"] if meta.quick else []
    ran = f"{plural(meta.simulations, 'simulation')}, {seconds(meta.cpu_s)} of processor time"
    simulated = ran if meta.simulations else "judged by stored numbers"
    return "; ".join([plural(max(1, replicates), "replicate"), simulated, *scaled])


def _provenance(reproduction: ReproductionResults) -> dict[str, object]:
    meta = reproduction.meta
    cited = {"paper": meta.paper, "citation": meta.citation}
    return {"folder": reproduction.folder, **cited, "fairlane": meta.version, "digest of the simulator": meta.simulator}


def _remarks(reproduction: ReproductionResults) -> Iterator[str]:
    for setting in chain.from_iterable(claims_of(reproduction.verdicts)):
        gaps = (
            f"clause {row['clause']} (band {row['band']}): its query has no rows"
            for row in setting
            if row["number"] is None
        )
        if missing := setting[0]["missing"] or [*gaps]:
            yield f"{_titled(setting[0])}, missing: {', '.join(missing)}."
    if "error" in reproduction.cells.columns:
        failed = reproduction.cells.drop_nulls("error")
        yield from (f"Failed: {row['cell']}: {row['error']}" for row in failed.iter_rows(named=True))
    yield from reproduction.meta.notes


def _titled(row: Row) -> str:
    """Return the claim's name, with that of the variant."""
    return f"{row['claim']}, {row['variant']}" if row["variant"] else row["claim"]


def _together(every: Mapping[str, ReproductionResults], table: str) -> pl.DataFrame | None:
    """A table of all results, with the name of each; None if there is none."""
    known = {
        name: getattr(reproduction, table) for name, reproduction in every.items() if getattr(reproduction, table).width
    }
    frames = [frame.select(pl.lit(name).alias("result"), pl.all()) for name, frame in known.items()]
    return pl.concat(frames, how="diagonal_relaxed") if frames else None


def _claims(every: Mapping[str, ReproductionResults]) -> Table:
    """A row for each claim; of several results, with the verdict of each."""
    rows: dict[str, dict[str, Any]] = {}
    for name, reproduction in every.items():
        for (claim, *_), *_ in claims_of(reproduction.verdicts):
            title = _titled(claim)
            told = {"claim": title, "where": claim["where"], "paper": claim["paper"]}
            row = rows.setdefault(title, {"key": title, **told, "verdicts": {}})
            row[f"verdict {name}"] = Bad(claim["line"]) if claim["verdict"] in _BAD else claim["line"]
            row["verdicts"][name] = claim["verdict"]
    shown = [
        Column("claim", "claim"),
        Column("where", "where", left=True, wrap=True, drop=2),
        Column("the paper reports", "paper", left=True, wrap=True, drop=1),
    ]
    headers = {name: name if len(every) > 1 else "verdict" for name in every}
    shown += [Column(header, f"verdict {name}", left=True, wrap=True) for name, header in headers.items()]
    changed = [key for key, row in rows.items() if len({row["verdicts"].get(name) for name in every}) > 1]
    sentence = "; ".join(lines_of(every, _verdicts))
    if len(every) > 1:
        which = f": {some(changed, 4)}" if changed else ""
        sentence = f"{len(changed)} of {plural(len(rows), 'claim')} differ{which}"
    return Table(
        shown, [*rows.values()], "Claims", sentence=f"{sentence}.", keyed=True, data=_together(every, "claims")
    )


def _numbers(name: str, reproduction: ReproductionResults) -> Iterator[dict[str, Any]]:
    """A row for each claim, by each of its variants, with a ``number`` of None; and one for each of its numbers.

    A ``key`` is that of the claim or clause, by which a page chooses it; ``line`` is that of the row.
    """
    for setting in chain.from_iterable(claims_of(reproduction.verdicts)):
        row, title = setting[0], _titled(setting[0])
        base = {"result": name, "claim": title, "where": row["where"]}
        numbers = [{**base, **_row(title, number)} for number in numbers_of(setting)]
        if numbers:
            yield {**base, "number": None, "key": title, "line": title, "verdict": row["claim_words"]}
        yield from numbers


def _row(title: str, number: Sequence[Row]) -> dict[str, Any]:
    """A number of a clause, written."""
    row = number[0]
    return {
        "clause": row["clause"],
        "key": f"{title} {row['clause']}",
        "line": f"{title} {row['clause']} {row['number']}",
        "measured": row["measured"],
        "spread": spread_of(number),
        "band": row["band"],
        "held": f"{held_of(number)} of {len(number)}",
        "reported": row["reported"] or None,
        "verdict": "" if row["number"] else clause_words(row),
        "explained": explained(row),
        "bad": row["clause_verdict"] in _BAD,
        "number": number,
    }


def _table(every: Mapping[str, ReproductionResults], numbers: Sequence[Row]) -> Table:
    """A row for each number of each clause."""
    shown = [
        *naming(every, "result"),
        Column("claim", "claim", left=True),
        Column("measured", "measured", left=True, wrap=True),
        Column("median (range)", "spread"),
        Column("band", "band"),
        Column("in it", "held"),
        Column("paper", "reported", left=True, wrap=True, drop=2),
        Column("verdict", lambda row: (Bad if row["bad"] else str)(row["verdict"]), left=True, wrap=True, drop=1),
    ]
    rows: list[Row | None] = []
    for _, group in groupby(numbers, lambda row: row["claim"]):
        first, *others = group
        rows += [*([None] if rows else []), first, *({**row, "claim": ""} for row in others)]
    return Table(shown, rows, "Numbers", sentence=_held(numbers), keyed=True, data=_together(every, "clauses"))


def _held(rows: Sequence[Row]) -> str:
    """Count the numbers in their bands."""
    held = [(held_of(row["number"]), len(row["number"])) for row in rows]
    if not held:
        return "No number was measured."
    every, none = sum(count == of for count, of in held), sum(count == 0 for count, _ in held)
    return f"{every} of {plural(len(held), 'number')} are in their bands in every replicate, {none} in none."


def _figures(every: Mapping[str, ReproductionResults]) -> Iterator[Chart]:
    for number, (name, reproduction) in enumerate(every.items(), 1):
        before, suffix = (f"{name}: ", f"-{number}") if len(every) > 1 else ("", "")
        yield from (chart_of(figure, before, suffix) for figure in reproduction.figures)


def chart_of(figure: FigureData, before: str = "", suffix: str = "") -> Chart:
    """A figure of ``figures.toml``; ``before`` is put before its title, and ``suffix`` after its name."""
    tables = [pl.DataFrame(of.columns, strict=False) for of in figure.charts]
    specs = [of.spec for of in figure.charts]
    panels, boxes = completed(list(zip(specs, tables, strict=True)), figure.columns)
    kept = [
        f"{table.height:,} of {plural(of.rows, 'row')}, evenly spaced{others}."
        for of, table in zip(figure.charts, tables, strict=True)
        for others in ("" if has_boxes(of.spec) else ", and the extremes",)
        if table.height < of.rows
    ]
    note = f"{figure.note.removesuffix('.')}." if figure.note else ""
    numbered = [table.select(pl.lit(at).alias("chart"), pl.all()) for at, table in enumerate(tables, 1)]
    return Chart(
        f"figure-{figure.file}{suffix}",
        f"{before}{figure.title}",
        panels,
        _range(specs[0], tables[0]),
        " ".join(filter(None, (note, boxes, *kept))),
        frame=pl.concat(numbered, how="diagonal_relaxed"),
        picture=f"{figure.file}{suffix}",
        wide=len(panels.content["concat"]) > 1,
        headline=f"{before}{figure.title}",
        alone=True,
    )


def _range(spec: Mapping[str, Any], table: pl.DataFrame) -> str:
    """The range of the values of a chart, and where its ends are."""
    channels = {channel: of for channel, of in fields_of(spec) if of["field"] in table.columns}
    fields = {channel: of["field"] for channel, of in channels.items()}
    numbers = (
        axis_name
        for axis_name in ("y", "x", "color")
        if channels.get(axis_name, {}).get("type", _NUMBERS[0]) in _NUMBERS
    )
    axis = next(
        (axis_name for axis_name in numbers if axis_name in fields and table[fields[axis_name]].dtype.is_numeric()),
        None,
    )
    if axis is None or not table[fields[axis]].count():
        return f"{plural(table.height, 'row')}."
    rows = table.drop_nulls(fields[axis]).sort(fields[axis])
    form = percent if "%" in str((channels[axis].get("axis") or {}).get("format")) else significant
    others = [fields[channel] for channel in _WHERE if channel in fields and fields[channel] != fields[axis]]
    ends = []
    for row in (rows.row(0, named=True), rows.row(-1, named=True)):
        known = {name: row[name] for name in others}
        where = [f"{name} {significant(of)}" if isinstance(of, int | float) else str(of) for name, of in known.items()]
        at = f" ({', '.join(dict.fromkeys(where))})" if where else ""
        ends.append(f"{form(row[fields[axis]])}{at}")
    label = str(channels[axis].get("title") or fields[axis]).replace("_", " ")
    return f"{label[0].upper()}{label[1:]}: from {' to '.join(ends)}.".replace("\n", " ")


def _simulations(every: Mapping[str, ReproductionResults]) -> Table:
    data = _together(every, "cells")
    data = pl.DataFrame() if data is None else data
    failed = int(data["error"].is_not_null().sum()) if "error" in data.columns else 0
    sentence = "No simulation: the claims are judged by stored replicates."
    if data.height:
        longest = data.sort("cpu_s", nulls_last=False).row(-1, named=True)
        time = "" if longest["cpu_s"] is None else f"; the longest took {seconds(longest['cpu_s'])} of processor time"
        sentence = f"{plural(data.height, 'simulation')}, {failed} failed{time}."
    shown = [
        *naming(every, "result"),
        Column("simulation", "cell", left=True, wrap=True),
        Column("wall time", "wall_s", seconds),
        Column("processor time", "cpu_s", seconds),
        Column("error", "error", Bad, left=True, wrap=True),
    ]
    return Table(shown, data.to_dicts(), "Simulations", sentence=sentence, only_page=True, data=data)
