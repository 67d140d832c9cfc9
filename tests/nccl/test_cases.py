"""What 31 real logs say, from NCCL 2.7 to 2.29, RCCL and the plugins of AWS, NVIDIA and Google.

``cases/INDEX.md`` says where they come from, what is special about each and what was counted in it with grep. Where a
number here differs from there, a damaged line is the reason, and it stands beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from exporter.nccl import report

LOGS = Path(__file__).with_name("cases")


NOTHING: Mapping[Any, int] = {}


class Expected(NamedTuple):
    """Numbers of a log. ``send`` and ``receive`` are channel lines by network and path, ``findings`` are in order."""

    lines: int
    nccl_lines: int
    gdr: str
    findings: tuple[str, ...]
    hosts: int = 0
    versions: Mapping[str, int] = NOTHING
    networks: Mapping[str, int] = NOTHING
    started: int = 0
    completed: int = 0
    send: Mapping[Any, int] = NOTHING
    receive: Mapping[Any, int] = NOTHING
    p2p: int = 0
    shm: int = 0
    rings: int = 0
    trees: int = 0
    no_device: int = 0


EXPECTED = {
    "a100-1n-2.7.5-open-device-failed.log": Expected(
        lines=544,
        nccl_lines=272,
        hosts=1,
        versions={"2.7.5+cuda11.0": 1},
        gdr="unknown",
        findings=("rdma_device_not_accessible", "path_not_told"),
    ),
    "a100-2gpu-p2p-2.27-allsubsys.log": Expected(
        lines=3137,
        nccl_lines=3117,
        hosts=1,
        versions={"2.27.7+cuda13.0": 1},
        networks={"IB": 2},
        started=2,
        completed=2,
        p2p=48,
        rings=2,
        gdr="not_applicable",
        findings=("no_fault", "one_host"),
    ),
    "a100-2n-srun-2.12.log": Expected(
        lines=1012,
        nccl_lines=171,
        hosts=2,
        versions={"2.12.10+cuda11.6": 1},
        networks={"IBext": 8},
        send={("IBext", "host"): 16},
        receive={("IBext", "host"): 16},
        p2p=47,
        rings=8,
        gdr="off",
        findings=("gdr_not_used",),
    ),
    "a100-8n-sharp-warn-only-2.11.log": Expected(
        lines=982, nccl_lines=144, versions={"2.11.4+cuda11.4": 1}, gdr="unknown", findings=("path_not_told",)
    ),
    "a100-opa-4n-2.10.log": Expected(
        lines=508,
        nccl_lines=507,
        hosts=4,
        versions={"2.10.3+cuda11.3": 1},
        networks={"IB": 32},
        completed=32,
        send={("IB", "host"): 20},
        receive={("IB", "host"): 20},
        p2p=112,
        rings=32,
        trees=32,
        gdr="off",
        findings=("gdr_not_used", "devices_unused"),
    ),
    "a100-pcie-1n-2.11-direct-shm.log": Expected(
        lines=499,
        nccl_lines=331,
        hosts=1,
        versions={"2.11.4+cuda11.4": 1},
        networks={"Socket": 8},
        completed=24,
        p2p=48,
        shm=42,
        rings=24,
        trees=24,
        no_device=16,
        gdr="not_applicable",
        findings=("no_fault", "one_host"),
    ),
    "b200-1n-cumem-2.25.log": Expected(
        lines=4886,
        nccl_lines=3449,
        hosts=1,
        versions={"2.25.1+cuda12.9": 9, "2.25.1": 7},
        networks={"IBext_v9": 16},
        started=16,
        completed=8,
        p2p=252,
        rings=7,
        gdr="not_applicable",
        findings=("nccl_topology", "init_incomplete", "one_host"),
    ),
    "b200-2n-ibext10-timings.log": Expected(
        lines=4075,
        nccl_lines=3188,
        hosts=2,
        versions={"2.27.7+cuda13.0": 16},
        networks={"IBext_v10": 32},
        started=32,
        completed=32,
        send={("IBext_v10", "gdr"): 192},
        receive={("IBext_v10", "gdr"): 192},
        p2p=1792,
        rings=16,
        trees=16,
        gdr="on",
        findings=("no_fault", "devices_unused"),
    ),
    "eks-2n-p4d-efa-mpirun.log": Expected(
        lines=596,
        nccl_lines=529,
        hosts=2,
        versions={"2.9.9+cuda11.2": 1},
        networks={"AWS Libfabric": 16},
        completed=16,
        send={("AWS Libfabric", "gdr"): 32},
        receive={("AWS Libfabric", "gdr"): 32},
        p2p=256,
        rings=16,
        trees=16,
        gdr="on",
        findings=("no_fault",),
    ),
    "eks-g6e-1n-shm-ofi.log": Expected(
        lines=767,
        nccl_lines=682,
        hosts=1,
        versions={"2.27.3+cuda12.9": 4},
        networks={"Libfabric": 8},
        started=8,
        completed=8,
        shm=28,
        rings=8,
        trees=8,
        gdr="not_applicable",
        findings=("no_fault", "one_host"),
    ),
    "eks-p4d-1n-p2p-cumem.log": Expected(
        lines=928,
        nccl_lines=843,
        hosts=1,
        networks={"Libfabric": 4},
        started=4,
        completed=8,
        p2p=192,
        rings=8,
        gdr="not_applicable",
        findings=("no_fault", "one_host"),
    ),
    "fastrak-2n-using-network.log": Expected(
        lines=18, nccl_lines=18, hosts=2, networks={"FasTrak": 16}, gdr="not_applicable", findings=("no_fault",)
    ),
    "gb300-2n-no-host-prefix.log": Expected(
        lines=26, nccl_lines=20, send={("IB", "gdr"): 4}, rings=4, gdr="on", findings=("no_fault",)
    ),
    "h100-2n-pxn.log": Expected(
        lines=1554,
        nccl_lines=1520,
        hosts=2,
        versions={"2.18.5+cuda12.2": 2},
        networks={"IBext": 24},
        started=24,
        completed=24,
        send={("IBext", "gdr"): 128},
        receive={("IBext", "gdr"): 128},
        p2p=872,
        rings=24,
        trees=24,
        gdr="on",
        findings=("no_fault",),
    ),
    "h100-6n-srun-ibext.log": Expected(
        lines=6240,
        nccl_lines=6186,
        hosts=6,
        versions={"2.18.5+cuda12.2": 6},
        networks={"IBext": 96},
        started=96,
        completed=48,
        send={("IBext", "gdr"): 1440},
        receive={("IBext", "gdr"): 1440},
        p2p=1946,
        rings=48,
        trees=48,
        gdr="on",
        findings=("init_incomplete",),
    ),
    # Model print-outs overwrite beginnings of lines here: grep finds 283, 288, 480 and 16 ends of them. The one line that
    # grep takes for a send without GPUDirect RDMA has lost its end, and is none.
    "h100-k8s-2n-nebius.log": Expected(
        lines=3656,
        nccl_lines=1510,
        hosts=2,
        versions={"2.19.3+cuda12.3": 1},
        networks={"IBext": 16},
        started=16,
        completed=11,
        send={("IBext", "gdr"): 282},
        receive={("IBext", "gdr"): 287},
        p2p=479,
        rings=16,
        trees=16,
        gdr="on",
        findings=("no_fault",),
    ),
    "h200-2n-ibext.log": Expected(
        lines=3170,
        nccl_lines=2884,
        hosts=2,
        versions={"2.18.5+cuda12.2": 2},
        networks={"IBext": 48},
        started=48,
        completed=48,
        send={("IBext", "gdr"): 128},
        receive={("IBext", "gdr"): 128},
        p2p=1752,
        rings=48,
        trees=48,
        gdr="on",
        findings=("no_fault", "devices_unused"),
    ),
    "h200-8n-teardown-warn-flood.log": Expected(
        lines=3170, nccl_lines=666, versions={"2.22.3+cuda12.6": 1}, gdr="unknown", findings=("path_not_told",)
    ),
    "ib-bad-socket-ifname.log": Expected(
        lines=21, nccl_lines=4, hosts=1, versions={"2.22.3": 1}, gdr="unknown", findings=("socket_interface_missing",)
    ),
    "patched-prefix-2gpu.log": Expected(
        lines=156,
        nccl_lines=70,
        hosts=2,
        versions={"2.26.6+cudaCUDA_MAJOR.CUDA_MINOR": 2},
        send={("IB", "host"): 4},
        receive={("IB", "host"): 4},
        gdr="off",
        findings=("host_gdr_disabled", "devices_unused"),
    ),
    # One P2P line of 56 has lost its prefix.
    "polaris-2n-cxi-ofi.log": Expected(
        lines=523,
        nccl_lines=350,
        hosts=2,
        versions={"2.20.5+cuda12.4": 1},
        networks={"AWS Libfabric": 8},
        started=8,
        completed=8,
        send={("AWS Libfabric", "gdr"): 12},
        receive={("AWS Libfabric", "gdr"): 12},
        p2p=55,
        rings=8,
        trees=8,
        gdr="on",
        findings=("cause_not_in_log",),
    ),
    "ray-gib-2n.log": Expected(lines=22, nccl_lines=13, hosts=1, gdr="on", findings=("no_fault",)),
    "ray-gib-channels.log": Expected(
        lines=8, nccl_lines=3, hosts=1, send={("gIB", "gdr"): 2}, gdr="on", findings=("no_fault",)
    ),
    "rccl-mi300x-2n-socket.log": Expected(
        lines=2934,
        nccl_lines=2854,
        hosts=1,
        versions={"2.22.3-HEAD:271856d": 8},
        networks={"Socket": 32},
        started=31,
        completed=24,
        send={("Socket", "socket"): 128},
        receive={("Socket", "socket"): 128},
        p2p=1472,
        rings=24,
        trees=24,
        no_device=8,
        gdr="not_applicable",
        findings=("transport_fallback_socket", "init_incomplete"),
    ),
    "roce-2n-nccl-tests.log": Expected(
        lines=225,
        nccl_lines=96,
        hosts=2,
        versions={"2.26.5+cuda12.9": 4},
        send={("IB", "host"): 8},
        receive={("IB", "host"): 8},
        gdr="off",
        findings=("host_gdr_disabled",),
    ),
    "roce-status12-status5.log": Expected(
        lines=10,
        nccl_lines=8,
        hosts=2,
        gdr="unknown",
        findings=("fabric_path_or_peer", "fabric_path_config", "path_not_told"),
    ),
    "rtx-6gpu-p2p-ring-2.29.log": Expected(
        lines=1003,
        nccl_lines=987,
        hosts=1,
        versions={"2.29.2+cuda13.1": 1},
        networks={"Socket": 6},
        started=6,
        completed=6,
        p2p=144,
        rings=6,
        no_device=2,
        gdr="not_applicable",
        findings=("no_fault", "one_host"),
    ),
    "socket-remote-closed.log": Expected(
        lines=32,
        nccl_lines=14,
        hosts=1,
        versions={"2.20.5": 1},
        gdr="unknown",
        findings=("consequence_of_remote_failure", "path_not_told"),
    ),
    "v100-opa-16n-2.7.8.log": Expected(
        lines=1545,
        nccl_lines=1365,
        hosts=16,
        versions={"2.7.8+cuda10.2": 1},
        networks={"IB": 64},
        completed=64,
        send={("IB", "host"): 184},
        receive={("IB", "host"): 184},
        p2p=416,
        gdr="off",
        findings=("gdr_not_used", "devices_unused"),
    ),
    "v100-opa-1n-2.7.8.log": Expected(
        lines=164,
        nccl_lines=149,
        hosts=1,
        versions={"2.7.8+cuda10.2": 1},
        networks={"IB": 4},
        completed=4,
        p2p=100,
        gdr="not_applicable",
        findings=("no_fault", "one_host"),
    ),
    "v100-opa-4n-2.10.log": Expected(
        lines=366,
        nccl_lines=365,
        hosts=4,
        versions={"2.10.3+cuda11.3": 1},
        networks={"IB": 16},
        completed=16,
        send={("IB", "host"): 40},
        receive={("IB", "host"): 40},
        p2p=104,
        rings=16,
        trees=16,
        gdr="off",
        findings=("gdr_not_used", "devices_unused"),
    ),
}


def told(name: str) -> tuple[report.ReadLog, dict[str, Any]]:
    with (LOGS / name).open("rb") as stream:
        log = report.read(name, stream)
    return log, report.as_json(log, report.findings([log])[0])


def by_path(channels: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    counts: Counter[tuple[str, str]] = Counter()
    for channel in channels:
        counts[channel["net"], channel["path"]] += channel["count"]
    return dict(counts)


def test_every_log_is_here() -> None:
    assert sorted(EXPECTED) == sorted(path.name for path in LOGS.glob("*.log"))


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_log_says(name: str) -> None:
    log, said = told(name)
    evidence = log.evidence
    assert (
        Expected(
            lines=said["lines"],
            nccl_lines=said["nccl_lines"],
            gdr=said["gdr"]["state"],
            findings=tuple(finding["id"] for finding in said["findings"]),
            hosts=len(said["hosts"]),
            versions={version: count for (_, version), count in evidence.versions.items()},
            networks=said["networks"],
            started=said["communicators"]["started"],
            completed=said["communicators"]["completed"],
            send=by_path(said["channels"]["send"]),
            receive=by_path(said["channels"]["receive"]),
            p2p=said["channels"]["p2p"],
            shm=said["channels"]["shm"],
            rings=evidence.connected.get("rings", 0),
            trees=evidence.connected.get("trees", 0),
            no_device=evidence.without_device,
        )
        == EXPECTED[name]
    )


def test_a_status_of_another_pair_is_the_first_cause() -> None:
    _, said = told("roce-status12-status5.log")
    assert said["completion_errors"] == [
        {"status": 5, "name": "WR_FLUSH_ERR", "vendor_error": 249, "hca": "mlx5_9", "peer": "10.46.70.21", "count": 1},
        {
            "status": 12,
            "name": "RETRY_EXC_ERR",
            "vendor_error": 129,
            "hca": "mlx5_10",
            "peer": "10.46.70.22",
            "count": 1,
        },
    ]
    assert said["flush_errors"] == 1
    assert (said["first_error"]["status"], said["first_error"]["hca"]) == (12, "mlx5_10")
    assert "mlx5_9" not in said["findings"][0]["summary"]


def test_a_peer_that_closed_twice_is_one_peer() -> None:
    log, said = told("socket-remote-closed.log")
    assert said["findings"][0]["summary"].startswith(
        "gpu-node1.int.hpclu.labs.example.xx.edu closed its connection to gpu-node2"
    )
    assert said["findings"][0]["confidence"] == "insufficient"
    assert said["communicators"]["aborted"] == 1
    assert log.evidence.news.failures == {}


def test_a_name_of_no_interface_is_told() -> None:
    _, said = told("ib-bad-socket-ifname.log")
    assert said["settings"]["NCCL_SOCKET_IFNAME"] == "nonexistent0"
    assert "NCCL_SOCKET_IFNAME=nonexistent0" in said["findings"][0]["summary"]
    assert said["findings"][0]["confidence"] == "confirmed"


def test_noise_at_the_end_is_no_fault() -> None:
    log, said = told("h200-8n-teardown-warn-flood.log")
    assert (said["failures"], said["consequences"], said["completion_errors"]) == ([], [], [])
    assert log.evidence.news.failures == {}


def test_the_index_of_a_device_is_not_in_its_name() -> None:
    """On this host [3] is mlx5_4 and [10] is mlx5_15."""
    _, said = told("b200-2n-ibext10-timings.log")
    assert {(channel["device"], channel["hca"]) for channel in said["channels"]["send"]} == {
        (0, "mlx5_1"),
        (1, "mlx5_2"),
        (2, "mlx5_3"),
        (3, "mlx5_4"),
        (8, "mlx5_11"),
        (9, "mlx5_12"),
        (10, "mlx5_15"),
        (11, "mlx5_17"),
    }
    assert {"host": "gpu-node-b200-sxm-6", "gpu": "0000:1b:00.0", "hca": "mlx5_1", "nic": None, "count": 24} in said[
        "gpu_nic_pairs"
    ]


def test_with_pxn_the_proxys_gpu_has_the_nic() -> None:
    """Half the sends go through another rank's GPU: every NIC is used by the one GPU near it."""
    _, said = told("h100-2n-pxn.log")
    pairs = {(pair["host"], pair["gpu"], pair["hca"]) for pair in said["gpu_nic_pairs"]}
    assert len(pairs) == len({(host, hca) for host, _, hca in pairs}) == 8
    assert ("rack01node05", "0000:4e:00.0", "mlx5_0") in pairs


def test_a_network_whose_devices_nothing_names_has_none() -> None:
    _, said = told("eks-2n-p4d-efa-mpirun.log")
    assert {channel["hca"] for channel in said["channels"]["send"]} == {None}
    assert said["devices"] == []


def test_interfaces_are_no_hcas() -> None:
    _, said = told("rccl-mi300x-2n-socket.log")
    assert said["devices"] == []
    assert len(said["interfaces"]) == 8
    assert said["versions"] == ["RCCL 2.22.3-HEAD:271856d"]
