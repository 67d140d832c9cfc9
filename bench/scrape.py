"""fabric-exporter against Debian's node_exporter: the same interfaces, the same InfiniBand tree, in one run, alternating.

Run as root: python -m bench.scrape [--json]

It makes a network namespace with veth pairs of many queues (577 statistics an interface at 64 queues) and a sysfs that
holds the interfaces of that namespace (the kernel's own files, bind-mounted) and, under class/infiniband, the files of a
captured machine. Both servers run in the namespace with that sysfs. Before each scrape one frame is sent through a pair and
one InfiniBand counter is changed, and a scrape that does not show both was served from a cache and ends the benchmark:
every scrape measured is a reading. The warm-up takes a minute, after which the exporter takes names of statistics that
did not change for unchanged (it asks for them twice before).

CPU time is the kernel's clock of the process (nanoseconds, all threads), children included. The mean is taken over the whole
run, so that garbage collectors and background tasks between the scrapes count too; the median is that of single scrapes.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from bench.testbed import make_interfaces, make_sysfs, unmount

REPOSITORY = Path(__file__).parent.parent
MACHINE = REPOSITORY / "tests/machines/h100-8xndr-bf3bond/sys.txt"
INSIDE = "--inside"
ENCODINGS = ("identity", "gzip")
OURS, THEIRS = "fabric-exporter", "node_exporter"
DEVICE = "mlx5_0"
THEIR_PACKETS = "node_infiniband_port_packets_received_total"
SAME_TRAFFIC = {
    "node_infiniband_port_data_received_bytes_total": "fabric_rdma_received_bytes_total",
    "node_infiniband_port_data_transmitted_bytes_total": "fabric_rdma_transmitted_bytes_total",
    THEIR_PACKETS: "fabric_rdma_received_packets_total",
    "node_infiniband_port_packets_transmitted_total": "fabric_rdma_transmitted_packets_total",
}

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@dataclass
class Server:
    """One exporter under test, in a session of its own so that its children can be found."""

    name: str
    command: list[str]
    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def run(self) -> Iterator[None]:
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(self.command, stdout=output, stderr=output, start_new_session=True)
        try:
            for _ in range(200):
                if self.process.poll() is not None:
                    break
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                        yield
                        return
                time.sleep(0.05)
            raise SystemExit(f"{self.name} did not start: {' '.join(self.command)}\n{self.log.read_text()}")
        except (http.client.HTTPException, OSError) as error:
            state = "runs" if self.process.poll() is None else f"ended with {self.process.returncode}"
            raise SystemExit(f"{error!r}; {self.name} {state}, its log:\n{self.log.read_text()[-2000:]}") from error
        finally:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
            self.process.wait(10)

    def processes(self) -> list[int]:
        assert self.process is not None
        found = []
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                session = int(entry.read_text().rpartition(")")[2].split()[3])
            except OSError:  # gone meanwhile
                continue
            if session == self.process.pid:
                found.append(int(entry.parent.name))
        return found

    def cpu_seconds(self) -> float:
        """CPU time of the process and its children so far (the clock of CLOCK_PROCESS_CPUTIME_ID of another process)."""
        return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in self.processes()) / 1e9

    def memory_bytes(self) -> tuple[int, int]:
        """Resident and proportional set size."""
        resident = proportional = 0
        for pid in self.processes():
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            resident += int(re.findall(r"^Rss: +(\d+) kB", text, re.M)[0])
            proportional += int(re.findall(r"^Pss: +(\d+) kB", text, re.M)[0])
        return resident * 1024, proportional * 1024


@dataclass
class Record:
    """What one server did under one encoding."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    cpu_of_all: float = 0.0
    size: int = 0
    samples: Samples = field(default_factory=dict)

    def summary(self) -> dict[str, float]:
        return {
            "cpu_seconds_mean": self.cpu_of_all / len(self.cpu),
            "cpu_seconds_median": median(self.cpu),
            "wall_seconds_median": median(self.wall),
            "wall_seconds_p99": quantiles(self.wall, n=100, method="inclusive")[98],
            "samples": len(self.samples),
            "cpu_microseconds_per_sample": self.cpu_of_all / len(self.cpu) * 1e6 / len(self.samples),
            "body_bytes": self.size,
        }


def scrape(connection: http.client.HTTPConnection, encoding: str) -> tuple[float, bytes]:
    """Return how long one GET /metrics took until its last byte, and the body as it came."""
    begin = time.perf_counter()
    headers = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": encoding}
    connection.request("GET", "/metrics", headers=headers)
    response = connection.getresponse()
    body = response.read()
    took = time.perf_counter() - begin
    if response.status != 200 or response.getheader("Content-Encoding", "identity") != encoding:
        raise SystemExit(
            f"{connection.port}: {response.status}, {response.getheader('Content-Encoding')}: {body[:200]!r}"
        )
    return took, body


_LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$", re.M)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parse(body: bytes, encoding: str) -> Samples:
    """Return the samples of an exposition in the text format."""
    text = (gzip.decompress(body) if encoding == "gzip" else body).decode()
    return {(name, tuple(sorted(_LABEL.findall(labels)))): float(value) for name, labels, value in _LINE.findall(text)}


def ethtool(samples: Samples) -> dict[tuple[str, str], float]:
    """Return the statistics of ``ethtool -S`` by interface and node_exporter's name for them."""
    found = {}
    for (name, labels), value in samples.items():
        label = dict(labels)
        if name == "fabric_ethtool_raw":
            stat = re.sub(r"[^a-z0-9_]", "_", label["stat"].lower()).lstrip("_")
            stat = re.sub(r"(^|_)rx(_|$)", r"\1received\2", stat)
            found[label["netdev"], re.sub(r"(^|_)tx(_|$)", r"\1transmitted\2", stat)] = value
        elif name.startswith("node_ethtool_") and name != "node_ethtool_info":
            found[label["device"], name.removeprefix("node_ethtool_")] = value
    return found


def events_seen(samples: Samples) -> tuple[int, int]:
    """Return how many frames the first pair and the first InfiniBand port show."""
    frames = sum(
        value
        for (netdev, name), value in ethtool(samples).items()
        if netdev == "peer0" and name.endswith("xdp_packets")
    )
    packets = [
        samples[name, (("device", DEVICE), ("port", "1"))]
        for name in (THEIR_PACKETS, SAME_TRAFFIC[THEIR_PACKETS])
        if (name, (("device", DEVICE), ("port", "1"))) in samples
    ]
    return int(frames), int(packets[0]) if packets else -1


def differences(ours: Samples, theirs: Samples) -> list[str]:
    """Say where the two do not deliver the same statistics with the same values."""
    mine, other = ethtool(ours), ethtool(theirs)
    found = [f"only {OURS} has {key}" for key in sorted(mine.keys() - other.keys())]
    found += [f"only {THEIRS} has {key}" for key in sorted(other.keys() - mine.keys())]
    found += [
        f"{key}: {mine[key]} and {other[key]}" for key in sorted(mine.keys() & other.keys()) if mine[key] != other[key]
    ]
    for (name, labels), value in theirs.items():
        if name in SAME_TRAFFIC and ours.get((SAME_TRAFFIC[name], labels)) != value:
            found.append(f"{name}{dict(labels)}: {value}, {OURS} has {ours.get((SAME_TRAFFIC[name], labels))}")
    return found


def servers(root: Path, logs: Path, extra: list[str]) -> tuple[Server, Server]:
    ours = Path(sys.executable).with_name("fabric-exporter")
    theirs = shutil.which("prometheus-node-exporter") or "prometheus-node-exporter"
    return (
        Server(
            OURS,
            [
                str(ours),
                f"--path.sysfs={root}",
                "--collector.ethtool.device-include=.*",
                "--collector.ethtool.raw-include=.*",
                "--collector.ethtool.max-age=0",
                "--web.listen-address=127.0.0.1:10073",
                *extra,
            ],
            10073,
            logs / "ours.log",
        ),
        Server(
            THEIRS,
            [
                theirs,
                "--collector.disable-defaults",
                "--collector.infiniband",
                "--collector.ethtool",
                "--collector.ethtool.device-exclude=^lo$",
                "--web.disable-exporter-metrics",
                f"--path.sysfs={root}",
                "--web.listen-address=127.0.0.1:9100",
            ],
            9100,
            logs / "theirs.log",
        ),
    )


def measure(
    pair: tuple[Server, Server], root: Path, scrapes: int, warm_up: int, pause: float
) -> dict[str, dict[str, Record]]:
    """Scrape both in turn and return the records by server name and encoding."""
    records = {server.name: {encoding: Record() for encoding in ENCODINGS} for server in pair}
    connections = {server.name: http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for server in pair}
    counter = root / f"class/infiniband/{DEVICE}/ports/1/counters/port_rcv_packets"
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind(("veth0", 0))
    frame = b"\xff" * 6 + b"\x02\0\0\0\0\x01" + b"\x88\xb5" + bytes(50)  # ethertype: IEEE local experimental
    sent = 0
    for encoding in ENCODINGS:
        for turn in range(-warm_up if encoding == ENCODINGS[0] else -1, scrapes):
            if turn == 0:
                for server in pair:
                    records[server.name][encoding].cpu_of_all -= server.cpu_seconds()
            sender.send(frame)
            sent += 1
            counter.write_text(f"{sent}\n")
            time.sleep(pause)
            for server in pair if turn % 2 else pair[::-1]:
                record = records[server.name][encoding]
                used = server.cpu_seconds()
                took, body = scrape(connections[server.name], encoding)
                samples = parse(body, encoding)  # meanwhile the server ends what it does after its answer
                if (seen := events_seen(samples)) != (sent, sent):
                    raise SystemExit(
                        f"{server.name} showed {seen} after {sent} frames and packets: not a fresh reading"
                    )
                if turn >= 0:
                    record.wall.append(took)
                    record.cpu.append(server.cpu_seconds() - used)
                    record.size, record.samples = len(body), samples
        for server in pair:
            records[server.name][encoding].cpu_of_all += server.cpu_seconds()
    return records


def table(records: dict[str, dict[str, Record]], memory: dict[str, tuple[int, int]]) -> str:
    rows = [("", OURS, THEIRS, "ratio")]

    def row(title: str, ours: float, theirs: float, form: str) -> None:
        rows.append(
            (
                title,
                format(ours, form),
                format(theirs, form),
                f"1/{theirs / ours:.1f}" if ours < theirs else f"{ours / theirs:.2f}",
            )
        )

    for encoding in ENCODINGS:
        ours, theirs = (records[name][encoding].summary() for name in (OURS, THEIRS))
        row(f"{encoding}: samples per scrape", ours["samples"], theirs["samples"], ",.0f")
        for key, title in (
            ("cpu_seconds_mean", "CPU per scrape, mean (ms)"),
            ("cpu_seconds_median", "CPU per scrape, median (ms)"),
            ("wall_seconds_median", "wall, median (ms)"),
            ("wall_seconds_p99", "wall, 99th percentile (ms)"),
        ):
            row(f"{encoding}: {title}", ours[key] * 1e3, theirs[key] * 1e3, ",.2f")
        row(
            f"{encoding}: CPU per sample (us)",
            ours["cpu_microseconds_per_sample"],
            theirs["cpu_microseconds_per_sample"],
            ",.2f",
        )
        row(f"{encoding}: body (kB)", ours["body_bytes"] / 1e3, theirs["body_bytes"] / 1e3, ",.0f")
    for index, title in enumerate(("resident memory, RSS (MB)", "resident memory, PSS (MB)")):
        row(title, memory[OURS][index] / 1e6, memory[THEIRS][index] / 1e6, ",.1f")
    widths = [max(len(cells[column]) for cells in rows) for column in range(4)]
    return "\n".join(
        cells[0].ljust(widths[0])
        + "".join("  " + cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        for cells in rows
    )


def inside(options: argparse.Namespace) -> int:
    """Do it, in namespaces of our own."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        make_interfaces(options.pairs, options.queues)
        root = make_sysfs(folder, options.machine)
        stack.callback(unmount, root / "class/net", root / "devices", folder / "own")
        pair = servers(root, folder, options.exporter_flag)
        for server in pair:
            stack.enter_context(server.run())
        records = measure(pair, root, options.scrapes, options.warm_up, options.pause)
        memory = {server.name: server.memory_bytes() for server in pair}
    unequal = differences(records[OURS]["identity"].samples, records[THEIRS]["identity"].samples)
    same = len(ethtool(records[THEIRS]["identity"].samples))
    if options.json:
        figures: dict[str, object] = {
            name: {
                **{encoding: record.summary() for encoding, record in by_encoding.items()},
                "rss_bytes": memory[name][0],
                "pss_bytes": memory[name][1],
            }
            for name, by_encoding in records.items()
        }
        figures["scrapes"], figures["ethtool_statistics"], figures["differences"] = options.scrapes, same, unequal
        print(json.dumps(figures, indent=2))
    else:
        print(
            f"{2 * options.pairs} veth interfaces, {same} statistics of ethtool -S, {options.scrapes} scrapes of each kind\n"
        )
        print(table(records, memory))
        print(
            "\n"
            + (
                "\n".join(unequal[:20])
                or "Both deliver the same ethtool statistics and RDMA traffic, with the same values."
            )
        )
    return 1 if unequal else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.scrape", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=8, help="veth pairs, two interfaces each (default 8)")
    parser.add_argument("--queues", type=int, default=64, help="queues of an interface (default 64)")
    parser.add_argument("--scrapes", type=int, default=60, help="scrapes of each server and encoding (default 60)")
    parser.add_argument("--warm-up", type=int, default=60, help="scrapes before those (default 60)")
    parser.add_argument("--pause", type=float, default=1.05, help="seconds between scrapes (default 1.05)")
    parser.add_argument("--machine", type=Path, default=MACHINE, help="sys.txt with the InfiniBand devices")
    parser.add_argument("--exporter-flag", action="append", default=[], help="a further flag for fabric-exporter")
    parser.add_argument("--json", action="store_true", help="print figures instead of a table")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    if os.geteuid() != 0:
        parser.error("needs root: it makes a network namespace")
    here = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    again = [*here, sys.executable, "-m", "bench.scrape", INSIDE, *sys.argv[1:]]
    return subprocess.run(again, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
