"""The tables against the counter reference (data/counters.yaml): every name is served rightly or left out for a reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pattern_names import names_of

from exporter.catalogue import ethernet, infiniband, ports, rdma
from exporter.drivers import DRIVERS, PMA
from exporter.drivers.entry import Entry
from exporter.drivers.plan import match
from exporter.model import Metric

REFERENCE: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "data" / "counters.yaml").read_text())
NAMED = {"bnxt_en": "bnxt", "bnxt_re": "bnxt", "irdma": "ice", "mana_ib": "mana", "ionic_rdma": "ionic", "hns3": "hns"}
"""Drivers of the reference whose tables are in another's: two kernel modules for one card."""
PLACES = {
    "ethtool": "ethtool",
    "rdma_port_hw": "port",
    "rdma_port_hw_oot": "port",
    "rdma_optional": "port",
    "rdma_port_hw_representor": "port",
    "rdma_device_hw": "device",
}
CANONICAL: dict[str, Metric] = {
    "out_of_sequence": rdma.OUT_OF_SEQUENCE,
    "packet_seq_err": rdma.SEQUENCE_NAKS,
    "implied_nak_seq_err": rdma.IMPLIED_NAKS,
    "ack_timeout": rdma.ACK_TIMEOUTS,
    "rnr_nak_received": rdma.RNR_NAKS,
    "rnr_nak_sent": rdma.RNR_NAKS_SENT,
    "duplicate_request": rdma.DUPLICATE_REQUESTS,
    "out_of_buffer": rdma.OUT_OF_BUFFER,
    "transport_retries_exceeded": rdma.RETRIES_EXCEEDED,
    "rnr_retries_exceeded": rdma.RNR_RETRIES_EXCEEDED,
    "retransmits": rdma.RETRANSMITTED_PACKETS,
    "icrc_errors": rdma.ICRC_ERRORS,
    "ecn_marked_roce": rdma.ECN_MARKED,
    "cnp_sent": rdma.CNP_SENT,
    "cnp_handled": rdma.CNP_HANDLED,
    "cnp_ignored": rdma.CNP_IGNORED,
    "ecn_marked_netdev": ethernet.NETDEV_ECN_MARKED,
    "netdev_out_of_buffer": ethernet.HOST_DISCARDS,
    "pfc_rx_frames": ethernet.PFC_RECEIVED_FRAMES,
    "pfc_tx_frames": ethernet.PFC_TRANSMITTED_FRAMES,
    "pfc_rx_us": ethernet.PFC_RECEIVED_PAUSE,
    "pfc_tx_us": ethernet.PFC_TRANSMITTED_PAUSE,
    "pfc_rx_xoff_time": ethernet.PFC_RECEIVED_XOFF_TIME,
    "pfc_tx_xoff_time": ethernet.PFC_TRANSMITTED_XOFF_TIME,
    "link_pause_rx_frames": ethernet.GLOBAL_RECEIVED_FRAMES,
    "link_pause_tx_frames": ethernet.GLOBAL_TRANSMITTED_FRAMES,
    "port_rx_discards": ethernet.RECEIVED_DISCARDS,
    "port_buffer_high": ethernet.BUFFER_HIGH,
    "prio_rx_discards": ethernet.PRIORITY_DISCARDS,
    "pcs_symbol_errors": ethernet.SYMBOL_ERRORS,
    "fcs_errors": ethernet.CRC_ERRORS,
    "fec_corrected_bits": ethernet.FEC_CORRECTIONS,
    "fec_uncorrectable_blocks": ethernet.FEC_UNCORRECTABLE_BLOCKS,
    "link_down_events": ports.LINK_DOWNS,
    "pcie_stalled_percent": ports.PCIE_STALLED_RATIO,
    "pcie_stalled_seconds": ports.PCIE_STALLED_SECONDS,
    "ib_rx_bytes": rdma.RECEIVED_BYTES,
    "ib_tx_bytes": rdma.TRANSMITTED_BYTES,
    "xmit_wait_ticks": infiniband.XMIT_WAIT,
}
"""What the dashboards and rules join across drivers: one meaning, one metric."""
OWN_MEANING = {
    "retrans_timeout_events": "SRD moves to another path of its own accord: not the timer of a reliable connection",
    "ecn_doorbell": "a second count beside rx_cnp_pkt on the same port",
}
"""Where the reference's canonical key is coarser than the catalogue, and why."""
SCALES = {"microseconds": 1e-6, "percent": 0.01, "octets_x4": 4}
RECEIVING = re.compile(r"(?:^|[^a-z])(?:rx|rcv|rcvd|recv)(?:[^a-z]|$)")
TRANSMITTING = re.compile(r"(?:^|[^a-z])(?:tx|xmit|sent)(?:[^a-z]|$)")


def rows() -> list[Any]:
    found = []
    for module, description in REFERENCE["drivers"].items():
        driver = next(driver for driver in DRIVERS if driver.name == NAMED.get(module, module))
        for section, place in PLACES.items():
            for row in description.get(section) or ():
                name = row.get("name") or row["pattern"]
                found.append(pytest.param(getattr(driver, place), row, id=f"{module}-{section}-{name}"))
    found.extend(
        pytest.param(PMA, row, id=f"pma-{row['name']}") for row in REFERENCE["sysfs_infiniband"]["pma_counters"]
    )
    return found


def concrete(row: dict[str, Any]) -> tuple[str, ...]:
    return (row["name"],) if "name" in row else names_of(row["pattern"])


def found(table: tuple[Entry, ...], row: dict[str, Any]) -> list[tuple[str, Entry]]:
    """Return the concrete names of the row with the entries that serve them; AssertionError for a name that none knows."""
    served = []
    for name in concrete(row):
        matched = match(table, name)
        assert matched is not None, f"{name}: no entry"
        if matched[0].metric is not None:
            served.append((name, matched[0]))
        else:
            assert len(matched[0].reason) > 10, name
    return served


def test_every_driver_of_the_reference_has_a_table() -> None:
    assert {NAMED.get(module, module) for module in REFERENCE["drivers"]} <= {driver.name for driver in DRIVERS}
    assert len(rows()) > 380


@pytest.mark.parametrize(("table", "row"), rows())
def test_type_width_and_unit_are_those_of_the_reference(table: tuple[Entry, ...], row: dict[str, Any]) -> None:
    for name, entry in found(table, row):
        metric = entry.metric
        assert metric is not None
        words = metric.name.split("_")
        assert (row["type"] == "gauge") == (metric.type == "gauge"), name
        assert {"ext64": "u64"}.get(entry.width, entry.width) == row["wrap"], name
        assert entry.scale == SCALES.get(row["unit"], 1), name
        if row["unit"] == "unverified":
            assert "seconds" not in words, name
        in_bytes = row["unit"] in ("bytes", "octets_x4") or (
            row["unit"] == "by_name" and re.search("bytes|octets|oct_num", name, re.IGNORECASE) is not None
        )
        assert in_bytes == ("bytes" in words), name


@pytest.mark.parametrize(("table", "row"), rows())
def test_what_is_received_is_not_served_as_transmitted(table: tuple[Entry, ...], row: dict[str, Any]) -> None:
    for name, entry in found(table, row):
        words = entry.metric.name.split("_") if entry.metric is not None else []
        if "received" in words:
            assert not TRANSMITTING.search(name), name
        if "transmitted" in words:
            assert not RECEIVING.search(name), name


@pytest.mark.parametrize(("table", "row"), rows())
def test_one_meaning_is_one_metric_on_every_driver(table: tuple[Entry, ...], row: dict[str, Any]) -> None:
    metric = CANONICAL.get(row.get("canonical", ""))
    if metric is None:
        return
    for name, entry in found(table, row):
        assert entry.metric is metric or name in OWN_MEANING, name


def test_only_the_physical_function_counts_for_the_port() -> None:
    for module in ("mlx5", "bnxt_en", "ice"):
        driver = next(driver for driver in DRIVERS if driver.name == NAMED.get(module, module))
        for row in REFERENCE["drivers"][module]["ethtool"]:
            for name, entry in found(driver.ethtool, row):
                if row.get("requires", "").startswith("PF"):
                    assert entry.physical, name
