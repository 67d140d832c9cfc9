"""TLS as an exporter-toolkit web configuration asks for it (section ``tls_server_config``), on Python's ssl module.

Source of the keys and their meaning: prometheus/exporter-toolkit, docs/web-configuration.md and web/tls_config.go. What ssl
cannot do is refused when the file is read, never left out silently.
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import cast

import msgspec
import structlog

from exporter.errors import ConfigError
from exporter.yamlfile import read_regular

VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}

CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}

CIPHERS = {
    # TLS 1.3 (not configurable, in Go neither)
    "TLS_AES_128_GCM_SHA256": "",
    "TLS_AES_256_GCM_SHA384": "",
    "TLS_CHACHA20_POLY1305_SHA256": "",
    # TLS 1.2
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    # In Go's tls.CipherSuites until 1.21
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
"""Go's cipher suites (crypto/tls.CipherSuites), by their IANA names, with OpenSSL's names."""

CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
"""The curves that exporter-toolkit knows, with OpenSSL's names."""

UNVERIFIED = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
"""Go's policies that ask for a certificate and do not verify it."""

SAN_KINDS = ("DNS", "email", "IP Address", "URI")
"""The kinds of names that exporter-toolkit compares, as getpeercert() calls them."""

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

log = structlog.get_logger("fabric-exporter")


class TLSServer(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Section ``tls_server_config``. None is a key that is not given; TLS is on when any is."""

    cert_file: str | None = None
    key_file: str | None = None
    cert: str | None = None
    key: str | None = None
    client_ca_file: str | None = None
    client_ca: str | None = None
    client_auth_type: str | None = None
    client_allowed_sans: list[str] | None = None
    min_version: str | None = None
    max_version: str | None = None
    cipher_suites: list[str] | None = None
    prefer_server_cipher_suites: bool | None = None
    curve_preferences: list[str] | None = None

    def files(self) -> tuple[str, ...]:
        """Return the files that the section names."""
        return tuple(file for file in (self.cert_file, self.key_file, self.client_ca_file) if file)

    def below(self, folder: str) -> TLSServer:
        """Return the section with its relative files taken from ``folder``."""
        files = {key: getattr(self, key) for key in ("cert_file", "key_file", "client_ca_file")}
        return msgspec.structs.replace(self, **{key: os.path.join(folder, file) for key, file in files.items() if file})


def build(tls: TLSServer) -> ssl.SSLContext:
    """Return a context with the certificates as they are now.

    Raises :class:`ConfigError` that begins with the key: a file that cannot be read, a key that is not the certificate's, a value
    that is not known or that Python's ssl cannot do.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION
    _set_versions(context, tls)
    _set_ciphers(context, tls)
    _set_curve(context, tls.curve_preferences or [])
    _set_certificate(context, tls)
    _set_client_authentication(context, tls)
    return context


class LiveContext(ssl.SSLContext):
    """The context to listen with: each connection gets all of the context that is in force when it comes.

    Swapping contexts in ``sni_callback`` would change the certificates alone: OpenSSL's SSL_set_SSL_CTX leaves the connection
    its old verify mode, versions, ciphers and session tickets, by which a client that is no longer trusted could resume.
    asyncio calls the context's ``wrap_bio`` for each connection; this one has no certificate and could not answer by itself.
    """

    _current: Callable[[], ssl.SSLContext]

    @classmethod
    def following(cls, current: Callable[[], ssl.SSLContext]) -> LiveContext:
        """Return a context that hands every connection to ``current()``."""
        context = cls(ssl.PROTOCOL_TLS_SERVER)
        context._current = current
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Return a connection of the context that is in force now."""
        return self._current().wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def _set_versions(context: ssl.SSLContext, tls: TLSServer) -> None:
    for key, given in (("min_version", tls.min_version), ("max_version", tls.max_version)):
        if given is not None and given not in VERSIONS:
            raise ConfigError(f"{key}: expected TLS12 or TLS13, found {given!r}")
    context.minimum_version = VERSIONS[tls.min_version or "TLS12"]
    context.maximum_version = VERSIONS[tls.max_version or "TLS13"]
    if context.minimum_version > context.maximum_version:
        raise ConfigError("min_version: is above max_version")


def _set_ciphers(context: ssl.SSLContext, tls: TLSServer) -> None:
    if tls.prefer_server_cipher_suites is not False:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    if not tls.cipher_suites:
        return
    names = []
    for suite in tls.cipher_suites:
        if suite not in CIPHERS:
            raise ConfigError(
                f"cipher_suites: unknown cipher suite {suite!r}, expected names as {next(reversed(CIPHERS))}"
            )
        if name := CIPHERS[suite]:
            try:
                context.set_ciphers(name)
            except ssl.SSLError:
                raise ConfigError(f"cipher_suites: {suite}: this host's OpenSSL does not offer it") from None
            names.append(name)
    if names:
        context.set_ciphers(":".join(names))
    elif context.maximum_version < ssl.TLSVersion.TLSv1_3:
        raise ConfigError("cipher_suites: has none for TLS 1.2, the highest version allowed")
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3


def _set_curve(context: ssl.SSLContext, curves: list[str]) -> None:
    for curve in curves:
        if curve not in CURVES:
            raise ConfigError(f"curve_preferences: unknown curve {curve!r}, expected one of {', '.join(CURVES)}")
    if len(curves) > 1:
        raise ConfigError("curve_preferences: Python's ssl takes one curve alone; give one, or leave the key out")
    for curve in curves:
        try:
            context.set_ecdh_curve(CURVES[curve])
        except (ssl.SSLError, ValueError):
            raise ConfigError(f"curve_preferences: {curve}: Python's ssl cannot be told this curve") from None


def _set_certificate(context: ssl.SSLContext, tls: TLSServer) -> None:
    certificate = _pem("cert", tls.cert, tls.cert_file)
    key = _pem("key", tls.key, tls.key_file)
    if certificate is None or key is None:
        missing = "cert" if certificate is None else "key"
        raise ConfigError(f"{missing}_file: missing; TLS needs a certificate and its key")
    of_certificate, of_key = _where("cert", tls.cert_file), _where("key", tls.key_file)
    if not _CERTIFICATE.search(certificate):
        raise ConfigError(f"{of_certificate}: holds no certificate; expected PEM")
    if b"ENCRYPTED" in key:
        raise ConfigError(f"{of_key}: is encrypted; expected a key without a passphrase")
    with ExitStack() as stack:
        certificate_file = tls.cert_file or stack.enter_context(_in_memory(certificate))
        key_file = tls.key_file or stack.enter_context(_in_memory(key))
        try:
            context.load_cert_chain(
                certificate_file, key_file, password=""
            )  # any password: else OpenSSL asks on the terminal
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise ConfigError(f"{of_key}: is not the key of the certificate") from None
            reason = error.reason or "not PEM"
            raise ConfigError(f"{of_certificate} and {of_key}: cannot be used: {reason}") from None


def _set_client_authentication(context: ssl.SSLContext, tls: TLSServer) -> None:
    kind = tls.client_auth_type or "NoClientCert"
    if kind not in CLIENT_AUTH:
        reason = ": Python's ssl cannot ask for a certificate without verifying it" if kind in UNVERIFIED else ""
        raise ConfigError(f"client_auth_type: {kind}{reason}; expected one of {', '.join(CLIENT_AUTH)}")
    authorities = _pem("client_ca", tls.client_ca, tls.client_ca_file)
    if kind == "NoClientCert" and authorities is not None:
        raise ConfigError("client_auth_type: missing, though a client CA is given; expected RequireAndVerifyClientCert")
    if kind != "NoClientCert" and authorities is None:
        raise ConfigError(f"client_ca_file: missing; {kind} needs it (the system's CAs are not used)")
    if tls.client_allowed_sans is not None and kind != "RequireAndVerifyClientCert":
        raise ConfigError("client_allowed_sans: needs client_auth_type RequireAndVerifyClientCert")
    context.verify_mode = CLIENT_AUTH[kind]
    if authorities is None:
        return
    try:
        # Only the blocks: text between them, in any encoding, is allowed in a file and not in ``cadata``.
        context.load_verify_locations(cadata=b"\n".join(_CERTIFICATE.findall(authorities)).decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ConfigError(f"{_where('client_ca', tls.client_ca_file)}: holds no certificate; expected PEM") from None
    # Go takes every certificate of the file as a root, OpenSSL only self-signed ones unless told so.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.client_allowed_sans is not None:
        context.sslobject_class = _only(_names(tls.client_allowed_sans))


def _only(allowed: frozenset[object]) -> type[ssl.SSLObject]:
    """Return the connections of a context that wants one of those names in the client's certificate."""

    class AllowedClient(ssl.SSLObject):
        """Fails the handshake of any other client, so that nothing of it reaches the server."""

        def do_handshake(self) -> None:
            super().do_handshake()  # raises SSLWantReadError until it is done
            alternatives = cast("tuple[tuple[str, str], ...]", (self.getpeercert() or {}).get("subjectAltName", ()))
            names = [name for kind, name in alternatives if kind in SAN_KINDS]
            if not _names(names) & allowed:
                log.warning("client certificate refused: none of its names is in client_allowed_sans", names=names)
                raise ssl.SSLError("client certificate without an allowed name")

    return AllowedClient


def _names(values: list[str]) -> frozenset[object]:
    """Return names to compare, addresses by what they are: OpenSSL prints IPv6 in full and in capitals."""
    return frozenset(_address(value) or value for value in values)


def _address(text: str) -> object:
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError:
        return None


def _pem(key: str, text: str | None, file: str | None) -> bytes | None:
    """Return what a pair of keys ``key`` / ``key_file`` gives, None when neither is given."""
    if text and file:
        raise ConfigError(f"{key}: is given twice, as {key} and as {key}_file")
    if not file:
        return text.encode() if text else None
    try:
        return read_regular(file)
    except OSError as error:
        raise ConfigError(f"{_where(key, file)}: cannot be read: {error.strerror}") from None


def _where(key: str, file: str | None) -> str:
    return f"{key}_file: {file}" if file else key


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Yield the path of a file in memory: ssl takes certificates and keys from files alone, and keys belong on no disk."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
