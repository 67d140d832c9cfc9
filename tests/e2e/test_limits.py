"""A host that has no more of something: the exporter goes on, says so in few words, and is whole again afterwards."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.e2e.stage import Stage, eventually

METRICS = "http://127.0.0.1:10073/metrics"


@pytest.mark.parametrize("log", [">/dev/full", "> >(head -c 1 >/dev/null)"], ids=["full disk", "nobody reads"])
def test_a_log_that_cannot_be_written_costs_no_metrics(stage: Stage, log: str) -> None:
    exporter = stage.exporter(wrapper=("bash", "-c", f'exec "$@" 2{log}', "bash"))
    for _ in range(2):
        exporter.process.send_signal(signal.SIGHUP)  # each is logged
        time.sleep(0.3)
    page = stage.space.run("curl", "--silent", "--fail", METRICS)
    assert 'fabric_source_success{source="netdevs"} 1' in page
    exporter.process.terminate()
    assert exporter.process.wait(30) in (0, 120)  # 120: the interpreter could not flush standard error


CONNECT = """
import socket, sys
held = [socket.create_connection(("127.0.0.1", 10073)) for _ in range(60)]
print("held", flush=True)
sys.stdin.read()
"""


def test_more_connections_than_file_descriptors(stage: Stage) -> None:
    exporter = stage.exporter(wrapper=("prlimit", "--nofile=40"))
    command = stage.space.command(sys.executable, "-c", CONNECT)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as connections:
        assert connections.stdout is not None
        assert connections.stdout.readline() == b"held\n"
        refused = "socket.accept() out of system resource"
        eventually(lambda: refused in exporter.log.read_text() or None, "a connection that cannot be accepted")
        time.sleep(3)  # in which asyncio alone would write some 50,000 lines
    assert len(exporter.log.read_text().splitlines()) < 100
    page = stage.space.run("curl", "--silent", "--fail", "--retry", "5", METRICS)
    assert 'fabric_source_success{source="netdevs"} 1' in page
    assert exporter.stop() == 0
