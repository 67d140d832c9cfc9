"""A host to serve, certificates that nobody else trusts, and a client that speaks to the server as any client would."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import bcrypt
import trustme

from exporter.model import Inventory, Metric, Reading, Series, Shape
from exporter.web.server import serve
from exporter.web.webconfig import WebConfigFile, load_web_config

SAMPLES = Path(__file__).parent / "data"
UP = Metric("fabric_port_up", "gauge", "Whether the port is up.", ("device", "port"))


@dataclass
class Host:
    """A scraper of two sources with one series each, that answers once its gate is open."""

    ready: bool = True
    source_names: tuple[str, ...] = ("ethtool", "rdma")
    inventory_: Inventory = field(default_factory=Inventory)
    errors_: Sequence[Mapping[str, Any]] | Exception | None = None
    gate: asyncio.Event | None = None
    extra: tuple[Reading, ...] = ()
    asked: list[tuple[frozenset[str] | None, float]] = field(default_factory=list)
    waiting: int = 0

    def __post_init__(self) -> None:
        self._shapes = {name: Shape([Series(UP, (("device", name), ("port", "1")))]) for name in self.source_names}

    async def asked_for(self, requests: int) -> None:
        """Wait until so many requests wait for the gate."""
        while self.waiting < requests:
            await asyncio.sleep(0.01)

    async def scrape(self, sources: frozenset[str] | None, deadline: float) -> Sequence[Reading]:
        self.asked.append((sources, deadline - asyncio.get_running_loop().time()))
        self.waiting += 1
        if self.gate is not None:
            await self.gate.wait()
        self.waiting -= 1
        chosen = self.source_names if sources is None else sorted(sources)
        return [Reading(self._shapes[name], (1,)) for name in chosen] + list(self.extra)

    def inventory(self) -> Inventory:
        return self.inventory_

    async def errors(self) -> Sequence[Mapping[str, Any]] | None:
        if isinstance(self.errors_, Exception):
            raise self.errors_
        return self.errors_


@dataclass
class Pki:
    """Files of a server and its clients in one folder, and the authorities behind them."""

    folder: Path
    servers: trustme.CA
    clients: trustme.CA

    def put(self, name: str, content: bytes) -> Path:
        """Write a file as certificate managers do: beside, then renamed over the old one."""
        path = self.folder / name
        beside = self.folder / f".{name}.new"
        beside.write_bytes(content)
        os.replace(beside, path)
        return path

    def put_server(self, *names: str) -> trustme.LeafCert:
        certificate = self.servers.issue_cert(*(names or ("localhost", "127.0.0.1", "::1")))
        self.put("server.crt", b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
        self.put("server.key", certificate.private_key_pem.bytes())
        return certificate

    def put_config(self, text: str) -> Path:
        return self.put("web.yml", text.encode())

    def trust(
        self, certificate: trustme.LeafCert | None = None, version: ssl.TLSVersion | None = None
    ) -> ssl.SSLContext:
        """Return a client's context: it trusts the server's authority and shows that certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.servers.configure_trust(context)
        if certificate is not None:
            certificate.configure_cert(context)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context


@dataclass
class Site:
    """A served host and a way to ask it."""

    host: Host
    url: str
    config: WebConfigFile | None
    client: aiohttp.ClientSession

    async def get(self, path: str = "/metrics", method: str = "GET", **options: Any) -> tuple[int, str]:
        async with self.client.request(method, self.url + path, **options) as response:
            return response.status, await response.text()


@asynccontextmanager
async def serving(
    host: Host | None = None, config: Path | None = None, address: str = "127.0.0.1:0", **options: Any
) -> AsyncIterator[Site]:
    """Serve a host until the block ends."""
    host = host or Host()
    web_config = load_web_config(str(config)) if config else None
    async with contextlib.AsyncExitStack() as stack:
        listeners = await serve(host, [address], web_config, **options)
        stack.push_async_callback(listeners.close)
        client = await stack.enter_async_context(aiohttp.ClientSession())
        yield Site(host, listeners.addresses[0], web_config, client)


def basic(user: str, password: str | bytes) -> str:
    """Return an ``Authorization`` header."""
    raw = password if isinstance(password, bytes) else password.encode()
    return "Basic " + base64.b64encode(user.encode() + b":" + raw).decode()


def hashed(password: str) -> str:
    """Return a bcrypt hash of the lowest cost."""
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
