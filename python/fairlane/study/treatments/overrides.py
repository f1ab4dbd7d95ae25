"""A treatment by other values of scenario keys: service levels, arbitration weights, placement, routing."""

from typing import ClassVar

from typing_extensions import override

from fairlane.study.pinned import Pinned
from fairlane.study.treatments.base import SIMULATE, Treatment
from fairlane.tasks.task import Task


class Overrides(Treatment):
    """Other values of scenario keys for the whole run."""

    key: ClassVar[str] = "set"

    @override
    def treated(self, pinned: Pinned, name: str) -> Task:
        return pinned.task(SIMULATE, name)
