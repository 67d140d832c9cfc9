"""Captures put together by hand, with the commands of docs/capture.md and what they print on a host that has little."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bench.testbed import write_tree
from exporter.discovery import discover
from exporter.kernel import not_there
from exporter.kernel.captured import load_capture, open_capture

ROOT = Path(__file__).parents[2]
MACHINE = ROOT / "tests/machines/mlx5-roce-8nic"


def test_the_grep_of_a_host_finds_its_ports_and_interfaces(tmp_path: Path) -> None:
    """As the same host captured by the program: links that grep does not print hide nothing but PCI addresses."""
    (command,) = re.findall(r"^\| `sys.txt` .*`(grep .*)` \|$", (ROOT / "docs/capture.md").read_text(), re.M)
    write_tree(MACHINE / "sys.txt", tmp_path / "sys")
    for device in tmp_path.glob("sys/class/net/*/device"):
        (device / "uevent").write_text("DRIVER=mlx5_core\n")
    subprocess.run(["bash", "-c", command.replace("/sys/", "sys/")], cwd=tmp_path, check=False)  # 2: a file failed
    printed = (tmp_path / "sys.txt").read_text()
    (tmp_path / "sys.txt").write_text(re.sub(r"^(grep: )?sys/", r"\1/sys/", printed, flags=re.M))
    by_hand, saved = discover(open_capture(tmp_path / "sys.txt")), discover(open_capture(MACHINE))
    assert [port.device for port in by_hand.ports] == [port.device for port in saved.ports]
    assert [netdev.name for netdev in by_hand.netdevs] == [netdev.name for netdev in saved.netdevs]
    assert len(saved.netdevs) == 12


def test_a_pattern_that_matched_nothing_is_no_device(tmp_path: Path) -> None:
    lines = "grep: /sys/class/infiniband/*/: No such file or directory\n/sys/class/net/lo/type:772\n"
    (tmp_path / "sys.txt").write_text(lines)
    assert open_capture(tmp_path).sysfs.list("class") == ("net",)


@pytest.mark.parametrize("printed", ["", "[ ]\n"])
def test_tools_that_had_nothing_to_print(tmp_path: Path, printed: str) -> None:
    """ethtool prints an empty list and rdma nothing where the kernel or the driver does not know what was asked for."""
    (tmp_path / "ethtool").mkdir()
    (tmp_path / "ethtool/eth0.txt").write_text("NIC statistics:\n     rx_packets: 5\n")
    for name in ("ethtool-pause", "ethtool-fec", "ethtool-link", "ethtool-groups"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "eth0.json").write_text(printed)
    for name in ("rdma-system.json", "rdma-dev.json", "rdma-link.json", "rdma-statistic.json", "devlink-health.json"):
        (tmp_path / name).write_text(printed)
    kernel, problems = load_capture(tmp_path)
    assert problems == ()
    for call in (kernel.ethtool_netlink.pause, kernel.ethtool_netlink.fec, kernel.ethtool_netlink.link_state):
        with pytest.raises(OSError, match=r".") as caught:
            call("eth0")
        assert not_there(caught.value)
    assert kernel.ethtool.statistics("eth0").values == (5,)
