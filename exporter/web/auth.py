"""Basic authentication with bcrypt hashes (section ``basic_auth_users`` of a web configuration)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import re
from collections.abc import Mapping

from exporter.errors import ConfigError

BCRYPT = re.compile(r"\$2[abxy]\$(?P<cost>\d\d)\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")
"""A hash: version, cost, a salt of 16 bytes (whose last character holds two bits alone), a digest of 23."""
COSTS = range(4, 19)
"""Cost 18 is seconds of one core per attempt; above, anybody who can connect could keep a core busy for hours."""
LONGEST_PASSWORD = 72
"""What bcrypt takes, in bytes. A longer password is refused: cutting it off would let others in that begin alike."""
REMEMBERED = 100


def check_users(users: Mapping[str, str]) -> None:
    """Raise :class:`ConfigError` that begins with the user for a hash that bcrypt would not take."""
    for user, stored in users.items():
        match = BCRYPT.fullmatch(stored)
        if match is None:
            raise ConfigError(f"{user}: expected a bcrypt hash as `htpasswd -nBC 10 {user}` prints it")
        if int(match["cost"]) not in COSTS:
            raise ConfigError(f"{user}: expected a bcrypt cost of {COSTS[0]} to {COSTS[-1]}, found {match['cost']}")


class Authenticator:
    """Tells whether an ``Authorization`` header is one of the users'.

    bcrypt runs in a worker thread and for one request at a time, so that guessing costs one core at most. What was right is
    remembered by a keyed hash of user, password and stored hash: a scrape does not pay for bcrypt, a changed file does.
    """

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._right: dict[bytes, None] = {}
        self._turn = asyncio.Lock()

    async def allows(self, users: Mapping[str, str], authorization: str) -> bool:
        """Return whether the header names a user with the user's password. An unknown user takes as long as a known one."""
        credentials = _credentials(authorization)
        if credentials is None or not users:
            return False
        user, password = credentials
        stored = users.get(user)
        known = stored is not None
        against = next(iter(users.values())) if stored is None else stored
        digest = self._digest(user, password, against)
        if known and digest in self._right:
            return True
        async with self._turn:
            right = await asyncio.to_thread(_matches, password, against)
        if not (known and right):
            return False
        self._right[digest] = None
        if len(self._right) > REMEMBERED:
            del self._right[next(iter(self._right))]
        return True

    def _digest(self, user: str, password: bytes, stored: str) -> bytes:
        digest = hashlib.blake2b(key=self._key, digest_size=32)
        for part in (user.encode(), password, stored.encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()


def _credentials(authorization: str) -> tuple[str, bytes] | None:
    """Return user and password of a ``Basic`` header (RFC 7617), None for anything else."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(token.strip(), validate=True).partition(b":")
        name = user.decode()
    except (binascii.Error, ValueError):
        return None
    return (name, password) if colon and len(password) <= LONGEST_PASSWORD else None


def _matches(password: bytes, stored: str) -> bool:
    import bcrypt

    try:
        return bcrypt.checkpw(password, stored.encode())
    except ValueError:
        return False
