from __future__ import annotations

import os
import ssl
import subprocess
from pathlib import Path

import pytest
import structlog

from exporter.errors import ConfigError
from exporter.web.limits import TokenBucket, go_duration
from exporter.web.webconfig import load_web_config, read
from tests.web.served import SAMPLES, Pki, hashed

GOOD = sorted(sample.name for sample in SAMPLES.glob("good-*.yml"))
BAD = sorted(sample.name for sample in SAMPLES.glob("bad-*.yml"))


def said(sample: str, key: str) -> str:
    """Return what a comment of the sample says: ``# key: text``."""
    lines = (SAMPLES / sample).read_text().splitlines()
    return next(line.removeprefix(f"# {key}: ") for line in lines if line.startswith(f"# {key}: "))


@pytest.mark.parametrize("sample", GOOD)
def test_good_samples_are_taken(pki: Pki, sample: str) -> None:
    in_force = load_web_config(str(pki.folder / sample)).in_force()
    assert (in_force.context is not None) is ("server.crt" in (SAMPLES / sample).read_text())


@pytest.mark.parametrize("sample", BAD)
def test_bad_samples_are_refused_in_one_line(pki: Pki, sample: str) -> None:
    path = str(pki.folder / sample)
    expected = said(sample, "says").replace("DIR", str(pki.folder))
    with pytest.raises(ConfigError) as error:
        load_web_config(path)
    assert str(error.value) == path + (expected if expected.startswith(":") else f": {expected}")


@pytest.mark.parametrize("sample", GOOD + BAD)
def test_promtool_judges_the_samples_as_they_say(pki: Pki, sample: str) -> None:
    run = subprocess.run(
        ["promtool", "check", "web-config", sample], cwd=pki.folder, capture_output=True, text=True, check=False
    )
    assert ("good" if run.returncode == 0 else "bad") == said(sample, "promtool"), run.stderr


def test_everything(pki: Pki) -> None:
    in_force = load_web_config(str(pki.folder / "good-everything.yml")).in_force()
    assert list(in_force.users) == ["prometheus"]
    assert in_force.headers == {
        "Content-Security-Policy": "frame-ancestors 'none'",
        "X-Frame-Options": "deny",
        "X-Content-Type-Options": "nosniff",
        "X-XSS-Protection": "1",
        "Strict-Transport-Security": "max-age=31536000",
    }
    assert in_force.bucket is None
    context = in_force.context
    assert context is not None
    assert in_force.verifies_clients
    assert [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"] == [
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "AES128-GCM-SHA256",
    ]
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_suites_of_tls_13_alone_leave_no_tls_12(pki: Pki) -> None:
    context = load_web_config(str(pki.folder / "good-tls13-suites-alone.yml")).in_force().context
    assert context is not None
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_every_cipher_suite_that_promtool_knows_is_taken(pki: Pki) -> None:
    from exporter.web.tls import CIPHERS

    path = pki.put_config(
        "tls_server_config: {cert_file: server.crt, key_file: server.key, cipher_suites: [" + ", ".join(CIPHERS) + "]}"
    )
    subprocess.run(["promtool", "check", "web-config", path], check=True, capture_output=True)
    assert load_web_config(str(path)).in_force().context is not None


def test_certificate_and_key_may_stand_in_the_file(pki: Pki) -> None:
    text = "tls_server_config:\n"
    for key, name in (("cert", "server.crt"), ("key", "server.key"), ("client_ca", "clients.crt")):
        text += f"  {key}: |\n" + "".join(f"    {line}\n" for line in (pki.folder / name).read_text().splitlines())
    path = pki.put_config(text + "  client_auth_type: RequireAndVerifyClientCert\n")
    for name in ("server.crt", "server.key", "clients.crt"):
        (pki.folder / name).unlink()
    assert load_web_config(str(path)).in_force().verifies_clients


def test_a_ca_file_may_hold_text_between_its_certificates(pki: Pki) -> None:
    authority = (pki.folder / "clients.crt").read_bytes()
    pki.put("clients.crt", "# Zertifikat für Prüfer\n".encode("latin-1") + authority + b"# more\n" + authority)
    assert load_web_config(str(pki.folder / "good-everything.yml")).in_force().verifies_clients


def test_files_are_relative_to_the_configuration(pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pki.folder.parent)
    config = read(f"{pki.folder.name}/good-tls.yml")
    assert config.tls_server_config is not None
    assert config.tls_server_config.files() == (str(pki.folder / "server.crt"), str(pki.folder / "server.key"))


def test_a_missing_file() -> None:
    with pytest.raises(ConfigError, match=r"^/nowhere/web\.yml: cannot be read: No such file or directory$"):
        load_web_config("/nowhere/web.yml")


def test_a_changed_file_is_taken_over_and_a_broken_one_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    one, two = hashed("one"), hashed("two")
    path.write_text(f"basic_auth_users: {{a: {one}}}")
    config = load_web_config(str(path))
    first = config.in_force()
    assert config.in_force() is first

    path.write_text(f"basic_auth_users: {{b: {two}}}\n")
    assert config.in_force().users == {"b": two}

    with structlog.testing.capture_logs() as logs:
        path.write_text("basic_auth_users: {b: x}\n")
        assert [config.in_force().users for _ in range(3)] == [{"b": two}] * 3
        path.unlink()
        assert [config.in_force().users for _ in range(3)] == [{"b": two}] * 3
    assert [entry["error"] for entry in logs] == [
        f"{path}: basic_auth_users.b: expected a bcrypt hash as `htpasswd -nBC 10 b` prints it",
        f"{path}: cannot be read: No such file or directory",
    ]
    assert (config.failures, config.success) == (2, False)

    path.write_text(f"basic_auth_users: {{a: {one}}}\n")
    assert config.in_force().users == {"a": one}
    assert (config.failures, config.success) == (2, True)


@pytest.mark.parametrize("text", ["", "basic_auth_users: {}\n", "http_server_config: {http2: false}\n"])
def test_authentication_does_not_go_off_while_serving(tmp_path: Path, text: str) -> None:
    """A file is empty for a moment while an editor writes it: nobody gets in then."""
    path = tmp_path / "web.yml"
    users = {"a": hashed("one")}
    path.write_text(f"basic_auth_users: {{a: {users['a']}}}\n")
    config = load_web_config(str(path))
    path.write_text(text)
    with structlog.testing.capture_logs() as logs:
        assert config.in_force().users == users
    assert logs[0]["error"] == f"{path}: basic_auth_users: authentication goes off with a restart alone"


@pytest.mark.parametrize("name", ["web.yml", "server.crt", "server.key", "clients.crt"])
def test_a_pipe_in_the_place_of_a_file_is_refused(pki: Pki, name: str) -> None:
    path = pki.put_config(
        "tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: clients.crt,"
        " client_auth_type: RequireAndVerifyClientCert}"
    )
    config = load_web_config(str(path))
    context = config.in_force().context
    (path.parent / name).unlink()
    os.mkfifo(path.parent / name)
    with structlog.testing.capture_logs() as logs:
        assert config.in_force().context is context
    assert logs[0]["error"].endswith("cannot be read: Not a regular file")


def test_tls_does_not_go_off_while_serving(pki: Pki) -> None:
    path = pki.put_config("tls_server_config: {cert_file: server.crt, key_file: server.key}")
    config = load_web_config(str(path))
    pki.put_config("basic_auth_users: {}")
    with structlog.testing.capture_logs() as logs:
        assert config.in_force().context is not None
    assert logs[0]["error"] == f"{path}: tls_server_config: TLS goes on or off with a restart alone"


def test_http2_is_said_to_be_http_1_1_once(tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text("http_server_config: {http2: true}")
    with structlog.testing.capture_logs() as logs:
        config = load_web_config(str(path))
        path.write_text("http_server_config: {http2: true}\n")
        config.in_force()
    assert [entry["event"] for entry in logs] == [
        "http2 is on in the web configuration, HTTP/1.1 is what is served",
        "web configuration taken over",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("1s", 1), ("250ms", 0.25), ("1m30s", 90), ("1.5h", 5400), ("2us", 2e-6), (".5s", 0.5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert go_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "1", "s", "1 s", "-1s", "1d", "1sx", "1..5s"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        go_duration(text)


def test_a_token_bucket() -> None:
    bucket = TokenBucket(interval=2, burst=2, now=100)
    assert [bucket.take(now) for now in (100, 100, 100, 101.9, 102, 103, 104)] == [
        True,
        True,
        False,
        False,
        True,
        False,
        True,
    ]
    assert [bucket.take(1000) for _ in range(3)] == [True, True, False]
