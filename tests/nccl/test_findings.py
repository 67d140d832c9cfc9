"""Findings that no saved log shows: settings, device lists against a host, partial GPUDirect RDMA, failover."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.model import Inventory, Netdev, RdmaPort
from exporter.nccl import report
from exporter.nccl.evidence import Evidence
from exporter.nccl.facts import (
    AsyncEvent,
    BadSetting,
    Channel,
    Completion,
    Device,
    Devices,
    Fact,
    Failure,
    Init,
    Network,
    NoDevice,
    Plugin,
    PluginError,
    Record,
    Report,
    Resiliency,
    Setting,
    Shape,
    Slow,
    Version,
)
from exporter.nccl.findings import Finding, find
from exporter.nccl.reader import Reader

HOST = Inventory(ports=tuple(RdmaPort(f"mlx5_{n}", 1) for n in (0, 1, 10)), netdevs=(Netdev("eth0"), Netdev("bond0")))


def line(host: str = "node-1", pid: int = 100, message: str = "") -> Record:
    return Record("WARN", message, host, pid, pid, 0)


def found(*facts: Fact | tuple[Record, Fact], inventory: Inventory | None = None) -> dict[str, Finding]:
    """Findings by id."""
    evidence = Evidence()
    for fact in facts:
        record, said = fact if isinstance(fact[0], Record) else (line(), fact)
        evidence.take(record, said, 1000.0)
    return {finding.id: finding for finding in find(evidence, inventory)}


def listed(*names: str) -> Devices:
    devices = tuple(Device(n, name, 1, "RoCE", ((name, 1),)) for n, name in enumerate(names))
    return Devices("IB", devices, True, "eth0", "192.0.2.1")


def channel(direction: Any, path: Any, device: int = 0, number: int = 0, network: str = "IB") -> Channel:
    return Channel(direction, network, device, path, number, 0, 0, 8)


# Settings


@pytest.mark.parametrize(
    ("name", "value", "id", "severity"),
    [
        ("NCCL_NET_GDR_LEVEL", "SYS", "gdr_level_forced", "warning"),
        ("NCCL_NET_GDR_LEVEL", "5", "gdr_level_forced", "warning"),
        ("NCCL_NET_GDR_LEVEL", "LOC", "gdr_level_off", "warning"),
        ("NCCL_NET_GDR_LEVEL", "0", "gdr_level_off", "warning"),
        ("NCCL_NET_GDR_LEVEL", "phb", "gdr_level_ignored", "warning"),
        ("NCCL_NET_GDR_READ", "0", "gdr_read_disabled", "warning"),
        ("NCCL_IB_DISABLE", "1", "ib_disabled", "warning"),
    ],
)
def test_values_that_deserve_a_word(name: str, value: str, id: str, severity: str) -> None:
    finding = found(Setting(name, value))[id]
    assert (finding.severity, finding.confidence) == (severity, "confirmed")
    assert f"{name}={value}" in finding.summary
    assert finding.evidence == (f"{name} set by environment to {value} on node-1",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_NET_GDR_LEVEL", "PXB"),
        ("NCCL_NET_GDR_LEVEL", "2"),
        ("NCCL_NET_GDR_READ", "1"),
        ("NCCL_IB_DISABLE", "0"),
        ("NCCL_IB_TC", "106"),
    ],
)
def test_values_that_do_not(name: str, value: str) -> None:
    assert list(found(Setting(name, value))) == ["no_fault"]


def test_a_digit_is_told_with_its_level() -> None:
    assert "NCCL_NET_GDR_LEVEL=5 (SYS) lifts" in found(Setting("NCCL_NET_GDR_LEVEL", "5"))["gdr_level_forced"].summary


@pytest.mark.parametrize(("version", "told"), [("2.21.5", True), ("2.32.3", True), ("2.20.5", False), ("", False)])
def test_a_gid_index_is_needless_from_2_21_on(version: str, told: bool) -> None:
    facts: list[Fact] = [Setting("NCCL_IB_GID_INDEX", "3")]
    if version:
        facts.append(Version("NCCL", version))
    assert ("gid_index_set" in found(*facts)) == told


def test_an_rccl_number_is_no_release_of_nccl() -> None:
    assert "gid_index_set" not in found(Setting("NCCL_IB_GID_INDEX", "3"), Version("RCCL", "2.22.3"))


def test_traffic_classes_that_differ_between_hosts() -> None:
    finding = found((line("a"), Setting("NCCL_IB_TC", "106")), (line("b"), Setting("NCCL_IB_TC", "128")))[
        "setting_differs"
    ]
    assert finding.summary == "NCCL_IB_TC is not the same on all hosts: 106 on a; 128 on b."
    # one host that says both is one host
    assert "setting_differs" not in found(
        (line("a"), Setting("NCCL_IB_TC", "106")), (line("a"), Setting("NCCL_IB_TC", "128"))
    )


def test_traffic_classes_that_differ_between_logs() -> None:
    logs = []
    for host, value in (("a", "106"), ("b", "128")):
        evidence = Evidence()
        evidence.take(line(host), Setting("NCCL_IB_TC", value), 0.0)
        logs.append(report.ReadLog(host, Reader(), evidence))
    for findings in report.findings(logs):
        assert [finding.id for finding in findings if finding.severity == "warning"] == ["setting_differs"]


def test_a_value_that_nccl_does_not_take() -> None:
    finding = found(BadSetting("NCCL_IB_DISABLE", "yes"))["setting_refused"]
    assert "NCCL_IB_DISABLE=yes" in finding.summary


# NCCL_IB_HCA


def test_a_list_that_matches_nothing_here() -> None:
    finding = found(Setting("NCCL_IB_HCA", "bnxt_re"), inventory=HOST)["ib_hca_no_match"]
    assert finding.severity == "critical"
    assert "mlx5_0, mlx5_1 and mlx5_10" in finding.summary


def test_a_list_that_names_one_device_too_many() -> None:
    finding = found(Setting("NCCL_IB_HCA", "=mlx5_0,mlx5_7"), inventory=HOST)["ib_hca_no_match"]
    assert finding.severity == "warning"
    assert "mlx5_7" in finding.summary
    assert "ib_hca_no_match" not in found(Setting("NCCL_IB_HCA", "^mlx5_7"), inventory=HOST)


def test_a_list_that_matches_more_than_meant() -> None:
    here = found(Setting("NCCL_IB_HCA", "mlx5_1"), inventory=HOST)["ib_hca_prefix"]
    assert "mlx5_1 also stands for mlx5_10" in here.summary
    # without the host, what NCCL lists tells
    there = found(listed("mlx5_1", "mlx5_10"), Setting("NCCL_IB_HCA", "mlx5_1"))["ib_hca_prefix"]
    assert there.summary == here.summary
    for fine in ("=mlx5_1", "mlx5", "mlx5_0"):
        assert "ib_hca_prefix" not in found(Setting("NCCL_IB_HCA", fine), inventory=HOST)


def test_an_interface_that_this_host_does_not_have() -> None:
    finding = found(Setting("NCCL_SOCKET_IFNAME", "=ens3"), inventory=HOST)["socket_ifname_no_match"]
    assert (finding.severity, finding.confidence) == ("info", "possible")
    assert "eth0 and bond0" in finding.summary
    assert "socket_ifname_no_match" not in found(Setting("NCCL_SOCKET_IFNAME", "^docker,lo"), inventory=HOST)
    assert "socket_ifname_no_match" not in found(Setting("NCCL_SOCKET_IFNAME", "=ens3"))


# GPUDirect RDMA


def test_a_nic_without_gdr_among_others() -> None:
    findings = found(
        listed("mlx5_0", "mlx5_1"),
        *(channel("send", "gdr", number=n) for n in range(4)),
        *(channel("send", "host", 1, n) for n in (5, 6)),
    )
    assert "mlx5_1" in findings["gdr_off_on_device"].summary
    assert findings["gdr_off_on_device"].confidence == "possible"


def test_one_channel_without_gdr_is_usual() -> None:
    findings = found(listed("mlx5_0"), channel("send", "gdr"), channel("send", "host", number=1))
    assert findings["gdr_partial"].severity == "info"
    assert "gdr_off_on_device" not in findings


def test_gdr_for_receiving_only() -> None:
    facts: list[Fact] = [listed("mlx5_0"), channel("send", "host"), channel("receive", "gdr")]
    assert found(*facts)["gdr_read_off"].confidence == "possible"
    assert found(*facts, Setting("NCCL_NET_GDR_READ", "0"))["gdr_read_off"].confidence == "confirmed"


# Sockets


def test_sockets_are_critical_where_there_is_rdma() -> None:
    facts: list[Fact] = [Network("Socket"), channel("send", "socket", network="Socket")]
    assert found(*facts)["transport_fallback_socket"].severity == "warning"
    assert found(*facts, inventory=HOST)["transport_fallback_socket"].severity == "critical"
    disabled = found(*facts, Setting("NCCL_IB_DISABLE", "1"), NoDevice("IB"), inventory=HOST)[
        "transport_fallback_socket"
    ]
    assert disabled.summary.endswith("NCCL_IB_DISABLE turns RDMA off.")


def test_sockets_within_a_host_are_no_finding() -> None:
    assert "transport_fallback_socket" not in found(Network("Socket"), NoDevice("IB"), Shape("0xa", 8, 1, 8))
    assert "transport_fallback_socket" in found(Network("Socket"), Shape("0xa", 16, 2, 8))


# What broke


def completion(status: int, hca: str = "mlx5_0", gid: str = "") -> Completion:
    return Completion(status, f"S{status}", 129, "192.0.2.9", hca, local_gid=gid)


@pytest.mark.parametrize(
    ("status", "id"),
    [
        (1, "completion_error"),
        (4, "host_pcie_iommu"),
        (9, "remote_request_refused"),
        (10, "remote_memory_access"),
        (11, "remote_operation"),
        (12, "fabric_path_or_peer"),
        (13, "peer_not_receiving"),
    ],
)
def test_a_status_is_an_effect(status: int, id: str) -> None:
    finding = found(completion(status))[id]
    assert finding.severity == "critical"
    assert finding.confidence in {"likely", "possible"}


def test_local_protection_without_gdr_is_only_possible() -> None:
    assert found(completion(4))["host_pcie_iommu"].confidence == "possible"


def test_a_link_local_gid() -> None:
    assert "fabric_path_config" in found(completion(12, gid="fe80::1"))
    assert "fabric_path_config" not in found(completion(12, gid="::ffff:192.0.2.1"))


def test_a_port_that_goes_down_after_an_error_is_not_its_cause() -> None:
    findings = found(completion(12), AsyncEvent("port_error", "mlx5_0", 1, False))
    assert findings["fabric_path_or_peer"].severity == "critical"
    assert "consequence" not in findings["fabric_link_flap"].summary
    assert findings["fabric_link_flap"].summary == "mlx5_0:1 of node-1 went down once and was not seen to come back."


def test_a_fatal_event_comes_first() -> None:
    evidence = Evidence()
    for fact in (completion(12), AsyncEvent("device_fatal", "mlx5_0", 1, True), completion(5)):
        evidence.take(line(), fact, 0.0)
    assert [finding.id for finding in find(evidence)][:2] == ["device_event", "fabric_path_or_peer"]


def test_failover() -> None:
    assert found(Resiliency("failed", 0), Resiliency("replaced", 0))["port_failover"].severity == "warning"
    assert found(Resiliency("failed", 0), Resiliency("fatal", None))["port_failover"].severity == "critical"


def test_requests_that_do_not_end() -> None:
    finding = found(Slow("slow", "192.0.2.8", "mlx5_1", 1), Slow("stall", "192.0.2.9", "mlx5_0", 1))["slow_requests"]
    assert finding.severity == "warning"
    assert finding.summary == "Requests over mlx5_0 to 192.0.2.9 do not end."


def test_reports_of_nccl_itself() -> None:
    findings = found(Report("ecc", "ECC: uncorrected volatile errors on rank(s) 3", True), Report("net", "fine", False))
    assert findings["nccl_reports_ecc"].evidence == ("ECC: uncorrected volatile errors on rank(s) 3",)
    assert "nccl_reports_net" not in findings


def test_a_plugin_error_that_is_not_efa() -> None:
    finding = found(PluginError("OFI", 20, "unknown error"))["plugin_request_failed"]
    assert finding.confidence == "insufficient"
    other = found(Plugin("provider", "efa", "", "loaded"), PluginError("OFI", 5, "input/output error"))
    assert "cloud_network_policy" not in other


@pytest.mark.parametrize(
    ("failure", "id", "confidence"),
    [
        (Failure("shm", "shared memory is full", 28), "host_shm_limit", "confirmed"),
        (Failure("shm", "shared memory cannot be used", 2), "host_shm", "possible"),
        (Failure("memlock", "x", 12), "host_limits_memlock", "confirmed"),
        (Failure("socket", "connecting failed", 111, "192.0.2.9"), "control_plane_reachability", "likely"),
        (Failure("verbs", "ibv_open_device failed"), "rdma_device_not_accessible", "confirmed"),
        (Failure("verbs", "ibv_modify_qp failed", 22, "", "mlx5_0"), "fabric_reachability", "possible"),
        (Failure("cuda", "out of memory", 2), "nccl_cuda", "confirmed"),
        (Failure("other", "something new"), "unknown_warnings", "insufficient"),
    ],
)
def test_failures(failure: Failure, id: str, confidence: str) -> None:
    finding = found((line(message="a line"), failure))[id]
    assert finding.confidence == confidence
    assert len(finding.evidence) == 1
    assert finding.evidence[0].endswith("a line")


def test_an_address_in_the_same_subnet_says_nothing_of_rails() -> None:
    message = "Call to ibv_modify_qp failed with 110 Connection timed out, local GID ::ffff:10.0.0.1, remote GID ::ffff:10.0.0.2"
    finding = found((line(message=message), Failure("verbs", "ibv_modify_qp failed", 110, "", "mlx5_0")))[
        "fabric_reachability"
    ]
    assert finding.confidence == "possible"
    assert "rail" not in finding.summary


def test_a_start_without_an_end() -> None:
    start = Init("start", "0xa", 0, 16, 0, 0, "1b000", "0x1")
    assert found(start)["init_incomplete"].confidence == "insufficient"
    assert found(start, Failure("cuda", "x"))["init_incomplete"].confidence == "confirmed"
    assert "init_incomplete" not in found(start, start._replace(stage="complete"))


def test_what_a_log_cannot_tell() -> None:
    assert [finding.id for finding in find(Evidence(), nccl_lines=0)] == ["no_nccl_lines"]
    assert [finding.id for finding in find(Evidence(), nccl_lines=3)] == ["path_not_told"]
