"""What the operator wants: flags, their environment twins, and the strict YAML configuration file.

A flag given wins over its environment variable, which wins over the default; the file holds what has no flag: the roles, rails
and planes of ports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from exporter.discovery import Filter, PortRule, Rules
from exporter.errors import ConfigError
from exporter.model import Profile, Role
from exporter.yamlfile import load_as


class PortSettings(msgspec.Struct, forbid_unknown_fields=True):
    """One entry of ``ports`` in the configuration file.

    ``match`` is a regular expression for the whole name of an RDMA device or an interface.
    """

    match: str
    role: Role | None = None
    rail: str | int = ""
    plane: str | int = ""


class File(msgspec.Struct, forbid_unknown_fields=True):
    """The configuration file."""

    ports: list[PortSettings] = msgspec.field(default_factory=list)


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
