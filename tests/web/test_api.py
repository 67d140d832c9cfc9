"""Who is told what of the errors that logs tell of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exporter.web.api import is_loopback
from tests.web.served import Host, Pki, basic, hashed, serving

COMPLETION = {
    "log": "4711",
    "path": "/logs/4711/nccl.gpu-7.12",
    "kind": "completion",
    "what": "RETRY_EXC_ERR",
    "time": 1796185687.25,
    "host": "gpu-7",
    "pid": 12,
    "status": 12,
    "vendor_error": 129,
    "code": None,
    "hca": "mlx5_3",
    "port": None,
    "peer": "192.0.2.9<45012>",
    "local_gid": None,
    "remote_gid": None,
    "consequence": False,
    "line": "gpu-7:12:13 [0] net_ib.cc:1 NCCL WARN ...",
}
FAILURE = COMPLETION | {"kind": "failure", "what": "connect to 192.0.2.9<45012> returned No route to host"}
REDACTED = {
    "log": "4711",
    "kind": "completion",
    "what": "RETRY_EXC_ERR",
    "time": 1796185687.25,
    "status": 12,
    "vendor_error": 129,
    "code": None,
    "hca": "mlx5_3",
    "port": None,
    "consequence": False,
}
ERRORS = (COMPLETION, FAILURE)


async def answer(site: Any, **options: Any) -> Any:
    async with site.client.get(site.url + "/api/v1/evidence", **options) as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        return await response.json()


async def test_who_is_on_this_host_is_told_all() -> None:
    async with serving(Host(errors_=ERRORS)) as site:
        assert await answer(site) == {"following": True, "redacted": False, "errors": list(ERRORS)}


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via"])
async def test_who_comes_through_a_proxy_is_not_on_this_host(header: str) -> None:
    async with serving(Host(errors_=ERRORS)) as site:
        told = await answer(site, headers={header: "for=192.0.2.1"})
    assert told == {
        "following": True,
        "redacted": True,
        "errors": [REDACTED, REDACTED | {"kind": "failure", "what": None}],
    }


async def test_who_has_shown_a_password_is_told_all(tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users:\n  reader: {hashed('secret')}\n")
    async with serving(Host(errors_=ERRORS), config) as site:
        told = await answer(site, headers={"X-Forwarded-For": "192.0.2.1", "Authorization": basic("reader", "secret")})
        assert told["errors"] == list(ERRORS)
        async with site.client.get(
            site.url + "/api/v1/evidence", headers={"Authorization": basic("reader", "wrong")}
        ) as response:
            assert response.status == 401


async def test_who_has_shown_a_certificate_is_told_all(pki: Pki) -> None:
    config = pki.put_config(
        "tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: clients.crt, "
        "client_auth_type: VerifyClientCertIfGiven}"
    )
    forwarded = {"X-Forwarded-For": "192.0.2.1"}
    async with serving(Host(errors_=ERRORS), config) as site:
        assert (await answer(site, headers=forwarded, ssl=pki.trust()))["redacted"]
    async with serving(Host(errors_=ERRORS), config) as site:
        shown = pki.trust(pki.clients.issue_cert("prometheus.example"))
        assert not (await answer(site, headers=forwarded, ssl=shown))["redacted"]


async def test_no_logs_are_followed() -> None:
    async with serving(Host()) as site:
        assert await answer(site) == {"following": False, "redacted": False, "errors": []}


async def test_a_commit_takes_long() -> None:
    async with (
        serving(Host(errors_=TimeoutError())) as site,
        site.client.get(site.url + "/api/v1/evidence") as response,
    ):
        assert response.status == 503


@pytest.mark.parametrize(
    ("peer", "here"),
    [
        (("127.0.0.1", 1), True),
        (("127.9.9.9", 1), True),
        (("::1", 1, 0, 0), True),
        (("::ffff:127.0.0.1", 1, 0, 0), True),
        (("::ffff:192.0.2.1", 1, 0, 0), False),
        (("192.0.2.1", 1), False),
        (("fe80::1%eth0", 1, 0, 3), False),
        ("", True),
        (b"", True),
        (None, False),
    ],
)
def test_loopback(peer: object, here: bool) -> None:
    assert is_loopback(peer) is here
