"""NCCL_IB_HCA and NCCL_SOCKET_IFNAME against what there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.model import Inventory, Netdev, RdmaPort
from exporter.nccl.hca import (
    Filter,
    Name,
    parse,
    select,
    select_devices,
    select_interfaces,
)

TWELVE = Inventory(ports=tuple(RdmaPort(f"mlx5_{n}", 1) for n in range(12)))
DUAL = Inventory(ports=(RdmaPort("mlx5_0", 1), RdmaPort("mlx5_0", 2), RdmaPort("mlx5_1", 1)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("mlx5_0", Filter(False, False, (Name("mlx5_0"),))),
        ("=mlx5_0:1,mlx5_4:2", Filter(False, True, (Name("mlx5_0", 1), Name("mlx5_4", 2)))),
        ("^=mlx5_1,mlx5_4", Filter(True, True, (Name("mlx5_1"), Name("mlx5_4")))),
        ("^docker", Filter(True, False, (Name("docker"),))),
        ("mlx5_0:1:3:0", Filter(False, False, (Name("mlx5_0", 1, 3, 0),))),
        ("mlx5_0:1::2", Filter(False, False, (Name("mlx5_0", 1, None, 2),))),
        ("mlx5_0:", Filter(False, False, (Name("mlx5_0"),))),
        ("mlx5_0:-1", Filter(False, False, (Name("mlx5_0"),))),
        ("", Filter(False, False, ())),
        (",,mlx5_2,", Filter(False, False, (Name("mlx5_2"),))),
        # The order counts: "=^x" asks for a device named "^x".
        ("=^mlx5_1", Filter(False, True, (Name("^mlx5_1"),))),
        # Blanks are part of the name: the second device is not found.
        ("mlx5_0, mlx5_1", Filter(False, False, (Name("mlx5_0"), Name(" mlx5_1")))),
    ],
)
def test_grammar(value: str, expected: Filter) -> None:
    assert parse(value) == expected


def names(value: str, inventory: Inventory) -> list[str]:
    return [f"{name}:{port}" for name, port in select_devices(value, inventory).selected]


def test_a_name_is_a_prefix() -> None:
    selection = select_devices("mlx5_1", TWELVE)
    assert [name for name, _ in selection.selected] == ["mlx5_1", "mlx5_10", "mlx5_11"]
    assert selection.wide == (("mlx5_1", ("mlx5_10", "mlx5_11")),)
    assert select_devices("=mlx5_1", TWELVE).selected == (("mlx5_1", 1),)
    assert select_devices("=mlx5_1", TWELVE).wide == ()


def test_a_prefix_that_is_no_device_is_meant_as_one() -> None:
    assert len(select_devices("mlx5", TWELVE).selected) == 12
    assert select_devices("mlx5", TWELVE).wide == ()


def test_excluded_by_prefix() -> None:
    selection = select_devices("^mlx5_1", TWELVE)
    assert [name for name, _ in selection.selected] == [f"mlx5_{n}" for n in (0, *range(2, 10))]
    assert selection.wide == (("mlx5_1", ("mlx5_10", "mlx5_11")),)


def test_ports() -> None:
    assert names("mlx5_0:2", DUAL) == ["mlx5_0:2"]
    assert names("^mlx5_0:2", DUAL) == ["mlx5_0:1", "mlx5_1:1"]
    assert names("=mlx5_0", DUAL) == ["mlx5_0:1", "mlx5_0:2"]
    assert select_devices("mlx5_1:2", DUAL) == ((), ("mlx5_1",), ())


def test_rail_and_plane_do_not_select() -> None:
    assert names("mlx5_0:1:7:1,mlx5_1:1:8", DUAL) == ["mlx5_0:1", "mlx5_1:1"]


def test_nothing_matches() -> None:
    selection = select_devices("bnxt_re0,eth0", TWELVE)
    assert selection.selected == ()
    assert selection.idle == ("bnxt_re0", "eth0")


def test_no_list_selects_all() -> None:
    assert len(select_devices("", TWELVE).selected) == 12


def test_interfaces() -> None:
    host = Inventory(netdevs=tuple(Netdev(name) for name in ("bond0", "eth0", "eth0:1", "eth1", "docker0", "lo")))
    assert [name for name, _ in select_interfaces("eth", host).selected] == ["eth0", "eth0:1", "eth1"]
    assert select_interfaces("=eth0", host).selected == (("eth0", None),)
    assert select_interfaces("nonexistent0", host) == ((), ("nonexistent0",), ())
    assert [name for name, _ in select_interfaces("^docker,lo", host).selected] == ["bond0", "eth0", "eth0:1", "eth1"]
    assert select_interfaces("=eth0:1", host).selected == (("eth0:1", None),)


@given(st.text(max_size=300), st.lists(st.tuples(st.text(max_size=8), st.integers(1, 4)), max_size=6))
def test_any_list_is_a_list(value: str, there: list[tuple[str, int]]) -> None:
    selection = select(parse(value), there)
    assert set(selection.selected) <= set(there)
    inverse = select(parse("^" + value) if not value.startswith("^") else parse(value[1:]), there)
    if parse(value).names and not value.startswith("^^"):
        assert len(selection.selected) + len(inverse.selected) == len(there)
