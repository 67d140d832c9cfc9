"""Debian's Prometheus as the client: mutual TLS with a password, while certificates change."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import trustme

from tests.web.served import Host, Pki, hashed, serving

WAIT_SECONDS = 60


async def eventually(attempt: Callable[[], Awaitable[bool]], what: str) -> None:
    for _ in range(WAIT_SECONDS * 10):
        if await attempt():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"not within {WAIT_SECONDS} s: {what}")


def put_client(pki: Pki, authority: trustme.CA) -> None:
    certificate = authority.issue_cert("prometheus.example")
    pki.put("client.crt", certificate.cert_chain_pems[0].bytes())
    pki.put("client.key", certificate.private_key_pem.bytes())


async def test_prometheus_through_a_change_of_certificates(pki: Pki, tmp_path: Path) -> None:
    put_client(pki, pki.clients)
    pki.put("servers.crt", pki.servers.cert_pem.bytes())
    config = pki.put_config(
        "tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: clients.crt,"
        " client_auth_type: RequireAndVerifyClientCert, client_allowed_sans: [prometheus.example]}\n"
        f"basic_auth_users: {{prometheus: {hashed('a secret')}}}\n"
    )
    host = Host()
    async with serving(host, config=config) as site:
        scrape = {
            "job_name": "fabric",
            "scheme": "https",
            "scrape_interval": "1s",
            "tls_config": {
                "ca_file": "servers.crt",
                "cert_file": "client.crt",
                "key_file": "client.key",
                "server_name": "localhost",
            },
            "basic_auth": {"username": "prometheus", "password": "a secret"},
            "static_configs": [{"targets": [site.url.removeprefix("https://")]}],
        }
        (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}))
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        prometheus = await asyncio.create_subprocess_exec(
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address={address}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )

        async def up(expected: int) -> bool:
            try:
                async with site.client.get(f"http://{address}/api/v1/query", params={"query": "up"}) as response:
                    result = (await response.json())["data"]["result"]
            except (aiohttp.ClientConnectionError, aiohttp.ContentTypeError):
                return False
            return [item["value"][1] for item in result] == [str(expected)]

        async def scraped_again(before: int) -> bool:
            return len(host.asked) >= before + 3 and await up(1)

        try:
            await eventually(lambda: up(1), "up == 1")

            pki.put_server()
            authority = trustme.CA()
            pki.put("clients.crt", pki.clients.cert_pem.bytes() + authority.cert_pem.bytes())
            seen = len(host.asked)
            await eventually(
                lambda: scraped_again(seen), "scrapes with a new server certificate and one more client CA"
            )

            pki.put("clients.crt", authority.cert_pem.bytes())
            await eventually(lambda: up(0), "up == 0 without the client's CA")
            seen = len(host.asked)
            put_client(pki, authority)
            await eventually(lambda: scraped_again(seen), "scrapes with a new client certificate")
        finally:
            prometheus.terminate()
            await prometheus.wait()
