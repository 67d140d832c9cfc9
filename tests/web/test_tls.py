"""Real handshakes: TLS, client certificates, and files that change while it serves."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from exporter.web.tls import _names
from tests.web.served import Pki, Site, basic, hashed, serving

REFUSED = (ssl.SSLError, aiohttp.ClientConnectionError, ConnectionError)
SERVER = "cert_file: server.crt, key_file: server.key"
MUTUAL = f"{SERVER}, client_ca_file: clients.crt, client_auth_type: RequireAndVerifyClientCert"
VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


def tls(pki: Pki, section: str) -> Path:
    return pki.put_config(f"tls_server_config: {{{section}}}\n")


async def status(site: Site, context: ssl.SSLContext) -> int:
    """Return the status of one request on a connection of its own."""
    async with aiohttp.ClientSession() as client, client.get(f"{site.url}/metrics", ssl=context) as response:
        await response.read()
        return response.status


async def assert_refused(site: Site, context: ssl.SSLContext) -> None:
    with pytest.raises(REFUSED):
        await status(site, context)


@asynccontextmanager
async def kept_alive(site: Site, context: ssl.SSLContext) -> AsyncIterator[Any]:
    """Yield a function that asks on one connection and returns the answer's head, empty if there is none."""
    host, _, port = site.url.removeprefix("https://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context, server_hostname="localhost")

    async def ask() -> str:
        writer.write(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len("healthy\n"))
        except (asyncio.IncompleteReadError, ConnectionError):
            return ""
        return head.decode()

    try:
        yield ask
    finally:
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


def serial(
    site: Site, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[str, ssl.SSLSession | None, bool]:
    """Ask with a blocking socket; return the server's serial number, the session and whether it was resumed. Run in a thread."""
    host, _, port = site.url.removeprefix("https://").rpartition(":")
    with (
        socket.create_connection((host, int(port))) as raw,
        context.wrap_socket(raw, server_hostname="localhost", session=session) as connection,
    ):
        connection.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := connection.recv(4096):
            answer += part
        assert answer.startswith(b"HTTP/1.1 200")
        certificate = connection.getpeercert() or {}
        return str(certificate["serialNumber"]), connection.session, bool(connection.session_reused)


@VERSIONS
async def test_tls(pki: Pki, version: ssl.TLSVersion) -> None:
    async with serving(config=tls(pki, SERVER)) as site:
        assert site.url.startswith("https://127.0.0.1:")
        assert await status(site, pki.trust(version=version)) == 200


async def test_a_lowest_version(pki: Pki) -> None:
    async with serving(config=tls(pki, f"{SERVER}, min_version: TLS13")) as site:
        assert await status(site, pki.trust()) == 200
        await assert_refused(site, pki.trust(version=ssl.TLSVersion.TLSv1_2))


async def test_a_curve(pki: Pki) -> None:
    async with serving(config=tls(pki, f"{SERVER}, curve_preferences: [CurveP384]")) as site:
        assert await status(site, pki.trust()) == 200
        other = pki.trust(version=ssl.TLSVersion.TLSv1_2)
        other.set_ecdh_curve("prime256v1")
        await assert_refused(site, other)


async def test_plain_http_to_a_tls_port_gets_no_answer(pki: Pki, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(config=tls(pki, SERVER)) as site:
        with pytest.raises(aiohttp.ClientConnectionError):
            await site.client.get(site.url.replace("https", "http"))
        assert await status(site, pki.trust()) == 200
    assert [record.message for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


@VERSIONS
async def test_client_certificates(pki: Pki, version: ssl.TLSVersion) -> None:
    async with serving(config=tls(pki, MUTUAL)) as site:
        assert await status(site, pki.trust(pki.clients.issue_cert("prometheus.example"), version)) == 200
        await assert_refused(site, pki.trust(None, version))
        await assert_refused(site, pki.trust(trustme.CA().issue_cert("prometheus.example"), version))
        # The server's own authority vouches for servers, not for clients.
        await assert_refused(site, pki.trust(pki.servers.issue_cert("prometheus.example"), version))


async def test_a_client_certificate_if_given(pki: Pki) -> None:
    section = f"{SERVER}, client_ca_file: clients.crt, client_auth_type: VerifyClientCertIfGiven"
    async with serving(config=tls(pki, section)) as site:
        assert await status(site, pki.trust()) == 200
        assert await status(site, pki.trust(pki.clients.issue_cert("prometheus.example"))) == 200
        await assert_refused(site, pki.trust(trustme.CA().issue_cert("prometheus.example")))


async def test_an_intermediate_ca_may_stand_alone(pki: Pki) -> None:
    intermediate = pki.clients.create_child_ca()
    pki.put("clients.crt", intermediate.cert_pem.bytes())
    async with serving(config=tls(pki, MUTUAL)) as site:
        assert await status(site, pki.trust(intermediate.issue_cert("prometheus.example"))) == 200
        await assert_refused(site, pki.trust(pki.clients.issue_cert("prometheus.example")))


@VERSIONS
@pytest.mark.parametrize(
    ("identity", "allowed"),
    [
        ("prometheus.example", True),
        ("other.example", False),
        ("sub.prometheus.example", False),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("2001:db8::1", True),
        ("2001:db8::2", False),
        ("scraper@example.org", True),
        ("other@example.org", False),
    ],
)
async def test_allowed_names(pki: Pki, version: ssl.TLSVersion, identity: str, allowed: bool) -> None:
    names = "prometheus.example, 192.0.2.7, '2001:db8::1', scraper@example.org"
    async with serving(config=tls(pki, f"{MUTUAL}, client_allowed_sans: [{names}]")) as site:
        context = pki.trust(pki.clients.issue_cert(identity), version)
        with structlog.testing.capture_logs() as logs:
            if allowed:
                assert await status(site, context) == 200
            else:
                await assert_refused(site, context)
        # aiohttp's client tries twice.
        assert {entry["event"] for entry in logs} == (
            set() if allowed else {"client certificate refused: none of its names is in client_allowed_sans"}
        )


@pytest.mark.parametrize(("uri", "allowed"), [("spiffe://example/prometheus", True), ("spiffe://example/other", False)])
async def test_allowed_uris(pki: Pki, uri: str, allowed: bool) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "client")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    pki.put("clients.crt", pem)
    none = serialization.NoEncryption()
    both = pki.put(
        "uri.pem", pem + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, none)
    )
    context = pki.trust()
    context.load_cert_chain(both)
    async with serving(config=tls(pki, f"{MUTUAL}, client_allowed_sans: ['spiffe://example/prometheus']")) as site:
        if allowed:
            assert await status(site, context) == 200
        else:
            await assert_refused(site, context)


async def test_a_new_certificate_is_served_without_a_restart(pki: Pki) -> None:
    async with serving(config=tls(pki, SERVER)) as site, kept_alive(site, pki.trust()) as ask:
        before, _, _ = await asyncio.to_thread(serial, site, pki.trust())
        assert "Connection: close" not in await ask()
        pki.put_server()
        # A connection of before is answered, and ended, so that its client comes back with a handshake.
        assert "Connection: close" in await ask()
        after, _, _ = await asyncio.to_thread(serial, site, pki.trust())
    assert before != after


async def test_a_broken_certificate_leaves_the_old_one_in_force(pki: Pki) -> None:
    config = tls(pki, SERVER)
    async with serving(config=config) as site:
        before, _, _ = await asyncio.to_thread(serial, site, pki.trust())
        with structlog.testing.capture_logs() as logs:
            pki.put("server.key", pki.servers.issue_cert("localhost").private_key_pem.bytes())
            for _ in range(3):
                assert (await asyncio.to_thread(serial, site, pki.trust()))[0] == before
            os.unlink(pki.folder / "server.key")
            assert (await asyncio.to_thread(serial, site, pki.trust()))[0] == before
        key = pki.folder / "server.key"
        assert [entry["error"] for entry in logs] == [
            f"{config}: tls_server_config.key_file: {key}: is not the key of the certificate",
            f"{config}: tls_server_config.key_file: {key}: cannot be read: No such file or directory",
        ]
        assert site.config is not None
        assert site.config.failures == 2
        pki.put_server()
        assert (await asyncio.to_thread(serial, site, pki.trust()))[0] != before


@VERSIONS
async def test_a_removed_ca_lets_nobody_in_any_more(pki: Pki, version: ssl.TLSVersion) -> None:
    old = pki.trust(pki.clients.issue_cert("prometheus.example"), version)
    authority = trustme.CA()
    new = pki.trust(authority.issue_cert("prometheus.example"), version)
    async with serving(config=tls(pki, MUTUAL)) as site, kept_alive(site, old) as ask:
        assert await status(site, old) == 200
        await assert_refused(site, new)
        assert "200 OK" in await ask()

        pki.put("clients.crt", authority.cert_pem.bytes())
        assert await status(site, new) == 200
        await assert_refused(site, old)
        # Neither does a connection from before get an answer.
        assert await ask() == ""


@VERSIONS
async def test_a_session_from_before_is_not_resumed(pki: Pki, version: ssl.TLSVersion) -> None:
    context = pki.trust(pki.clients.issue_cert("prometheus.example"), version)
    async with serving(config=tls(pki, MUTUAL)) as site:
        _, session, _ = await asyncio.to_thread(serial, site, context)
        _, session, resumed = await asyncio.to_thread(serial, site, context, session)
        assert resumed  # or the rest would prove nothing
        pki.put("clients.crt", trustme.CA().cert_pem.bytes())
        with pytest.raises((*REFUSED, AssertionError)):
            await asyncio.to_thread(serial, site, context, session)


async def test_a_resumed_session_is_held_to_the_allowed_names(pki: Pki) -> None:
    context = pki.trust(pki.clients.issue_cert("prometheus.example"))
    async with serving(config=tls(pki, f"{MUTUAL}, client_allowed_sans: [prometheus.example]")) as site:
        _, session, _ = await asyncio.to_thread(serial, site, context)
        assert (await asyncio.to_thread(serial, site, context, session))[2]


async def test_client_certificates_may_be_demanded_from_now_on(pki: Pki) -> None:
    """What swapping contexts by server name would miss: the verify mode of a connection is not the certificate's."""
    async with serving(config=tls(pki, SERVER)) as site, kept_alive(site, pki.trust()) as ask:
        assert await status(site, pki.trust()) == 200
        assert "200 OK" in await ask()
        tls(pki, MUTUAL)
        await assert_refused(site, pki.trust())
        assert await ask() == ""
        assert await status(site, pki.trust(pki.clients.issue_cert("prometheus.example"))) == 200


async def test_mutual_tls_with_a_password_on_a_unix_socket(pki: Pki, tmp_path: Path) -> None:
    config = pki.put_config(f"tls_server_config: {{{MUTUAL}}}\nbasic_auth_users: {{alice: {hashed('secret')}}}\n")
    path = tmp_path / "x.sock"
    context = pki.trust(pki.clients.issue_cert("prometheus.example"))
    async with serving(config=config, address=f"unix:{path}"):
        for authorization, expected in ((basic("alice", "secret"), b"200"), ("", b"401")):
            reader, writer = await asyncio.open_unix_connection(path, ssl=context, server_hostname="localhost")
            request = f"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {authorization}\r\n\r\n"
            writer.write(request.encode())
            assert (await reader.read()).split()[1] == expected
            writer.close()


def test_addresses_are_compared_by_what_they_are() -> None:
    assert (
        _names(["2001:DB8:0:0:0:0:0:1"]) == _names(["2001:db8::1"]) == frozenset([ipaddress.ip_address("2001:db8::1")])
    )
