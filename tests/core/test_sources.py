"""How single answers of the kernel become numbers."""

from __future__ import annotations

import pytest

from exporter.kernel import Dcb
from exporter.model import Inventory, Netdev, RdmaPort
from exporter.sources.ethernet import dcb_samples
from exporter.sources.pcie import aer_total, functions, transfers, width
from exporter.sources.ports import PHYSICAL_STATES, STATES, Rates, rate_bytes, state_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4: ACTIVE", 4),
        ("1: DOWN", 1),
        ("ACTIVE", 4),
        ("DOWN", 1),
        ("5: ACTIVE_DEFER", 5),
        ("", None),
        ("rubbish", None),
    ],
)
def test_logical_state(text: str, number: int | None) -> None:
    assert state_number(text, STATES) == number


@pytest.mark.parametrize(
    ("text", "number"), [("5: LinkUp", 5), ("7: Phy Test", 7), ("Disabled", 3), ("0: <unknown>", 0)]
)
def test_physical_state(text: str, number: int) -> None:
    assert state_number(text, PHYSICAL_STATES) == number


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("400 Gb/sec (4X NDR)", 50_000_000_000),
        ("2.5 Gb/sec (1X SDR)", 312_500_000),
        ("10 Gb/sec (4X)", 1_250_000_000),
        ("0 Gb/sec", 0),
        ("fast", None),
        ("", None),
    ],
)
def test_rate(text: str, rate: int | None) -> None:
    assert rate_bytes(text) == rate


@pytest.mark.parametrize(
    ("text", "speed"), [("32.0 GT/s PCIe", 32_000_000_000), ("2.5 GT/s PCIe", 2_500_000_000), ("Unknown", None)]
)
def test_pcie_speed(text: str, speed: int | None) -> None:
    assert transfers(text) == speed


@pytest.mark.parametrize(("text", "lanes"), [("16", 16), ("0", None), ("63", None), ("255", None), ("", None)])
def test_pcie_width(text: str, lanes: int | None) -> None:
    assert width(text) == lanes


def test_aer_total_is_the_line_of_the_sum() -> None:
    assert aer_total("RxErr 2\nBadTLP 3\nTOTAL_ERR_COR 5\n", "TOTAL_ERR_COR") == 5
    assert aer_total("RxErr 2\n", "TOTAL_ERR_COR") is None


def test_each_function_is_read_once_with_the_labels_of_its_interface() -> None:
    inventory = Inventory(
        ports=(
            RdmaPort("mlx5_0", 1, pci_address="0000:23:00.0", function="pf"),
            RdmaPort("rdmap0s31", 1, pci_address="0000:00:1f.0", function="pf"),
            RdmaPort("mlx5_2", 1, pci_address="0000:23:00.2", function="vf"),
        ),
        netdevs=(Netdev("eth0", pci_address="0000:23:00.0", function="pf", device="mlx5_0", port=1),),
    )
    assert {function.address: dict(function.labels) for function in functions(inventory)} == {
        "0000:23:00.0": {"device": "mlx5_0", "port": "1", "netdev": "eth0"},
        "0000:00:1f.0": {"device": "rdmap0s31", "port": "1"},
    }


def shown(dcb: Dcb) -> dict[str, float]:
    return {
        f"{series.metric.name} {' '.join(value for key, value in series.labels if key != 'netdev')}".strip(): value
        for series, value in dcb_samples(Netdev("eth0"), dcb)
    }


def test_pfc_on_one_priority_and_dscp_trust() -> None:
    answer = Dcb(pfc_enabled=0b1000, pfc_capacity=8, applications=((5, 3, 26), (1, 0, 0x8906)), dcbx=0b0101)
    found = shown(answer)
    assert {name: value for name, value in found.items() if "pfc" in name} == {
        f"fabric_pfc_enabled {priority}": int(priority == 3) for priority in range(8)
    }
    assert found["fabric_dscp_trusted"] == 1
    assert found["fabric_dscp_priority_id 26"] == 3
    assert found["fabric_dcbx_firmware_managed"] == 0


def test_firmware_runs_dcbx_where_the_host_flag_is_missing() -> None:
    assert shown(Dcb(pfc_enabled=0, pfc_capacity=8, applications=(), dcbx=0b0100))["fabric_dcbx_firmware_managed"] == 1


def test_what_the_driver_does_not_say_has_no_series() -> None:
    assert shown(Dcb(pfc_enabled=None, pfc_capacity=None, applications=(), dcbx=None)) == {}


def test_the_buffer_of_a_priority_is_the_one_it_maps_to() -> None:
    answer = Dcb(None, None, (), None, buffer_sizes=(1000, 2000), priority_buffers=(0, 0, 0, 1, 0, 0, 0, 7))
    found = shown(answer)
    assert found["fabric_priority_buffer_bytes 3"] == 2000
    assert found["fabric_priority_buffer_bytes 0"] == 1000
    assert "fabric_priority_buffer_bytes 7" not in found


def test_a_rate_is_read_again_when_the_link_came_up_again_or_after_a_while() -> None:
    now = 0.0
    asked: list[int] = []

    def read() -> int:
        asked.append(1)
        return len(asked)

    rates = Rates(lambda: now)
    assert [rates.get("eth0", 1, read), rates.get("eth0", 1, read)] == [1, 1]
    assert rates.get("eth0", 2, read) == 2, "the carrier came up once more"
    now = 29.9
    assert rates.get("eth0", 2, read) == 2
    now = 30.0
    assert rates.get("eth0", 2, read) == 3
    rates.forget("eth0")
    assert rates.get("eth0", 2, read) == 4
    rates.keep({"eth1"})
    assert rates.get("eth0", 2, read) == 5
