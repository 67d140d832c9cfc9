from __future__ import annotations

import asyncio
import base64
import threading
from pathlib import Path

import bcrypt
import pytest

from exporter.web.auth import REMEMBERED, Authenticator
from tests.web.served import basic, hashed, serving

PATHS = ("/metrics", "/", "/-/healthy", "/-/ready", "/nothing")


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """Return a configuration with the users ``alice`` (password ``blå``) and ``long`` (72 bytes)."""
    path = tmp_path / "web.yml"
    path.write_text(f"basic_auth_users:\n  alice: {hashed('blå')}\n  long: {hashed('x' * 72)}\n")
    return path


async def test_every_path_needs_a_password(users: Path) -> None:
    async with serving(config=users) as site:
        for path in PATHS:
            assert await site.get(path) == (401, "user and password expected\n")
            status, _ = await site.get(path, headers={"Authorization": basic("alice", "blå")})
            assert status == (404 if path == "/nothing" else 200)
        async with site.client.get(site.url) as response:
            assert response.headers["WWW-Authenticate"] == 'Basic realm="fabric-exporter", charset="UTF-8"'


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (basic("alice", "blå"), 200),
        (basic("alice", "blå").replace("Basic", "bAsIc"), 200),
        (basic("long", "x" * 72), 200),
        (basic("long", "x" * 73), 401),
        (basic("alice", "wrong"), 401),
        (basic("alice", ""), 401),
        (basic("alice", "blå\0"), 401),
        (basic("alice", "blå".encode("latin-1")), 401),
        (basic("nobody", "blå"), 401),
        (basic("", ""), 401),
        ("Basic " + base64.b64encode(b"alice").decode(), 401),
        ("Basic " + base64.b64encode(b"\xff:x").decode(), 401),
        ("Basic !!!", 401),
        ("Basic", 401),
        ("Bearer " + basic("alice", "blå")[6:], 401),
        ("", 401),
    ],
)
async def test_credentials(users: Path, authorization: str, status: int) -> None:
    async with serving(config=users) as site:
        # Twice: what is remembered of the first answer changes nothing.
        assert [(await site.get(headers={"Authorization": authorization}))[0] for _ in range(2)] == [status, status]


async def test_users_change_without_a_restart(users: Path) -> None:
    async with serving(config=users) as site:
        alice, bob = ({"Authorization": basic(name, "blå")} for name in ("alice", "bob"))
        assert [(await site.get(headers=headers))[0] for headers in (alice, bob)] == [200, 401]
        users.write_text(f"basic_auth_users:\n  bob: {hashed('blå')}\n")
        assert [(await site.get(headers=headers))[0] for headers in (alice, bob)] == [401, 200]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the hashes that bcrypt has been asked about since."""
    asked: list[bytes] = []
    check = bcrypt.checkpw

    def noted(password: bytes, stored: bytes) -> bool:
        asked.append(stored)
        return check(password, stored)

    monkeypatch.setattr(bcrypt, "checkpw", noted)
    return asked


async def test_a_password_is_checked_once_until_its_hash_changes(checked: list[bytes]) -> None:
    authenticator = Authenticator()
    first, second = hashed("secret"), hashed("secret")
    right, wrong = basic("alice", "secret"), basic("alice", "guess")
    for _ in range(3):
        assert await authenticator.allows({"alice": first}, right)
        assert not await authenticator.allows({"alice": first}, wrong)
    # Right once and remembered; wrong every time.
    assert len(checked) == 4
    assert await authenticator.allows({"alice": second}, right)
    assert checked[-1] == second.encode()


async def test_an_unknown_user_costs_a_bcrypt_too_and_is_never_let_in(checked: list[bytes]) -> None:
    authenticator = Authenticator()
    stored = hashed("secret")
    # Even the password of another user, which has been remembered, takes its time.
    assert await authenticator.allows({"alice": stored}, basic("alice", "secret"))
    for _ in range(2):
        assert not await authenticator.allows({"alice": stored}, basic("mallory", "secret"))
    assert checked == [stored.encode()] * 3


async def test_what_is_remembered_is_bounded() -> None:
    authenticator = Authenticator()
    stored = hashed("secret")
    for number in range(REMEMBERED + 5):
        assert await authenticator.allows({f"user{number}": stored}, basic(f"user{number}", "secret"))
    assert len(authenticator._right) == REMEMBERED


async def test_guesses_are_checked_one_at_a_time_and_delay_nobody_else(
    users: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(config=users, max_requests=3) as site:
        known = {"Authorization": basic("alice", "blå")}
        assert (await site.get(headers=known))[0] == 200

        begun: list[bytes] = []
        go_on = threading.Event()

        def slow(password: bytes, stored: bytes) -> bool:
            begun.append(password)
            return not go_on.wait(60)

        monkeypatch.setattr(bcrypt, "checkpw", slow)
        guesses = [asyncio.create_task(site.get(headers={"Authorization": basic("alice", str(n))})) for n in range(5)]
        while not begun:
            await asyncio.sleep(0.01)
        assert (await site.get(headers=known))[0] == 200
        assert len(begun) == 1
        go_on.set()
        assert [status for status, _ in await asyncio.gather(*guesses)] == [401] * 5
        assert len(begun) == 5


async def test_headers_of_the_configuration_are_on_every_response(tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text(
        "http_server_config:\n"
        "  headers: {X-Frame-Options: deny, Content-Security-Policy: default-src 'self', X-XSS-Protection: ''}\n"
        f"basic_auth_users: {{alice: {hashed('secret')}}}\n"
    )
    async with serving(config=path) as site:
        right = {"Authorization": basic("alice", "secret")}
        for url, headers in ((site.url, right), (site.url + "/nothing", right), (site.url, {})):
            async with site.client.get(url, headers=headers) as response:
                assert response.headers.getall("Content-Security-Policy") == ["default-src 'self'"]
                assert response.headers["X-Frame-Options"] == "deny"
                assert "X-XSS-Protection" not in response.headers


async def test_rate_limit(tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text("rate_limit: {interval: 1h, burst: 3}\n")
    async with serving(config=path) as site:
        assert [(await site.get())[0] for _ in range(5)] == [200, 200, 200, 429, 429]
        assert (await site.get())[1] == "too many requests, see rate_limit in the web configuration\n"
