"""A folder of pasted output is a host: what is there answers, what is not there is absent as on a live kernel."""

from __future__ import annotations

import errno
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.errors import CaptureError
from exporter.kernel import Kernel, Statistics, not_there
from exporter.kernel.captured import load_capture, open_capture


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_one_ethtool_paste_is_a_capture(tmp_path: Path) -> None:
    kernel = open_capture(write(tmp_path, {"ethtool/eth0.txt": "NIC statistics:\n     rx_packets: 5\n"}))
    assert kernel.live is False
    (link,) = kernel.links.dump()
    assert (link.name, link.carrier, link.operational_state) == ("eth0", None, "")
    first, second = kernel.ethtool.statistics("eth0"), kernel.ethtool.statistics("eth0")
    assert first == Statistics(("rx_packets",), (5,))
    assert first.names is second.names


def test_one_grep_paste_is_a_capture(tmp_path: Path) -> None:
    write(tmp_path, {"paste.txt": "/sys/class/infiniband/mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)\n"})
    kernel = open_capture(tmp_path / "paste.txt")
    assert kernel.sysfs.read("class/infiniband/mlx5_0/ports/1/rate") == "400 Gb/sec (4X NDR)"
    assert kernel.links.dump() == ()


def test_interfaces_of_class_net(tmp_path: Path) -> None:
    """Without ip's output, sysfs tells: a bond with a member, a vlan, the loopback; bonding_masters is no interface."""
    lines = """\
class/net/bond0/bonding/slaves: eth0
class/net/bond0/ifindex: 3
class/net/bonding_masters: bond0
class/net/eth0/address: 0c:42:a1:00:00:01
class/net/eth0/carrier: 1
class/net/eth0/carrier_down_count: 7
class/net/eth0/flags: 0x1003
class/net/eth0/ifindex: 2
class/net/eth0/iflink: 2
class/net/eth0/master -> ../bond0
class/net/eth0/mtu: 9000
class/net/eth0/operstate: up
class/net/eth0.5/carrier ! EINVAL
class/net/eth0.5/ifindex: 4
class/net/eth0.5/iflink: 2
class/net/eth0.5/uevent: DEVTYPE=vlan\\nINTERFACE=eth0.5
class/net/lo/type: 772
"""
    links = {link.name: link for link in open_capture(write(tmp_path, {"sys.txt": lines})).links.dump()}
    assert sorted(links) == ["bond0", "eth0", "eth0.5", "lo"]
    eth0 = links["eth0"]
    assert (eth0.ifindex, eth0.master, eth0.mac, eth0.mtu) == (2, 3, "0c:42:a1:00:00:01", 9000)
    assert (eth0.up, eth0.carrier, eth0.operational_state, eth0.carrier_down_count) == (True, True, "up", 7)
    assert (links["bond0"].kind, links["eth0.5"].kind, links["eth0.5"].parent) == ("bond", "vlan", 2)
    assert (links["eth0.5"].up, links["eth0.5"].carrier) == (None, None)
    assert [name for name, link in links.items() if link.loopback] == ["lo"]


def test_what_a_capture_lacks_is_not_there(tmp_path: Path) -> None:
    kernel = open_capture(write(tmp_path, {"sys.txt": "class/net/eth0/mtu: 1500\n"}))
    calls = (
        lambda: kernel.sysfs.read("class/net/eth0/speed"),
        lambda: kernel.sysfs.read_proc("net/route"),
        lambda: kernel.ethtool.driver_info("eth0"),
        lambda: kernel.ethtool.statistics("eth0"),
        lambda: kernel.ethtool_netlink.link_state("eth0"),
        lambda: kernel.ethtool_netlink.pause("eth0"),
        lambda: kernel.ethtool_netlink.fec("eth0"),
        lambda: kernel.ethtool_netlink.standard("eth0"),
        kernel.rdma.devices,
        kernel.rdma.links,
        kernel.rdma.namespaces,
        lambda: kernel.rdma.statistics(0, 1),
        lambda: kernel.dcb.get("eth0"),
        kernel.devlink.health_reporters,
    )
    for call in calls:
        with pytest.raises(OSError, match=r".") as caught:
            call()
        assert not_there(caught.value)
    assert kernel.links.default_route_interfaces() == ()


async def test_nothing_happens_in_a_capture(tmp_path: Path) -> None:
    kernel = open_capture(write(tmp_path, {"sys.txt": "class/net/eth0/mtu: 1500\n"}))
    assert [event async for event in kernel.links.monitor()] == []


def test_an_error_is_captured_as_such(tmp_path: Path) -> None:
    files = {"ethtool/eth0.txt": "ERROR: 5\n", "rdma-dev.json": "ERROR: 5\n"}
    kernel: Kernel = open_capture(write(tmp_path, files))
    for call in (lambda: kernel.ethtool.statistics("eth0"), kernel.rdma.devices):
        with pytest.raises(OSError, match="Input/output error") as caught:
            call()
        assert caught.value.errno == errno.EIO
        assert not not_there(caught.value)


def test_garbage_costs_its_own_file(tmp_path: Path) -> None:
    files = {
        "ethtool/eth0.txt": "Segmentation fault\n",
        "ethtool/eth1.txt": "NIC statistics:\n     rx_packets: 5\n",
        "rdma-link.json": "[{",
        "sys.txt": "class/net/eth1/mtu: 1500\nnonsense\n",
        "proc.txt": "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    }
    kernel, problems = load_capture(write(tmp_path, files))
    assert [problem.partition(": ")[0] for problem in problems] == [
        "sys.txt:2",
        "proc.txt:1",
        "ethtool/eth0.txt",
        "rdma-link.json",
    ]
    assert kernel.ethtool.statistics("eth1").values == (5,)
    assert kernel.sysfs.read("class/net/eth1/mtu") == "1500"


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("", {}, "no capture: expected sys.txt, ethtool/NETDEV.txt or another file of docs/capture.md"),
        ("", {"sys.txt": "nonsense\n"}, "no capture: sys.txt:1: expected 'path: value'"),
        ("paste.txt", {"paste.txt": "hello\n"}, "paste.txt: no capture: paste.txt:1: expected 'path: value'"),
        ("nothing", {}, "No such file or directory: expected a capture folder or a file of sysfs lines"),
    ],
)
def test_what_is_no_capture_is_told_in_one_line(tmp_path: Path, name: str, files: dict[str, str], message: str) -> None:
    write(tmp_path, files)
    with pytest.raises(CaptureError, match=message) as caught:
        open_capture(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_counters_of_one_rdma_port_that_cannot_be_read(tmp_path: Path) -> None:
    text = '[{"ifname":"mlx5_0","port":1,"errno":5},{"ifname":"mlx5_0","port":2,"out_of_buffer":3}]'
    kernel = open_capture(write(tmp_path, {"rdma-statistic.json": text}))
    assert kernel.rdma.devices()[0].ports == 2
    assert kernel.rdma.statistics(0, 2) == Statistics(("out_of_buffer",), (3,))
    with pytest.raises(OSError, match="Input/output error"):
        kernel.rdma.statistics(0, 1)


@given(
    st.dictionaries(
        st.sampled_from(["sys.txt", "proc.txt", "ethtool/eth0.txt", "rdma-link.txt", "ip-link.json"]), st.binary()
    )
)
def test_whatever_a_capture_holds_it_opens_or_is_refused(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(CaptureError):
        for name, content in files.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        kernel, problems = load_capture(folder)
        assert all("\n" not in problem for problem in problems)
        assert isinstance(kernel.links.dump(), tuple)
