"""The folder of a testbed's results: measurements by repetition, tables as CSV, the host model, and a figure."""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import write_text
from fairlane.results.errors import writing
from fairlane.testbed.compare import Verdict
from fairlane.testbed.file import TestbedFile
from fairlane.testbed.host_model import Fit

META = "testbed.json"
"""The file with the testbed's file, the host model and the verdict."""
MEASURED = "measured"
"""The folder with a file for each repetition."""
_MEASURED_KEYS = ("seed", "fabric", "jobs", "qos", "measure")


@dataclass(frozen=True)
class Results:
    """What was measured and predicted."""

    file: TestbedFile
    fit: Fit
    w: pl.DataFrame
    """Measured and predicted W: a row for each job."""
    effects: pl.DataFrame | None
    """Measured and predicted effects of treatments: a row for each treatment and job."""
    verdict: Verdict
    control: pl.DataFrame | None = None
    """What the agent's settings changed: a row for each job."""
    decisions: tuple[str, ...] = ()
    """What the agent reported."""
    steered: pl.DataFrame | None = None
    """What a controller changed: a row for each job and one for their mean."""
    periods: pl.DataFrame | None = None
    """The periods of the controller: a row for each repetition, period and job."""
    costs: tuple[str, ...] = ()
    """What reading progress and changing settings took."""

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables by name."""
        found = {"w": self.w, "effects": self.effects, "agent": self.control, "steered": self.steered}
        return {name: table for name, table in found.items() if table is not None}

    def save(self, folder: Path) -> None:
        """Writes tables and ``testbed.json`` into a folder."""
        for name, table in self.tables.items():
            with writing(folder / f"{name}.csv"):
                table.write_csv(folder / f"{name}.csv", float_precision=6)
        if self.periods is not None:
            with writing(folder / "periods.parquet"):
                self.periods.write_parquet(folder / "periods.parquet")
        write_text(folder / META, json.dumps(self.written(), indent=1) + "\n")

    def written(self) -> dict[str, Any]:
        """What is stored besides the tables."""
        return {
            **measured_keys(self.file),
            "host_model": asdict(self.fit.model),
            "isolated_measured_s": dict(self.fit.measured_s),
            "isolated_simulated_s": dict(self.fit.simulated_s),
            "spearman": self.verdict.spearman,
            "most_difference": self.verdict.most_difference,
            "signs": list(self.verdict.signs),
            "decisions": list(self.decisions),
            "costs": list(self.costs),
        }


def measured_keys(file: TestbedFile) -> dict[str, Any]:
    """The parts of the file on which measurements depend."""
    found: dict[str, Any] = file.model_dump(mode="json", include=set(_MEASURED_KEYS), exclude_none=True)
    found["measure"].pop("repetitions")
    return {"testbed": found}


def prepare(folder: Path, file: TestbedFile, *, resume: bool) -> None:
    """Makes the folder of results, or finds that it has measurements of the same testbed.

    Raises ``ScenarioError`` if it has others, or is not empty and ``resume`` is false.
    """
    meta = folder / MEASURED / META
    if folder.exists() and any(folder.iterdir()):
        if not resume:
            raise ScenarioError(Problem("--out", "directory exists; choose another or pass --resume", str(folder)))
        stored = json.loads(meta.read_text(encoding="utf-8")) if meta.is_file() else None
        if stored != measured_keys(file):
            words = "has measurements of another testbed or none"
            raise ScenarioError(Problem("--out", words, str(folder), "the folder of the same testbed, or a new one"))
        return
    meta.parent.mkdir(parents=True, exist_ok=True)
    write_text(meta, json.dumps(measured_keys(file), indent=1) + "\n")


def fresh(folder: Path) -> Path:
    """A folder without what an earlier run of the agent has left in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
