"""The real program and a real Prometheus in a network namespace with a veth pair, for tests from end to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.namespaces import Namespace

PROGRAM = Path(sys.executable).with_name("fabric-exporter")
WAIT_SECONDS = 60.0
T = TypeVar("T")


def eventually(attempt: Callable[[], T | None], what: str) -> T:
    """Return the first result that is not None. How long it takes proves nothing, so the limit is generous."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if (result := attempt()) is not None:
            return result
        time.sleep(0.1)
    raise AssertionError(f"not within {WAIT_SECONDS:g} s: {what}")


class Lab(Namespace):
    """A namespace with a pair ``veth0`` and ``peer0`` whose statistics count frames (NAPI is on), and without IPv6."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            super().__enter__()
            stack.callback(self.__exit__)
            self.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
            self.ip("link set lo up")
            queues = "numrxqueues 4 numtxqueues 4"
            self.ip(f"link add veth0 {queues} type veth peer name peer0 {queues}")
            for end in ("veth0", "peer0"):
                self.run(f"ethtool -K {end} gro on tso off")
                self.ip(f"link set {end} up")
            stack.pop_all()
        return self

    def send_frames(self, count: int) -> None:
        """Send broadcast frames of an experimental ethertype from veth0 to peer0."""
        program = (
            "import socket, sys; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('veth0', 0));"
            r"[s.send(b'\xff' * 6 + b'\x02\0\0\0\0\x01\x88\xb5' + bytes(50)) for _ in range(int(sys.argv[1]))]"
        )
        self.run(sys.executable, "-c", program, str(count))


@dataclass
class Running:
    """A program that serves in a namespace, with what it wrote to its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> int:
        """End it as a service manager would; return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_SECONDS)


@contextmanager
def running(space: Namespace, log: Path, *command: str | Path) -> Iterator[Running]:
    with log.open("wb") as output:
        program = Running(subprocess.Popen(space.command(*command), stdout=output, stderr=output), log)
    try:
        yield program
    finally:
        program.stop()


class Stage:
    """Starts programs in one namespace and ends them with the test."""

    def __init__(self, space: Lab, folder: Path, stack: ExitStack) -> None:
        self.space, self.folder, self.stack = space, folder, stack

    def exporter(self, *flags: str, ready: tuple[str, ...] = (), wrapper: tuple[str, ...] = ()) -> Running:
        """Start the exporter on 127.0.0.1:10073 and wait until it is ready.

        ``ready`` are curl's options to ask, ``wrapper`` a command that runs it (setpriv).
        """
        own = ("--web.listen-address=127.0.0.1:10073",)
        program = self.stack.enter_context(
            running(self.space, self.folder / "exporter.log", *wrapper, PROGRAM, *own, *flags)
        )
        asked = ready or ("http://127.0.0.1:10073/-/ready",)
        self.answers(program, *asked)
        return program

    def prometheus(self, configuration: dict[str, Any]) -> Running:
        """Start Prometheus on 127.0.0.1:9090 with a configuration and wait until it is ready."""
        path = self.folder / "prometheus.yml"
        path.write_text(json.dumps(configuration))  # JSON is YAML
        program = self.stack.enter_context(
            running(
                self.space,
                self.folder / "prometheus.log",
                "prometheus",
                f"--config.file={path}",
                f"--storage.tsdb.path={self.folder / 'tsdb'}",
                "--web.listen-address=127.0.0.1:9090",
            )
        )
        self.answers(program, "http://127.0.0.1:9090/-/ready")
        return program

    def answers(self, program: Running, *options: str) -> None:
        def attempt() -> bool | None:
            assert program.process.poll() is None, program.log.read_text()
            command = self.space.command("curl", "--silent", "--fail", "--output", "/dev/null", *options)
            return True if subprocess.run(command, check=False).returncode == 0 else None

        eventually(attempt, f"an answer: curl {' '.join(options)}\n{program.log.read_text()}")

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the instant vector of an expression: labels and value of each series."""
        url = "http://127.0.0.1:9090/api/v1/query?query=" + urllib.parse.quote(expression)
        answer = json.loads(self.space.run("curl", "--silent", url))
        assert answer["status"] == "success", answer
        return [(item["metric"], float(item["value"][1])) for item in answer["data"]["result"]]

    def value(self, expression: str) -> float | None:
        """Return the value of an expression that gives one series, None as long as it gives none."""
        found = self.query(expression)
        return found[0][1] if len(found) == 1 else None
