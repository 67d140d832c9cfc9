"""Fifteen reconstructed failures, each with what must be said of it and what must not (``failures/*.expect.md``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from exporter.nccl import report
from exporter.nccl.findings import Finding

CASES = Path(__file__).with_name("failures")
NAMES = sorted(path.stem for path in CASES.glob("*.log"))


class Told:
    """What is said of a case."""

    def __init__(self, start: str) -> None:
        (path,) = CASES.glob(f"{start}-*.log")
        with path.open("rb") as stream:
            self.log = report.read(path.name, stream)
        (self.findings,) = report.findings([self.log])
        self.said: dict[str, Any] = report.as_json(self.log, self.findings)

    @property
    def ids(self) -> list[str]:
        return [finding.id for finding in self.findings]

    def finding(self, id: str) -> Finding:
        (found,) = (finding for finding in self.findings if finding.id == id)
        return found

    def statuses(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        for error in self.said["completion_errors"]:
            counts[error["status"]] = counts.get(error["status"], 0) + error["count"]
        return counts

    def words(self) -> str:
        """All summaries: what a person reads first."""
        return " ".join(finding.summary for finding in self.findings).lower()


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_the_expectation(name: str) -> None:
    """The head of each expectation: completion errors by status, lines, lines of NCCL, what came first."""
    told = Told(name[:2])
    expected = yaml.safe_load((CASES / f"{name}.expect.md").read_text().split("---")[1])
    raw = expected["raw_counts"]
    assert told.said["lines"] == raw["lines"]
    assert told.said["nccl_lines"] == raw["NCCL INFO"] + raw["NCCL WARN"]
    if "completion_errors" in expected:
        assert told.statuses() == expected["completion_errors"]
        assert told.said["flush_errors"] == expected["completion_errors"].get(5, 0)
    if status := re.match(r"status (\d+)", expected["first_cause"]):
        assert told.said["first_error"]["status"] == int(status[1])


def test_01_retries_exceeded_and_what_follows() -> None:
    told = Told("01")
    assert told.said["completion_errors"][0] == {
        "status": 12,
        "name": "RETRY_EXC_ERR",
        "vendor_error": 129,
        "hca": None,
        "peer": "192.0.2.12",
        "count": 1,
    }
    first = told.said["first_error"]
    assert (first["local_gid"], first["remote_gid"]) == ("::ffff:198.51.100.182", "::ffff:198.51.100.221")
    # The line names no HCA; the process uses one.
    assert first["hca"] == "mlx5_bond_5"
    assert told.said["channels"]["send"] == [
        {"net": "IBext_v8", "device": 4, "hca": "mlx5_bond_5", "path": "gdr", "count": 1}
    ]
    assert told.said["gdr"]["state"] == "on"
    assert told.said["settings"]["NCCL_IB_TC"] == "128"
    finding = told.finding("fabric_path_or_peer")
    assert (finding.severity, finding.confidence) == ("critical", "likely")
    assert "path 198.51.100.182 to 198.51.100.221" in finding.evidence
    assert "the path broke about 17 s before the error: look at counters around that time" in finding.evidence
    assert told.ids == ["fabric_path_or_peer", "devices_unused"]
    for wrong in ("acs", "iommu", "gpudirect", "flush", "32656", "gid"):
        assert wrong not in told.words()


def test_02_gid_index_of_an_old_release() -> None:
    told = Told("02")
    assert told.ids == ["fabric_path_or_peer", "fabric_path_config", "gdr_not_used", "devices_unused"]
    assert told.finding("fabric_path_config").confidence == "possible"
    assert "NCCL_IB_GID_INDEX" in told.finding("fabric_path_config").summary
    assert told.said["gdr"] == {"state": "off", "basis": "channels: 0 of 2 network channels with /GDRDMA"}
    assert told.said["versions"][0] == "2.14.3+cuda11.7"
    assert told.said["channels"]["receive"] == [{"net": "IB", "device": 0, "hca": "mlx5_0", "path": "host", "count": 2}]
    assert (told.said["channels"]["send"], told.said["channels"]["p2p"]) == ([], 1)
    assert told.said["gpu_nic_pairs"] == [
        {"host": "node-1", "gpu": "0000:10:00.0", "hca": "mlx5_0", "nic": None, "count": 2}
    ]
    assert told.log.evidence.news.completions == {("node-1", "mlx5_0", 12): [1, 0.0]}


def test_03_local_protection_on_both_nodes() -> None:
    told = Told("03")
    assert told.ids[0] == "host_pcie_iommu"
    finding = told.findings[0]
    assert (finding.severity, finding.confidence) == ("critical", "likely")
    assert "nodeA" in finding.summary
    assert "nodeB" in finding.summary
    assert [(error["vendor_error"], error["peer"]) for error in told.said["completion_errors"]] == [
        (81, "fe80::a00:27ff:fe00:a1%ib0"),
        (81, "fe80::a00:27ff:fe00:b2%ib0"),
    ]
    for wrong in ("cable", "switch", "subnet manager", "retries", "32564", "no answer"):
        assert wrong not in told.words()


def test_04_a_flap_of_one_port_told_by_eight_processes() -> None:
    told = Told("04")
    assert told.said["async_events"] == [
        {"event": "port_error", "device": None, "port": None, "count": 1, "raw_count": 8},
        {"event": "port_active", "device": None, "port": None, "count": 1, "raw_count": 8},
    ]
    assert told.ids == ["fabric_link_flap", "path_not_told"]
    summary = told.findings[0].summary
    assert "of ...-48 went down once and came back" in summary
    assert "...-51 got no answer from 192.0.2.48 (status 12), a consequence of the link" in summary
    assert told.said["first_error"]["what"] == "port_error"
    assert told.said["hosts"] == ["...-48", "...-51"]
    assert "gpu" not in told.words()


def test_05_gdr_off_for_a_reason_of_software() -> None:
    told = Told("05")
    assert told.ids == ["host_gdr_disabled", "devices_unused"]
    finding = told.findings[0]
    assert (finding.severity, finding.confidence) == ("warning", "confirmed")
    assert any("nvidia_peermem" in line and "possible" in line for line in finding.evidence)
    assert told.said["gdr"]["state"] == "off"
    assert told.said["versions"] == ["2.22.3+cuda12.6"]
    assert told.said["hosts"] == ["train01"]
    assert told.said["garbled_lines"] == 1
    for wrong in ("link", "fabric", "bandwidth", "available"):
        assert wrong not in told.words()


def test_06_sockets_where_no_device_is_seen() -> None:
    told = Told("06")
    assert told.ids == ["transport_fallback_socket"]
    assert told.findings[0].severity == "warning"
    assert told.findings[0].summary == (
        "Traffic between hosts uses TCP on eth0, not RDMA: NCCL found no RDMA device with an active port."
    )
    assert told.said["gdr"]["state"] == "not_applicable"
    assert told.said["networks"] == {"Socket": 1}
    assert told.said["channels"]["receive"] == [
        {"net": "Socket", "device": 0, "hca": None, "path": "socket", "count": 2}
    ]
    assert told.said["channels"]["p2p"] == 2
    assert told.said["communicators"]["completed"] == 1
    for wrong in ("gpudirect", "libnccl-net", "plugin", "failed"):
        assert wrong not in told.words()


def test_07_an_error_of_efa_is_no_verbs_status() -> None:
    told = Told("07")
    assert told.ids == ["cloud_network_policy"]
    assert told.findings[0].confidence == "possible"
    assert "security group" in told.findings[0].summary
    assert told.said["completion_errors"] == []
    assert told.said["plugin_errors"] == [
        {"network": "OFI", "code": 20, "text": "unknown error", "device": 1, "count": 1}
    ]
    assert told.said["channels"]["receive"] == [
        {"net": "AWS Libfabric", "device": 1, "hca": None, "path": "gdr", "count": 1}
    ]
    assert told.said["gdr"]["state"] == "on"


def test_08_a_full_dev_shm_once() -> None:
    told = Told("08")
    assert told.ids == ["host_shm_limit"]
    assert (told.findings[0].severity, told.findings[0].confidence) == ("critical", "confirmed")
    assert [(failure["class"], failure["code"], failure["count"]) for failure in told.said["failures"]] == [
        ("shm", 28, 1)
    ]
    assert told.log.evidence.news.failures["shm"][0] == 1
    # the container runtime's time, not NCCL's without a zone
    assert told.said["first_error"]["time"] == pytest.approx(1776893660.4)
    for wrong in ("fabric", "network", "socket"):
        assert wrong not in told.words()


def test_09_locked_memory_and_what_follows() -> None:
    told = Told("09")
    assert told.ids == ["host_limits_memlock", "init_incomplete"]
    assert told.findings[0].confidence == "confirmed"
    assert told.log.evidence.news.failures == {"memlock": [1, 0.0]}
    assert sum(item["count"] for item in told.said["consequences"]) == 4
    assert told.said["communicators"] == {"started": 1, "completed": 0, "destroyed": 0, "aborted": 0, "hosts": None}
    for wrong in ("closed", "gpu", "out of memory", "peer"):
        assert wrong not in told.words()


def test_10_an_address_of_another_rail() -> None:
    told = Told("10")
    assert told.ids == ["fabric_reachability", "devices_unused"]
    finding = told.findings[0]
    assert (finding.severity, finding.confidence) == ("critical", "likely")
    assert "on mlx5_5 from 198.18.105.11 to 198.18.104.12 timed out" in finding.summary
    assert "NCCL_CROSS_NIC=0" in finding.summary
    assert [(item["class"], item["code"], item["hca"], item["count"]) for item in told.said["failures"]] == [
        ("verbs", 110, "mlx5_5", 1)
    ]
    assert told.said["communicators"]["completed"] == 1
    for wrong in ("cable", "init"):
        assert wrong not in told.words()


def test_11_no_route_before_anything_was_up() -> None:
    told = Told("11")
    assert told.ids == ["control_plane_reachability"]
    assert told.log.evidence.news.failures == {"socket": [1, 0.0]}
    assert [(item["class"], item["code"], item["count"]) for item in told.said["failures"]] == [("socket", 113, 1)]
    assert "before any communicator was up" in told.findings[0].summary
    assert told.said["communicators"]["started"] == 0
    for wrong in ("rdma", "infiniband", "status"):
        assert wrong not in told.words()


def test_12_only_flushed() -> None:
    told = Told("12")
    assert told.ids[0] == "consequence_of_remote_failure"
    finding = told.findings[0]
    assert finding.confidence == "insufficient"
    assert "look at the log of 192.0.2.95" in finding.summary
    assert "mlx5_3" not in told.words()
    assert told.said["first_error"] is None
    assert told.said["completion_errors"] == [
        {"status": 5, "name": "WR_FLUSH_ERR", "vendor_error": 249, "hca": "mlx5_3", "peer": "192.0.2.95", "count": 2}
    ]
    assert told.log.evidence.news.completions == {}
    assert told.log.evidence.news.flushes == {("worker-3", "mlx5_3", 5): [2, 0.0]}


def test_13_healthy_with_one_nic_of_four() -> None:
    told = Told("13")
    assert told.ids == ["no_fault", "devices_unused"]
    assert told.findings[1].summary.startswith("4 HCAs are listed, the channels in this log use 1 (mlx5_0)")
    assert told.said["gdr"] == {"state": "on", "basis": "channels: 4 of 4 network channels with /GDRDMA"}
    assert "bandwidth" not in told.words()


def test_14_a_subnet_manager_that_asks_again() -> None:
    told = Told("14")
    assert told.said["async_events"] == [
        {"event": "client_reregistration", "device": None, "port": None, "count": 1, "raw_count": 3}
    ]
    assert {finding.severity for finding in told.findings} == {"info"}
    assert "benign_sm_event" in told.ids
    assert "port_error" not in told.words()
    assert told.said["first_error"] is None


def test_15_no_libibverbs_and_an_interface_too_many() -> None:
    told = Told("15")
    assert told.ids == ["transport_fallback_socket", "socket_interface_suspect"]
    assert "libibverbs is missing" in told.findings[0].summary
    assert "veth3a1" in told.findings[1].summary
    assert "NCCL_SOCKET_IFNAME=eth0" in told.findings[1].summary
    assert told.said["channels"] == {
        "send": [{"net": "Socket", "device": 1, "hca": None, "path": "socket", "count": 1}],
        "receive": [{"net": "Socket", "device": 0, "hca": None, "path": "socket", "count": 1}],
        "p2p": 0,
        "shm": 1,
        "collnet": 0,
    }
    assert told.said["hosts"] == ["head-0", "worker-1"]
    for wrong in ("gpudirect", "hca", "down"):
        assert wrong not in told.words()
