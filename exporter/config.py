"""What the operator wants: flags, their environment twins, and the strict YAML configuration file.

A flag given wins over its environment variable, which wins over the default; the file holds what has no flag: the roles, rails
and planes of ports, and how logs are read.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from exporter.discovery import Filter, PortRule, Rules
from exporter.errors import ConfigError
from exporter.model import Profile, Role
from exporter.nccl.globs import DAY_SECONDS, Glob, LogRule, Start
from exporter.yamlfile import load_as


class PortSettings(msgspec.Struct, forbid_unknown_fields=True):
    """One entry of ``ports`` in the configuration file.

    ``match`` is a regular expression for the whole name of an RDMA device or an interface.
    """

    match: str
    role: Role | None = None
    rail: str | int = ""
    plane: str | int = ""


class LogSettings(msgspec.Struct, forbid_unknown_fields=True):
    """One entry of ``nccl.logs``: which files are logs, what names their job, where reading begins (docs/nccl-logging.md)."""

    glob: str
    key: str = ""
    start: Start = msgspec.field(name="from", default="age")
    old_seconds: float = DAY_SECONDS
    network_file_systems: bool = False


class NcclSettings(msgspec.Struct, forbid_unknown_fields=True):
    """The part ``nccl`` of the configuration file."""

    logs: list[LogSettings] = msgspec.field(default_factory=list)


class File(msgspec.Struct, forbid_unknown_fields=True):
    """The configuration file."""

    ports: list[PortSettings] = msgspec.field(default_factory=list)
    nccl: NcclSettings = msgspec.field(default_factory=NcclSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the daemon is told when it starts."""

    config_file: str = ""
    listen: tuple[str, ...] = (":10073",)
    telemetry_path: str = "/metrics"
    web_config_file: str = ""
    max_requests: int = 40
    sysfs: str = "/sys"
    procfs: str = "/proc"
    capture: str = ""
    disabled: frozenset[str] = frozenset()
    profile: Profile = "core"
    devices: Filter = field(default_factory=Filter)
    netdevs: Filter = field(default_factory=Filter)
    raw: re.Pattern[str] | None = None
    ethtool_max_age: float = 5.0
    storage_path: str = ""
    log_globs: tuple[str, ...] = ()
    log_level: str = "info"
    log_format: Literal["logfmt", "json"] = "logfmt"


def expression(text: str, where: str) -> re.Pattern[str]:
    """Return a compiled regular expression; raises :class:`ConfigError` with its place and fault."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"{where}: {text[:80]!r} is no regular expression: {error}") from None


def read_file(path: str) -> File:
    """Return the configuration file, an empty one without a path. Raises :class:`ConfigError`."""
    return load_as(path, File) if path else File()


def rules(settings: Settings) -> Rules:
    """Return what discovery is told, from the flags and the configuration file, read now. Raises :class:`ConfigError`."""
    file = read_file(settings.config_file)
    ports = tuple(
        PortRule(
            match=expression(port.match, f"{settings.config_file}: ports[{number}].match"),
            role=port.role,
            rail=str(port.rail),
            plane=str(port.plane),
        )
        for number, port in enumerate(file.ports)
    )
    return Rules(devices=settings.devices, netdevs=settings.netdevs, ports=ports)


def log_rules(settings: Settings) -> tuple[LogRule, ...]:
    """Return which logs to follow, from the flags and the configuration file, read now. Raises :class:`ConfigError`."""
    hostname = os.uname().nodename
    rules = [LogRule(glob=Glob(text, hostname, "--nccl.log-glob")) for text in settings.log_globs]
    for number, entry in enumerate(read_file(settings.config_file).nccl.logs):
        where = f"{settings.config_file}: nccl.logs[{number}]"
        glob = Glob(entry.glob, hostname, f"{where}.glob")
        if entry.network_file_systems and (glob.recursive or not glob.names_host):
            raise ConfigError(f"{where}.glob: expected {{hostname}} and no ** in it with network_file_systems")
        if not entry.old_seconds >= 0:
            raise ConfigError(f"{where}.old_seconds: expected a number of at least 0, got {entry.old_seconds}")
        rules.append(
            LogRule(
                glob=glob,
                key=expression(entry.key, f"{where}.key") if entry.key else None,
                start=entry.start,
                old_seconds=entry.old_seconds,
                network=entry.network_file_systems,
            )
        )
    return tuple(rules)
