"""What a driver's table makes of raw counters: units, sums, widths, what is left out, and what going back means."""

from __future__ import annotations

import pytest

from exporter.catalogue import ethernet, rdma
from exporter.catalogue.ports import SATURATED
from exporter.drivers.entry import MICROSECONDS, WORDS, counter, family, left_out
from exporter.drivers.plan import Plan, Resets, match, scaled
from exporter.model import Labels, Reading

PORT: Labels = (("device", "mlx5_0"), ("port", "1"), ("netdev", "eth0"))
ALONE: Labels = (("netdev", "eth0"),)


def shown(reading: Reading) -> dict[str, float]:
    """Return the samples by name and labels, as a user sees them."""
    return {
        f"{sample.metric.name}{{{','.join(f'{key}={value}' for key, value in sample.labels)}}}": sample.value
        for sample in reading.samples()
    }


TABLE = (
    left_out(r"rx\d+_.*", "per queue", pattern=True),
    counter("rx_crc_errors_phy", ethernet.CRC_ERRORS, physical=True),
    family(r"rx_prio(?P<priority>[0-7])_pause", ethernet.PFC_RECEIVED_FRAMES),
    family(r"rx_prio(?P<priority>[0-7])_pause_duration", ethernet.PFC_RECEIVED_PAUSE, scale=MICROSECONDS),
    family(r"rx_prio(?P<priority>[0-7])_bytes", ethernet.PRIORITY_RECEIVED_BYTES),
    counter("rx_vport_rdma_unicast_bytes", rdma.RECEIVED_BYTES, sums=True),
    counter("rx_vport_rdma_multicast_bytes", rdma.RECEIVED_BYTES, sums=True),
    counter("port_xmit_data", rdma.TRANSMITTED_BYTES, scale=WORDS),
    counter("rp_cnp_handled", rdma.CNP_HANDLED, lag_sum=True),
    counter("out_of_sequence", rdma.OUT_OF_SEQUENCE, width="mod32"),
    counter("unicast", rdma.OUT_OF_BUFFER, invalid=2**64 - 1),
)


def test_the_first_entry_that_matches_a_name_wins() -> None:
    table = (family(r"rx_(?P<priority>\d)_x", ethernet.PFC_RECEIVED_FRAMES), counter("rx_3_x", ethernet.CRC_ERRORS))
    found = match(table, "rx_3_x")
    assert found is not None
    assert found[0].metric is ethernet.PFC_RECEIVED_FRAMES
    assert found[1] == {"priority": "3"}
    assert match(tuple(reversed(table)), "rx_3_x") == (table[1], {})
    assert match(table, "tx_3_x") is None


def test_units_and_labels_are_those_of_the_metric() -> None:
    plan = Plan(TABLE, ("rx_prio3_pause", "rx_prio3_pause_duration", "port_xmit_data"), PORT)
    assert shown(plan.reading((7, 1_500_001, 2**62))) == {
        "fabric_pfc_received_frames_total{device=mlx5_0,port=1,netdev=eth0,priority=3}": 7,
        "fabric_pfc_received_pause_seconds_total{device=mlx5_0,port=1,netdev=eth0,priority=3}": 1.500001,
        "fabric_rdma_transmitted_bytes_total{device=mlx5_0,port=1}": 2**64,
    }


def test_a_microsecond_is_the_float_next_to_it() -> None:
    assert scaled(3, MICROSECONDS) == 3e-06
    assert scaled(1234567, MICROSECONDS) == 1.234567


def test_unmatched_names_are_kept_and_left_out_names_are_not_unmatched() -> None:
    plan = Plan(TABLE, ("rx0_packets", "brand_new", "rx_crc_errors_phy"), ALONE)
    assert plan.unmatched == ("brand_new",)
    assert shown(plan.reading((1, 2, 3))) == {"fabric_phy_crc_errors_total{netdev=eth0}": 3}


def test_a_virtual_function_drops_what_it_cannot_see() -> None:
    plan = Plan(TABLE, ("rx_crc_errors_phy", "out_of_sequence"), PORT, virtual=True)
    assert list(shown(plan.reading((3, 4)))) == ["fabric_rdma_out_of_sequence_packets_total{device=mlx5_0,port=1}"]


def test_parts_add_up_to_one_series() -> None:
    plan = Plan(TABLE, ("rx_vport_rdma_unicast_bytes", "rx_vport_rdma_multicast_bytes"), PORT)
    assert shown(plan.reading((100, 11))) == {"fabric_rdma_received_bytes_total{device=mlx5_0,port=1}": 111}


def test_an_rdma_metric_of_an_interface_without_rdma_has_no_series() -> None:
    assert len(Plan(TABLE, ("rx_vport_rdma_unicast_bytes",), ALONE).shape) == 0


def test_a_value_that_means_unknown_gives_no_series_until_it_is_known() -> None:
    plan = Plan(TABLE, ("unicast", "out_of_sequence"), PORT)
    assert list(shown(plan.reading((2**64 - 1, 5)))) == [
        "fabric_rdma_out_of_sequence_packets_total{device=mlx5_0,port=1}"
    ]
    assert shown(plan.reading((9, 5)))["fabric_rdma_out_of_buffer_total{device=mlx5_0,port=1}"] == 9


def test_priorities_are_served_with_pfc_on_or_after_traffic() -> None:
    names = tuple(f"rx_prio{priority}_bytes" for priority in range(8))
    plan = Plan(TABLE, names, ALONE)
    assert shown(plan.reading((0,) * 8)) == {}
    assert list(shown(plan.reading((0,) * 8, pfc_enabled=1 << 3))) == [
        "fabric_priority_received_bytes_total{netdev=eth0,priority=3}"
    ]
    assert list(shown(plan.reading((0, 5, 0, 0, 0, 0, 0, 0)))) == [
        "fabric_priority_received_bytes_total{netdev=eth0,priority=1}"
    ]
    assert list(shown(plan.reading((0,) * 8))) == ["fabric_priority_received_bytes_total{netdev=eth0,priority=1}"]


def test_pfc_strings_that_exist_for_some_priorities_are_those_with_pfc_on() -> None:
    plan = Plan(TABLE, ("rx_prio3_pause", "rx_prio3_bytes", "rx_prio4_bytes"), ALONE)
    assert shown(plan.reading((0, 0, 0))) == {
        "fabric_pfc_received_frames_total{netdev=eth0,priority=3}": 0,
        "fabric_priority_received_bytes_total{netdev=eth0,priority=3}": 0,
    }


def test_the_same_series_have_the_same_shape_at_every_scrape() -> None:
    plan = Plan(TABLE, ("rx_prio3_bytes", "out_of_sequence"), PORT)
    asleep = plan.reading((0, 1)).shape
    assert plan.reading((0, 2)).shape is asleep
    assert plan.reading((1, 2)).shape is plan.shape


@pytest.mark.parametrize(("width", "top"), [("sat4", 15), ("sat8", 255), ("sat16", 65535), ("sat32", 2**32 - 1)])
def test_a_counter_at_its_top_is_flagged(width: str, top: int) -> None:
    entry = counter("symbol_error", rdma.ICRC_ERRORS, width=width)  # type: ignore[arg-type]  # one of the widths
    plan = Plan((entry,), ("symbol_error",), PORT)
    flag = f"{SATURATED.name}{{device=mlx5_0,port=1,field=symbol_error}}"
    assert shown(plan.reading((top - 1,)))[flag] == 0
    assert shown(plan.reading((top,)))[flag] == 1


def counts(resets: Resets) -> dict[str, int]:
    return resets.counts[PORT[:2]]


def test_resets_and_wraps_are_told_apart() -> None:
    resets = Resets({})
    plan = Plan(TABLE, ("out_of_sequence", "port_xmit_data"), PORT, resets=resets)
    assert counts(resets) == {"reset": 0, "wrap": 0}
    plan.reading((2**32 - 10, 5))
    plan.reading((3, 6))
    assert counts(resets) == {"reset": 0, "wrap": 1}
    plan.reading((0, 0))
    assert counts(resets) == {"reset": 1, "wrap": 1}


def test_a_reset_is_seen_across_a_change_of_names() -> None:
    resets = Resets({})
    first = Plan(TABLE, ("out_of_sequence",), PORT, resets=resets)
    first.reading((10,))
    second = Plan(TABLE, ("port_xmit_data", "out_of_sequence"), PORT, resets=resets, earlier=first)
    second.reading((1, 9))
    assert counts(resets) == {"reset": 1, "wrap": 0}


def test_a_bond_that_loses_a_member_stays_monotonic() -> None:
    resets = Resets({})
    plan = Plan(TABLE, ("rp_cnp_handled", "out_of_sequence"), PORT, lag=True, resets=resets)
    handled = "fabric_cnp_handled_packets_total{device=mlx5_0,port=1}"
    assert [shown(plan.reading(values))[handled] for values in ((100, 1), (60, 1), (61, 1))] == [100, 100, 101]
    assert counts(resets) == {"reset": 0, "wrap": 0, "membership": 1}
    assert shown(plan.reading((5, 0)))[handled] == 5, "all counters back: the device started again"
    assert counts(resets)["reset"] == 1


def test_without_a_bond_a_smaller_sum_is_a_reset() -> None:
    resets = Resets({})
    plan = Plan(TABLE, ("rp_cnp_handled",), PORT, resets=resets)
    plan.reading((100,))
    assert shown(plan.reading((60,))) == {"fabric_cnp_handled_packets_total{device=mlx5_0,port=1}": 60}
    assert counts(resets) == {"reset": 1, "wrap": 0}


def test_a_traffic_counter_is_flagged_only_while_it_stands_at_32_bits() -> None:
    entry = counter("port_rcv_data", rdma.RECEIVED_BYTES, scale=WORDS, width="ext64")
    plan = Plan((entry,), ("port_rcv_data",), PORT)
    bytes_received = "fabric_rdma_received_bytes_total{device=mlx5_0,port=1}"
    assert shown(plan.reading((2**32 - 1,))) == {
        bytes_received: 4 * (2**32 - 1),
        "fabric_port_saturated{device=mlx5_0,port=1,field=port_rcv_data}": 1,
    }
    assert shown(plan.reading((2**32,))) == {bytes_received: 2**34}


def test_an_alternative_spelling_gives_way_whatever_the_order_of_the_names() -> None:
    table = (
        counter("to_retransmits", rdma.ACK_TIMEOUTS),
        counter("local_ack_timeout_err", rdma.ACK_TIMEOUTS, alternative=True),
    )
    for names in (("to_retransmits", "local_ack_timeout_err"), ("local_ack_timeout_err", "to_retransmits")):
        values = tuple(5 if name == "to_retransmits" else 7 for name in names)
        assert shown(Plan(table, names, PORT).reading(values)) == {
            "fabric_rdma_ack_timeouts_total{device=mlx5_0,port=1}": 5
        }


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    table = (
        counter("unicast", rdma.RECEIVED_BYTES, sums=True, invalid=2**64 - 1),
        counter("multicast", rdma.RECEIVED_BYTES, sums=True, invalid=2**64 - 1),
    )
    plan = Plan(table, ("unicast", "multicast"), PORT)
    assert shown(plan.reading((10, 2**64 - 1))) == {}
    assert shown(plan.reading((10, 1))) == {"fabric_rdma_received_bytes_total{device=mlx5_0,port=1}": 11}


def test_among_alternatives_the_table_decides() -> None:
    table = (
        counter("one", rdma.ACK_TIMEOUTS, alternative=True),
        counter("other", rdma.ACK_TIMEOUTS, alternative=True),
    )
    plan = Plan(table, ("other", "one"), PORT)
    assert shown(plan.reading((5, 7))) == {"fabric_rdma_ack_timeouts_total{device=mlx5_0,port=1}": 7}
