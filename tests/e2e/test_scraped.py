"""A real Prometheus scrapes the real exporter, over plain HTTP and over mutual TLS with a password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bcrypt
import trustme

from exporter.sources import SOURCES
from tests.e2e.stage import Stage, eventually

FLAGS = (
    "--collector.ethtool.device-include=veth0|peer0",
    "--collector.ethtool.raw-include=.*",
    "--collector.ethtool.max-age=0",
)


def job(**settings: Any) -> dict[str, Any]:
    target = {"targets": ["127.0.0.1:10073"]}
    return {"job_name": "fabric", "scrape_interval": "1s", "static_configs": [target], **settings}


def assert_scraped(stage: Stage) -> None:
    """What Prometheus stored is what the kernel counted."""
    eventually(lambda: stage.value('up{job="fabric"} == 1'), "up == 1")
    stage.space.send_frames(25)
    seen = 'sum(fabric_ethtool_raw{netdev="peer0", stat=~"rx_queue_[0-9]+_xdp_packets"}) == 25'
    eventually(lambda: stage.value(seen), "25 frames in Prometheus")
    assert {labels["netdev"]: value for labels, value in stage.query("fabric_netdev_up")} == {"veth0": 1, "peer0": 1}
    success = {labels["source"]: value for labels, value in stage.query("fabric_source_success")}
    assert success == {source.name: 1 for source in SOURCES}
    assert stage.value("scrape_samples_scraped") == stage.value('count({job="fabric", __name__!~"up|scrape_.*"})')


def test_plain_http(stage: Stage) -> None:
    exporter = stage.exporter(*FLAGS)
    stage.prometheus({"scrape_configs": [job()]})
    assert_scraped(stage)
    assert exporter.stop() == 0


def test_mutual_tls_with_a_password(stage: Stage, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    for name in ("127.0.0.1", "prometheus"):
        certificate = authority.issue_cert(name)
        certificate.private_key_pem.write_to_path(tmp_path / f"{name}.key")
        certificate.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.crt")
    (tmp_path / "web.yml").write_text(
        f"""
tls_server_config:
  cert_file: {tmp_path}/127.0.0.1.crt
  key_file: {tmp_path}/127.0.0.1.key
  client_ca_file: {tmp_path}/ca.crt
  client_auth_type: RequireAndVerifyClientCert
basic_auth_users:
  prometheus: {bcrypt.hashpw(b"a secret", bcrypt.gensalt(4)).decode()}
"""
    )
    url = "https://127.0.0.1:10073/-/ready"
    with_certificate = (
        f"--cacert={tmp_path}/ca.crt",
        f"--cert={tmp_path}/prometheus.crt",
        f"--key={tmp_path}/prometheus.key",
    )
    options = tuple(part for option in with_certificate for part in option.split("=", 1))
    stage.exporter(
        *FLAGS, f"--web.config.file={tmp_path}/web.yml", ready=(*options, "--user", "prometheus:a secret", url)
    )
    (tmp_path / "password").write_text("a secret")
    tls = {
        "ca_file": f"{tmp_path}/ca.crt",
        "cert_file": f"{tmp_path}/prometheus.crt",
        "key_file": f"{tmp_path}/prometheus.key",
    }
    login = {"username": "prometheus", "password_file": f"{tmp_path}/password"}
    stage.prometheus({"scrape_configs": [job(scheme="https", tls_config=tls, basic_auth=login)]})
    assert_scraped(stage)
    status = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}")
    assert stage.space.run(*status, *options, "--user", "prometheus:wrong", url) == "401"
    assert stage.space.run(*status, *options, url) == "401"
