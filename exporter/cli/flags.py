"""The flags, one table: name, default, how it is read, help. ``FABRIC_EXPORTER_WEB_CONFIG_FILE`` is ``--web.config.file``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exporter.config import Settings, expression
from exporter.discovery import Filter
from exporter.errors import UsageError
from exporter.logs import LEVELS
from exporter.sources import SOURCES

PREFIX = "FABRIC_EXPORTER_"
SWITCHES = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag with a value. ``many`` may be given several times (in the environment: separated by commas)."""

    name: str
    default: str
    about: str
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()
    many: bool = False


FLAGS: tuple[Flag, ...] = (
    Flag("config.file", "", "YAML file with the roles, rails and planes of ports, and the logs to follow", "FILE"),
    Flag(
        "web.listen-address",
        ":10073",
        "address to listen on, host:port or unix:/path; may be given several times",
        "ADDRESS",
        many=True,
    ),
    Flag("web.telemetry-path", "/metrics", "path under which the metrics are served", "PATH"),
    Flag("web.config.file", "", "web configuration file (TLS, authentication) as of the exporter-toolkit", "FILE"),
    Flag("web.max-requests", "40", "requests that are answered at the same time; 503 beyond", "N"),
    Flag("path.sysfs", "/sys", "where sysfs is mounted", "DIR"),
    Flag("path.procfs", "/proc", "where procfs is mounted", "DIR"),
    Flag("capture", "", "serve from a captured machine instead of this one", "DIR"),
    Flag("metrics.profile", "core", "what rules and dashboards use, or all metrics", choices=("core", "full")),
    Flag("collector.rdma.device-include", "", "RDMA devices to read (matches the whole name)", "REGEX"),
    Flag("collector.rdma.device-exclude", "", "RDMA devices to leave out", "REGEX"),
    Flag(
        "collector.ethtool.device-include",
        "",
        "interfaces to read; without it hardware, its bonds and the interfaces of RDMA ports",
        "REGEX",
    ),
    Flag("collector.ethtool.device-exclude", "", "interfaces to leave out", "REGEX"),
    Flag("collector.ethtool.raw-include", "", "ethtool -S names to serve as fabric_ethtool_raw", "REGEX"),
    Flag("collector.ethtool.max-age", "5", "seconds for which ethtool -S is served again before it is read", "SECONDS"),
    Flag("storage.path", "", "folder for what outlives a restart; without it all is kept in memory", "DIR"),
    Flag("nccl.log-glob", "", "NCCL logs to follow; may be given several times", "GLOB", many=True),
    Flag("log.level", "info", "least severe message that is logged", choices=LEVELS),
    Flag("log.format", "logfmt", "format of the log", choices=("logfmt", "json")),
)


TELEMETRY_PATH = re.compile(r"/(?!-/)[\w.~/-]*", re.ASCII)
"""A path that the router takes as it is, not one of the health checks below ``/-/``."""


def environment_name(flag: str) -> str:
    """Return the name of a flag's environment twin."""
    return PREFIX + flag.replace(".", "_").replace("-", "_").upper()


def add_flags(parser: argparse.ArgumentParser, *, inherited: bool = False) -> None:
    """Add all flags. Absent ones leave nothing behind, so that flags may stand before and after the verb."""
    group = parser.add_argument_group("flags" if not inherited else "flags of all verbs")
    for flag in FLAGS:
        default = f"default {flag.default}; " if flag.default else ""
        group.add_argument(
            f"--{flag.name}",
            dest=flag.name,
            action="append" if flag.many else "store",
            metavar=None if flag.choices else flag.metavar,
            choices=flag.choices or None,
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS if inherited else f"{flag.about} ({default}{environment_name(flag.name)})",
        )
    for source in SOURCES:
        for prefix, value in (("", True), ("no-", False)):
            group.add_argument(
                f"--{prefix}collector.{source.name}",
                dest=f"collector.{source.name}",
                action="store_const",
                const=value,
                default=argparse.SUPPRESS,
                help=argparse.SUPPRESS
                if inherited or prefix
                else f"{source.about} (on; turn off with --no-collector.{source.name})",
            )
    group.add_argument(
        "--config.check",
        dest="config.check",
        action="store_true",
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS if inherited else "check the configuration files and exit",
    )


def settings_of(parsed: argparse.Namespace, environment: Mapping[str, str]) -> Settings:
    """Return the settings: each flag given, else its environment twin, else its default. Raises :class:`FabricError`."""
    given: dict[str, Any] = vars(parsed)
    text: dict[str, str] = {}
    origin: dict[str, str] = {}
    lists: dict[str, tuple[str, ...]] = {}
    for flag in FLAGS:
        twin = environment_name(flag.name)
        if flag.name in given:
            value, origin[flag.name] = given[flag.name], f"--{flag.name}"
        elif environment.get(twin):
            value, origin[flag.name] = environment[twin], twin
            if flag.choices and value not in flag.choices:
                raise UsageError(f"{twin}: expected one of {', '.join(flag.choices)}, got {value!r}")
        else:
            value, origin[flag.name] = flag.default, f"--{flag.name}"
        if flag.many:
            lists[flag.name] = tuple(value if isinstance(value, list) else filter(None, value.split(",")))
        else:
            text[flag.name] = value

    def pattern(name: str) -> Any:
        return expression(text[name], origin[name]) if text[name] else None

    def number(name: str, least: float) -> float:
        try:
            value = float(text[name])
        except ValueError:
            value = float("nan")
        if not least <= value < float("inf"):
            raise UsageError(f"{origin[name]}: expected a number of at least {least:g}, got {text[name]!r}")
        return value

    path = text["web.telemetry-path"]
    if not TELEMETRY_PATH.fullmatch(path):
        raise UsageError(f"{origin['web.telemetry-path']}: expected a path such as /metrics, got {path!r}")
    return Settings(
        config_file=text["config.file"],
        listen=lists["web.listen-address"],
        telemetry_path=path,
        web_config_file=text["web.config.file"],
        max_requests=int(number("web.max-requests", 1)),
        sysfs=text["path.sysfs"],
        procfs=text["path.procfs"],
        capture=text["capture"],
        disabled=frozenset(source.name for source in SOURCES if not _enabled(source.name, given, environment)),
        profile="full" if text["metrics.profile"] == "full" else "core",
        devices=Filter(pattern("collector.rdma.device-include"), pattern("collector.rdma.device-exclude")),
        netdevs=Filter(pattern("collector.ethtool.device-include"), pattern("collector.ethtool.device-exclude")),
        raw=pattern("collector.ethtool.raw-include"),
        ethtool_max_age=number("collector.ethtool.max-age", 0),
        storage_path=text["storage.path"],
        log_globs=lists["nccl.log-glob"],
        log_level=text["log.level"],
        log_format="json" if text["log.format"] == "json" else "logfmt",
    )


def _enabled(source: str, given: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    key = f"collector.{source}"
    if key in given:
        return bool(given[key])
    twin = environment_name(key)
    value = environment.get(twin, "")
    if not value:
        return True
    if value.lower() not in SWITCHES:
        raise UsageError(f"{twin}: expected true or false, got {value!r}")
    return SWITCHES[value.lower()]
