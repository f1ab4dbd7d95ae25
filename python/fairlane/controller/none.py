"""No control: every rank stays on the default level. What other controllers are compared with."""

from typing import ClassVar

from typing_extensions import override

from fairlane.controller.base import Controller, Settings, Work

__all__ = ["NoControl"]


class NoControl(Controller):
    """Leaves everything as the scenario has it."""

    needs_weights: ClassVar[bool] = False

    @override
    def observe(self, work: Work) -> Settings:
        """Nothing."""
        del work
        return Settings()
