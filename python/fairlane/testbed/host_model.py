"""What the simulator has to know about hosts and protocol, fitted on isolated runs.

Two numbers stand for TCP, IP, Ethernet, the kernel and the MPI library:

- **efficiency**: the share of a link's rate that frames with payload have. Acknowledgements of the other direction, one
  for two full frames, take at least ``ack_share``.
- **overhead**: the time that a send, and a receive, occupies a rank.

They minimise the squared differences of the logarithms of measured and simulated times per iteration of the isolated
jobs. What happens when jobs run together has no part in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy

LOWEST_EFFICIENCY = 0.5
"""The fit looks for efficiencies from here on."""
LONGEST_OVERHEAD_S = 0.01
"""The fit looks for overheads up to this, s."""
_SHORTEST_OVERHEAD_S = 1e-6
_START = (0.95, 50e-6)
_STEP = 0.05  # of finite differences, relative: simulated times have steps of packets


@dataclass(frozen=True)
class HostModel:
    """How hosts and protocol differ from ideal ones."""

    efficiency: float
    """Share of a link's rate that frames with payload have, up to 1."""
    overhead_s: float
    """Time that a send or a receive occupies a rank, s."""


@dataclass(frozen=True)
class Fit:
    """A fitted model, and how well it describes the isolated runs."""

    model: HostModel
    measured_s: Mapping[str, float]
    """Measured time per iteration by job, s."""
    simulated_s: Mapping[str, float]
    """Simulated time per iteration by job, s."""

    @property
    def error(self) -> float:
        """Root mean square of the relative differences."""
        squares = [(self.simulated_s[job] / time - 1) ** 2 for job, time in self.measured_s.items()]
        return sqrt(sum(squares) / len(squares))


def ack_share(frame: int, ack: int) -> float:
    """The share of a link that acknowledgements take while both directions send full frames; sizes in bytes."""
    return ack / (2 * frame + ack)


def fit(
    measured_s: Mapping[str, float], simulate: Callable[[HostModel], Mapping[str, float]], highest: float = 1.0
) -> Fit:
    """The model with which simulated times per iteration are nearest to the measured ones.

    Args:
        measured_s: Time per iteration of each isolated job, s.
        simulate: The same of the simulated jobs, for a model.
        highest: The highest efficiency.
    """
    from scipy.optimize import least_squares

    def model_of(values: "numpy.typing.NDArray[numpy.float64]") -> HostModel:
        return HostModel(float(values[0]), exp(float(values[1])))

    def residuals(values: "numpy.typing.NDArray[numpy.float64]") -> list[float]:
        simulated = simulate(model_of(values))
        return [log(simulated[job] / time) for job, time in measured_s.items()]

    bounds = ([LOWEST_EFFICIENCY, log(_SHORTEST_OVERHEAD_S)], [highest, log(LONGEST_OVERHEAD_S)])
    start = [min(_START[0], highest - _STEP), log(_START[1])]
    found = least_squares(
        residuals,
        start,
        bounds=bounds,
        x_scale=[0.05, 1.0],
        diff_step=[_STEP, _STEP],
        xtol=1e-3,
        ftol=1e-4,
        max_nfev=20,
    )
    model = model_of(found.x)
    return Fit(model, dict(measured_s), dict(simulate(model)))
