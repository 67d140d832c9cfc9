"""Files that fail, refuse, say they are not there, or block: the rest is served in time and the failure is seen."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bench.testbed import write_tree
from tests.e2e.stage import Stage

CAPTURE = Path(__file__).parent.parent / "machines/h100-8xndr-bf3bond/sys.txt"
METRICS = "http://127.0.0.1:10073/metrics"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder that looks like the sysfs of a captured machine."""
    root = tmp_path / "sys"
    write_tree(CAPTURE, root)
    (root / "class/net").mkdir(parents=True, exist_ok=True)
    return root


def counter(device: str, name: str) -> str:
    return f'fabric_{name}{{device="{device}",port="1"}}'


def sample(page: str, series: str) -> float | None:
    """Return the value of a series on the page, None when it is not there."""
    values = [line.rpartition(" ")[2] for line in page.splitlines() if line.rpartition(" ")[0] == series]
    return float(values[0]) if values else None


def test_the_rest_is_served_and_the_failure_is_seen(stage: Stage, tree: Path) -> None:
    ports = tree / "class/infiniband"
    broken = ports / "mlx5_0/ports/1/counters/port_rcv_errors"
    broken.unlink()
    broken.symlink_to("/proc/self/mem")  # reading its first byte gives EIO
    (ports / "mlx5_1/ports/1/counters/symbol_error").chmod(0)
    (ports / "mlx5_4/ports/1/counters/symbol_error").write_text("N/A (no PMA)\n")
    hung = ports / "mlx5_5/ports/1/hw_counters/out_of_sequence"
    hung.unlink()
    os.mkfifo(hung, 0o644)
    # Root without these capabilities is refused by file modes as anybody is.
    exporter = stage.exporter(
        f"--path.sysfs={tree}", wrapper=("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    )

    began = time.monotonic()
    header = "X-Prometheus-Scrape-Timeout-Seconds: 10"
    page = stage.space.run("curl", "--silent", "--fail", "--header", header, METRICS)
    assert time.monotonic() - began < 10, "the page came after Prometheus' timeout"

    assert sample(page, counter("mlx5_0", "ib_received_errors_total")) is None
    assert sample(page, counter("mlx5_0", "ib_symbol_errors_total")) == 0
    assert sample(page, counter("mlx5_1", "ib_symbol_errors_total")) is None
    assert sample(page, counter("mlx5_1", "ib_received_errors_total")) is not None
    assert sample(page, counter("mlx5_4", "ib_symbol_errors_total")) is None
    assert sample(page, counter("mlx5_5", "rdma_out_of_sequence_packets_total")) is None
    for device in ("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9", "mlx5_bond_0"):
        assert sample(page, counter(device, "rdma_out_of_sequence_packets_total")) == 0, device
    assert sample(page, counter("mlx5_5", "rdma_received_bytes_total")) is not None

    def about(source: str) -> list[float | None]:
        names = ("success", "quarantined", "read_errors_total")
        return [sample(page, f'fabric_source_{name}{{source="{source}"}}') for name in names]

    assert about("ports") == [1, 0, 0]
    assert about("rdma") == [0, 1, 1]
    success, quarantined, errors = about("pma")
    assert (success, quarantined) == (0, 0)
    # EIO and EACCES are failures and are counted at each of the two or three readings so far; N/A is none.
    assert errors in (2, 4, 6)
    assert sample(page, "fabric_exporter_stuck_workers") == 1
    log = exporter.log.read_text()
    assert "ports/1/counters/port_rcv_errors" in log
    assert "Input/output error" in log
    assert "Permission denied" in log
    assert exporter.stop() == 0, "a read that hangs must not keep the program from ending"
