"""What holds for every table of every driver."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pattern_names import names_of

from exporter.catalogue import METRICS, ethernet, itself, ports
from exporter.drivers import DRIVERS, GENERIC, PMA, driver_for
from exporter.drivers.entry import Driver, Entry
from exporter.drivers.plan import match
from exporter.model import Metric

MACHINES = Path(__file__).parent.parent / "machines"
IDENTITY = {"device", "port", "netdev"}
EVERY = (*DRIVERS, GENERIC)
TABLES = [
    pytest.param(table, id=f"{driver.name}-{place}")
    for driver in EVERY
    for place, table in (
        ("ethtool", driver.ethtool),
        ("port", driver.port),
        ("device", driver.device),
        ("pma", driver.pma or PMA),
    )
    if table
]


def names(entry: Entry) -> tuple[str, ...]:
    return names_of(entry.pattern.pattern) if entry.pattern is not None else (entry.name,)


def groups(entry: Entry) -> set[str]:
    return set(entry.pattern.groupindex) if entry.pattern is not None else set()


@pytest.mark.parametrize("table", TABLES)
def test_an_entry_is_served_or_left_out_with_a_reason(table: tuple[Entry, ...]) -> None:
    for entry in table:
        assert bool(entry.name) != (entry.pattern is not None), entry
        assert (entry.metric is None) == bool(entry.reason), entry
        assert entry.metric is None or entry.metric in METRICS, entry


@pytest.mark.parametrize("table", TABLES)
def test_an_entry_fills_exactly_the_labels_of_its_metric(table: tuple[Entry, ...]) -> None:
    for entry in table:
        if entry.metric is not None:
            fixed = {label for label, _ in entry.labels}
            assert not fixed & groups(entry), entry
            assert fixed | groups(entry) == set(entry.metric.labels) - IDENTITY, entry


@pytest.mark.parametrize("table", TABLES)
def test_gauges_are_gauges_and_counters_are_not(table: tuple[Entry, ...]) -> None:
    for entry in table:
        if entry.metric is not None:
            assert (entry.width == "gauge") == (entry.metric.type == "gauge"), entry


@pytest.mark.parametrize("table", TABLES)
def test_scaled_values_are_of_the_unit_that_the_name_says(table: tuple[Entry, ...]) -> None:
    unit = {1e-6: "seconds", 0.01: "ratio", 4: "bytes", 8: "bytes"}
    for entry in table:
        if entry.metric is not None and entry.scale != 1:
            assert unit[entry.scale] in entry.metric.name.split("_"), entry


@pytest.mark.parametrize("table", TABLES)
def test_no_exact_name_is_hidden_by_an_earlier_entry(table: tuple[Entry, ...]) -> None:
    for entry in table:
        if entry.name:
            found = match(table, entry.name)
            assert found is not None
            assert found[0] is entry, (entry, found[0])


@pytest.mark.parametrize("table", TABLES)
def test_no_pattern_is_hidden_altogether(table: tuple[Entry, ...]) -> None:
    for entry in table:
        reached = [found[0] for name in names(entry) if (found := match(table, name)) is not None]
        assert entry in reached, entry


@pytest.mark.parametrize("table", TABLES)
def test_two_raw_counters_give_one_series_only_as_a_sum_or_as_alternatives(table: tuple[Entry, ...]) -> None:
    feeding: dict[tuple[Metric, frozenset[tuple[str, str]]], dict[Entry, str]] = {}
    for entry in table:
        for name in names(entry):
            found = match(table, name)
            if found is not None and found[0] is entry and entry.metric is not None:
                labels = frozenset((*entry.labels, *found[1].items()))
                feeding.setdefault((entry.metric, labels), {}).setdefault(entry, name)
    for series, feeds in feeding.items():
        if len(feeds) > 1 and not all(entry.sums for entry in feeds):
            first, *rest = feeds
            assert not first.alternative, (series, feeds[first])
            assert [feeds[entry] for entry in rest if not entry.alternative] == [], (series, feeds[first])


@pytest.mark.parametrize("table", TABLES)
def test_an_alternative_has_something_to_stand_in_for(table: tuple[Entry, ...]) -> None:
    for place, entry in enumerate(table):
        if entry.alternative:
            assert any(earlier.metric is entry.metric for earlier in table[:place]), entry


NO_MACHINE = {ports.LAST_DOWN, ethernet.RAW}
"""What a captured machine cannot give: a link seen to go down, and what only a flag asks for."""


def test_every_metric_has_something_that_feeds_it() -> None:
    """A driver's table does, or a source that gives it on one of the machines."""
    tables = (PMA, *(table for driver in EVERY for table in (driver.ethtool, driver.port, driver.device, driver.pma)))
    by_drivers = {entry.metric for table in tables for entry in table}
    own = {value for value in vars(itself).values() if isinstance(value, Metric)}
    pages = "".join(page.read_text() for page in MACHINES.glob("*/expected.prom"))
    on_machines = set(re.findall(r"^# TYPE (\S+) ", pages, re.MULTILINE))
    fed = {metric for metric in METRICS if metric in by_drivers | own | NO_MACHINE or metric.name in on_machines}
    assert [metric.name for metric in METRICS if metric not in fed] == []


def test_names_are_unique() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert len({driver.name for driver in EVERY}) == len(EVERY)
    kernel_names = [name for driver in DRIVERS for name in driver.kernel_names]
    assert len(set(kernel_names)) == len(kernel_names)


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_the_file_to_read_first_is_a_counter_that_the_driver_knows(driver: Driver) -> None:
    assert driver_for(driver.kernel_names[0]) is driver
    if driver.read_first:
        assert match(driver.port, driver.read_first) is not None
