"""One series, one source, for the life of the device."""

from __future__ import annotations

import pytest

from exporter.arbiter import Arbiter
from exporter.catalogue.ethernet import CRC_ERRORS, RECEIVED_DISCARDS
from exporter.catalogue.ports import LINK_DOWNS
from exporter.catalogue.rdma import TRANSMITTED_PACKETS
from exporter.model import Inventory, Labels, Netdev, RdmaPort, Reading, Series, Shape

ETH0: Labels = (("netdev", "eth0"),)


def reading(**values: int) -> Reading:
    metrics = {"downs": LINK_DOWNS, "crc": CRC_ERRORS, "drops": RECEIVED_DISCARDS}
    return Reading(Shape(Series(metrics[name], ETH0) for name in values), tuple(values.values()))


def served(readings: list[Reading]) -> dict[str, float]:
    return {sample.metric.name: sample.value for one in readings for sample in one.samples()}


def test_the_preferred_source_serves_a_contested_series() -> None:
    arbiter = Arbiter()
    from_driver, from_kernel = reading(downs=3, drops=1), reading(downs=5)
    settled = arbiter.settle([("netdevs", from_kernel), ("ethtool", from_driver)], complete=True)
    assert served(settled) == {"fabric_port_link_downs_total": 3, "fabric_received_discards_total": 1}
    assert arbiter.dropped == {}


def test_the_owner_stays_when_a_better_source_appears_later() -> None:
    arbiter = Arbiter()
    assert served(arbiter.settle([("netdevs", reading(downs=5))], complete=True)) == {"fabric_port_link_downs_total": 5}
    later = [("netdevs", reading(downs=6)), ("ethtool", reading(downs=3))]
    assert served(arbiter.settle(later, complete=True)) == {"fabric_port_link_downs_total": 6}


def test_no_series_when_the_owner_is_silent() -> None:
    arbiter = Arbiter()
    arbiter.settle([("netdevs", reading(downs=5)), ("ethtool", reading(downs=3))], complete=True)
    assert served(arbiter.settle([("netdevs", reading(downs=5))], complete=True)) == {}


def test_nothing_is_decided_for_good_before_all_sources_were_read() -> None:
    arbiter = Arbiter()
    arbiter.settle([("netdevs", reading(downs=5))], complete=False)
    later = [("netdevs", reading(downs=6)), ("ethtool", reading(downs=3))]
    assert served(arbiter.settle(later, complete=True)) == {"fabric_port_link_downs_total": 3}


def test_a_series_given_twice_is_served_once_and_counted() -> None:
    arbiter = Arbiter()
    twice = [("ethtool", reading(drops=1)), ("ethtool", reading(drops=2, downs=4))]
    assert served(arbiter.settle(twice, complete=True)) == {
        "fabric_received_discards_total": 1,
        "fabric_port_link_downs_total": 4,
    }
    arbiter.settle(twice, complete=True)
    assert arbiter.dropped == {"ethtool": 1}


def test_a_device_that_left_is_forgotten() -> None:
    arbiter = Arbiter()
    arbiter.settle([("netdevs", reading(downs=5))], complete=True)
    arbiter.forget(Inventory(netdevs=(Netdev("eth1"),)))
    back = [("netdevs", reading(downs=0)), ("ethtool", reading(downs=1))]
    assert served(arbiter.settle(back, complete=True)) == {"fabric_port_link_downs_total": 1}


@pytest.mark.parametrize(
    ("now", "downs"),
    [
        (Netdev("eth0", identity="7 52:54:00:bb:00:01", role="frontend"), 6),
        (Netdev("eth0", identity="8 52:54:00:bb:00:02"), 1),
    ],
    ids=["the same with another role", "another"],
)
def test_another_interface_of_the_same_name_is_decided_anew(now: Netdev, downs: int) -> None:
    arbiter = Arbiter()
    arbiter.forget(Inventory(netdevs=(Netdev("eth0", identity="7 52:54:00:bb:00:01"),)))
    arbiter.settle([("netdevs", reading(downs=5))], complete=True)
    arbiter.forget(Inventory(netdevs=(now,)))
    later = [("netdevs", reading(downs=6)), ("ethtool", reading(downs=1))]
    assert served(arbiter.settle(later, complete=True)) == {"fabric_port_link_downs_total": downs}


def test_a_device_whose_driver_was_loaded_again_without_its_counters_is_served_by_what_is_left() -> None:
    """Soft RoCE: a laboratory build with a counters folder, then the kernel's own without, both called rxe0."""
    arbiter = Arbiter()
    series = Series(TRANSMITTED_PACKETS, (("device", "rxe0"), ("port", "1")))
    arbiter.forget(Inventory(ports=(RdmaPort("rxe0", 1, index=4, identity="v0 5054:00ff:febb:0001"),)))
    arbiter.settle([("rdma", Reading(Shape([series]), (7,))), ("pma", Reading(Shape([series]), (9,)))], complete=True)
    arbiter.forget(Inventory(ports=(RdmaPort("rxe0", 1, index=5, identity="v0 5054:00ff:febb:0001"),)))
    settled = arbiter.settle([("rdma", Reading(Shape([series]), (32195,)))], complete=True)
    assert [sample.value for one in settled for sample in one.samples()] == [32195]
