"""How the file of a picture looks."""

from dataclasses import dataclass
from typing import Literal

from fairlane.colours import Theme


@dataclass(frozen=True)
class Look:
    """How the file of a picture looks."""

    theme: Theme = "light"
    """Dark ink on white, or light ink on a dark ground."""
    transparent: bool = False
    """Whether there is no background."""
    format: Literal["png", "svg", "pdf"] = "png"
    """The format of the file."""
