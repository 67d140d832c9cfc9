from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from pathlib import Path

import aiohttp
import pytest

from exporter.errors import UsageError
from exporter.web.server import serve
from tests.web.served import Host, serving


async def ask(address: str) -> int:
    """Return the status of ``/metrics`` at an address as the listeners give it."""
    if address.startswith("unix:"):
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(address.removeprefix("unix:"))) as client:
            return (await client.get("http://host/metrics")).status
    async with aiohttp.ClientSession() as client:
        return (await client.get(f"{address}/metrics")).status


async def test_several_addresses(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    listeners = await serve(Host(), ["127.0.0.1:0", "[::1]:0", f"unix:{path}"], None)
    try:
        first, second, third = listeners.addresses
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", first)
        assert re.fullmatch(r"http://\[::1\]:\d+", second)
        assert third == f"unix:{path}"
        assert [await ask(address) for address in listeners.addresses] == [200, 200, 200]
    finally:
        await listeners.close()
    assert not path.exists()
    for address in (first, second):
        with pytest.raises(aiohttp.ClientConnectorError):
            await ask(address)


async def test_without_a_host_it_listens_on_ipv6_and_ipv4() -> None:
    listeners = await serve(Host(), [":0"], None)
    try:
        port = listeners.addresses[0].rpartition(":")[2]
        assert [await ask(f"http://{host}:{port}") for host in ("127.0.0.1", "[::1]")] == [200, 200]
    finally:
        await listeners.close()


async def test_all_of_ipv4_and_all_of_ipv6_may_be_named_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    listeners = await serve(Host(), [f"0.0.0.0:{port}", f"[::]:{port}"], None)
    try:
        assert [await ask(f"http://{host}:{port}") for host in ("127.0.0.1", "[::1]")] == [200, 200]
    finally:
        await listeners.close()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("10073", "expected host:port, :port, [IPv6]:port or unix:/path, found '10073'"),
        ("", "expected host:port, :port, [IPv6]:port or unix:/path, found ''"),
        ("unix:", "expected host:port, :port, [IPv6]:port or unix:/path, found 'unix:'"),
        ("::1:10073", "expected host:port, :port, [IPv6]:port or unix:/path, found '::1:10073'"),
        ("127.0.0.1:99999", "expected host:port, :port, [IPv6]:port or unix:/path, found '127.0.0.1:99999'"),
        ("127.0.0.1:http", "expected host:port, :port, [IPv6]:port or unix:/path, found '127.0.0.1:http'"),
        (":٣", "expected host:port, :port, [IPv6]:port or unix:/path, found ':٣'"),
        ("..:1", "..:1: is no name of a host"),
        (f"{'a' * 64}:1", f"{'a' * 64}:1: is no name of a host"),
        ("http://127.0.0.1:1", "expected host:port, :port, [IPv6]:port or unix:/path, found 'http://127.0.0.1:1'"),
        ("192.0.2.1:10073", "192.0.2.1:10073: cannot assign requested address"),
        ("unix:/nowhere/x.sock", "unix:/nowhere/x.sock: no such file or directory"),
        (f"unix:/{'x' * 120}", f"unix:/{'x' * 120}: AF_UNIX path too long"),
    ],
)
async def test_an_address_that_cannot_be_listened_on(address: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        await serve(Host(), [address], None)
    assert str(error.value) == f"--web.listen-address: {said}"


async def test_an_address_in_use_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    async with serving() as site:
        taken = site.url.removeprefix("http://")
        with pytest.raises(UsageError) as error:
            await serve(Host(), [f"unix:{path}", taken], None)
    assert str(error.value) == f"--web.listen-address: {taken}: address already in use"
    assert not path.exists()


async def test_a_unix_socket_in_use_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    async with serving(address=f"unix:{path}"):
        with pytest.raises(UsageError, match=r"unix:.*x\.sock: address already in use$"):
            await serve(Host(), [f"unix:{path}"], None)
        assert await ask(f"unix:{path}") == 200


async def test_a_unix_socket_that_nobody_listens_on_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with serving(address=f"unix:{path}"):
        assert await ask(f"unix:{path}") == 200
    assert not path.exists()


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    path.write_text("precious")
    with pytest.raises(UsageError, match=r"x\.sock: is there and is no socket$"):
        await serve(Host(), [f"unix:{path}"], None)
    assert path.read_text() == "precious"


async def test_another_programs_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    async with serving(address=f"unix:{path}"):
        os.unlink(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert path.exists()


async def test_closing_lets_a_request_in_flight_end_and_takes_no_new_one() -> None:
    gate = asyncio.Event()
    host = Host(gate=gate)
    listeners = await serve(host, ["127.0.0.1:0"], None)
    (address,) = listeners.addresses
    running = asyncio.create_task(ask(address))
    await host.asked_for(1)
    closing = asyncio.create_task(listeners.close())
    await asyncio.sleep(0)
    with pytest.raises(aiohttp.ClientConnectorError):
        await ask(address)
    gate.set()
    assert await running == 200
    await closing


async def test_idle_connections_do_not_delay_the_end() -> None:
    listeners = await serve(Host(), ["127.0.0.1:0"], None)
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{listeners.addresses[0]}/metrics") as response:
            await response.read()
        await asyncio.wait_for(listeners.close(), 4)


async def test_what_is_not_http_is_no_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as site:
        host, _, port = site.url.removeprefix("http://").rpartition(":")
        for rubbish in (
            b"\x16\x03\x01\x02\x00\x01\x00",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\nbad header\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(rubbish + b"\r\n\r\n")
            assert b" 400 " in (await reader.read()).split(b"\r\n")[0]
            writer.close()
        assert (await site.get())[0] == 200
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
