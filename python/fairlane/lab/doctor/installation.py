"""Check fairlane itself: Python, the compiled core, libraries, extras, files of report pages, figures."""

import json
import os
import platform
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import metadata
from importlib.resources import as_file, files
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from fairlane.core.errors import EXTRAS
from fairlane.core.extension import provenance
from fairlane.core.signals import HANG_S
from fairlane.core.wording import listed, wall_time


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    """Everything that is needed is there."""
    MISSING = "missing"
    """Something optional is not installed: the commands that ``Check.needed_by`` names do not work."""
    WARNING = "warning"
    """It works, with a limitation."""
    BROKEN = "broken"
    """Something that is required is missing, too old or does not work."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    """Subject of the check, as ``Python`` or ``opensm``."""
    status: Status
    """How it ended."""
    found: str
    """A version, a path, an amount."""
    needed_by: str = ""
    """The commands that need it; empty for what all of them need."""
    todo: str = ""
    """Advice if it is not ``ok``."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs, where a sentence is not enough."""


@dataclass(frozen=True)
class Section:
    """Checks of one kind."""

    title: str
    checks: tuple[Check, ...]


PYTHON = (3, 11)
"""The oldest Python that works."""
BY_EXTRA = {
    "predict": "predict, learn, slowdown fit, reproduce",
    "schedule": "trace pattern, workload pattern, fabrics in GraphML, reproduce",
    "dask": "study --dask, study on Slurm",
    "serve": "serve",
    "timeline": "export --perfetto",
}
"""The commands that need an extra."""
CPU_FLAGS = {"sse3": "pni", "lahfsahf": "lahf_lm", "cmpxchg16b": "cx16", "pclmulqdq": "pclmulqdq"}
"""Features of x86-64 that Linux calls by another name than the compiler."""
_CPU_INFO = Path("/proc/cpuinfo")


def checks() -> Iterator[Check]:
    """All of them."""
    yield python()
    yield package()
    core_works = core()
    yield core_works
    yield from libraries()
    yield from extras()
    yield figures()
    if core_works.status is not Status.BROKEN:
        yield simulation()


def python() -> Check:
    """The interpreter."""
    version = platform.python_version()
    description = f"{version}, {platform.python_implementation()}, {sys.executable}"
    libc = " ".join(platform.libc_ver())
    data = {"version": version, "executable": sys.executable, "platform": platform.platform(), "libc": libc}
    if sys.version_info < PYTHON:
        needed = ".".join(map(str, PYTHON))
        return Check("Python", Status.BROKEN, description, todo=f"install Python {needed} or later", data=data)
    return Check("Python", Status.OK, description, data=data)


def package() -> Check:
    """The installed distribution, and whether its Python files are where it says."""
    home = Path(__file__).parents[2]
    data = {"folder": str(home)}
    try:
        version = metadata.version("fairlane")
    except metadata.PackageNotFoundError:
        words, todo = "not installed as a package; its version is unknown", "install its wheel, or make build"
        return Check("fairlane", Status.BROKEN, words, todo=todo, data=data)
    return Check("fairlane", Status.OK, f"{version}, {home}", data={"version": version, **data})


def core() -> Check:
    """The compiled simulator: whether it can be loaded, how it was built, and for which CPU."""
    again = "install the wheel again; in a source tree: make build"
    try:
        info = dict(ask("build_info"))
    except ChildError as error:
        return Check("core", Status.BROKEN, f"cannot be loaded: {error}", todo=again)
    release = info["opt_level"] in ("2", "3", "s", "z") and not info["debug_assertions"]
    kind = "release build" if release else f"debug build (opt-level {info['opt_level']})"
    text = f"{info['version']}, {kind}, {info['target']}, {info['compiler'].partition(' (')[0]}"
    if crates := provenance().get("crates"):
        text += f", with {listed(crates)}"
    absent = sorted(set(info["cpu_features"]) - cpu_features()) if cpu_features() else []
    version = _version("fairlane")
    if absent:
        message = f"{text}; built for CPU features that this machine does not have: {', '.join(absent)}"
        return Check("core", Status.BROKEN, message, todo="build it without -C target-cpu", data=info)
    if version is not None and version != info["version"]:
        message = f"{text}; the package is {version}"
        return Check("core", Status.BROKEN, message, todo=again, data=info)
    if not release:
        return Check("core", Status.WARNING, f"{text}: many times slower", todo="make build", data=info)
    return Check("core", Status.OK, text, data=info)


def cpu_features() -> set[str]:
    """The machine's CPU features by the names of the compiler; empty if they are not known."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return set()
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    plain = {flag.replace("_", ".") if flag.startswith("sse4") else flag for flag in flags}
    return plain | {feature for feature, flag in CPU_FLAGS.items() if flag in flags} | {"fxsr"} if flags else set()


def libraries() -> Iterator[Check]:
    """Required libraries: one line if all are there, else a line for each that is not."""
    wrong = []
    data = {}
    for requirement in _requirements():
        version = _version(requirement.name)
        data[requirement.name] = version
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            description = f"{version or 'not installed'}; needed: {requirement.specifier}"
            todo = f'pip install "{requirement.name}{requirement.specifier}"'
            wrong.append(Check(requirement.name, Status.BROKEN, description, todo=todo))
    yield from wrong
    if data:
        good = len(data) - len(wrong)
        status = Status.BROKEN if wrong else Status.OK
        yield Check("libraries", status, f"{good} of {len(data)} as required", data=data)


def extras() -> Iterator[Check]:
    """Libraries of the extras."""
    for extra in EXTRAS:
        needed = list(_requirements(extra))
        versions = {requirement.name: _version(requirement.name) for requirement in needed}
        absent = [requirement.name for requirement in needed if versions[requirement.name] is None]
        old = [
            requirement
            for requirement in needed
            if requirement.name not in absent and not requirement.specifier.contains(versions[requirement.name] or "")
        ]
        status = Status.MISSING if absent or old else Status.OK
        lines = [f"{name} {version}" for name, version in versions.items() if version]
        lines += [f"{name} is not installed" for name in absent]
        lines += [f"{requirement.name} is too old, needed: {requirement.specifier}" for requirement in old]
        todo = f'pip install "fairlane[{extra}]"' if absent or old else ""
        yield Check(f"extra {extra}", status, listed(lines), BY_EXTRA[extra], todo, versions)


def figures() -> Check:
    """Whether Matplotlib can be loaded and draws; figures are files and need no display."""
    commands = "run, plot, study and others that draw"
    try:
        import matplotlib
        from matplotlib.figure import Figure

        backend = matplotlib.get_backend(auto_select=False) or "chosen when needed"
        Figure().savefig(BytesIO(), format="png")
    except Exception as error:  # whatever a broken installation of Matplotlib raises
        words = f"Matplotlib does not draw: {' '.join(str(error).split())[:200]}"
        todo = "unset MPLBACKEND, or pip install --force-reinstall matplotlib"
        return Check("figures", Status.BROKEN, words, commands, todo)
    description = f"Matplotlib {matplotlib.__version__}, backend: {backend}"
    return Check("figures", Status.OK, description, commands, data={"backend": str(backend)})


def simulation() -> Check:
    """A small simulation, whose digest is the same on every platform."""
    name = "simulation"
    try:
        result = dict(ask("simulate"))
    except ChildError as error:
        return Check(name, Status.BROKEN, f"does not run: {error}", todo="report it with the output of --json")
    expected = expected_digest()
    data = {**result, "expected": expected}
    if result["digest"] != expected:
        message = f"digest {result['digest'][:16]}, expected {expected[:16]}: results differ from those of this version"
        return Check(name, Status.BROKEN, message, todo="report it with the output of --json", data=data)
    speed = result["packet_hops"] / max(result["seconds"], 1e-9) / 1e6
    hops = f"{result['packet_hops']:,} packet-hops in {wall_time(result['seconds'])}"
    message = f"digest as expected; {hops}, {speed:.1f} M/s"
    return Check(name, Status.OK, message, data=data)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _requirements(extra: str = "") -> Iterator[Requirement]:
    """Yield the requirements of the installed package; with the name of an ``extra``, those that this one adds."""
    try:
        lines = metadata.requires("fairlane") or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        if always if not extra else (not always and marker is not None and marker.evaluate({"extra": extra})):
            yield requirement


_CHILD = "import sys; from fairlane.lab.doctor.installation import {function}; sys.stdout.write({function}())"


class ChildError(Exception):
    """The process did not answer; the message says why."""


def expected_digest() -> str:
    """The digest that the simulation has on every platform."""
    text = (files("fairlane.lab.doctor") / "expected.toml").read_text("utf-8")
    return str(tomllib.loads(text)["digest"])


def ask(function: str) -> Mapping[str, Any]:
    """Ask ``build_info`` or ``simulate`` in a new process. Raises ``ChildError``."""
    command = [sys.executable, "-P", "-c", _CHILD.format(function=function)]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG_S, check=False)
    except subprocess.TimeoutExpired:
        raise ChildError(f"no answer within {HANG_S:g} s") from None
    except OSError as error:
        raise ChildError(f"{sys.executable}: cannot be started: {error.strerror}") from None
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise ChildError(f"the process was ended by {name}")
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise ChildError(lines[-1] if lines else f"the process ended with code {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def build_info() -> str:
    """Return how the compiled simulator was built, as JSON."""
    from fairlane.core import bridge

    return json.dumps({**bridge.build_info(), "file": bridge.LIBRARY})


def simulate() -> str:
    """Digest, packet-hops and wall time of the simulation, as JSON."""
    from fairlane.model.scenario import Scenario
    from fairlane.sim.simulation import Simulation

    with as_file(files("fairlane.lab.doctor") / "scenario.toml") as file:
        scenario = Scenario.load(file).resolve()
    simulation = Simulation(scenario, threads=1)
    start = perf_counter()
    simulation.run_until(scenario.duration)
    seconds = perf_counter() - start
    return json.dumps({"digest": simulation.digest(), "packet_hops": simulation.packet_hops, "seconds": seconds})
