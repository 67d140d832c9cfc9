"""What a job writes to its log is what a real Prometheus knows of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.testbed import write_tree
from tests.e2e.stage import Stage, eventually

CAPTURE = Path(__file__).parent.parent / "machines/h100-8xndr-bf3bond/sys.txt"
PREFIX = "node-1:100:101 [0] "
BEGIN = (
    "NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.1<0>",
    "NCCL INFO Using network IB",
    "NCCL INFO comm 0xa rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 - Init START",
    "NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA",
    "NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA",
)
ERROR = (
    "p2p.cc:1 NCCL WARN NET/IB: Got completion from peer 192.0.2.9<4000> with status=12 opcode=0 len=0 vendor err 129 (Recv) "
    "localGid ::ffff:198.51.100.1 remoteGids::ffff:198.51.100.2 hca mlx5_0"
)
FLUSHED = ERROR.replace("status=12", "status=5").replace("err 129", "err 249")
FAMILY = "fabric_nccl_completion_errors_total"


def scraping() -> dict[str, Any]:
    target = {"targets": ["127.0.0.1:10073"]}
    return {"scrape_configs": [{"job_name": "fabric", "scrape_interval": "1s", "static_configs": [target]}]}


def test_the_only_error_of_a_job_is_an_increase(stage: Stage, tmp_path: Path) -> None:
    log, sysfs = tmp_path / "logs/nccl.100.log", tmp_path / "sys"
    write_tree(CAPTURE, sysfs)
    (sysfs / "class/net").mkdir(parents=True, exist_ok=True)
    log.parent.mkdir()
    stage.exporter(f"--path.sysfs={sysfs}", f"--nccl.log-glob={log.parent}/*.log", f"--storage.path={tmp_path}/state")
    stage.prometheus(scraping())
    eventually(lambda: stage.value(f'count({FAMILY}{{device="mlx5_0", port="1"}}) == 7'), "counters from 0 on")
    with log.open("w") as job:
        job.writelines(f"{PREFIX}{line}\n" for line in BEGIN)
        job.flush()
        eventually(lambda: stage.value("fabric_nccl_log_bytes_total > 0"), "the beginning of a job")
        assert stage.value(f"sum({FAMILY})") == 0
        job.writelines(f"{PREFIX}{line}\n" for line in (ERROR, FLUSHED, FLUSHED))
    rise = f'increase({FAMILY}{{device="mlx5_0", status="12"}}[1m]) > 0'
    eventually(lambda: stage.value(rise), "an increase")
    assert stage.value(f"sum({FAMILY})") == 1
    assert stage.value("sum(fabric_nccl_flush_errors_total)") == 2
    joined = f"({FAMILY} > 0) * on (device, port) group_left (link_layer) max by (device, port, link_layer) (fabric_port_info)"
    assert [labels["link_layer"] for labels, _ in stage.query(joined)] == ["InfiniBand"]
