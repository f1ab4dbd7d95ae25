"""The page of a comparison: ratio against ratio, bars, cells that were predicted wrong, and all registrations."""

from typing import Any

from fairlane.campaign.cells import KEYS
from fairlane.campaign.comparing import FALSE_ALARM, FAR, MISS, RIGHT, Comparison, compared
from fairlane.campaign.registry import Registration
from fairlane.errors import ScenarioError
from fairlane.report.meta import meta_of
from fairlane.report.page import html
from fairlane.wording import plural


def html_of(found: Comparison) -> str:
    """The page as HTML. Raises ``ResultsError`` if fairlane was built without the library that draws charts."""
    return html(found.cells.campaign.title, data_of(found), "campaign")


def data_of(found: Comparison) -> dict[str, Any]:
    """What the page contains, as JSON."""
    campaign, judging = found.cells.campaign, found.cells.campaign.judging
    rows = found.table.to_dicts()
    for row in rows:
        judged = row["msg_bytes"] >= judging.smallest
        row["parts"] = [
            name for name, nodes in found.nodes.items() if judged and row["nodes"] in (nodes or [row["nodes"]])
        ]
    meta = found.registration.meta
    facts = [plural(found.table.height, "cell"), plural(len(found.registrations), "registered prediction")]
    provenance = {
        "prediction": found.registration.name,
        "registered": meta["registered"],
        "fairlane": meta["fairlane"],
        "model": meta["model"],
        "parameters": ", ".join(f"{name} = {value}" for name, value in meta["parameters"].items()),
        "measured figures": "; ".join(campaign.sources),
    }
    return {
        "meta": meta_of(f"{campaign.title}: measured and predicted", found.registration.name, facts, provenance),
        "cells": rows,
        "factor": judging.factor,
        "bars": {
            name: [{"what": it.what, "text": it.text, "holds": it.holds} for it in of]
            for name, of in found.parts.items()
        },
        "registrations": [_registration(found, one) for one in found.registrations],
        "sentences": sentences(found),
        "verdicts": (
            f"A miss: a ratio above {judging.slow_above:g} was measured, at most {judging.calm_at_most:g} predicted. "
            f"A false alarm: at most {judging.calm_below:g} measured, more than {judging.calm_at_most:g} predicted. "
            f"Far: slowed down, but not within a factor of {judging.factor:g}."
        ),
        "compare": None,
    }


def sentences(found: Comparison) -> dict[str, str]:
    """What there is to say above each card."""
    verdicts = found.table["verdict"].drop_nulls()
    counts = {name: int((verdicts == name).sum()) for name in (RIGHT, FAR, MISS, FALSE_ALARM)}
    of = plural(len(verdicts), "cell")
    reached = [bar.holds for bar in found.parts["judged"] if bar.holds is not None]
    return {
        "ratios": f"{counts[RIGHT]} of {of} beside an aggressor are as predicted.",
        "bars": f"{sum(reached)} of {plural(len(reached), 'bar')} are reached on the cells that are judged.",
        "wrong": f"{plural(counts[MISS], 'miss', 'misses')}, {plural(counts[FALSE_ALARM], 'false alarm')}, "
        f"{counts[FAR]} by another factor.",
        "cells": "Time of an iteration, that of the slowest rank; intervals of predictions are in the CSV.",
        "registrations": "All predictions that were registered before they were compared, and their bars.",
    }


def _registration(found: Comparison, one: Registration) -> dict[str, Any]:
    """A registration with its bars, if it has the same cells."""
    own = {tuple(row) for row in found.table.select(KEYS).iter_rows()}
    wanted = [cell for cell in found.cells.all if cell.key in own & one.keys]
    try:
        bars = compared(found.cells, wanted, one.number).parts["judged"]
    except ScenarioError:
        bars = []
    words = "; ".join(f"{bar.what}: {bar.text}" for bar in bars if bar.found is not None)
    return {
        **{key: one.meta[key] for key in ("number", "label", "registered", "fairlane", "count", "note")},
        "bars": words,
    }
