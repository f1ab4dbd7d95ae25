"""OpenSM: service levels of jobs in its QoS policy file, which it reads again on SIGHUP.

A change is the policy file replaced atomically, SIGHUP to the process, and a wait for the line of the log with which
OpenSM reports that the subnet is up again. An operator's own policy stays in the file, and is kept beside it as it was
before the agent. A new service level holds for paths that are queried afterwards: processes that are connected already
keep theirs until they connect again. For controllers it writes weights of levels into ``opensm.conf`` instead
(``opensm_files``), which hold for packets that wait already.
"""

import os
import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv6Address
from itertools import pairwise
from pathlib import Path
from pwd import getpwuid
from socket import gethostname

from pydantic import Field, PrivateAttr, model_validator
from typing_extensions import override

from fairlane.cluster.agent.backends import opensm_files
from fairlane.cluster.agent.backends.base import Backend, Surroundings
from fairlane.cluster.agent.backends.opensm_files import check_conf, read_guids
from fairlane.cluster.agent.jobs import Setting
from fairlane.cluster.agent.system import BackendError, FilePath, call
from fairlane.cluster.opensm.policy import PORT_NAMES, can_name_port
from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.core.units import Duration
from fairlane.core.wording import plural
from fairlane.inputs.files import read_text, replacing
from fairlane.inputs.problems import Problems

BESIDE = ".before-fairlane"
"""Suffix of the copy of the operator's policy file."""
_LINK_LOCAL = 0xFE80 << 112
_POLL_S = 0.02


class OpenSm(Backend):
    """Writes service levels into OpenSM's QoS policy file, has it read again by SIGHUP, and reads back."""

    policy: FilePath = Field(description="the QoS policy file: `qos_policy_file` of opensm.conf")
    conf: FilePath | None = Field(None, description="opensm.conf, which is read to check levels and lanes")
    log: FilePath = Field(description="OpenSM's log, in which it reports the end of a sweep; set `force_log_flush`")
    pid: int | None = Field(None, gt=1, description="process number of OpenSM")
    pid_file: FilePath | None = Field(
        None, description="file with the process number of OpenSM. Default: the only process of that name"
    )
    process: str = Field("opensm", description="name of the process; no other gets a SIGHUP")
    done: str = Field("SUBNET UP", description="part of the log's line when the new policy is in force")
    refused: str = Field("ERR AC", description="part of the log's line when OpenSM refuses the policy")
    timeout: Duration = Field(300 * 10**12, gt=0, description="how long OpenSM may take for a change")
    port: str | list[str] = Field(
        "{host}/P1", description="name of a host's port in the policy, or of each of its ports, without `guids`"
    )
    guids: FilePath | None = Field(
        None, description="file with a host and its port GUIDs on each line; replaces `port`"
    )
    discover: list[str] = Field(
        default_factory=list,
        description="command that prints the fabric, as `ibnetdiscover`: every GUID has to be in it",
    )
    read_back: list[str] = Field(
        default_factory=list,
        description="command that prints the level of a path; with {source}, {destination}, {source_gid}, "
        "{destination_gid}, as `saquery --sgid-to-dgid {source_gid}-{destination_gid}`",
    )
    read_back_level: str = Field(
        r"(?m)^\s*sl\.*(0x[0-9a-fA-F]+|\d+)", description="regular expression whose group is the level that it prints"
    )
    read_back_wait: Duration = Field(
        30 * 10**12,
        ge=0,
        description="how long a path may have its old level: a sweep that had begun before ends with `done`, too",
    )
    read_back_pairs: int = Field(4, ge=1, description="pairs of hosts of each job that are read back")
    weights: bool = Field(
        False,
        description="whether weights of levels are written into `conf`, for controllers: processes then set their own "
        "level when they start, as by UCX_IB_SL, and the policy has none",
    )
    _lanes: dict[int, int] = PrivateAttr(default_factory=dict)
    _guids: dict[str, tuple[str, ...]] = PrivateAttr(default_factory=dict)
    _default: int = PrivateAttr(0)

    @model_validator(mode="after")
    def _one_process(self) -> "OpenSm":
        if self.pid is not None and self.pid_file is not None:
            raise Problems(Problem("pid_file", "pid names the process already", allowed="one of pid and pid_file"))
        if any("_gid}" in word for word in self.read_back) and self.guids is None:
            raise Problems(Problem("read_back", "uses GIDs, which need `guids`", " ".join(self.read_back)))
        return self

    @model_validator(mode="after")
    def _one_port_for_each_host(self) -> "OpenSm":
        for port in self._patterns if self.guids is None else ():
            if "{host}" not in port or not _names_port(port.replace("{host}", "host")):
                allowed = f"a text with {{host}}, and the port at its end, as /P1; {PORT_NAMES}; or `guids`"
                raise Problems(Problem("port", "names no port of each host in a policy of OpenSM", port, allowed))
        return self

    @property
    def _patterns(self) -> list[str]:
        return [self.port] if isinstance(self.port, str) else self.port

    @model_validator(mode="after")
    def _one_level(self) -> "OpenSm":
        try:
            groups = re.compile(self.read_back_level).groups
        except re.error as error:
            message = f"no regular expression: {error}"
            raise Problems(Problem("read_back_level", message, self.read_back_level)) from None
        if groups == 0:
            raise Problems(Problem("read_back_level", "has no group", self.read_back_level, "(...) around the level"))
        return self

    @model_validator(mode="after")
    def _has_conf(self) -> "OpenSm":
        if self.weights and self.conf is None:
            raise Problems(Problem("weights", "are written into opensm.conf", True, "with `conf`"))
        return self

    @property
    @override
    def sets_weights(self) -> bool:
        return self.weights

    @override
    def endpoints(self, host: str, ranks: int) -> Sequence[str]:
        return [f"{host}/{number}" for number in range(ranks)] if self.weights else (host,)

    @override
    def check(self, surroundings: Surroundings) -> None:
        self._default, self._lanes = surroundings.default, surroundings.lanes
        if self.conf is not None:
            check_conf(self.conf, surroundings, self.policy)
        if self.guids is not None:
            self._guids = read_guids(self.guids, surroundings.hosts)
            self._check_fabric(self.guids)
        if not opensm_files.has_default(opensm_files.without_agent(self._text())):
            message = "has no level DEFAULT, without which OpenSM refuses the policy"
            raise ScenarioError(Problem("qos-levels", message, file=str(self.policy)))
        if not os.access(self.policy.resolve().parent, os.W_OK):
            raise BackendError(f"{self.policy}: {_user()} may not replace it; the agent needs to write to its folder")
        self._log_size()
        self._signal(0)

    @override
    def save(self) -> str:
        return self._conf_text() if self.weights else self._text()

    @override
    def write(self, settings: Sequence[Setting]) -> None:
        if self.weights:
            operators = opensm_files.without_agent(self._conf_text())
            self._write_conf(operators + opensm_files.lines_for(self._conf, operators, settings, self._lanes))
            return
        text = self._text()
        operators = opensm_files.without_agent(text)
        if operators == text and settings:
            self._replace(self.policy.with_name(self.policy.name + BESIDE), text)
        self._replace(self.policy, opensm_files.with_settings(operators, settings, self._ports, self._default))
        self._read_again()

    @override
    def refresh(self) -> None:
        self._read_again()

    @override
    def in_force(self) -> dict[str, int]:
        if self.weights:
            return opensm_files.levels_in(self._conf_text())
        return {self._host(port): level for _, level, ports in opensm_files.settings_in(self._text()) for port in ports}

    @override
    def restore(self, saved: str) -> None:
        if self.weights:  # what the operator has changed meanwhile stays
            self._write_conf(opensm_files.without_agent(self._conf_text()) + opensm_files.block_of(saved))
            return
        operators = opensm_files.without_agent(self._text())
        if operators != opensm_files.without_agent(saved):  # the operator has changed the file since then
            before = [Setting(job, level, tuple(ports)) for job, level, ports in opensm_files.settings_in(saved)]
            saved = opensm_files.with_settings(operators, before, lambda port: [port], self._default)
        self._replace(self.policy, saved)
        self._read_again()

    @override
    def verify(self, settings: Sequence[Setting]) -> None:
        super().verify(settings)
        if self.weights:
            text = self._conf_text()
            operators = opensm_files.without_agent(text)
            if opensm_files.block_of(text) != opensm_files.lines_for(self._conf, operators, settings, self._lanes):
                raise BackendError(f"{self.conf}: has other weights than were written")
            return
        deadline = time.monotonic() + self.read_back_wait * 1e-12
        for setting in settings if self.read_back else ():
            for pair in list(pairwise(setting.hosts))[: self.read_back_pairs]:
                while (level := self._level_of(*pair)) != setting.level:
                    if time.monotonic() > deadline:
                        message = f"the path from {pair[0]} to {pair[1]} of job {setting.job} has level {level}"
                        raise BackendError(f"{message}; written was {setting.level}")
                    time.sleep(_POLL_S)

    def _level_of(self, source: str, destination: str) -> int:
        names: dict[str, str] = {"source": source, "destination": destination}
        if self._guids:
            names |= {f"{key}_gid": _gid(self._guids[host][0]) for key, host in list(names.items())}
        command = list(self.read_back)
        for key, value in names.items():
            command = [word.replace(f"{{{key}}}", value) for word in command]
        printed = call(command, self.timeout * 1e-12, BackendError)
        match = re.search(self.read_back_level, printed)
        if match is None:
            raise BackendError(f"{' '.join(command)}: printed no service level: {printed.strip()[:80]!r}")
        try:
            return int(match[1], 16 if match[1].lower().startswith("0x") else 10)
        except (TypeError, ValueError):
            message = f"{' '.join(command)}: printed {match[1]!r}, no service level"
            raise BackendError(message) from None

    def _check_fabric(self, file: Path) -> None:
        """Every GUID is one of the fabric that OpenSM manages."""
        if not self.discover:
            return
        printed = call(self.discover, self.timeout * 1e-12, BackendError)
        known = {f"0x{int(number, 16):016x}" for number in re.findall(r"\b(?:0x)?([0-9a-f]{4,16})\b", printed.lower())}
        written = [(host, guid) for host, guids in self._guids.items() for guid in guids]
        lacking = [(host, guid) for host, guid in written if guid not in known]
        if lacking:
            host, guid = lacking[0]
            message = f"the fabric has no port with this GUID ({len(lacking)} of {len(written)} are missing)"
            allowed = f"those that {' '.join(self.discover)} prints"
            raise ScenarioError(Problem(host, message, guid, allowed, nearest(guid, known), str(file)))

    def _ports(self, host: str) -> tuple[str, ...]:
        if self.guids is None:
            names = tuple(port.replace("{host}", host) for port in self._patterns)
            if not all(map(_names_port, names)):
                message = "cannot name a port in a policy of OpenSM; give the backend `guids`"
                raise BackendError(f"{names[0]}: {message}")
            return names
        if host not in self._guids:
            raise BackendError(f"{self.guids}: has no GUID of host {host}; the policy cannot name its port")
        return self._guids[host]

    def _host(self, port: str) -> str:
        """The host of a port that the policy names; the port itself if it is none of those known."""
        if self.guids is not None:
            return next((host for host, guids in self._guids.items() if port in guids), port)
        for pattern in self._patterns:
            before, _, after = pattern.partition("{host}")
            if port.startswith(before) and port.endswith(after):
                return port.removeprefix(before).removesuffix(after)
        return port

    def _text(self) -> str:
        return _read(self.policy)

    @property
    def _conf(self) -> Path:
        assert self.conf is not None, "weights have it"
        return self.conf

    def _conf_text(self) -> str:
        text = _read(self._conf)
        return text if not text or text.endswith("\n") else f"{text}\n"

    def _write_conf(self, text: str) -> None:
        self._replace(self._conf, text)
        self._read_again()

    def _replace(self, file: Path, text: str) -> None:
        """Replaces a file atomically; it keeps its owner and permissions, and is on the disk afterwards."""
        try:
            before = file.stat() if file.exists() else self.policy.stat()
            with replacing(file) as scratch:
                with scratch.open("w", encoding="utf-8") as out:
                    out.write(text)
                    out.flush()
                    os.fsync(out.fileno())
                with suppress(PermissionError):  # of a user who is not root
                    os.chown(scratch, before.st_uid, before.st_gid)
                scratch.chmod(before.st_mode & 0o777)
        except OSError as error:
            raise BackendError(f"{file}: cannot be written: {error.strerror}") from None

    def _process(self) -> int:
        """The process of OpenSM; raises ``BackendError`` unless it runs and has the name that it should have."""
        if self.pid is None and self.pid_file is None:
            return self._only_process()
        try:
            number = self.pid or int(read_text(self.pid_file or Path()).strip())
            name = _name_of(number)
        except (OSError, ValueError) as error:
            where = self.pid_file or f"process {self.pid}"
            reason = getattr(error, "strerror", None) or error
            raise BackendError(f"{where}: OpenSM does not run on this machine, {gethostname()}: {reason}") from None
        if name != self.process:
            raise BackendError(f"process {number} is {name!r}, not {self.process!r}: it gets no SIGHUP")
        return number

    def _only_process(self) -> int:
        numbers = []
        for number in (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal()):
            with suppress(OSError):  # of one that has just ended
                numbers += [number] if _name_of(number) == self.process else []
        if len(numbers) != 1:
            message = (
                f"{plural(len(numbers), 'process', 'processes')} {self.process!r} on this machine, {gethostname()}"
            )
            raise BackendError(f"{message}: run this on the machine of OpenSM, or give the backend pid_file")
        return numbers[0]

    def _read_again(self) -> None:
        """Has OpenSM read the policy again; returns when it is in force. Raises ``BackendError``."""
        begin = self._log_size()
        self._signal(signal.SIGHUP)
        deadline = time.monotonic() + self.timeout * 1e-12
        while True:
            new = self._log_after(begin)
            for line in new.splitlines():
                if self.refused in line:
                    raise BackendError(f"OpenSM refuses the policy: {line.strip()[-200:]}")
            if self.done in new:
                return
            if time.monotonic() > deadline:
                message = f"{self.log}: no line {self.done!r} within {self.timeout * 1e-12:g} s of SIGHUP"
                raise BackendError(f"{message}: OpenSM does not answer")
            time.sleep(_POLL_S)

    def _signal(self, number: int) -> None:
        """Sends OpenSM a signal; with 0 it is only checked whether this user may."""
        process = self._process()
        try:
            os.kill(process, number)
        except OSError as error:
            message = f"process {process}, {self.process!r}, cannot be sent SIGHUP: {error.strerror}"
            who = f"the agent has to run as the user of OpenSM or as root, and not as {_user()}"
            raise BackendError(f"{message}; {who}") from None

    def _log_size(self) -> int:
        """The size of the log, 0 if there is none. Raises ``BackendError`` if it cannot be read."""
        try:
            with self.log.open("rb") as file:
                return file.seek(0, os.SEEK_END)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise BackendError(f"{self.log}: cannot be read: {error.strerror}") from None

    def _log_after(self, begin: int) -> str:
        """Return the lines appended to the log; all of it if it was begun anew."""
        try:
            with self.log.open("rb") as file:
                file.seek(begin if self.log.stat().st_size >= begin else 0)
                return file.read().decode(errors="replace")
        except OSError:
            return ""


def _read(file: Path) -> str:
    try:
        return read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        raise BackendError(f"{file}: cannot be read: {error}; what OpenSM has is as it was") from None


def _name_of(process: int) -> str:
    return Path(f"/proc/{process}/comm").read_text(encoding="utf-8").strip()


def _user() -> str:
    """The user that this process runs as."""
    try:
        return f"user {getpwuid(os.geteuid()).pw_name}"
    except KeyError:  # as in a container
        return f"user {os.geteuid()}"


def _names_port(name: str) -> bool:
    """Whether OpenSM finds a port by this name, ``NodeDescription/P1``, in a policy."""
    description, _, port = name.rpartition("/")
    return can_name_port(description) and re.fullmatch(r"P\d{1,3}", port, re.ASCII) is not None


def _gid(guid: str) -> str:
    """The GID of a port on the local subnet."""
    return str(IPv6Address(_LINK_LOCAL + int(guid, 16)))
