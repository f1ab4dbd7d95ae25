"""Hosts with power: what sockets draw, what a cap does to computations, and the energy of a run.

``Socket``, ``stretch`` and ``JobPower`` are the model, ``PowerTable`` the machine as a scenario describes it, and
``power`` and ``by_job`` the observations.
"""

from fairlane.power.account import by_job, power
from fairlane.power.model import JobPower, Pace, PowerTable, Socket, job_power, stretch

__all__ = ["JobPower", "Pace", "PowerTable", "Socket", "by_job", "job_power", "power", "stretch"]
