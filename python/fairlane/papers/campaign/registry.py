"""Registered predictions: what was predicted by which model, before it was compared; kept, and never changed.

Each registration is a folder in ``predictions/``: ``cells.csv``, and ``registration.json`` with the digests of that
table, of the model (the scenario with the values of its parameters, and the code of the simulator), and of the cells
and nodes, with a checksum of its own and the checksum of the registration before it. So a table that has changed, or a
registration that is missing in between, is found. A prediction of a changed model is a new registration.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.files import CHECKSUM, checksum, load_sealed, save_sealed, write_text
from fairlane.papers.campaign.cells import KEYS, Cells
from fairlane.papers.campaign.predicting import SCHEMA, shown
from fairlane.papers.campaign.simulating import Model
from fairlane.study.tasks.closure import sources

FOLDER = "predictions"
_META, _TABLE = "registration.json", "cells.csv"
_CODE = "fairlane.papers.campaign.predicting"


@dataclass(frozen=True)
class Registration:
    """A registered prediction."""

    folder: Path
    meta: Mapping[str, Any]

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return int(self.meta["number"])

    @property
    def name(self) -> str:
        """Number and label."""
        return self.folder.name

    @cached_property
    def table(self) -> pl.DataFrame:
        """The predicted cells, as ``predicting.SCHEMA``."""
        return pl.read_csv(self.folder / _TABLE, schema=pl.Schema(SCHEMA))

    @property
    def keys(self) -> set[tuple[Any, ...]]:
        """The keys of the predicted cells."""
        return set(self.table.select(KEYS).iter_rows())


def register(model: Model, table: pl.DataFrame, label: str, note: str, now: datetime) -> Registration:
    """Registers a prediction as the newest one. Raises ``ScenarioError`` if an earlier one has changed."""
    folder = model.campaign.folder
    before = registered(folder)
    number = len(before) + 1
    csv = table.write_csv()
    meta = {
        "number": number,
        "label": label,
        "note": note,
        "registered": now.isoformat(timespec="seconds"),
        "fairlane": version("fairlane"),
        "code": sources(_CODE),
        "model": digest_of(model),
        "cells": model.cells.digest,
        "table": sha256(csv.encode()).hexdigest(),
        "parameters": dict(shown(model)),
        "replicates": model.campaign.measure.replicates,
        "count": table.height,
        "before": before[-1].meta[CHECKSUM] if before else None,
    }
    new = folder / FOLDER / f"{number:02}-{label}"
    try:
        new.mkdir(parents=True)
    except OSError as error:
        raise ScenarioError(Problem.of_file(new, f"cannot be made: {error.strerror}")) from None
    write_text(new / _TABLE, csv)
    save_sealed(meta, new / _META)
    return Registration(new, {CHECKSUM: checksum(meta), **meta})


def digest_of(model: Model) -> str:
    """The same for the same scenario, jobs, and rules of measuring."""
    campaign = model.campaign
    parts = [model.data, campaign.victims, campaign.aggressors, campaign.job, dict(model.values)]
    text = json.dumps([*parts, campaign.measure.model_dump(mode="json")], sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()


def registered(folder: Path) -> Sequence[Registration]:
    """The registrations of a campaign, oldest first. Raises ``ScenarioError`` if one has changed or is missing."""
    registrations: list[Registration] = []
    for path in sorted(path for path in (folder / FOLDER).glob("*") if (path / _META).is_file()):
        meta, problem = load_sealed(path / _META)
        if problem is not None:
            raise ScenarioError(problem)
        sealed = {CHECKSUM: checksum(meta), **meta}
        try:
            content = (path / _TABLE).read_bytes()
        except OSError as error:
            raise ScenarioError(Problem.of_file(path / _TABLE, f"cannot be read: {error.strerror}")) from None
        if sha256(content).hexdigest() != meta["table"]:
            raise ScenarioError(Problem.of_file(path / _TABLE, "has changed since it was registered"))
        before = registrations[-1].meta[CHECKSUM] if registrations else None
        if meta["before"] != before or meta["number"] != len(registrations) + 1:
            message = "does not follow the registration before it: one was changed or is missing"
            raise ScenarioError(Problem.of_file(path / _META, message))
        registrations.append(Registration(path, sealed))
    return registrations


def chosen(cells: Cells, number: int | None) -> tuple[Registration, Sequence[Registration]]:
    """A registration by its number, by default the newest, and all. Raises ``ScenarioError`` if there is none."""
    folder = cells.campaign.folder
    every = registered(folder)
    if not every:
        message = "no prediction is registered: run fairlane campaign predict first"
        raise ScenarioError(Problem("DIR", message, str(folder)))
    if number is None:
        return every[-1], every
    if not 1 <= number <= len(every):
        raise ScenarioError(Problem("--registration", "is not registered", number, f"1 to {len(every)}"))
    return every[number - 1], every
