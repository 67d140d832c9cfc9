"""The web configuration file of exporter-toolkit, read strictly and again whenever it or a file that it names has changed.

Keys and meaning: prometheus/exporter-toolkit, docs/web-configuration.md. ``promtool check web-config`` accepts what is accepted
here, except for keys that are newer than it.
"""

from __future__ import annotations

import os
import ssl
import time
from dataclasses import dataclass

import msgspec
import structlog

from exporter.errors import ConfigError
from exporter.web import tls
from exporter.web.auth import check_users
from exporter.web.limits import TokenBucket, go_duration
from exporter.web.tls import TLSServer
from exporter.yamlfile import load_as

HEADERS: dict[str, tuple[str, ...]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
"""The response headers that may be set, with the values that they may have (none: any)."""

log = structlog.get_logger("fabric-exporter")


class HTTPServer(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Section ``http_server_config``."""

    http2: bool | None = None
    headers: dict[str, str] | None = None


class RateLimit(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Section ``rate_limit``. ``interval`` is a Go duration, or nanoseconds as Go reads a bare number; 0 is no limit."""

    interval: str | int = 0
    burst: int = 0


class WebConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The file. A section that is not given, or given without keys, is None."""

    tls_server_config: TLSServer | None = None
    http_server_config: HTTPServer | None = None
    basic_auth_users: dict[str, str] | None = None
    rate_limit: RateLimit | None = None


@dataclass(frozen=True, slots=True, eq=False)
class InForce:
    """What holds for the requests of now: users, headers, TLS (None: plain HTTP), rate limit (None: none)."""

    users: dict[str, str]
    headers: dict[str, str]
    context: ssl.SSLContext | None
    bucket: TokenBucket | None

    @property
    def verifies_clients(self) -> bool:
        """True when a client's certificate decides whether it gets in."""
        return self.context is not None and self.context.verify_mode is not ssl.CERT_NONE


def read(path: str) -> WebConfig:
    """Return the file's content, its files' paths made absolute by the file's own folder; certificates are not read.

    Raises :class:`ConfigError` in one line: file, key, what was expected.
    """
    config = load_as(path, WebConfig)
    try:
        _check(config)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    section = config.tls_server_config
    if section is not None:
        section = section.below(os.path.dirname(os.path.abspath(path))) if section != TLSServer() else None
    return msgspec.structs.replace(config, tls_server_config=section)


def load_web_config(path: str) -> WebConfigFile:
    """Return the file, read and in force. Raises :class:`ConfigError` as :func:`read` does, and for certificates."""
    return WebConfigFile(path)


class WebConfigFile:
    """A web configuration file that is looked at for each connection and each request (a few ``stat`` calls).

    When it, a certificate, a key or a CA has changed, all are read again. Files that cannot be used leave the last good ones in
    force; they are told and counted once, until the next change.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.failures = 0
        self.success = True
        self._stamps: dict[str, _Stamp | None] = {}
        self._in_force = self._read(None)

    def in_force(self) -> InForce:
        """Return what holds now, read again if a file has changed. Never raises."""
        if any(_stamp(path) != stamp for path, stamp in self._stamps.items()):
            try:
                self._in_force = self._read(self._in_force)
            except ConfigError as error:
                self.success = False
                self.failures += 1
                told = "web configuration not taken over, the last good one stays in force"
                log.error(told, error=str(error))  # noqa: TRY400 - where in our code says nothing to the operator
            else:
                self.success = True
                log.info("web configuration taken over", file=self.path)
        return self._in_force

    def context(self) -> ssl.SSLContext:
        """Return the TLS context in force, of a file that turns TLS on."""
        context = self.in_force().context
        if context is None:
            raise RuntimeError(f"{self.path} has no TLS")
        return context

    def _read(self, before: InForce | None) -> InForce:
        # Stamps are taken before the files are read: a change in between is seen the next time.
        self._stamps[self.path] = own = _stamp(self.path)
        config = read(self.path)
        section = config.tls_server_config
        self._stamps = {file: _stamp(file) for file in (section.files() if section else ())} | {self.path: own}
        try:
            context = tls.build(section) if section else None
        except ConfigError as error:
            raise ConfigError(f"{self.path}: tls_server_config.{error}") from None
        if before is not None and (before.context is None) != (context is None):
            raise ConfigError(f"{self.path}: tls_server_config: TLS goes on or off with a restart alone")
        if before is not None and before.users and not config.basic_auth_users:
            # A file that is being written is empty for a moment.
            raise ConfigError(f"{self.path}: basic_auth_users: authentication goes off with a restart alone")
        http = config.http_server_config or HTTPServer()
        if http.http2 and before is None:
            log.info("http2 is on in the web configuration, HTTP/1.1 is what is served", file=self.path)
        limit = config.rate_limit
        interval = _interval(limit) if limit else 0.0
        return InForce(
            users=config.basic_auth_users or {},
            headers={name: value for name, value in (http.headers or {}).items() if value},
            context=context,
            bucket=TokenBucket(interval, limit.burst, time.monotonic()) if limit and interval else None,
        )


def _check(config: WebConfig) -> None:
    for name, value in ((config.http_server_config or HTTPServer()).headers or {}).items():
        where = f"http_server_config.headers.{name}"
        if name not in HEADERS:
            raise ConfigError(f"{where}: cannot be set; expected one of {', '.join(HEADERS)}")
        if HEADERS[name] and value not in HEADERS[name]:
            raise ConfigError(f"{where}: expected {' or '.join(HEADERS[name])}, found {value!r}")
        if not value.isprintable() or not value.isascii():
            raise ConfigError(f"{where}: expected printable ASCII on one line, found {value!r}")
    try:
        check_users(config.basic_auth_users or {})
    except ConfigError as error:
        raise ConfigError(f"basic_auth_users.{error}") from None
    if (limit := config.rate_limit) is not None and _interval(limit) > 0 and limit.burst < 1:
        raise ConfigError(f"rate_limit.burst: expected 1 or more, found {limit.burst}")


def _interval(limit: RateLimit) -> float:
    try:
        seconds = limit.interval * 1e-9 if isinstance(limit.interval, int) else go_duration(limit.interval)
    except ValueError:
        seconds = -1.0
    if seconds < 0:
        raise ConfigError(f"rate_limit.interval: expected a duration such as 1s or 250ms, found {limit.interval!r}")
    return seconds


_Stamp = tuple[int, int, int, int, int]


def _stamp(path: str) -> _Stamp | None:
    """Return what changes when a file does, None when it cannot be looked at."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
