from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from tests.web.served import SAMPLES, Pki


@pytest.fixture(scope="session")
def authorities() -> tuple[trustme.CA, trustme.CA]:
    return trustme.CA(), trustme.CA()


@pytest.fixture
def pki(tmp_path: Path, authorities: tuple[trustme.CA, trustme.CA]) -> Pki:
    """Return a folder with the samples and every file that they name."""
    made = Pki(tmp_path, *authorities)
    made.put_server()
    client = made.clients.issue_cert("prometheus.example")
    made.put("client.key", client.private_key_pem.bytes())
    made.put("clients.crt", made.clients.cert_pem.bytes())
    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"secret")
    made.put(
        "encrypted.key", key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )
    for sample in SAMPLES.glob("*.yml"):
        shutil.copy(sample, tmp_path)
    return made
