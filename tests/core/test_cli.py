"""The command line as a user meets it: one line for each mistake, flags before and after the verb, environment twins."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from exporter import cli
from exporter.cli.flags import FLAGS, Flag, environment_name, settings_of
from exporter.cli.once import replace
from exporter.config import Settings
from exporter.errors import UsageError
from exporter.sources import SOURCES

MACHINE = "tests/machines/rdma-exporter-efa"


def settings(*arguments: str, **environment: str) -> Settings:
    return settings_of(cli.parser().parse_args(arguments), environment)


def failure(capsys: pytest.CaptureFixture[str], *arguments: str, **environment: str) -> str:
    """Return the one line that a mistake gives."""
    assert cli.main(arguments, environment) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("fabric-exporter: ").strip()


def test_defaults_need_no_configuration() -> None:
    assert settings() == Settings()


def test_a_flag_wins_over_its_environment_twin() -> None:
    twin = {"FABRIC_EXPORTER_WEB_LISTEN_ADDRESS": "127.0.0.1:1,unix:/run/x.sock"}
    assert settings(**twin).listen == ("127.0.0.1:1", "unix:/run/x.sock")
    assert settings("--web.listen-address=:2", "--web.listen-address", "[::1]:3", **twin).listen == (":2", "[::1]:3")


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_has_a_twin_that_does_the_same(flag: Flag) -> None:
    values = {
        "--web.max-requests": "7",
        "--collector.ethtool.max-age": "1.5",
        "--metrics.profile": "full",
        "--log.level": "debug",
        "--log.format": "json",
        "--web.telemetry-path": "/m",
    }
    value = values.get(f"--{flag.name}", "x")
    changed = settings(f"--{flag.name}={value}")
    assert changed != Settings()
    assert settings(**{environment_name(flag.name): value}) == changed


@pytest.mark.parametrize("source", [source.name for source in SOURCES])
def test_every_source_can_be_turned_off(source: str) -> None:
    assert settings(f"--no-collector.{source}").disabled == {source}
    assert settings(**{environment_name(f"collector.{source}"): "false"}).disabled == {source}
    assert settings(f"--collector.{source}", **{environment_name(f"collector.{source}"): "false"}).disabled == set()


@pytest.mark.parametrize("path", ["/", "/metrics", "/fabric/metrics.txt"])
def test_a_telemetry_path(path: str) -> None:
    assert settings("--web.telemetry-path", path).telemetry_path == path


@pytest.mark.parametrize("path", ["", "metrics", "/{x}", "/a b", "/-/healthy", "/a?b"])
def test_a_telemetry_path_that_cannot_be(path: str) -> None:
    with pytest.raises(UsageError) as error:
        settings("--web.telemetry-path", path)
    assert str(error.value) == f"--web.telemetry-path: expected a path such as /metrics, got {path!r}"


def test_flags_may_stand_on_both_sides_of_the_verb() -> None:
    before, after = settings("--path.sysfs=/a", "once"), settings("once", "--path.sysfs=/a")
    assert before == after
    assert before.sysfs == "/a"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--no-such-flag"], "unrecognized arguments: --no-such-flag (see fabric-exporter --help)"),
        (["--web.listen"], "unrecognized arguments: --web.listen (see fabric-exporter --help)"),
        (["frobnicate"], "argument VERB: invalid choice: 'frobnicate'"),
        (["--log.level=loud"], "argument --log.level: invalid choice: 'loud'"),
        (
            ["--collector.ethtool.device-include=eth["],
            "--collector.ethtool.device-include: 'eth[' is no regular expression: unterminated character set at position 3",
        ),
        (
            ["--collector.ethtool.device-include=a{99999999999}"],
            "--collector.ethtool.device-include: 'a{99999999999}' is no",
        ),
        ([f"--collector.ethtool.device-include={'(' * 5000}"], "--collector.ethtool.device-include: '((((((("),
        (
            ["once", "--path.sysfs=/no/such/sys"],
            "--path.sysfs: /no/such/sys: no such folder, expected where sysfs is mounted",
        ),
        (["--web.max-requests=many"], "--web.max-requests: expected a number of at least 1, got 'many'"),
        (["--web.telemetry-path=metrics"], "--web.telemetry-path: expected a path such as /metrics, got 'metrics'"),
        (["--config.file=/no/such/file"], "/no/such/file: cannot be read: No such file or directory"),
        (["--web.config.file=/no/such/file"], "/no/such/file: cannot be read: No such file or directory"),
        (["once", "--capture=/no/such/folder"], "/no/such/folder"),
        (["once", f"--capture={MACHINE}", "-o", "/no/such/folder/x.prom"], "/no/such/folder/x.prom: cannot be written"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    assert failure(capsys, *arguments).startswith(line)


@pytest.mark.parametrize(
    ("twin", "value", "line"),
    [
        ("LOG_LEVEL", "loud", "expected one of debug, info, warn, error, got 'loud'"),
        ("COLLECTOR_PMA", "maybe", "expected true or false, got 'maybe'"),
        ("COLLECTOR_ETHTOOL_RAW_INCLUDE", "(", "'(' is no regular expression: missing ), unterminated subpattern"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    capsys: pytest.CaptureFixture[str], twin: str, value: str, line: str
) -> None:
    name = f"FABRIC_EXPORTER_{twin}"
    assert failure(capsys, "once", f"--capture={MACHINE}", **{name: value}).startswith(f"{name}: {line}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("colour: blue\n", "colour: unknown key"),
        ("ports:\n- match: mlx5_0\n  role: uplink\n", "ports[0].role: "),
        ("ports:\n- role: fabric\n", "ports[0].match: missing"),
        ("ports:\n- match: 'eth['\n", "ports[0].match: 'eth[' is no regular expression"),
        ("ports: []\nports: []\n", ""),
        ("ports: [\n", ""),
    ],
)
def test_a_mistake_in_the_configuration_file_says_where(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, line: str
) -> None:
    path = tmp_path / "config.yml"
    path.write_text(text)
    said = failure(capsys, "--config.check", f"--config.file={path}")
    assert said.startswith(str(path))
    assert line in said


def test_a_good_configuration_is_said_to_be_good(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.yml"
    path.write_text("ports:\n- match: mlx5_[0-3]\n  role: fabric\n  rail: 1\n")
    assert cli.main(["--config.check", f"--config.file={path}"], {}) == 0
    assert capsys.readouterr().out == "configuration is good\n"


def test_a_taken_port_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = failure(capsys, f"--capture={MACHINE}", f"--web.listen-address={address}")
        assert said == f"--web.listen-address: {address}: address already in use"


def test_an_unreadable_certificate_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text("tls_server_config:\n  cert_file: none.crt\n  key_file: none.key\n")
    said = failure(capsys, f"--capture={MACHINE}", f"--web.config.file={path}")
    assert said.startswith(f"{path}: ")
    assert f"{tmp_path / 'none.crt'}" in said


def test_once_writes_a_file_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "fabric.prom"
    path.write_text("old\n")
    kept = path.open()
    assert cli.main(["once", f"--capture={MACHINE}", "-o", str(path)], {}) == 0
    page = path.read_text()
    assert 'fabric_port_up{device="rdmap0s0",port="1"} 1\n' in page
    assert "process_" not in page
    assert kept.read() == "old\n", "who had the old file open still reads the old file"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]
    kept.close()


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "fabric.prom").mkdir()
    with pytest.raises(Exception, match="cannot be written"):
        replace(tmp_path / "fabric.prom", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["fabric.prom"]


def test_a_reader_that_stops_early_is_no_traceback() -> None:
    command = f"fabric-exporter once --capture={MACHINE} --metrics.profile=full | head -c 10"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, check=False)
    assert (len(done.stdout), done.stderr) == (10, "")


def test_once_replaces_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real.prom").write_text("old\n")
    (tmp_path / "link.prom").symlink_to("real.prom")
    replace(tmp_path / "link.prom", b"new\n")
    assert (tmp_path / "link.prom").is_symlink()
    assert (tmp_path / "real.prom").read_bytes() == b"new\n"


def test_once_does_not_put_a_file_in_the_place_of_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    replace(pipe, b"page\n")
    assert os.read(reader, 100) == b"page\n"
    assert pipe.is_fifo()
    os.close(reader)


@pytest.mark.parametrize(
    ("redirection", "reason"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_a_standard_output_that_cannot_be_written_is_one_line(redirection: str, reason: str) -> None:
    command = f"{Path(sys.executable).parent}/fabric-exporter once --capture={MACHINE} {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"fabric-exporter: standard output: cannot be written: {reason}\n")
