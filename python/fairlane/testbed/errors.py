"""What can go wrong with a testbed while it is set up or measured."""

from fairlane.errors import FairlaneError, RunError


class TestbedError(FairlaneError, RuntimeError):
    """The machine cannot have the testbed: a program or a right is missing, or a command for the network failed."""


class MeasurementError(RunError):
    """A job of the testbed ended, or stood still, while it was measured."""
