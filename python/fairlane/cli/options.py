"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Assignments", "RunFolder", "ScenarioFile"]

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="The scenario, a TOML file.", show_default=False)
]
"""A scenario's file."""
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help='Replace a value, as network.mtu="2 KiB"; can be given many times.'
    ),
]
"""Values that replace those of the file."""
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]
"""A run's folder."""
